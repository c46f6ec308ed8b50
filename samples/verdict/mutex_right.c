/* One mutex, initialised dynamically, taken in helper functions and released on every way out.
 *
 * Category: mutex
 * Verdict: no race. The lock is taken in one function and released in another, and there are three ways out. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 200 };

static pthread_mutex_t lock;
static long stock, sold, refused;

static void open_shop(void)
{
    pthread_mutex_lock(&lock);
}

static void close_shop(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static int sell(int amount)
{
    open_shop();
    if (amount > 50) {
        refused++; // NORACE: under the lock
        close_shop();
        return -1;
    }
    if (stock < amount) { // NORACE: under the lock
        stock += 10;      // NORACE: under the lock
        close_shop();
        return 0;
    }
    stock -= amount; // NORACE: under the lock
    sold += amount;  // NORACE: under the lock
    close_shop();
    return 1;
}

static void *customer(void *argument)
{
    int step = *(int *)argument; // NORACE: written before the create
    for (int i = 0; i < ROUNDS; i++)
        sell(i % 60 + step);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int steps[3] = {0, 1, 2};
    pthread_mutex_init(&lock, NULL);
    stock = 1000; // NORACE: before the creates
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, customer, &steps[i])) return 2;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&lock);
    printf("refused %ld\n", refused); // NORACE: after the joins
    return stock < 0 || sold < 0;     // NORACE: after the joins
}
