/* A configuration that is read once: with pthread_once, and with a flag that somebody thought would do.
 *
 * Category: once
 * Verdict: races on `loaded` and `table` of the home-made version. What the pthread_once routine writes may be read by
 * everybody who has called pthread_once, whoever ran it. */
#include <pthread.h>
#include <stdio.h>

enum { ENTRIES = 32 };

pthread_once_t once = PTHREAD_ONCE_INIT;
int settings[ENTRIES];
int loads;

int loaded;
int table[ENTRIES];

static void load_settings(void)
{
    for (int i = 0; i < ENTRIES; i++)
        settings[i] = 3 * i; // NORACE: once, and before anybody gets past pthread_once
    loads++;                 // NORACE: once
}

__attribute__((noinline)) static int setting(int i)
{
    pthread_once(&once, load_settings);
    return settings[i]; // NORACE: after the once routine, in every thread
}

__attribute__((noinline)) static void load_table(void)
{
    for (int i = 0; i < ENTRIES; i++)
        table[i] = 5 * i; // RACE table
}

__attribute__((noinline)) static int from_table(int i)
{
    if (!loaded) { // RACE loaded
        load_table();
        loaded = 1; // RACE loaded
    }
    return table[i]; // RACE table
}

static void *work(void *argument)
{
    int sum = 0;
    for (int i = 0; i < ENTRIES; i++)
        sum += setting(i);
    for (int i = 0; i < ENTRIES; i++)
        sum += from_table(i);
    *(int *)argument = sum; // NORACE: each thread has its own
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int sums[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, &sums[i])) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("loaded %d time, last setting %d\n", loads, settings[ENTRIES - 1]); // NORACE: after the joins
    return sums[0] < 0;
}
