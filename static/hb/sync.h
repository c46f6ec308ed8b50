/* What library functions mean to threads, and which memory they touch: one table, read by name. */
#ifndef RACE_HB_SYNC_H
#define RACE_HB_SYNC_H

#include "static/base/base.h"
#include "static/pointer/map.h"

typedef enum {
    SYNC_NONE,
    SYNC_ACQUIRE,  /* the lock `arg` is held when it returns; `when`: depending on its result */
    SYNC_RELEASE,  /* the lock `arg` is held no more */
    SYNC_LOCK_INIT, /* makes the lock `arg` with the attributes `other` */
    SYNC_ROBUST,   /* makes the attributes `arg` those of a lock that may be lost, when `other` is not zero */
    SYNC_ONCE,     /* runs a function under `arg`; whoever has come behind it comes after that function */
    SYNC_GUARD,    /* the same in two steps: an acquire here, a release there (C++ statics) */
    SYNC_GUARD_END,
    SYNC_NUMBER,   /* returns the number of the thread in its team */
    SYNC_SECTION,  /* returns the number of a section that no other thread runs */
    SYNC_JOIN,     /* waits for the thread whose handle is `arg`; `shared`: or has found that somebody did */
    SYNC_JOIN_TASKS, /* waits for all tasks that this thread has made */
    SYNC_JOIN_GROUP, /* the same for those made since SYNC_GROUP, and for what they have made */
    SYNC_GROUP,
    SYNC_JOIN_TEAM,
    SYNC_BARRIER,
    SYNC_BARRIER_INIT, /* the barrier `arg`, for as many as the argument `other` says */
    SYNC_POST,     /* a semaphore */
    SYNC_WAIT,
    SYNC_SEM_INIT, /* `other` is the argument that holds the first value */
    SYNC_SEND,     /* through the descriptor `arg`; `other` is the argument with the number of bytes */
    SYNC_RECEIVE,
    SYNC_PIPE,     /* makes two descriptors in what `arg` points to: what is sent to the second is received from the first */
    SYNC_SOCKETS,  /* the same, in both directions */
    SYNC_QUEUE,    /* returns a descriptor to which messages are sent and from which they are received; `other`: how many there are */
    SYNC_BIND,     /* gives the descriptor `arg` the address `other` */
    SYNC_ACCEPT,   /* returns a descriptor that is the other end of one which has been connected to that address */
    SYNC_CONNECT,  /* connects the descriptor `arg` with the address `other` */
    SYNC_CLOSE,    /* whoever receives from the other end finds that there is nothing more */
    SYNC_KILL,     /* sends the signal `arg` */
    SYNC_SIGWAIT,  /* waits for one of the signals of the set `arg` */
    SYNC_SIGNALFD, /* returns a descriptor that receives them */
    SYNC_SIGADD,   /* puts the signal `other` into the set `arg` */
    SYNC_COND_WAIT, /* on `arg`, with the lock `other` */
    SYNC_CREATE,   /* starts a thread, whose first parameter is `arg` */
    SYNC_TEAM,     /* starts threads that have ended when it returns */
    SYNC_TASK,     /* starts a task; `shared`: many of them, for which it waits unless the flags in the argument `other` say no */
    SYNC_SIGNAL,   /* installs a signal handler */
    SYNC_KEY,      /* registers what a thread runs at its end with what it has set for the key */
    SYNC_SET_KEY,  /* sets it to `arg` */
    SYNC_AT_EXIT,  /* registers what exit() runs */
    SYNC_EXIT,     /* runs what was registered */
    SYNC_EVENT,    /* registers what an event loop runs */
    SYNC_DISPATCH  /* runs an event loop; `arg` is the loop, or -1 */
} sync_kind;

typedef enum { SYNC_ALWAYS, SYNC_ZERO, SYNC_NONZERO, SYNC_POSITIVE, SYNC_NOT_NEGATIVE } sync_when;

typedef struct {
    const char *names; /* separated by blanks; `name*`: all that begin so */
    uint8_t kind;      /* sync_kind */
    int8_t arg;        /* -1: none */
    int8_t other;
    uint8_t when;      /* sync_when */
    bool shared;       /* a lock that others may hold in the same way */
    bool direct;       /* the argument points to what holds the handle */
    const char *lock;  /* of locks that no argument names */
} sync_entry;

typedef struct {
    const char *names;
    const char *text; /* `w0:2 r1:2`: writes what argument 0 points to, as many bytes as argument 2 says; without a colon: an
                         unknown number of bytes; `w0:1*2`: as many as the product of two arguments; `r1=8`: eight bytes; `f0`: frees what argument 0 points to;
                         `W0`, `R0`: the same of text */
} sync_touch;

extern const sync_entry hb_sync_table[];
extern const uint32_t hb_sync_count;
extern const sync_touch hb_sync_touches[];
extern const uint32_t hb_sync_touch_count;

/* NULL: it means nothing to threads. */
const sync_entry *hb_sync_find(const char *name);
const sync_touch *hb_sync_touch_find(const char *name);

/* The same by an index, which finds what they find. */
typedef struct {
    const char *begin; /* of all its names; `len` characters */
    uint32_t len;
    uint32_t entry;
} sync_family;

typedef struct {
    map64 exact[2]; /* of hb_sync_table, of hb_sync_touches: entry by hash of the name */
    VEC(sync_family) families[2];
} sync_index;
void sync_index_open(sync_index *index);
void sync_index_close(sync_index *index);
const sync_entry *sync_index_find(const sync_index *index, const char *name);
const sync_touch *sync_index_touch_find(const sync_index *index, const char *name);

typedef struct {
    bool write;
    bool frees;
    bool text;        /* it stays in the array of characters that it begins in */
    uint8_t arg;
    int8_t size_arg;  /* -1: none */
    int8_t times_arg; /* the size is the product of two arguments; -1: it is not */
    uint32_t size;    /* bytes; 0: unknown */
} sync_range;
enum { SYNC_RANGES = 4 };
uint32_t hb_sync_touch_ranges(const sync_touch *touch, sync_range ranges[SYNC_RANGES]);

/* Bits: the arguments that the tables mention. */
uint16_t hb_sync_asks(const char *name);
uint16_t sync_index_asks(const sync_index *index, const char *name);

#endif
