/* montecarlo: prices of a share as paths of a geometric Brownian motion; what is earned on the average.
 *
 *   montecarlo [THREADS [PATHS]]
 *
 * Each path has a generator of its own, seeded by its number, so the result does not depend on the number of threads.
 * Race-free: a path's buffer belongs to the thread that allocates it, its result has an element of its own. */
#include "team.h"
#include <math.h>
#include <stdint.h>

enum { DAYS = 250 };

struct job {
    double *returns;
    long count;
    double drift, volatility;
};

struct generator {
    uint64_t state;
    double spare;
    int has_spare;
};

static double uniform(struct generator *g)
{
    g->state ^= g->state << 13;
    g->state ^= g->state >> 7;
    g->state ^= g->state << 17;
    return (double)(g->state >> 11) / 9007199254740992.0;
}

/* Marsaglia's polar method: normal numbers in pairs. */
static double normal(struct generator *g)
{
    if (g->has_spare) {
        g->has_spare = 0;
        return g->spare;
    }
    double a, b, square;
    do {
        a = 2 * uniform(g) - 1;
        b = 2 * uniform(g) - 1;
        square = a * a + b * b;
    } while (square >= 1 || square == 0);
    double scale = sqrt(-2 * log(square) / square);
    g->spare = b * scale;
    g->has_spare = 1;
    return a * scale;
}

static double path_return(const struct job *job, long number)
{
    struct generator g = {0x9e3779b97f4a7c15u * (uint64_t)(number + 1), 0, 0};
    double *path = team_alloc(DAYS + 1, sizeof *path);
    double day = 1.0 / DAYS;
    path[0] = 100;
    for (int i = 1; i <= DAYS; i++)
        path[i] = path[i - 1] * exp((job->drift - 0.5 * job->volatility * job->volatility) * day +
                                    job->volatility * sqrt(day) * normal(&g));
    double sum = 0;
    for (int i = 1; i <= DAYS; i++)
        sum += log(path[i] / path[i - 1]);
    free(path);
    return sum;
}

static void body(void *data)
{
    struct job *job = data;
    TEAM_FOR(i, job->count)
        job->returns[i] = path_return(job, i);
}

int main(int argc, char **argv)
{
    long threads = 2, count = 2000;
    team_arguments(argc, argv, &threads, &count);
    struct job job = {team_alloc((size_t)count, sizeof *job.returns), count, 0.08, 0.2};
    team_run(threads, body, &job);
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += job.returns[i];
    double mean = sum / (double)count;
    /* Expected is drift - volatility^2 / 2 = 0.06, with a deviation of volatility / sqrt(count). */
    int right = fabs(mean - 0.06) < 5 * 0.2 / sqrt((double)count);
    printf("montecarlo %ld paths: %.9f %s\n", count, mean, right ? "valid" : "INVALID");
    free(job.returns);
    return !right;
}
