/* A cycle of C++ guards; beside it std::scoped_lock, which takes several locks without one. The second thread comes
 * 100 ms later.
 *
 * Category: deadlock
 * Verdict: a deadlock between `forward` and `backward`; `safe` takes the same locks with std::lock's algorithm, in both
 * orders, and cannot deadlock with itself. (`safe` runs before the others exist.) No race. */
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

std::mutex left, right;
int moves, safes;

static void forward()
{
    std::lock_guard<std::mutex> one(left);  // DEADLOCK
    std::lock_guard<std::mutex> two(right); // DEADLOCK
    moves++;                                // NORACE: both locks
}

static void backward()
{
    usleep(100000);
    std::unique_lock<std::mutex> one(right); // DEADLOCK
    std::unique_lock<std::mutex> two(left);  // DEADLOCK
    moves++;                                 // NORACE: both locks
}

static void safe(bool swapped)
{
    for (int i = 0; i < 20; i++) {
        std::scoped_lock both(swapped ? right : left, swapped ? left : right); // NORACE: backs off, no deadlock
        safes++;                                                               // NORACE: both locks
    }
}

int main()
{
    {
        std::thread one(safe, false), two(safe, true);
        one.join();
        two.join();
    }
    std::thread one(forward), two(backward);
    one.join();
    two.join();
    std::printf("moves %d, safes %d\n", moves, safes); // NORACE: after the joins
    return 0;
}
