/* The address space of a linked module: its sections, their permissions, RELRO; and the lookups of bytes in it.
 *
 * A linked file is loaded by its segments and described by its sections. Sections are finer, so they are what the
 * image shows, but only where they agree with the segments: bytes shown are bytes loaded. A file without section
 * headers shows its segments. Relocatable objects are laid out by object.c. */
#include "static/image/private.h"

static int by_segments(image *img, race_error *error);

/* The loaded segments by address. free() its ranges. */
static range_map map_segments(const elf_file *file)
{
    range *ranges = base_alloc(file->segment_count * sizeof *ranges);
    uint32_t count = 0;
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type == PT_LOAD) ranges[count++] = (range){p->p_vaddr, p->p_vaddr + p->p_memsz, i};
    }
    sort_ranges(ranges, count);
    range_map map = range_map_build(ranges, count);
    free(ranges);
    return map;
}

static const Elf64_Phdr *segment_of(const elf_file *file, const range_map *segments, const elf_section *s)
{
    const range *found = range_map_find(segments, s->h.sh_addr);
    const Elf64_Phdr *p = found ? &file->segments[found->id] : NULL;
    return p && fits(s->h.sh_addr - p->p_vaddr, s->h.sh_size, p->p_memsz) ? p : NULL;
}

static const Elf64_Phdr *segment_typed(const elf_file *file, uint32_t type)
{
    for (uint32_t i = 0; i < file->segment_count; i++)
        if (file->segments[i].p_type == type) return &file->segments[i];
    return NULL;
}

static bool takes_space(const elf_section *s)
{
    bool tbss = (s->h.sh_flags & SHF_TLS) && s->h.sh_type == SHT_NOBITS;
    return s->h.sh_type != SHT_NULL && (s->h.sh_flags & SHF_ALLOC) && s->h.sh_size && !tbss;
}

static int by_sections(image *img, const range_map *segments, race_error *error)
{
    elf_file *file = &img->private->file;
    const Elf64_Phdr *relro = segment_typed(file, PT_GNU_RELRO);
    for (uint32_t i = 1; i < file->section_count; i++) {
        elf_section *s = &file->sections[i];
        if (!takes_space(s)) continue;
        const Elf64_Phdr *p = segment_of(file, segments, s);
        if (segments->count && !p) { /* never loaded */
            img->unread++;
            continue;
        }
        uint64_t inside = p ? s->h.sh_addr - p->p_vaddr : 0;
        if (p && s->bytes && (s->h.sh_offset != p->p_offset + inside || !fits(inside, s->h.sh_size, p->p_filesz)))
            return base_fail(error, "%s: is damaged: section %u (%s) is not where its segment is", img->private->name,
                             i, s->name);
        uint32_t flags = IMAGE_R;
        if ((s->h.sh_flags & SHF_WRITE) || (p && (p->p_flags & PF_W))) flags |= IMAGE_W;
        if (s->h.sh_flags & SHF_EXECINSTR) flags |= IMAGE_X;
        if (s->h.sh_flags & SHF_TLS) flags |= IMAGE_TLS;
        if (relro && s->h.sh_addr >= relro->p_vaddr &&
            fits(s->h.sh_addr - relro->p_vaddr, s->h.sh_size, relro->p_memsz))
            flags |= IMAGE_RELRO;
        s->addr = s->h.sh_addr;
        img->sections[img->section_count++] = (image_section){.addr = s->addr,
                                                              .size = s->h.sh_size,
                                                              .bytes = s->bytes,
                                                              .filled = s->bytes ? s->h.sh_size : 0,
                                                              .name = s->name,
                                                              .flags = flags};
    }
    return img->section_count ? 0 : by_segments(img, error);
}

static void add_segment(image *img, const Elf64_Phdr *p, uint64_t from, uint64_t to, uint32_t flags)
{
    if (from >= to) return;
    uint64_t filled = p->p_vaddr + p->p_filesz > from ? p->p_vaddr + p->p_filesz - from : 0;
    if (filled > to - from) filled = to - from;
    img->sections[img->section_count++] =
        (image_section){.addr = from,
                        .size = to - from,
                        .bytes = filled ? img->private->file.bytes + p->p_offset + (from - p->p_vaddr) : NULL,
                        .filled = filled,
                        .name = "segment",
                        .flags = flags};
}

