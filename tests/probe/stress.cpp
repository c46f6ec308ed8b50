// Everything that an engine inside of a process can break, in one program with an output that is always the same:
// signals at any time, faults, fork, vfork, exec, dlopen, exceptions, longjmp, cancellation, deep recursion on a small
// stack, vector registers, destructors of threads. What a handler is shown must lie in the code of some module.
//
//   stress PLUGIN
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <immintrin.h>
#include <link.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

// --- what handlers see ------------------------------------------------------------------------------------------------

struct text {
    uintptr_t start, end;
};
static text texts[256];
static std::atomic<int> text_count;
static std::atomic<long> ticks, strange;

static int add_text(dl_phdr_info *info, size_t, void *)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &h = info->dlpi_phdr[i];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_X) || text_count >= 256) continue;
        texts[text_count++] = {info->dlpi_addr + h.p_vaddr, info->dlpi_addr + h.p_vaddr + h.p_memsz};
    }
    return 0;
}

static bool is_code(uintptr_t pc)
{
    for (int i = 0; i < text_count; i++)
        if (pc >= texts[i].start && pc < texts[i].end) return true;
    return false;
}

static std::atomic<long> touched[64];

static void on_tick(int, siginfo_t *, void *context)
{
    const ucontext_t *uc = (const ucontext_t *)context;
    int saved = errno;
    if (!is_code((uintptr_t)uc->uc_mcontext.gregs[REG_RIP])) strange++;
    long n = ticks++;
    touched[n & 63] += n;
    errno = saved;
}

static void start_ticking(int microseconds)
{
    struct sigaction action = {};
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, nullptr);
}

// --- work -------------------------------------------------------------------------------------------------------------

static int numbers[4096];

__attribute__((noinline)) static uint64_t mix(uint64_t seed)
{
    uint64_t sum = seed;
    for (unsigned i = 0; i < 4096; i++) {
        numbers[i] = (int)(seed * i + (sum >> 7));
        sum = sum * 31 + (uint64_t)numbers[(i * 7) & 4095];
        if (sum & 64) sum ^= (uint64_t)numbers[i & 511] << 3;
    }
    return sum;
}

__attribute__((noinline, target("avx2"))) static uint64_t vectors(const int *from, int *to, unsigned count)
{
    __m256i total = _mm256_setzero_si256();
    for (unsigned i = 0; i + 8 <= count; i += 8) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(from + i));
        total = _mm256_add_epi32(total, _mm256_mullo_epi32(v, _mm256_set1_epi32((int)i | 1)));
        _mm256_storeu_si256((__m256i *)(to + i), _mm256_add_epi32(v, total));
    }
    int parts[8];
    _mm256_storeu_si256((__m256i *)parts, total);
    uint64_t sum = 0;
    for (int part : parts)
        sum = sum * 1000003 + (uint32_t)part;
    return sum;
}

__attribute__((noinline)) static double floats(const double *values, unsigned count)
{
    double sum = 0, product = 1;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i] * 0.5;
        product *= 1 + values[i] / 1e6;
    }
    return sum + product;
}

// --- parts ------------------------------------------------------------------------------------------------------------

static sigjmp_buf out;
static uintptr_t fault_address, fault_pc;

static void on_fault(int, siginfo_t *info, void *context)
{
    fault_address = (uintptr_t)info->si_addr;
    fault_pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(out, 1);
}

__attribute__((noinline)) static int read_at(const int *at)
{
    return at[3] + at[5];
}

static void faults()
{
    struct sigaction action = {}, old;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old);
    long caught = 0, in_place = 0;
    for (volatile int i = 0; i < 200; i++) {
        if (!sigsetjmp(out, 1))
            caught -= read_at((const int *)(uintptr_t)(4096 * (i % 3)));
        else
            caught++;
        in_place += fault_pc >= (uintptr_t)read_at && fault_pc < (uintptr_t)read_at + 32;
    }
    sigaction(SIGSEGV, &old, nullptr);
    printf("faults %ld, in place %ld, at %#lx\n", caught, in_place, (unsigned long)(fault_address % 4096));
}

struct guard {
    long &count;
    ~guard() { count++; }
};

__attribute__((noinline)) static long thrower(int depth, long &unwound)
{
    guard g{unwound};
    if (depth == 0) throw std::runtime_error("deep");
    return thrower(depth - 1, unwound) + 1;
}

static void exceptions()
{
    long unwound = 0, caught = 0;
    auto work = [](long *u, long *c) {
        for (int i = 0; i < 100; i++) {
            try {
                thrower(i % 20, *u);
            } catch (const std::runtime_error &e) {
                *c += (long)strlen(e.what());
            }
        }
    };
    long u2 = 0, c2 = 0;
    std::thread other(work, &u2, &c2);
    work(&unwound, &caught);
    other.join();
    printf("exceptions %ld %ld %ld %ld\n", unwound, caught, u2, c2);
}

