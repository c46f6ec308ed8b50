/* sparse: a sparse matrix, in coordinates sorted by row, times a vector, again and again.
 *
 *   sparse [THREADS [ROWS]]
 *
 * Rows are shared among the threads, so that no two of them add to the same element. Race-free: each element of the
 * result belongs to one row, the matrix and the vector are only read. The accesses go through index arrays, which is
 * what makes the kernel hard to check in advance. */
#include "team.h"
#include <math.h>

enum { PER_ROW = 5, ROUNDS = 50 };

struct job {
    double *value, *x, *y;
    int *row, *column;
    long *start; // where each row begins
    long rows, entries;
};

static void body(void *data)
{
    struct job *job = data;
    for (int round = 0; round < ROUNDS; round++)
        TEAM_FOR(i, job->rows)
            for (long k = job->start[i]; k < job->start[i + 1]; k++)
                job->y[job->row[k]] += job->x[job->column[k]] * job->value[k];
}

int main(int argc, char **argv)
{
    long threads = 2, rows = 5000;
    team_arguments(argc, argv, &threads, &rows);
    struct job job = {.rows = rows, .entries = rows * PER_ROW};
    job.value = team_alloc((size_t)job.entries, sizeof *job.value);
    job.row = team_alloc((size_t)job.entries, sizeof *job.row);
    job.column = team_alloc((size_t)job.entries, sizeof *job.column);
    job.x = team_alloc((size_t)rows, sizeof *job.x);
    job.y = team_alloc((size_t)rows, sizeof *job.y);
    job.start = team_alloc((size_t)rows + 1, sizeof *job.start);
    unsigned seed = 7;
    double expected = 0;
    for (long i = 0; i < rows; i++)
        job.x[i] = (double)(i % 17) / 17;
    for (long k = 0; k < job.entries; k++) {
        seed = seed * 1103515245u + 12345u;
        job.row[k] = (int)(k / PER_ROW);
        job.column[k] = (int)((seed >> 8) % (unsigned long)rows);
        job.value[k] = (double)(seed >> 16) / 65536;
        expected += job.x[job.column[k]] * job.value[k];
    }
    for (long i = 0; i <= rows; i++)
        job.start[i] = i * PER_ROW;
    team_run(threads, body, &job);
    double sum = 0;
    for (long i = 0; i < rows; i++)
        sum += job.y[i];
    int right = fabs(sum - ROUNDS * expected) < 1e-6 * fabs(sum);
    printf("sparse %ld rows: %.6f %s\n", rows, sum, right ? "valid" : "INVALID");
    free(job.value);
    free(job.row);
    free(job.column);
    free(job.x);
    free(job.y);
    free(job.start);
    return !right;
}
