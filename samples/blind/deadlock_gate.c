/* Opposite lock orders that cannot deadlock, since both threads hold a third lock, the gate, around them.
 *
 * Category: no-deadlock
 * Alarm: gcc clang helgrind: their lock order knows no gates.
 * Verdict: neither deadlock nor race. The lock acquisitions are marked NORACE: a deadlock reported on them is a false
 * alarm. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 100 };

pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t rows = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t columns = PTHREAD_MUTEX_INITIALIZER;
int row_count, column_count;

static void *by_row(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&gate);
        pthread_mutex_lock(&rows);    // NORACE: no deadlock, behind the gate
        pthread_mutex_lock(&columns); // NORACE: no deadlock, behind the gate
        row_count++;                  // NORACE: under three locks
        pthread_mutex_unlock(&columns);
        pthread_mutex_unlock(&rows);
        pthread_mutex_unlock(&gate);
    }
    return NULL;
}

static void *by_column(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&gate);
        pthread_mutex_lock(&columns); // NORACE: no deadlock, behind the gate
        pthread_mutex_lock(&rows);    // NORACE: no deadlock, behind the gate
        column_count += row_count;    // NORACE: under three locks
        pthread_mutex_unlock(&rows);
        pthread_mutex_unlock(&columns);
        pthread_mutex_unlock(&gate);
        pthread_mutex_lock(&columns);
        column_count++; // NORACE: under `columns`
        pthread_mutex_unlock(&columns);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, by_row, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, by_column, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", row_count);          // NORACE: after the joins
    return column_count < ROUNDS; // NORACE: after the joins
}
