/* A debugger's breakpoints on code that is checked.
 *
 *   breaks run              prints what the kernel makes, twice: before and behind a stop
 *   breaks ADDRESS...       runs that with the environment's preloaded engine (BREAKS_PRELOAD, BREAKS_OPTIONS), with a breakpoint at each
 *                           of the addresses from the stop on; each is gone over as debuggers do it. Prints `hits N` on stderr. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    long a, b;
};
long table[64];
struct pair pairs[16];
unsigned char bytes[64];

__attribute__((noinline)) long kernel(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        table[i % 64] += i * 3;
        pairs[i % 16].a ^= table[(i + 7) % 64];
        pairs[i % 16].b = pairs[(i + 1) % 16].a + 5;
        bytes[i % 64]++;
        if (bytes[(i * 5) % 64] & 1) sum += pairs[i % 16].b;
    }
    return sum;
}

static void *other(void *arg)
{
    return arg;
}

static int run_kernel(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL)) return 2;
    printf("%ld\n", kernel(50));
    fflush(stdout);
    if (getenv("BREAKS_PRELOAD")) raise(SIGSTOP);
    printf("%ld\n", kernel(50));
    pthread_join(thread, NULL);
    return 0;
}

enum { MOST = 1000 };
static uint64_t at[MOST];
static uint8_t was[MOST];
static int count;

static void put(pid_t child, uint64_t addr, uint8_t byte)
{
    uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, child, addr & ~7ull, 0);
    memcpy((uint8_t *)&word + addr % 8, &byte, 1);
    ptrace(PTRACE_POKETEXT, child, addr & ~7ull, word);
}

static uint8_t get(pid_t child, uint64_t addr)
{
    uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, child, addr & ~7ull, 0);
    return (uint8_t)(word >> addr % 8 * 8);
}

static int number_of(uint64_t addr)
{
    for (int i = 0; i < count; i++)
        if (at[i] == addr) return i;
    return -1;
}

static int trace(pid_t child)
{
    long hits = 0, over = -1; /* the breakpoint that is being gone over */
    for (int deliver = 0;;) {
        int status;
        if (ptrace(over >= 0 ? PTRACE_SINGLESTEP : PTRACE_CONT, child, 0, deliver)) return 2;
        deliver = 0;
        if (waitpid(child, &status, 0) < 0) return 2;
        if (!WIFSTOPPED(status)) {
            fprintf(stderr, "hits %ld\n", hits);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (over >= 0) put(child, at[over], 0xcc);
        if (WSTOPSIG(status) != SIGTRAP) {
            over = -1;
            deliver = WSTOPSIG(status);
            continue;
        }
        struct user_regs_struct r;
        ptrace(PTRACE_GETREGS, child, 0, &r);
        int number = over >= 0 ? -1 : number_of(r.rip - 1);
        over = -1;
        if (number < 0) continue;
        hits++;
        r.rip--;
        ptrace(PTRACE_SETREGS, child, 0, &r);
        put(child, at[number], was[number]);
        over = number;
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "run")) return run_kernel();
    for (int i = 1; i < argc && count < MOST; i++)
        at[count++] = strtoull(argv[i], NULL, 16);
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        setenv("LD_PRELOAD", getenv("BREAKS_PRELOAD"), 1);
        setenv("RACE_OPTIONS", getenv("BREAKS_OPTIONS"), 1);
        execl(argv[0], argv[0], "run", (char *)NULL);
        _exit(2);
    }
    int status, deliver = 0;
    for (;;) { /* until it stops itself */
        if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) return 2;
        if (WSTOPSIG(status) == SIGSTOP) break;
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, child, 0, deliver);
    }
    for (int i = 0; i < count; i++)
        was[i] = get(child, at[i]);
    for (int i = 0; i < count; i++)
        put(child, at[i], 0xcc);
    return trace(child);
}
