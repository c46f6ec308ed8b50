/* The cases of the sync table's rows: each calls the very function of its row, in a wrong form, which must be reported, and
 * in a right one, of which nothing may be. The driver (rows.c) runs all cases of a file one after the other, each on memory
 * of its own, and prints which it has run; test_rows.sh compares that with the reports, by the names of the functions that the
 * macros make.
 *
 *   RANGE   what the function reads and writes: another thread touches the last byte of it (wrong), before and after the
 *           call, or the first byte behind it and what both only read (right)
 *   HAND    a release: one thread changes data and gives it to the other (right), or changes it when it is given already (wrong)
 *   LOCKED  a lock: both threads take the same one (right), or each its own (wrong)
 *   FORGETS a lock is made anew: what was given by the old one is not ordered (wrong), but what came before is (right)
 *   PAIR    any other two threads; TOGETHER, if they wait for each other
 *
 * A row may have several cases. The file `exceptions` lists the rows that lack a form, and why.
 *
 * The threads of a case are main and one that is created for it. Which comes first is settled by system calls that the
 * engines do not know as order, so nothing depends on the schedule. */
#ifndef ROWS_H
#define ROWS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ROW_ROOM = 1024, ROW_BEHIND = 1000 };

typedef struct { /* of one run of a case; all zero before it, but for what is said */
    volatile int data; /* what the threads share */
    int fd[4];         /* -1, or closed after it */
    FILE *in, *out;    /* NULL, or closed after it */
    char path[32];     /* empty, or removed after it */
    void *ptr;
    int number;
    _Alignas(64) char a[ROW_ROOM], b[ROW_ROOM];
} row_place;

typedef struct {
    bool is_write, is_some; /* is_some: there may be more of it, but not up to ROW_BEHIND */
    size_t size;
    const char *text; /* that is there before; or NULL: zeroes */
} row_range;

typedef struct {
    const char *row, *wrong, *wrong_other; /* names */
    void (*call[2])(char *p, char *q);     /* right, wrong */
    row_range range[2];
    void (*one[2])(row_place *w), (*two[2])(row_place *w); /* right, wrong: in the other thread, and in main after it */
    void (*setup)(row_place *w, bool is_wrong);
    bool together; /* main does not wait for the other thread */
    bool is_heap;  /* the report of the wrong form names a block */
} row_case;

#define ROW_FUNCTION __attribute__((noinline, noipa)) static void
#define ROW_ADD(name) static const row_case name __attribute__((section("row_cases"), used, aligned(8)))

#define READS(size, text) ((row_range){false, false, size, text})
#define WRITES(size, text) ((row_range){true, false, size, text})
#define WRITES_MORE(size) ((row_range){true, true, size, NULL}) /* not all of it is known */
#define WRITES_SOME WRITES_MORE(1)
#define NOT ((row_range){false, false, 0, NULL})

