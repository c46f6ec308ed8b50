/* What was decided about each access: that it races, that it cannot and why, or nothing at all. The other side of the
 * warnings, for those who check that they are all (DESIGN, section 10).
 *
 * An access is an instruction that reads or writes, whoever runs it, so what is said of it is the least that holds in
 * all its instances, for all its places and against all its partners: detect_verdict is in that order. */
#include "static/detect/private.h"

#include <stdlib.h>

struct detect_decider {
    map64 known; /* function and instruction: number of the decision */
    VEC(detect_decision) decisions;
    detect_racings racings;
};

void detect_decide_open(detect *d)
{
    if (d->options.decide) d->decider = base_alloc_zero(1, sizeof *d->decider);
}

void detect_decide_close(detect *d)
{
    if (!d->decider) return;
    map_free(&d->decider->known);
    vec_free(&d->decider->decisions);
    vec_free(&d->decider->racings);
    free(d->decider);
}

static detect_decision *decision_of(detect *d, uint32_t func, uint32_t insn)
{
    detect_decider *own = d->decider;
    uint32_t *at = map_at(&own->known, (uint64_t)func << 32 | insn);
    if (*at == MAP_NONE) {
        *at = own->decisions.len;
        vec_push(&own->decisions, ((detect_decision){.func = func, .insn = insn}));
    }
    return &own->decisions.data[*at];
}

void detect_decide(detect *d, const hb_touch *t, detect_verdict verdict)
{
    if (!d->decider) return;
    detect_decision *own = decision_of(d, t->func, t->insn);
    if (t->flags & HB_LIBRARY) return; /* that it is known at all says enough: models make no claims */
    if (t->flags & IR_READ && own->of_read < verdict) own->of_read = (uint8_t)verdict;
    if (t->flags & IR_WRITE && own->of_write < verdict) own->of_write = (uint8_t)verdict;
}

void detect_decide_member(detect *d, const hb_touch *t, uint32_t warning)
{
    if (!d->decider) return;
    detect_decide(d, t, DETECT_RACING);
    vec_push(&d->decider->racings, ((detect_racing){t->func, t->insn, warning}));
}

void detect_decide_racing(detect *d, const detect_access accesses[2], uint32_t warning)
{
    for (unsigned i = 0; d->decider && i < 2; i++) {
        const hb_touch *t = &hb_touches(d->h, &(uint32_t){0})[accesses[i].touch];
        detect_decide_member(d, t, warning);
    }
}

/* Accesses that make no pairs are decided only if nobody else can make any with them. */
static void take_left_out(detect *d)
{
    uint32_t count;
    const hb_left_out *left_out = hb_left_outs(d->h, &count);
    for (uint32_t i = 0; i < count; i++) {
        const hb_left_out *l = &left_out[i];
        if (l->why == HB_LEFT_OUT_OWN)
            detect_decide(d, &(hb_touch){.func = l->func, .insn = l->insn, .flags = l->flags}, DETECT_UNSHARED);
        else
            decision_of(d, l->func, l->insn)->undecided = true;
    }
}

static int by_instruction(const void *a, const void *b)
{
    const detect_decision *x = a, *y = b;
    if (x->func != y->func) return x->func < y->func ? -1 : 1;
    return x->insn < y->insn ? -1 : x->insn > y->insn;
}

/* The numbers that warnings had when they were found become their places in the list; those of warnings that were
 * dropped go. */
static void renumber(detect *d)
{
    detect_racings *racings = &d->decider->racings;
    uint32_t most = 0, kept = 0;
    for (uint32_t i = 0; i < racings->len; i++)
        if (racings->data[i].warning >= most) most = racings->data[i].warning + 1;
    uint32_t *now = base_alloc((most + 1) * sizeof *now);
    memset(now, 0xff, (most + 1) * sizeof *now);
    for (uint32_t i = 0; i < d->warnings.len; i++)
        if (d->warnings.data[i].kind == DETECT_RACE && d->warnings.data[i].number < most)
            now[d->warnings.data[i].number] = i;
    for (uint32_t i = 0; i < racings->len; i++) {
        detect_racing r = racings->data[i];
        r.warning = now[r.warning];
        if (r.warning != UINT32_MAX) racings->data[kept++] = r;
    }
    racings->len = kept;
    free(now);
}

void detect_decide_finish(detect *d)
{
    detect_decider *own = d->decider;
    if (!own) return;
    take_left_out(d);
    renumber(d);
    if (own->decisions.len) qsort(own->decisions.data, own->decisions.len, sizeof *own->decisions.data, by_instruction);
}

const detect_decision *detect_decisions(const detect *d, uint32_t *count)
{
    *count = d->decider ? d->decider->decisions.len : 0;
    return *count ? d->decider->decisions.data : NULL;
}

const detect_racings *detect_racing_accesses(const detect *d)
{
    static const detect_racings none;
    return d->decider ? &d->decider->racings : &none;
}
