/* Relocatable objects, laid out and linked onto themselves, so that the code above sees a module like any other.
 *
 *   0x10000  allocated sections in the order of the file, aligned
 *            *common*   SHN_COMMON symbols
 *            *extern*   room for each undefined symbol, without contents or permissions: places behind it, in an array or struct
 *                       that another object defines, are its own
 *            *got*      slots that relocations ask for
 *
 * TLS sections also get a place in the module's TLS block, as do undefined TLS symbols (16 bytes each).
 * Relocations are applied to copies of the sections; those that make an absolute word are recorded as facts. */
#include "static/image/private.h"

enum { BASE = 0x10000, EXTERN_SIZE = 16, EXTERN_ROOM = 1 << 16, EXTERN_ALL = 1 << 28, MAX_ALIGN = 1 << 24 };
static const uint64_t MAX_END = 1ull << 46;

typedef enum { SLOT_ADDRESS, SLOT_TPOFF, SLOT_PAIR } slot_kind;

typedef struct {
    image *img;
    uint64_t *tls;        /* by section number: its offset in the TLS block */
    uint64_t end;         /* of the layout so far */
    uint64_t got;         /* address of `*got*` */
    VEC(uint64_t) slots;  /* contents of `*got*` */
    uint32_t module_pair; /* slot + 1 of the pair that TLSLD asks for */
    VEC(image_reloc) facts;
} linker;

/* --- sections ---------------------------------------------------------------------------------------------------- */

static bool add_section(linker *l, image_section section)
{
    image *img = l->img;
    if (section.size > MAX_END || section.addr + section.size > MAX_END) return false;
    l->end = section.addr + section.size;
    if (section.size) img->sections[img->section_count++] = section;
    return true;
}

