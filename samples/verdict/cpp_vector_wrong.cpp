/* A vector of threads, wrong: a counter that is captured by reference has no lock, and main looks at the sum while they run.
 *
 * Category: cpp-thread
 * Verdict: races on `calls` and, between main and the threads, on `sum`. */
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

int main()
{
    std::mutex mutex;
    long sum = 0, calls = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&mutex, &sum, &calls, i] { // NORACE: captured before the thread runs
            long square = i * i;                         // NORACE: its own copy
            usleep(500);
            {
                std::lock_guard<std::mutex> guard(mutex);
                sum += square; // RACE sum
            }
            calls++; // RACE calls
            usleep(500);
        });
    usleep(500);
    std::printf("%ld\n", sum); // RACE sum
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%ld %ld\n", sum, calls); // NORACE: after the joins
    return 0;
}
