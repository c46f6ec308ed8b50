/* A token that goes from main to a thread by its creation, and back by a semaphore; wrong where main creates two before it waits,
 * and where the thread goes on after its post.
 *
 * Category: semaphore
 * Verdict: races on `pair`, which two threads have at a time, and on `after`, written after the post. `alone` is right: the next
 * thread is created when the one before has posted. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

sem_t one_done, two_done;
int alone, pair, after;

static void *one(void *unused)
{
    (void)unused;
    usleep(200);
    alone++; // NORACE: created with the token
    sem_post(&one_done);
    usleep(100);
    after++; // RACE after: posted already
    return NULL;
}

static void *two(void *unused)
{
    (void)unused;
    usleep(200);
    pair++; // RACE pair: two of them are created at once
    sem_post(&two_done);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    sem_init(&one_done, 0, 0);
    sem_init(&two_done, 0, 0);
    for (int i = 0; i < 3; i++) {
        if (pthread_create(&thread, NULL, one, NULL)) return 2;
        pthread_detach(thread);
        sem_wait(&one_done);
        alone += 10; // NORACE: the thread has posted
    }
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, two, NULL)) return 2;
        pthread_detach(thread);
        if (pthread_create(&thread, NULL, two, NULL)) return 2;
        pthread_detach(thread);
        sem_wait(&two_done);
        pair += 10; // RACE pair: one of them may still run
        sem_wait(&two_done);
    }
    return alone < 33 || after > 3; // RACE after
}
