/* A vector of threads, right: what the lambdas capture by value is their own, what they capture by reference has a lock.
 *
 * Category: cpp-thread
 * Verdict: no race. The state of each thread is filled before it starts, and nobody but the thread destroys it. */
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

int main()
{
    std::mutex mutex;
    long sum = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&mutex, &sum, i] { // NORACE: captured before the thread runs
            long square = i * i;                 // NORACE: its own copy
            std::lock_guard<std::mutex> guard(mutex);
            sum += square; // NORACE: under the lock
        });
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%ld\n", sum); // NORACE: after the joins
    return 0;
}
