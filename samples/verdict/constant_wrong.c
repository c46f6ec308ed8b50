/* One function that both sides of a hand-over run, wrong: what is set behind the post, a second thread that posts, a role that is not a
 * constant, one that waits for nobody, and two that are created with the same constant.
 *
 * Category: semaphore
 * Verdict: races on `after`, `second`, `role_of`, `unwaited` and `twice`. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t after_ready, second_ready, role_ready, unwaited_ready, twice_ready;
static int after, second, role_of, unwaited, twice;

static void *posts_early(void *role)
{
    if (!role) {
        sem_post(&after_ready);
        after = 9; // RACE after: behind the post
        sched_yield();
    } else {
        sem_wait(&after_ready);
        after++; // RACE after
    }
    return NULL;
}

static void *two_post(void *role)
{
    if ((long)role != 2) {
        if (!role) second = 9; // RACE second: the post may be the other's
        sem_post(&second_ready);
    } else {
        sem_wait(&second_ready);
        second++; // RACE second
    }
    return NULL;
}

static void *by_number(void *role)
{
    if (!*(int *)role) {
        role_of = 9; // RACE role_of: both may be told to
        sem_post(&role_ready);
    } else {
        sem_wait(&role_ready);
        role_of++; // RACE role_of
    }
    return NULL;
}

static void *one_waits(void *role)
{
    if (!role) {
        unwaited = 9; // RACE unwaited
        sem_post(&unwaited_ready);
    } else {
        if ((long)role == 1) sem_wait(&unwaited_ready);
        unwaited++; // RACE unwaited: the third does not wait
    }
    return NULL;
}

static void *both_post(void *role)
{
    if (!role) {
        twice = 9; // RACE twice: two are told to
        sem_post(&twice_ready);
    } else {
        sem_wait(&twice_ready);
        twice++; // RACE twice: the other may still set it
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[14];
    int roles[2] = {argc > 1, argc > 2}, n = 0;
    (void)argv;
    sem_init(&after_ready, 0, 0);
    sem_init(&second_ready, 0, 0);
    sem_init(&role_ready, 0, 0);
    sem_init(&unwaited_ready, 0, 0);
    sem_init(&twice_ready, 0, 0);
    if (pthread_create(&threads[n++], NULL, posts_early, NULL)) return 2;
    if (pthread_create(&threads[n++], NULL, posts_early, (void *)1)) return 2;
    if (pthread_create(&threads[n++], NULL, two_post, NULL)) return 2;
    if (pthread_create(&threads[n++], NULL, two_post, (void *)1)) return 2;
    if (pthread_create(&threads[n++], NULL, two_post, (void *)2)) return 2;
    if (pthread_create(&threads[n++], NULL, by_number, &roles[0])) return 2;
    if (pthread_create(&threads[n++], NULL, by_number, &roles[1])) return 2;
    if (pthread_create(&threads[n++], NULL, one_waits, NULL)) return 2;
    if (pthread_create(&threads[n++], NULL, one_waits, (void *)1)) return 2;
    if (pthread_create(&threads[n++], NULL, one_waits, (void *)2)) return 2;
    if (pthread_create(&threads[n++], NULL, both_post, NULL)) return 2;
    if (pthread_create(&threads[n++], NULL, both_post, NULL)) return 2;
    if (pthread_create(&threads[n++], NULL, both_post, (void *)1)) return 2;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d %d %d\n", after, second, role_of, unwaited, twice); // NORACE: after the joins
    return 0;
}
