/* A program without a data race that orders its threads in every way the sync table knows: nothing may be reported.
 *
 * Each part hands data from thread to thread by plain accesses that only its own kind of synchronisation orders. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 200 };

static void together(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)i)) exit(2);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- mutexes, also tried ------------------------------------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counted, tried;
static char bytes[64];

static void *mutexes(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        counted++;
        memset(bytes + me, i, sizeof bytes / 2);
        pthread_mutex_unlock(&mutex);
        while (pthread_mutex_trylock(&mutex))
            ;
        tried += bytes[me];
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* --- a queue with conditions -------------------------------------------------------------------------------------- */

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static long *queue_slot;
static long received;

static void *conditions(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (argument == 0) {
            for (int k = 1; k < THREADS; k++) {
                long *message = malloc(sizeof *message);
                if (!message) exit(2);
                *message = i; /* written without the lock: handed over */
                pthread_mutex_lock(&queue_lock);
                while (queue_slot)
                    pthread_cond_wait(&emptied, &queue_lock);
                queue_slot = message;
                pthread_cond_broadcast(&filled);
                pthread_mutex_unlock(&queue_lock);
            }
        } else {
            pthread_mutex_lock(&queue_lock);
            while (!queue_slot)
                pthread_cond_wait(&filled, &queue_lock);
            long *message = queue_slot;
            queue_slot = NULL;
            pthread_cond_signal(&emptied);
            pthread_mutex_unlock(&queue_lock);
            long value = *message;
            free(message);
            pthread_mutex_lock(&queue_lock);
            received += value;
            pthread_mutex_unlock(&queue_lock);
        }
    }
    return NULL;
}

/* --- reader-writer locks ------------------------------------------------------------------------------------------ */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int table[16];
static long looked[THREADS];

static void *rwlocks(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == me) {
            pthread_rwlock_wrlock(&rwlock);
            table[i % 16]++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            looked[me] += table[i % 16];
        }
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static long cells[2][THREADS];

static void *barriers(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        long sum = 0;
        for (int k = 0; k < THREADS; k++)
            sum += cells[i & 1][k]; /* what the others wrote in the round before */
        cells[(i + 1) & 1][me] = sum + i;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* --- semaphores: a ring of threads -------------------------------------------------------------------------------- */

static sem_t turn[THREADS];
static long passed;

static void *semaphores(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        while (sem_wait(&turn[me]))
            ;
        passed++;
        sem_post(&turn[(me + 1) % THREADS]);
    }
    return NULL;
}

/* --- once --------------------------------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int prepared[8];

static void prepare(void)
{
    for (int i = 0; i < 8; i++)
        prepared[i] = i + 1;
}

static void *onces(void *argument)
{
    (void)argument;
    pthread_once(&once, prepare);
    return (void *)(size_t)prepared[3];
}

/* --- atomics: a lock and a message -------------------------------------------------------------------------------- */

static atomic_flag spin = ATOMIC_FLAG_INIT;
static atomic_long ready;
static long guarded, message;

static void *atomics(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_flag_test_and_set(&spin))
            sched_yield();
        guarded++;
        __atomic_clear(&spin, __ATOMIC_SEQ_CST); /* an exchange, which the machine code shows */
    }
    if (me == 0) {
        message = 42;
        atomic_fetch_add(&ready, 1);
    } else {
        while (!atomic_load(&ready))
            sched_yield();
        return (void *)message;
    }
    return NULL;
}

/* --- memory that many threads use one after another: heap, thread-local, stacks ----------------------------------- */

static _Thread_local long own[4];

static void *memory(void *argument)
{
    long me = (long)argument;
    char big[5000]; /* a stack that a later thread gets */
    memset(big, (int)me, sizeof big);
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = (size_t)(i % 50 * 8 + 1);
        char *block = malloc(size);
        if (!block) exit(2);
        memset(block, (int)me, size);
        block[size - 1]++;
        char *larger = realloc(block, size * 4);
        if (!larger) exit(2);
        larger[size * 4 - 1] = 1;
        own[i & 3] += larger[0];
        own[0] += big[i * 20];
        free(larger);
    }
    return NULL;
}

static void *detached(void *argument)
{
    memory(argument);
    sem_post(&turn[0]); /* main may go on while this thread's stack is still in use */
    return NULL;
}

static void in_sequence(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sem_init(&turn[0], 0, 0);
    for (long i = 0; i < 20; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, detached, (void *)i)) exit(2);
        sem_wait(&turn[0]);
    }
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        sem_init(&turn[i], 0, i == 0);
    together(mutexes);
    together(conditions);
    together(rwlocks);
    together(barriers);
    together(semaphores);
    together(onces);
    together(atomics);
    together(memory);
    in_sequence();
    printf("%ld %ld %ld %ld\n", counted, received, passed, guarded);
    return counted == THREADS * ROUNDS && passed == THREADS * ROUNDS && guarded == THREADS * ROUNDS ? 0 : 1;
}
