/* A pipe as a token, but each turn writes two bytes and reads one: after the first turn both threads have one.
 *
 * Category: descriptor
 * Verdict: a race on `ball`, which the pipes do not order any more. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 20 };

int there[2], back[2];
long ball;

__attribute__((noinline)) static void hit(void)
{
    ball += 2; // RACE ball: two tokens are under way
    usleep(50);
}

static void *player(void *unused)
{
    (void)unused;
    char token[2] = "x";
    for (int i = 0; i < ROUNDS; i++) {
        if (read(there[0], token, 1) != 1) return NULL;
        hit();
        if (write(back[1], token, 2) != 2) return NULL;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char token[2] = "x";
    if (pipe(there) || pipe(back)) return 2;
    if (pthread_create(&thread, NULL, player, NULL)) return 2;
    for (int i = 0; i < ROUNDS; i++) {
        ball++; // RACE ball
        usleep(50);
        if (write(there[1], token, 2) != 2) return 1;
        if (read(back[0], token, 1) != 1) return 1;
    }
    pthread_join(thread, NULL);
    printf("%s\n", ball > 0 ? "done" : "?"); // NORACE: after the join
    return 0;
}
