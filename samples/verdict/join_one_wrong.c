/* Threads with numbers, joined one by one, wrong: main looks at the element of a thread that it has not joined yet, at one that lies
 * across two elements, and on a way that leaves the join out.
 *
 * Category: fork-join
 * Verdict: races on `results[1]`, `wide[1]` and `sometimes[2]`. `results[0]` is read after its thread was joined. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { CHILDREN = 3 };

int results[CHILDREN];
int wide[CHILDREN + 1];
int sometimes[CHILDREN];

static void *compute(void *argument)
{
    long me = (long)argument;
    usleep(300u * (unsigned)me);
    results[me] = (int)me + 10; // RACE result: main has joined another
    wide[me] = 1;               // RACE wide: of main and of the thread before
    usleep(200);
    wide[me + 1] = 2; // RACE wide: of main and of the thread behind
    sometimes[me] = 3; // RACE sometimes: joined on one way only
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[CHILDREN];
    (void)words;
    for (long i = 0; i < CHILDREN; i++)
        if (pthread_create(&threads[i], NULL, compute, (void *)i)) return 2;
    pthread_join(threads[0], NULL);
    int sum = results[0]; // NORACE: joined
    sum += results[1];    // RACE result: not joined yet
    sum += wide[1];       // RACE wide: the next thread writes it too
    pthread_join(threads[1], NULL);
    if (count > 1) pthread_join(threads[2], NULL);
    sum += sometimes[2]; // RACE sometimes
    if (count <= 1) pthread_join(threads[2], NULL);
    puts(sum > 0 ? "done" : "?");
    return 0;
}
