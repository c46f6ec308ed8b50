/* The core under real threads that do everything at once: accesses of all sizes, ranges and strides, allocation, locks,
 * atomics, short-lived threads, resets. Built with ThreadSanitizer by test_core.sh, which must find nothing to say.
 *
 *   core_stress [ROUNDS [SEED]]
 *
 * Memory: some is guarded by a mutex, some belongs to one thread (pages of a chunk, bytes of a word), some is only
 * read: there no race may ever be reported. In the rest everybody races. At the end the core is audited. */
#include "tests/unit/core/audit.h"
#include "tests/unit/core/host.h"

#include <stdio.h>

enum { THREADS = 4, CHILDREN = 8, AREA = 4 * CHUNK_SIZE };

typedef enum { GUARDED, OWN_PAGES, OWN_BYTES, READ_ONLY, RACY, AREAS } area;

typedef struct {
    ft_thread *ft;
    unsigned number; /* of the worker */
    uint32_t random;
} worker;

static test_host host;
static ft_core *core;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const uint64_t base = 0x7f0000000000;
static unsigned rounds = 3000;
static uint64_t wrong, races;

static void on_race(void *context, const ft_race *race)
{
    (void)context;
    uint64_t at = race->addr - base;
    if (at / AREA != RACY || (at + race->size - 1) / AREA != RACY) {
        if (!__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED))
            fprintf(stderr, "core_stress: a false race at 0x%llx, size %u: sites %u and %u\n", (unsigned long long)at,
                    race->size, race->now.site, race->before.site);
    }
    __atomic_fetch_add(&races, 1, __ATOMIC_RELAXED);
}

static uint32_t draw(worker *w, uint32_t below)
{
    w->random = w->random * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)w->random * below >> 32);
}

static void access_memory(worker *w, uint64_t addr, uint64_t size, bool is_write)
{
    (is_write ? ft_write : ft_read)(w->ft, addr, size, 1 + w->number);
}

/* Anything in an area that this thread may access so. */
static void access_freely(worker *w, area where, bool may_write)
{
    const uint64_t start = base + (uint64_t)where * AREA;
    bool is_write = may_write && draw(w, 3) == 0;
    uint32_t kind = draw(w, 32);
    if (kind == 0) { /* whole chunks */
        uint32_t from = draw(w, AREA / CHUNK_SIZE);
        access_memory(w, start + from * CHUNK_SIZE, (uint64_t)CHUNK_SIZE * (1 + draw(w, AREA / CHUNK_SIZE - from)),
                      is_write);
    } else if (kind == 1) { /* any range */
        uint32_t from = draw(w, AREA - 20000);
        access_memory(w, start + from, 1 + draw(w, 20000), is_write);
    } else if (kind == 2) {
        ft_strided e = {start + draw(w, 1000), 1 + draw(w, 8), 1 + draw(w, 100), 1 + draw(w, 600)};
        (is_write ? ft_write_strided : ft_read_strided)(w->ft, e, 1 + w->number);
    } else {
        access_memory(w, start + draw(w, 2) * (AREA / 2) + draw(w, 64), 1u << draw(w, 4), is_write);
    }
}

static void access_guarded(worker *w)
{
    pthread_mutex_lock(&mutex);
    ft_acquire(w->ft, (uintptr_t)&mutex);
    for (uint32_t i = draw(w, 8); i > 0; i--)
        access_freely(w, GUARDED, true);
    uint64_t addr = base + draw(w, AREA / CHUNK_SIZE) * CHUNK_SIZE + draw(w, 3);
    uint64_t size = draw(w, 2) ? CHUNK_SIZE - 3 : 1 + draw(w, 200);
    if (draw(w, 8) == 0) {
        ft_allocated(w->ft, addr, size, 30);
        access_memory(w, addr, size, true);
        if (draw(w, 2)) ft_freed(w->ft, addr, 31);
    }
    ft_release(w->ft, (uintptr_t)&mutex);
    pthread_mutex_unlock(&mutex);
}

