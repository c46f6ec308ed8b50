/* sor: successive over-relaxation of a square grid in red and black.
 *
 *   sor [THREADS [SIZE]]
 *
 * A red cell has black neighbours only, so all cells of one colour can be relaxed at once; rows are shared among the
 * threads. Race-free: a barrier between the colours. In one row the threads' cells alternate with those that are read,
 * eight bytes apart: cells of a detector that are coarser than that would raise an alarm. */
#include "team.h"
#include <math.h>

enum { ROUNDS = 50 };

struct job {
    double **grid;
    long size;
};

static void relax(double **grid, long size, long i, int colour)
{
    const double omega = 1.25;
    for (long j = 1 + (i + colour) % 2; j < size - 1; j += 2) {
        double mean = 0.25 * (grid[i - 1][j] + grid[i + 1][j] + grid[i][j - 1] + grid[i][j + 1]);
        grid[i][j] += omega * (mean - grid[i][j]);
    }
}

static void body(void *data)
{
    struct job *job = data;
    for (int round = 0; round < ROUNDS; round++)
        for (int colour = 0; colour < 2; colour++) {
            TEAM_FOR(i, job->size - 2)
                relax(job->grid, job->size, i + 1, colour);
            team_barrier();
        }
}

int main(int argc, char **argv)
{
    long threads = 2, size = 200;
    team_arguments(argc, argv, &threads, &size);
    if (size < 3) size = 3;
    if (size > 10000) size = 10000;
    struct job job = {team_alloc((size_t)size, sizeof *job.grid), size};
    unsigned seed = 11;
    for (long i = 0; i < size; i++) {
        job.grid[i] = team_alloc((size_t)size, sizeof **job.grid);
        for (long j = 0; j < size; j++) {
            seed = seed * 1103515245u + 12345u;
            job.grid[i][j] = (double)(seed >> 8) / (1 << 24) * 1e-6;
        }
    }
    team_run(threads, body, &job);
    double sum = 0;
    for (long i = 0; i < size; i++)
        for (long j = 0; j < size; j++)
            sum += job.grid[i][j];
    int right = sum > 0 && sum < 1e-6 * (double)(size * size);
    printf("sor size %ld: %.12f %s\n", size, sum, right ? "valid" : "INVALID");
    for (long i = 0; i < size; i++)
        free(job.grid[i]);
    free(job.grid);
    return !right;
}
