/* The law of pta_follow: after any edits of object files, the result that has followed them is that of an analysis from
 * scratch.
 *
 *   follow_law [--context none|origin[:K]|cfa:K] [--wild N] [--threads N]... [--edits N] [--comparisons N] [--seed N]
 * [--times] [--check] [--programs] FILE...
 *
 * FILEs are the object files of one program. An edit takes one statement out of one of them (objedit, which is beside
 * this program), and the next one puts it back, unless chance lets it stay out until others are. Each time the files
 * that changed are read and lifted again, and one analysis for each number of threads follows; at --comparisons of the
 * edits (0: at all) its relation is compared with that of a new analysis of the same program. --times prints how much
 * of the program was not taken over from before at each edit, and, after the last line, milliseconds on the processor
 * per phase: median, mean, 99th percentile, worst.
 *
 * The program that was made with the help of the one before is compared too, number by number, with one that was not;
 * --programs: only that, and what was lifted, with what is lifted from scratch; nothing is analysed.
 *
 * --check: what pta_changes says has not changed is compared with what it was, in the numbers of before.
 *
 * Last line: what was done. Exit 0: the law holds; 1: it does not; 2: it could not be said. */
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "static/pointer/map.h"
#include "tests/lib/program_same.h"
#include "tests/lib/pta_tool.h"

enum { THREADS = 4 };
typedef enum { PHASE_READ, PHASE_LIFT, PHASE_PROGRAM, PHASE_FOLLOW, PHASE_SCRATCH, PHASES } phase;
static const char *const phase_names[PHASES] = {"read", "lift", "program", "follow", "from scratch"};

typedef struct {
    char path[PATH_MAX + 128];
    image *img;
    bool edited;
} object;

typedef struct {
    char objedit[PATH_MAX + 16], folder[64];
    pta_options options;
    int threads[THREADS];
    uint32_t thread_count, edits, comparisons, seed;
    bool times, check, programs;
    uint64_t same, wrong; /* --check: what was the same as it should be, and what was not */
    object *objects;
    lift_module **modules;
    uint32_t count;
    pta_program *program;
    pta *analyses[THREADS];
    uint32_t anew;
    uint64_t generation;
    VEC(double) seconds[PHASES];
} law;

static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double note(law *l, phase of, double start)
{
    double end = processor();
    vec_push(&l->seconds[of], end - start);
    return end;
}

static int copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    char bytes[65536];
    for (size_t got; out && (got = fread(bytes, 1, sizeof bytes, in));)
        fwrite(bytes, 1, got, out);
    int status = !out || ferror(in) || ferror(out) ? -1 : 0;
    if (in) fclose(in);
    if (out && fclose(out)) status = -1;
    return status;
}

/* False: the object has nothing that could be taken out. */
static bool edit(const law *l, const char *from, const char *to, uint32_t seed)
{
    extern char **environ;
    char number[16], name[] = "objedit", *in = base_format("%s", from), *out = base_format("%s", to);
    snprintf(number, sizeof number, "%u", seed);
    char *const argv[] = {name, in, out, number, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
    pid_t child;
    int status = 1;
    if (!posix_spawn(&child, l->objedit, &actions, NULL, argv, environ)) waitpid(child, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    free(in);
    free(out);
    return !status;
}

static const image **images_of(const law *l)
{
    const image **images = base_alloc(l->count * sizeof *images);
    for (uint32_t i = 0; i < l->count; i++)
        images[i] = l->objects[i].img;
    return images;
}

static int open_all(law *l, race_error *error)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (image_open(l->objects[i].path, &l->objects[i].img, error)) return -1;
    const image **images = images_of(l);
    lift_open_all(images, l->count, &(lift_options){.jobs = 1}, l->modules);
    free(images);
    l->program = pta_program_open_for(l->modules, l->count, 1, &(pta_wishes){.keep = true});
    for (uint32_t t = 0; t < l->thread_count; t++) {
        pta_options options = l->options;
        options.jobs = l->threads[t];
        options.follow = true;
        if (pta_open(l->program, &options, &l->analyses[t], error)) return -1;
    }
    return 0;
}

/* --- what is said to be the same -------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t *points, *calls; /* by instance: hashes */
} picture;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static uint32_t before(const uint32_t *was, uint32_t number)
{
    return was ? was[number] : number;
}

