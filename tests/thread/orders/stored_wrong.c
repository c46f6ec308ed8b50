/* What the library and the kernel store where they are told to, while another thread reads it: a time, a name, the
 * state of a file, random bytes. A call that fails stores nothing.
 *
 * Verdict: four races. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static time_t now;
static char folder[4096];
static struct stat state, untouched;
static long bytes[4];
static pthread_barrier_t start;

static void *store(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    time(&now);                                                  // RACE now
    if (!getcwd(folder, sizeof folder)) return NULL;             // RACE folder
    fstat(0, &state);                                            // RACE state
    stat("/nowhere/at/all", &untouched);                         // NORACE: it fails
    return getrandom(bytes, sizeof bytes, 0) > 0 ? bytes : NULL; // RACE bytes
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    pthread_barrier_init(&start, NULL, 2);
    if (pthread_create(&thread, NULL, store, NULL)) return 2;
    pthread_barrier_wait(&start);
    sum += now > 1;            // RACE now
    sum += folder[0] == '/';   // RACE folder
    sum += state.st_mode != 1; // RACE state
    sum += bytes[1] != 0;      // RACE bytes
    sum += untouched.st_mode;  // NORACE: nobody writes it
    pthread_join(thread, NULL);
    printf("%d\n", sum != 12345);
    return 0;
}
