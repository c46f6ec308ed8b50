/* Happens-before by the book. Every event of a thread has a full vector clock of its own; a place in memory keeps all
 * accesses that were ever made to it, each with its clock's own entry; two accesses are ordered if and only if the
 * later one's clock has the earlier one's entry. No epochs, no slots, no granules, nothing forgotten: nothing that the
 * core could share a mistake with. */
#ifndef RACE_TEST_ORACLE_H
#define RACE_TEST_ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ORACLE_THREADS = 48, ORACLE_PLACES = 256, ORACLE_OBJECTS = 24, ORACLE_HISTORY = 1024 };

typedef struct {
    uint32_t at[ORACLE_THREADS];
} oracle_clock;

typedef struct {
    uint32_t time; /* the entry of its own thread in the clock of the access */
    uint16_t thread;
    bool is_write;
} oracle_access;

typedef struct {
    unsigned threads;
    oracle_clock thread[ORACLE_THREADS];
    bool published[ORACLE_THREADS]; /* its next access is known already to those who acquire */
    oracle_clock object[ORACLE_OBJECTS], readers[ORACLE_OBJECTS];
    unsigned accesses[ORACLE_PLACES];
    oracle_access access[ORACLE_PLACES][ORACLE_HISTORY];
} oracle;

static inline void oracle_start(oracle *o)
{
    memset(o, 0, offsetof(oracle, access));
    o->threads = 1;
    o->thread[0].at[0] = 1;
}

static inline void oracle_merge(oracle_clock *to, const oracle_clock *from)
{
    for (unsigned i = 0; i < ORACLE_THREADS; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}

static inline void oracle_step(oracle *o, unsigned thread)
{
    if (!o->published[thread]) o->thread[thread].at[thread]++;
}

/* What it does from now on is known to nobody. */
static inline void oracle_begin_anew(oracle *o, unsigned thread)
{
    o->published[thread] = false;
    oracle_step(o, thread);
}

static inline unsigned oracle_fork(oracle *o, unsigned parent)
{
    unsigned child = o->threads++;
    o->thread[child] = o->thread[parent];
    o->published[child] = false;
    oracle_step(o, child);
    oracle_begin_anew(o, parent);
    return child;
}

static inline void oracle_join(oracle *o, unsigned thread, unsigned child)
{
    oracle_merge(&o->thread[thread], &o->thread[child]);
    oracle_step(o, thread);
}

static inline void oracle_release(oracle *o, unsigned thread, oracle_clock *to)
{
    oracle_merge(to, &o->thread[thread]);
    oracle_begin_anew(o, thread);
}

static inline void oracle_publish(oracle *o, unsigned thread, oracle_clock *to)
{
    oracle_begin_anew(o, thread);
    oracle_merge(to, &o->thread[thread]);
    o->published[thread] = true;
}

static inline void oracle_acquire(oracle *o, unsigned thread, const oracle_clock *from)
{
    oracle_merge(&o->thread[thread], from);
    oracle_step(o, thread);
}

static inline bool oracle_ordered(const oracle *o, const oracle_access *a, unsigned thread)
{
    return a->time <= o->thread[thread].at[a->thread];
}

/* Does an access by `thread` now race with an earlier one? `only` (not NULL): one by this thread and of this kind. */
static inline bool oracle_races(const oracle *o, unsigned thread, unsigned place, bool is_write,
                                const oracle_access *only)
{
    for (unsigned i = 0; i < o->accesses[place]; i++) {
        const oracle_access *a = &o->access[place][i];
        if (only && (a->thread != only->thread || a->is_write != only->is_write)) continue;
        if ((is_write || a->is_write) && !oracle_ordered(o, a, thread)) return true;
    }
    return false;
}

static inline void oracle_record(oracle *o, unsigned thread, unsigned place, bool is_write)
{
    if (o->accesses[place] == ORACLE_HISTORY) __builtin_trap(); /* traces are shorter */
    o->access[place][o->accesses[place]++] =
        (oracle_access){.time = o->thread[thread].at[thread], .thread = (uint16_t)thread, .is_write = is_write};
}

static inline void oracle_clear(oracle *o, unsigned place)
{
    o->accesses[place] = 0;
}

#endif
