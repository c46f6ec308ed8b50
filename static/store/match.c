/* The functions of two builds: in passes, each of which pairs what is left by a key that says a little less than the one
 * before. Renaming shows in the bodies of callers, so the passes are repeated with the names that are known to have changed. */
#include "static/store/store.h"

#include <stdlib.h>

#include "static/pointer/map.h"

typedef enum { BY_ALL, BY_PLACE, BY_NAME, BY_AROUND, BY_BODY, BY_CHANGED_PLACE, BY_CHANGED_NAME } pass;

typedef struct {
    const store_record *old, *new;
    store_match *out;
    map64 renamed;          /* name hash of the old build: number in `names` */
    VEC(uint64_t) names;    /* of the new build */
    uint32_t renames;
} matcher;

typedef struct {
    uint64_t key;
    uint32_t module, func;
} entry;
typedef VEC(entry) entries;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static uint64_t text_hash(const char *text, uint64_t seed)
{
    return store_hash(text, strlen(text), seed);
}

/* What it does, in the names of the new build. */
static uint64_t body_of(const matcher *m, bool old, const store_func *f)
{
    if (!old || !m->renames) return f->body;
    uint64_t *names = base_alloc(f->callee_count * sizeof *names);
    for (uint32_t i = 0; i < f->callee_count; i++) {
        uint32_t to = map_get(&m->renamed, f->callees[i] >> 1);
        names[i] = to == MAP_NONE ? f->callees[i] : m->names.data[to];
    }
    uint64_t hash = store_hash(names, f->callee_count * sizeof *names, f->shape);
    free(names);
    return hash;
}

/* False: the pass is not for this function. */
static bool key_of(const matcher *m, pass by, bool old, const store_module *module, const store_func *f, uint64_t *key)
{
    bool named = *f->name;
    uint64_t name = text_hash(f->name, 7);
    uint64_t place = text_hash(base_name(module->path), text_hash(module->member, text_hash(f->file, name)));
    uint64_t ordinal = store_hash(&f->ordinal, sizeof f->ordinal, place), body = body_of(m, old, f);
    switch (by) {
    case BY_ALL: *key = store_hash(&body, sizeof body, ordinal); return named;
    case BY_PLACE: *key = store_hash(&body, sizeof body, place); return named;
    case BY_NAME: *key = store_hash(&body, sizeof body, name); return named;
    case BY_AROUND: *key = f->around; return !named;
    case BY_BODY: *key = body; return true;
    case BY_CHANGED_PLACE: *key = ordinal; return named;
    case BY_CHANGED_NAME: *key = name; return named;
    }
    return false;
}

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    return x->func < y->func ? -1 : x->func > y->func;
}

static void collect(const matcher *m, pass by, bool old, entries *out)
{
    const store_record *r = old ? m->old : m->new;
    store_twin **twins = old ? m->out->old_twins : m->out->new_twins;
    for (uint32_t k = 0; k < r->module_count; k++)
        for (uint32_t f = 0; f < r->modules[k].func_count; f++) {
            uint64_t key;
            if (twins[k][f].change == STORE_LONE && key_of(m, by, old, &r->modules[k], &r->modules[k].funcs[f], &key))
                vec_push(out, (entry){key, k, f});
        }
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_key);
}

static void pair(matcher *m, uint32_t om, uint32_t of, uint32_t nm, uint32_t nf, store_change change)
{
    const store_func *a = &m->old->modules[om].funcs[of], *b = &m->new->modules[nm].funcs[nf];
    if (change == STORE_SAME && *a->name && *b->name && strcmp(a->name, b->name)) {
        change = STORE_RENAMED;
        uint32_t *at = map_at(&m->renamed, store_name_hash(a->name) >> 1);
        if (*at == MAP_NONE) {
            *at = m->names.len;
            vec_push(&m->names, store_name_hash(b->name));
            m->renames++;
        }
    }
    m->out->old_twins[om][of] = (store_twin){nm, nf, (uint8_t)change};
    m->out->new_twins[nm][nf] = (store_twin){om, of, (uint8_t)change};
}

