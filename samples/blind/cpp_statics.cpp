/* Initialisation that happens once in C++: a function's static object, std::call_once, and a naked pointer test.
 *
 * Category: cpp-once
 * Alarm: gcc clang: on the allocation, which ThreadSanitizer takes for a write of what is read here unordered.
 * Unseen: the write of the contents, when the allocation was reported in its place.
 * Verdict: races on `Registry::naked` and on the object that it publishes. The static object is guarded by the
 * compiler (__cxa_guard_acquire), call_once by the library. */
#include <cstdio>
#include <mutex>
#include <thread>

struct Registry {
    int size;
    int sum;
    int extra;
    explicit Registry(int n) : size(n), sum(0)
    {
        for (int i = 0; i < n; i++)
            sum += i;
    }
    static Registry *naked;
};

Registry *Registry::naked;
Registry *flagged;
std::once_flag flag;

static int seed()
{
    static volatile int value = 10;
    return value; // NORACE: nobody writes it
}

__attribute__((noinline)) static Registry &guarded()
{
    static Registry registry(seed());
    return registry;
}

__attribute__((noinline)) static Registry *once()
{
    std::call_once(flag, [] { flagged = new Registry(20); }); // NORACE: once
    return flagged;                                           // NORACE: after call_once
}

__attribute__((noinline)) static Registry *racy()
{
    Registry *known = Registry::naked; // RACE naked
    if (!known) {
        known = new Registry(5);
        known->extra = 6;        // RACE contents: nothing orders it before the other thread's read
        Registry::naked = known; // RACE naked
    }
    return known;
}

static void work(int *result)
{
    int sum = guarded().sum;  // NORACE: constructed before the guard lets anybody pass
    sum += once()->sum;       // NORACE: after call_once
    sum += racy()->extra - 6; // RACE contents
    *result = sum;            // NORACE: own result
}

int main()
{
    int results[2] = {0, 0};
    std::thread one(work, &results[0]), two(work, &results[1]);
    one.join();
    two.join();
    std::printf("%d %d\n", results[0], results[1]); // NORACE: after the joins
    return 0;
}