static void access_own(worker *w)
{
    uint32_t page = w->number + THREADS * draw(w, AREA / PAGE_SIZE / THREADS);
    uint64_t start = base + OWN_PAGES * (uint64_t)AREA + page * PAGE_SIZE;
    if (draw(w, 8) == 0)
        access_memory(w, start, PAGE_SIZE, draw(w, 2));
    else if (draw(w, 64) == 0)
        ft_clear(w->ft, start, PAGE_SIZE);
    else
        access_memory(w, start + draw(w, 64), 1u << draw(w, 4), draw(w, 2));
    start = base + OWN_BYTES * (uint64_t)AREA + draw(w, 64) * FT_GRANULE + w->number % FT_GRANULE;
    access_memory(w, start, 1, draw(w, 2));
    if (draw(w, 16) == 0)
        ft_write_strided(w->ft, (ft_strided){base + OWN_BYTES * (uint64_t)AREA + w->number, 1, 64, FT_GRANULE}, 7);
}

static void *child_body(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 20; i++)
        access_freely(w, RACY, true);
    ft_end(w->ft);
    return NULL;
}

static void make_child(worker *w)
{
    worker child = {ft_fork(w->ft, 1), CHILDREN, draw(w, UINT32_MAX)};
    pthread_t real;
    if (!child.ft || pthread_create(&real, NULL, child_body, &child)) abort();
    pthread_join(real, NULL);
    if (draw(w, 4))
        ft_join(w->ft, child.ft);
    else
        ft_never_joined(core, child.ft);
}

static void *worker_body(void *argument)
{
    worker *w = argument;
    for (unsigned i = 0; i < rounds; i++) {
        access_own(w);
        access_freely(w, READ_ONLY, false);
        access_freely(w, RACY, true);
        if (draw(w, 4) == 0) access_guarded(w);
        if (draw(w, 16) == 0) ft_clear(w->ft, base + RACY * (uint64_t)AREA + draw(w, 100), 1 + draw(w, AREA - 100));
        if (draw(w, 8) == 0) ft_release(w->ft, 0x5000 + draw(w, 8) * 8);
        if (draw(w, 8) == 0) ft_acquire(w->ft, 0x5000 + draw(w, 8) * 8);
        if (draw(w, 100) == 0) make_child(w);
    }
    ft_end(w->ft);
    return NULL;
}

static void run(uint32_t seed, const ft_limits *limits)
{
    ft_host callbacks = test_callbacks(&host);
    callbacks.race = on_race;
    core = test_core_with(&host, &callbacks);
    ft_set_limits(core, limits);
    ft_thread *first = ft_first_thread(core);
    worker workers[THREADS];
    pthread_t real[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (worker){ft_fork(first, 0), i, seed * 7919 + i};
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&real[i], NULL, worker_body, &workers[i])) abort();
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(real[i], NULL);
        ft_join(first, workers[i].ft);
    }
    ft_write(first, base, (uint64_t)AREA * RACY, 9); /* after all of them */
    const char *bad = audit_core(core, base, (uint64_t)AREA * AREAS);
    if (bad) fprintf(stderr, "core_stress: %s\n", bad);
    wrong += bad != NULL;
    ft_stats s;
    ft_statistics(core, &s);
    printf("%llu races, %llu slow, %llu refined, %llu compacted, %llu splits, %llu vectors, resets %llu %llu %llu\n",
           (unsigned long long)races, (unsigned long long)s.slow, (unsigned long long)s.refined,
           (unsigned long long)s.compacted, (unsigned long long)s.splits, (unsigned long long)s.vectors,
           (unsigned long long)s.resets_clocks, (unsigned long long)s.resets_slots,
           (unsigned long long)s.resets_memory);
    if (s.dropped || s.threads_unchecked) {
        fprintf(stderr, "core_stress: %llu facts dropped, %llu threads unchecked\n", (unsigned long long)s.dropped,
                (unsigned long long)s.threads_unchecked);
        wrong++;
    }
    test_core_free(&host);
}

int main(int argc, char **argv)
{
    if (argc > 1) rounds = (unsigned)strtoul(argv[1], NULL, 0);
    uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 1;
    run(seed, &(ft_limits){0});
    run(seed + 1, &(ft_limits){.clock = 10, .slots = 14});
    run(seed + 2, &(ft_limits){.clock = 100, .slots = 14, .shadow_bytes = 2 << 20});
    return wrong != 0;
}
