/* Arrays of locks, rightly: the index of the lock and of the data are the same, or computed in the same way.
 *
 * Category: lock-array
 * Verdict: no race. */
#include <pthread.h>
#include <stdio.h>

enum { LOCKS = 8, BUCKETS = 64, ROUNDS = 200 };

static pthread_mutex_t locks[LOCKS];
static int buckets[BUCKETS];
static long per_lock[LOCKS];
static struct {
    pthread_mutex_t lock;
    long value;
} cells[LOCKS];

__attribute__((noinline)) static void add(unsigned key)
{
    unsigned bucket = key * 2654435761u % BUCKETS;
    pthread_mutex_t *lock = &locks[bucket % LOCKS];
    pthread_mutex_lock(lock);
    buckets[bucket]++;         // NORACE: this lock for every bucket of this remainder
    per_lock[bucket % LOCKS]++; // NORACE: the same index
    pthread_mutex_unlock(lock);
}

__attribute__((noinline)) static void add_cell(unsigned key)
{
    pthread_mutex_lock(&cells[key % LOCKS].lock);
    cells[key % LOCKS].value += key; // NORACE: lock and value in one element
    pthread_mutex_unlock(&cells[key % LOCKS].lock);
}

static void *work(void *argument)
{
    unsigned start = (unsigned)(long)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        add(start + i);
        add_cell(start + i);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    long sum = 0;
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&locks[i], NULL);
        pthread_mutex_init(&cells[i].lock, NULL);
    }
    for (long i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(10 * i))) return 2;
    for (int i = 0; i < LOCKS; i += 3) {
        pthread_mutex_lock(&locks[i]);
        sum += per_lock[i] < 0; // NORACE: the same index
        pthread_mutex_unlock(&locks[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < BUCKETS; i++)
        sum += buckets[i]; // NORACE: after the joins
    for (int i = 0; i < LOCKS; i++)
        sum += cells[i].value; // NORACE: after the joins
    printf("sum %ld\n", sum);
    return 0;
}
