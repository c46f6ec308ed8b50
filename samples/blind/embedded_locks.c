/* Each object carries its lock. A transfer must hold both; here one version does, another takes the source's only.
 *
 * Category: embedded-lock
 * Verdict: a race on `balance` of the destination in `transfer_half`: the source's lock says nothing about it. All that
 * is reached through the object whose lock is held is right, also `owner->count` under the owner's own lock. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100 };

struct owner {
    pthread_mutex_t lock;
    int count;
};

struct account {
    struct owner *owner;
    pthread_mutex_t lock;
    long balance;
    long history;
};

static struct account *account_new(struct owner *owner)
{
    struct account *account = calloc(1, sizeof *account);
    if (!account) abort();
    pthread_mutex_init(&account->lock, NULL);
    account->owner = owner;
    account->balance = 1000; // NORACE: not shared yet
    return account;
}

__attribute__((noinline)) static void deposit(struct account *account, long amount)
{
    pthread_mutex_lock(&account->lock);
    account->balance += amount; // RACE balance: with transfer_half
    account->history++;         // NORACE: the lock of the same object
    pthread_mutex_unlock(&account->lock);
    pthread_mutex_lock(&account->owner->lock);
    account->owner->count++; // NORACE: the owner's lock, shared by its accounts
    pthread_mutex_unlock(&account->owner->lock);
}

__attribute__((noinline)) static void transfer_half(struct account *from, struct account *to)
{
    pthread_mutex_lock(&from->lock);
    from->history++;   // NORACE: the lock of the same object
    to->balance += 10; // RACE balance: the lock of another object
    pthread_mutex_unlock(&from->lock);
}

struct account *accounts[2];

static void *work(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        deposit(accounts[me], 1);
        deposit(accounts[!me], 1);
        transfer_half(accounts[me], accounts[!me]);
    }
    return NULL;
}

int main(void)
{
    struct owner owner = {PTHREAD_MUTEX_INITIALIZER, 0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        accounts[i] = account_new(&owner); // NORACE: before the creates
    for (long i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("history %ld, count %d\n", accounts[0]->history, owner.count); // NORACE: after the joins
    free(accounts[0]);
    free(accounts[1]);
    return 0;
}
