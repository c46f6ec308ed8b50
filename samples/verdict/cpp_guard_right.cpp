/* Static objects in functions, in templates and in lambdas; a constructor that throws the first time; thread_local
 * objects with destructors.
 *
 * Category: cpp-once
 * Verdict: no race: the compiler's guards order construction before every use. */
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

static std::atomic<int> attempts{0};
static std::mutex mutex;
static long total;

struct Fragile {
    int value;
    Fragile() : value(0)
    {
        if (attempts.fetch_add(1) == 0) throw 1; // NORACE: atomic
        value = 7;                               // NORACE: before the guard opens
    }
};

struct Counter {
    long count = 0;
    ~Counter()
    {
        std::lock_guard<std::mutex> guard(mutex);
        total += count; // NORACE: under the mutex
    }
};

template <int N> static int &slot()
{
    static int value = N * N + attempts.load() * 0; // NORACE: behind its guard
    return value;
}

__attribute__((noinline)) static int fragile()
{
    for (;;) {
        try {
            static Fragile object;
            return object.value + 1; // NORACE: constructed
        } catch (int) {
        }
    }
}

static void work(int *result)
{
    thread_local Counter counter;
    for (int i = 0; i < 20; i++)
        counter.count++; // NORACE: thread-local
    *result = fragile() + slot<3>() + slot<4>(); // NORACE: own result; the slots are only read
}

int main()
{
    int results[3];
    {
        std::thread one(work, &results[0]), two(work, &results[1]), three(work, &results[2]);
        one.join();
        two.join();
        three.join();
    }
    std::printf("%d %d %d, total %ld\n", results[0], results[1], results[2], total); // NORACE: after the joins
    return 0;
}
