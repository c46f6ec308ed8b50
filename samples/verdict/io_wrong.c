/* System calls that access ranges, wrong: a buffer is filled by `read` in one thread while another looks at it, and is
 * emptied by `write` while another changes it.
 *
 * Category: ranges
 * Verdict: races on `input` (read against a plain look) and on `output` (write against a plain change). */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { SIZE = 64 };

char input[SIZE];
char output[SIZE];
int zero, null;

static void *transfer(void *unused)
{
    (void)unused;
    usleep(500);
    if (read(zero, input, SIZE) != SIZE) return NULL; // RACE input: the kernel writes it
    usleep(10);
    if (write(null, output, SIZE) != SIZE) return NULL; // RACE output: the kernel reads it
    usleep(10);
    return NULL;
}

static void *meddle(void *unused)
{
    (void)unused;
    int sum = input[20]; // RACE input
    usleep(500);
    output[30] = 'x'; // RACE output
    usleep(500);
    return (void *)(long)(sum + 1);
}

int main(void)
{
    pthread_t threads[2];
    void *sum;
    zero = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    if (zero < 0 || null < 0) return 2;
    if (pthread_create(&threads[0], NULL, transfer, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, meddle, NULL)) return 2;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &sum);
    printf("%c %ld\n", output[30], (long)sum); // NORACE: after the joins
    return 0;
}
