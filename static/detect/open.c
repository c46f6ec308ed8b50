/* Opening a search: types, races, deadlocks, then what the user does not want to see, then names and order. */
#include "static/detect/private.h"

#include <stdlib.h>

static void free_warning(detect_warning *w)
{
    free(w->location);
    free(w->key);
    free(w->about);
    free(w->accesses);
    free(w->holders);
}

static void drop_suppressed(detect *d)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->warnings.len; i++) {
        bool suppressed = detect_suppressed(d, &d->warnings.data[i]), benign = detect_is_benign(d, &d->warnings.data[i]);
        if (suppressed || benign) {
            d->stats.suppressed += suppressed;
            d->stats.benign += benign && !suppressed;
            free_warning(&d->warnings.data[i]);
        } else {
            d->warnings.data[kept++] = d->warnings.data[i];
        }
    }
    d->warnings.len = kept;
}

detect *detect_open(hb *h, const pta *p, const pta_program *program, const detect_options *options)
{
    detect *d = base_alloc_zero(1, sizeof *d);
    d->h = h;
    d->p = p;
    d->program = program;
    d->options = *options;
    detect_notes_open(d);
    detect_types_open(d);
    detect_declared_open(d);
    detect_decide_open(d);
    detect_races(d);
    detect_deadlocks(d);
    detect_identify(d);
    drop_suppressed(d);
    detect_decide_finish(d);
    return d;
}

void detect_close(detect *d)
{
    if (!d) return;
    for (uint32_t i = 0; i < d->warnings.len; i++)
        free_warning(&d->warnings.data[i]);
    vec_free(&d->warnings);
    detect_decide_close(d);
    detect_declared_close(d);
    detect_names_close(d);
    vec_free(&d->notes);
    free(d->types);
    free(d);
}

const detect_warnings *detect_found(const detect *d)
{
    return &d->warnings;
}

const detect_statistics *detect_stats(const detect *d)
{
    return &d->stats;
}
