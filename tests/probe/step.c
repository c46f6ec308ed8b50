/* A tracer that sends a signal at every instruction which is not the program's: inside of trampolines, and of the
 * first instructions that they call. The program's handler looks whether what it is shown is its own state.
 *
 * `step kernel`, `step kinds`: what is traced, a loop with known relations between its registers, between two stops.
 *
 * `step PROGRAM LOOP [CALLED]` steps `PROGRAM LOOP` from the one stop to the other, where PROGRAM is this one too;
 * CALLED: how many of those first instructions (16); LD_PRELOAD and RACE_OPTIONS of the program are taken from
 * STEP_PRELOAD and STEP_OPTIONS.
 *
 * The output of the program must be what it is without a tracer. */
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

volatile int numbers[64]; /* the assembly names it, as what follows */
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

/* The loops' registers have fixed relations, whenever they are interrupted: rbx + r12 is 1000, or 1001 between two
 * instructions; r14 is never changed; the stack pointer is always the same but for one push. */
enum { KERNELS = 2 };
uintptr_t kernel_start[KERNELS], kernel_end[KERNELS], kernel_stack[KERNELS];

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
    for (int i = 0; i < KERNELS; i++) {
        if (pc < kernel_start[i] || pc >= kernel_end[i]) continue;
        const long sum = r[REG_RBX] + r[REG_R12];
        if ((sum != 1000 && sum != 1001) || r[REG_R14] != 0x1234567890) strange++;
        if ((uintptr_t)r[REG_RSP] != kernel_stack[i] && (uintptr_t)r[REG_RSP] != kernel_stack[i] - 8) strange++;
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

/* The same for all other kinds of instructions: atomic ones, of vectors, of strings, relative to the instruction
 * pointer, of the stack; with no room for a jump, in front of a target, and in what is called. */
__attribute__((noinline)) static long kinds(volatile int *at)
{
    long result;
    __asm__ volatile(
        "lea 0f(%%rip), %%rax; mov %%rax, 8+kernel_start(%%rip)\n"
        "lea 9f(%%rip), %%rax; mov %%rax, 8+kernel_end(%%rip)\n"
        "mov %%rsp, 8+kernel_stack(%%rip)\n"
        "mov %1, %%r15\n"
        "mov $0x1234567890, %%r14\n mov $1000, %%rbx\n xor %%r12d, %%r12d\n"
        "xor %%eax, %%eax\n"
        "0: mov $7, %%ecx\n lock xadd %%ecx, 80(%%r15)\n add %%rcx, %%rax\n"
        "mov $5, %%edx\n cmp %%edx, %%r12d\n xchg %%edx, 84(%%r15)\n adc %%rdx, %%rax\n" /* flags live over it */
        "mov %%rax, %%rsi\n mov $6, %%ecx\n mov 88(%%r15), %%eax\n lock cmpxchg %%ecx, 88(%%r15)\n sete %%cl\n"
        "movzbl %%cl, %%ecx\n lea (%%rsi, %%rcx), %%rax\n lock incl 92(%%r15)\n"
        "inc %%r12\n dec %%rbx\n"
        "movups 96(%%r15), %%xmm0\n movups %%xmm0, 112(%%r15)\n movsd 97(%%r15), %%xmm1\n movsd %%xmm1, 104(%%r15)\n"
        "mov 128+numbers(%%rip), %%ecx\n add %%rcx, %%rax\n"
        "lea 96(%%r15), %%rsi\n lea 160(%%r15), %%rdi\n mov $24, %%ecx\n rep movsb\n"
        "std\n lea 103(%%r15), %%rsi\n lea 199(%%r15), %%rdi\n mov $8, %%ecx\n rep movsb\n lodsb\n cld\n"
        "pushq 136(%%r15)\n popq 144(%%r15)\n"
        "test $1, %%r12b\n je 3f\n mov (%%r15), %%ecx\n 3: add %%rcx, %%rax\n" /* no room */
        "lea 200(%%r15), %%rdi\n test $1, %%r12b\n je 4f\n stosb\n 4: add $1, %%rax\n"
        "test $1, %%r12b\n je 5f\n lock\n 5: incl 204(%%r15)\n" /* a jump over a prefix: a trap at each of the two */
        "mov %%rax, %%r13\n mov $14, %%eax\n xor %%edi, %%edi\n xor %%esi, %%esi\n lea 208(%%r15), %%rdx\n mov $8, %%r10d\n"
        "syscall\n add %%r13, %%rax\n add 208(%%r15), %%rax\n" /* rt_sigprocmask, which the engine makes itself */
        "mov %%rax, %%r13\n mov $39, %%eax\n syscall\n mov %%r13, %%rax\n" /* getpid, which it does not */
        "call 7f\n jmp 8f\n 7: mov 148(%%r15), %%ecx\n add %%ecx, 152(%%r15)\n ret\n 8: add %%rcx, %%rax\n"
        "cmp $2, %%r12\n jb 0b\n"
        "9: mov %%rax, %0\n"
        : "=r"(result)
        : "r"(at)
        : "rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "memory", "cc");
    return result;
}

static void *company(void *stop)
{
    while (!*(_Atomic int *)stop)
        usleep(1000);
    return NULL;
}

static int run(long (*loop)(volatile int *), bool stops)
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
    long first = loop(numbers), second = loop(numbers);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    second += loop(numbers);            /* the first accesses of an epoch, where the same have been before */
    ((void (*)(void))_r_debug.r_brk)(); /* what the loader calls when it has loaded something */
    if (stops) raise(SIGSTOP);
    stop = 1;
    pthread_join(other, NULL);
    printf("%ld %ld", first, second);
    for (int i = 0; i < 64; i++)
        printf(" %d", numbers[i]);
    printf("\n");
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
        execv(argv[1], (char *[]){argv[1], argv[2], (char *)"stops", NULL});
        _exit(127);
    }
    int status;
    enum { FRAME = 600 }; /* the frame of a signal is larger */
    const long called = argv[3] ? atol(argv[3]) : 16;
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
    if (argc >= 2 && !strcmp(argv[1], "kernel")) return run(kernel, argc == 3);
    if (argc >= 2 && !strcmp(argv[1], "kinds")) return run(kinds, argc == 3);
    if (argc == 3 || argc == 4) return trace(argv);
    fprintf(stderr, "usage: step PROGRAM kernel|kinds [CALLED]\n");
    return 2;
}
