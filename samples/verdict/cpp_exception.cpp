/* Exceptions and guards: unwinding releases the lock, so what the handler does is outside of it.
 *
 * Category: cpp-locks
 * Verdict: a race on `Ledger::failures`, counted in the handler, after the guard is gone. `entries`, changed before the
 * throw, is inside; a handler within the guard's scope is inside too. */
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>

struct Ledger {
    std::mutex mutex;
    int entries = 0;
    int failures = 0;
    int repaired = 0;
};

static Ledger ledger;

__attribute__((noinline)) static void check(int value)
{
    if (value % 3 == 0) throw std::runtime_error("three");
}

__attribute__((noinline)) static void enter(int value)
{
    std::lock_guard<std::mutex> guard(ledger.mutex);
    ledger.entries++; // NORACE: inside
    try {
        check(value + 1);
    } catch (const std::exception &) {
        ledger.repaired++; // NORACE: the guard is outside of this handler
    }
    check(value);
}

static void work()
{
    for (int i = 0; i < 30; i++) {
        try {
            enter(i);
        } catch (const std::exception &) {
            ledger.failures++; // RACE failures: the guard is gone
            usleep(20);
        }
    }
}

int main()
{
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("entries %d, repaired %d\n", ledger.entries, ledger.repaired); // NORACE: after the joins
    return ledger.failures > 20;                                              // NORACE: after the joins
}
