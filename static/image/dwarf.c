/* The DWARF sections of an image as libdw gets them.
 *
 * libdw reads what it is given in place and trusts it in part: a string or number at the very end of a section is read
 * beyond it, compressed sections are unpacked to whatever size they claim, files that DWARF names (split units,
 * alternate files) are opened without asking, relocatable objects are not relocated. So it gets an ELF file of our
 * making, in memory: debug sections only, unpacked within bounds, relocated, each followed by zeros. */
#include "static/image/dwarf.h"

#include <libelf.h>

enum { GAP = 64, MAX_RATIO = 256, MAX_PIECES = 60000 };

typedef enum { PLAIN, PACKED, PACKED_GNU } packing;

typedef struct {      /* a section of the file, or what became of it */
    const char *name; /* the usual one: .debug_info for .zdebug_info */
    const uint8_t *bytes;
    uint64_t size;
    uint32_t number; /* in the file */
    packing packing;
    bool grouped;   /* of a section group, shared with other objects */
    uint8_t *place; /* in the ELF file that make_elf made */
} piece;

typedef VEC(piece) piece_list;

/* --- an ELF file in memory --------------------------------------------------------------------------------------- */

static bool joins(const piece *pieces, uint32_t i, bool join)
{
    return join && i && strcmp(pieces[i].name, pieces[i - 1].name) == 0;
}

/* `join`: neighbours of the same name become one section. */
static uint8_t *make_elf(piece *pieces, uint32_t count, bool join, uint64_t *total)
{
    uint64_t headers_size = (count + 2ull) * sizeof(Elf64_Shdr);
    uint64_t names = 1 + sizeof ".shstrtab", size = sizeof(Elf64_Ehdr) + headers_size;
    for (uint32_t i = 0; i < count; i++) {
        names += strlen(pieces[i].name) + 2;
        size += pieces[i].size + GAP + 16;
    }
    uint8_t *bytes = base_alloc_zero(1, size + names + GAP);
    Elf64_Shdr *headers = base_alloc_zero(count + 2ull, sizeof *headers);
    uint64_t at = sizeof(Elf64_Ehdr) + headers_size, names_at = size, name = names_at + 1;
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        piece *p = &pieces[i];
        if (!joins(pieces, i, join)) {
            at = align_up(at + (used ? GAP : 0), 16);
            headers[++used] = (Elf64_Shdr){.sh_name = (uint32_t)(name - names_at),
                                           .sh_type = SHT_PROGBITS,
                                           .sh_offset = at,
                                           .sh_addralign = 1,
                                           .sh_flags = p->packing == PACKED ? SHF_COMPRESSED : 0};
            bool z = p->packing == PACKED_GNU; /* libelf knows these by their name */
            memcpy(bytes + name, z ? ".z" : ".", z ? 2 : 1);
            memcpy(bytes + name + (z ? 2 : 1), p->name + 1, strlen(p->name) - 1);
            name += strlen(p->name) + 2;
        }
        p->place = bytes + at;
        if (p->size) memcpy(bytes + at, p->bytes, p->size);
        headers[used].sh_size += p->size;
        at += p->size;
    }
    headers[++used] = (Elf64_Shdr){.sh_name = (uint32_t)(name - names_at),
                                   .sh_type = SHT_STRTAB,
                                   .sh_offset = names_at,
                                   .sh_size = names,
                                   .sh_addralign = 1};
    memcpy(bytes + name, ".shstrtab", sizeof ".shstrtab");
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = ET_EXEC,
                    .e_machine = EM_X86_64,
                    .e_version = EV_CURRENT,
                    .e_shoff = sizeof h,
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof *headers,
                    .e_shnum = (uint16_t)(used + 1),
                    .e_shstrndx = (uint16_t)used};
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, headers, (used + 1ull) * sizeof *headers);
    free(headers);
    *total = size + names + GAP;
    return bytes;
}

/* --- which sections ---------------------------------------------------------------------------------------------- */

