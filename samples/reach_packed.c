/* Narrow things: bit fields, unions, characters, flags, copies and clears of whole structs, a flexible array.
 *
 *   reach_packed [ROUNDS]
 *
 * Verdict: one race, on the bit fields of `device.state`, which share their byte; both threads set one of their own.
 * What is next to them is each thread's own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device {
    unsigned char id;
    unsigned ready : 1, busy : 2, level : 3; /* one memory location */
    char mode;                               /* of the driver */
    unsigned short errors;                   /* of the monitor */
    union {
        long number;
        char text[8];
    } tag; /* of the driver */
    _Bool seen; /* of the monitor */
};

struct record {
    long stamp;
    int kind;
    double values[3];
};

struct log {
    int used;
    struct record last;
    struct record all[]; /* of the monitor */
};

struct device device;
struct record driver_record;
struct log *history;
enum { LENGTH = 8 };

static void *drive(void *argument)
{
    struct device *d = argument;
    struct record mine;
    for (int i = 0; i < 40; i++) {
        d->busy = i & 3;           // RACE: a read and a write of the byte
        d->mode = (char)(i & 127); // NORACE: this thread's field
        d->tag.number += i;        // NORACE: this thread's field
        memset(&mine, 0, sizeof mine);
        mine.stamp = i;
        mine.values[1] = i * 0.5;
        driver_record = mine; // NORACE: this thread's
    }
    return NULL;
}

static void *monitor(void *argument)
{
    struct device *d = argument;
    for (int i = 0; i < 40; i++) {
        d->level = i & 7;    // RACE
        d->errors += d->id;  // NORACE: this thread's field, and one that nobody writes
        d->seen = i > 3;     // NORACE: this thread's field
        history->last.kind = i;
        history->last.stamp = i + 1;
        history->last.values[i % 3] = i;
        history->all[i % LENGTH] = history->last; // NORACE: this thread's
        history->used = i % LENGTH + 1;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    device.id = (unsigned char)rounds; // NORACE: before the threads
    history = calloc(1, sizeof *history + LENGTH * sizeof history->all[0]);
    if (!history) return 2;
    device.ready = 1; // NORACE: before the threads
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        pthread_t driver, watcher;
        if (pthread_create(&driver, NULL, drive, &device)) return 2;
        if (pthread_create(&watcher, NULL, monitor, &device)) return 2;
        pthread_join(driver, NULL);
        pthread_join(watcher, NULL);
        sum += (double)driver_record.stamp + driver_record.values[1]; // NORACE: after the joins
        for (int i = 0; i < history->used; i++)
            sum += history->all[i].values[0] + history->all[i].kind; // NORACE: after the joins
    }
    printf("sum %g, errors %d, mode %d, tag %ld\n", sum, device.errors, device.mode, device.tag.number);
    free(history);
    return !device.ready;
}