/* Words that the loader relocates and nobody writes after: the linker makes them RELRO. */
static bool is_relro(const char *name)
{
    static const char *const names[] = {".data.rel.ro", ".init_array", ".fini_array", ".preinit_array"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static int place_sections(linker *l, race_error *error)
{
    image *img = l->img;
    elf_file *file = &img->private->file;
    uint64_t tls_align = 1;
    for (uint32_t i = 1; i < file->section_count; i++) {
        elf_section *s = &file->sections[i];
        uint64_t align = s->h.sh_addralign;
        if (s->h.sh_type == SHT_NULL || !(s->h.sh_flags & SHF_ALLOC)) continue;
        if (align > MAX_ALIGN || (align && !power_of_two(align)))
            return base_fail(error, "%s: is damaged: section %u has alignment %#lx", img->private->name, i, align);
        if (s->h.sh_flags & SHF_TLS) {
            l->tls[i] = align_up(img->tls_size, align);
            img->tls_size = l->tls[i] + s->h.sh_size;
            if (align > tls_align) tls_align = align;
            if (img->tls_size > MAX_END)
                return base_fail(error, "%s: is damaged: its TLS block is too large", img->private->name);
            if (s->h.sh_type == SHT_NOBITS) continue;
        }
        s->addr = align_up(l->end, align);
        uint32_t flags = IMAGE_R | (s->h.sh_flags & SHF_WRITE ? IMAGE_W : 0) |
                         (s->h.sh_flags & SHF_EXECINSTR ? IMAGE_X : 0) | (s->h.sh_flags & SHF_TLS ? IMAGE_TLS : 0) |
                         (is_relro(s->name) ? IMAGE_RELRO : 0);
        if (!add_section(l, (image_section){.addr = s->addr,
                                            .size = s->h.sh_size,
                                            .bytes = s->bytes,
                                            .filled = s->bytes ? s->h.sh_size : 0,
                                            .name = s->name,
                                            .flags = flags}))
            return base_fail(error, "%s: is damaged: its sections claim more than an address space",
                             img->private->name);
    }
    img->tls_size = align_up(img->tls_size, tls_align);
    return 0;
}

/* --- symbols ----------------------------------------------------------------------------------------------------- */

typedef struct {
    symbol_table table;
    const uint8_t *extended; /* section numbers that do not fit st_shndx */
    uint64_t extended_count;
} object_table;

static bool find_table(const elf_file *file, object_table *out)
{
    for (uint32_t i = 1; i < file->section_count; i++) {
        const elf_section *s = &file->sections[i];
        if (s->h.sh_type != SHT_SYMTAB || !s->bytes) continue;
        const elf_section *strings = elf_linked(file, s, SHT_STRTAB);
        if (!strings) return false;
        *out =
            (object_table){.table = {s->bytes, s->h.sh_size / sizeof(Elf64_Sym), strings->bytes, strings->h.sh_size}};
        for (uint32_t j = 1; j < file->section_count; j++) {
            if (file->sections[j].h.sh_type != SHT_SYMTAB_SHNDX || file->sections[j].h.sh_link != i) continue;
            out->extended = file->sections[j].bytes;
            out->extended_count = file->sections[j].h.sh_size / 4;
        }
        return true;
    }
    return false;
}

static uint32_t section_of(const object_table *t, uint64_t index, const Elf64_Sym *symbol)
{
    if (symbol->st_shndx != SHN_XINDEX) return symbol->st_shndx < SHN_LORESERVE ? symbol->st_shndx : 0;
    return index < t->extended_count ? load32(t->extended + 4 * index) : 0;
}

static void place_defined(linker *l, object_symbol *out, const Elf64_Sym *symbol, uint32_t number)
{
    const elf_file *file = &l->img->private->file;
    const elf_section *s = number < file->section_count ? &file->sections[number] : NULL;
    if (!s || s->h.sh_type == SHT_NULL) {
        l->img->unread++;
        return;
    }
    bool allocated = s->h.sh_flags & SHF_ALLOC;
    out->known = out->defined = true;
    out->placed = allocated && symbol->st_value <= s->h.sh_size;
    out->tls = allocated && (s->h.sh_flags & SHF_TLS);
    out->value = symbol->st_value + (out->tls ? l->tls[number] : s->addr);
}

static int place_commons(linker *l, const object_table *t, race_error *error)
{
    image_private *in = l->img->private;
    uint64_t start = align_up(l->end, 64), end = start;
    for (uint32_t i = 1; i < in->object_symbol_count; i++) {
        Elf64_Sym symbol;
        const char *name;
        symbol_get(&t->table, i, &symbol, &name);
        if (symbol.st_shndx != SHN_COMMON) continue;
        if (symbol.st_value > MAX_ALIGN || (symbol.st_value && !power_of_two(symbol.st_value))) {
            l->img->unread++;
            continue;
        }
        end = align_up(end, symbol.st_value);
        object_symbol *out = &in->object_symbols[i];
        out->known = out->placed = out->defined = true;
        out->value = end;
        if (symbol.st_size > MAX_END || (end += symbol.st_size) > MAX_END)
            return base_fail(error, "%s: is damaged: its symbols claim more than an address space",
                             l->img->private->name);
    }
    add_section(l, (image_section){.addr = start, .size = end - start, .name = "*common*", .flags = IMAGE_R | IMAGE_W});
    return 0;
}

/* The room of an undefined symbol: displacements of 32 bits reach all of them. */
static uint64_t extern_room(const image_private *in)
{
    uint64_t room = in->object_symbol_count ? EXTERN_ALL / in->object_symbol_count : 0;
    return room > EXTERN_ROOM ? EXTERN_ROOM : room < EXTERN_SIZE ? EXTERN_SIZE : room & ~(uint64_t)(EXTERN_SIZE - 1);
}

/* Undefined symbols; the GOT symbol is the one that the linker defines. */
static void place_undefined(linker *l, const object_table *t)
{
    image_private *in = l->img->private;
    uint64_t start = align_up(l->end, EXTERN_SIZE), end = start, room = extern_room(in);
    VEC(uint32_t) got = {0};
    for (uint32_t i = 1; i < in->object_symbol_count; i++) {
        object_symbol *out = &in->object_symbols[i];
        Elf64_Sym symbol;
        const char *name;
        symbol_get(&t->table, i, &symbol, &name);
        if (symbol.st_shndx != SHN_UNDEF) continue;
        out->known = out->placed = *name;
        if (!*name) continue;
        if (strcmp(name, "_GLOBAL_OFFSET_TABLE_") == 0) {
            out->placed = false;
            out->defined = true;
            vec_push(&got, i);
        } else if (out->type == STT_TLS) {
            out->tls = true;
            out->value = align_up(l->img->tls_size, EXTERN_SIZE);
            l->img->tls_size = out->value + EXTERN_SIZE;
        } else {
            out->value = end;
            end += room;
        }
    }
    add_section(l, (image_section){.addr = start, .size = end - start, .name = "*extern*"});
    l->got = align_up(l->end, 64);
    for (uint32_t i = 0; i < got.len; i++)
        in->object_symbols[got.data[i]].value = l->got;
    vec_free(&got);
}

static int place_symbols(linker *l, race_error *error)
{
    image_private *in = l->img->private;
    object_table t;
    if (!find_table(&in->file, &t)) return 0;
    if (t.table.count > UINT32_MAX / 2) return base_fail(error, "%s: has too many symbols", l->img->private->name);
    in->object_symbol_count = (uint32_t)t.table.count;
    in->object_symbols = arena_alloc(&in->memory, t.table.count * sizeof *in->object_symbols);
    for (uint32_t i = 0; i < in->object_symbol_count; i++) {
        object_symbol *out = &in->object_symbols[i];
        Elf64_Sym symbol;
        symbol_get(&t.table, i, &symbol, &out->name);
        out->size = symbol.st_size;
        out->type = ELF64_ST_TYPE(symbol.st_info);
        if (i == 0) {
            out->known = out->defined = true; /* value 0 */
        } else if (symbol.st_shndx == SHN_ABS) {
            out->known = out->defined = true;
            out->value = symbol.st_value;
        } else if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_COMMON) {
            place_defined(l, out, &symbol, section_of(&t, i, &symbol));
        }
    }
    if (place_commons(l, &t, error)) return -1;
    place_undefined(l, &t);
    return 0;
}

/* --- relocations ------------------------------------------------------------------------------------------------- */

/* S symbol, A addend, P place, G address of a slot, T size of the TLS block, Z size of the symbol */
typedef enum {
    CALC_UNKNOWN,
    CALC_NONE,     /* marks an instruction, changes nothing */
    CALC_ABS,      /* S + A */
    CALC_PC,       /* S + A - P */
    CALC_SLOT_PC,  /* G + A - P */
    CALC_SLOT_GOT, /* G + A - GOT */
    CALC_GOT,      /* S + A - GOT */
    CALC_GOT_PC,   /* GOT + A - P */
    CALC_TPOFF,    /* S + A - T */
    CALC_DTPOFF,   /* S + A */
    CALC_TPOFF_SLOT_PC,
    CALC_PAIR_PC,
    CALC_MODULE_PC,
    CALC_SIZE /* Z + A */
} calculation;

static const struct {
    uint8_t calc, size;
    bool is_signed;
} RELOCATIONS[] = {
    [R_X86_64_NONE] = {CALC_NONE, 0, 0},
    [R_X86_64_64] = {CALC_ABS, 8, 0},
    [R_X86_64_32] = {CALC_ABS, 4, 0},
    [R_X86_64_32S] = {CALC_ABS, 4, 1},
    [R_X86_64_16] = {CALC_ABS, 2, 0},
    [R_X86_64_8] = {CALC_ABS, 1, 0},
    [R_X86_64_PC64] = {CALC_PC, 8, 1},
    [R_X86_64_PC32] = {CALC_PC, 4, 1},
    [R_X86_64_PLT32] = {CALC_PC, 4, 1},
    [R_X86_64_PC16] = {CALC_PC, 2, 1},
    [R_X86_64_PC8] = {CALC_PC, 1, 1},
    [R_X86_64_GOTPCREL] = {CALC_SLOT_PC, 4, 1},
    [R_X86_64_GOTPCRELX] = {CALC_SLOT_PC, 4, 1},
    [R_X86_64_REX_GOTPCRELX] = {CALC_SLOT_PC, 4, 1},
    [R_X86_64_GOTPCREL64] = {CALC_SLOT_PC, 8, 1},
    [R_X86_64_GOT32] = {CALC_SLOT_GOT, 4, 1},
    [R_X86_64_GOT64] = {CALC_SLOT_GOT, 8, 1},
    [R_X86_64_GOTPLT64] = {CALC_SLOT_GOT, 8, 1},
    [R_X86_64_GOTOFF64] = {CALC_GOT, 8, 1},
    [R_X86_64_PLTOFF64] = {CALC_GOT, 8, 1},
    [R_X86_64_GOTPC32] = {CALC_GOT_PC, 4, 1},
    [R_X86_64_GOTPC64] = {CALC_GOT_PC, 8, 1},
    [R_X86_64_TPOFF32] = {CALC_TPOFF, 4, 1},
    [R_X86_64_TPOFF64] = {CALC_TPOFF, 8, 1},
    [R_X86_64_DTPOFF32] = {CALC_DTPOFF, 4, 1},
    [R_X86_64_DTPOFF64] = {CALC_DTPOFF, 8, 1},
    [R_X86_64_GOTTPOFF] = {CALC_TPOFF_SLOT_PC, 4, 1},
    [R_X86_64_TLSGD] = {CALC_PAIR_PC, 4, 1},
    [R_X86_64_GOTPC32_TLSDESC] = {CALC_PAIR_PC, 4, 1},
    [R_X86_64_TLSLD] = {CALC_MODULE_PC, 4, 1},
    [R_X86_64_TLSDESC_CALL] = {CALC_NONE, 0, 0},
    [R_X86_64_SIZE32] = {CALC_SIZE, 4, 0},
    [R_X86_64_SIZE64] = {CALC_SIZE, 8, 0},
};

/* The fact that an absolute word at `addr` holds symbol + addend. */
static void add_fact(linker *l, uint64_t addr, uint32_t size, const object_symbol *s, int64_t addend, bool slot)
{
    image_reloc fact = {
        .addr = addr, .size = size, .slot = slot, .addend = addend, .target = s->value + (uint64_t)addend};
    if (!s->placed) return; /* a number */
    fact.name = *s->name ? s->name : NULL;
    fact.kind = !s->defined ? IMAGE_REL_SYMBOL : s->type == STT_GNU_IFUNC ? IMAGE_REL_IFUNC : IMAGE_REL_ADDR;
    vec_push(&l->facts, fact);
}

static void add_tls_fact(linker *l, uint64_t addr, uint32_t size, uint8_t kind, const object_symbol *s, int64_t addend,
                         bool slot)
{
    const char *name = s && *s->name ? s->name : NULL;
    uint64_t target = (s ? s->value : 0) + (uint64_t)addend;
    vec_push(&l->facts, (image_reloc){.addr = addr,
                                      .size = size,
                                      .kind = kind,
                                      .slot = slot,
                                      .target = target,
                                      .addend = name ? addend : (int64_t)target,
                                      .name = name});
}

/* The address of the symbol's slot of this kind. */
static uint64_t slot_of(linker *l, object_symbol *s, slot_kind kind)
{
    if (s->slot[kind]) return l->got + 8 * (uint64_t)(s->slot[kind] - 1);
    uint64_t addr = l->got + 8 * (uint64_t)l->slots.len;
    s->slot[kind] = l->slots.len + 1;
    switch (kind) {
    case SLOT_ADDRESS:
        vec_push(&l->slots, s->value);
        add_fact(l, addr, 8, s, 0, true);
        break;
    case SLOT_TPOFF:
        vec_push(&l->slots, s->value - l->img->tls_size);
        add_tls_fact(l, addr, 8, IMAGE_REL_TPOFF, s, 0, true);
        break;
    case SLOT_PAIR:
        vec_push(&l->slots, 0);
        vec_push(&l->slots, s->value);
        add_tls_fact(l, addr, 8, IMAGE_REL_DTPMOD, s, 0, true);
        add_tls_fact(l, addr + 8, 8, IMAGE_REL_DTPOFF, s, 0, true);
        break;
    }
    return addr;
}

static uint64_t module_pair(linker *l)
{
    if (!l->module_pair) {
        l->module_pair = l->slots.len + 1;
        add_tls_fact(l, l->got + 8 * (uint64_t)l->slots.len, 8, IMAGE_REL_DTPMOD, NULL, 0, true);
        vec_push(&l->slots, 0);
        vec_push(&l->slots, 0);
    }
    return l->got + 8 * (uint64_t)(l->module_pair - 1);
}

static bool store(uint8_t *to, unsigned size, bool is_signed, uint64_t value)
{
    if (size < 8) {
        unsigned unused = 64 - 8 * size;
        uint64_t back = is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value << unused >> unused;
        if (back != value) return false;
    }
    memcpy(to, &value, size);
    return true;
}

/* What a relocation puts at address `place`; facts and slots go to `l`. */
static uint64_t calculate(linker *l, unsigned type, object_symbol *s, int64_t addend, uint64_t place)
{
    uint64_t a = (uint64_t)addend;
    unsigned size = RELOCATIONS[type].size;
    switch ((calculation)RELOCATIONS[type].calc) {
    case CALC_ABS:
        if (size >= 4) add_fact(l, place, size, s, addend, false);
        return s->value + a;
    case CALC_PC:
        return s->value + a - place;
    case CALC_SLOT_PC:
        return slot_of(l, s, SLOT_ADDRESS) + a - place;
    case CALC_SLOT_GOT:
        return slot_of(l, s, SLOT_ADDRESS) + a - l->got;
    case CALC_GOT:
        return s->value + a - l->got;
    case CALC_GOT_PC:
        return l->got + a - place;
    case CALC_TPOFF:
        add_tls_fact(l, place, size, IMAGE_REL_TPOFF, s, addend, false);
        return s->value + a - l->img->tls_size;
    case CALC_DTPOFF:
        add_tls_fact(l, place, size, IMAGE_REL_DTPOFF, s, addend, false);
        return s->value + a;
    case CALC_TPOFF_SLOT_PC:
        return slot_of(l, s, SLOT_TPOFF) + a - place;
    case CALC_PAIR_PC:
        return slot_of(l, s, SLOT_PAIR) + a - place;
    case CALC_MODULE_PC:
        return module_pair(l) + a - place;
    case CALC_SIZE:
        return s->size + a;
    case CALC_UNKNOWN:
    case CALC_NONE:
        break;
    }
    return 0;
}

static object_symbol *relocatable(const image *img, const Elf64_Rela *rela, uint64_t size)
{
    const image_private *in = img->private;
    uint64_t type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info);
    if (type >= sizeof RELOCATIONS / sizeof *RELOCATIONS || RELOCATIONS[type].calc == CALC_UNKNOWN ||
        index >= in->object_symbol_count || !in->object_symbols[index].known ||
        !fits(rela->r_offset, RELOCATIONS[type].size, size))
        return NULL;
    return &in->object_symbols[index];
}

