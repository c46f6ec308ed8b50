/* All accesses of places, sorted. Those of one object come in the order of ties, which are of the names of functions, and of
 * instructions: who is paired with whom must not depend on what a relink moves. */
#include "static/detect/private.h"

#include <stdlib.h>

enum { TIE_SHIFT = 20 };

typedef struct {
    uint64_t tie;
    uint32_t touch, end; /* of one function; or just one */
} touch_run;
typedef VEC(touch_run) touch_runs;

static int by_tie(const void *a, const void *b)
{
    const touch_run *x = a, *y = b;
    if (x->tie != y->tie) return x->tie < y->tie ? -1 : 1;
    return x->touch < y->touch ? -1 : x->touch > y->touch;
}

/* By object, each in the order in which they are. */
static void sort_by_object(const detect *d, detect_entries *entries)
{
    uint32_t objects = hb_object_count(d->h), count = entries->len;
    uint32_t *first = base_alloc_zero((size_t)objects + 1, sizeof *first);
    detect_entry *sorted = base_alloc(count * sizeof *sorted);
    for (uint32_t e = 0; e < count; e++)
        first[entries->data[e].object + 1]++;
    for (uint32_t o = 0; o < objects; o++)
        first[o + 1] += first[o];
    for (uint32_t e = 0; e < count; e++)
        sorted[first[entries->data[e].object]++] = entries->data[e];
    memcpy(entries->data, sorted, count * sizeof *sorted);
    free(sorted);
    free(first);
}

static uint64_t tie_of(const detect *d, uint32_t func)
{
    uint64_t hash = 0;
    for (const char *c = d->program->funcs.data[func].name; *c && (*c != '.' || !hash); c++)
        hash = map_hash(hash + (uint8_t)*c);
    return hash << TIE_SHIFT;
}

/* Accesses of functions of one name, each by its own tie. */
static void add_touches(const hb_touch *touches, const touch_run *runs, uint32_t count, touch_runs *out)
{
    uint32_t first = out->len;
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t t = runs[r].touch; t < runs[r].end; t++)
            vec_push(out, ((touch_run){runs[r].tie | (touches[t].insn & ((1u << TIE_SHIFT) - 1)), t, t + 1}));
    qsort(out->data + first, out->len - first, sizeof *out->data, by_tie);
}

/* All accesses by ties: functions by their names, of which there are few, and what they access as it comes, by instruction. */
static void order_touches(const detect *d, touch_runs *out)
{
    uint32_t count;
    const hb_touch *touches = hb_touches(d->h, &count);
    touch_runs runs = {0};
    for (uint32_t t = 0, end; t < count; t = end) {
        for (end = t + 1; end < count && touches[end].func == touches[t].func;)
            end++;
        vec_push(&runs, ((touch_run){tie_of(d, touches[t].func), t, end}));
    }
    if (runs.len) qsort(runs.data, runs.len, sizeof *runs.data, by_tie);
    for (uint32_t r = 0, end; r < runs.len; r = end) {
        for (end = r + 1; end < runs.len && runs.data[end].tie == runs.data[r].tie;)
            end++;
        const touch_run *run = &runs.data[r];
        if (end - r > 1 || touches[run->end - 1].insn >> TIE_SHIFT)
            add_touches(touches, run, end - r, out);
        else
            vec_push(out, *run);
    }
    vec_free(&runs);
}

void detect_entries_collect(const detect *d, detect_entries *out)
{
    uint32_t count;
    touch_runs runs = {0};
    const hb_touch *touches = hb_touches(d->h, &count);
    order_touches(d, &runs);
    for (uint32_t r = 0; r < runs.len; r++)
        for (uint32_t t = runs.data[r].touch; t < runs.data[r].end; t++) {
            const hb_place *places = hb_places(d->h, &touches[t]);
            for (uint32_t i = 0; i < touches[t].place_count; i++)
                vec_push(out, ((detect_entry){hb_extent_at(d->h, places[i].extent)->object, t, i, places[i].extent}));
        }
    vec_free(&runs);
    if (out->len) sort_by_object(d, out);
}
