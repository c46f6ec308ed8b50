/* Fields of one struct, reached through pointers: races are per field, not per object.
 *
 *   struct_fields [ROUNDS]
 *
 * Verdict: one race, on `account.audits`. The writer alone touches `account.deposits`, the auditor alone touches
 * `account.checks`, and `account.balance` is guarded by the lock inside the struct. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct account {
    pthread_mutex_t lock;
    long balance;  /* guarded by lock */
    int deposits;  /* of the depositing thread */
    short checks;  /* of the auditing thread */
    char audits;   /* of both, and nothing guards it */
    int rounds;    /* written before the threads start */
};

struct account account = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *deposit(void *argument)
{
    struct account *a = argument;
    for (int i = 0; i < a->rounds; i++) { // NORACE: written before the thread was created
        pthread_mutex_lock(&a->lock);
        a->balance += i; // NORACE: under the lock
        pthread_mutex_unlock(&a->lock);
        a->deposits++; // NORACE: this thread's own field
    }
    a->audits++; // RACE
    return NULL;
}

static void *audit(void *argument)
{
    struct account *a = argument;
    for (int i = 0; i < a->rounds; i++) { // NORACE: written before the thread was created
        pthread_mutex_lock(&a->lock);
        if (a->balance < 0) // NORACE: under the lock
            abort();
        pthread_mutex_unlock(&a->lock);
        a->checks++; // NORACE: this thread's own field
    }
    a->audits++; // RACE
    return NULL;
}

int main(int argc, char **argv)
{
    account.rounds = argc > 1 ? atoi(argv[1]) : 1000; // NORACE: before the threads
    pthread_t depositor, auditor;
    if (pthread_create(&depositor, NULL, deposit, &account) || pthread_create(&auditor, NULL, audit, &account))
        return 2;
    pthread_join(depositor, NULL);
    pthread_join(auditor, NULL);
    printf("balance %ld after %d deposits and %d checks\n", account.balance, account.deposits,
           account.checks); // NORACE: after the joins
    return account.audits > 2; // NORACE: after the joins
}
