/* Calls of lock functions while code is thrown away: a thread calls, at ever new places, first a function that nobody watches and
 * then one of the table, for which an engine that keeps translated code has to make it anew; whoever is about to enter a
 * function meanwhile may enter it twice. Right: no race, and no two locks are ever held at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_spinlock_t spin[2];
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static atomic_int done;
static long counts[2];

static int nothing(pthread_mutex_t *mutex)
{
    return mutex == NULL;
}

typedef int function(pthread_mutex_t *mutex);
static function *const calls[] = {nothing, pthread_mutex_lock, pthread_mutex_unlock};

#define STEP(n)                                                                                                        \
    __attribute__((noinline)) static void step_##n(void)                                                               \
    {                                                                                                                  \
        for (int i = 0; i < 3; i++)                                                                                    \
            if (calls[i](&own)) abort();                                                                               \
    }
#define TEN(f, n) f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
#define HUNDRED(f, n) TEN(f, n##0) TEN(f, n##1) TEN(f, n##2) TEN(f, n##3) TEN(f, n##4)
#define ALL(f) HUNDRED(f, 1) HUNDRED(f, 2) HUNDRED(f, 3)
ALL(STEP)
#define ENTRY(n) step_##n,
static void (*const steps[])(void) = {ALL(ENTRY)};

static void *flush(void *unused)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        steps[i]();
    atomic_store(&done, 1);
    return unused;
}

static void *count(void *unused)
{
    for (int i = 0; !atomic_load(&done); i ^= 1) {
        pthread_spin_lock(&spin[i]);
        counts[i]++;
        pthread_spin_unlock(&spin[i]);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 2; i++)
        pthread_spin_init(&spin[i], PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, i < 2 ? count : flush, NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts(counts[0] + counts[1] >= 0 ? "done" : "?");
    return 0;
}
