/* Sites of all kinds of room: for a jump, next to room for one, in front of jump targets, of one byte. Every way to
 * inject a check is needed, and what the code computes must stay the same, with all signals blocked too.
 *
 * Prints one number per function, twice: first with one thread, then with two and all signals blocked; and what the program
 * does itself with the signal of traps. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static unsigned char from[256], to[256];

/* Room: five bytes and more in one block. */
__attribute__((noinline)) static long roomy(const int *p)
{
    long sum = 0;
    for (int i = 0; i < 8; i++)
        sum += p[i] * 3L + p[i + 8];
    return sum;
}

/* No room: each access is two bytes long, and each next instruction is jumped to. */
long tight(const long *p, long count);
__asm__(".text\n .globl tight\n .type tight, @function\n tight:\n"
        " xor %eax, %eax\n"
        "1: test $1, %sil\n je 2f\n"
        " mov (%rdi), %ecx\n" /* 2 bytes */
        "2: add %rcx, %rax\n"
        " test $2, %sil\n je 3f\n"
        " mov (%rdi), %edx\n"
        "3: add %rdx, %rax\n"
        " dec %rsi\n jne 1b\n"
        " ret\n .size tight, . - tight\n");

/* One byte each, with targets between them. */
long bytes(const void *source, void *target, long count);
__asm__(".text\n .globl bytes\n .type bytes, @function\n bytes:\n"
        " xchg %rdi, %rsi\n mov %rdx, %rcx\n xor %eax, %eax\n xor %edx, %edx\n"
        "1: test $3, %cl\n je 2f\n"
        " lodsb\n" /* 1 byte */
        "2: stosb\n"
        "3: add %rax, %rdx\n"
        " test $5, %cl\n jne 4f\n"
        " movsb\n"
        "4: dec %rcx\n jne 1b\n"
        " mov %rdx, %rax\n ret\n .size bytes, . - bytes\n");

/* Calls through memory, and a call right behind an access of two bytes. */
__attribute__((noinline)) static long twice(long n)
{
    return 2 * n;
}
static long (*const volatile table[4])(long) = {twice, twice, twice, twice};
long calls(long (*const volatile *t)(long), const long *p);
__asm__(
    ".text\n .globl calls\n .type calls, @function\n calls:\n .cfi_startproc\n"
    " push %rbx\n .cfi_def_cfa_offset 16\n push %rbp\n .cfi_def_cfa_offset 24\n push %rsi\n .cfi_def_cfa_offset 32\n"
    " mov %rdi, %rbx\n mov %rsi, %rbp\n xor %edi, %edi\n"
    " mov (%rsi), %edi\n call *(%rbx)\n"
    " mov %rax, %rdi\n call *8(%rbx)\n"
    " mov %rax, %rdi\n mov 16(%rbx), %rax\n mov %rax, (%rsp)\n call *(%rsp)\n"
    " pop %rsi\n pop %rbp\n pop %rbx\n ret\n .cfi_endproc\n .size calls, . - calls\n");

/* loop and jrcxz in what is displaced. */
long loops(const int *p, long count);
__asm__(".text\n .globl loops\n .type loops, @function\n loops:\n"
        " xor %eax, %eax\n mov %rsi, %rcx\n jrcxz 2f\n"
        "1: add (%rdi), %eax\n loop 1b\n"
        "2: ret\n .size loops, . - loops\n");

static int ints[32];
static long longs[8];

static void work(void)
{
    for (int i = 0; i < 256; i++)
        from[i] = (unsigned char)(i * 37);
    for (int i = 0; i < 32; i++)
        ints[i] = i * i;
    for (int i = 0; i < 8; i++)
        longs[i] = i + 5;
    memset(to, 0, sizeof to);
    printf("%ld", roomy(ints));
    printf(" %ld", tight(longs, 50));
    long sum = bytes(from, to, 100);
    for (int i = 0; i < 256; i++)
        sum = sum * 31 + to[i];
    printf(" %ld", sum);
    printf(" %ld", calls(table, longs));
    printf(" %ld %ld\n", loops(ints + 3, 20), loops(ints, 0));
    fflush(stdout);
}

static int undefined;

