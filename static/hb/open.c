/* Opening an analysis: all parts, each on top of those before. */
#include "static/hb/answers.h"
#include "static/hb/gift.h"
#include "static/hb/lock.h"
#include "static/hb/memo.h"

static void count(hb *h)
{
    hb_statistics *s = &h->stats;
    s->origins = h->origins.len;
    for (uint32_t o = 1; o < h->origins.len; o++) {
        s->threads += h->origins.data[o].kind == HB_THREAD;
        s->events += h->origins.data[o].kind == HB_EVENT || h->origins.data[o].kind == HB_SIGNAL || h->origins.data[o].kind == HB_AT_EXIT;
        s->outside += h->origins.data[o].kind == HB_OUTSIDE;
    }
    s->objects = h->object_list.len;
    s->locks = h->locks->table.locks.len;
    s->locksets = h->locks->table.sets.len;
    hb_takings takings = {0};
    hb_lock_takings(h, &takings);
    s->lock_calls = takings.len;
    for (uint32_t i = 0; i < takings.len; i++)
        s->lock_calls_unknown += takings.data[i].lock == HB_NONE && takings.data[i].value == HB_NONE;
    vec_free(&takings);
}

hb *hb_open(const pta *p, const pta_program *program, const hb_options *options)
{
    hb *h = base_alloc_zero(1, sizeof *h);
    h->p = p;
    h->program = program;
    h->options = *options;
    hb_calls_open(h);
    hb_singles_open(h);
    hb_passings_open(h);
    hb_memo_begin(h);
    hb_answers_open(h);
    hb_words_open(h);
    hb_origins_open(h);
    hb_memory_open(h);
    hb_touches_open(h);
    hb_setups_open(h);
    hb_givens_open(h);
    hb_lives_open(h);
    hb_overlaps_find(h);
    hb_events_place(h);
    hb_semaphores_open(h);
    hb_locks_open(h, false);
    hb_gifts_open(h);
    hb_numbers_open(h);
    hb_channels_open(h);
    hb_tokens_open(h);
    hb_turns_open(h);
    hb_lasts_open(h);
    hb_gathers_open(h);
    hb_barriers_open(h);
    hb_letters_open(h);
    hb_rings_open(h);
    count(h);
    return h;
}

void hb_close(hb *h)
{
    if (!h) return;
    hb_passings_close(h);
    hb_rings_close(h);
    hb_letters_close(h);
    hb_barriers_close(h);
    hb_nests_close(h);
    hb_gathers_close(h);
    hb_lasts_close(h);
    hb_turns_close(h);
    hb_tokens_close(h);
    hb_waits_close(h);
    hb_doubts_close(h);
    hb_outs_close(h);
    map_free(&h->handed);
    vec_free(&h->held_by_variable);
    hb_numbers_close(h);
    hb_gifts_close(h);
    hb_optionals_close(h);
    hb_locks_close(h);
    hb_channels_close(h);
    hb_kin_close(h);
    hb_lives_close(h);
    hb_givens_close(h);
    hb_setups_close(h);
    hb_touches_close(h);
    hb_answers_close(h);
    hb_memory_close(h);
    hb_origins_close(h);
    hb_calls_close(h);
    free(h);
}

uint32_t hb_object_count(const hb *h)
{
    return h->object_list.len;
}

void hb_object_at(const hb *h, uint32_t object, uint32_t *site, uint32_t *context)
{
    *site = h->object_list.data[object].site;
    *context = h->object_list.data[object].context;
}

const hb_statistics *hb_stats(const hb *h)
{
    return &h->stats;
}

uint32_t hb_find_object(const hb *h, uint32_t site, uint32_t context)
{
    return map_get(&h->objects, (uint64_t)site << 32 | context);
}
