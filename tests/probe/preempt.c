/* A program whose signal handler makes the interrupted code call something: it pushes the address where the code was,
 * as a call would, and goes on elsewhere, which comes back to it later. Go's runtime preempts its threads like that.
 *
 * Two threads compute the same again and again until they were interrupted often enough. Prints what they have
 * computed; exit code 1 if it was not always the same. Needs code without a red zone. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 20, WANTED = 2000, INTERVAL = 50000 };
long preempted; /* the assembly counts it */
static volatile int numbers[THREADS][64];
static long results[THREADS];

/* Saves everything, and goes back. */
void preempt(void);
__asm__(".text\n .globl preempt\n .type preempt, @function\n preempt:\n"
        " pushfq\n push %rax\n push %rcx\n lock incq preempted(%rip)\n mov $200, %ecx\n"
        "1: dec %ecx\n jne 1b\n"
        " pop %rcx\n pop %rax\n popfq\n ret\n .size preempt, . - preempt\n");

/* Short instructions: a jump to a check displaces several of them. Flags live over accesses. */
long compute(volatile int *at, long rounds);
extern const char compute_end[];
__asm__(".text\n .globl compute\n .type compute, @function\n compute:\n .cfi_startproc\n xor %eax, %eax\n"
        "1: inc %rax\n mov (%rdi), %ecx\n add %rcx, %rax\n mov 4(%rdi), %edx\n xor %edx, %ecx\n"
        " mov %ecx, 8(%rdi)\n dec %rax\n mov %edx, (%rdi)\n add %eax, 4(%rdi)\n adc $0, %rax\n"
        " cmp %ecx, %edx\n mov 12(%rdi), %ecx\n seta %cl\n movzbl %cl, %ecx\n add %ecx, 12(%rdi)\n"
        " dec %rsi\n jne 1b\n ret\n .cfi_endproc\n compute_end:\n .size compute, . - compute\n");

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t pc = (uintptr_t)regs[REG_RIP];
    if (pc < (uintptr_t)compute || pc >= (uintptr_t)compute_end) return;
    regs[REG_RSP] -= 8;
    *(greg_t *)regs[REG_RSP] = regs[REG_RIP];
    regs[REG_RIP] = (greg_t)preempt;
}

static long batch(volatile int *mine)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    long sum = 0;
    for (int i = 0; i < 64; i++)
        mine[i] = i * 17;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock); /* a new epoch: first accesses */
        pthread_mutex_unlock(&lock);
        sum = sum * 31 + compute(mine, 50);
    }
    return sum;
}

/* Counts batches that came out differently. */
static void *work(void *which)
{
    const long mine = (long)which;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    struct itimerspec often = {{0, INTERVAL}, {0, INTERVAL}};
    timer_t timer;
    event._sigev_un._tid = gettid();
    const long expected = batch(numbers[mine]);
    long wrong = 0;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    while (__atomic_load_n(&preempted, __ATOMIC_RELAXED) < WANTED)
        wrong += batch(numbers[mine]) != expected;
    timer_delete(timer);
    results[mine] = expected;
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGURG, &action, NULL);
    long wrong = 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("%ld %ld, %ld wrong\n", results[0], results[1], wrong);
    return wrong != 0;
}
