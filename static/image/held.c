/* Pointers in registers. In optimised code a variable has no place in memory: a list says in which register it is, from where to
 * where. With it, `mov 8(%rdi), %eax` in a function that was given a `void *` is known to be of a member. */
#include "static/image/index.h"

typedef struct {
    debug_index *index;
    image_wanted *wanted;
    const void *with;
    VEC(image_held) found;
} search;

/* A value that is a register, or a register and a number. */
static bool is_in_register(const Dwarf_Op *ops, size_t count, unsigned *reg, int64_t *plus)
{
    *plus = 0;
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg15) return *reg = ops[0].atom - DW_OP_reg0, true;
    if (count != 2 || ops[0].atom < DW_OP_breg0 || ops[0].atom > DW_OP_breg15 || ops[1].atom != DW_OP_stack_value) return false;
    *reg = ops[0].atom - DW_OP_breg0;
    *plus = (int64_t)ops[0].number;
    return *plus > INT32_MIN && *plus < INT32_MAX;
}

static void add_held(search *s, image_held held, const range_list *scope)
{
    if (held.start >= held.end) return;
    if (held.end != UINT64_MAX) {
        vec_push(&s->found, held);
        return;
    }
    for (uint32_t i = 0; i < scope->len; i++) { /* all of what it is declared in */
        held.start = scope->data[i].start;
        held.end = scope->data[i].end;
        vec_push(&s->found, held);
    }
}

static void add_variable(search *s, Dwarf_Die *die, const range_list *scope)
{
    image_dwarf *dwarf = s->index->dwarf;
    Dwarf_Attribute location;
    Dwarf_Addr base, start, end;
    Dwarf_Op *ops;
    size_t count;
    if (!die_own_attribute(die, DW_AT_location, &location)) return;
    const image_type *type = type_of(s->index, die);
    type_finish(s->index);
    if (!type || type->kind != IMAGE_TYPE_POINTER || !type->target || !s->wanted(s->with, type->target)) return;
    for (ptrdiff_t at = 0; dwarf->steps && (at = dwarf_getlocations(&location, at, &base, &start, &end, &ops, &count)) > 0;) {
        image_held held = {.start = start, .end = end, .type = type->target};
        unsigned reg;
        dwarf->steps--;
        if (!is_in_register(ops, count, &reg, &held.plus)) continue;
        held.reg = (uint8_t)reg;
        add_held(s, held, scope);
    }
}

static void walk(search *s, Dwarf_Die *parent, const range_list *scope, unsigned depth);

static void walk_scope(search *s, Dwarf_Die *die, const range_list *around, unsigned depth)
{
    range_list own = {0};
    die_ranges(s->index->dwarf, die, 0, &own);
    walk(s, die, own.len ? &own : around, depth);
    vec_free(&own);
}

static void walk(search *s, Dwarf_Die *parent, const range_list *scope, unsigned depth)
{
    Dwarf_Die die;
    if (depth > MAX_SCOPE_DEPTH) return;
    for (bool more = die_child(s->index->dwarf, parent, &die); more; more = die_next(s->index->dwarf, &die)) {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter: add_variable(s, &die, scope); break;
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_namespace: walk_scope(s, &die, scope, depth + 1); break;
        default: break;
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const image_held *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->reg != y->reg) return x->reg < y->reg ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

uint32_t image_held_pointers(const image *img, image_wanted *wanted, const void *with, image_held **out)
{
    *out = NULL;
    if (!img->has_debug) return 0;
    pthread_mutex_lock(&img->private->lock);
    search s = {.index = index_get(img), .wanted = wanted, .with = with};
    const unit_list *units = &s.index->dwarf->units;
    const range_list nowhere = {0};
    for (uint32_t i = 0; i < units->len; i++)
        walk(&s, &units->data[i].die, &nowhere, 0);
    pthread_mutex_unlock(&img->private->lock);
    if (s.found.len) qsort(s.found.data, s.found.len, sizeof *s.found.data, by_start);
    *out = s.found.data;
    return s.found.len;
}