/* No section headers: segments, cut where RELRO begins and ends. */
static int by_segments(image *img, race_error *error)
{
    elf_file *file = &img->private->file;
    const Elf64_Phdr *relro = segment_typed(file, PT_GNU_RELRO);
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type != PT_LOAD || !p->p_memsz) continue;
        uint64_t end = p->p_vaddr + p->p_memsz, from = end, to = end;
        uint32_t flags = IMAGE_R | (p->p_flags & PF_W ? IMAGE_W : 0) | (p->p_flags & PF_X ? IMAGE_X : 0);
        if (relro && relro->p_vaddr >= p->p_vaddr && fits(relro->p_vaddr - p->p_vaddr, relro->p_memsz, p->p_memsz)) {
            from = relro->p_vaddr;
            to = from + relro->p_memsz;
        }
        add_segment(img, p, p->p_vaddr, from, flags);
        add_segment(img, p, from, to, flags | IMAGE_RELRO);
        add_segment(img, p, to, end, flags);
    }
    if (!img->section_count)
        return base_fail(error, "%s: has neither sections nor segments to load", img->private->name);
    return 0;
}

static int section_compare(const void *a, const void *b)
{
    const image_section *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int layout_linked(image *img, race_error *error)
{
    elf_file *file = &img->private->file;
    img->sections =
        arena_alloc(&img->private->memory, (file->section_count + 3ull * file->segment_count) * sizeof *img->sections);
    range_map segments = map_segments(file);
    int result = by_sections(img, &segments, error);
    free(segments.ranges);
    if (result) return -1;
    qsort(img->sections, img->section_count, sizeof *img->sections, section_compare);
    for (uint32_t i = 1; i < img->section_count; i++) {
        const image_section *a = &img->sections[i - 1], *b = &img->sections[i];
        if (b->addr - a->addr < a->size)
            return base_fail(error, "%s: is damaged: sections %s and %s overlap at %#lx", img->private->name, a->name,
                             b->name, b->addr);
    }
    const Elf64_Phdr *tls = segment_typed(file, PT_TLS);
    if (tls && tls->p_memsz < UINT32_MAX && (tls->p_align <= 1 || power_of_two(tls->p_align)))
        img->tls_size = align_up(tls->p_memsz, tls->p_align);
    else if (tls)
        img->unread++;
    if (image_is_code(img, file->h.e_entry))
        img->entry = file->h.e_entry;
    else if (file->h.e_entry)
        img->unread++;
    return 0;
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

const image_section *image_section_at(const image *img, uint64_t addr)
{
    uint32_t low = 0, high = img->section_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (img->sections[mid].addr <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low && addr - img->sections[low - 1].addr < img->sections[low - 1].size ? &img->sections[low - 1] : NULL;
}

const uint8_t *image_bytes(const image *img, uint64_t addr, uint64_t *available)
{
    const image_section *s = image_section_at(img, addr);
    if (!s || addr - s->addr >= s->filled) return NULL;
    if (available) *available = s->filled - (addr - s->addr);
    return s->bytes + (addr - s->addr);
}

bool image_read(const image *img, uint64_t addr, void *to, size_t size)
{
    uint64_t available;
    const uint8_t *from = image_bytes(img, addr, &available);
    if (!from || available < size) return false;
    memcpy(to, from, size);
    return true;
}

bool image_is_code(const image *img, uint64_t addr)
{
    const image_section *s = image_section_at(img, addr);
    return s && (s->flags & IMAGE_X) && addr - s->addr < s->filled;
}

bool image_is_constant(const image *img, uint64_t addr, uint64_t size)
{
    const image_section *s = image_section_at(img, addr);
    return s && fits(addr - s->addr, size, s->size) && s->flags & IMAGE_R &&
           (!(s->flags & IMAGE_W) || (s->flags & IMAGE_RELRO));
}
