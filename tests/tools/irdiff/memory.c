/* Guest memory: regions of a memory file, mapped as they are needed. What a region holds at first depends on the
 * address and the seed alone, so that a read at a wrong address gives a wrong value. */
#include "irdiff.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    uint64_t addr;
    uint8_t bytes[16];
    uint8_t size;
} memory_old;

struct memory {
    uint64_t seed;
    int file;
    uint64_t file_size;
    uint32_t generation;
    VEC(memory_region) regions; /* by base */
    const memory_region *recent;
    VEC(memory_old) old;
    const image *img;
    uint64_t bias, module_base, module_end;
};

memory *memory_open(uint64_t seed)
{
    memory *mem = base_alloc_zero(1, sizeof *mem);
    mem->seed = seed;
    mem->file = memfd_create("irdiff", 0);
    if (mem->file < 0) base_oom(0);
    return mem;
}

static void memory_forget(memory *mem)
{
    for (uint32_t i = 0; i < mem->regions.len; i++)
        munmap(mem->regions.data[i].host, mem->regions.data[i].size);
    mem->regions.len = 0;
    mem->recent = NULL;
    mem->file_size = 0;
    mem->generation++;
    if (ftruncate(mem->file, 0) < 0) base_oom(0);
}

void memory_close(memory *mem)
{
    memory_forget(mem);
    close(mem->file);
    vec_free(&mem->regions);
    vec_free(&mem->old);
    free(mem);
}

int memory_file(const memory *mem)
{
    return mem->file;
}

uint32_t memory_generation(const memory *mem)
{
    return mem->generation;
}

uint32_t memory_regions(const memory *mem, const memory_region **all)
{
    *all = mem->regions.data;
    return mem->regions.len;
}

/* The word at an aligned address: pointers to the heap, small numbers, pairs of small numbers, anything. */
static uint64_t memory_word(const memory *mem, uint64_t addr)
{
    uint64_t h = random_mix(addr ^ mem->seed), r = random_mix(h);
    switch (h & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        return MEMORY_HEAP + (r % MEMORY_HEAP_SIZE & ~63ull);
    case 7:
    case 8:
    case 9:
    case 10:
        return r & 0xff;
    case 11:
    case 12:
        return r & 0xff000000ffull;
    case 13:
        return -(r & 0xff);
    default:
        return r;
    }
}

/* --- the module --------------------------------------------------------------------------------------------------- */

static void module_relocate(const memory *mem, const memory_region *region, const image_reloc *r)
{
    uint64_t at = r->addr + mem->bias, v;
    if (r->size != 8 || at < region->base || at > region->base + region->size - 8) return;
    switch ((image_reloc_kind)r->kind) {
    case IMAGE_REL_ADDR:
        v = r->target + mem->bias;
        break;
    case IMAGE_REL_SYMBOL:
    case IMAGE_REL_IFUNC:
        v = MEMORY_HEAP + (random_mix(at) % MEMORY_HEAP_SIZE & ~63ull);
        break;
    default:
        return;
    }
    memcpy(region->host + (at - region->base), &v, 8);
}

static void module_fill(memory *mem, const memory_region *region)
{
    const image *img = mem->img;
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        uint64_t at = s->addr + mem->bias;
        if ((s->flags & IMAGE_TLS) || !s->bytes || ((s->flags & IMAGE_W) && !(s->flags & IMAGE_RELRO))) continue;
        if (at < region->base || at - region->base > region->size || s->filled > region->size - (at - region->base))
            continue;
        memcpy(region->host + (at - region->base), s->bytes, s->filled);
    }
    for (uint32_t i = 0; i < img->reloc_count; i++)
        module_relocate(mem, region, &img->relocs[i]);
}

void memory_load(memory *mem, const image *img, uint64_t bias)
{
    memory_forget(mem);
    mem->img = img;
    mem->bias = bias;
    mem->module_base = UINT64_MAX;
    mem->module_end = 0;
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        if (s->flags & IMAGE_TLS) continue;
        if (s->addr + bias < mem->module_base) mem->module_base = s->addr + bias;
        if (s->addr + s->size + bias > mem->module_end) mem->module_end = s->addr + s->size + bias;
    }
    mem->module_base &= ~(uint64_t)(MEMORY_CHUNK - 1);
    mem->module_end = (mem->module_end + MEMORY_CHUNK - 1) & ~(uint64_t)(MEMORY_CHUNK - 1);
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

