/* Two threads with a lambda each, right: each runs its own one, once, and has its own variable.
 *
 * Category: cpp-thread
 * Verdict: no race. Compilers put both states into one temporary of main, one after the other: that does not make either
 * thread run the lambda of the other. */
#include <cstdio>
#include <string>
#include <thread>

static long left;
static long right;

static void fill(long *to, const std::string &text)
{
    for (char c : text)
        *to += c; // NORACE: a variable for each thread
}

int main()
{
    std::thread a([] {
        left++; // NORACE: this lambda is run by one thread
    });
    std::thread b([] {
        right++; // NORACE: the other one by the other
    });
    a.join();
    b.join();
    std::printf("%ld\n", left + right); // NORACE: after the joins

    long first = 0, second = 0;
    std::thread c([&first] { fill(&first, "one"); });
    c.join();
    std::thread d([&second, value = left] {
        second += value; // NORACE: read after the join
    });
    d.join();
    std::printf("%ld %ld\n", first, second); // NORACE: after the joins
    return 0;
}
