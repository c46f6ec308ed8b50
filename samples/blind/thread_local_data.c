/* Data that looks shared, since many threads run the same code on the same names, but is not: thread-local variables
 * and locals. And two that escape: the address of a local, and of a thread-local.
 *
 * Category: thread-local
 * Verdict: races on `lent` (main's local, given to two threads) and, through `window`, on main's copy of `depth`.
 * `calls`, `buffer` and `history` have an instance per thread. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 100 };

__thread int calls;
__thread int depth;
static _Thread_local int history[8];

struct loan {
    int *lent;
    int *window;
};

__attribute__((noinline)) static int recurse(int n)
{
    char buffer[64];
    memset(buffer, n, sizeof buffer); // NORACE: a frame of its own
    calls++;                          // NORACE: thread-local
    history[calls % 8] = n;           // NORACE: thread-local
    return n ? recurse(n - 1) + buffer[n] : 0;
}

__attribute__((noinline)) static void bump(int *counter)
{
    (*counter)++; // NORACE: called with locals only
}

static void *work(void *argument)
{
    struct loan *loan = argument; // NORACE: read only
    int own = 0;
    for (int i = 0; i < ROUNDS; i++) {
        recurse(3);
        bump(&own);
    }
    depth = own;        // NORACE: this thread's
    *loan->lent += own; // RACE lent: both threads have the pointer
    return (void *)(long)*loan->window; // RACE window: the thread-local of another thread
}

int main(void)
{
    pthread_t threads[2];
    int lent = 0, kept = 0;
    depth = 5; // NORACE: before the creates
    struct loan loan = {&lent, &depth};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &loan)) return 2;
    depth = 6;   // RACE window
    bump(&kept); // NORACE: never lent
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    recurse(2);
    printf("kept %d, calls %d\n", kept, calls); // NORACE: main's own
    return lent > 2 * ROUNDS;                   // NORACE: after the joins
}
