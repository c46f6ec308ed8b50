/* Several modules of one program. A linked module knows of each of its functions whether it returns; object files know it of
 * each other's only together: code behind a call that never returns is no code, and may be another function.
 *
 * The least set of functions that never return is not looked for: it grows from what each object can tell, in rounds. What an
 * object tells depends only on which of the functions that it calls are taken to never return, so each answer is remembered with
 * its question (lift_told). After some objects were replaced, the rounds are gone through from the beginning, as if nothing had
 * been there, but an object is lifted only where its question is new, or where the last question is not the one that it was lifted
 * for. */
#include "static/lift/lift.h"

#include <stdlib.h>

enum { ROUNDS = 8 };

typedef struct {
    const char **names; /* sorted */
    uint32_t count;
} dead_set;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_dead(const void *with, const char *name)
{
    const dead_set *set = with;
    return set->count && bsearch(&name, set->names, set->count, sizeof *set->names, by_name);
}

struct lift_told {
    bool *outside;     /* the question: per entry of image->plts, it never returns */
    const char **dead; /* the answer: its global functions that never return */
    uint32_t dead_count;
    lift_told *next;
};

void lift_told_free(lift_told *told)
{
    while (told) {
        lift_told *next = told->next;
        free(told->outside);
        free(told->dead);
        free(told);
        told = next;
    }
}

static size_t plt_count(const image *img)
{
    return img->kind == IMAGE_OBJECT ? img->plt_count : 0;
}

static bool *ask(const image *img, const dead_set *dead)
{
    bool *outside = base_alloc_zero(plt_count(img) + 1, sizeof *outside);
    for (uint32_t i = 0; i < plt_count(img); i++)
        outside[i] = is_dead(dead, img->plts[i].name);
    return outside;
}

static bool is_same(const image *img, const bool *a, const bool *b)
{
    return !memcmp(a, b, plt_count(img) * sizeof *a);
}

static const lift_told *find_told(const lift_module *m, const bool *outside)
{
    const lift_told *told = m ? m->told : NULL;
    while (told && !is_same(m->img, told->outside, outside))
        told = told->next;
    return told;
}

/* The global functions of an object file that never return. */
static void tell(lift_module *m, const bool *outside)
{
    VEC(const char *) all = {0};
    const image *img = m->img;
    for (uint32_t i = 0; img->kind == IMAGE_OBJECT && i < img->symbol_count; i++) {
        const image_symbol *s = &img->symbols[i];
        if (s->bind == IMAGE_BIND_LOCAL || s->type != IMAGE_SYM_FUNC) continue;
        const lift_func *f = lift_func_at(m, s->addr);
        if (f && !f->returns) vec_push(&all, s->name);
    }
    lift_told *told = base_alloc(sizeof *told);
    *told = (lift_told){.outside = base_alloc(plt_count(img) + 1), .dead = all.data, .dead_count = all.len, .next = m->told};
    memcpy(told->outside, outside, plt_count(img) * sizeof *outside);
    m->told = told;
}

/* Lifts an object for a question, in the place of what it was lifted for before. */
static void lift_for(const image *img, const lift_options *options, const bool *outside, lift_module **module)
{
    lift_options how = *options;
    dead_set dead = {.names = base_alloc((plt_count(img) + 1) * sizeof(char *))};
    for (uint32_t i = 0; i < plt_count(img); i++)
        if (outside[i]) dead.names[dead.count++] = img->plts[i].name;
    if (dead.count) qsort(dead.names, dead.count, sizeof *dead.names, by_name);
    if (img->kind == IMAGE_OBJECT) {
        how.ends = is_dead;
        how.with = &dead;
    }
    lift_module *m = lift_open(img, &how), *old = *module;
    free(dead.names);
    m->outside_dead = arena_alloc(&m->memory, plt_count(img) + 1);
    memcpy(m->outside_dead, outside, plt_count(img) * sizeof *outside);
    if (old) {
        m->told = old->told;
        old->told = NULL;
        lift_close(old);
    }
    if (!find_told(m, outside)) tell(m, outside);
    *module = m;
}

/* All that is told to be dead. A name that is defined twice counts when any of them is. */
static dead_set collect(lift_module **modules, bool **asked, uint32_t count)
{
    VEC(const char *) all = {0};
    for (uint32_t m = 0; m < count; m++) {
        const lift_told *told = find_told(modules[m], asked[m]);
        for (uint32_t i = 0; i < told->dead_count; i++)
            vec_push(&all, told->dead[i]);
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_name);
    return (dead_set){all.data, all.len};
}

/* What is lifted already, in out, may be of any earlier state. */
static uint32_t grow(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    uint32_t lifted = 0;
    bool **asked = base_alloc_zero(count, sizeof *asked);
    for (uint32_t i = 0; i < count; i++) {
        asked[i] = ask(images[i], &(dead_set){0});
        if (find_told(out[i], asked[i])) continue;
        lift_for(images[i], options, asked[i], &out[i]);
        lifted++;
    }
    bool changed = true;
    for (int round = 0; round < ROUNDS && changed; round++) {
        dead_set dead = collect(out, asked, count);
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            bool *now = ask(images[i], &dead);
            bool same = is_same(images[i], now, asked[i]);
            free(asked[i]);
            asked[i] = now;
            if (same) continue;
            changed = true;
            if (find_told(out[i], now)) continue;
            lift_for(images[i], options, now, &out[i]);
            lifted++;
        }
        free(dead.names);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_same(images[i], out[i]->outside_dead, asked[i])) {
            lift_for(images[i], options, asked[i], &out[i]);
            lifted++;
        }
        free(asked[i]);
    }
    free(asked);
    return lifted;
}

void lift_open_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    memset(out, 0, count * sizeof *out);
    grow(images, count, options, out);
}

uint32_t lift_update_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    return grow(images, count, options, out);
}
