/* One function that both sides of a hand-over run: the constant that each thread is created with says which one it is.
 *
 * Category: semaphore
 * Verdict: no race. What the first thread sets it sets before its post, and the second one uses it behind its wait; also where
 * both come to the same code afterwards, where a function that they call waits, and where the hand-over is by an atomic flag. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

static sem_t ready, table_ready, late_ready;
static int value, late;
static int table[8];
static long total;
static atomic_int flag;
static int flagged;

static void *hand_over(void *role)
{
    if (!role) {
        value = 9; // NORACE: before the post
        sem_post(&ready);
    } else {
        sem_wait(&ready);
        value++; // NORACE: behind the wait
    }
    return NULL;
}

__attribute__((noinline)) static void wait_for_table(void)
{
    sem_wait(&table_ready);
}

static void *then_both(void *role)
{
    if ((long)role == 1) {
        for (int i = 0; i < 8; i++)
            table[i] = i; // NORACE: before the post
        sem_post(&table_ready);
    } else {
        wait_for_table();
    }
    long sum = 0;
    for (int i = 0; i < 8; i++)
        sum += table[i]; // NORACE: the one has filled it, the other has waited
    if ((long)role == 2) total = sum; // NORACE: one thread only
    return NULL;
}

__attribute__((noinline)) static void use_late(void)
{
    sem_wait(&late_ready);
    late++; // NORACE: behind the wait
}

static void *called(void *role)
{
    switch ((long)role) {
    case 0:
        late = 1; // NORACE: before the post
        sem_post(&late_ready);
        break;
    case 3: use_late(); break;
    }
    return NULL;
}

static void *by_flag(void *role)
{
    if (role) {
        while (!atomic_load(&flag))
            sched_yield();
        flagged++; // NORACE: behind the flag
    } else {
        flagged = 1; // NORACE: before the flag
        atomic_store(&flag, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[8];
    sem_init(&ready, 0, 0);
    sem_init(&table_ready, 0, 0);
    sem_init(&late_ready, 0, 0);
    if (pthread_create(&threads[0], NULL, hand_over, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, hand_over, (void *)1)) return 2;
    if (pthread_create(&threads[2], NULL, then_both, (void *)1)) return 2;
    if (pthread_create(&threads[3], NULL, then_both, (void *)2)) return 2;
    if (pthread_create(&threads[4], NULL, called, NULL)) return 2;
    if (pthread_create(&threads[5], NULL, called, (void *)3)) return 2;
    if (pthread_create(&threads[6], NULL, by_flag, NULL)) return 2;
    if (pthread_create(&threads[7], NULL, by_flag, (void *)1)) return 2;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    printf("%d %ld %d %d\n", value, total, late, flagged); // NORACE: after the joins
    return 0;
}
