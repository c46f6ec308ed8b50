/* Names: the symbols of .symtab and .dynsym, of the module and of its separate debug file; and what PT_DYNAMIC says. */
#include "static/image/private.h"

bool symbol_get(const symbol_table *table, uint64_t index, Elf64_Sym *symbol, const char **name)
{
    if (index >= table->count) return false;
    memcpy(symbol, table->symbols + index * sizeof *symbol, sizeof *symbol);
    *name = elf_string_in(table->strings, table->strings_size, symbol->st_name);
    return true;
}

/* --- the dynamic section ----------------------------------------------------------------------------------------- */

/* Where the value of each tag goes. */
static const struct {
    uint64_t tag;
    size_t member;
} DYNAMIC_TAGS[] = {
    {DT_STRTAB, offsetof(elf_dynamic, strings)},
    {DT_STRSZ, offsetof(elf_dynamic, strings_size)},
    {DT_SYMTAB, offsetof(elf_dynamic, symbols)},
    {DT_RELA, offsetof(elf_dynamic, rela)},
    {DT_RELASZ, offsetof(elf_dynamic, rela_size)},
    {DT_JMPREL, offsetof(elf_dynamic, plt_rela)},
    {DT_PLTRELSZ, offsetof(elf_dynamic, plt_rela_size)},
    {DT_RELR, offsetof(elf_dynamic, relr)},
    {DT_RELRSZ, offsetof(elf_dynamic, relr_size)},
    {DT_INIT, offsetof(elf_dynamic, init)},
    {DT_FINI, offsetof(elf_dynamic, fini)},
    {DT_INIT_ARRAY, offsetof(elf_dynamic, init_array)},
    {DT_INIT_ARRAYSZ, offsetof(elf_dynamic, init_array_size)},
    {DT_FINI_ARRAY, offsetof(elf_dynamic, fini_array)},
    {DT_FINI_ARRAYSZ, offsetof(elf_dynamic, fini_array_size)},
    {DT_PREINIT_ARRAY, offsetof(elf_dynamic, preinit_array)},
    {DT_PREINIT_ARRAYSZ, offsetof(elf_dynamic, preinit_array_size)},
};

static const uint8_t *dynamic_bytes(const elf_file *file, uint64_t *size)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type != PT_DYNAMIC || !fits(p->p_offset, p->p_filesz, file->size)) continue;
        *size = p->p_filesz;
        return file->bytes + p->p_offset;
    }
    for (uint32_t i = 1; i < file->section_count; i++) {
        if (file->sections[i].h.sh_type != SHT_DYNAMIC || !file->sections[i].bytes) continue;
        *size = file->sections[i].h.sh_size;
        return file->sections[i].bytes;
    }
    return NULL;
}

void dynamic_read(image *img)
{
    image_private *in = img->private;
    elf_dynamic *d = &in->dynamic;
    uint64_t size, needed = 0;
    if (in->file.h.e_type == ET_REL) return;
    const uint8_t *bytes = dynamic_bytes(&in->file, &size);
    if (!bytes) return;
    d->present = true;
    for (int pass = 0; pass < 2; pass++) { /* names can be read when the string table is known */
        const uint8_t *strings = pass ? elf_loaded(&in->file, d->strings, d->strings_size, NULL) : NULL;
        if (pass) img->needed = arena_alloc(&in->memory, needed * sizeof *img->needed);
        for (uint64_t at = 0; fits(at, sizeof(Elf64_Dyn), size); at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            memcpy(&entry, bytes + at, sizeof entry);
            if (entry.d_tag == DT_NULL) break;
            if (entry.d_tag == DT_NEEDED && pass) {
                const char *name = elf_string_in(strings, d->strings_size, entry.d_un.d_val);
                if (*name)
                    img->needed[img->needed_count++] = name;
                else
                    img->unread++;
            }
            if (pass) continue;
            needed += entry.d_tag == DT_NEEDED;
            d->soname |= entry.d_tag == DT_SONAME;
            d->pie |= entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE);
            for (size_t i = 0; i < sizeof DYNAMIC_TAGS / sizeof *DYNAMIC_TAGS; i++)
                if (DYNAMIC_TAGS[i].tag == (uint64_t)entry.d_tag)
                    memcpy((char *)d + DYNAMIC_TAGS[i].member, &entry.d_un.d_val, sizeof(uint64_t));
        }
    }
}