static void relocate_section(linker *l, const elf_section *rela_section, elf_section *s)
{
    image *img = l->img;
    for (uint64_t at = 0; fits(at, sizeof(Elf64_Rela), rela_section->h.sh_size); at += sizeof(Elf64_Rela)) {
        Elf64_Rela rela;
        memcpy(&rela, rela_section->bytes + at, sizeof rela);
        object_symbol *symbol = relocatable(img, &rela, s->h.sh_size);
        if (!symbol) {
            img->unread++;
            continue;
        }
        unsigned type = ELF64_R_TYPE(rela.r_info);
        if (RELOCATIONS[type].calc == CALC_NONE) continue;
        if (!s->relocated) s->bytes = s->relocated = arena_copy(&img->private->memory, s->bytes, s->h.sh_size);
        uint64_t value = calculate(l, type, symbol, rela.r_addend, s->addr + rela.r_offset);
        if (!store(s->relocated + rela.r_offset, RELOCATIONS[type].size, RELOCATIONS[type].is_signed, value))
            img->unread++;
    }
}

/* The image's sections follow the file's where those have a new copy of their bytes. */
static void refresh_sections(image *img)
{
    const elf_file *file = &img->private->file;
    for (uint32_t i = 1, out = 0; i < file->section_count; i++) {
        const elf_section *s = &file->sections[i];
        if (!s->addr || !s->h.sh_size) continue;
        if (s->bytes) img->sections[out].bytes = s->bytes;
        out++;
    }
}

