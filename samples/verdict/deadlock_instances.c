/* Transfers between accounts, each with its lock: a to b in one thread, b to a in the other. One line of the source
 * takes both locks. The second thread comes 100 ms later, so that the deadlock is possible but hardly ever strikes.
 *
 * Category: deadlock
 * Verdict: a deadlock between two runs of `transfer` on the same two accounts in opposite roles. No race. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct account {
    pthread_mutex_t lock;
    long balance;
};

struct order {
    struct account *from, *to;
    unsigned delay;
};

static struct account *account_new(long balance)
{
    struct account *account = malloc(sizeof *account);
    if (!account) abort();
    pthread_mutex_init(&account->lock, NULL);
    account->balance = balance; // NORACE: not shared yet
    return account;
}

__attribute__((noinline)) static void transfer(struct account *from, struct account *to, long amount)
{
    pthread_mutex_lock(&from->lock); // DEADLOCK
    pthread_mutex_lock(&to->lock);   // DEADLOCK
    from->balance -= amount;         // NORACE: its lock is held
    to->balance += amount;           // NORACE: its lock is held
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *work(void *argument)
{
    struct order *order = argument;
    usleep(order->delay);
    transfer(order->from, order->to, 10);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct account *a = account_new(100), *b = account_new(200);
    struct order orders[2] = {{a, b, 0}, {b, a, 100000}};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &orders[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", a->balance, b->balance); // NORACE: after the joins
    free(a);
    free(b);
    return 0;
}
