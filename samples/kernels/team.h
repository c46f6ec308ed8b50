/* A team of threads, with pthreads (-DUSE_PTHREADS) or OpenMP (-fopenmp): what the kernels of this folder are written
 * in.
 *
 *   team_run(threads, body, data)   runs body(data) in each of the threads and waits for all
 *   TEAM_FOR(i, count) statement    shares the iterations 0 to count-1 among the team in blocks; no barrier at the end
 *   team_barrier()                  all have come here before anybody goes on
 *   team_first()                    true in one thread of the team
 *
 * Only the body of team_run and what it calls may use the last three. */
#ifndef TEAM_H
#define TEAM_H
#include <stdio.h>
#include <stdlib.h>

typedef void team_body(void *data);

#ifdef USE_PTHREADS
#include <pthread.h>

struct team_member {
    pthread_t id;
    team_body *body;
    void *data;
    long number;
};

static pthread_barrier_t team_common;
static long team_size;
static __thread long team_number;

static inline long team_start(long count, long number)
{
    return count * number / team_size;
}

#define TEAM_FOR(i, count)                                                                                             \
    for (long i = team_start(count, team_number), i##_end = team_start(count, team_number + 1); i < i##_end; i++)

static inline void team_barrier(void)
{
    pthread_barrier_wait(&team_common);
}

static inline int team_first(void)
{
    return team_number == 0;
}

static void *team_enter(void *argument)
{
    struct team_member *member = argument;
    team_number = member->number;
    member->body(member->data);
    return NULL;
}

static inline void team_run(long threads, team_body *body, void *data)
{
    struct team_member *members = calloc((size_t)threads, sizeof *members);
    if (!members) abort();
    team_size = threads;
    pthread_barrier_init(&team_common, NULL, (unsigned)threads);
    for (long i = 0; i < threads; i++) {
        members[i].body = body;
        members[i].data = data;
        members[i].number = i;
        if (i && pthread_create(&members[i].id, NULL, team_enter, &members[i])) abort();
    }
    team_enter(&members[0]);
    for (long i = 1; i < threads; i++)
        pthread_join(members[i].id, NULL);
    pthread_barrier_destroy(&team_common);
    free(members);
}

#else
#include <omp.h>

#define TEAM_FOR(i, count) _Pragma("omp for schedule(static) nowait") for (long i = 0; i < (count); i++)

static inline void team_barrier(void)
{
#pragma omp barrier
}

static inline int team_first(void)
{
    return omp_get_thread_num() == 0;
}

static inline void team_run(long threads, team_body *body, void *data)
{
#pragma omp parallel num_threads((int)threads)
    body(data);
}
#endif

/* The two arguments of every kernel, THREADS and SIZE; ends the program when they make no sense. */
static inline void team_arguments(int argc, char **argv, long *threads, long *size)
{
    if (argc > 1) *threads = atol(argv[1]);
    if (argc > 2) *size = atol(argv[2]);
    if (argc > 3 || *threads < 1 || *threads > 256 || *size < 1 || *size > 100000000) {
        fprintf(stderr, "usage: %s [THREADS [SIZE]]\n", argv[0]);
        exit(2);
    }
}

static inline void *team_alloc(size_t count, size_t size)
{
    void *block = calloc(count, size);
    if (!block) {
        perror("calloc");
        exit(2);
    }
    return block;
}
#endif
