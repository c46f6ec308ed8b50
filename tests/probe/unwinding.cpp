/* Threads that are unwound from any instruction: cancelled asynchronously, or by a handler that throws where an access
 * faults
 * (-fnon-call-exceptions). Their landing pads, and those of callers, need registers that nothing else reads any more.
 */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>

enum { CELLS = 8, ROUNDS = 20 };
static long cleaned[CELLS], data[1000];
static sem_t ready;

__attribute__((noinline)) static long same(long value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* In as many registers as survive calls. */
struct guard {
    long cell, a, b, c;
    explicit guard(long cell) : cell(cell), a(same(1)), b(same(2)), c(same(3)) {}
    ~guard() { __atomic_fetch_add(&cleaned[cell & (CELLS - 1)], cell * (a + b + c) + same(0), __ATOMIC_SEQ_CST); }
};

struct fault {
    long address;
};

static void on_fault(int, siginfo_t *info, void *)
{
    throw fault{(long)info->si_addr};
}

/* Never returns, and saves nothing: its caller's registers are where they were. */
__attribute__((noinline)) static void endless()
{
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    sem_post(&ready);
    for (;;)
        for (int i = 0; i < 1000; i++)
            ((volatile long *)data)[i] = i;
}

static void *cancelled(void *number)
{
    guard g((long)number);
    endless();
    return NULL;
}

__attribute__((noinline)) static void walk(long cell, volatile long *to, volatile long *nowhere)
{
    guard g(cell);
    for (int i = 0; i < 100; i++)
        to[i & 7] = i;
    *nowhere = 7;
    for (;;)
        to[1]++;
}

static void *throwing(void *number)
{
    static long boxes[CELLS][8];
    long sum = 0;
    for (int n = 0; n < ROUNDS; n++)
        try {
            walk((long)number, boxes[(long)number], (volatile long *)16);
        } catch (fault &f) {
            sum += f.address;
        }
    return (void *)sum;
}

static void cancel_all(int count)
{
    pthread_t threads[CELLS];
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, cancelled, (void *)(i + 1));
    for (int i = 0; i < count; i++)
        sem_wait(&ready);
    for (int i = 0; i < count; i++)
        pthread_cancel(threads[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main()
{
    void *sums[2];
    pthread_t threads[2];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    sem_init(&ready, 0, 0);
    for (int n = 0; n < ROUNDS; n++)
        cancel_all(4);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, throwing, (void *)(5 + i));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &sums[i]);
    for (int i = 0; i < CELLS; i++)
        printf("%ld ", cleaned[i]);
    printf("%ld %ld\n", (long)sums[0], (long)sums[1]);
    return 0;
}