/* `p` and `q` are where the ranges begin. */
#define RANGE_MORE(name, kind, first, second, ...)                                                                              \
    ROW_FUNCTION name##_##kind##_right(char *p, char *q) { __VA_ARGS__; }                                                       \
    ROW_FUNCTION name##_##kind##_wrong(char *p, char *q) { __VA_ARGS__; }                                                       \
    ROW_ADD(name##_##kind) = {.row = #name, .wrong = #name "_" #kind "_wrong",                                                  \
                              .call = {name##_##kind##_right, name##_##kind##_wrong}, .range = {first, second}};
#define RANGE(name, first, second, ...) RANGE_MORE(name, range, first, second, __VA_ARGS__)

/* Blocks in braces. The forms end with what main does, after the other thread is done. */
#define PAIR_MORE(name, kind, prepare, right_one, right_two, wrong_one, wrong_two, ...)                                         \
    ROW_FUNCTION name##_##kind##_setup(row_place *w, bool is_wrong) { (void)is_wrong; prepare; }                                \
    ROW_FUNCTION name##_##kind##_right_one(row_place *w) { right_one; }                                                         \
    ROW_FUNCTION name##_##kind##_right_two(row_place *w) { right_two; }                                                         \
    ROW_FUNCTION name##_##kind##_wrong_one(row_place *w) { wrong_one; }                                                         \
    ROW_FUNCTION name##_##kind##_wrong_two(row_place *w) { wrong_two; }                                                         \
    ROW_ADD(name##_##kind) = {.row = #name, .wrong = #name "_" #kind "_wrong_one", .wrong_other = #name "_" #kind "_wrong_two", \
                              .setup = name##_##kind##_setup, .one = {name##_##kind##_right_one, name##_##kind##_wrong_one},    \
                              .two = {name##_##kind##_right_two, name##_##kind##_wrong_two}, __VA_ARGS__};
#define PAIR(name, prepare, right_one, right_two, wrong_one, wrong_two)                                                         \
    PAIR_MORE(name, pair, prepare, right_one, right_two, wrong_one, wrong_two, .together = false)
#define TOGETHER(name, prepare, right_one, right_two, wrong_one, wrong_two)                                                     \
    PAIR_MORE(name, pair, prepare, right_one, right_two, wrong_one, wrong_two, .together = true)

/* There is no right form, or no wrong one: rows/exceptions says why. */
#define ONLY_WRONG(name, prepare, wrong_one, wrong_two)                                                                         \
    ROW_FUNCTION name##_pair_setup(row_place *w, bool is_wrong) { (void)is_wrong; prepare; }                                    \
    ROW_FUNCTION name##_pair_wrong_one(row_place *w) { wrong_one; }                                                             \
    ROW_FUNCTION name##_pair_wrong_two(row_place *w) { wrong_two; }                                                             \
    ROW_ADD(name##_pair) = {.row = #name, .wrong = #name "_pair_wrong_one", .wrong_other = #name "_pair_wrong_two",             \
                            .setup = name##_pair_setup, .one = {NULL, name##_pair_wrong_one},                                  \
                            .two = {NULL, name##_pair_wrong_two}};
#define ONLY_RIGHT(name, prepare, right_one, right_two)                                                                         \
    ROW_FUNCTION name##_pair_setup(row_place *w, bool is_wrong) { (void)is_wrong; prepare; }                                    \
    ROW_FUNCTION name##_pair_right_one(row_place *w) { right_one; }                                                             \
    ROW_FUNCTION name##_pair_right_two(row_place *w) { right_two; }                                                             \
    ROW_ADD(name##_pair) = {.row = #name, .setup = name##_pair_setup, .one = {name##_pair_right_one},                           \
                            .two = {name##_pair_right_two}};

#define TOUCH (w->data++)
#define HAND(name, prepare, give, take)                                                                                         \
    PAIR_MORE(name, hand, prepare, TOUCH; give, take; TOUCH, give; TOUCH, take; TOUCH, .together = false)
/* `o` is the lock. */
#define LOCKED(name, prepare, lock, unlock)                                                                                     \
    PAIR_MORE(name, locked, void *o = w->a; prepare; o = w->b; prepare, void *o = w->a; lock; TOUCH; unlock,                      \
              void *o = w->a; lock; TOUCH; unlock, void *o = w->a; lock; TOUCH; unlock, void *o = w->b; lock; TOUCH; unlock,    \
              .together = false)
/* What was given by way of the lock `o` is given no more when it is a new one. */
#define FORGETS(name, prepare, lock, unlock, anew)                                                                              \
    PAIR_MORE(name, forget, void *o = w->a; prepare, void *o = w->a; TOUCH; lock; unlock,                                       \
              void *o = w->a; lock; unlock; anew; TOUCH, void *o = w->a; TOUCH; lock; unlock,                                   \
              void *o = w->a; anew; lock; TOUCH; unlock, .together = false)

/* Order that no engine sees: row_wait returns after row_post was called as often. */
void row_post(void);
void row_wait(void);
/* The same for the way back. */
void row_post_back(void);
void row_wait_back(void);
void row_meet(bool is_first); /* two tasks, of which one is the first, wait for each other: each thread runs one */

/* The same with a pointer. */
void row_give(void *pointer);
void *row_take(void);

void row_raise(int signal); /* in this thread, by a system call */

void row_failed(const char *what);    /* the case could not be run as it is meant */
void row_missing(const char *reason); /* for `prepare`: the case cannot be run here */
void row_pipe(row_place *w);          /* fd[0] reads what fd[1] writes; `in` and `out` are their streams, without a buffer */
void row_file(row_place *w);          /* `path` is the name of an empty file */
FILE *row_text(const char *text);     /* a stream to read it from */

#endif
