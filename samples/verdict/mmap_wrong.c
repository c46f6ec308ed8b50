/* Mapped memory, wrong: a mapping that two threads write, and one that is reached through two addresses.
 *
 * Category: process
 * Unseen: the accesses through two mappings, since a race is looked for by address.
 * Verdict: races on `page[0]`, and on the first word of the file behind `view` and `alias`, which are two addresses of
 * one location. The latter is out of reach for detectors that go by address, static or not: it counts as missed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 50 };

long *page, *view, *alias;

static void *one(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        page[0]++; // RACE page
        usleep(5);
        view[0]++; // RACE file
        page[1]++; // NORACE: this thread only
    }
    return NULL;
}

static void *two(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        page[0]--; // RACE page
        usleep(5);
        alias[0]--; // RACE file: the same page of the same file
        page[2]++;  // NORACE: this thread only
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int file = memfd_create("sample", 0);
    if (file < 0 || ftruncate(file, 4096)) return 2;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    view = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    alias = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED || view == MAP_FAILED || alias == MAP_FAILED) return 2;
    if (pthread_create(&threads[0], NULL, one, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, two, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", page[1], page[2]); // NORACE: after the joins
    return page[0] > ROUNDS;               // NORACE: after the joins
}
