/* POSIX spin locks, wrong: a trylock whose failure branch goes on, and the other counter's lock.
 *
 * Category: spinlock
 * Verdict: races on `hurried` (trylock not respected) and on `crossed` (two threads, two locks). `steady` is right. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 20 };

pthread_spinlock_t left, right;
long hurried;
long crossed;
long steady;

static void *one(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_spin_lock(&left);
        crossed++; // RACE crossed: under `left`
        steady++;  // NORACE: under `left` everywhere
        hurried++; // RACE hurried
        usleep(100);
        pthread_spin_unlock(&left);
    }
    return NULL;
}

static void *two(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_spin_lock(&right);
        crossed--; // RACE crossed: under `right`
        pthread_spin_unlock(&right);
        int busy = pthread_spin_trylock(&left);
        hurried--; // RACE hurried: with the lock or without
        if (!busy) {
            steady++; // NORACE: with the lock
            pthread_spin_unlock(&left);
        }
        usleep(100);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_spin_init(&left, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&right, PTHREAD_PROCESS_PRIVATE);
    if (pthread_create(&threads[0], NULL, one, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, two, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts(steady >= ROUNDS ? "steady" : "lost"); // NORACE: after the joins
    return hurried > ROUNDS || crossed > ROUNDS; // NORACE: after the joins
}
