/* Happens-before by the book: a full vector clock per thread, and per byte and thread the time of its last read and its
 * last write. No epochs, no slots, no granules: nothing that the core could share a mistake with. */
#ifndef RACE_TEST_ORACLE_H
#define RACE_TEST_ORACLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ORACLE_THREADS = 48, ORACLE_BYTES = 192, ORACLE_OBJECTS = 16 };

typedef struct {
    uint32_t at[ORACLE_THREADS];
} oracle_clock;

typedef struct {
    unsigned threads;
    oracle_clock thread[ORACLE_THREADS];
    oracle_clock object[ORACLE_OBJECTS], readers[ORACLE_OBJECTS];
    oracle_clock read[ORACLE_BYTES], write[ORACLE_BYTES];
} oracle;

static void oracle_start(oracle *o)
{
    memset(o, 0, sizeof *o);
    o->threads = 1;
    o->thread[0].at[0] = 1;
}

static void oracle_merge(oracle_clock *to, const oracle_clock *from)
{
    for (unsigned i = 0; i < ORACLE_THREADS; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}

static unsigned oracle_fork(oracle *o, unsigned parent)
{
    unsigned child = o->threads++;
    o->thread[child] = o->thread[parent];
    o->thread[child].at[child] = 1;
    o->thread[parent].at[parent]++;
    return child;
}

static void oracle_join(oracle *o, unsigned thread, unsigned child)
{
    oracle_merge(&o->thread[thread], &o->thread[child]);
}

static void oracle_release(oracle *o, unsigned thread, oracle_clock *to)
{
    oracle_merge(to, &o->thread[thread]);
    o->thread[thread].at[thread]++;
}

static void oracle_acquire(oracle *o, unsigned thread, const oracle_clock *from)
{
    oracle_merge(&o->thread[thread], from);
}

/* Is there an access in `times` by another thread that is not ordered before what `thread` does now? */
static bool oracle_unordered(const oracle *o, unsigned thread, const oracle_clock *times)
{
    for (unsigned i = 0; i < o->threads; i++)
        if (i != thread && times->at[i] > o->thread[thread].at[i]) return true;
    return false;
}

/* Records the access to one byte; true: it races. */
static bool oracle_access(oracle *o, unsigned thread, unsigned byte, bool is_write)
{
    bool races =
        oracle_unordered(o, thread, &o->write[byte]) || (is_write && oracle_unordered(o, thread, &o->read[byte]));
    (is_write ? &o->write[byte] : &o->read[byte])->at[thread] = o->thread[thread].at[thread];
    return races;
}

static void oracle_clear(oracle *o, unsigned byte)
{
    memset(&o->read[byte], 0, sizeof o->read[byte]);
    memset(&o->write[byte], 0, sizeof o->write[byte]);
}

#endif
