/* The warnings of two analyses: paired like functions, in passes by keys that say less and less, and an old id goes on with its
 * warning. A key is of the functions as they were matched, never of their names or addresses. */
#include "static/store/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "static/pointer/map.h"

/* By place and instruction; by place (a function was changed, so its instructions have other numbers); by instruction (a place
 * has another name, for example of a function that was renamed). */
typedef enum { BY_BOTH, BY_LOCATION, BY_INSTRUCTION, PASSES } pass;

typedef struct {
    uint64_t key;
    uint32_t warning;
} entry;
typedef VEC(entry) entries;

/* The number of a side's function in the new build; false: it is not there any more. */
static bool function_of(const store_match *match, bool old, const store_place *at, uint64_t *out, bool *changed)
{
    uint32_t module = at->module, func = at->func;
    if (module == STORE_NONE) return false;
    *changed |= (old ? match->old_twins : match->new_twins)[module][func].change > STORE_RENAMED;
    if (old) {
        store_twin twin = match->old_twins[module][func];
        if (twin.change == STORE_LONE) return false;
        module = twin.module;
        func = twin.func;
    }
    *out = (uint64_t)module << 32 | func;
    return true;
}

static bool key_of(const store_match *match, bool old, const store_warning *w, pass by, uint64_t *key)
{
    uint64_t sides = 0; /* either order */
    bool changed = false;
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *side = &w->sides[i];
        struct {
            uint64_t function;
            uint32_t insn;
            uint8_t write, read, atomic, unused;
        } print = {.write = side->write, .read = side->read, .atomic = side->atomic};
        if (!function_of(match, old, &side->at, &print.function, &changed)) return false;
        if (by != BY_LOCATION) print.insn = side->at.insn;
        uint64_t hash = store_hash(&print, sizeof print, 3);
        sides += hash * (hash | 1);
    }
    if (changed && by == BY_INSTRUCTION) return false;
    *key = store_hash(&sides, sizeof sides, w->kind);
    if (by != BY_INSTRUCTION) *key = store_hash(w->key, strlen(w->key), *key);
    return true;
}

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->warning < y->warning ? -1 : x->warning > y->warning;
}

static void collect(const store_match *match, const store_record *r, bool old, const uint32_t *taken, pass by, entries *out)
{
    vec_clear(out);
    for (uint32_t i = 0; i < r->warning_count; i++) {
        uint64_t key;
        if (taken[i] == STORE_NONE && key_of(match, old, &r->warnings[i], by, &key)) vec_push(out, (entry){key, i});
    }
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_key);
}

static uint64_t id_key(const char *id, unsigned attempt)
{
    return store_hash(id, strlen(id), attempt) >> 1;
}

/* A new warning may not have the id of an old one that goes on under it. */
static void keep_ids(const store_record *old, store_record *new, const uint32_t *twins)
{
    map64 used = {0};
    for (uint32_t i = 0; i < new->warning_count; i++) {
        if (twins[i] == STORE_NONE) continue;
        const char *id = old->warnings[twins[i]].id;
        new->warnings[i].id = arena_string(&new->memory, id, strlen(id));
        *map_at(&used, id_key(id, 0)) = i;
    }
    for (uint32_t i = 0; i < new->warning_count; i++) {
        store_warning *w = &new->warnings[i];
        if (twins[i] != STORE_NONE) continue;
        for (unsigned attempt = 1; *map_at(&used, id_key(w->id, 0)) != MAP_NONE; attempt++) {
            char id[20];
            snprintf(id, sizeof id, "%c%012llx", w->id[0], (unsigned long long)(id_key(w->id, attempt) >> 15));
            w->id = arena_string(&new->memory, id, strlen(id));
        }
        *map_at(&used, id_key(w->id, 0)) = i;
    }
    map_free(&used);
}

uint32_t *store_compare(const store_record *old, store_record *new, const store_match *match)
{
    uint32_t *twins = base_alloc(new->warning_count * sizeof *twins), *taken = base_alloc(old->warning_count * sizeof *taken);
    memset(twins, 0xff, new->warning_count * sizeof *twins);
    memset(taken, 0xff, old->warning_count * sizeof *taken);
    entries a = {0}, b = {0};
    for (pass by = BY_BOTH; by < PASSES; by++) {
        collect(match, old, true, taken, by, &a);
        collect(match, new, false, twins, by, &b);
        for (uint32_t i = 0, k = 0; i < a.len && k < b.len;) {
            if (a.data[i].key == b.data[k].key) {
                taken[a.data[i].warning] = b.data[k].warning;
                twins[b.data[k].warning] = a.data[i].warning;
                i++, k++;
            } else if (a.data[i].key < b.data[k].key) {
                i++;
            } else {
                k++;
            }
        }
    }
    vec_free(&a);
    vec_free(&b);
    free(taken);
    keep_ids(old, new, twins);
    return twins;
}
