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

static json_t *texts_of(const char **all, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        push(array, cli_json(all[i]));
    return array;
}

static void add_place(json_t *object, const store_place *place, const char *origin, names *n)
{
    char readable[1024];
    add(object, "function", cli_json(place->function));
    if (names_show(n, place->function, readable, sizeof readable)) add(object, "demangled", cli_json(readable));
    add(object, "file", place->file ? cli_json(place->file) : json_null());
    add(object, "line", place->file ? json_integer(place->line) : json_null());
    add(object, "address", json_integer((json_int_t)place->addr));
    add(object, "module", cli_json(place->path));
    add(object, "origin", cli_json(origin));
}

static void race_of(const store_warning *w, json_t *object, names *n)
{
    json_t *location = json_object(), *accesses = json_array();
    add(object, "kind", json_string("race"));
    add(location, "name", cli_json(w->location));
    add(location, "size", json_integer(w->size));
    if (w->about) add(location, "about", cli_json(w->about));
    add(object, "location", location);
    add(object, "confidence", json_string(confidences[w->confidence]));
    add(object, "reasons", texts_of(w->reasons, w->reason_count));
    if (w->why) add(object, "not_ordered", cli_json(w->why));
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        json_t *access = json_object();
        add(access, "op", json_string(s->write ? "write" : "read"));
        add(access, "atomic", json_boolean(s->atomic));
        add_place(access, &s->at, s->origin, n);
        add(access, "locks", texts_of(s->locks, s->lock_count));
        push(accesses, access);
    }
    add(object, "accesses", accesses);
}

static void deadlock_of(const store_warning *w, json_t *object, names *n)
{
    json_t *cycle = json_array();
    add(object, "kind", json_string("deadlock"));
    add(object, "confidence", json_string(confidences[w->confidence]));
    add(object, "reasons", texts_of(w->reasons, w->reason_count));
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        json_t *step = json_object();
        add(step, "lock", cli_json(s->lock ? s->lock : "a lock"));
        add_place(step, &s->at, s->origin, n);
        add(step, "holding", texts_of(s->locks, s->lock_count));
        if (s->has_since) {
            json_t *since = json_object();
            add_place(since, &s->since, s->origin, n);
            add(step, "since", since);
        }
        push(cycle, step);
    }
    add(object, "cycle", cycle);
}

json_t *check_json_warning(const store_warning *w, names *n)
{
    json_t *object = json_object();
    add(object, "id", cli_json(w->id));
    if (w->kind == DETECT_RACE)
        race_of(w, object, n);
    else
        deadlock_of(w, object, n);
    return object;
}

json_t *check_json_modules(const store_record *record)
{
    json_t *modules = json_array();
    for (uint32_t m = 0; m < record->module_count; m++) {
        json_t *module = json_object();
        add(module, "path", cli_json(record->modules[m].path));
        add(module, "build_id", cli_json(record->modules[m].build_id));
        add(module, "functions", json_integer(record->modules[m].func_count));
        add(module, "instructions", json_integer((json_int_t)record->modules[m].instructions));
        push(modules, module);
    }
    return modules;
}

static json_t *stats_of(const check *c, const store_record *record, bool times)
{
    json_t *s = json_object();
    if (times) {
        add(s, "seconds", json_real(c->seconds));
        add(s, "seconds_read", json_real(c->seconds_lift));
        add(s, "seconds_pointer", json_real(c->seconds_pointer));
        add(s, "seconds_order", json_real(c->seconds_order));
        add(s, "seconds_detect", json_real(c->seconds_detect));
    }
    for (uint32_t i = 0; i < record->counter_count; i++)
        add(s, record->counters[i].name, json_integer((json_int_t)record->counters[i].value));
    return s;
}

void check_json(const check *c, const store_record *record, bool stats)
{
    json_t *top = json_object(), *warnings = json_array();
    names shown = {0};
    add(top, "version", json_integer(1));
    add(top, "modules", check_json_modules(record));
    for (uint32_t i = 0; i < record->warning_count; i++)
        push(warnings, check_json_warning(&record->warnings[i], &shown));
    names_close(&shown);
    add(top, "warnings", warnings);
    add(top, "stats", stats_of(c, record, stats));
    check_json_print(top, false);
}

void check_json_print(json_t *top, bool line)
{
    json_dumpf(top, stdout, (line ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(top);
}
