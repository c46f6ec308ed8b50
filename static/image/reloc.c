/* Relocations of a linked module as facts about its data: which word holds the address of what.
 *
 * Tables come from PT_DYNAMIC, which is what the loader believes, and from section headers (a static program has only
 * those). Non-PIC programs have no relocations for pointers between their own parts, so there every aligned data
 * word that is an address of the module is recorded as a guess. Relocatable objects are handled by object.c. */
#include "static/image/private.h"

typedef struct {
    image *img;
    symbol_table symbols;
    VEC(image_reloc) out;
    range read[3]; /* file ranges of the tables of PT_DYNAMIC */
    uint32_t read_count;
} reloc_reader;

static void add(reloc_reader *r, image_reloc reloc)
{
    const image_section *s = image_section_at(r->img, reloc.addr);
    if (s && fits(reloc.addr - s->addr, reloc.size, s->size))
        vec_push(&r->out, reloc);
    else
        r->img->unread++;
}

/* A word that holds the address of a symbol: `IMAGE_REL_ADDR` and its kin. */
static void add_symbolic(reloc_reader *r, image_reloc reloc, const Elf64_Sym *symbol, const char *name)
{
    reloc.name = *name ? name : NULL;
    if (symbol->st_shndx == SHN_UNDEF) {
        if (!reloc.name) {
            r->img->unread++;
            return;
        }
        reloc.kind = IMAGE_REL_SYMBOL;
    } else {
        reloc.target = symbol->st_value + (uint64_t)reloc.addend;
        reloc.kind = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? IMAGE_REL_IFUNC : IMAGE_REL_ADDR;
        if (symbol->st_shndx == SHN_ABS && !image_section_at(r->img, reloc.target)) return; /* a number */
    }
    add(r, reloc);
}

static void add_tls(reloc_reader *r, image_reloc reloc, uint8_t kind, const Elf64_Sym *symbol, const char *name)
{
    reloc.kind = kind;
    reloc.name = *name ? name : NULL;
    if (symbol->st_shndx != SHN_UNDEF || !reloc.name) reloc.target = symbol->st_value + (uint64_t)reloc.addend;
    add(r, reloc);
}

static void add_rela(reloc_reader *r, const Elf64_Rela *rela)
{
    Elf64_Sym symbol = {0};
    const char *name = "";
    uint64_t index = ELF64_R_SYM(rela->r_info);
    image_reloc reloc = {.addr = rela->r_offset, .size = 8, .addend = rela->r_addend};
    if (index && !symbol_get(&r->symbols, index, &symbol, &name)) {
        r->img->unread++;
        return;
    }
    switch (ELF64_R_TYPE(rela->r_info)) {
    case R_X86_64_NONE:
    case R_X86_64_SIZE32:
    case R_X86_64_SIZE64:
        break;
    case R_X86_64_RELATIVE:
    case R_X86_64_RELATIVE64:
        reloc.kind = IMAGE_REL_ADDR;
        reloc.target = (uint64_t)rela->r_addend;
        add(r, reloc);
        break;
    case R_X86_64_IRELATIVE:
        reloc.kind = IMAGE_REL_IFUNC;
        reloc.target = (uint64_t)rela->r_addend;
        reloc.slot = 1;
        add(r, reloc);
        break;
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_GLOB_DAT:
        reloc.slot = 1;
        reloc.addend = 0; /* not used for these */
        add_symbolic(r, reloc, &symbol, name);
        break;
    case R_X86_64_64:
        add_symbolic(r, reloc, &symbol, name);
        break;
    case R_X86_64_32:
    case R_X86_64_32S:
        reloc.size = 4;
        add_symbolic(r, reloc, &symbol, name);
        break;
    case R_X86_64_COPY:
        if (symbol.st_size > UINT32_MAX || !*name) {
            r->img->unread++;
            break;
        }
        reloc.kind = IMAGE_REL_COPY;
        reloc.size = (uint32_t)symbol.st_size;
        reloc.name = name;
        add(r, reloc);
        break;
    case R_X86_64_TPOFF64:
        add_tls(r, reloc, IMAGE_REL_TPOFF, &symbol, name);
        break;
    case R_X86_64_DTPMOD64:
        add_tls(r, reloc, IMAGE_REL_DTPMOD, &symbol, name);
        break;
    case R_X86_64_DTPOFF64:
        add_tls(r, reloc, IMAGE_REL_DTPOFF, &symbol, name);
        break;
    case R_X86_64_TLSDESC: /* two words: what finds the block, and the place in it */
        add_tls(r, reloc, IMAGE_REL_DTPMOD, &symbol, name);
        reloc.addr += 8;
        add_tls(r, reloc, IMAGE_REL_DTPOFF, &symbol, name);
        break;
    default:
        r->img->unread++;
    }
}

