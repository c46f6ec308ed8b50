/* Vector registers in loops of older SSE instructions, which librace.so puts `vzeroupper` into where it changes nothing
 * (runtime/dynamorio/upper.c).
 *
 *   upper keep     what is in the registers stays there, whatever part of them is not zero, in two threads; prints what was looked at
 *   upper speed    prints how many times as long a loop takes as one that the program has put vzeroupper in front of */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REGISTERS = 32, WORDS = 16, ROUNDS = 100000 };

typedef struct {
    uint32_t word[REGISTERS][WORDS];
} registers;

#define EACH16(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define EACH32(f) EACH16(f) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23) f(24) f(25) f(26) f(27) f(28) f(29) f(30) f(31)
#define LOAD_YMM(i) "vmovdqu " #i "*64(%0), %%ymm" #i "\n"
#define LOAD_ZMM(i) "vmovdqu64 " #i "*64(%0), %%zmm" #i "\n"
#define STORE_YMM(i) "vmovdqu %%ymm" #i ", " #i "*64(%0)\n"
#define STORE_ZMM(i) "vmovdqu64 %%zmm" #i ", " #i "*64(%0)\n"

/* Every 1024 rounds rt_sigprocmask(0, NULL, NULL, 8), which DynamoRIO leaves its code for. */
#define LOOP                                                                                                                             \
    "mov %1, %%r12d\n"                                                                                                                   \
    "1: paddd %%xmm1, %%xmm0\n"                                                                                                          \
    "test $1023, %%r12d\n"                                                                                                               \
    "jnz 2f\n"                                                                                                                           \
    "xor %%edi, %%edi\n xor %%esi, %%esi\n xor %%edx, %%edx\n mov $8, %%r10d\n mov $14, %%eax\n syscall\n"                               \
    "2: dec %%r12d\n"                                                                                                                    \
    "jnz 1b\n"
#define CLOBBERS                                                                                                                         \
    "rax", "rcx", "rdx", "rsi", "rdi", "r10", "r11", "r12", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",     \
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

static __attribute__((noinline)) void run_avx(registers *r)
{
    __asm__ volatile(EACH16(LOAD_YMM) LOOP EACH16(STORE_YMM) "vzeroupper\n" : : "b"(r), "i"(ROUNDS) : CLOBBERS);
}

static __attribute__((noinline, target("avx512f"))) void run_avx512(registers *r)
{
    __asm__ volatile(EACH32(LOAD_ZMM) LOOP EACH32(STORE_ZMM) "vzeroupper\n"
                     :
                     : "b"(r), "i"(ROUNDS)
                     : CLOBBERS, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",
                       "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}

/* The words [begin, end) of the registers [first, last] are not zero, nor is the lower part of any. */
static void fill(registers *r, int first, int last, int begin, int end)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < REGISTERS; i++)
        for (int w = 0; w < WORDS; w++)
            if (w < 4 || (i >= first && i <= last && w >= begin && w < end)) r->word[i][w] = (uint32_t)(i * 0x01010101 + w + 1);
}

static void keep_one(void (*run)(registers *), int first, int last, int begin, int end)
{
    registers before, after;
    fill(&before, first, last, begin, end);
    after = before;
    run(&after);
    for (int w = 0; w < 4; w++)
        before.word[0][w] += ROUNDS * before.word[1][w];
    for (int i = 0; i < REGISTERS; i++)
        for (int w = 0; w < WORDS; w++)
            if (before.word[i][w] != after.word[i][w])
                printf("register %d word %d: %x instead of %x; not zero were %d to %d, %d to %d\n", i, w, after.word[i][w],
                       before.word[i][w], first, last, begin, end);
}

/* AVX-512 last: what DynamoRIO saves depends on whether the program has it. */
static void *keep(void *unused)
{
    keep_one(run_avx, 0, -1, 0, 0);
    keep_one(run_avx, 0, 15, 4, 8);
    for (int i = 0; i < 16; i++)
        keep_one(run_avx, i, i, 4 + i % 4, 5 + i % 4);
    if (__builtin_cpu_supports("avx512f")) {
        keep_one(run_avx512, 0, -1, 0, 0);
        keep_one(run_avx512, 0, 31, 4, 16);
        keep_one(run_avx512, 16, 31, 4, 16);
        for (int i = 0; i < 16; i++)
            keep_one(run_avx512, i, i, 8 + i % 8, 9 + i % 8);
        keep_one(run_avx, 3, 3, 4, 8);
    }
    return unused;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) double loop(float *a, const float *b, int clean)
{
    enum { FLOATS = 4096, TIMES = 20000 };
    const double start = now();
    for (int k = 0; k < TIMES; k++) {
        if (clean) __asm__ volatile("vzeroupper");
        for (int i = 0; i < FLOATS; i++)
            a[i] = a[i] * 0.999f + b[i];
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    return now() - start;
}

static void speed(void)
{
    static float a[4096], b[4096];
    double best[2] = {1e9, 1e9};
    for (int i = 0; i < 20; i++) {
        const int clean = i / 2 % 2;
        const double time = loop(a, b, clean);
        if (time < best[clean]) best[clean] = time;
    }
    printf("%.2f\n", best[0] / best[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "speed")) {
        speed();
        return 0;
    }
    printf("%s\n", __builtin_cpu_supports("avx512f") ? "AVX and AVX-512" : "AVX");
    pthread_t thread;
    pthread_create(&thread, NULL, keep, NULL);
    keep(NULL);
    pthread_join(thread, NULL);
    return 0;
}
