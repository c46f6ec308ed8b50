/* .eh_frame: which code has which unwind description, and where exceptions go.
 *
 * Read with bounds-checked code of our own, since every stripped binary needs it at once and libdw's reader decodes
 * entry by entry. Rows are computed on demand (unwind.c). .debug_frame serves when there is no FDE in .eh_frame. */
#include "static/image/frame.h"

#include <dwarf.h>

typedef struct {
    const uint8_t *bytes;
    uint64_t size, addr;
    uint32_t number;
    bool debug; /* .debug_frame: other numbers for CIEs, absolute addresses */
    bool ends_at_zero;
} frame_section;

typedef struct {
    image *img;
    frame_table *table;
    VEC(image_fde) fdes;
    VEC(image_pad) pads;
    uint64_t call_sites; /* how many may still be read: a bound on the work that LSDAs make */
} frame_reader;

bool frame_pointer(cursor *c, uint8_t encoding, uint64_t place, uint64_t *value)
{
    uint64_t v;
    switch (encoding & FRAME_FORMAT) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        v = cursor_uint(c, 8);
        break;
    case DW_EH_PE_uleb128:
        v = cursor_uleb(c);
        break;
    case DW_EH_PE_udata2:
        v = cursor_uint(c, 2);
        break;
    case DW_EH_PE_udata4:
        v = cursor_uint(c, 4);
        break;
    case DW_EH_PE_sleb128:
        v = (uint64_t)cursor_sleb(c);
        break;
    case DW_EH_PE_sdata2:
        v = (uint64_t)cursor_int(c, 2);
        break;
    case DW_EH_PE_sdata4:
        v = (uint64_t)cursor_int(c, 4);
        break;
    default:
        return false;
    }
    *value = v;
    if (c->bad) return false;
    if (encoding & DW_EH_PE_indirect) return false;
    if (v == 0) return true; /* nothing, in any base */
    if ((encoding & FRAME_BASE) == DW_EH_PE_pcrel) *value = place + v;
    return (encoding & FRAME_BASE) == DW_EH_PE_pcrel || (encoding & FRAME_BASE) == 0;
}

/* --- CIEs -------------------------------------------------------------------------------------------------------- */

static bool read_augmentation(frame_cie *cie, const char *letters, cursor c)
{
    for (letters++; *letters; letters++) {
        switch (*letters) {
        case 'R':
            cie->encoding = (uint8_t)cursor_uint(&c, 1);
            break;
        case 'L':
            cie->lsda_encoding = (uint8_t)cursor_uint(&c, 1);
            break;
        case 'S':
            cie->signal = true;
            break;
        case 'B':
            break;
        case 'P': {
            uint8_t encoding = (uint8_t)cursor_uint(&c, 1);
            uint64_t personality;
            frame_pointer(&c, encoding & FRAME_FORMAT, 0, &personality);
            break;
        }
        default:
            return !c.bad; /* the rest is skipped by its length */
        }
    }
    return !c.bad;
}

static bool read_cie(const frame_section *s, uint64_t offset, cursor c, frame_cie *cie)
{
    *cie = (frame_cie){.offset = offset, .section = s->number, .lsda_encoding = DW_EH_PE_omit};
    uint64_t version = cursor_uint(&c, 1);
    if (version != 1 && version != 3 && version != 4) return false;
    const char *letters = (const char *)c.at;
    const uint8_t *zero = cursor_left(&c) ? memchr(c.at, 0, cursor_left(&c)) : NULL;
    if (!zero) return false;
    c.at = zero + 1;
    if (version == 4) {
        uint64_t address = cursor_uint(&c, 1), segment = cursor_uint(&c, 1);
        if (address != 8 || segment != 0) return false;
    }
    if (strcmp(letters, "eh") == 0) cursor_skip(&c, 8);
    cie->code_align = cursor_uleb(&c);
    cie->data_align = cursor_sleb(&c);
    if (version == 1)
        cursor_skip(&c, 1); /* return address column */
    else
        cursor_uleb(&c);
    if (*letters == 'z') {
        uint64_t size = cursor_uleb(&c);
        if (c.bad || size > cursor_left(&c)) return false;
        cie->augmented = true;
        if (!read_augmentation(cie, letters, (cursor){.at = c.at, .end = c.at + size})) return false;
        c.at += size;
    } else if (*letters && strcmp(letters, "eh") != 0) {
        return false;
    }
    cie->program = c;
    frame_initial(cie);
    return !c.bad;
}

static const frame_cie *find_cie(const frame_table *table, uint32_t section, uint64_t offset)
{
    uint32_t low = 0, high = table->cies.len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const frame_cie *cie = &table->cies.data[mid];
        if (cie->section < section || (cie->section == section && cie->offset < offset))
            low = mid + 1;
        else
            high = mid;
    }
    const frame_cie *cie = low < table->cies.len ? &table->cies.data[low] : NULL;
    return cie && cie->section == section && cie->offset == offset ? cie : NULL;
}

