/* libuv: uv_async_send wakes the loop from another thread (rightly used for `sent`), uv_thread and uv_mutex (rightly),
 * and a counter that the thread and the loop share without anything.
 *
 * Category: event-loop
 * Build: -luv
 * Verdict: a race on `loose` between the thread and the async callback. What was written before uv_async_send may be
 * read in its callback: the wake goes through a descriptor and atomics inside of libuv. */
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

enum { MESSAGES = 5 };

uv_async_t async, stop;
uv_mutex_t lock;
int sent[MESSAGES];
int next_sent;
int highest;
int callbacks;
int loose;
int guarded;

static void on_async(uv_async_t *handle)
{
    (void)handle;
    callbacks++; // NORACE: loop thread only
    loose += 2;  // RACE loose
    uv_mutex_lock(&lock);
    guarded++;           // NORACE: under the lock
    highest = next_sent; // NORACE: under the lock
    uv_mutex_unlock(&lock);
}

static void on_stop(uv_async_t *handle)
{
    uv_close((uv_handle_t *)handle, NULL);
    uv_close((uv_handle_t *)&async, NULL);
}

static void talk(void *unused)
{
    (void)unused;
    for (int i = 0; i < MESSAGES; i++) {
        sent[i] = i * i; // NORACE: read after the join
        uv_mutex_lock(&lock);
        next_sent = i + 1; // NORACE: under the lock
        guarded++;         // NORACE: under the lock
        uv_mutex_unlock(&lock);
        uv_async_send(&async);
        usleep(300);
        loose++; // RACE loose: the callback may be running
        usleep(300);
    }
    uv_async_send(&stop);
}

int main(void)
{
    uv_thread_t talker;
    int sum = 0;
    uv_loop_t *loop = uv_default_loop();
    uv_mutex_init(&lock);
    uv_async_init(loop, &async, on_async);
    uv_async_init(loop, &stop, on_stop);
    if (uv_thread_create(&talker, talk, NULL)) return 2;
    uv_run(loop, UV_RUN_DEFAULT);
    uv_thread_join(&talker);
    for (int i = 0; i < MESSAGES; i++)
        sum += sent[i]; // NORACE: after the join
    printf("sum %d\n", sum);
    return callbacks > MESSAGES || highest > MESSAGES || loose > 3 * MESSAGES; // NORACE: after the join
}
