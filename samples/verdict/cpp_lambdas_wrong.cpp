/* Two threads with a lambda each, wrong: the first also writes the variable of the second.
 *
 * Category: cpp-thread
 * Verdict: race on `right`. `left` is of one thread. */
#include <cstdio>
#include <thread>
#include <unistd.h>

static long left;
static long right;

int main()
{
    std::thread a([] {
        left++; // NORACE: this lambda is run by one thread
        usleep(500);
        right++; // RACE right
        usleep(500);
    });
    std::thread b([] {
        usleep(500);
        right++; // RACE right
        usleep(500);
    });
    a.join();
    b.join();
    std::printf("%ld\n", left + right); // NORACE: after the joins
    return 0;
}
