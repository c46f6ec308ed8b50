/* What a setjmp is come back to with: the set-up in front of it does not run again, since no longjmp gives it a one.
 *
 * Category: fork-join
 * Verdict: no race: only the program's own longjmp comes back, with a two, and the set-up is for less. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static long limit, total;
static jmp_buf back;

__attribute__((noinline)) static void *work(void *argument)
{
    for (long i = 0; i < limit; i++) // NORACE: set up before the thread
        total += i; // NORACE: main waits
    return argument;
}

__attribute__((noinline)) static void fail(void)
{
    longjmp(back, 2);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    (void)argv;
    if (setjmp(back) < 2) {
        limit = 100 * argc; // NORACE: not again when it is come back to
        if (pthread_create(&thread, NULL, work, NULL)) abort();
        if (argc > 5) fail();
        pthread_join(thread, NULL);
    }
    puts("done");
    return 0;
}
