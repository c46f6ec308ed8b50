/* Futures, wrong: the task goes on after set_value, and main reads before it asks the future.
 *
 * Category: cpp-thread
 * Alarm: helgrind drd: atomics are no synchronisation to them.
 * Verdict: races on `after` (written after set_value) and on `unasked` (read before get). `before` is right. */
#include <cstdio>
#include <future>
#include <thread>
#include <unistd.h>

int before;
int after;
int unasked;

static int compute()
{
    usleep(500);
    unasked = 5; // RACE unasked
    usleep(500);
    return 1;
}

static void produce(std::promise<int> promise)
{
    before = 1; // NORACE: before set_value
    promise.set_value(2);
    usleep(10);
    after = 3; // RACE after
    usleep(10);
}

int main()
{
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread producer(produce, std::move(promise));
    std::future<int> other = std::async(std::launch::async, compute);
    int sum = future.get();
    sum += before; // NORACE: after get
    usleep(1000);
    sum += after;   // RACE after
    usleep(10);
    sum += unasked; // RACE unasked: not asked yet
    sum += other.get();
    producer.join();
    std::printf("%d\n", unasked); // NORACE: after get
    return sum > 20;
}
