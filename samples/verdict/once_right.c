/* pthread_once from several places, with two controls, and one whose routine calls the other.
 *
 * Category: once
 * Verdict: no race. */
#include <pthread.h>
#include <stdio.h>

static pthread_once_t base_once = PTHREAD_ONCE_INIT, full_once = PTHREAD_ONCE_INIT;
static int base, full, calls;

static void make_base(void)
{
    base = 10; // NORACE: once
    calls++;   // NORACE: once, and before the other routine goes on
}

static void make_full(void)
{
    pthread_once(&base_once, make_base);
    full = base + 5; // NORACE: once, after the base
    calls++;         // NORACE: once
}

__attribute__((noinline)) static int get_base(void)
{
    pthread_once(&base_once, make_base);
    return base + 1; // NORACE: after its routine
}

__attribute__((noinline)) static int get_full(void)
{
    pthread_once(&full_once, make_full);
    return full + base; // NORACE: after both routines
}

static void *work(void *argument)
{
    int which = *(int *)argument;                                 // NORACE: own argument
    *(int *)argument = which ? get_base() : get_full() + get_base(); // NORACE: own argument
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int results[3] = {0, 1, 0};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, &results[i])) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d, calls %d\n", results[0], results[1], results[2], calls); // NORACE: after the joins
    return 0;
}
