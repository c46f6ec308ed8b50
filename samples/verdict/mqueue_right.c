/* Message queues: POSIX (mq_send, mq_receive) and System V (msgsnd, msgrcv). A job's data is written before its
 * message.
 *
 * Category: descriptor
 * Alarm: gcc clang helgrind drd: message queues are unknown to them.
 * Verdict: no race. Where the system has no message queues, it shows nothing. */
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <unistd.h>

enum { JOBS = 8 };

struct note {
    long type;
    int number;
};

static mqd_t posix_queue;
static int system_queue;
static int inputs[JOBS], outputs[JOBS];

static void *work(void *unused)
{
    (void)unused;
    char which;
    for (int i = 0; i < JOBS; i++) {
        if (mq_receive(posix_queue, &which, 1, NULL) != 1) return NULL;
        outputs[(int)which] = inputs[(int)which] * 2; // NORACE: input before the message, output before the note
        struct note note = {1, which};
        if (msgsnd(system_queue, &note, sizeof note.number, 0)) return NULL;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char name[64];
    long sum = 0;
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 1};
    snprintf(name, sizeof name, "/race-sample-%d", (int)getpid());
    posix_queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    system_queue = msgget(IPC_PRIVATE, 0600);
    if (posix_queue < 0 || system_queue < 0) {
        puts("sum 56"); // no queues here: nothing to show
        return 0;
    }
    mq_unlink(name);
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    for (char i = 0; i < JOBS; i++) {
        struct note note;
        inputs[(int)i] = i; // NORACE: before the message
        if (mq_send(posix_queue, &i, 1, 0)) return 1;
        if (msgrcv(system_queue, &note, sizeof note.number, 1, 0) < 0) return 1;
        sum += outputs[note.number]; // NORACE: after the note
    }
    pthread_join(thread, NULL);
    msgctl(system_queue, IPC_RMID, NULL);
    printf("sum %ld\n", sum);
    return 0;
}
