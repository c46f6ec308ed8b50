/* std::call_once, right: whoever has passed it sees what was made.
 *
 * Category: cpp-thread
 * Verdict: no race. */
#include <cstdio>
#include <mutex>
#include <thread>

static std::once_flag flag;
static int *table;

static int look(int at)
{
    std::call_once(flag, [] {
        table = new int[4]; // NORACE: once, before anybody looks
        for (int i = 0; i < 4; i++)
            table[i] = i * i; // NORACE: once, before anybody looks
    });
    return table[at]; // NORACE: after call_once
}

int main()
{
    int seen = 0;
    std::thread other([&seen] { seen = look(2); });
    int mine = look(3);
    other.join();
    std::printf("%d %d\n", mine, seen);
    return 0;
}
