/* C++ locks that end with their scope, and two ways to be outside of it: past the brace, and after unlock().
 *
 * Category: cpp-locks
 * Verdict: races on `Account::touched`, written after the lock_guard's scope, and on `Account::peeked`, written after
 * unique_lock::unlock. `value` is always inside. */
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>

struct Account {
    std::mutex mutex;
    long value = 0;
    long touched = 0;
    long peeked = 0;
    long moved = 0;
};

Account first, second;

static void deposit(Account &account)
{
    {
        std::lock_guard<std::mutex> guard(account.mutex);
        account.value += 2; // NORACE: inside the guard
    }
    account.touched++; // RACE touched: outside of it
    usleep(50);
}

static bool withdraw(Account &account)
{
    std::unique_lock<std::mutex> guard(account.mutex);
    if (account.value == 0) return false; // NORACE: inside
    account.value--;                      // NORACE: inside
    guard.unlock();
    account.peeked++; // RACE peeked: unlocked by hand
    usleep(50);
    guard.lock();
    account.value--; // NORACE: locked again
    return true;
}

static void transfer(Account &from, Account &to)
{
    std::scoped_lock both(from.mutex, to.mutex);
    from.value--; // NORACE: both locks
    to.value++;   // NORACE: both locks
    from.moved++; // NORACE: both locks
}

static void work()
{
    for (int i = 0; i < 50; i++) {
        deposit(first);
        withdraw(first);
        transfer(first, second);
    }
}

int main()
{
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("second %ld, moved %ld\n", second.value, first.moved); // NORACE: after the joins
    return first.touched > 200 || first.peeked > 200;                  // NORACE: after the joins
}