/* --- symbols ----------------------------------------------------------------------------------------------------- */

typedef VEC(image_symbol) symbol_list;

enum { MAX_VERSIONED = 1024 };

static uint8_t type_of(unsigned char info)
{
    static const uint8_t types[16] = {
        [STT_FUNC] = IMAGE_SYM_FUNC, [STT_OBJECT] = IMAGE_SYM_OBJECT,   [STT_COMMON] = IMAGE_SYM_OBJECT,
        [STT_TLS] = IMAGE_SYM_TLS,   [STT_GNU_IFUNC] = IMAGE_SYM_IFUNC,
    };
    return types[ELF64_ST_TYPE(info)];
}

static uint8_t bind_of(unsigned char info)
{
    switch (ELF64_ST_BIND(info)) {
    case STB_LOCAL:
        return IMAGE_BIND_LOCAL;
    case STB_WEAK:
        return IMAGE_BIND_WEAK;
    default:
        return IMAGE_BIND_GLOBAL;
    }
}

/* `memcpy@@GLIBC_2.14` is how .symtab writes what .dynsym calls memcpy. Names that no one would give a version are
 * left alone: many symbols may share the bytes of one long name, and a copy of each would multiply it. */
static const char *without_version(arena *memory, const char *name)
{
    const char *at = memchr(name, '@', strnlen(name, MAX_VERSIONED));
    return at && at != name ? arena_string(memory, name, (size_t)(at - name)) : name;
}

static bool wanted(const Elf64_Sym *s, const char *name)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);
    return s->st_shndx != SHN_UNDEF && *name && type != STT_SECTION && type != STT_FILE;
}

/* Not a number, and not in a section that is never loaded. */
static bool is_place(const image *img, const elf_file *file, const Elf64_Sym *symbol)
{
    if (symbol->st_shndx == SHN_ABS) return image_section_at(img, symbol->st_value);
    const elf_section *s = symbol->st_shndx < file->section_count ? &file->sections[symbol->st_shndx] : NULL;
    return !s || s->h.sh_type == SHT_NULL || (s->h.sh_flags & SHF_ALLOC);
}

static void add_table(image *img, symbol_list *list, const elf_file *file, const elf_section *s, bool dynamic)
{
    const elf_section *strings = elf_linked(file, s, SHT_STRTAB);
    if (!s->bytes || !strings || (s->h.sh_entsize && s->h.sh_entsize != sizeof(Elf64_Sym))) {
        img->unread++;
        return;
    }
    symbol_table table = {s->bytes, s->h.sh_size / sizeof(Elf64_Sym), strings->bytes, strings->h.sh_size};
    const char *name, *file_name = NULL;
    Elf64_Sym symbol;
    for (uint64_t i = 1; i < table.count; i++) {
        symbol_get(&table, i, &symbol, &name);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE) file_name = *name ? name : NULL;
        if (!wanted(&symbol, name)) continue;
        unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
        image_symbol out = {.addr = symbol.st_value,
                            .size = symbol.st_size,
                            .name = dynamic ? name : without_version(&img->private->memory, name),
                            .type = type_of(symbol.st_info),
                            .bind = bind_of(symbol.st_info)};
        if (out.bind == IMAGE_BIND_LOCAL) out.file = file_name;
        out.exported =
            dynamic && out.bind != IMAGE_BIND_LOCAL && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
        if (img->kind == IMAGE_OBJECT) {
            const object_symbol *placed = &img->private->object_symbols[i];
            if (i >= img->private->object_symbol_count || !placed->placed) continue;
            out.addr = placed->value;
            out.type = placed->tls ? IMAGE_SYM_TLS : out.type;
        } else if (!is_place(img, file, &symbol)) {
            continue;
        }
        vec_push(list, out);
    }
}