static void on_undefined(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    undefined++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* For the analysis nothing comes behind it. */
static void undefine(void)
{
    __asm__ volatile("ud2");
    printf("%d undefined\n", undefined);
}

static void *blocked(void *unused)
{
    sigset_t all, now;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    printf("%d %d inherited\n", sigismember(&now, SIGILL), sigismember(&now, SIGTRAP));
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    work();
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    printf("%d %d blocked\n", sigismember(&now, SIGILL), sigismember(&now, SIGTRAP));
    return unused;
}

static void on_signal(int number)
{
    printf("signal %d: ", number);
    work();
}

/* Handlers that run while all but theirs is blocked. */
static void wait_masked(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t one, most;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigfillset(&most);
    sigdelset(&most, SIGUSR1);
    raise(SIGUSR1);
    sigsuspend(&most);
    raise(SIGUSR1);
    printf("ppoll %d\n", ppoll(NULL, 0, NULL, &most));
    raise(SIGUSR1);
    printf("pselect %d\n", pselect(0, NULL, NULL, NULL, NULL, &most));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* The signal of traps, by everything that installs handlers or blocks signals. */
static void install(void)
{
    struct sigaction now;
    signal(SIGILL, on_signal);
    raise(SIGILL);
    printf("signal %d\n", __sysv_signal(SIGILL, on_signal) == on_signal);
    raise(SIGILL);
    sigaction(SIGILL, NULL, &now);
    printf("once %d\n", now.sa_handler == SIG_DFL);
    work();
    printf("sigset %d\n", sigset(SIGILL, on_signal) == SIG_DFL);
    raise(SIGILL);
    printf("held %d\n", sigset(SIGILL, SIG_HOLD) == on_signal);
    work();
    printf("released %d\n", sigset(SIGILL, on_signal) == SIG_HOLD);
    sighold(SIGILL);
    work();
    sigrelse(SIGILL);
    raise(SIGILL);
    sigignore(SIGILL);
    raise(SIGILL);
    work();
    signal(SIGILL, SIG_DFL);
    const int before = sigblock(~0);
    work();
    sigsetmask(before);
}

/* The same by system calls of its own, as Go and Free Pascal make them, and by libc's function for them. Not in main, whose end is behind `undefine`. */
static long call_system(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
}

static long call_libc(long number, long a, long b, long c, long d)
{
    return syscall(number, a, b, c, d);
}

typedef struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
} kernel_action;

void come_back(void);
__asm__(".text\n .globl come_back\n .type come_back, @function\n come_back:\n mov $15, %eax\n syscall\n .size come_back, . - come_back\n");

__attribute__((noinline)) static void install_by_system(long (*call)(long number, long a, long b, long c, long d))
{
    enum { RESTORER = 0x04000000 };
    const kernel_action action = {on_signal, RESTORER, come_back, ~0ul};
    kernel_action old = {0};
    unsigned long all = ~0ul, mask = 7;
    printf("%ld", call(SYS_rt_sigaction, SIGILL, (long)&action, (long)&old, 8));
    printf(" default %d\n", old.handler == SIG_DFL);
    raise(SIGILL);
    printf("%ld", call(SYS_rt_sigaction, SIGILL, 0, (long)&old, 8));
    printf(" %d %lx\n", old.handler == on_signal, old.mask | 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1));
    call(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8);
    printf("%ld", call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&mask, 8));
    printf(" %lx\n", mask);
    raise(SIGUSR1);
    work();
    unsigned long now;
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, (long)&now, 8);
    printf("was %d\n", (int)(now >> (SIGILL - 1) & 1));
    work();
    printf("%ld %ld", call(SYS_rt_sigaction, SIGKILL, (long)&action, 0, 8), call(SYS_rt_sigaction, SIGUSR1, 8, 0, 8));
    printf(" %ld %ld\n", call(SYS_rt_sigprocmask, 77, (long)&all, 0, 8), call(SYS_rt_sigprocmask, SIG_BLOCK, 0, 8, 8));
    signal(SIGILL, SIG_DFL);
}

int main(void)
{
    pthread_t other;
    work();
    struct sigaction action = {.sa_sigaction = on_undefined, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    undefine();
    work();
    undefine();
    wait_masked();
    install();
    install_by_system(call_system);
    install_by_system(call_libc);
    pthread_create(&other, NULL, blocked, NULL);
    pthread_join(other, NULL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    pthread_create(&other, NULL, blocked, NULL);
    pthread_detach(other);
    pthread_exit(NULL);
}