static void run(matcher *m, pass by)
{
    entries old = {0}, new = {0};
    collect(m, by, true, &old);
    collect(m, by, false, &new);
    for (uint32_t i = 0, k = 0; i < old.len && k < new.len;) {
        const entry *a = &old.data[i], *b = &new.data[k];
        if (a->key == b->key) {
            pair(m, a->module, a->func, b->module, b->func, by >= BY_CHANGED_PLACE ? STORE_CHANGED : STORE_SAME);
            i++, k++;
        } else if (a->key < b->key) {
            i++;
        } else {
            k++;
        }
    }
    vec_free(&old);
    vec_free(&new);
}

/* Where nothing has a name: as many functions between the same neighbours are the same ones, changed. */
static void run_between(matcher *m)
{
    for (uint32_t k = 0; k < m->old->module_count; k++) {
        const store_module *module = &m->old->modules[k];
        store_twin *twins = m->out->old_twins[k];
        for (uint32_t f = 1; f < module->func_count; f++) {
            if (twins[f].change != STORE_LONE || twins[f - 1].change == STORE_LONE) continue;
            uint32_t end = f, before = twins[f - 1].func, other = twins[f - 1].module;
            while (end < module->func_count && twins[end].change == STORE_LONE)
                end++;
            if (end < module->func_count && (twins[end].module != other || twins[end].func != before + 1 + (end - f))) continue;
            if (end == module->func_count && m->new->modules[other].func_count != before + 1 + (end - f)) continue;
            for (uint32_t i = f; i < end; i++) {
                uint32_t twin = before + 1 + (i - f);
                bool lone = m->out->new_twins[other][twin].change == STORE_LONE;
                if (lone && !*module->funcs[i].name && !*m->new->modules[other].funcs[twin].name)
                    pair(m, k, i, other, twin, STORE_CHANGED);
            }
        }
    }
}

static store_twin **lone_twins(const store_record *r)
{
    store_twin **all = base_alloc(r->module_count * sizeof *all);
    for (uint32_t k = 0; k < r->module_count; k++) {
        all[k] = base_alloc(r->modules[k].func_count * sizeof **all);
        for (uint32_t f = 0; f < r->modules[k].func_count; f++)
            all[k][f] = (store_twin){STORE_NONE, STORE_NONE, STORE_LONE};
    }
    return all;
}

void store_match_open(const store_record *old, const store_record *new, store_match *out)
{
    enum { ROUNDS = 8 };
    *out = (store_match){.old_count = old->module_count, .new_count = new->module_count};
    out->old_twins = lone_twins(old);
    out->new_twins = lone_twins(new);
    matcher m = {.old = old, .new = new, .out = out};
    for (uint32_t round = 0, renames = UINT32_MAX; round < ROUNDS && renames != m.renames; round++) {
        renames = m.renames;
        for (pass by = BY_ALL; by <= BY_BODY; by++)
            run(&m, by);
    }
    run(&m, BY_CHANGED_PLACE);
    run(&m, BY_CHANGED_NAME);
    run_between(&m);
    for (uint32_t k = 0; k < new->module_count; k++)
        for (uint32_t f = 0; f < new->modules[k].func_count; f++) {
            uint8_t change = out->new_twins[k][f].change;
            uint32_t *counts[] = {&out->same, &out->renamed, &out->changed, &out->added};
            ++*counts[change];
        }
    for (uint32_t k = 0; k < old->module_count; k++)
        for (uint32_t f = 0; f < old->modules[k].func_count; f++)
            out->removed += out->old_twins[k][f].change == STORE_LONE;
    vec_free(&m.names);
    map_free(&m.renamed);
}

void store_match_free(store_match *match)
{
    for (uint32_t k = 0; k < match->old_count; k++)
        free(match->old_twins[k]);
    for (uint32_t k = 0; k < match->new_count; k++)
        free(match->new_twins[k]);
    free(match->old_twins);
    free(match->new_twins);
    *match = (store_match){0};
}
