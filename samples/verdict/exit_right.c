/* Ends: pthread_exit deep in a call, main that leaves by pthread_exit while others go on, a result by its return value.
 *
 * Category: detach
 * Verdict: no race. The last thread joins the others, main included, before it reads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_t main_thread;
static int from_main, from_worker;
static struct {
    int code;
} result;

__attribute__((noinline)) static void leave_deep(int code)
{
    result.code = code; // NORACE: read after the join
    pthread_exit(&result);
}

static void *worker(void *unused)
{
    (void)unused;
    from_worker = 3; // NORACE: read after the join
    leave_deep(7);
    return NULL;
}

static void *last(void *argument)
{
    void *value;
    pthread_join(*(pthread_t *)argument, &value); // NORACE: static in main
    int sum = from_worker;                        // NORACE: after the join
    sum += *(int *)value;                         // NORACE: after the join
    pthread_join(main_thread, NULL);
    sum += from_main; // NORACE: after the join of main
    printf("sum %d\n", sum);
    exit(0);
}

int main(void)
{
    static pthread_t first, second;
    main_thread = pthread_self();
    if (pthread_create(&first, NULL, worker, NULL)) return 2;
    if (pthread_create(&second, NULL, last, &first)) return 2;
    from_main = 5; // NORACE: read after main was joined
    pthread_exit(NULL);
}
