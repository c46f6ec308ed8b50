/* How sure it is that a thread comes to some code: what it does only against a test that it has made before (mode.c),
 * or against a number that it was called with (flag.c), is less sure. Found on first use, for threads only: main does
 * most of what a program can do, and is set up by itself. */
#include "static/hb/doubt.h"

#include <stdlib.h>

struct hb_doubts {
    uint64_t *asked;        /* origins; bits */
    map64 number_of;        /* origin and instance: number in blocks */
    VEC(uint64_t *) blocks; /* that it does not come to; bits */
};

static bool holds(const value_condition *c, int64_t n)
{
    enum { BELOW = 2, NOT_BELOW, BELOW_EQUAL = 6, ABOVE, LESS = 12, NOT_LESS, LESS_EQUAL, GREATER };
    switch (c->code) {
    case VALUE_EQUAL:
        return n == c->imm;
    case VALUE_NOT_EQUAL:
        return n != c->imm;
    case BELOW:
        return (uint64_t)n < (uint64_t)c->imm;
    case NOT_BELOW:
        return (uint64_t)n >= (uint64_t)c->imm;
    case BELOW_EQUAL:
        return (uint64_t)n <= (uint64_t)c->imm;
    case ABOVE:
        return (uint64_t)n > (uint64_t)c->imm;
    case LESS:
        return n < c->imm;
    case NOT_LESS:
        return n >= c->imm;
    case LESS_EQUAL:
        return n <= c->imm;
    case GREATER:
        return n > c->imm;
    default:
        return true;
    }
}

uint64_t hb_values_of(const value_condition *c)
{
    uint64_t values = 0;
    for (int64_t n = 0; n < HB_NUMBERS; n++)
        values |= (uint64_t)holds(c, n) << n;
    bool one = c->code == VALUE_EQUAL && c->imm >= 0 && c->imm < HB_NUMBERS;
    return one ? values : values | 1ull << HB_OTHERS;
}

bool hb_is_doubted(const hb *h, uint32_t origin, uint32_t instance, uint32_t block)
{
    uint32_t number = map_get(&h->doubts->number_of, (uint64_t)origin << 32 | instance);
    return number != MAP_NONE && hb_bit(h->doubts->blocks.data[number], block);
}

void hb_doubt_blocks(hb *h, uint32_t origin, uint32_t instance, const uint64_t *at)
{
    struct hb_doubts *d = h->doubts;
    const lift_func *f = hb_instance_code(h, instance);
    for (uint32_t b = 0; b < f->block_count; b++) {
        if (at[b] || f->ir->blocks[b].rpo == UINT32_MAX) continue;
        uint32_t *number = map_at(&d->number_of, (uint64_t)origin << 32 | instance);
        if (*number == MAP_NONE) {
            *number = d->blocks.len;
            vec_push(&d->blocks, base_alloc_zero(f->block_count / 64 + 1, sizeof(uint64_t)));
        }
        hb_set(d->blocks.data[*number], b);
    }
}

static bool skips(const hb *h, uint32_t origin, uint32_t edge)
{
    const pta_call_edge *e = &h->edges[edge];
    const lift_func *f = hb_instance_code(h, e->caller);
    return f && hb_is_doubted(h, origin, e->caller, hb_block_of(f, h->call_insn[e->call]));
}

static void ask(hb *h, uint32_t origin)
{
    const hb_origin *o = &h->origins.data[origin];
    uint32_t before = h->doubts->blocks.len;
    hb_set(h->doubts->asked, origin);
    if (o->kind != HB_THREAD || !hb_bit(o->self, o->instance)) return;
    hb_flags_find(h, origin);
    hb_modes_find(h, origin);
    if (h->doubts->blocks.len != before) hb_origin_skip(h, origin, skips);
}

hb_doubt hb_runs_how(hb *h, uint32_t origin, hb_point at)
{
    if (!h->doubts) {
        h->doubts = base_alloc_zero(1, sizeof *h->doubts);
        h->doubts->asked = base_alloc_zero(h->origins.len / 64 + 1, sizeof *h->doubts->asked);
    }
    if (!hb_bit(h->doubts->asked, origin)) ask(h, origin);
    hb_doubt doubt = hb_origin_doubt(h, origin, at.instance);
    const lift_func *f = doubt < HB_AGAINST ? hb_instance_code(h, at.instance) : NULL;
    return f && hb_is_doubted(h, origin, at.instance, hb_block_of(f, at.insn)) ? HB_AGAINST : doubt;
}

void hb_doubts_close(hb *h)
{
    if (!h->doubts) return;
    hb_modes_close(h);
    for (uint32_t i = 0; i < h->doubts->blocks.len; i++)
        free(h->doubts->blocks.data[i]);
    vec_free(&h->doubts->blocks);
    map_free(&h->doubts->number_of);
    free(h->doubts->asked);
    free(h->doubts);
}