int layout_object(image *img, race_error *error)
{
    image_private *in = img->private;
    linker l = {.img = img, .end = BASE};
    l.tls = arena_alloc(&in->memory, in->file.section_count * sizeof *l.tls);
    img->sections = arena_alloc(&in->memory, (in->file.section_count + 3ull) * sizeof *img->sections);
    if (place_sections(&l, error) || place_symbols(&l, error)) return -1;
    for (uint32_t i = 1; i < in->file.section_count; i++) {
        const elf_section *r = &in->file.sections[i];
        if ((r->h.sh_type != SHT_RELA && r->h.sh_type != SHT_REL) || !r->bytes) continue;
        elf_section *s = r->h.sh_info < in->file.section_count ? &in->file.sections[r->h.sh_info] : NULL;
        if (s && !(s->h.sh_flags & SHF_ALLOC)) continue; /* dwarf.c does these */
        if (!s || !s->addr || !s->bytes || r->h.sh_type == SHT_REL)
            img->unread++;
        else
            relocate_section(&l, r, s);
    }
    refresh_sections(img);
    uint64_t got_size = 8ull * l.slots.len;
    if (got_size)
        add_section(&l, (image_section){.addr = l.got,
                                        .size = got_size,
                                        .bytes = arena_copy(&in->memory, l.slots.data, got_size),
                                        .filled = got_size,
                                        .name = "*got*",
                                        .flags = IMAGE_R | IMAGE_W | IMAGE_RELRO});
    vec_free(&l.slots);
    img->relocs = l.facts.data;
    img->reloc_count = l.facts.len;
    return 0;
}

void object_relocate_debug(const image *img, uint8_t *bytes, uint64_t size, const Elf64_Rela *rela)
{
    const object_symbol *s = relocatable(img, rela, size);
    if (!s) return;
    unsigned type = ELF64_R_TYPE(rela->r_info);
    uint8_t calc = RELOCATIONS[type].calc;
    if (calc == CALC_ABS || calc == CALC_DTPOFF)
        store(bytes + rela->r_offset, RELOCATIONS[type].size, RELOCATIONS[type].is_signed,
              s->value + (uint64_t)rela->r_addend);
}