/* What each instance points to and calls; with `changes` in numbers of before. */
static picture take_picture(const pta *p, const pta_program *program, const pta_changes *changes)
{
    static const pta_changes none = {0};
    const pta_changes *c = changes ? changes : &none;
    uint32_t count = pta_instance_count(p), edge_count;
    picture all = {base_alloc_zero(count + 1, sizeof(uint64_t)), base_alloc_zero(count + 1, sizeof(uint64_t))};
    pta_places places = {0};
    for (uint32_t i = 0; i < count; i++) {
        pta_instance instance;
        pta_instance_at(p, i, &instance);
        for (uint32_t v = 0; v < program->funcs.data[instance.func].var_count; v++) {
            pta_points_to_in(p, i, (pta_operand){v, 0}, PTA_SAME, &places);
            for (uint32_t k = 0; k < places.len; k++) {
                const pta_place *at = &places.data[k];
                uint64_t hash = mix(mix(v, before(c->sites, at->site)), before(c->contexts, at->context));
                all.points[i] += mix(mix(hash, (uint64_t)(uint32_t)at->offset << 32 | at->stride), at->exact);
            }
        }
    }
    vec_free(&places);
    pta_call_edge *edges;
    edge_count = pta_call_graph(p, &edges);
    for (uint32_t e = 0; e < edge_count; e++) {
        uint64_t hash = mix(mix(before(c->instances, edges[e].caller), before(c->instances, edges[e].callee)),
                            before(c->calls, edges[e].call));
        all.calls[edges[e].caller] += hash;
        all.calls[edges[e].callee] += hash;
    }
    free(edges);
    return all;
}

static void compare_pictures(law *l, const pta *p, const picture *was, const pta_changes *c)
{
    picture is = take_picture(p, l->program, c);
    for (uint32_t i = 0; i < c->instance_count; i++) {
        pta_instance instance;
        pta_instance_at(p, i, &instance);
        if (!c->moved[i] && !c->changed[instance.func] && !c->wild) {
            bool same = is.points[i] == was->points[c->instances[i]];
            l->same += same;
            l->wrong += !same;
        }
        if (!c->called[i]) {
            bool same = is.calls[i] == was->calls[c->instances[i]];
            l->same += same;
            l->wrong += !same;
        }
    }
    free(is.points);
    free(is.calls);
}

/* What has changed is read again, and everything follows. */
static int follow(law *l, uint32_t changed, race_error *error)
{
    image *old = l->objects[changed].img;
    lift_module *lifted = l->modules[changed];
    pta_program *before_it = l->program;
    double at = processor();
    if (image_open(l->objects[changed].path, &l->objects[changed].img, error)) return -1;
    const image **images = images_of(l);
    at = note(l, PHASE_READ, at);
    l->modules[changed] = NULL;
    uint32_t lifts =
        lift_update_all(images, l->count, &(lift_options){.jobs = 1, .generation = ++l->generation}, l->modules);
    at = note(l, PHASE_LIFT, at);
    l->program = pta_program_open_for(l->modules, l->count, 1, &(pta_wishes){.keep = true, .before = before_it});
    at = note(l, PHASE_PROGRAM, at);
    if (l->times)
        printf("%s: lifted %u times, generated %u functions, has %u\n", basename(l->objects[changed].path), lifts,
               l->program->generated, l->modules[changed]->func_count);
    int status = 0;
    for (uint32_t t = 0; t < l->thread_count && !status; t++) {
        pta_changes changes;
        picture was = {0};
        if (l->check) was = take_picture(l->analyses[t], before_it, NULL);
        status = pta_follow(l->analyses[t], l->program, &changes, error);
        if (!status) l->anew += changes.anew;
        if (!status && l->check && !changes.anew) compare_pictures(l, l->analyses[t], &was, &changes);
        free(was.points);
        free(was.calls);
        if (!status) pta_changes_free(&changes);
        at = note(l, PHASE_FOLLOW, at);
    }
    pta_program_close(before_it);
    lift_close(lifted);
    image_close(old);
    free(images);
    return status;
}

