/* series: the first Fourier coefficients of (x + 1) to the power of x on [0, 2], by the trapezoid rule.
 *
 *   series [THREADS [PAIRS]]
 *
 * Coefficients are independent of each other and shared among the threads. Race-free: each thread writes its own
 * pairs. */
#include "team.h"
#include <math.h>

enum { STEPS = 1000 };

struct job {
    double (*pairs)[2];
    long count;
};

/* The integral of (x + 1)^x times a sine or cosine (or 1), of frequency n. */
static double integral(int sine, long n)
{
    const double pi = 3.14159265358979323846, width = 2.0 / STEPS;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        double x = i * width, angle = pi * (double)n * x;
        double value = pow(x + 1, x) * (n == 0 ? 1 : sine ? sin(angle) : cos(angle));
        sum += i == 0 || i == STEPS ? value / 2 : value;
    }
    return sum * width;
}

static void body(void *data)
{
    struct job *job = data;
    TEAM_FOR(i, job->count) {
        job->pairs[i][0] = integral(0, i) / (i == 0 ? 2 : 1);
        job->pairs[i][1] = i == 0 ? 0 : integral(1, i);
    }
}

int main(int argc, char **argv)
{
    long threads = 2, count = 100;
    team_arguments(argc, argv, &threads, &count);
    struct job job = {team_alloc((size_t)count, sizeof *job.pairs), count};
    team_run(threads, body, &job);
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += fabs(job.pairs[i][0]) + fabs(job.pairs[i][1]);
    /* The mean of the function. */
    int right = fabs(job.pairs[0][0] - 2.881918) < 1e-4;
    printf("series %ld pairs: %.9f %s\n", count, sum, right ? "valid" : "INVALID");
    free(job.pairs);
    return !right;
}
