/* A thread reads what others read too, again and again, and then for the first time what another has just written. What it
 * knows about the former must not settle the latter. Another writes a byte again and again, frees it, and writes it once
 * more when it is a new one: what is known about the old one must not settle this. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long table[64], fresh[64]; /* of different pages, for good measure */
static volatile long sum;
static volatile char *volatile byte;

__attribute__((noinline)) static long read_table(void)
{
    long all = 0;
    for (int i = 0; i < 64; i++)
        all += ((volatile long *)table)[i];
    return all;
}

static void *writer(void *unused)
{
    (void)unused;
    usleep(150000); /* later than the other's first look, but not ordered */
    const long all = read_table();
    for (int i = 0; i < 64; i++)
        fresh[i] = all + i; /* the race's first side */
    volatile char *old = malloc(24);
    for (int i = 0; i < 8; i++)
        old[1] = (char)i;
    free((void *)old);
    volatile char *now = malloc(24); /* the same address */
    now[1] = (char)(now == old);
    byte = now;
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    long all = read_table();
    usleep(300000); /* later than the writer */
    for (int i = 0; i < 50; i++)
        all += read_table();
    all += fresh[7]; /* the second */
    all += byte[1];  /* of the byte */
    sum = all;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 64; i++)
        table[i] = i;
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", sum);
    return 0;
}
