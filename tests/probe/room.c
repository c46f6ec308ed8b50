/* Most of what jumps reach from this program is its own: where the heap could grow, trampolines must lie. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char own[1100u << 20];
static int counter;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        counter++;
    return NULL;
}

int main(void)
{
    pthread_t thread;
    own[sizeof own - 1] = 1;
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    work(NULL);
    pthread_join(thread, NULL);
    /* more than there is room for now */
    enum { PIECES = 3000, SIZE = 100000 };
    static char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        if (!(pieces[i] = malloc(SIZE))) return 3;
    pieces[PIECES - 1][SIZE - 1] = own[sizeof own - 1];
    puts("there is room");
    return 0;
}