/* False when the table is part of one that PT_DYNAMIC named: sections show the same tables again. */
static bool first_time(reloc_reader *r, const uint8_t *bytes, uint64_t size, bool dynamic)
{
    uint64_t start = (uint64_t)(bytes - r->img->private->file.bytes);
    for (uint32_t i = 0; i < r->read_count; i++)
        if (start >= r->read[i].start && start + size <= r->read[i].end) return false;
    if (dynamic) r->read[r->read_count++] = (range){start, start + size, 0};
    return true;
}

static void read_rela(reloc_reader *r, const uint8_t *bytes, uint64_t size, bool dynamic)
{
    if (!first_time(r, bytes, size, dynamic)) return;
    vec_reserve(&r->out, r->out.len + size / sizeof(Elf64_Rela));
    for (uint64_t at = 0; fits(at, sizeof(Elf64_Rela), size); at += sizeof(Elf64_Rela)) {
        Elf64_Rela rela;
        memcpy(&rela, bytes + at, sizeof rela);
        add_rela(r, &rela);
    }
}

/* An even entry is the address of a word to relocate; an odd one is a bitmap of the 63 words after. Places must rise,
 * which real tables do, so that there are never more than the module has words. */
static void read_relr(reloc_reader *r, const uint8_t *bytes, uint64_t size, bool dynamic)
{
    uint64_t next = 0, word;
    if (!first_time(r, bytes, size, dynamic)) return;
    for (uint64_t at = 0; fits(at, 8, size); at += 8) {
        uint64_t entry = load64(bytes + at), bits = entry >> 1;
        uint64_t base = next;
        if (!(entry & 1)) {
            if (entry < next) {
                r->img->unread++;
                return;
            }
            base = entry;
            bits = 1;
        }
        for (uint64_t i = 0; bits >> i; i++) {
            if (!(bits >> i & 1)) continue;
            if (image_read(r->img, base + 8 * i, &word, 8))
                add(r, (image_reloc){.addr = base + 8 * i,
                                     .size = 8,
                                     .kind = IMAGE_REL_ADDR,
                                     .target = word,
                                     .addend = (int64_t)word});
            else
                r->img->unread++;
            if (i == 62) break;
        }
        uint64_t step = entry & 1 ? 63 * 8 : 8;
        if (base > UINT64_MAX - step) return;
        next = base + step;
    }
}

static void read_dynamic(reloc_reader *r)
{
    const image_private *in = r->img->private;
    const elf_dynamic *d = &in->dynamic;
    uint64_t available;
    const uint8_t *bytes;
    r->symbols = (symbol_table){0};
    if (d->symbols && (bytes = elf_loaded(&in->file, d->symbols, 0, &available))) {
        r->symbols.symbols = bytes;
        r->symbols.count = available / sizeof(Elf64_Sym);
        r->symbols.strings = elf_loaded(&in->file, d->strings, d->strings_size, NULL);
        r->symbols.strings_size = r->symbols.strings ? d->strings_size : 0;
    }
    const struct {
        uint64_t addr, size;
        void (*read)(reloc_reader *, const uint8_t *, uint64_t, bool);
    } tables[] = {{d->rela, d->rela_size, read_rela},
                  {d->plt_rela, d->plt_rela_size, read_rela},
                  {d->relr, d->relr_size, read_relr}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!tables[i].size) continue;
        if ((bytes = elf_loaded(&in->file, tables[i].addr, tables[i].size, NULL)))
            tables[i].read(r, bytes, tables[i].size, true);
        else
            r->img->unread++;
    }
}

