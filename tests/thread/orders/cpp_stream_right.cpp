/* Threads that format numbers: each stream looks at the global locale, which the library sets up once more when it is
 * first used by one of several threads, with a function that has already run before there were any.
 *
 * Verdict: no race. */
#include <cstdio>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

enum { THREADS = 6, ROUNDS = 3 };

static std::size_t sizes[THREADS];
static std::size_t all;
static std::mutex lock;

static void format(int number)
{
    std::ostringstream out;
    out << "number " << number * 2.5 << std::hex << number;
    sizes[number] += out.str().size(); // NORACE: each has its own
    std::lock_guard<std::mutex> guard(lock);
    all += out.str().size(); // NORACE: locked
}

int main()
{
    for (int round = 0; round < ROUNDS; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back(format, i);
        for (std::thread &thread : threads)
            thread.join();
    }
    std::printf("%zu\n", all); // NORACE: after the joins
    return 0;
}
