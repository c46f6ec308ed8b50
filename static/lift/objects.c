/* Several modules of one program. A linked module knows of each of its functions whether it returns; object files know it of
 * each other's only together: code behind a call that never returns is no code, and may be another function.
 *
 * The least set of functions that never return is not looked for: it grows from what each object can tell, in rounds. */
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

/* The global functions of object files that never return. A name that is defined twice counts when any of them does. */
static dead_set find_dead(lift_module **modules, uint32_t count)
{
    VEC(const char *) all = {0};
    for (uint32_t m = 0; m < count; m++) {
        const image *img = modules[m]->img;
        for (uint32_t i = 0; img->kind == IMAGE_OBJECT && i < img->symbol_count; i++) {
            const image_symbol *s = &img->symbols[i];
            if (s->bind == IMAGE_BIND_LOCAL || s->type != IMAGE_SYM_FUNC) continue;
            const lift_func *f = lift_func_at(modules[m], s->addr);
            if (f && !f->returns) vec_push(&all, s->name);
        }
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_name);
    return (dead_set){all.data, all.len};
}

static lift_module *lift_with(const image *img, const lift_options *options, const dead_set *dead)
{
    lift_options how = *options;
    if (img->kind == IMAGE_OBJECT) {
        how.ends = is_dead;
        how.with = dead;
    }
    return lift_open(img, &how);
}

/* What is known of the functions that a module calls differs from when it was lifted. `*less`: one of them returns after all. */
static bool is_stale(const lift_module *m, const dead_set *now, bool *less)
{
    bool stale = false;
    for (uint32_t i = 0; m->img->kind == IMAGE_OBJECT && i < m->img->plt_count; i++) {
        bool dead = is_dead(now, m->img->plts[i].name);
        stale |= dead != m->outside_dead[i];
        *less |= !dead && m->outside_dead[i];
    }
    return stale;
}

static void remember(lift_module *m, const dead_set *dead)
{
    m->outside_dead = arena_alloc(&m->memory, m->img->plt_count);
    for (uint32_t i = 0; m->img->kind == IMAGE_OBJECT && i < m->img->plt_count; i++)
        m->outside_dead[i] = is_dead(dead, m->img->plts[i].name);
}

static uint32_t grow(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    dead_set dead = {0};
    uint32_t lifted = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (out[i]) continue;
        out[i] = lift_with(images[i], options, &dead);
        remember(out[i], &dead);
        lifted++;
    }
    for (int round = 0; round < ROUNDS; round++) {
        bool changed = false, less = false;
        dead = find_dead(out, count);
        for (uint32_t i = 0; i < count; i++) {
            if (!is_stale(out[i], &dead, &less)) continue;
            lift_module *again = lift_with(images[i], options, &dead);
            remember(again, &dead);
            lift_close(out[i]);
            out[i] = again;
            lifted++;
            changed = true;
        }
        free(dead.names);
        if (!changed) break;
    }
    return lifted;
}

void lift_open_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    memset(out, 0, count * sizeof *out);
    grow(images, count, options, out);
}

uint32_t lift_update_all(const image *const *images, uint32_t count, const lift_options *options, lift_module **out)
{
    uint32_t lifted = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (out[i]) continue;
        dead_set none = {0};
        out[i] = lift_with(images[i], options, &none);
        remember(out[i], &none);
        lifted++;
    }
    bool less = false;
    dead_set dead = find_dead(out, count);
    for (uint32_t i = 0; i < count; i++)
        is_stale(out[i], &dead, &less);
    free(dead.names);
    /* Functions that never return only because each other does not: from the beginning, so that the result is the same. */
    for (uint32_t i = 0; less && i < count; i++)
        if (out[i]->img->kind == IMAGE_OBJECT) {
            lift_close(out[i]);
            out[i] = NULL;
        }
    return lifted + grow(images, count, options, out);
}
