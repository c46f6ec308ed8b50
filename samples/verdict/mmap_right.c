/* Mapped memory: pages that are unmapped and mapped again at the same address are new; a file mapping is shared under a
 * lock.
 *
 * Category: process
 * Verdict: no race. The second thread's page has the address of the first's, but not its history: main unmaps only
 * after the join, and maps before the create. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { ROUNDS = 50 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *common;

static void *work(void *argument)
{
    long *page = argument;
    for (int i = 0; i < ROUNDS; i++) {
        page[i] = i; // NORACE: own page
        pthread_mutex_lock(&lock);
        common[3]++; // NORACE: under the lock
        pthread_mutex_unlock(&lock);
    }
    return (void *)page[ROUNDS - 1]; // NORACE: own page
}

static long *map(void *where, int flags)
{
    void *page = mmap(where, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

int main(void)
{
    pthread_t threads[3];
    void *results[3];
    common = map(NULL, 0);
    long *page = map(NULL, 0), *other = map(NULL, 0);
    if (!common || !page || !other) return 2;
    if (pthread_create(&threads[2], NULL, work, other)) return 2;
    for (int i = 0; i < 2; i++) {
        page[0] = -1; // NORACE: nobody has it
        if (pthread_create(&threads[i], NULL, work, page)) return 2;
        pthread_join(threads[i], &results[i]);
        munmap(page, 4096);
        page = map(page, MAP_FIXED);
        if (!page) return 2;
    }
    pthread_join(threads[2], &results[2]);
    long sum = (long)results[0] + (long)results[1] + (long)results[2];
    printf("sum %ld, common %ld\n", sum, common[3]); // NORACE: after the joins
    return 0;
}
