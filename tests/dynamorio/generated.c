/* Threads that run code which the program has made. With `plain` it adds to what both use; else it is an atomic
 * instruction which orders what the code of the program does around it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static long count, turn, given;
static void (*add)(long *);
static long (*fetch_add)(long *, long);

static void *plain(void *unused)
{
    for (int i = 0; i < 1000; i++)
        add(&count);
    return unused;
}

static void *give(void *unused)
{
    given = 1;
    fetch_add(&turn, 1);
    return unused;
}

static void *take(void *unused)
{
    while (!fetch_add(&turn, 0)) {
    }
    given++;
    return unused;
}

int main(int argc, char **argv)
{
    static const unsigned char code[] = {
        0x48, 0xff, 0x07, 0xc3,                              /* incq (%rdi); ret */
        0x48, 0x89, 0xf0, 0xf0, 0x48, 0x0f, 0xc1, 0x07, 0xc3 /* mov %rsi,%rax; lock xadd %rax,(%rdi); ret */
    };
    unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    memcpy(at, code, sizeof code);
    unsigned char *second = at + 4;
    memcpy(&add, &at, sizeof add);
    memcpy(&fetch_add, &second, sizeof fetch_add);

    const int is_plain = argc > 1 && !strcmp(argv[1], "plain");
    pthread_t a, b;
    pthread_create(&a, NULL, is_plain ? plain : give, NULL);
    pthread_create(&b, NULL, is_plain ? plain : take, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    puts("done");
    return 0;
}
