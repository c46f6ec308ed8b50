/* Pipes: what is written before a write to the pipe may be read after the read of it; tokens pass back and forth.
 *
 * Category: descriptor
 * Verdict: no race. `ball` belongs to whoever has read the last token. A static detector that does not follow
 * descriptors cannot know. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { ROUNDS = 50 };

static int there[2], back[2];
static long ball;
static char batch[64];

static void *player(void *unused)
{
    (void)unused;
    char token;
    for (int i = 0; i < ROUNDS; i++) {
        if (read(there[0], &token, 1) != 1) return NULL;
        ball += 2; // NORACE: the token was read
        if (write(back[1], &token, 1) != 1) return NULL;
    }
    for (unsigned i = 0; i < sizeof batch; i++)
        batch[i] = (char)i; // NORACE: read after the join
    close(back[1]);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    char token = 'x';
    if (pipe(there) || pipe(back)) return 2;
    if (pthread_create(&thread, NULL, player, NULL)) return 2;
    for (int i = 0; i < ROUNDS; i++) {
        ball++; // NORACE: the token came back
        if (write(there[1], &token, 1) != 1) return 1;
        if (read(back[0], &token, 1) != 1) return 1;
    }
    long result = ball; // NORACE: the token came back
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < sizeof batch; i++)
        result += batch[i]; // NORACE: after the join
    printf("%ld\n", result);
    return 0;
}
