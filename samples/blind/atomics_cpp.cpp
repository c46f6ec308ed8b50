/* std::atomic and std::atomic_flag: a spin lock made of one, a shared pointer made of the other.
 *
 * Category: atomics-cpp
 * Verdict: a race on `Stats::sloppy`, which the report thread reads while workers write it under the spin lock.
 * `exact` is read under the lock, `fast` is atomic, and the configuration is published with release and acquire. */
#include <atomic>
#include <cstdio>
#include <thread>
#include <unistd.h>

class SpinLock {
    std::atomic_flag flag_ = ATOMIC_FLAG_INIT;

public:
    void lock()
    {
        while (flag_.test_and_set(std::memory_order_acquire))
            std::this_thread::yield();
    }
    void unlock() { flag_.clear(std::memory_order_release); }
};

struct Config {
    int step;
};

struct Stats {
    SpinLock lock;
    long exact = 0;
    std::atomic<long> fast{0};
    long sloppy = 0;
};

Stats stats;
std::atomic<Config *> config{nullptr};

static void work()
{
    Config *current;
    while (!(current = config.load(std::memory_order_acquire))) // NORACE: atomic
        std::this_thread::yield();
    int step = current->step; // NORACE: after the acquire
    for (int i = 0; i < 100; i++) {
        stats.fast.fetch_add(step, std::memory_order_relaxed); // NORACE: atomic
        stats.lock.lock();
        stats.exact += step;  // NORACE: under the spin lock
        stats.sloppy += step; // RACE sloppy: with the report
        stats.lock.unlock();
    }
}

static void report(long *result)
{
    usleep(2000); // the workers are under way, but nothing orders them
    long sum = stats.sloppy; // RACE sloppy: before any lock is taken
    stats.lock.lock();
    sum += stats.exact; // NORACE: under the spin lock
    stats.lock.unlock();
    sum += stats.fast.load(); // NORACE: atomic
    *result = sum;            // NORACE: read after the join
}

int main()
{
    long reported = 0;
    std::thread one(work), two(work), three(report, &reported);
    Config *fresh = new Config;
    fresh->step = 3; // NORACE: before the release
    config.store(fresh, std::memory_order_release);
    one.join();
    two.join();
    three.join();
    std::printf("exact %ld, fast %ld\n", stats.exact, stats.fast.load()); // NORACE: after the joins
    delete fresh;
    return reported < 0;
}
