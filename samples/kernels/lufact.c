/* lufact: LU factorisation of a dense matrix with partial pivoting, and the solution of one system.
 *
 *   lufact [THREADS [ORDER]]
 *
 * Right-looking elimination on columns, as in Linpack: per step one thread looks for the pivot and scales the column,
 * then all update the columns behind it. Race-free: a barrier lies before and after the update, a column is updated by
 * one thread. */
#include "team.h"
#include <math.h>

struct job {
    double **column; // column[j][i]
    long *pivot;
    long order;
};

static void find_pivot(struct job *job, long k)
{
    double *column = job->column[k];
    long best = k;
    for (long i = k + 1; i < job->order; i++)
        if (fabs(column[i]) > fabs(column[best])) best = i;
    job->pivot[k] = best;
    double value = column[best];
    column[best] = column[k];
    column[k] = value;
    for (long i = k + 1; i < job->order; i++)
        column[i] = -column[i] / value;
}

static void update(struct job *job, long k, long j)
{
    double *column = job->column[j], *factors = job->column[k];
    long best = job->pivot[k];
    double value = column[best];
    column[best] = column[k];
    column[k] = value;
    for (long i = k + 1; i < job->order; i++)
        column[i] += value * factors[i];
}

static void body(void *data)
{
    struct job *job = data;
    for (long k = 0; k < job->order - 1; k++) {
        if (team_first()) find_pivot(job, k);
        team_barrier();
        TEAM_FOR(j, job->order - k - 1)
            update(job, k, k + 1 + j);
        team_barrier();
    }
}

static void solve(struct job *job, double *b)
{
    long n = job->order;
    for (long k = 0; k < n - 1; k++) {
        long best = job->pivot[k];
        double value = b[best];
        b[best] = b[k];
        b[k] = value;
        for (long i = k + 1; i < n; i++)
            b[i] += value * job->column[k][i];
    }
    for (long k = n - 1; k >= 0; k--) {
        b[k] /= job->column[k][k];
        for (long i = 0; i < k; i++)
            b[i] -= b[k] * job->column[k][i];
    }
}

int main(int argc, char **argv)
{
    long threads = 2, n = 200;
    team_arguments(argc, argv, &threads, &n);
    struct job job = {team_alloc((size_t)n, sizeof *job.column), team_alloc((size_t)n, sizeof *job.pivot), n};
    double *b = team_alloc((size_t)n, sizeof *b);
    unsigned seed = 1325;
    for (long j = 0; j < n; j++) {
        job.column[j] = team_alloc((size_t)n, sizeof **job.column);
        for (long i = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            job.column[j][i] = (double)(seed >> 8) / (1 << 24) - 0.5;
            b[i] += job.column[j][i]; // so that the solution is all ones
        }
    }
    team_run(threads, body, &job);
    solve(&job, b);
    double worst = 0, sum = 0;
    for (long i = 0; i < n; i++) {
        worst = fmax(worst, fabs(b[i] - 1));
        sum += b[i];
    }
    int right = worst < 1e-6;
    printf("lufact order %ld: %.6f %s\n", n, sum, right ? "valid" : "INVALID");
    for (long j = 0; j < n; j++)
        free(job.column[j]);
    free(job.column);
    free(job.pivot);
    free(b);
    return !right;
}
