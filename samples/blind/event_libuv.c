/* A libuv loop with its thread pool: work callbacks run in pool threads, all others in the loop's thread.
 *
 * Category: event-loop
 * Build: -luv
 * Verdict: a race on `pool_steps`, which several work callbacks write at once. Each request's own fields pass from the
 * loop to the pool and back, and what the after-work and timer callbacks share is shared within one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

enum { REQUESTS = 8 };

struct request {
    uv_work_t work;
    int input;
    int output;
};

uv_timer_t timer;
int pool_steps;
int finished;
int ticks;
long sum;

static void on_work(uv_work_t *work)
{
    struct request *request = work->data;
    usleep(1000);
    pool_steps++;                                // RACE pool_steps: other pool threads
    request->output = request->input * 2;        // NORACE: it is this pool thread's now
}

static void on_done(uv_work_t *work, int status)
{
    struct request *request = work->data;
    if (status == 0) sum += request->output; // NORACE: handed back to the loop
    finished++;                              // NORACE: loop thread only
    free(request);
    if (finished == REQUESTS) uv_timer_stop(&timer); // NORACE: loop thread only
}

static void on_timer(uv_timer_t *handle)
{
    (void)handle;
    ticks += finished < REQUESTS; // NORACE: loop thread only
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, on_timer, 1, 1);
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = malloc(sizeof *request);
        if (!request) return 2;
        request->input = i; // NORACE: before it is queued
        request->work.data = request;
        uv_queue_work(loop, &request->work, on_work, on_done);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    printf("sum %ld of %d requests\n", sum, finished); // NORACE: loop thread
    return ticks < 0 || pool_steps > REQUESTS;         // NORACE: all requests are done
}
