/* Functions of hundreds of accesses without a jump: with a check each they are larger than what DynamoRIO takes as one
 * block. */
#include <pthread.h>
#include <stdio.h>

static int numbers[2][400];

static void add_to_all(int *to)
{
    __asm__ volatile(".set offset, 0\n"
                     ".rept 400\n"
                     "addl $1, offset(%0)\n"
                     ".set offset, offset + 4\n"
                     ".endr\n"
                     :
                     : "r"(to)
                     : "memory", "cc");
}

static void *work(void *to)
{
    for (int i = 0; i < 100; i++)
        add_to_all(to);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long sum = 0;
    if (pthread_create(&thread, NULL, work, numbers[0])) return 2;
    work(numbers[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 400; i++)
        sum += numbers[0][i] + numbers[1][i];
    printf("%ld\n", sum);
    return 0;
}
