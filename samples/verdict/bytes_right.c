/* Neighbours: bytes, shorts and members of one word that belong to different threads. C11 says that they are different
 * memory locations; a detector with cells of 4 or 8 bytes must not mix them up.
 *
 * Category: bytes
 * Verdict: no race. The bit-fields `low` and `high` are separated by `int : 0`, which makes two locations of them. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 500 };

static uint8_t bytes[8];
static uint16_t shorts[4];
static struct {
    uint8_t head;
    uint16_t middle __attribute__((packed));
    uint8_t tail;
} packed;
static struct {
    unsigned low : 5;
    int : 0;
    unsigned high : 5;
} bits;

__attribute__((noinline)) static void step(volatile uint8_t *byte, volatile uint16_t *word)
{
    (*byte)++; // NORACE: own byte
    (*word)++; // NORACE: own short
}

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        step(&bytes[me + 2], &shorts[me]);
        switch (me) {
        case 0: packed.head++; break;   // NORACE: own member
        case 1: packed.middle++; break; // NORACE: own member
        case 2: packed.tail++; break;   // NORACE: own member
        default: bits.low++; break;     // NORACE: a location of its own
        }
    }
    if (me == 0) bits.high = 3; // NORACE: a location of its own
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d %d %d\n", bytes[2], shorts[3], packed.middle, bits.low, bits.high); // NORACE: after the joins
    return 0;
}
