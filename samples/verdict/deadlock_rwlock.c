/* A cycle through a reader-writer lock and a mutex: a reader waits for the mutex, its holder waits to write. The second
 * thread comes 100 ms later.
 *
 * Category: deadlock
 * Verdict: a deadlock between `report` and `change`. `look` takes one lock
 * only. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
int rows, lines;

static void *report(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&table); // DEADLOCK
    pthread_mutex_lock(&output);   // DEADLOCK
    lines += rows;                 // NORACE: under both
    pthread_mutex_unlock(&output);
    pthread_rwlock_unlock(&table);
    return NULL;
}

static void *change(void *unused)
{
    (void)unused;
    usleep(100000);
    pthread_mutex_lock(&output);   // DEADLOCK
    pthread_rwlock_wrlock(&table); // DEADLOCK
    rows++;                        // NORACE: exclusive
    lines++;                       // NORACE: under `output`
    pthread_rwlock_unlock(&table);
    pthread_mutex_unlock(&output);
    return NULL;
}

static void *look(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&table);
    int seen = rows; // NORACE: writers are excluded
    pthread_rwlock_unlock(&table);
    return seen > 1 ? unused : NULL;
}

int main(void)
{
    void *(*const bodies[3])(void *) = {report, change, look};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, bodies[i], NULL)) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts(rows == 1 && lines >= 1 ? "done" : "?"); // NORACE: after the joins
    return 0;
}
