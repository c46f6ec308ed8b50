/* The warnings of `race check` for scripts: check.schema.json describes them. */
#include "tools/race/check.h"

#include <stdlib.h>

static const char *const confidences[] = {[DETECT_HIGH] = "high", [DETECT_MEDIUM] = "medium", [DETECT_LOW] = "low"};

static void add(json_t *object, const char *key, json_t *value)
{
    if (!value || json_object_set_new(object, key, value)) base_oom(0);
}

static void push(json_t *array, json_t *value)
{
    if (!value || json_array_append_new(array, value)) base_oom(0);
}

static json_t *locks_of(const check *c, uint32_t set)
{
    json_t *array = json_array();
    char name[300];
    for (uint32_t i = 0; hb_lock_name(c->order, set, i, name, sizeof name); i++)
        push(array, cli_json(name));
    return array;
}

static void add_place(const check *c, json_t *object, const detect_access *a)
{
    check_place place = check_place_at(c, a);
    char origin[400];
    check_origin(c, a->origin, origin, sizeof origin);
    add(object, "function", cli_json(place.function));
    add(object, "file", place.file ? cli_json(place.file) : json_null());
    add(object, "line", place.file ? json_integer(place.line) : json_null());
    add(object, "address", json_integer((json_int_t)a->addr));
    add(object, "module", cli_json(place.path));
    add(object, "origin", cli_json(origin));
}

static json_t *race_of(const check *c, const detect_warning *w)
{
    json_t *object = json_object(), *location = json_object(), *reasons = json_array(), *accesses = json_array();
    add(object, "id", cli_json(w->id));
    add(object, "kind", json_string("race"));
    add(location, "name", cli_json(w->location));
    add(location, "size", json_integer(w->size));
    if (w->about) add(location, "about", cli_json(w->about));
    add(object, "location", location);
    add(object, "confidence", json_string(confidences[w->confidence]));
    for (uint32_t i = 0; i < w->reason_count; i++)
        push(reasons, cli_json(w->reasons[i]));
    add(object, "reasons", reasons);
    if (w->why) add(object, "not_ordered", cli_json(w->why));
    for (uint32_t i = 0; i < w->access_count; i++) {
        json_t *access = json_object();
        add(access, "op", json_string(w->accesses[i].write ? "write" : "read"));
        add(access, "atomic", json_boolean(w->accesses[i].atomic));
        add_place(c, access, &w->accesses[i]);
        add(access, "locks", locks_of(c, w->accesses[i].locks));
        push(accesses, access);
    }
    add(object, "accesses", accesses);
    return object;
}

static json_t *deadlock_of(const check *c, const detect_warning *w)
{
    json_t *object = json_object(), *cycle = json_array(), *reasons = json_array();
    add(object, "id", cli_json(w->id));
    add(object, "kind", json_string("deadlock"));
    add(object, "confidence", json_string(confidences[w->confidence]));
    for (uint32_t i = 0; i < w->reason_count; i++)
        push(reasons, cli_json(w->reasons[i]));
    add(object, "reasons", reasons);
    for (uint32_t i = 0; i < w->access_count; i++) {
        json_t *step = json_object();
        char lock[300] = "a lock";
        if (w->accesses[i].lock != HB_NONE) hb_one_lock_name(c->order, w->accesses[i].lock, lock, sizeof lock);
        add(step, "lock", cli_json(lock));
        add_place(c, step, &w->accesses[i]);
        add(step, "holding", locks_of(c, w->accesses[i].locks));
        if (w->holders[i].func != PTA_NO_FUNC) {
            json_t *since = json_object();
            add_place(c, since, &w->holders[i]);
            add(step, "since", since);
        }
        push(cycle, step);
    }
    add(object, "cycle", cycle);
    return object;
}

static json_t *stats_of(const check *c, bool times)
{
    const hb_statistics *h = hb_stats(c->order);
    const detect_statistics *d = detect_stats(c->found);
    json_t *s = json_object();
    if (times) {
        add(s, "seconds", json_real(c->seconds));
        add(s, "seconds_read", json_real(c->seconds_lift));
        add(s, "seconds_pointer", json_real(c->seconds_pointer));
        add(s, "seconds_order", json_real(c->seconds_order));
        add(s, "seconds_detect", json_real(c->seconds_detect));
    }
    add(s, "origins", json_integer(h->origins));
    add(s, "threads", json_integer(h->threads));
    add(s, "events", json_integer(h->events));
    add(s, "called_from_outside", json_integer(h->outside));
    add(s, "accesses", json_integer((json_int_t)h->accesses));
    add(s, "accesses_unknown", json_integer((json_int_t)h->accesses_unknown));
    add(s, "accesses_lost", json_integer((json_int_t)h->accesses_lost));
    add(s, "accesses_nowhere", json_integer((json_int_t)h->accesses_nowhere));
    add(s, "unknown_calls", json_integer((json_int_t)c->program->unknown_calls));
    add(s, "lock_calls", json_integer(h->lock_calls));
    add(s, "lock_calls_unknown", json_integer(h->lock_calls_unknown));
    add(s, "objects", json_integer(h->objects));
    add(s, "objects_shared", json_integer(d->places_shared));
    add(s, "pairs", json_integer((json_int_t)d->pairs));
    add(s, "pairs_guarded", json_integer((json_int_t)d->pairs_guarded));
    add(s, "pairs_ordered", json_integer((json_int_t)d->pairs_ordered));
    add(s, "pairs_apart", json_integer((json_int_t)d->pairs_disjoint));
    add(s, "suppressed", json_integer(d->suppressed));
    add(s, "benign", json_integer(d->benign));
    return s;
}

void check_json(const check *c, bool stats)
{
    json_t *top = json_object(), *modules = json_array(), *warnings = json_array();
    const detect_warnings *all = detect_found(c->found);
    add(top, "version", json_integer(1));
    for (uint32_t m = 0; m < c->module_count; m++) {
        json_t *module = json_object();
        add(module, "path", cli_json(c->modules[m]->img->path));
        add(module, "build_id", cli_json(c->modules[m]->img->build_id));
        add(module, "functions", json_integer(c->modules[m]->stats.functions));
        add(module, "instructions", json_integer((json_int_t)c->modules[m]->stats.instructions));
        push(modules, module);
    }
    add(top, "modules", modules);
    for (uint32_t i = 0; i < all->len; i++)
        push(warnings, all->data[i].kind == DETECT_RACE ? race_of(c, &all->data[i]) : deadlock_of(c, &all->data[i]));
    add(top, "warnings", warnings);
    add(top, "stats", stats_of(c, stats));
    json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(top);
}
