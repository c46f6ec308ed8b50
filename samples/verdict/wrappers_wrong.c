/* Wrappers, wrong: a lock that is taken only if a flag says so, and a scoped helper that locks another object's lock
 * than its caller thinks.
 *
 * Category: wrappers
 * Verdict: races on `maybe` (no lock when the flag is off), and on `wrong_object` (each thread locks its own). `always`
 * is right. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 30 };

struct module {
    pthread_mutex_t lock;
    int threaded; // whether locking is on
    long maybe;
    long always;
};

struct module module = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0};
struct session {
    pthread_mutex_t lock;
    int number;
};
struct session sessions[2];
long wrong_object;

__attribute__((noinline)) static void module_enter(struct module *m)
{
    if (m->threaded) pthread_mutex_lock(&m->lock); // NORACE: set before the creates
}

__attribute__((noinline)) static void module_leave(struct module *m)
{
    if (m->threaded) pthread_mutex_unlock(&m->lock);
}

__attribute__((noinline)) static void with_session(struct session *session, void (*body)(void))
{
    pthread_mutex_lock(&session->lock);
    body();
    pthread_mutex_unlock(&session->lock);
}

static void count(void)
{
    wrong_object++; // RACE wrong_object: under the lock of one's own session
    usleep(10);
}

static void *work(void *argument)
{
    struct session *session = argument;
    for (int i = 0; i < ROUNDS; i++) {
        module_enter(&module);
        module.maybe++; // RACE maybe: locking is off
        usleep(10);
        module_leave(&module);
        pthread_mutex_lock(&module.lock);
        module.always++; // NORACE: always locked
        pthread_mutex_unlock(&module.lock);
        with_session(session, count);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_mutex_init(&sessions[i].lock, NULL);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &sessions[i])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("always %ld\n", module.always);                          // NORACE: after the joins
    return module.maybe > 2 * ROUNDS || wrong_object > 2 * ROUNDS; // NORACE: after the joins
}
