/* What speaks for an order that is not there: each race is reported all the same, if with less confidence.
 *
 * Category: fork-join
 * Verdict: race: the join is passed over, the longjmp leaves the thread behind, the flag that was looked at says nothing, and the object
 * is used by both after the lock that it was found under. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct job {
    long done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job *current;
static long missed, thrown, looked;
static int ready;
static jmp_buf back;

__attribute__((noinline)) static void *missing(void *argument)
{
    usleep(1000);
    missed++; // RACE: main goes on without the join
    return argument;
}

__attribute__((noinline)) static void *throwing(void *argument)
{
    usleep(1000);
    thrown++; // RACE: main has jumped over the join
    return argument;
}

__attribute__((noinline)) static void *looking(void *argument)
{
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) looked++; // RACE: ready says nothing about it
    return argument;
}

__attribute__((noinline)) static struct job *find(void)
{
    pthread_mutex_lock(&lock);
    struct job *job = current;
    pthread_mutex_unlock(&lock);
    return job;
}

__attribute__((noinline)) static void *finding(void *argument)
{
    struct job *job = find();
    if (job) job->done++; // RACE: it stays where it was found
    return argument;
}

__attribute__((noinline)) static void try(pthread_t thread, int fails)
{
    if (fails) longjmp(back, 2);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    pthread_t a, b, c, d;
    (void)argv;
    __atomic_exchange_n(&ready, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    current = calloc(1, sizeof *current);
    pthread_mutex_unlock(&lock);
    if (pthread_create(&a, NULL, missing, NULL) || pthread_create(&b, NULL, looking, NULL) || pthread_create(&c, NULL, finding, NULL)) abort();
    looked++; // RACE: with looking()
    struct job *job = find();
    if (job) job->done++; // RACE: with finding()
    if (argc > 1) pthread_join(a, NULL);
    missed++; // RACE: with missing()
    if (setjmp(back) < 2) {
        if (pthread_create(&d, NULL, throwing, NULL)) abort();
        try(d, argc < 2);
    }
    thrown++; // RACE: with throwing()
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    usleep(10000);
    printf("%d\n", ready);
    return 0;
}