/* What was lifted again after edits is what is lifted from scratch. */
static bool modules_agree(const law *l)
{
    char why[400];
    const image **images = images_of(l);
    lift_module **fresh = base_alloc_zero(l->count, sizeof *fresh);
    lift_open_all(images, l->count, &(lift_options){.jobs = 1}, fresh);
    bool same = true;
    for (uint32_t i = 0; i < l->count; i++) {
        if (same && !same_module(l->modules[i], fresh[i], why, sizeof why)) {
            printf("another module: %s\n", why);
            same = false;
        }
        lift_close(fresh[i]);
    }
    free(fresh);
    free(images);
    return same;
}

typedef struct {
    map64 known; /* objects that were told of */
    uint32_t func, var;
    uint64_t hash;
} begins;

static void take_begin(void *with, uint32_t site, uint32_t context)
{
    begins *b = with;
    uint32_t *known = map_at(&b->known, (uint64_t)site << 32 | context);
    if (*known == MAP_NONE)
        b->hash += map_hash(map_hash((uint64_t)site << 32 | context) + ((uint64_t)b->func << 32 | b->var));
    *known = 1;
}

/* By which parameter each object is first told of as what it is just the address of: pta_each_begin. */
static uint64_t begins_hash(const pta *p, const pta_program *program)
{
    begins b = {0};
    pta_told *told = pta_told_open(p);
    for (b.func = 0; b.func < program->funcs.len; b.func++)
        for (b.var = 0; program->funcs.data[b.func].lift && b.var < PTA_PARAMS; b.var++)
            pta_each_begin(p, b.func, b.var, told, take_begin, &b);
    pta_told_close(told);
    map_free(&b.known);
    return b.hash;
}

static bool agree(law *l, race_error *error)
{
    bool same = !l->programs || modules_agree(l);
    pta_options options = l->options;
    options.once = true;
    options.jobs = 1;
    pta *fresh;
    pta_program *program = pta_program_open(l->modules, l->count, 1); /* nothing of which was there before */
    char why[400];
    if (!same_program(l->program, program, why, sizeof why)) {
        printf("another program: %s\n", why);
        same = false;
    }
    if (l->programs) return pta_program_close(program), same;
    double at = processor();
    if (pta_open(program, &options, &fresh, error)) return pta_program_close(program), false;
    note(l, PHASE_SCRATCH, at);
    uint64_t hash = pta_relation_hash(fresh), begin = begins_hash(fresh, program);
    for (uint32_t t = 0; t < l->thread_count; t++)
        same &= pta_relation_hash(l->analyses[t]) == hash && begins_hash(l->analyses[t], l->program) == begin;
    pta_close(fresh);
    pta_program_close(program);
    return same;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(law *l)
{
    for (int p = 0; p < PHASES; p++) {
        double *all = l->seconds[p].data, sum = 0;
        uint32_t n = l->seconds[p].len;
        if (!n) continue;
        qsort(all, n, sizeof *all, by_size);
        for (uint32_t i = 0; i < n; i++)
            sum += all[i];
        printf("%-12s %5u times, ms: median %9.3f mean %9.3f p99 %9.3f worst %9.3f\n", phase_names[p], n,
               all[n / 2] * 1e3, sum / n * 1e3, all[(uint32_t)(n * 0.99)] * 1e3, all[n - 1] * 1e3);
    }
}

static int run(law *l, race_error *error)
{
    char original[PATH_MAX + 256];
    uint64_t state = tool_seed(l->seed);
    uint32_t done = 0, compared = 0, different = 0, points = l->comparisons ? l->comparisons : l->edits;
    if (open_all(l, error)) return -1;
    for (uint32_t tries = 0; done < l->edits && tries < 100 * l->edits; tries++) {
        uint32_t which = tool_below(&state, l->count), seed = (uint32_t)tool_random(&state);
        object *o = &l->objects[which];
        snprintf(original, sizeof original, "%s.before", o->path);
        if (o->edited) {
            if (tool_below(&state, 4) == 0) continue; /* it stays out for a while */
            if (rename(original, o->path)) return base_fail(error, "cannot rename %s", original);
            o->edited = false;
        } else {
            if (copy_file(o->path, original)) return base_fail(error, "cannot copy %s", o->path);
            if (!edit(l, original, o->path, seed)) continue;
            o->edited = true;
        }
        if (follow(l, which, error)) return -1;
        done++;
        if ((uint64_t)done * points / l->edits == (uint64_t)(done - 1) * points / l->edits) continue;
        compared++;
        if (agree(l, error)) continue;
        different++;
        printf("edit %u, seed %u: %s: another result than from scratch\n", done, l->seed, basename(o->path));
    }
    printf("%u edits, %u compared, %u different, %u from scratch\n", done, compared, different, l->anew);
    if (l->times) print_times(l);
    if (l->check)
        printf("said to be the same: %llu, wrong %llu\n", (unsigned long long)l->same, (unsigned long long)l->wrong);
    return different || l->wrong ? 1 : 0;
}

static bool set_option(law *l, const char *name, const char *value)
{
    uint32_t number;
    if (!strcmp(name, "--context")) return tool_context(value, &l->options);
    if (!strcmp(name, "--wild")) return tool_number(value, &l->options.wild_at);
    if (!strcmp(name, "--edits")) return tool_number(value, &l->edits);
    if (!strcmp(name, "--comparisons")) return tool_number(value, &l->comparisons);
    if (!strcmp(name, "--seed")) return tool_number(value, &l->seed);
    if (strcmp(name, "--threads") || !tool_number(value, &number) || !number || l->thread_count == THREADS)
        return false;
    l->threads[l->thread_count++] = (int)number;
    return true;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: follow_law [--context C] [--wild N] [--threads N]... [--edits N] [--comparisons N] [--seed N] "
            "[--times] [--check] [--programs] FILE...\n");
    return 2;
}