static bool add_tables(image *img, symbol_list *list, const elf_file *file, uint32_t type)
{
    bool any = false;
    for (uint32_t i = 1; i < file->section_count; i++) {
        if (file->sections[i].h.sh_type != type || !file->sections[i].bytes) continue;
        if (any && img->kind == IMAGE_OBJECT) break; /* only one is what relocations mean */
        add_table(img, list, file, &file->sections[i], type == SHT_DYNSYM);
        any = true;
    }
    return any;
}

/* Without section headers, the number of symbols is in the hash table. */
static uint64_t dynamic_symbol_count(const elf_file *file, const uint8_t *dynamic, uint64_t size)
{
    for (uint64_t at = 0; fits(at, sizeof(Elf64_Dyn), size); at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        memcpy(&d, dynamic + at, sizeof d);
        uint64_t left;
        const uint8_t *hash;
        if (d.d_tag == DT_NULL) break;
        if (d.d_tag == DT_HASH && (hash = elf_loaded(file, d.d_un.d_ptr, 8, NULL))) return load32(hash + 4);
        if (d.d_tag != DT_GNU_HASH || !(hash = elf_loaded(file, d.d_un.d_ptr, 16, &left))) continue;
        uint64_t buckets = load32(hash), first = load32(hash + 4), bloom = load32(hash + 8), last = 0;
        uint64_t chains = 16 + 8 * bloom + 4 * buckets;
        if (!fits(0, chains, left)) continue;
        for (uint64_t i = 0; i < buckets; i++) {
            uint64_t start = load32(hash + 16 + 8 * bloom + 4 * i);
            if (start > last) last = start;
        }
        if (last < first) return first;
        for (uint64_t chain = chains + 4 * (last - first); fits(chain, 4, left); chain += 4, last++)
            if (load32(hash + chain) & 1) return last + 1;
        return last;
    }
    return 0;
}

static void add_dynamic(image *img, symbol_list *list)
{
    const image_private *in = img->private;
    uint64_t size, available, count = 0;
    const uint8_t *dynamic = dynamic_bytes(&in->file, &size);
    if (!dynamic || !in->dynamic.symbols) return;
    count = dynamic_symbol_count(&in->file, dynamic, size);
    const uint8_t *symbols = elf_loaded(&in->file, in->dynamic.symbols, 0, &available);
    const uint8_t *strings = elf_loaded(&in->file, in->dynamic.strings, in->dynamic.strings_size, NULL);
    if (!symbols || !strings || count > available / sizeof(Elf64_Sym)) {
        img->unread++;
        return;
    }
    /* As a file with two sections, so that there is one way to read a table. */
    elf_section sections[3] = {
        [1] = {.h = {.sh_type = SHT_DYNSYM, .sh_flags = SHF_ALLOC, .sh_size = count * sizeof(Elf64_Sym), .sh_link = 2},
               .bytes = symbols},
        [2] = {.h = {.sh_type = SHT_STRTAB, .sh_flags = SHF_ALLOC, .sh_size = in->dynamic.strings_size},
               .bytes = strings}};
    elf_file file = {.sections = sections, .section_count = 3};
    add_tables(img, list, &file, SHT_DYNSYM);
}

/* Names are compared up to this length: a million endless names at one address must not take for ever. */
enum { SORTED_BY = 1024 };

/* The order of image->symbols: TLS last, then address, then name; equal ones by what says most. */
static int symbol_compare(const image_symbol *x, const image_symbol *y)
{
    int names = x->name == y->name ? 0 : strncmp(x->name, y->name, SORTED_BY);
    if (names) return names;
    if (x->exported != y->exported) return x->exported ? -1 : 1;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    const char *a = x->file ? x->file : "", *b = y->file ? y->file : "";
    return strcmp(a, b);
}

static int symbol_compare_q(const void *a, const void *b)
{
    return symbol_compare(a, b);
}

