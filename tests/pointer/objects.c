/* Objects of every kind that libaccesses.so tells apart, each written by a function whose name says what has to be
 * recorded: see_KIND or see_KIND_WHAT; with an offset: see_KIND_WHAT_atN (N bytes, decimal; `m` in front: minus).
 * Built without optimisation by tests/pointer/test_oracle.sh. */
#define _GNU_SOURCE
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SEE(name)                                                                                                      \
    __attribute__((noinline)) static void see_##name(void *p)                                                          \
    {                                                                                                                  \
        *(volatile char *)p = 1;                                                                                       \
    }
SEE(heap_malloc_at5)
SEE(heap_calloc_at0)
SEE(heap_realloc_at100)
SEE(heap_aligned_at7)
SEE(heap_memalign_at3)
SEE(heap_map_at4097)
SEE(heap_tail_at2)
SEE(heap_again_at1)
SEE(library_strdup_at1)
SEE(library_getline_at0)
SEE(static_global)
SEE(static_array)
SEE(tls_main)
SEE(tls_thread)
SEE(tls_other)
SEE(frame_caller)
SEE(frame_thread)
SEE(frame_after_jump)
SEE(frame_in_handler)
SEE(frame_in_callback)
SEE(frame_on_alternate)
SEE(external_freed)
SEE(external_arguments)
SEE(external_callback)
SEE(external_signal)
SEE(external_libc)

/* Registers are loaded, used and dead again in turn, so that the recorder has to make room for itself in many ways. */
__attribute__((noinline)) static void see_heap_registers_at6(void *p)
{
    static long there[8];
    void *pointers[8] = {there, there, there, there, there, there, there, there};
    __asm__ volatile("push %%rbp\n"
                     "sub $32, %%rsp\n"
                     "mov %0, %%r12\n"
                     "mov 8(%%r12), %%rsi\n"
                     "mov 8(%%r12), %%r8\n"
                     "mov 8(%%r12), %%r14\n"
                     "mov 8(%%r12), %%r15\n"
                     "mov 8(%%r12), %%r13\n"
                     "test %%r12, %%r12\n"
                     "je 2f\n"
                     "mov (%%r12), %%rbp\n"
                     "mov 8(%%r12), %%r11\n"
                     "mov %%rdx, 24(%%rsp)\n"
                     "xor %%eax, %%eax\n"
                     "mov 32(%%r12), %%r10\n"
                     "mov 40(%%r12), %%r9\n"
                     "mov %%r13, 16(%%rsp)\n"
                     "mov 48(%%r12), %%rdi\n"
                     "mov 8(%%rsp), %%r13\n"
                     "1: movzwl (%%rbp, %%rax, 2), %%edx\n"
                     "mov %%dx, (%%r14, %%rax, 2)\n"
                     "movzwl (%%r11, %%rax, 2), %%edx\n"
                     "mov %%dx, (%%r15, %%rax, 2)\n"
                     "mov (%%r10, %%rax, 8), %%rdx\n"
                     "mov %%dl, (%%rcx, %%rax, 8)\n"
                     "movzwl (%%r9, %%rax, 2), %%edx\n"
                     "mov %%dx, (%%rsi, %%rax, 2)\n"
                     "movzwl (%%rdi, %%rax, 2), %%edx\n"
                     "mov %%dx, (%%r8, %%rax, 2)\n"
                     "inc %%rax\n"
                     "cmp $1, %%rax\n"
                     "jb 1b\n"
                     "2: add $32, %%rsp\n"
                     "pop %%rbp\n"
                     :
                     : "b"(pointers), "c"(p)
                     : "rax", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

/* The access comes right behind the call. */
__attribute__((noinline)) static void see_heap_at_once_at5(void)
{
    __asm__ volatile("mov $100, %%edi\n"
                     "call malloc@PLT\n"
                     "movb $1, 5(%%rax)\n"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static int global;
static char array[5000];
static _Thread_local int counter;
static jmp_buf back;

__attribute__((optimize("O2"), noinline)) static void *get(size_t size)
{
    return malloc(size); /* a jump */
}

__attribute__((noinline)) static void jump(int depth)
{
    volatile char deep[300] = {0};
    deep[depth] = 1;
    if (depth) jump(depth - 1);
    if (deep[0]) longjmp(back, 1);
}

static int compare(const void *a, const void *b)
{
    int local = 0;
    see_frame_in_callback(&local);
    return *(const int *)a - *(const int *)b;
}

static int visit(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    see_external_callback((void *)about);
    (void)path, (void)where;
    return kind - kind;
}

static void handler(int number, siginfo_t *info, void *context)
{
    int local = number;
    see_frame_in_handler(&local);
    see_external_signal(&((ucontext_t *)context)->uc_flags);
    (void)info;
}

static void alternate(int number)
{
    int local = number;
    see_frame_on_alternate(&local);
}

static void *thread(void *argument)
{
    int local = 0;
    see_frame_thread(argument);
    see_frame_thread(&local);
    see_tls_thread(&counter);
    see_tls_other(*(char **)((char *)argument + 8));
    return NULL;
}

__attribute__((noinline)) static void stack_arguments(long a, long b, long c, long d, long e, long f, long *g)
{
    see_frame_caller(g);
    (void)(a + b + c + d + e + f);
}

static void heap(void)
{
    char *volatile p = malloc(20);
    see_heap_malloc_at5(p + 5);
    see_heap_calloc_at0(calloc(3, 7));
    see_heap_registers_at6(p + 6);
    p = realloc(p, 2000000);
    see_heap_realloc_at100(p + 100);
    p = realloc(p, 3000000);
    see_heap_realloc_at100(p + 100);
    void *q;
    if (posix_memalign(&q, 256, 1000)) abort();
    see_heap_aligned_at7((char *)q + 7);
    see_heap_memalign_at3((char *)aligned_alloc(64, 128) + 3);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    see_heap_map_at4097(p + 4097);
    see_heap_tail_at2((char *)get(10) + 2);
    for (int i = 0; i < 10000; i++) {
        p = malloc((size_t)i % 100 + 2);
        see_heap_again_at1(p + 1);
        free(p);
    }
    p = malloc(10000);
    free(p);
    see_external_freed(p + 5000);
}

static void library(void)
{
    see_library_strdup_at1(strdup("some text") + 1);
    char *line = NULL;
    size_t room = 0;
    FILE *self = fopen("/proc/self/status", "r");
    if (!self || getline(&line, &room, self) < 0) abort();
    see_library_getline_at0(line);
    fclose(self);
}

static void signals(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&other, NULL);
    struct sigaction second = {.sa_handler = alternate, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &second, NULL);
    raise(SIGUSR2);
}

int main(int argc, char **argv)
{
    struct {
        long value;
        void *counter;
    } local = {argc, &counter};
    heap();
    see_heap_at_once_at5();
    library();
    see_static_global(&global);
    for (int i = 0; i < 5000; i++)
        see_static_array(array + i);
    see_tls_main(&counter);
    see_frame_caller(&local.value);
    stack_arguments(1, 2, 3, 4, 5, 6, &local.value);
    if (!setjmp(back)) jump(10);
    see_frame_after_jump(&local.value);
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    if (nftw("/dev/null", visit, 1, 0)) abort();
    signals();
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, thread, &local)) abort();
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    see_external_arguments(argv[0]);
    see_external_libc(&stdout->_flags2);
    return 0;
}
