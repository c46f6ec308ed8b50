/* A class with a thread that runs one of its member functions, right.
 *
 * Category: cpp-thread
 * Verdict: no race. The thread object is a member, too: to call a function that is not virtual, the new thread does not look at
 * the first word of the object, which start() is about to write. */
#include <cstdio>
#include <thread>

class Worker {
public:
    void start()
    {
        thread = std::thread(&Worker::run, this); // NORACE: the thread does not read `thread`
    }
    long stop()
    {
        thread.join();
        return sum; // NORACE: after the join
    }

private:
    void run()
    {
        for (int i = 0; i < 100; i++)
            sum += i; // NORACE: the only thread
    }
    std::thread thread;
    long sum = 0;
};

int main()
{
    Worker worker;
    worker.start();
    std::printf("%ld\n", worker.stop());
    return 0;
}
