/* The warnings of `race check` for scripts: check.schema.json describes them. */
#include "tools/race/check.h"

static const char *const confidences[] = {[DETECT_HIGH] = "high", [DETECT_MEDIUM] = "medium", [DETECT_LOW] = "low"};

static void add_texts(json_out *o, const char *key, const char **all, uint32_t count)
{
    out_array(o, key);
    for (uint32_t i = 0; i < count; i++)
        out_text(o, NULL, all[i]);
    out_end(o, ']');
}

static void add_place(json_out *o, const store_place *place, const char *origin, names *n)
{
    char readable[1024];
    out_text(o, "function", place->function);
    if (names_show(n, place->function, readable, sizeof readable)) out_text(o, "demangled", readable);
    out_text(o, "file", place->file);
    if (place->file)
        out_number(o, "line", place->line);
    else
        out_null(o, "line");
    out_number(o, "address", (int64_t)place->addr);
    out_text(o, "module", place->path);
    out_text(o, "origin", origin);
}

static void add_race(json_out *o, const store_warning *w, names *n)
{
    out_text(o, "kind", "race");
    out_object(o, "location");
    out_text(o, "name", w->location);
    out_number(o, "size", w->size);
    if (w->about) out_text(o, "about", w->about);
    out_end(o, '}');
    out_text(o, "confidence", confidences[w->confidence]);
    add_texts(o, "reasons", w->reasons, w->reason_count);
    if (w->why) out_text(o, "not_ordered", w->why);
    out_array(o, "accesses");
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        out_object(o, NULL);
        out_text(o, "op", s->write ? "write" : "read");
        out_bool(o, "atomic", s->atomic);
        add_place(o, &s->at, s->origin, n);
        add_texts(o, "locks", s->locks, s->lock_count);
        out_end(o, '}');
    }
    out_end(o, ']');
}

static void add_deadlock(json_out *o, const store_warning *w, names *n)
{
    out_text(o, "kind", "deadlock");
    out_text(o, "confidence", confidences[w->confidence]);
    add_texts(o, "reasons", w->reasons, w->reason_count);
    out_array(o, "cycle");
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        out_object(o, NULL);
        out_text(o, "lock", s->lock ? s->lock : "a lock");
        add_place(o, &s->at, s->origin, n);
        add_texts(o, "holding", s->locks, s->lock_count);
        if (s->has_since) {
            out_object(o, "since");
            add_place(o, &s->since, s->origin, n);
            out_end(o, '}');
        }
        out_end(o, '}');
    }
    out_end(o, ']');
}

void check_json_warning(json_out *o, const store_warning *w, names *n)
{
    out_object(o, NULL);
    out_text(o, "id", w->id);
    if (w->kind == DETECT_RACE)
        add_race(o, w, n);
    else
        add_deadlock(o, w, n);
    out_end(o, '}');
}

void check_json_modules(json_out *o, const store_record *record)
{
    out_array(o, "modules");
    for (uint32_t m = 0; m < record->module_count; m++) {
        out_object(o, NULL);
        out_text(o, "path", record->modules[m].path);
        out_text(o, "build_id", record->modules[m].build_id);
        out_number(o, "functions", record->modules[m].func_count);
        out_number(o, "instructions", (int64_t)record->modules[m].instructions);
        out_end(o, '}');
    }
    out_end(o, ']');
}

static void add_stats(json_out *o, const check *c, const store_record *record, bool times)
{
    out_object(o, "stats");
    if (times) {
        out_real(o, "seconds", c->seconds);
        out_real(o, "seconds_read", c->seconds_lift);
        out_real(o, "seconds_pointer", c->seconds_pointer);
        out_real(o, "seconds_order", c->seconds_order);
        out_real(o, "seconds_detect", c->seconds_detect);
    }
    for (uint32_t i = 0; i < record->counter_count; i++)
        out_number(o, record->counters[i].name, (int64_t)record->counters[i].value);
    out_end(o, '}');
}

void check_json(const check *c, const store_record *record, bool stats)
{
    json_out o = {.to = stdout};
    names shown = {0};
    out_object(&o, NULL);
    out_number(&o, "version", 1);
    check_json_modules(&o, record);
    out_array(&o, "warnings");
    for (uint32_t i = 0; i < record->warning_count; i++)
        check_json_warning(&o, &record->warnings[i], &shown);
    out_end(&o, ']');
    add_stats(&o, c, record, stats);
    out_end(&o, '}');
    out_finish(&o);
    names_close(&shown);
}