static void sort_by_address(image_symbol *symbols, uint32_t count)
{
    sort_key *keys = base_alloc(count * sizeof *keys);
    image_symbol *copy = base_alloc(count * sizeof *copy);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (sort_key){symbols[i].addr, i};
    sort_keys(keys, count);
    for (uint32_t i = 0; i < count; i++)
        copy[i] = symbols[keys[i].id];
    memcpy(symbols, copy, count * sizeof *copy);
    free(copy);
    free(keys);
    for (uint32_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && symbols[last].addr == symbols[first].addr;)
            last++;
        if (last - first > 1) qsort(symbols + first, last - first, sizeof *symbols, symbol_compare_q);
    }
}

/* One symbol of both .symtab and .dynsym: keep it once, with all that either says. */
static uint32_t merge_equal(image_symbol *symbols, uint32_t count)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < count; i++) {
        image_symbol *before = out ? &symbols[out - 1] : NULL;
        if (before && before->addr == symbols[i].addr &&
            (before->type == IMAGE_SYM_TLS) == (symbols[i].type == IMAGE_SYM_TLS) &&
            strcmp(before->name, symbols[i].name) == 0) {
            before->exported |= symbols[i].exported;
            if (before->type == IMAGE_SYM_OTHER) before->type = symbols[i].type;
            if (before->size < symbols[i].size) before->size = symbols[i].size;
            if (!before->file && before->bind == IMAGE_BIND_LOCAL) before->file = symbols[i].file;
        } else {
            symbols[out++] = symbols[i];
        }
    }
    return out;
}

/* Whether a function is one of those that the code of the C library, or of OpenMP's in front of it, may begin with. */
static bool may_begin(const image *img, const image_symbol *s)
{
    static const char *const first[] = {"__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main"};
    static const char *const openmp[] = {"GOMP_", "gomp_", "omp_", "__kmp"};
    if (s->type != IMAGE_SYM_FUNC || s->bind == IMAGE_BIND_LOCAL || s->addr < img->entry) return false; /* in front are rare parts */
    for (unsigned k = 0; k < sizeof first / sizeof *first; k++)
        if (!strcmp(s->name, first[k])) return true;
    for (unsigned k = 0; k < sizeof openmp / sizeof *openmp; k++)
        if (!strncmp(s->name, openmp[k], strlen(openmp[k]))) return true;
    return false;
}

/* The C library comes last, behind the program and its own libraries, and begins with what start-up code asks for first. */
static uint64_t find_libc(const image *img, uint32_t count)
{
    uint64_t lowest = 0;
    bool any = false;
    for (uint32_t i = 0; img->is_static && i < count; i++) {
        any |= !strcmp(img->symbols[i].name, "__libc_start_main");
        if (may_begin(img, &img->symbols[i]) && (!lowest || img->symbols[i].addr < lowest)) lowest = img->symbols[i].addr;
    }
    return any ? lowest : 0;
}

/* Which of several symbols at one address names it best; higher is better. Of the names of a C library, it is the one that
 * programs know: pthread_join, not ___pthread_join, which are weak or global as it happens. */
static unsigned rank(const image *img, const image_symbol *s)
{
    enum { UNDERSCORES = 4 };
    static const unsigned by_type[] = {[IMAGE_SYM_FUNC] = 3, [IMAGE_SYM_IFUNC] = 3, [IMAGE_SYM_OBJECT] = 2};
    static const unsigned by_bind[] = {[IMAGE_BIND_GLOBAL] = 2, [IMAGE_BIND_WEAK] = 1};
    unsigned type = s->type < sizeof by_type / sizeof *by_type ? by_type[s->type] : 0;
    unsigned plain = by_bind[s->bind];
    if (img->libc && s->addr >= img->libc) {
        size_t front = strspn(s->name, "_");
        plain = UNDERSCORES - (front < UNDERSCORES ? (unsigned)front : UNDERSCORES);
    }
    return type * 16 + (s->size ? 8u : 0) + plain;
}

static int rank_compare(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1; /* `end` holds the rank here */
    return x->id > y->id ? -1 : x->id < y->id;             /* so that of equal ones the first name holds */
}

