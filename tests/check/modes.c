/* What a thread is told to do: by a variable, which it tests twice, and by a number that functions are called with. Right: it comes to
 * what it shares with main only against one of them. Wrong: it does what it is told. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef WRONG
enum { LATER, NOW };
#else
enum { NOW, LATER };
#endif
enum { IDLE, READ };

int mode;
long executed, closed, written;

__attribute__((noinline)) static void put_off(void) { putchar('.'); }

__attribute__((noinline)) static void execute(long n) { executed += n; }

/* A variable: those who read do not execute. */
__attribute__((noinline)) static void request(long n)
{
    putchar('r');
#ifdef WRONG
    if (mode == READ) {
#else
    if (mode == IDLE) {
#endif
        execute(n);
        written += n;
        return;
    }
    put_off();
}

/* A number, handed on. */
__attribute__((noinline)) static void close_it(long n, int how)
{
    if (how)
        put_off();
    else
        closed += n;
}

__attribute__((noinline)) static void reply(long n, int how)
{
    putchar('w');
    close_it(n, how);
}

static void *work(void *arg)
{
    for (long n = 0; n < 10; n++) {
        if (mode == READ)
            request(n);
        else if (mode != IDLE)
            abort();
        reply(n, LATER);
        if (n & 1) reply(n, 2);
    }
    return arg;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL)) return 1;
    request(1);
    execute(2);
    reply(3, NOW);
    reply(4, 2);
    written++;
    closed++;
    pthread_join(thread, NULL);
    printf("%ld %ld %ld\n", executed, closed, written);
    return 0;
}
