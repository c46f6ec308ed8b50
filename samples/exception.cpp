/* C++: std::thread, std::mutex, and an exception that passes through a thread's frames.
 *
 *   exception [ROUNDS]
 *
 * The way into the landing pads is control flow like any other: what the handler does belongs to the thread.
 * Verdict: one race, on `caught`, which both threads write in their handlers. `parsed` is guarded. */
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

std::mutex lock;
long parsed; // guarded by lock
long caught;

__attribute__((noinline)) static long parse(long number)
{
    if (number % 7 == 3) throw std::invalid_argument("three too many");
    return number / 2;
}

static void work(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        try {
            long value = parse(i);
            std::lock_guard<std::mutex> guard(lock);
            parsed += value; // NORACE: under the lock
        } catch (const std::invalid_argument &) {
            caught++; // RACE
        }
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? std::atol(argv[1]) : 200;
    std::thread one(work, rounds), two(work, rounds);
    one.join();
    two.join();
    std::printf("parsed %ld\n", parsed);     // NORACE: after the joins
    return caught > 2 * rounds ? 1 : 0; // NORACE: after the joins
}
