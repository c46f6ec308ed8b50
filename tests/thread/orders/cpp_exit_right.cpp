/* What a thread leaves behind when it ends: a promise that is kept, and a condition that is notified, after its last
 * destructor. Both are done inside the C++ library.
 *
 * Verdict: no race. */
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>

static int result, noted;
static bool is_done;
static std::mutex lock;
static std::condition_variable condition;

static void keep(std::promise<int> promise)
{
    result = 8; // NORACE: before the thread ends
    promise.set_value_at_thread_exit(3);
}

static void notify()
{
    std::unique_lock<std::mutex> guard(lock);
    noted = 5; // NORACE: locked
    is_done = true;
    std::notify_all_at_thread_exit(condition, std::move(guard));
}

int main()
{
    std::promise<int> promise;
    std::shared_future<int> future = promise.get_future().share();
    std::thread keeper(keep, std::move(promise));
    std::thread other([future] {
        future.wait();
        std::printf("%d\n", result); // NORACE: after the promise is kept
    });
    int sum = future.get();
    sum += result; // NORACE: after the promise is kept
    std::thread notifier(notify);
    {
        std::unique_lock<std::mutex> guard(lock);
        condition.wait(guard, [] { return is_done; });
        sum += noted; // NORACE: locked
    }
    keeper.join();
    other.join();
    notifier.join();
    std::printf("%d\n", sum);
    return 0;
}
