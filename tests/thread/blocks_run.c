/* Runs what blocks.c has printed, in two threads with a buffer each, and prints a hash of all registers, flags and
 * memory after each run: it must not depend on who watches. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 24, REGISTERS = 16, VECTORS = 4, FLAGS = 4, BUFFER = 4096, SMALL = 16 };

typedef struct {
    uint64_t registers[REGISTERS]; /* by number; the flags in the place of rsp */
    uint64_t vectors[VECTORS][2];
} block_state;

typedef struct {
    void (*run)(block_state *state);
    uint64_t pointers, indices; /* which registers are to be addresses, and which small numbers */
} block;
extern const block blocks[]; /* the last one has no function */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t hashes[2];

static uint64_t mixed(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static void *work(void *which)
{
    const unsigned thread = *(unsigned *)which;
    /* Always there, so that addresses are the same in each run. */
    char *const buffer = mmap((void *)(uintptr_t)(0x10000000 + thread * 0x1000000), BUFFER, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (buffer == MAP_FAILED) exit(3);
    uint64_t hash = thread;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0) { /* another epoch: all is checked again */
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        for (const block *b = blocks; b->run; b++) {
            block_state s;
            for (unsigned r = 0; r < REGISTERS; r++) {
                const uint64_t random = mixed(mixed(round * 131 + r, (uint64_t)(b - blocks)), thread);
                s.registers[r] = b->pointers >> r & 1  ? (uint64_t)(buffer + random % SMALL * 8)
                                 : b->indices >> r & 1 ? random % SMALL
                                                       : random;
            }
            for (unsigned x = 0; x < VECTORS; x++)
                s.vectors[x][0] = s.vectors[x][1] = s.registers[x] + round;
            b->run(&s);
            for (unsigned x = 0; x < VECTORS; x++)
                hash = mixed(mixed(hash, s.vectors[x][0]), s.vectors[x][1]);
            for (unsigned r = 0; r < REGISTERS; r++)
                hash = mixed(hash, r == FLAGS ? s.registers[r] & 0x8c5 : s.registers[r]); /* CF, PF, ZF, SF, OF */
        }
    }
    for (unsigned i = 0; i < BUFFER; i++)
        hash = mixed(hash, (unsigned char)buffer[i]);
    hashes[thread] = hash;
    return NULL;
}

int main(void)
{
    unsigned numbers[] = {0, 1};
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &numbers[i])) return 2;
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%016llx %016llx\n", (unsigned long long)hashes[0], (unsigned long long)hashes[1]);
    return 0;
}
