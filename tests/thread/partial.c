/* Two threads use parts of the same strings, without a race: library functions read no more than they have to. And blocks that
 * one thread frees are the other's next ones. With an argument the parts overlap by one byte: a race. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROUNDS = 300, BLOCKS = 64 };
static char number[32] = " -123 tail", real[32] = "1.5e3 tail", words[32] = "abcXdef", other[32] = "abcYdef", path[32] = "key=value";
static int overlap;
static long sum;

static void *read_heads(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        sum += strtol(number, NULL, 10) + (long)strtoull(number, NULL, 0) + atoi(number + 1);
        sum += (long)strtod(real, NULL);
        sum += strcmp(words, other) + strncmp(words, other, 20) + strcasecmp(words, other);
        sum += strchr(path, '=') - path;
        sum += (long)strspn(path, "eky") + (long)strcspn(path, "=");
        void *block = malloc(40);
        free(block);
    }
    return unused;
}

static void *write_tails(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        number[6 - overlap] = real[6] = words[4] = other[5] = path[4] = (char)('a' + i % 20);
        char *block = calloc(1, 40);
        if (block) block[i % 40] = 1;
        free(block);
    }
    return unused;
}

int main(int argc, char **argv)
{
    (void)argv;
    pthread_t threads[2];
    overlap = argc > 1;
    if (pthread_create(&threads[0], NULL, read_heads, NULL) || pthread_create(&threads[1], NULL, write_tails, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return sum == 42;
}
