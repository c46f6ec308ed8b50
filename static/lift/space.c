/* What is known about a module's code while its functions are being found: one bit per code byte and fact. */
#include "static/lift/flow.h"

void flow_space_open(flow_space *space, const image *img, const lift_options *options)
{
    *space = (flow_space){.img = img,
                          .absolute = img->kind == IMAGE_EXEC || img->kind == IMAGE_OBJECT,
                          .symbols = !options->ignore_symbols,
                          .options = options,
                          .low = UINT64_MAX};
    space->regions = base_alloc_zero(img->section_count, sizeof *space->regions);
    space->data = base_alloc_zero(img->section_count, sizeof *space->data);
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        if (s->flags & IMAGE_TLS) continue;
        if (s->addr < space->low) space->low = s->addr;
        if (s->addr + s->size > space->high) space->high = s->addr + s->size;
        if (!(s->flags & IMAGE_X) || !s->bytes || !s->filled) continue;
        space->regions[space->region_count++] =
            (flow_region){.addr = s->addr, .size = s->filled, .bytes = s->bytes, .first = space->code_size};
        space->code_size += s->filled;
    }
    space->data_size = space->code_size;
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        if ((s->flags & (IMAGE_X | IMAGE_TLS)) || !s->bytes || !s->filled) continue;
        space->data[space->data_count++] =
            (flow_region){.addr = s->addr, .size = s->filled, .bytes = s->bytes, .first = space->data_size};
        space->data_size += s->filled;
    }
    space->refs = base_alloc_zero(space->data_size / 64 + 1, sizeof(uint64_t));
    size_t words = space->code_size / 64 + 1;
    space->starts = base_alloc_zero(words, sizeof(uint64_t));
    space->parts = base_alloc_zero(words, sizeof(uint64_t));
    space->doubtful = base_alloc_zero(words, sizeof(uint64_t));
    space->dead = base_alloc_zero(words, sizeof(uint64_t));
    space->named_dead = base_alloc_zero(words, sizeof(uint64_t));
    space->plt_dead = base_alloc_zero(img->plt_count, sizeof(bool));
    for (uint32_t i = 0; i < img->plt_count; i++)
        space->plt_dead[i] = noreturn_outside(space, img->plts[i].name);
}

void flow_space_close(flow_space *space)
{
    free(space->regions);
    free(space->data);
    free(space->refs);
    free(space->starts);
    free(space->parts);
    free(space->doubtful);
    free(space->dead);
    free(space->named_dead);
    free(space->plt_dead);
}

static const flow_region *find(const flow_region *regions, uint32_t count, uint64_t addr)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (regions[mid].addr <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low) return NULL;
    const flow_region *r = &regions[low - 1];
    return addr - r->addr < r->size ? r : NULL;
}

const flow_region *flow_region_at(const flow_space *space, uint64_t addr)
{
    return find(space->regions, space->region_count, addr);
}

int64_t flow_place(const flow_space *space, uint64_t addr)
{
    const flow_region *r = flow_region_at(space, addr);
    return r ? (int64_t)(r->first + (addr - r->addr)) : FLOW_NOWHERE;
}

int64_t flow_data_place(const flow_space *space, uint64_t addr)
{
    const flow_region *r = find(space->data, space->data_count, addr);
    return r ? (int64_t)(r->first + (addr - r->addr)) : flow_place(space, addr);
}

bool flow_has(const flow_space *space, const uint64_t *bits, uint64_t addr)
{
    int64_t place = flow_place(space, addr);
    return place >= 0 && flow_bit(bits, (uint64_t)place);
}

uint64_t flow_next_bit(const flow_space *space, const uint64_t *bits, uint64_t addr)
{
    const flow_region *r = flow_region_at(space, addr);
    if (!r) return addr;
    uint64_t place = r->first + (addr - r->addr), end = r->first + r->size;
    uint64_t word = bits[place / 64] >> place % 64 << place % 64;
    for (uint64_t w = place / 64;; word = bits[w]) {
        if (word) {
            uint64_t found = w * 64 + (uint64_t)__builtin_ctzll(word);
            return r->addr + ((found < end ? found : end) - r->first);
        }
        if (++w * 64 >= end) return r->addr + r->size;
    }
}

bool flow_padding_before(const flow_region *r, uint64_t addr)
{
    if (addr == r->addr) return true;
    uint8_t before = r->bytes[addr - r->addr - 1];
    return before == 0x90 || before == 0xcc || before == 0x00 || before == 0xc3;
}
