/* Turns: one token goes round, and whoever has it may work. A semaphore that begins with 1 is the simple case; two channels that
 * two threads play ball with are another (split binary semaphores: Andrews, Concurrent Programming, 4.2; the invariant is Dijkstra's).
 *
 * A set of channels has one token when they begin with one together, or with none while main, which makes the threads, acts as
 * its owner; and when every post is by somebody who has taken something out of the set since its own last post (main: since the
 * start). Then channels and owners together never have more than one. Points that can only be reached with the token in hand are
 * mutually exclusive, and what hands the token on orders them. Requires channels that count (channel.c).
 *
 * A thread that posts before it has taken anything was born with the token: whoever creates one must have it then, and has it no
 * more behind that (`create; sem_wait; create; sem_wait`). A creation that fails loses the token, which adds none. */
#include "static/hb/channel.h"

enum { MOST_CHANNELS = 12 };

typedef struct {
    uint32_t channels[2], count;
    hb_region *without; /* per origin: what may run without the token */
    bool *takes;        /* per origin: it may have the token at all */
} turn;

struct hb_turns {
    VEC(turn) all;
};

typedef struct {
    const hb_channel *of[2];
    uint32_t count;
} channel_set;

static bool cuts(const hb_walk *w, uint32_t instance, const hb_call *call)
{
    const channel_set *s = w->with;
    for (uint32_t c = 0; c < s->count; c++)
        for (uint32_t i = 0; i < s->of[c]->waits.len; i++)
            if (s->of[c]->waits.data[i].instance == instance && s->of[c]->waits.data[i].insn == call->insn) return true;
    return false;
}

static bool closes(const hb_walk *w, uint32_t instance, uint32_t from, uint32_t edge)
{
    const channel_set *s = w->with;
    for (uint32_t c = 0; c < s->count; c++)
        if (hb_edges_have(&s->of[c]->edges, instance, from, edge)) return true;
    return false;
}

/* What an origin may run without the token. False: it may post without it, or create one of those that are born with it. */
static bool walk_without(hb *h, const channel_set *s, uint32_t origin, const bool *born, hb_region *out, bool *takes)
{
    bool owns = born[origin];
    const hb_origin *o = &h->origins.data[origin];
    hb_points starts = {0};
    hb_numbers cutters = {0};
    bool right = true;
    *takes = owns;
    if (!owns) vec_push(&starts, (hb_point){o->instance, HB_NONE});
    for (uint32_t c = 0; c < s->count; c++) {
        for (uint32_t i = 0; i < s->of[c]->posts.len; i++)
            if (hb_bit(o->self, s->of[c]->posts.data[i].instance)) vec_push(&starts, s->of[c]->posts.data[i]);
        for (uint32_t i = 0; i < s->of[c]->cutters.len; i++) {
            *takes |= hb_bit(o->self, s->of[c]->cutters.data[i]);
            vec_push(&cutters, s->of[c]->cutters.data[i]);
        }
    }
    for (uint32_t k = 1; k < h->origins.len; k++)
        for (uint32_t i = 0; born[k] && i < h->origins.data[k].sites.len; i++)
            if (hb_bit(o->self, h->origins.data[k].sites.data[i].instance)) vec_push(&starts, h->origins.data[k].sites.data[i]);
    hb_walk walk = {.cuts = cuts, .closes = closes, .with = s, .cutters = cutters.data, .cutter_count = cutters.len, .origin = origin};
    hb_region_walk(h, &walk, starts.data, starts.len, out);
    for (uint32_t i = owns ? 0 : 1; i < starts.len && right; i++)
        right = !hb_region_has(out, starts.data[i]) && o->kind <= HB_THREAD;
    vec_free(&starts);
    vec_free(&cutters);
    return right;
}

static void free_turn(const hb *h, turn *t)
{
    for (uint32_t o = 0; o < h->origins.len; o++)
        if (t->without[o].whole) hb_region_free(&t->without[o]);
    free(t->without);
    free(t->takes);
}

/* A thread that posts, but not only what it has taken before, and of which each creation makes one. */
static bool is_born(hb *h, const channel_set *s, uint32_t origin, const bool *born)
{
    const hb_origin *o = &h->origins.data[origin];
    hb_region without = {0};
    bool takes;
    if (o->kind != HB_THREAD || !o->by || o->by->kind != SYNC_CREATE || o->looped || !o->sites.len) return false;
    bool right = walk_without(h, s, origin, born, &without, &takes);
    hb_region_free(&without);
    return !right;
}

static void try_channels(hb *h, uint32_t a, uint32_t b)
{
    const hb_channel_list *all = hb_channels(h);
    turn t = {.channels = {a, b}, .count = a == b ? 1 : 2};
    channel_set s = {.of = {&all->data[a], &all->data[b]}, .count = t.count};
    int64_t first = 0;
    bool main_posts = false;
    for (uint32_t c = 0; c < s.count; c++) {
        first += s.of[c]->first;
        for (uint32_t i = 0; i < s.of[c]->posts.len; i++)
            main_posts |= hb_bit(h->origins.data[0].self, s.of[c]->posts.data[i].instance);
    }
    if (first > 1) return;
    bool *born = base_alloc_zero(h->origins.len, sizeof *born), any = false; /* with the token; main: as its owner */
    for (uint32_t o = 1; o < h->origins.len && !first; o++)
        any |= born[o] = is_born(h, &s, o, born);
    if (!first && !main_posts && !any) {
        free(born);
        return;
    }
    born[0] = !first;
    t.without = base_alloc_zero(h->origins.len, sizeof *t.without);
    t.takes = base_alloc_zero(h->origins.len, sizeof *t.takes);
    for (uint32_t o = 0; o < h->origins.len; o++)
        if (!walk_without(h, &s, o, born, &t.without[o], &t.takes[o])) {
            free_turn(h, &t);
            free(born);
            return;
        }
    free(born);
    vec_push(&h->turns->all, t);
}

void hb_turns_open(hb *h)
{
    const hb_channel_list *all = hb_channels(h);
    hb_numbers usable = {0};
    h->turns = base_alloc_zero(1, sizeof *h->turns);
    for (uint32_t i = 0; i < all->len; i++) {
        const hb_channel *c = &all->data[i];
        if (c->counted && c->first >= 0 && c->first <= 1 && c->posts.len && c->cutters.len) vec_push(&usable, i);
    }
    for (uint32_t i = 0; i < usable.len && usable.len <= MOST_CHANNELS; i++)
        for (uint32_t k = i; k < usable.len; k++)
            try_channels(h, usable.data[i], usable.data[k]);
    vec_free(&usable);
}

void hb_turns_close(hb *h)
{
    for (uint32_t i = 0; h->turns && i < h->turns->all.len; i++)
        free_turn(h, &h->turns->all.data[i]);
    if (h->turns) vec_free(&h->turns->all);
    free(h->turns);
}

bool hb_turns_order(hb *h, uint32_t x, hb_point a, uint32_t y, hb_point b)
{
    for (uint32_t i = 0; i < h->turns->all.len; i++) {
        const turn *t = &h->turns->all.data[i];
        if (t->takes[x] && t->takes[y] && !hb_region_has(&t->without[x], a) && !hb_region_has(&t->without[y], b)) return true;
    }
    return false;
}