/* --- landing pads ------------------------------------------------------------------------------------------------ */

static int pad_compare(const void *a, const void *b)
{
    const image_pad *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool read_call_sites(frame_reader *r, const image_fde *fde, cursor c, uint8_t encoding, uint64_t pads_from)
{
    while (c.at < c.end) {
        uint64_t start, size, pad;
        if (!r->call_sites) return false;
        r->call_sites--;
        if (!frame_pointer(&c, encoding & FRAME_FORMAT, 0, &start) ||
            !frame_pointer(&c, encoding & FRAME_FORMAT, 0, &size) ||
            !frame_pointer(&c, encoding & FRAME_FORMAT, 0, &pad))
            return false;
        cursor_uleb(&c); /* action */
        if (c.bad) return false;
        if (!pad) continue;
        start += fde->start;
        if (start < fde->start || !fits(start - fde->start, size, fde->end - fde->start) ||
            !image_is_code(r->img, pads_from + pad))
            return false;
        if (size) vec_push(&r->pads, (image_pad){start, start + size, pads_from + pad});
    }
    return true;
}

/* Language-specific data as gcc and clang write it for C++ and for C with -fexceptions cleanups. */
static bool read_lsda(frame_reader *r, const image_fde *fde)
{
    uint64_t size, pads_from = fde->start;
    cursor c = {.at = image_bytes(r->img, fde->lsda, &size)};
    if (!c.at) return false;
    c.end = c.at + size;
    const uint8_t *begin = c.at;
    uint8_t encoding = (uint8_t)cursor_uint(&c, 1);
    if (encoding != DW_EH_PE_omit) {
        uint64_t place = fde->lsda + (uint64_t)(c.at - begin);
        if (!frame_pointer(&c, encoding, place, &pads_from)) return false;
    }
    if (cursor_uint(&c, 1) != DW_EH_PE_omit) cursor_uleb(&c); /* types */
    encoding = (uint8_t)cursor_uint(&c, 1);
    uint64_t table = cursor_uleb(&c);
    if (c.bad || table > cursor_left(&c)) return false;
    return read_call_sites(r, fde, (cursor){.at = c.at, .end = c.at + table}, encoding, pads_from);
}

static void read_pads(frame_reader *r, image_fde *fde)
{
    fde->first_pad = r->pads.len;
    if (!fde->lsda) return;
    if (!read_lsda(r, fde)) r->img->unread++;
    fde->pad_count = r->pads.len - fde->first_pad;
    if (fde->pad_count > 1) qsort(r->pads.data + fde->first_pad, fde->pad_count, sizeof *r->pads.data, pad_compare);
}

/* --- FDEs -------------------------------------------------------------------------------------------------------- */

static bool read_fde(frame_reader *r, const frame_section *s, const frame_cie *cie, cursor c)
{
    image_fde fde = {.signal = cie->signal, .entry = r->table->entries.len};
    uint64_t size, place = s->addr + (uint64_t)(c.at - s->bytes);
    if (!frame_pointer(&c, cie->encoding, place, &fde.start) ||
        !frame_pointer(&c, cie->encoding & FRAME_FORMAT, 0, &size))
        return false;
    if (cie->augmented) {
        uint64_t length = cursor_uleb(&c);
        if (c.bad || length > cursor_left(&c)) return false;
        cursor data = {.at = c.at, .end = c.at + length};
        place = s->addr + (uint64_t)(c.at - s->bytes);
        c.at += length;
        if (cie->lsda_encoding != DW_EH_PE_omit && !frame_pointer(&data, cie->lsda_encoding, place, &fde.lsda))
            return false;
    }
    if (!size) return !c.bad; /* clang has functions of no instructions */
    fde.end = fde.start + size;
    if (fde.end < fde.start || !image_is_code(r->img, fde.start) || !image_is_code(r->img, fde.end - 1)) return false;
    fde.fragment = frame_starts_inside(cie, c);
    vec_push(&r->table->entries, (frame_entry){c, (uint32_t)(cie - r->table->cies.data)});
    vec_push(&r->fdes, fde);
    return true;
}

static void read_section(frame_reader *r, const frame_section *s)
{
    cursor c = {.at = s->bytes, .end = s->bytes + s->size};
    while (cursor_left(&c) >= 4) {
        uint64_t offset = (uint64_t)(c.at - s->bytes), length = cursor_uint(&c, 4);
        if (length == 0 && s->ends_at_zero) return;
        if (length == 0) continue;
        unsigned id_size = 4;
        if (length == UINT32_MAX) {
            length = cursor_uint(&c, 8);
            if (s->debug) id_size = 8;
        }
        if (c.bad || length > cursor_left(&c)) {
            r->img->unread++; /* nothing can be found after this */
            return;
        }
        cursor entry = {.at = c.at, .end = c.at + length};
        c.at += length;
        uint64_t id_at = (uint64_t)(entry.at - s->bytes), id = cursor_uint(&entry, id_size);
        bool is_cie = s->debug ? id == (id_size == 8 ? UINT64_MAX : UINT32_MAX) : id == 0;
        bool good = !entry.bad;
        if (good && is_cie) {
            frame_cie cie;
            if ((good = read_cie(s, offset, entry, &cie))) vec_push(&r->table->cies, cie);
        } else if (good) {
            const frame_cie *cie = find_cie(r->table, s->number, s->debug ? id : id_at - id);
            good = cie && read_fde(r, s, cie, entry);
        }
        if (!good) r->img->unread++;
    }
}

/* A file without section headers tells where .eh_frame begins, not where it ends. */
static void read_by_header(frame_reader *r)
{
    const elf_file *file = &r->img->private->file;
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        uint64_t available, start;
        if (p->p_type != PT_GNU_EH_FRAME) continue;
        const uint8_t *bytes = elf_loaded(file, p->p_vaddr, 8, &available);
        if (!bytes || bytes[0] != 1) continue;
        cursor c = {.at = bytes + 4, .end = bytes + available};
        if (!frame_pointer(&c, bytes[1], p->p_vaddr + 4, &start)) continue;
        bytes = elf_loaded(file, start, 4, &available);
        if (bytes)
            read_section(r, &(frame_section){.bytes = bytes, .size = available, .addr = start, .ends_at_zero = true});
    }
}

