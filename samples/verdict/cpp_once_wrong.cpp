/* std::call_once, wrong: main looks whether the table is there without passing it.
 *
 * Category: cpp-thread
 * Verdict: race on `table`. */
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

static std::once_flag flag;
static int *table;

static int look(int at)
{
    std::call_once(flag, [] {
        int *made = new int[4]();
        usleep(500);
        table = made; // RACE table
        usleep(500);
    });
    return table[at]; // NORACE: after call_once
}

int main()
{
    int seen = 0;
    std::thread other([&seen] { seen = look(2); });
    usleep(500);
    bool early = table != nullptr; // RACE table
    other.join();
    std::printf("%d %d\n", early, seen);
    return 0;
}