static int piece_compare(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    if (names) return names;
    if (x->grouped != y->grouped) return x->grouped ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* An object has one .debug_info of its own and one per type unit that it shares with others (a section group). Units
 * stand for themselves, so these are put behind each other, its own first; of other sections the first is taken. */
static piece_list collect(arena *memory, const elf_file *file)
{
    piece_list list = {0};
    for (uint32_t i = 1; i < file->section_count && list.len < MAX_PIECES; i++) {
        const elf_section *s = &file->sections[i];
        bool gnu = strncmp(s->name, ".zdebug_", 8) == 0;
        if (!s->bytes || !s->h.sh_size || (!gnu && strncmp(s->name, ".debug_", 7) != 0)) continue;
        piece p = {.name = s->name,
                   .bytes = s->bytes,
                   .size = s->h.sh_size,
                   .number = i,
                   .packing = gnu                              ? PACKED_GNU
                              : s->h.sh_flags & SHF_COMPRESSED ? PACKED
                                                               : PLAIN,
                   .grouped = s->h.sh_flags & SHF_GROUP};
        if (gnu) {
            char *name = arena_string(memory, s->name + 1, strlen(s->name + 1));
            name[0] = '.';
            p.name = name;
        }
        vec_push(&list, p);
    }
    if (list.len) qsort(list.data, list.len, sizeof *list.data, piece_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list.len; i++) {
        const piece *p = &list.data[i];
        bool units = strcmp(p->name, ".debug_info") == 0 || strcmp(p->name, ".debug_types") == 0;
        if (kept && !units && strcmp(p->name, list.data[kept - 1].name) == 0) continue;
        list.data[kept++] = *p;
    }
    list.len = kept;
    return list;
}

/* --- compressed sections ----------------------------------------------------------------------------------------- */

/* What the section claims to unpack to is possible. */
static bool plausible(const piece *p)
{
    uint64_t claimed;
    Elf64_Chdr h;
    if (p->packing == PACKED_GNU) {
        if (p->size < 12 || memcmp(p->bytes, "ZLIB", 4) != 0) return false;
        claimed = __builtin_bswap64(load64(p->bytes + 4));
    } else {
        if (p->size < sizeof h) return false;
        memcpy(&h, p->bytes, sizeof h);
        if (h.ch_type != ELFCOMPRESS_ZLIB || !power_of_two(h.ch_addralign)) return false;
        claimed = h.ch_size;
    }
    return claimed / MAX_RATIO <= p->size;
}

typedef struct {
    uint8_t *bytes;
    Elf *elf;
} unpacked;

/* Replaces packed pieces by their contents, which live in the result. A piece that cannot be unpacked becomes empty. */
static unpacked unpack(image_dwarf *dwarf, piece_list *list)
{
    piece_list packed = {0};
    unpacked u = {0};
    uint64_t size;
    for (uint32_t i = 0; i < list->len; i++) {
        piece *p = &list->data[i];
        if (p->packing == PLAIN) continue;
        if (plausible(p)) {
            vec_push(&packed, *p);
        } else {
            dwarf->damaged++;
            p->packing = PLAIN;
            p->size = 0;
        }
    }
    if (!packed.len) return u;
    elf_version(EV_CURRENT);
    u.bytes = make_elf(packed.data, packed.len, false, &size);
    u.elf = elf_memory((char *)u.bytes, size);
    vec_free(&packed);
    Elf_Scn *scn = NULL;
    for (uint32_t i = 0; i < list->len; i++) {
        piece *p = &list->data[i];
        if (p->packing == PLAIN) continue;
        scn = u.elf ? elf_nextscn(u.elf, scn) : NULL;
        int done = !scn ? -1 : p->packing == PACKED_GNU ? elf_compress_gnu(scn, 0, 0) : elf_compress(scn, 0, 0);
        const Elf_Data *data = done >= 0 ? elf_rawdata(scn, NULL) : NULL;
        if (!data) dwarf->damaged++;
        p->packing = PLAIN;
        p->bytes = data ? data->d_buf : NULL;
        p->size = data && data->d_buf ? data->d_size : 0;
    }
    return u;
}

/* --- a copy ------------------------------------------------------------------------------------------------------ */

static void relocate(const image *img, const elf_file *file, const piece_list *list)
{
    const piece **by_number = base_alloc_zero(file->section_count, sizeof *by_number);
    for (uint32_t i = 0; i < list->len; i++)
        by_number[list->data[i].number] = &list->data[i];
    for (uint32_t i = 1; i < file->section_count; i++) {
        const elf_section *r = &file->sections[i];
        if (r->h.sh_type != SHT_RELA || !r->bytes || r->h.sh_info >= file->section_count) continue;
        const piece *p = by_number[r->h.sh_info];
        for (uint64_t at = 0; p && fits(at, sizeof(Elf64_Rela), r->h.sh_size); at += sizeof(Elf64_Rela)) {
            Elf64_Rela rela;
            memcpy(&rela, r->bytes + at, sizeof rela);
            object_relocate_debug(img, p->place, p->size, &rela);
        }
    }
    free(by_number);
}

static const char *const SECTION_NAMES[SECTION_COUNT] = {
    [SECTION_INFO] = ".debug_info",   [SECTION_TYPES] = ".debug_types",       [SECTION_ABBREV] = ".debug_abbrev",
    [SECTION_LINE] = ".debug_line",   [SECTION_LINE_STR] = ".debug_line_str", [SECTION_STR] = ".debug_str",
    [SECTION_FRAME] = ".debug_frame",
};

static void note_sections(dwarf_copy *copy, const piece_list *list)
{
    for (uint32_t i = 0; i < list->len; i++)
        for (int k = 0; k < SECTION_COUNT; k++) {
            if (strcmp(list->data[i].name, SECTION_NAMES[k]) != 0) continue;
            if (!copy->sections[k].bytes) copy->sections[k].bytes = list->data[i].place;
            copy->sections[k].size += list->data[i].size; /* pieces of one name lie behind each other */
        }
}

static void copy_make(image_dwarf *dwarf, const elf_file *file, dwarf_copy *out)
{
    const image *img = dwarf->img;
    piece_list list = collect(&dwarf->memory, file);
    if (!list.len) return;
    unpacked u = unpack(dwarf, &list);
    out->bytes = make_elf(list.data, list.len, true, &out->size);
    if (u.elf) elf_end(u.elf);
    free(u.bytes);
    if (img->kind == IMAGE_OBJECT) relocate(img, file, &list);
    note_sections(out, &list);
    vec_free(&list);
    elf_version(EV_CURRENT);
    out->elf = elf_memory((char *)out->bytes, out->size);
    out->dw = out->elf ? dwarf_begin_elf(out->elf, DWARF_C_READ, NULL) : NULL;
    if (!out->dw) dwarf->damaged++;
    dwarf->steps += 8 * out->size;
}

static void copy_free(dwarf_copy *copy)
{
    if (copy->dw) dwarf_end(copy->dw);
    if (copy->elf) elf_end(copy->elf);
    free(copy->starts[0]);
    free(copy->starts[1]);
    free(copy->bytes);
}

/* The file that has the section: the module, else its separate debug file. */
static const elf_file *file_with(const image *img, const char *section)
{
    const image_private *in = img->private;
    if (elf_section_named(&in->file, section)) return &in->file;
    return in->debug.bytes && elf_section_named(&in->debug, section) ? &in->debug : NULL;
}

static const elf_file *file_with_dwarf(const image *img)
{
    const elf_file *file = file_with(img, ".debug_info");
    return file ? file : file_with(img, ".zdebug_info");
}

bool dwarf_present(const image *img)
{
    return file_with_dwarf(img) != NULL;
}

image_dwarf *dwarf_get(const image *img)
{
    image_private *in = img->private;
    if (in->dwarf) return in->dwarf;
    image_dwarf *dwarf = in->dwarf = base_alloc_zero(1, sizeof *dwarf);
    dwarf->img = img;
    const elf_file *file = file_with_dwarf(img);
    if (!file) file = file_with(img, ".debug_frame");
    if (!file) return dwarf;
    copy_make(dwarf, file, &dwarf->main);
    elf_file alternate;
    if (dwarf->main.dw && debug_file_alternate(img, file, &alternate)) {
        copy_make(dwarf, &alternate, &dwarf->alt);
        if (dwarf->alt.dw) dwarf_setalt(dwarf->main.dw, dwarf->alt.dw);
    }
    return dwarf;
}

const uint8_t *dwarf_frame_section(const image *img, uint64_t *size)
{
    const elf_file *file = file_with(img, SECTION_NAMES[SECTION_FRAME]);
    const elf_section *s = file ? elf_section_named(file, SECTION_NAMES[SECTION_FRAME]) : NULL;
    if (!s || !s->bytes) return NULL;
    *size = s->h.sh_size;
    if (img->kind != IMAGE_OBJECT && !(s->h.sh_flags & SHF_COMPRESSED)) return s->bytes;
    const dwarf_copy *copy = &dwarf_get(img)->main;
    *size = copy->sections[SECTION_FRAME].size;
    return copy->sections[SECTION_FRAME].bytes;
}

uint32_t image_debug_unread(const image *img)
{
    pthread_mutex_lock(&img->private->lock);
    uint32_t damaged = img->private->dwarf ? img->private->dwarf->damaged : 0;
    pthread_mutex_unlock(&img->private->lock);
    return damaged;
}

void debug_free(image *img)
{
    image_dwarf *dwarf = img->private->dwarf;
    if (!dwarf) return;
    index_free(dwarf);
    lines_free(dwarf);
    vec_free(&dwarf->units);
    map64_free(&dwarf->unit_by_die);
    map64_free(&dwarf->line_tables);
    free(dwarf->ranges.ranges);
    copy_free(&dwarf->main);
    copy_free(&dwarf->alt);
    arena_free(&dwarf->memory);
    free(dwarf);
}