static const memory_region *memory_find(memory *mem, uint64_t addr)
{
    if (mem->recent && addr - mem->recent->base < mem->recent->size) return mem->recent;
    uint32_t low = 0, high = mem->regions.len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (mem->regions.data[mid].base <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || addr - mem->regions.data[low - 1].base >= mem->regions.data[low - 1].size) return NULL;
    return mem->recent = &mem->regions.data[low - 1];
}

static const memory_region *memory_add(memory *mem, uint64_t addr)
{
    memory_region r = {.base = addr & ~(uint64_t)(MEMORY_CHUNK - 1), .size = MEMORY_CHUNK, .offset = mem->file_size};
    bool module = mem->img && addr >= mem->module_base && addr < mem->module_end;
    if (module) {
        r.base = mem->module_base;
        r.size = mem->module_end - mem->module_base;
    } else if (addr - MEMORY_HEAP < MEMORY_HEAP_SIZE) {
        r.base = MEMORY_HEAP;
        r.size = MEMORY_HEAP_SIZE;
    } else if (addr - MEMORY_STACK < MEMORY_STACK_SIZE) {
        r.base = MEMORY_STACK;
        r.size = MEMORY_STACK_SIZE;
    }
    mem->file_size += r.size;
    if (ftruncate(mem->file, (off_t)mem->file_size) < 0) base_oom(r.size);
    r.host = mmap(NULL, r.size, PROT_READ | PROT_WRITE, MAP_SHARED, mem->file, (off_t)r.offset);
    if (r.host == MAP_FAILED) base_oom(r.size);
    for (uint64_t i = 0; i < r.size; i += 8) {
        uint64_t w = memory_word(mem, r.base + i);
        memcpy(r.host + i, &w, 8);
    }
    if (module) module_fill(mem, &r);
    uint32_t at = mem->regions.len;
    vec_push(&mem->regions, r);
    for (; at > 0 && mem->regions.data[at - 1].base > r.base; at--)
        mem->regions.data[at] = mem->regions.data[at - 1];
    mem->regions.data[at] = r;
    return mem->recent = &mem->regions.data[at];
}

bool memory_map(memory *mem, uint64_t addr, uint64_t size)
{
    if (addr < MEMORY_LOW || addr >= MEMORY_HIGH || size > MEMORY_HIGH - addr) return false;
    for (uint64_t at = addr; at < addr + size;) {
        const memory_region *r = memory_find(mem, at);
        if (!r) r = memory_add(mem, at);
        at = r->base + r->size;
    }
    return true;
}

bool memory_trim(memory *mem)
{
    if (mem->regions.len <= MEMORY_MAX_REGIONS) return false;
    memory_forget(mem);
    return true;
}

typedef enum { COPY_OUT, COPY_IN } copy_direction;

static bool memory_copy(memory *mem, uint64_t addr, uint8_t *bytes, uint64_t size, copy_direction way)
{
    if (!memory_map(mem, addr, size)) return false;
    while (size > 0) {
        const memory_region *r = memory_find(mem, addr);
        uint64_t part = r->base + r->size - addr;
        if (part > size) part = size;
        uint8_t *host = r->host + (addr - r->base);
        if (way == COPY_OUT)
            memcpy(bytes, host, part);
        else
            memcpy(host, bytes, part);
        addr += part, bytes += part, size -= part;
    }
    return true;
}

bool memory_read(memory *mem, uint64_t addr, void *to, uint64_t size)
{
    return memory_copy(mem, addr, to, size, COPY_OUT);
}

bool memory_write(memory *mem, uint64_t addr, const void *from, uint64_t size)
{
    return memory_save(mem, addr, size) && memory_copy(mem, addr, (uint8_t *)(uintptr_t)from, size, COPY_IN);
}

bool memory_save(memory *mem, uint64_t addr, uint64_t size)
{
    while (size > 0) {
        memory_old old = {.addr = addr, .size = size < sizeof old.bytes ? (uint8_t)size : sizeof old.bytes};
        if (!memory_copy(mem, addr, old.bytes, old.size, COPY_OUT)) return false;
        vec_push(&mem->old, old);
        addr += old.size;
        size -= old.size;
    }
    return true;
}

uint32_t memory_mark(const memory *mem)
{
    return mem->old.len;
}

void memory_undo(memory *mem, uint32_t mark)
{
    while (mem->old.len > mark) {
        memory_old *old = &mem->old.data[--mem->old.len];
        memory_copy(mem, old->addr, old->bytes, old->size, COPY_IN);
    }
}