static void read_sections(reloc_reader *r)
{
    const elf_file *file = &r->img->private->file;
    for (uint32_t i = 1; i < file->section_count; i++) {
        const elf_section *s = &file->sections[i];
        if (!(s->h.sh_flags & SHF_ALLOC) || !s->bytes || !s->h.sh_size) continue;
        if (s->h.sh_type == SHT_RELA) {
            const elf_section *symbols = elf_linked(file, s, SHT_DYNSYM);
            if (!symbols) symbols = elf_linked(file, s, SHT_SYMTAB);
            const elf_section *strings = symbols ? elf_linked(file, symbols, SHT_STRTAB) : NULL;
            r->symbols = (symbol_table){0};
            if (strings && symbols->bytes)
                r->symbols = (symbol_table){symbols->bytes, symbols->h.sh_size / sizeof(Elf64_Sym), strings->bytes,
                                            strings->h.sh_size};
            read_rela(r, s->bytes, s->h.sh_size, false);
        } else if (s->h.sh_type == SHT_RELR) {
            read_relr(r, s->bytes, s->h.sh_size, false);
        }
    }
}

/* --- guesses ----------------------------------------------------------------------------------------------------- */

/* Sections of a linked file that the program never sees as data. */
static bool holds_data(const image_section *s)
{
    static const char *const not_data[] = {
        ".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".dynsym", ".dynstr", ".dynamic", ".hash", ".gnu.", ".rela",
        ".relr",     ".note",         ".interp",           ".stab"};
    if (s->flags & IMAGE_X && strcmp(s->name, "segment") != 0) return false;
    for (size_t i = 0; i < sizeof not_data / sizeof *not_data; i++)
        if (strncmp(s->name, not_data[i], strlen(not_data[i])) == 0) return false;
    return true;
}

static void guess(reloc_reader *r)
{
    image *img = r->img;
    const image_section *first = &img->sections[0], *last = &img->sections[img->section_count - 1];
    uint64_t low = first->addr, high = last->addr + last->size;
    uint32_t known = r->out.len, k = 0; /* relocations before are sorted */
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        if (!holds_data(s)) continue;
        for (uint64_t at = align_up(s->addr, 8) - s->addr; fits(at, 8, s->filled); at += 8) {
            uint64_t value = load64(s->bytes + at);
            if (value < low || value >= high || !image_section_at(img, value)) continue;
            uint64_t addr = s->addr + at;
            while (k < known && r->out.data[k].addr < addr)
                k++;
            if (k < known && r->out.data[k].addr == addr) continue;
            vec_push(&r->out, (image_reloc){.addr = addr, .kind = IMAGE_REL_GUESS, .size = 8, .target = value});
        }
    }
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

/* By address; of several for one word (which no linker makes) the last applied holds. */
void relocs_sort(image *img)
{
    uint32_t count = img->reloc_count, out = 0;
    sort_key *keys = base_alloc(count * sizeof *keys);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (sort_key){img->relocs[i].addr, i};
    sort_keys(keys, count);
    image_reloc *sorted = base_alloc(count * sizeof *sorted);
    for (uint32_t i = 0; i < count; i++) {
        if (out && sorted[out - 1].addr == keys[i].key) {
            out--;
            img->unread++;
        }
        sorted[out++] = img->relocs[keys[i].id];
    }
    free(keys);
    free(img->relocs);
    img->relocs = sorted;
    img->reloc_count = out;
}

