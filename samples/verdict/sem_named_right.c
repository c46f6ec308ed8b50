/* Named semaphores (sem_open), and sem_getvalue, which orders nothing and is not relied upon.
 *
 * Category: semaphore
 * Verdict: no race. Where the system has no named semaphores, unnamed ones take their place. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static sem_t *turn[2], spare[2];
static long value;
static int looks;

static void *work(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int count;
        sem_wait(turn[me]);
        value = value * 3 % 1001 + me; // NORACE: our turn
        sem_getvalue(turn[!me], &count);
        looks += count > 1; // NORACE: our turn
        sem_post(turn[!me]);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "/race-sample-%d-%d", (int)getpid(), i);
        turn[i] = sem_open(name, O_CREAT | O_EXCL, 0600, i == 0);
        if (turn[i] == SEM_FAILED) {
            turn[i] = &spare[i];
            sem_init(turn[i], 0, i == 0);
        } else {
            sem_unlink(name);
        }
    }
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("value %ld, looks %d\n", value, looks); // NORACE: after the joins
    return 0;
}
