/* moldyn: molecular dynamics of particles under the Lennard-Jones potential in a periodic box.
 *
 *   moldyn [THREADS [SIZE]]      4 SIZE^3 particles
 *
 * Velocity Verlet with a cut-off. Each thread computes the whole force on its own particles, instead of half the pairs
 * for both partners: that makes twice the work, but no reduction, and the same result for any number of threads.
 * Race-free: positions rest while forces are computed, and the other way round, with barriers between. */
#include "team.h"
#include <math.h>

enum { STEPS = 20 };

struct particle {
    double position[3], velocity[3], force[3];
    double potential;
};

struct job {
    struct particle *particles;
    long count;
    double side, step;
    double before; // the energy at the start
};

static void move(struct job *job, struct particle *p)
{
    for (int d = 0; d < 3; d++) {
        p->velocity[d] += 0.5 * job->step * p->force[d];
        p->position[d] += job->step * p->velocity[d];
        p->position[d] -= job->side * floor(p->position[d] / job->side);
    }
}

static void find_force(struct job *job, long i)
{
    struct particle *p = &job->particles[i];
    double force[3] = {0, 0, 0}, potential = 0, side = job->side, reach = side / 4;
    for (long j = 0; j < job->count; j++) {
        if (j == i) continue;
        double delta[3], square = 0;
        for (int d = 0; d < 3; d++) {
            delta[d] = p->position[d] - job->particles[j].position[d];
            if (delta[d] > side / 2) delta[d] -= side;
            else if (delta[d] < -side / 2) delta[d] += side;
            square += delta[d] * delta[d];
        }
        if (square > reach * reach) continue;
        double inverse = 1 / square, sixth = inverse * inverse * inverse;
        double strength = 48 * inverse * sixth * (sixth - 0.5);
        potential += 2 * sixth * (sixth - 1); // half of the pair's, the other half is the partner's
        for (int d = 0; d < 3; d++)
            force[d] += strength * delta[d];
    }
    for (int d = 0; d < 3; d++)
        p->force[d] = force[d];
    p->potential = potential;
}

static double energy(const struct job *job)
{
    double sum = 0;
    for (long i = 0; i < job->count; i++) {
        const struct particle *p = &job->particles[i];
        sum += p->potential;
        for (int d = 0; d < 3; d++)
            sum += 0.5 * p->velocity[d] * p->velocity[d];
    }
    return sum;
}

static void body(void *data)
{
    struct job *job = data;
    TEAM_FOR(i, job->count)
        find_force(job, i);
    team_barrier();
    if (team_first()) job->before = energy(job);
    team_barrier();
    for (int step = 0; step < STEPS; step++) {
        TEAM_FOR(i, job->count)
            move(job, &job->particles[i]);
        team_barrier();
        TEAM_FOR(i, job->count)
            find_force(job, i);
        team_barrier();
        TEAM_FOR(i, job->count)
            for (int d = 0; d < 3; d++)
                job->particles[i].velocity[d] += 0.5 * job->step * job->particles[i].force[d];
    }
}

int main(int argc, char **argv)
{
    long threads = 2, size = 5;
    team_arguments(argc, argv, &threads, &size);
    if (size > 100) size = 100;
    struct job job = {NULL, 4 * size * size * size, 0, 0.0005, 0};
    job.side = pow((double)job.count / 0.83134, 1.0 / 3);
    job.particles = team_alloc((size_t)job.count, sizeof *job.particles);
    /* A face-centred cubic lattice, and velocities from a generator, with no drift. */
    static const double corner[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    double cell = job.side / (double)size, drift[3] = {0, 0, 0};
    unsigned seed = 42;
    for (long i = 0; i < job.count; i++) {
        long at[3] = {i / 4 % size, i / 4 / size % size, i / 4 / size / size};
        for (int d = 0; d < 3; d++) {
            seed = seed * 1103515245u + 12345u;
            job.particles[i].position[d] = ((double)at[d] + corner[i % 4][d]) * cell;
            job.particles[i].velocity[d] = (double)(seed >> 8) / (1 << 24) - 0.5;
            drift[d] += job.particles[i].velocity[d] / (double)job.count;
        }
    }
    for (long i = 0; i < job.count; i++)
        for (int d = 0; d < 3; d++)
            job.particles[i].velocity[d] -= drift[d];
    team_run(threads, body, &job);
    double sum = energy(&job);
    int right = fabs(sum - job.before) < 0.005 * fabs(sum); // conserved, but for the cut-off
    printf("moldyn %ld particles: %.9f %s\n", job.count, sum / (double)job.count, right ? "valid" : "INVALID");
    free(job.particles);
    return !right;
}
