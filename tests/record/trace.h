/* A recorded run: everything that an engine told the core, in the order in which the core heard it, and the races that
 * the core found. tests/record/record.c writes it, tests/tools/replay.c gives it to an oracle.
 *
 * The file is an array of records; it may end with records of kind 0, which say nothing. */
#ifndef RACE_TEST_RECORD_TRACE_H
#define RACE_TEST_RECORD_TRACE_H

#include <stdint.h>

typedef enum {
    TRACE_NOTHING,
    TRACE_START,        /* the first thread */
    TRACE_FORK,         /* other: the child */
    TRACE_JOIN,         /* other: the child */
    TRACE_ACQUIRE,      /* addr: the object; so for all that follow */
    TRACE_RELEASE,
    TRACE_PUBLISH,
    TRACE_FORGET,
    TRACE_ATOMIC_BEFORE,
    TRACE_ATOMIC_AFTER,
    TRACE_LOCK_READ,
    TRACE_LOCK_WRITE,
    TRACE_UNLOCK,
    TRACE_ENTER,        /* a barrier; other: the round that the core named */
    TRACE_LEAVE,
    TRACE_READ,         /* count elements of size bytes, stride apart, from addr on */
    TRACE_WRITE,
    TRACE_FREE,         /* a write of size bytes */
    TRACE_CLEAR,        /* size bytes from addr on are new */
    TRACE_RACE,         /* of the access before it: size bytes from addr on; other: the earlier thread; count: what it did, 1 a write */
    TRACE_LOST,         /* a signal handler's check in the middle of a call was not recorded */
    TRACE_FULL,         /* the rest was not recorded */
    TRACE_RESET,        /* the core began anew */
    TRACE_KINDS
} trace_kind;

typedef struct {
    uint32_t kind, thread;
    uint32_t other, concurrent; /* the core's flag, before the call */
    uint64_t addr, size, count;
    int64_t stride;
} trace_record;

_Static_assert(sizeof(trace_record) == 48, "format");

#endif
