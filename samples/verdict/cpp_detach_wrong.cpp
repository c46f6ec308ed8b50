/* std::thread objects that are destroyed while their threads run: one was detached, one was moved away.
 *
 * Category: cpp-thread
 * Verdict: races on `detached` and on `moved`. */
#include <cstdio>
#include <thread>
#include <unistd.h>

int detached, moved;
std::thread kept;

static void count_detached()
{
    for (int i = 0; i < 20; i++) {
        detached++; // RACE detached
        usleep(20);
    }
}

static void count_moved()
{
    for (int i = 0; i < 20; i++) {
        moved++; // RACE moved
        usleep(20);
    }
}

int main()
{
    int sum = 0;
    {
        std::thread one(count_detached);
        one.detach();
    }
    {
        std::thread two(count_moved);
        kept = std::move(two);
    }
    usleep(100);
    sum += detached; // RACE detached: still running
    usleep(20);
    sum += moved; // RACE moved: so is that one
    kept.join();
    usleep(20000);
    std::printf("%d\n", sum >= 0);
    return 0;
}