static void clean(law *l)
{
    char original[PATH_MAX + 256];
    for (uint32_t t = 0; t < l->thread_count; t++)
        pta_close(l->analyses[t]);
    pta_program_close(l->program);
    for (uint32_t i = 0; i < l->count; i++) {
        snprintf(original, sizeof original, "%s.before", l->objects[i].path);
        unlink(original);
        unlink(l->objects[i].path);
        lift_close(l->modules[i]);
        image_close(l->objects[i].img);
    }
    rmdir(l->folder);
    for (int p = 0; p < PHASES; p++)
        vec_free(&l->seconds[p]);
    free(l->objects);
    free(l->modules);
}

int main(int argc, char **argv)
{
    law l = {.options = {.context = PTA_CONTEXT_ORIGIN, .k = 1},
             .edits = 100,
             .seed = 1,
             .folder = "/tmp/follow_law.XXXXXX"};
    race_error error;
    int at = 1;
    for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
        if (!strcmp(argv[at], "--times")) {
            l.times = true;
        } else if (!strcmp(argv[at], "--check")) {
            l.check = true;
        } else if (!strcmp(argv[at], "--programs")) {
            l.programs = true;
        } else if (at + 1 >= argc || !set_option(&l, argv[at], argv[at + 1])) {
            return usage();
        } else {
            at++;
        }
    }
    if (at >= argc) return usage();
    if (l.programs)
        l.thread_count = 0;
    else if (!l.thread_count)
        l.threads[l.thread_count++] = 1;
    char *self = base_format("%s", argv[0]);
    snprintf(l.objedit, sizeof l.objedit, "%s/objedit", dirname(self));
    free(self);
    if (!mkdtemp(l.folder)) return perror("follow_law"), 2;
    l.count = (uint32_t)(argc - at);
    l.objects = base_alloc_zero(l.count, sizeof *l.objects);
    l.modules = base_alloc_zero(l.count, sizeof *l.modules);
    int status = 0;
    for (uint32_t i = 0; i < l.count && !status; i++) {
        snprintf(l.objects[i].path, sizeof l.objects[i].path, "%s/%03u-%s", l.folder, i, basename(argv[at + (int)i]));
        status = copy_file(argv[at + (int)i], l.objects[i].path);
        if (status) base_fail(&error, "cannot copy %s", argv[at + (int)i]);
    }
    if (!status) status = run(&l, &error);
    if (status < 0) fprintf(stderr, "follow_law: %s\n", error.text);
    clean(&l);
    return status < 0 ? 2 : status;
}
