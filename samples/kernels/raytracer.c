/* raytracer: 64 spheres in a cube, one light, shadows and reflections; rows of the picture shared among the threads.
 *
 *   raytracer [THREADS [SIZE]]
 *
 * Race-free: the scene is only read, a pixel is written by one thread. */
#include "team.h"
#include <math.h>

enum { EDGE = 4, SPHERES = EDGE * EDGE * EDGE, DEPTH = 4 };

typedef struct {
    double x, y, z;
} vec;

struct sphere {
    vec centre;
    double radius, red, green, blue, shine;
};

struct job {
    struct sphere spheres[SPHERES];
    vec eye, light;
    unsigned *pixels;
    long size;
};

static vec add(vec a, vec b, double scale)
{
    return (vec){a.x + scale * b.x, a.y + scale * b.y, a.z + scale * b.z};
}

static double dot(vec a, vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static vec unit(vec a)
{
    double length = sqrt(dot(a, a));
    return (vec){a.x / length, a.y / length, a.z / length};
}

/* The nearest sphere that the ray hits, and how far away; NULL if none. */
static const struct sphere *hit(const struct job *job, vec from, vec direction, double *distance)
{
    const struct sphere *nearest = NULL;
    *distance = 1e30;
    for (int i = 0; i < SPHERES; i++) {
        vec to = add(job->spheres[i].centre, from, -1);
        double along = dot(to, direction);
        double square = job->spheres[i].radius * job->spheres[i].radius - dot(to, to) + along * along;
        if (square < 0) continue;
        double t = along - sqrt(square);
        if (t > 1e-6 && t < *distance) {
            *distance = t;
            nearest = &job->spheres[i];
        }
    }
    return nearest;
}

static vec trace(const struct job *job, vec from, vec direction, int depth)
{
    double distance, unused;
    const struct sphere *sphere = hit(job, from, direction, &distance);
    if (!sphere) return (vec){0, 0, 0.1};
    vec point = add(from, direction, distance);
    vec normal = unit(add(point, sphere->centre, -1));
    vec to_light = unit(add(job->light, point, -1));
    double bright = 0.1, facing = dot(normal, to_light);
    if (facing > 0 && !hit(job, add(point, normal, 1e-4), to_light, &unused)) bright += 0.7 * facing;
    vec colour = {bright * sphere->red, bright * sphere->green, bright * sphere->blue};
    if (depth > 1) {
        vec mirrored = add(direction, normal, -2 * dot(direction, normal));
        colour = add(colour, trace(job, add(point, normal, 1e-4), mirrored, depth - 1), sphere->shine);
    }
    return colour;
}

static unsigned level(double value)
{
    return value >= 1 ? 255 : (unsigned)(value * 255);
}

static void render_row(struct job *job, long row)
{
    for (long i = 0; i < job->size; i++) {
        vec at = {2.0 * (double)i / (double)job->size - 1, 2.0 * (double)row / (double)job->size - 1, 2};
        vec colour = trace(job, job->eye, unit(at), DEPTH);
        job->pixels[row * job->size + i] = level(colour.x) << 16 | level(colour.y) << 8 | level(colour.z);
    }
}

static void body(void *data)
{
    struct job *job = data;
    TEAM_FOR(row, job->size)
        render_row(job, row);
}

int main(int argc, char **argv)
{
    long threads = 2, size = 60;
    team_arguments(argc, argv, &threads, &size);
    if (size > 10000) size = 10000;
    static struct job job;
    for (int i = 0; i < SPHERES; i++) {
        int x = i % EDGE, y = i / EDGE % EDGE, z = i / EDGE / EDGE;
        job.spheres[i] = (struct sphere){{1.4 * x - 2.1, 1.4 * y - 2.1, 1.4 * z + 3}, 0.55,       0.3 + 0.2 * x,
                                         0.3 + 0.2 * y,                               0.3 + 0.2 * z, 0.3};
    }
    job.eye = (vec){0, 0, -2};
    job.light = (vec){10, -10, -10};
    job.size = size;
    job.pixels = team_alloc((size_t)(size * size), sizeof *job.pixels);
    team_run(threads, body, &job);
    unsigned long long sum = 0, dark = 0;
    for (long i = 0; i < size * size; i++) {
        sum += (job.pixels[i] >> 16) + (job.pixels[i] >> 8 & 255) + (job.pixels[i] & 255);
        dark += job.pixels[i] == level(0.1);
    }
    int right = size < 8 || (dark > 0 && dark < (unsigned long long)(size * size));
    printf("raytracer size %ld: %llu %s\n", size, sum, right ? "valid" : "INVALID");
    free(job.pixels);
    return !right;
}
