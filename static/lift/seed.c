/* The starts that the file itself tells. */
#include "static/lift/discover.h"

static bool is_cold_name(const char *name)
{
    const char *cold = strstr(name, ".cold");
    return cold && (cold[5] == 0 || cold[5] == '.');
}

static void set_part(finder *f, uint64_t addr)
{
    int64_t place = flow_place(f->space, addr);
    if (place >= 0) flow_set(f->space->parts, (uint64_t)place);
}

static void seed_symbols(finder *f)
{
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *s = &img->symbols[i];
        if (s->type != IMAGE_SYM_FUNC && s->type != IMAGE_SYM_IFUNC) continue;
        if (!f->space->symbols && !s->exported) continue;
        int64_t place = flow_place(f->space, s->addr);
        if (place < 0 || image_plt_at(img, s->addr)) continue;
        if (is_cold_name(s->name)) {
            flow_set(f->space->parts, (uint64_t)place);
            continue;
        }
        finder_add(f, s->addr, FOUND_SYMBOL);
        if (noreturn_name(s->name, true)) {
            flow_set(f->space->named_dead, (uint64_t)place);
            flow_set(f->space->dead, (uint64_t)place);
        }
    }
}

/* The frame description of PLT stubs is not one of a function. */
static bool is_plt_fde(const image *img, const image_fde *fde)
{
    uint32_t low = 0, high = img->plt_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (img->plts[mid].addr < fde->start)
            low = mid + 1;
        else
            high = mid;
    }
    return low < img->plt_count && img->plts[low].addr < fde->end;
}

/* Where a function's code begins when its frame description begins with the padding before it, as some assembler
 * functions' do. */
static uint64_t skip_padding(const flow_space *space, const image_fde *fde)
{
    const flow_region *r = flow_region_at(space, fde->start);
    uint64_t at = fde->start, end = r->addr + r->size < fde->end ? r->addr + r->size : fde->end;
    for (uint32_t skip; at < end && at % 16; at += skip) {
        skip = flow_padding(r->bytes + (at - r->addr), end - at);
        if (!skip) return fde->start;
    }
    return at < end ? at : fde->start;
}

static void seed_frames(finder *f)
{
    const image *img = f->space->img;
    for (uint32_t i = 0; i < img->pad_count; i++) { /* a function does not begin with a landing pad, or a nop and one */
        uint64_t pad = img->pads[i].pad;
        const image_fde *fde = image_fde_at(img, pad);
        uint8_t first = 0;
        if (!fde || pad - fde->start > 1) continue;
        if (pad == fde->start || (image_read(img, fde->start, &first, 1) && first == 0x90)) set_part(f, fde->start);
    }
    for (uint32_t i = 0; i < img->fde_count; i++) {
        const image_fde *fde = &img->fdes[i];
        int64_t place = flow_place(f->space, fde->start);
        if (place < 0 || fde->start >= fde->end || is_plt_fde(img, fde)) continue;
        const image_symbol *s = f->space->symbols ? image_symbol_covering(img, fde->start) : NULL;
        bool inside = s && s->addr != fde->start && (s->type == IMAGE_SYM_FUNC || s->type == IMAGE_SYM_IFUNC);
        if (fde->fragment || inside) flow_set(f->space->parts, (uint64_t)place);
        if (flow_bit(f->space->parts, (uint64_t)place)) continue;
        uint64_t entry = skip_padding(f->space, fde);
        finder_add(f, entry, FOUND_FDE);
        if (entry % 16) flow_set(f->space->doubtful, (uint64_t)place);
    }
}

static void seed_entry_points(finder *f)
{
    const image *img = f->space->img;
    if (img->entry && flow_place(f->space, img->entry) >= 0) finder_add(f, img->entry, FOUND_ENTRY);
    for (uint32_t i = 0; i < img->init_count; i++)
        if (flow_place(f->space, img->init[i]) >= 0) finder_add(f, img->init[i], FOUND_ENTRY);
}

void seed_starts(finder *f)
{
    seed_symbols(f);
    seed_frames(f);
    seed_entry_points(f);
}
