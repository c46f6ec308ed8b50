/* How far from its begin an origin runs an instance: by the longest chain of calls, if there is one. What is found of
 * an instance from what its callers are (number.c) is the same then, whichever of them is asked about first. */
#include "static/hb/level.h"

typedef struct {
    uint32_t instance, next; /* next: of its callers */
} frame;

typedef struct {
    const hb *h;
    uint32_t origin, count; /* found */
    uint32_t *number, *low; /* Tarjan's; 0: not found yet */
    bool *open;             /* on `path` */
    hb_numbers path;
    VEC(frame) work;
    uint16_t *levels;
} search;

/* The next caller that is not a thread's begin; HB_NONE: no more. */
static uint32_t next_caller(const search *s, frame *f)
{
    const hb *h = s->h;
    const hb_origin *o = &h->origins.data[s->origin];
    while (f->instance != o->instance && f->next < h->in_first[f->instance + 1]) {
        uint32_t edge = h->in_edge[f->next++];
        if (!h->spawns[edge] && hb_bit(o->self, h->edges[edge].caller)) return h->edges[edge].caller;
    }
    return HB_NONE;
}

static void enter(search *s, uint32_t instance)
{
    s->number[instance] = s->low[instance] = ++s->count;
    s->open[instance] = true;
    vec_push(&s->path, instance);
    vec_push(&s->work, ((frame){instance, s->h->in_first[instance]}));
}

/* One more than its callers, all of which are known; those in a cycle have none. */
static uint16_t level_of(const search *s, uint32_t instance)
{
    uint16_t level = 1;
    frame f = {instance, s->h->in_first[instance]};
    for (uint32_t caller; (caller = next_caller(s, &f)) != HB_NONE;) {
        uint16_t its = s->levels[caller];
        if (caller == instance || its == HB_MOST_LEVELS) return 0;
        if (level <= its) level = (uint16_t)(its + 1);
    }
    return level;
}

/* All callers of an instance were gone to. */
static void leave(search *s, uint32_t instance)
{
    if (s->low[instance] != s->number[instance]) return;
    bool alone = s->path.data[s->path.len - 1] == instance;
    for (uint32_t member = HB_NONE; member != instance;) {
        member = s->path.data[--s->path.len];
        s->open[member] = false;
        s->levels[member] = alone ? level_of(s, member) : 0;
    }
}

static void lower(search *s, uint32_t instance, uint32_t to)
{
    if (to < s->low[instance]) s->low[instance] = to;
}

uint16_t *hb_levels(const hb *h, uint32_t origin)
{
    search s = {.h = h, .origin = origin, .levels = base_alloc_zero(h->instance_count, sizeof *s.levels)};
    s.number = base_alloc_zero(h->instance_count, sizeof *s.number);
    s.low = base_alloc_zero(h->instance_count, sizeof *s.low);
    s.open = base_alloc_zero(h->instance_count, sizeof *s.open);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_bit(h->origins.data[origin].self, i) || s.number[i]) continue;
        enter(&s, i);
        while (s.work.len) {
            frame *top = &s.work.data[s.work.len - 1];
            uint32_t at = top->instance, caller = next_caller(&s, top);
            if (caller == HB_NONE) {
                leave(&s, at);
                s.work.len--;
                if (s.work.len) lower(&s, s.work.data[s.work.len - 1].instance, s.low[at]);
            } else if (!s.number[caller]) {
                enter(&s, caller);
            } else if (s.open[caller]) {
                lower(&s, at, s.number[caller]);
            }
        }
    }
    free(s.number);
    free(s.low);
    free(s.open);
    vec_free(&s.path);
    vec_free(&s.work);
    return s.levels;
}
