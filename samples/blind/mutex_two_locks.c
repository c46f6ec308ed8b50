/* An account book where deposits take one mutex and withdrawals another: each side believes it is safe.
 *
 * Category: mutex
 * Verdict: a race on `balance`, since no lock is common to both sides. `deposits` and `withdrawals` each have one lock
 * that all their users take, `audits` is written under both locks and read under either. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 200 };

pthread_mutex_t deposit_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t withdraw_lock = PTHREAD_MUTEX_INITIALIZER;
long balance;
long deposits;
long withdrawals;
long audits;

static void *deposit(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&deposit_lock);
        balance += 10; // RACE balance
        deposits++;    // NORACE: always under deposit_lock
        pthread_mutex_unlock(&deposit_lock);
    }
    return NULL;
}

static void *withdraw(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&withdraw_lock);
        balance -= 10; // RACE balance
        withdrawals++; // NORACE: always under withdraw_lock
        if (audits > ROUNDS) // NORACE: the writer holds withdraw_lock too
            withdrawals--;   // NORACE: always under withdraw_lock
        pthread_mutex_unlock(&withdraw_lock);
    }
    return NULL;
}

static void audit(void)
{
    pthread_mutex_lock(&deposit_lock);
    pthread_mutex_lock(&withdraw_lock);
    audits++; // NORACE: under both locks
    pthread_mutex_unlock(&withdraw_lock);
    long done = deposits; // NORACE: under deposit_lock
    pthread_mutex_unlock(&deposit_lock);
    if (done > 2 * ROUNDS) puts("too many");
}

int main(void)
{
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, deposit, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, deposit, NULL)) return 2;
    if (pthread_create(&threads[2], NULL, withdraw, NULL)) return 2;
    for (int i = 0; i < 5; i++)
        audit();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%ld deposits, %ld withdrawals, %ld audits\n", deposits, withdrawals, audits); // NORACE: after the joins
    return balance == -1;                                                               // NORACE: after the joins
}
