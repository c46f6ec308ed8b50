/* A host for the core in tests: memory from the system, kept for the next core; races collected. */
#ifndef RACE_TEST_HOST_H
#define RACE_TEST_HOST_H

#include "runtime/core/core.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEST_RESERVATIONS = 4096, TEST_RACES = 4096 };

typedef struct {
    void *at;
    size_t size;
    bool used;
} test_reservation;

typedef struct {
    test_reservation reserved[TEST_RESERVATIONS];
    unsigned reservations;      /* that were ever made: the memory of one core serves the next */
    unsigned in_use;            /* by this core */
    unsigned reservation_limit; /* 0: none; for tests of full memory */
    ft_race races[TEST_RACES];
    unsigned race_count; /* may be larger than TEST_RACES */
    unsigned notices;
    const char *last_notice;
    pthread_mutex_t lock;
} test_host;

static inline void *test_reserve(void *context, size_t size)
{
    test_host *h = context;
    pthread_mutex_lock(&h->lock);
    test_reservation *found = NULL;
    bool full = h->reservation_limit && h->in_use >= h->reservation_limit;
    for (unsigned i = 0; i < h->reservations && !full && !found; i++)
        if (!h->reserved[i].used && h->reserved[i].size == size) found = &h->reserved[i];
    if (!found && !full && h->reservations < TEST_RESERVATIONS) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) abort();
        found = &h->reserved[h->reservations++];
        *found = (test_reservation){p, size, false};
    }
    if (found) {
        found->used = true;
        h->in_use++;
    }
    pthread_mutex_unlock(&h->lock);
    return found ? found->at : NULL;
}

static inline void test_discard(void *context, void *pages, size_t size)
{
    (void)context;
    if (madvise(pages, size, MADV_DONTNEED)) abort();
}

static inline void test_yield(void *context)
{
    (void)context;
    sched_yield();
}

/* Not under ThreadSanitizer, which does not know it. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifndef __SANITIZE_THREAD__
static inline void test_barrier(void *context)
{
    enum { EXPEDITED = 8, REGISTER_EXPEDITED = 16 };
    (void)context;
    if (!syscall(SYS_membarrier, EXPEDITED, 0, 0)) return;
    if (syscall(SYS_membarrier, REGISTER_EXPEDITED, 0, 0) || syscall(SYS_membarrier, EXPEDITED, 0, 0)) abort();
}
#endif

static inline void test_race(void *context, const ft_race *race)
{
    test_host *h = context;
    pthread_mutex_lock(&h->lock);
    if (h->race_count < TEST_RACES) h->races[h->race_count] = *race;
    h->race_count++;
    pthread_mutex_unlock(&h->lock);
}

static inline void test_notice(void *context, const char *line)
{
    test_host *h = context;
    pthread_mutex_lock(&h->lock);
    h->notices++;
    h->last_notice = line;
    pthread_mutex_unlock(&h->lock);
}

static inline ft_host test_callbacks(test_host *h)
{
    return (ft_host){
        .context = h,
        .reserve = test_reserve,
        .discard = test_discard,
        .yield = test_yield,
#ifndef __SANITIZE_THREAD__
        .barrier = test_barrier,
#endif
        .race = test_race,
        .notice = test_notice,
    };
}

static inline ft_core *test_core_with(test_host *h, const ft_host *callbacks)
{
    h->race_count = h->notices = 0;
    h->last_notice = "";
    h->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    ft_core *core = ft_create(callbacks);
    if (!core) abort();
    return core;
}

static inline ft_core *test_core(test_host *h)
{
    ft_host callbacks = test_callbacks(h);
    return test_core_with(h, &callbacks);
}

static inline void test_core_free(test_host *h)
{
    for (unsigned i = 0; i < h->reservations; i++) {
        if (h->reserved[i].used && madvise(h->reserved[i].at, h->reserved[i].size, MADV_DONTNEED)) abort();
        h->reserved[i].used = false;
    }
    h->in_use = 0;
}

#endif