static void map_symbols(image *img, uint32_t count)
{
    range *ranges = base_alloc(count * sizeof *ranges);
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (img->symbols[i].size) ranges[used++] = (range){img->symbols[i].addr, rank(img, &img->symbols[i]), i};
    for (uint32_t first = 0, last; first < used; first = last) {
        for (last = first + 1; last < used && ranges[last].start == ranges[first].start;)
            last++;
        if (last - first > 1) qsort(ranges + first, last - first, sizeof *ranges, rank_compare);
    }
    for (uint32_t i = 0; i < used; i++) {
        const image_symbol *s = &img->symbols[ranges[i].id];
        ranges[i].end = s->addr + s->size < s->addr ? UINT64_MAX : s->addr + s->size;
    }
    img->private->symbols = range_map_build(ranges, used);
    free(ranges);
}

static void choose_best(image *img, uint32_t count)
{
    image_private *in = img->private;
    in->best_symbols = arena_alloc(&in->memory, count * sizeof *in->best_symbols);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *last = in->best_count ? &in->best_symbols[in->best_count - 1] : NULL;
        if (!last || img->symbols[*last].addr != img->symbols[i].addr)
            in->best_symbols[in->best_count++] = i;
        else if (rank(img, &img->symbols[i]) > rank(img, &img->symbols[*last]))
            *last = i;
    }
}

void symbols_read(image *img)
{
    image_private *in = img->private;
    symbol_list list = {0};
    img->has_symtab = add_tables(img, &list, &in->file, SHT_SYMTAB);
    if (!img->has_symtab && in->debug.bytes) img->has_symtab = add_tables(img, &list, &in->debug, SHT_SYMTAB);
    if (img->kind != IMAGE_OBJECT && !add_tables(img, &list, &in->file, SHT_DYNSYM)) add_dynamic(img, &list);

    uint32_t plain = 0; /* TLS symbols last: their addresses are offsets in another space */
    img->symbols = arena_alloc(&in->memory, list.len * sizeof *img->symbols);
    for (uint32_t i = 0; i < list.len; i++)
        if (list.data[i].type != IMAGE_SYM_TLS) img->symbols[plain++] = list.data[i];
    for (uint32_t i = 0, next = plain; i < list.len; i++)
        if (list.data[i].type == IMAGE_SYM_TLS) img->symbols[next++] = list.data[i];
    sort_by_address(img->symbols, plain);
    sort_by_address(img->symbols + plain, list.len - plain);
    uint32_t kept = merge_equal(img->symbols, plain);
    memmove(img->symbols + kept, img->symbols + plain, (list.len - plain) * sizeof *img->symbols);
    img->symbol_count = kept + merge_equal(img->symbols + kept, list.len - plain);
    in->plain_symbols = kept;
    vec_free(&list);
    img->libc = find_libc(img, kept);
    map_symbols(img, kept);
    choose_best(img, kept);
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

const image_symbol *image_symbol_at(const image *img, uint64_t addr)
{
    const image_private *in = img->private;
    uint32_t low = 0, high = in->best_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (img->symbols[in->best_symbols[mid]].addr < addr)
            low = mid + 1;
        else
            high = mid;
    }
    const image_symbol *best = low < in->best_count ? &img->symbols[in->best_symbols[low]] : NULL;
    return best && best->addr == addr ? best : NULL;
}

const image_symbol *image_symbol_covering(const image *img, uint64_t addr)
{
    const range *found = range_map_find(&img->private->symbols, addr);
    return found ? &img->symbols[found->id] : NULL;
}

const image_symbol *image_symbol_tls(const image *img, uint64_t offset)
{
    uint32_t low = img->private->plain_symbols, high = img->symbol_count, first = low;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (img->symbols[mid].addr <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    while (low > first) { /* the nearest that starts before; of several there, one that covers */
        const image_symbol *s = &img->symbols[--low];
        if (s->addr == offset || offset - s->addr < s->size) return s;
        if (low > first && img->symbols[low - 1].addr != s->addr) break;
    }
    return NULL;
}
