/* Message queues, wrong: the receiver looks at the next job's data too, whose message it has not received.
 *
 * Category: descriptor
 * Alarm: gcc clang helgrind drd: message queues are unknown to them.
 * Verdict: a race on `inputs` between the look ahead and the sender. Where the system has no message queues, nothing
 * happens. */
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { JOBS = 8 };

mqd_t queue;
int inputs[JOBS + 1];

__attribute__((noinline)) int peek(int which)
{
    return inputs[which + 1] != 0; // RACE inputs: not announced yet
}

static void *work(void *unused)
{
    (void)unused;
    char which;
    int sum = 0;
    for (int i = 0; i < JOBS; i++) {
        if (mq_receive(queue, &which, 1, NULL) != 1) break;
        sum += inputs[(int)which] > 0; // NORACE: announced
        sum += peek(which);
    }
    return (void *)(long)sum;
}

int main(void)
{
    pthread_t thread;
    char name[64];
    void *sum;
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 1};
    snprintf(name, sizeof name, "/race-sample-%d", (int)getpid());
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    if (queue < 0) {
        puts("done"); // no queues here: nothing to show
        return 0;
    }
    mq_unlink(name);
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    for (char i = 0; i < JOBS; i++) {
        inputs[(int)i] = i + 1; // RACE inputs: the receiver looks ahead
        if (mq_send(queue, &i, 1, 0)) return 1;
        usleep(200);
    }
    pthread_join(thread, &sum);
    puts("done");
    return (long)sum > 2 * JOBS;
}
