/* A small interpreter in each thread: its switch becomes a jump table.
 *
 *   switch_table [ROUNDS]
 *
 * Verdict: one race, on `machine.shared`, through the two instructions that use it. The registers are each thread's
 * own; the program is read-only. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STOP, ADD, SUB, MUL, SWAP, DROP, LOAD, STORE, JUMP };

struct machine {
    long shared; /* what LOAD and STORE use */
    int rounds;
};

struct machine machine;
const unsigned char program[] = {ADD, SWAP, MUL, LOAD, SUB, STORE, DROP, ADD, SWAP, JUMP, STOP};

static void *interpret(void *argument)
{
    struct machine *m = argument;
    int rounds = m->rounds; // NORACE: written before the threads
    long a = 1, b = 2;
    for (const unsigned char *at = program;;) {
        switch (*at++) { // NORACE: constant
        case ADD:
            a += b;
            break;
        case SUB:
            a -= b;
            break;
        case MUL:
            a *= b | 1;
            break;
        case SWAP: {
            long t = a;
            a = b;
            b = t ^ 5;
            break;
        }
        case DROP:
            b = a >> 3;
            break;
        case LOAD:
            a ^= m->shared; // RACE
            break;
        case STORE:
            m->shared = a & 0xffff; // RACE
            break;
        case JUMP:
            if (--rounds > 0) at = program;
            break;
        case STOP:
            return NULL;
        default:
            abort();
        }
    }
}

int main(int argc, char **argv)
{
    machine.rounds = argc > 1 ? atoi(argv[1]) : 1000; // NORACE: before the threads
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, interpret, &machine)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("stopped after %d rounds\n", machine.rounds); // NORACE: after the joins
    return machine.shared > 0xffff;                     // NORACE: after the joins
}
