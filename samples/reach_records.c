/* Arrays of structs, by index, by pointer and nested: the fields of all elements stay apart.
 *
 *   reach_records [ROUNDS]
 *
 * Verdict: one race, on `hits` of the cities, which both threads count. The posters own `amount`, the readers `seen`,
 * and the grid is divided by rows. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CITIES = 5, ROWS = 6, COLUMNS = 7 };

struct place {
    int x, y;
    double height;
};

struct city {
    struct place at;
    long amount; /* of the poster */
    int hits;    /* of both */
    short seen[3]; /* of the reader */
};

struct shape {
    int first, end; /* rows */
    struct city *cities;
    long *weights;
};

struct city cities[CITIES];
int grid[ROWS][COLUMNS];
struct shape halves[2];

static void fill(int first, int end)
{
    for (int row = first; row < end; row++)
        for (int column = 0; column < COLUMNS; column++)
            grid[row][column] = row * 100 + column; // NORACE: rows of this half
}

static void *post(void *argument)
{
    struct shape *half = argument;
    for (int i = 0; i < CITIES; i++) {
        struct city *city = &half->cities[i]; // NORACE: both only read the shape
        city->amount += half->weights[i];     // NORACE: this thread's field
        city->hits++;                         // RACE
    }
    fill(half->first, half->end);
    return NULL;
}

static void *read_all(void *argument)
{
    const struct shape *half = argument;
    for (struct city *city = half->cities, *end = city + CITIES; city < end; city++) {
        for (int k = 0; k < 3; k++)
            city->seen[k] = (short)(city->at.x + city->at.y * k); // NORACE: this thread's field, and constant places
        city->hits += city->at.height > 2.5;                      // RACE
    }
    fill(half->first, half->end);
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    long *weights = malloc(CITIES * sizeof *weights);
    if (!weights) return 2;
    for (int i = 0; i < CITIES; i++) {
        weights[i] = i * 3 + argc;
        cities[i].at.x = i + argc;
        cities[i].at.y = argc * 2;
        cities[i].at.height = i * 0.75;
    }
    for (int half = 0; half < 2; half++) {
        halves[half].first = half * ROWS / 2;
        halves[half].end = (half + 1) * ROWS / 2;
        halves[half].cities = cities;
        halves[half].weights = weights;
    }
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        pthread_t poster, reader;
        if (pthread_create(&poster, NULL, post, &halves[0])) return 2;
        if (pthread_create(&reader, NULL, read_all, &halves[1])) return 2;
        pthread_join(poster, NULL);
        pthread_join(reader, NULL);
        for (int i = 0; i < CITIES; i++)
            sum += cities[i].amount + cities[i].hits + cities[i].seen[1]; // NORACE: after the joins
    }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            sum += grid[row][column]; // NORACE: after the joins
    free(weights);
    printf("sum %ld\n", sum);
    return 0;
}
