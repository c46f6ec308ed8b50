/* std::shared_mutex and std::recursive_mutex: shared locks for reading; one function writes under a shared lock.
 *
 * Category: cpp-locks
 * Verdict: a race on `Table::lookups`, counted under the shared lock. `values`, `changes` and `depth` are right. */
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>

class Table {
    mutable std::shared_mutex mutex_;
    std::recursive_mutex nested_;
    int values_[16] = {};
    int changes_ = 0;
    int depth_ = 0;

public:
    long lookups = 0;

    int get(int i)
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        lookups++; // RACE lookups: readers are not alone
        usleep(20);
        return values_[i % 16]; // NORACE: writers exclude readers
    }

    void set(int i, int value)
    {
        std::unique_lock<std::shared_mutex> guard(mutex_);
        values_[i % 16] = value; // NORACE: exclusive
        changes_++;              // NORACE: exclusive
    }

    int changes() const
    {
        std::shared_lock<std::shared_mutex> guard(mutex_);
        return changes_; // NORACE: writers exclude readers
    }

    int descend(int levels)
    {
        std::lock_guard<std::recursive_mutex> guard(nested_);
        depth_++; // NORACE: under the recursive lock
        int result = levels ? descend(levels - 1) : depth_;
        depth_--; // NORACE: still under it
        return result;
    }
};

static Table table;

static void work()
{
    for (int i = 0; i < 30; i++) {
        table.get(i);
        if (i % 10 == 0) table.set(i, i);
        table.descend(3);
    }
}

int main()
{
    std::thread one(work), two(work), three(work);
    one.join();
    two.join();
    three.join();
    std::printf("changes %d, depth %d\n", table.changes(), table.descend(0));
    return table.lookups > 90; // NORACE: after the joins
}
