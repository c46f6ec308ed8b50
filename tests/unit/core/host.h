/* A host for the core in tests: memory from the system, given back after each test; races collected. */
#ifndef RACE_TEST_HOST_H
#define RACE_TEST_HOST_H

#include "runtime/core/core.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { TEST_RESERVATIONS = 4096, TEST_RACES = 4096 };

typedef struct {
    void *at[TEST_RESERVATIONS];
    size_t size[TEST_RESERVATIONS];
    unsigned reservations;
    unsigned reservation_limit; /* 0: none; for tests of full memory */
    ft_race races[TEST_RACES];
    unsigned race_count; /* may be larger than TEST_RACES */
    pthread_mutex_t lock;
} test_host;

static inline void *test_reserve(void *context, size_t size)
{
    test_host *h = context;
    pthread_mutex_lock(&h->lock);
    void *p = NULL;
    if (h->reservations < TEST_RESERVATIONS && !(h->reservation_limit && h->reservations >= h->reservation_limit)) {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) abort();
        h->at[h->reservations] = p;
        h->size[h->reservations++] = size;
    }
    pthread_mutex_unlock(&h->lock);
    return p;
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

static inline void test_race(void *context, const ft_race *race)
{
    test_host *h = context;
    pthread_mutex_lock(&h->lock);
    if (h->race_count < TEST_RACES) h->races[h->race_count] = *race;
    h->race_count++;
    pthread_mutex_unlock(&h->lock);
}

static inline ft_core *test_core(test_host *h)
{
    h->reservations = h->race_count = 0;
    h->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    ft_host host = {h, test_reserve, test_discard, test_yield, test_race};
    ft_core *core = ft_create(&host);
    if (!core) abort();
    return core;
}

static inline void test_core_free(test_host *h)
{
    for (unsigned i = 0; i < h->reservations; i++)
        munmap(h->at[i], h->size[i]);
    h->reservations = 0;
}

#endif
