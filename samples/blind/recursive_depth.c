/* A recursive mutex: after the inner unlock the lock is still held, after the outer one it is not.
 *
 * Category: recursive
 * Verdict: a race on `late`, written after the outermost unlock. `inner`, `between` and the nodes of the tree that is
 * walked recursively are guarded. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

enum { DEPTH = 5, ROUNDS = 100 };

pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
long inner;
long between;
long late;
long visited[1 << DEPTH];

__attribute__((noinline)) static void count_inner(void)
{
    pthread_mutex_lock(&lock);
    inner++; // NORACE: second level of the lock
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void visit(int node)
{
    if (node >= 1 << DEPTH) return;
    pthread_mutex_lock(&lock);
    visited[node]++; // NORACE: under the lock at every depth
    visit(2 * node);
    visited[node]++; // NORACE: the callees unlocked only their own level
    visit(2 * node + 1);
    pthread_mutex_unlock(&lock);
}

static void *work(void *unused)
{
    (void)unused;
    visit(1);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        count_inner();
        between++; // NORACE: the inner unlock released nothing
        pthread_mutex_unlock(&lock);
        late++; // RACE late
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld %ld\n", inner, between, visited[1]); // NORACE: after the joins
    return late > 2 * ROUNDS;                            // NORACE: after the joins
}
