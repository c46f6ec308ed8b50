/* What is read out of text while another thread reads where it is stored.
 *
 * Verdict: four races; what did not match is not stored, and what a star skips has no place. */
#include <pthread.h>
#include <stdio.h>

static int number, missed;
static double ratio;
static char word[16], last[4];
static pthread_barrier_t begin;

static void *scan(void *unused)
{
    pthread_barrier_wait(&begin);
    const int found =
        sscanf("12 34 0.5 ab,cd x", "%d %*d %lf %15[a-z,] %2c %d", &number, &ratio, word, last, &missed); // RACE all
    (void)unused;
    printf("%d\n", found);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int sum = 0;
    pthread_barrier_init(&begin, NULL, 2);
    if (pthread_create(&thread, NULL, scan, NULL)) return 2;
    pthread_barrier_wait(&begin);
    if (number == 1) sum++;    // RACE number
    if (ratio > 1) sum++;      // RACE ratio
    if (word[4] == 'x') sum++; // RACE word
    if (last[0] == 'y') sum++; // RACE last
    if (missed == 2) sum++;    // NORACE: nothing matched
    pthread_join(thread, NULL);
    printf("%d\n", sum != 1);
    return 0;
}