static jmp_buf jump;

__attribute__((noinline)) static void jumper(int depth)
{
    volatile int pad[16];
    pad[depth & 15] = depth;
    if (depth == 0) longjmp(jump, 7);
    jumper(depth - 1);
    pad[0]++;
}

static void jumps()
{
    volatile long count = 0;
    for (volatile int i = 0; i < 300; i++) {
        int code = setjmp(jump);
        if (code == 0) jumper(i % 30);
        count += code;
    }
    printf("jumps %ld\n", (long)count);
}

static void processes()
{
    long codes = 0;
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            std::thread t([i] { numbers[i] = (int)mix((uint64_t)i); });
            t.join();
            _exit((int)(mix((uint64_t)i) & 31) + 1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        codes = codes * 3 + WEXITSTATUS(status);
    }
    for (int i = 0; i < 4; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 9", nullptr};
            char *const nothing[] = {nullptr};
            execve("/bin/sh", argv, nothing);
            _exit(1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        codes = codes * 3 + WEXITSTATUS(status);
    }
    codes += WEXITSTATUS(system("exit 5"));
    printf("processes %ld\n", codes);
}

static void plugins(const char *path)
{
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        void *handle = dlopen(path, RTLD_NOW);
        if (!handle) {
            printf("no plugin: %s\n", dlerror());
            return;
        }
        auto f = (long (*)(long))dlsym(handle, "plugin_work");
        sum += f(i);
        dlclose(handle);
    }
    printf("plugins %ld\n", sum);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long guarded, cleaned;
static bool waiting;

static void cleanup(void *)
{
    guarded++; // the mutex is held again
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

static void *waiter(void *)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(cleanup, nullptr);
    waiting = true;
    guarded++;
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return nullptr;
}

static void cancellation()
{
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        waiting = false;
        pthread_create(&t, nullptr, waiter, nullptr);
        for (;;) {
            pthread_mutex_lock(&mutex);
            bool there = waiting;
            guarded += there;
            pthread_mutex_unlock(&mutex);
            if (there) break;
            usleep(200);
        }
        pthread_cancel(t);
        void *result;
        pthread_join(t, &result);
        if (result != PTHREAD_CANCELED) printf("not cancelled\n");
    }
    printf("cancellation %ld %ld\n", guarded, cleaned);
}

__attribute__((noinline)) static long recurse(long depth, long *deepest)
{
    volatile long here[4] = {depth, depth + 1, 0, 0};
    if (depth > *deepest) *deepest = depth;
    if (depth >= 500) return here[1];
    return recurse(depth + 1, deepest) + here[0];
}

static void *deep(void *result)
{
    long deepest = 0;
    *(long *)result = recurse(0, &deepest) + deepest;
    return nullptr;
}

static void recursion()
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    long results[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], &small, deep, &results[i]);
    for (pthread_t t : threads)
        pthread_join(t, nullptr);
    printf("recursion %ld %ld\n", results[0], results[3]);
}

static std::atomic<long> destroyed;
struct counted {
    long value = 0;
    ~counted() { destroyed += value; }
};
static thread_local counted mine;

static void destructors()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; i++)
        threads.emplace_back([i] { mine.value = i + 1; });
    for (std::thread &t : threads)
        t.join();
    printf("destructors %ld\n", destroyed.load());
}

int main(int argc, char **argv)
{
    dl_iterate_phdr(add_text, nullptr);
    uint64_t sums[2] = {0, 0};
    std::thread background([&] {
        for (int i = 0; i < 30; i++)
            sums[1] ^= (uint64_t)i * 7919;
    });
    background.join();
    std::atomic<bool> stop{false};
    long spins[1] = {0};
    std::thread company([&] { // so that there is more than one thread, and checks are made
        while (!stop)
            spins[0]++, usleep(500);
    });
    start_ticking(300);
    for (int i = 0; i < 60; i++)
        sums[0] = sums[0] * 5 + mix((uint64_t)i);
    static int to[4096];
    static double values[512];
    for (int i = 0; i < 512; i++)
        values[i] = i * 1.25;
    uint64_t vector_sum = 0;
    double float_sum = 0;
    for (int i = 0; i < 60; i++) {
        vector_sum = vector_sum * 3 + vectors(numbers, to, 4096);
        float_sum += floats(values, 512);
    }
    printf("mix %lx %lx vectors %lx floats %.9g\n", (unsigned long)sums[0], (unsigned long)sums[1],
           (unsigned long)vector_sum, float_sum);
    faults();
    exceptions();
    jumps();
    cancellation();
    recursion();
    destructors();
    itimerval off = {};
    setitimer(ITIMER_REAL, &off, nullptr);
    fflush(stdout);
    processes();
    if (argc > 1) plugins(argv[1]);
    stop = true;
    company.join();
    printf("strange %ld\n", strange.load());
    return ticks > 0 ? 0 : 3;
}
