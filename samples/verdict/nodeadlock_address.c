/* Accounts whose locks are always taken in the order of their addresses, whichever way the money goes.
 *
 * Category: no-deadlock
 * Verdict: neither deadlock nor race. A static detector that does not understand the comparison sees the two locks
 * taken in both orders; then the warning is a false alarm and counts. At run time the order is seen to be one. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 100 };

struct account {
    pthread_mutex_t lock;
    long balance;
};

static struct account accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 1000}, {PTHREAD_MUTEX_INITIALIZER, 1000}};

__attribute__((noinline)) static void transfer(struct account *from, struct account *to, long amount)
{
    struct account *low = from < to ? from : to, *high = from < to ? to : from;
    pthread_mutex_lock(&low->lock);  // NORACE: no deadlock, lower address first
    pthread_mutex_lock(&high->lock); // NORACE: no deadlock, higher address second
    from->balance -= amount;         // NORACE: both locks
    to->balance += amount;           // NORACE: both locks
    pthread_mutex_unlock(&high->lock);
    pthread_mutex_unlock(&low->lock);
}

static void *work(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++)
        transfer(&accounts[me], &accounts[!me], 1 + me);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", accounts[0].balance, accounts[1].balance); // NORACE: after the joins
    return 0;
}
