/* Atomic objects that are wider than any instruction: libatomic's functions order what was done before a store.
 *
 * Verdict: no race. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct {
    long number, length;
} pair;
typedef struct {
    long parts[4];
} wide;

static _Atomic pair announced;
static _Atomic wide answered;
static int question, answer;

static void *ask(void *unused)
{
    (void)unused;
    question = 6; // NORACE: before the store
    atomic_store(&announced, ((pair){1, 2}));
    wide seen;
    do
        seen = atomic_load(&answered);
    while (seen.parts[3] != 4);
    printf("%d\n", answer); // NORACE: after the load
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask, NULL)) return 2;
    pair seen;
    do
        seen = atomic_load(&announced);
    while (seen.number != 1);
    answer = question * 7; // NORACE: after the load, before the store
    atomic_store(&answered, ((wide){.parts = {1, 2, 3, 4}}));
    pthread_join(thread, NULL);
    return 0;
}
