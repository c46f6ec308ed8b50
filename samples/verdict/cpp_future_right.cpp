/* std::async, std::promise and std::packaged_task: what the producer wrote is there when the future is ready.
 *
 * Category: cpp-thread
 * Alarm: helgrind drd: atomics are no synchronisation to them.
 * Verdict: no race. */
#include <cstdio>
#include <future>
#include <thread>

struct Report {
    int lines = 0;
    int words = 0;
};

static Report report;
static int side_effect;
static int inputs[8];

static int count_words()
{
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += inputs[i]; // NORACE: written before the task was started
    side_effect = sum;    // NORACE: read after get
    return sum;
}

int main()
{
    for (int i = 0; i < 8; i++)
        inputs[i] = i; // NORACE: before the tasks
    std::future<int> words = std::async(std::launch::async, count_words);
    std::promise<Report *> promise;
    std::future<Report *> lines = promise.get_future();
    std::thread writer([&promise] {
        report.lines = 3; // NORACE: before set_value
        promise.set_value(&report);
    });
    int sum = words.get();
    sum += side_effect;    // NORACE: after get
    Report *ready = lines.get();
    sum += ready->lines; // NORACE: after get
    ready->words = sum;  // NORACE: the writer is through with it
    writer.join();
    std::printf("%d\n", report.words); // NORACE: after the join
    return 0;
}
