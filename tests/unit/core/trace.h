/* Random traces of valid programs, run by the core and by the oracle side by side.
 *
 * A trace is a list of events with operands drawn at random; an event that is not possible when its turn comes (an
 * unlock of what is not held, an access by a thread that waits) is skipped. So any part of a trace is a trace, and a
 * failing one can be made small by leaving events out (trace_shrink).
 *
 * The memory is 48 pages in three chunks. Accesses begin and end at fixed cuts: every byte at two hot places, one of
 * them across a border of pages, and three cuts in every page. What lies between two cuts is one place for the oracle.
 *
 * After each access: a place that has not raced before races for the core, on all of its bytes, if and only if it races
 * for the oracle, and the earlier side that the core names is an access of that kind by that thread to these bytes
 * which really is not ordered. After a reset the oracle forgets all accesses. */
#ifndef RACE_TEST_TRACE_H
#define RACE_TEST_TRACE_H

#include "tests/unit/core/trace_events.h"

static inline uint32_t trace_random(trace *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (uint32_t)(t->random >> 20);
}

static inline void trace_generate(trace *t, uint64_t seed)
{
    t->random = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < 4; i++)
        trace_random(t);
    t->max_threads = trace_random(t) % 4 ? 2 + trace_random(t) % 6 : ORACLE_THREADS;
    t->limits = (ft_limits){0};
    if (trace_random(t) % 2) t->limits.clock = 4 + trace_random(t) % 16;
    if (trace_random(t) % 3 == 0) t->limits.slots = 3 + trace_random(t) % 10;
    t->has_ranges = trace_random(t) % 2;
    if (t->has_ranges && trace_random(t) % 3 == 0) t->limits.shadow_bytes = TRACE_LIMITED_PAGES * TRACE_PAGE * 4;
    t->has_discard = trace_random(t) % 2;
    t->sites = trace_random(t) % 2 ? TRACE_EVENTS : 1 + trace_random(t) % 4;
    /* sometimes across the border of two regions of the directory, with other borders of chunks */
    t->base = trace_random(t) % 4 ? 0x7f0000000000 : ((uint64_t)7 << FT_REGION_BITS) - 24 * TRACE_PAGE;
    unsigned all = 0;
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        all += event_table[i].weight;
    t->event_count = TRACE_EVENTS;
    for (unsigned i = 0; i < TRACE_EVENTS; i++) {
        unsigned kind = 0, at = trace_random(t) % all;
        while (at >= event_table[kind].weight)
            at -= event_table[kind++].weight;
        t->events[i] = (trace_event){kind, trace_random(t), trace_random(t), trace_random(t), trace_random(t)};
    }
}

/* False: core and oracle differ; t->failure says how. */
static inline bool trace_run(trace *t)
{
    memset(&t->core, 0, offsetof(trace, oracle) - offsetof(trace, core));
    memset(t->executed, 0, sizeof t->executed);
    t->failure[0] = 0;
    ft_host callbacks = test_callbacks(&t->host);
    if (!t->has_discard) callbacks.discard = NULL;
    t->core = test_core_with(&t->host, &callbacks);
    ft_set_limits(t->core, &t->limits);
    oracle_start(&t->oracle);
    t->threads[0] = (trace_thread){.alive = true, .ft = ft_first_thread(t->core)};
    t->live = 1;
    for (unsigned i = 0; i < t->event_count && !t->failure[0]; i++) {
        t->executed[i] = do_event(t, &t->events[i]);
        t->totals.executed[t->events[i].kind] += t->executed[i];
        if (was_reset(t)) forget_all(t);
    }
    ft_stats now;
    ft_statistics(t->core, &now);
    if (!t->failure[0] && (now.dropped || now.threads_unchecked)) fail(t, "the core lost something", 0, 0, 0);
    const char *wrong = audit_core(t->core, t->base, TRACE_PAGES * TRACE_PAGE);
    if (!t->failure[0] && wrong) fail(t, wrong, 0, 0, 0);
    const uint64_t *from = (const uint64_t *)&now;
    uint64_t *to = (uint64_t *)&t->totals.core;
    for (size_t i = 0; i < sizeof now / sizeof *from; i++)
        to[i] += from[i];
    test_core_free(&t->host);
    return !t->failure[0];
}

/* Leaves out events as long as the trace still fails. */
static inline void trace_shrink(trace *t)
{
    static trace_event kept[TRACE_EVENTS];
    for (unsigned part = t->event_count / 2; part; part = part == 1 ? 0 : part / 2) {
        for (unsigned at = 0; at + part <= t->event_count;) {
            unsigned count = t->event_count;
            memcpy(kept, t->events, sizeof kept);
            memmove(&t->events[at], &t->events[at + part], (count - at - part) * sizeof *t->events);
            t->event_count = count - part;
            if (!trace_run(t)) continue;
            memcpy(t->events, kept, sizeof kept);
            t->event_count = count;
            at += part;
        }
    }
    trace_run(t);
}

static inline void trace_print(const trace *t)
{
    printf("limits: clock %u, slots %u, memory %llu; at 0x%llx; %s discard\n", t->limits.clock, t->limits.slots,
           (unsigned long long)t->limits.shadow_bytes, (unsigned long long)t->base,
           t->has_discard ? "with" : "without");
    unsigned access = 0;
    for (unsigned i = 0; i < t->event_count; i++) {
        const trace_event *e = &t->events[i];
        if (!t->executed[i]) continue;
        printf("  %-26s %u %u %u %u", event_table[e->kind].name, e->a, e->b, e->c, e->d);
        bool is_access = (e->kind >= EVENT_READ && e->kind <= EVENT_WRITE_STRIDED) || e->kind == EVENT_FREE;
        if (is_access && access < t->access_count) {
            const trace_access *a = &t->accesses[access++];
            printf("   thread %u, 0x%llx+%llu, %llu times every %lld", a->thread, (unsigned long long)a->bytes.addr,
                   (unsigned long long)a->bytes.size, (unsigned long long)a->bytes.count, (long long)a->bytes.stride);
        }
        printf("\n");
    }
    printf("%s\n", t->failure);
}

static inline void trace_print_totals(const trace_totals *all, uint64_t traces)
{
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"traces", traces},
        {"places compared", all->places},
        {"first races on a place", all->races},
        {"most threads at once", all->most_threads},
        {"slots reused", all->core.slots_reused},
        {"slots changed (a clock ran out)", all->core.slots_changed},
        {"resets: clocks", all->core.resets_clocks},
        {"resets: slots", all->core.resets_slots},
        {"resets: memory", all->core.resets_memory},
        {"blocks refined", all->core.refined},
        {"blocks made compact", all->core.compacted},
        {"cells split", all->core.splits},
        {"cells merged", all->core.merges},
        {"read vectors", all->core.vectors},
        {"synchronisation objects", all->core.objects},
    };
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        printf("%-34s %14llu\n", event_table[i].name, (unsigned long long)all->executed[i]);
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
        printf("%-34s %14llu\n", lines[i].name, (unsigned long long)lines[i].value);
}

#endif