static uint64_t lsda_bytes(const image *img)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < img->section_count; i++)
        if (!(img->sections[i].flags & IMAGE_X) || strcmp(img->sections[i].name, "segment") == 0)
            size += img->sections[i].filled;
    return size;
}

static void finish(frame_reader *r)
{
    image *img = r->img;
    image_private *in = img->private;
    uint32_t count = r->fdes.len, kept = 0;
    sort_key *keys = base_alloc(count * sizeof *keys);
    range *ranges = base_alloc(count * sizeof *ranges);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (sort_key){r->fdes.data[i].start, i};
    sort_keys(keys, count);
    img->fdes = arena_alloc(&in->memory, count * sizeof *img->fdes);
    for (uint32_t i = 0; i < count; i++) {
        image_fde fde = r->fdes.data[keys[i].id];
        if (kept && img->fdes[kept - 1].start == fde.start) { /* two for one function: the first holds */
            img->unread++;
            continue;
        }
        read_pads(r, &fde);
        ranges[kept] = (range){fde.start, fde.end, kept};
        img->fdes[kept++] = fde;
    }
    img->fde_count = kept;
    img->pads = arena_copy(&in->memory, r->pads.data, r->pads.len * sizeof *img->pads);
    img->pad_count = r->pads.len;
    in->fdes = range_map_build(ranges, kept);
    free(ranges);
    free(keys);
    vec_free(&r->fdes);
    vec_free(&r->pads);
}

void frames_read(image *img)
{
    image_private *in = img->private;
    frame_reader r = {.img = img, .table = base_alloc_zero(1, sizeof(frame_table))};
    in->frames = r.table;
    r.call_sites = lsda_bytes(img);
    bool any = false;
    for (uint32_t i = 1; i < in->file.section_count; i++) {
        const elf_section *s = &in->file.sections[i];
        if (!s->addr || !s->bytes || strcmp(s->name, ".eh_frame") != 0) continue;
        any = true;
        read_section(&r, &(frame_section){.bytes = s->bytes, .size = s->h.sh_size, .addr = s->addr, .number = i});
    }
    if (!any && img->kind != IMAGE_OBJECT) read_by_header(&r);
    if (!r.fdes.len) {
        uint64_t size;
        const uint8_t *bytes = dwarf_frame_section(img, &size);
        if (bytes) read_section(&r, &(frame_section){.bytes = bytes, .size = size, .debug = true});
    }
    finish(&r);
}

void frames_free(image *img)
{
    frame_table *table = img->private->frames;
    if (!table) return;
    vec_free(&table->cies);
    vec_free(&table->entries);
    free(table);
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

const image_fde *image_fde_at(const image *img, uint64_t addr)
{
    const range *found = range_map_find(&img->private->fdes, addr);
    return found ? &img->fdes[found->id] : NULL;
}

uint64_t image_landing_pad(const image *img, uint64_t addr)
{
    const image_fde *fde = image_fde_at(img, addr);
    if (!fde) return 0;
    uint32_t low = fde->first_pad, high = low + fde->pad_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (img->pads[mid].start <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low > fde->first_pad && addr < img->pads[low - 1].end ? img->pads[low - 1].pad : 0;
}
