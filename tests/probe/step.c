/* A tracer that sends a signal at every instruction which is not the program's: inside of trampolines, and of the
 * first instructions that they call. The program's handler looks whether what it is shown is its own state.
 *
 *   step kernel     what is traced: a loop with known relations between its registers, between two stops
 *   step PROGRAM [CALLED]   steps `PROGRAM kernel` from the one stop to the other, where PROGRAM is this one too; CALLED: how
 *                   many of those first instructions (16); LD_PRELOAD and RACE_OPTIONS of the program are taken from
 *                   STEP_PRELOAD and STEP_OPTIONS
 *
 * The output of the kernel must be what it is without a tracer. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* --- the program that is traced ----------------------------------------------------------------------------------- */

static volatile int numbers[64];
static long handled, strange;
static struct {
    uintptr_t start, end;
} texts[64];
static int text_count;

static int add_text(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || text_count == 64) continue;
        texts[text_count].start = info->dlpi_addr + h->p_vaddr;
        texts[text_count++].end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
    }
    return 0;
}

/* The loop's registers have fixed relations, whenever it is interrupted: rbx + r12 is 1000, or 1001 between two
 * instructions; r14 is never changed; the stack pointer is always the same but for one push. */
uintptr_t kernel_start, kernel_end, kernel_stack; /* the assembly names them */

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uintptr_t pc = (uintptr_t)r[REG_RIP];
    handled++;
    bool known = false;
    for (int i = 0; i < text_count; i++)
        known |= pc >= texts[i].start && pc < texts[i].end;
    if (!known) strange++;
    if (pc >= kernel_start && pc < kernel_end) {
        const long sum = r[REG_RBX] + r[REG_R12];
        if ((sum != 1000 && sum != 1001) || r[REG_R14] != 0x1234567890) strange++;
        if ((uintptr_t)r[REG_RSP] != kernel_stack && (uintptr_t)r[REG_RSP] != kernel_stack - 8) strange++;
    }
}

__attribute__((noinline)) static long kernel(volatile int *at)
{
    long result;
    __asm__ volatile(
        "lea 0f(%%rip), %%rax; mov %%rax, kernel_start(%%rip)\n"
        "lea 9f(%%rip), %%rax; mov %%rax, kernel_end(%%rip)\n"
        "mov %%rsp, kernel_stack(%%rip)\n"
        "mov $0x1234567890, %%r14\n mov $1000, %%rbx\n xor %%r12d, %%r12d\n"
        "xor %%eax, %%eax\n"
        "0: mov (%1), %%ecx\n" /* flags live over the next access */
        "cmp %%ecx, %%r12d\n"
        "mov 4(%1), %%edx\n"
        "seta %%dl\n movzbl %%dl, %%edx\n add %%rdx, %%rax\n"
        "addl $3, 8(%1)\n adc $0, %%rax\n"
        "inc %%r12\n dec %%rbx\n"
        "mov %%eax, 12(%1)\n mov 12(%1), %%ecx\n xor %%ecx, 16(%1)\n"
        "push %%rax\n pop %%rax\n"
        "mov 32(%1), %%rcx\n cmp %%ecx, %%r12d\n jmp 2f\n" /* a word that is not aligned, in words that were read */
        "2: mov 33(%1), %%edx\n seta %%dl\n movzbl %%dl, %%edx\n add %%rdx, %%rax\n"
        "cmpb $0, 20(%1)\n jne 1f\n incl 24(%1)\n 1:\n"
        "cmp $2, %%r12\n jb 0b\n add %%r14, %%rax\n sub %%r14, %%rax\n add %%rbx, %%rax\n sub $998, %%rax\n"
        "9: mov %%rax, %0\n"
        : "=r"(result)
        : "r"(at)
        : "rax", "rcx", "rdx", "rbx", "r12", "r14", "memory", "cc");
    return result;
}

static void *company(void *stop)
{
    while (!*(_Atomic int *)stop)
        usleep(1000);
    return NULL;
}

static int run_kernel(bool stops)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic int stop;
    pthread_t other;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    dl_iterate_phdr(add_text, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&other, NULL, company, &stop);
    for (int i = 0; i < 64; i++)
        numbers[i] = i * 17;
    if (stops) raise(SIGSTOP);
    long first = kernel(numbers), second = kernel(numbers);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    second += kernel(numbers); /* the first accesses of an epoch, where the same have been before */
    ((void (*)(void))_r_debug.r_brk)(); /* what the loader calls when it has loaded something */
    if (stops) raise(SIGSTOP);
    stop = 1;
    pthread_join(other, NULL);
    printf("%ld %ld %d %d %d\n", first, second, numbers[2], numbers[4], numbers[6]);
    fprintf(stderr, "strange %ld of %ld\n", strange, handled);
    return strange != 0;
}

/* --- the tracer --------------------------------------------------------------------------------------------------- */

/* Is the address in no file? */
static bool is_foreign(pid_t pid, uintptr_t pc)
{
    static struct {
        uintptr_t start, end;
        bool foreign;
    } known[64];
    static unsigned count;
    for (unsigned i = 0; i < count; i++)
        if (pc >= known[i].start && pc < known[i].end) return known[i].foreign;
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    bool foreign = false;
    while (maps && count < 64 && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2 || pc < start || pc >= end) continue;
        foreign = !strchr(line, '/') && !strchr(line, '[');
        known[count].start = start;
        known[count].end = end;
        known[count++].foreign = foreign;
    }
    if (maps) fclose(maps);
    return foreign;
}

static int trace(char **argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (getenv("STEP_PRELOAD")) setenv("LD_PRELOAD", getenv("STEP_PRELOAD"), 1);
        if (getenv("STEP_OPTIONS")) setenv("RACE_OPTIONS", getenv("STEP_OPTIONS"), 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[1], (char *[]){argv[1], (char *)"kernel", (char *)"stops", NULL});
        _exit(127);
    }
    int status;
    enum { FRAME = 600 }; /* the frame of a signal is larger */
    const long called = argv[2] ? atol(argv[2]) : 16;
    long steps = 0, sent = 0, since = called;
    bool stepping = false, in_handler = false;
    uintptr_t last = 0, base = 0;
    waitpid(pid, &status, 0);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        const int signal = WSTOPSIG(status);
        int pass = 0;
        struct user_regs_struct regs;
        ptrace(PTRACE_GETREGS, pid, NULL, &regs);
        if (signal == SIGSTOP) {
            stepping = !stepping;
            base = regs.rsp;
        } else if (signal != SIGTRAP) {
            pass = signal;
        } else if (stepping) {
            steps++;
            if (in_handler) ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), 0);
            in_handler = false; /* it is over: the breakpoint was hit */
            const bool foreign = is_foreign(pid, regs.rip);
            since = foreign ? 0 : since + 1;
            const bool in_kernel = regs.rsp + FRAME > base && regs.rsp < base + FRAME; /* not in a late handler */
            if (in_kernel && regs.rip != last && (foreign || since < called)) {
                last = regs.rip;
                ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), last);
                ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]), 1);
                pass = SIGUSR1; /* as if the signal had come here */
                in_handler = true;
                sent++;
            }
        }
        ptrace(stepping && !in_handler ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, (void *)(long)pass);
    }
    fprintf(stderr, "%ld steps, %ld signals\n", steps, sent);
    if (WIFEXITED(status) && !WEXITSTATUS(status)) return sent ? 0 : 3;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && !strcmp(argv[1], "kernel")) return run_kernel(argc == 3);
    if (argc == 2 || argc == 3) return trace(argv);
    fprintf(stderr, "usage: step PROGRAM [CALLED]\n");
    return 2;
}
