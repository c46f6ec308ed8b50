/* A class with a thread that runs one of its member functions, wrong: the result is looked at before the thread is joined.
 *
 * Category: cpp-thread
 * Verdict: race on `sum`. */
#include <cstdio>
#include <thread>
#include <unistd.h>

class Worker {
public:
    void start()
    {
        thread = std::thread(&Worker::run, this); // NORACE: the thread does not read `thread`
    }
    long peek() const
    {
        return sum; // RACE sum
    }
    void stop()
    {
        thread.join();
    }

private:
    void run()
    {
        usleep(500);
        sum += 7; // RACE sum
        usleep(500);
    }
    std::thread thread;
    long sum = 0;
};

int main()
{
    Worker worker;
    worker.start();
    usleep(500);
    long seen = worker.peek();
    worker.stop();
    std::printf("%ld\n", seen);
    return 0;
}