void relocs_read(image *img)
{
    reloc_reader r = {.img = img};
    if (img->private->dynamic.present) read_dynamic(&r);
    read_sections(&r);
    img->relocs = r.out.data;
    img->reloc_count = r.out.len;
    if (img->kind != IMAGE_EXEC) return;
    relocs_sort(img);
    r.out.data = img->relocs;
    r.out.len = r.out.cap = img->reloc_count;
    guess(&r);
    img->relocs = r.out.data;
    img->reloc_count = r.out.len;
}

static uint32_t first_from(const image *img, uint64_t addr)
{
    uint32_t low = 0, high = img->reloc_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (img->relocs[mid].addr < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const image_reloc *image_reloc_at(const image *img, uint64_t addr)
{
    uint32_t i = first_from(img, addr);
    return i < img->reloc_count && img->relocs[i].addr == addr ? &img->relocs[i] : NULL;
}

uint32_t image_relocs_in(const image *img, uint64_t start, uint64_t end, uint32_t *first)
{
    *first = first_from(img, start);
    uint32_t last = first_from(img, end);
    return last > *first ? last - *first : 0;
}

/* --- functions that the loader calls ----------------------------------------------------------------------------- */

static void add_init(image *img, uint64_t addr)
{
    if (image_is_code(img, addr)) img->init[img->init_count++] = addr;
}

/* The words of an array of function pointers: a relocation says what is there at run time, else the file does. */
static void add_init_array(image *img, uint64_t addr, uint64_t size)
{
    for (uint64_t at = 0; fits(at, 8, size); at += 8) {
        uint64_t word;
        const image_reloc *reloc = image_reloc_at(img, addr + at);
        if (reloc && (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_GUESS))
            add_init(img, reloc->target);
        else if (image_read(img, addr + at, &word, sizeof word))
            add_init(img, word);
    }
}

typedef struct {
    uint64_t addr, size;
} init_array;

void init_read(image *img)
{
    const elf_file *file = &img->private->file;
    const elf_dynamic *d = &img->private->dynamic;
    VEC(init_array) arrays = {0};
    uint64_t single[4] = {d->init, d->fini}, words = 4, available;
    if (d->preinit_array_size) vec_push(&arrays, (init_array){d->preinit_array, d->preinit_array_size});
    if (d->init_array_size) vec_push(&arrays, (init_array){d->init_array, d->init_array_size});
    if (d->fini_array_size) vec_push(&arrays, (init_array){d->fini_array, d->fini_array_size});
    for (uint32_t i = 1; i < file->section_count && !d->present; i++) { /* static programs and objects */
        const elf_section *s = &file->sections[i];
        if (!s->addr || !s->bytes) continue;
        if (s->h.sh_type == SHT_INIT_ARRAY || s->h.sh_type == SHT_FINI_ARRAY || s->h.sh_type == SHT_PREINIT_ARRAY)
            vec_push(&arrays, (init_array){s->addr, s->h.sh_size});
        else if (strcmp(s->name, ".init") == 0)
            single[2] = s->addr;
        else if (strcmp(s->name, ".fini") == 0)
            single[3] = s->addr;
    }
    for (uint32_t i = 0; i < arrays.len; i++) {
        if (!image_bytes(img, arrays.data[i].addr, &available)) available = 0;
        if (arrays.data[i].size > available) {
            img->unread++;
            arrays.data[i].size = available;
        }
        words += arrays.data[i].size / 8;
    }
    img->init = arena_alloc(&img->private->memory, words * sizeof *img->init);
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (single[i]) add_init(img, single[i]);
    for (uint32_t i = 0; i < arrays.len; i++)
        add_init_array(img, arrays.data[i].addr, arrays.data[i].size);
    vec_free(&arrays);
}
