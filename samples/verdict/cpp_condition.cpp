/* A queue with std::condition_variable, member functions as threads, and a container that is moved between them.
 *
 * Category: cpp-thread
 * Verdict: a race on `Worker::idle_`, which main reads while the worker runs. The queue is under its mutex, and the
 * vectors that pass through it belong to one thread at a time. */
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

class Queue {
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::vector<int>> items_;

public:
    void push(std::vector<int> item)
    {
        std::lock_guard<std::mutex> guard(mutex_);
        items_.push_back(std::move(item)); // NORACE: under the mutex
        changed_.notify_one();
    }

    std::vector<int> pop()
    {
        std::unique_lock<std::mutex> guard(mutex_);
        changed_.wait(guard, [this] { return !items_.empty(); }); // NORACE: under the mutex
        std::vector<int> item = std::move(items_.front());        // NORACE: under the mutex
        items_.pop_front();                                       // NORACE: under the mutex
        return item;
    }
};

class Worker {
    Queue &queue_;
    long sum_ = 0;
    int idle_ = 0;
    std::thread thread_;

    void run()
    {
        for (;;) {
            std::vector<int> item = queue_.pop();
            if (item.empty()) break;
            for (int value : item)
                sum_ += value; // NORACE: read after the join
            idle_++;           // RACE idle
            usleep(50);
        }
    }

public:
    explicit Worker(Queue &queue) : queue_(queue), thread_(&Worker::run, this) {}
    bool idle() const;
    long finish()
    {
        thread_.join();
        return sum_; // NORACE: after the join
    }
};

/* Outside of the class: of an inline function gcc makes a clone that gets the value, and the read moves to its caller. */
__attribute__((noinline)) bool Worker::idle() const
{
    return idle_ > 0; // RACE idle
}

int main()
{
    Queue queue;
    Worker worker(queue);
    int idle = 0;
    for (int i = 1; i <= 20; i++) {
        queue.push(std::vector<int>(5, i));
        idle += worker.idle();
        usleep(50);
    }
    queue.push({});
    std::printf("sum %ld\n", worker.finish());
    return idle > 20;
}
