/* Accesses of different sizes that overlap in part: 8 bytes against one of them, 4 against 2 of them, 4 unaligned bytes
 * against two words, and bit-fields of one word.
 *
 * Category: bytes
 * Verdict: races on `word`, `half`, `odd` and `bits`. The bytes next to them are right. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t word;
uint32_t half;
uint8_t odd[16];
uint8_t neighbours[8];
struct {
    unsigned left : 4;
    unsigned right : 4;
} bits;

static void *wide(void *unused)
{
    (void)unused;
    uint32_t value = 0x01020304;
    word = 0x1122334455667788; // RACE word: all eight bytes
    usleep(10);
    half += 7; // RACE half: all four bytes
    usleep(10);
    memcpy(odd + 6, &value, sizeof value); // RACE odd: bytes 6 to 9
    usleep(10);
    bits.left = 3; // RACE bits: the whole unit is read and written
    usleep(10);
    neighbours[3] = 1; // NORACE: another byte
    return NULL;
}

static void *narrow(void *unused)
{
    (void)unused;
    ((volatile uint8_t *)&word)[5] = 1; // RACE word: the sixth byte
    usleep(10);
    ((volatile uint16_t *)(void *)&half)[1] = 2; // RACE half: the upper two bytes
    usleep(10);
    odd[9] = 3; // RACE odd: the last of the four
    usleep(10);
    bits.right = 5; // RACE bits: the same unit
    usleep(10);
    odd[10] = 4;       // NORACE: the byte behind
    neighbours[4] = 2; // NORACE: another byte
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, wide, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, narrow, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d\n", odd[6], neighbours[3], neighbours[4]); // NORACE: after the joins
    return word == 0 || half == 0;                             // NORACE: after the joins
}
