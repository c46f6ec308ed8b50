/* Accesses of what is declared as atomic: in machine code those that neither exchange nor add are plain moves, and only the type of the
 * variable, or of the member that a pointer leads to, tells. Types are followed from declarations over pointers (static/pointer/typed.c),
 * which needs the statements of the module, but not what they point to; and in optimised code the debug information says which pointer
 * is in which register. */
#include "static/place/place.h"

#include "static/pointer/pointer.h"

#include <stdlib.h>

enum { DEPTH = 16 }; /* of members in members */

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool has_atomic(const image_type *type, unsigned depth)
{
    if (!type || depth > DEPTH) return false;
    if (type->is_atomic) return true;
    if (type->kind == IMAGE_TYPE_ARRAY) return has_atomic(type->target, depth + 1);
    if (type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_UNION) return false;
    for (uint32_t i = 0; i < type->member_count; i++)
        if (has_atomic(type->members[i].type, depth + 1)) return true;
    return false;
}

static bool is_wanted(const void *with, const image_type *type)
{
    (void)with;
    return has_atomic(type, 0);
}

/* The bytes are of one scalar that is atomic: of the type, or of one of several in a row. */
static bool is_atomic_at(const image_type *type, int64_t at, uint32_t width)
{
    if (!type || !type->size || at < 0 || !width) return false;
    const uint64_t inside = (uint64_t)at % type->size;
    const bool has_parts = type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION || type->kind == IMAGE_TYPE_ARRAY;
    const image_type *t = has_parts ? image_type_at(type, inside, width) : type;
    return t && t->is_atomic && width <= t->size;
}

static void add_typed(lift_module *module, int jobs, place_declared *out)
{
    pta_program *program = pta_program_open(&module, 1, jobs);
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        uint32_t count;
        const pta_access *accesses = pta_accesses(program, f, &count);
        for (uint32_t a = 0; a < count; a++)
            if (is_atomic_at(accesses[a].type, accesses[a].at, accesses[a].width))
                vec_push(&out->atomics, program->funcs.data[f].lift->insns[accesses[a].insn].addr);
    }
    pta_program_close(program);
    if (out->atomics.len) qsort(out->atomics.data, out->atomics.len, sizeof *out->atomics.data, by_number);
}

void place_declared_open(lift_module *module, int jobs, place_declared *out)
{
    memset(out, 0, sizeof *out);
    if (!image_has_atomics(module->img)) return;
    add_typed(module, jobs, out);
    out->held_count = image_held_pointers(module->img, is_wanted, NULL, &out->held);
    for (uint32_t i = 0; i < out->held_count; i++)
        if (out->held[i].end - out->held[i].start > out->longest) out->longest = out->held[i].end - out->held[i].start;
}

void place_declared_close(place_declared *d)
{
    vec_free(&d->atomics);
    free(d->held);
}

static uint32_t first_behind(const place_declared *d, uint64_t addr)
{
    uint32_t low = 0, high = d->held_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (d->held[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The register that it goes through has a pointer to something that is atomic there. */
static bool is_held_atomic(const place_declared *d, uint64_t addr, const plan_action *a)
{
    static const uint8_t numbers[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}; /* DWARF's */
    if (a->base >= sizeof numbers || a->segment != PLAN_SEGMENT_NONE || a->count != 1) return false;
    for (uint32_t i = first_behind(d, addr); i-- > 0 && addr - d->held[i].start < d->longest;) {
        const image_held *h = &d->held[i];
        const int64_t at = a->disp - h->plus;
        if (addr >= h->end || h->reg != numbers[a->base]) continue;
        if (a->index != PLAN_NOTHING) { /* one of an array */
            if (h->type->is_atomic && a->scale == h->type->size && a->size == h->type->size) return true;
        } else if (at >= 0 && (uint64_t)at + a->size <= h->type->size && is_atomic_at(h->type, at, a->size)) {
            return true;
        }
    }
    return false;
}

bool place_is_atomic(const place_declared *d, uint64_t addr, const plan_action *a)
{
    const bool typed = d->atomics.len && bsearch(&addr, d->atomics.data, d->atomics.len, sizeof addr, by_number);
    return typed || is_held_atomic(d, addr, a);
}
