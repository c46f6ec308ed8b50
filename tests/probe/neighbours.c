/* Two threads access the words of one block, many in a row: one writes every second word, the other reads all of them, not
 * ordered after it. Each second word races, and no other. The head of each line is what the test looks for.
 *
 *   neighbours KIND      where the block is: 0 aligned, 1 across a border of 64 MB, 4 and 7 bytes off */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGION = 1 << 26 };
static volatile long *target, *others[2];
static volatile long sum;

__attribute__((noinline)) static void write_some(volatile long *p)
{
    p[0] = 1;
    p[2] = 1;
    p[4] = 1;
    p[6] = 1;
    p[8] = 1;
    p[10] = 1;
}

__attribute__((noinline)) static long read_all(volatile long *p)
{
    long all = 0;
    /* RACY */ all += p[0];
    /* FREE */ all += p[1];
    /* RACY */ all += p[2];
    /* FREE */ all += p[3];
    /* RACY */ all += p[4];
    /* FREE */ all += p[5];
    /* RACY */ all += p[6];
    /* FREE */ all += p[7];
    /* RACY */ all += p[8];
    /* FREE */ all += p[9];
    /* RACY */ all += p[10];
    /* FREE */ all += p[11];
    return all;
}

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++)
        write_some(others[0]); /* the same stacks as for the target */
    write_some(target);
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    usleep(300000); /* later, but not ordered */
    for (int i = 0; i < 4; i++)
        sum += read_all(others[1]);
    sum += read_all(target);
    return NULL;
}

int main(int argc, char **argv)
{
    const int kind = argc > 1 ? atoi(argv[1]) : 0;
    char *memory = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return 2;
    char *border = (char *)(((uintptr_t)memory + REGION) & ~(uintptr_t)(REGION - 1));
    if (border - memory < 4096) border += REGION;
    target = (volatile long *)(kind == 1 ? border - 6 * sizeof(long) : memory + 1024 + kind);
    for (int i = 0; i < 2; i++)
        others[i] = (volatile long *)(memory + (i + 1) * 65536 * 3);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", sum);
    return 0;
}
