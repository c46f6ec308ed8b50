/* The user's own locks, threads and allocators: a file with one function per line.
 *
 *     lock NAME ARG        rdlock NAME ARG       unlock NAME ARG        the argument (from 0) that is the lock
 *     trylock NAME ARG     tryrdlock NAME ARG    takes the lock when it returns 0; `... ARG nonzero`: when it does not
 *     thread NAME FUNCTION DATA                  starts a thread: its function and what that gets, as arguments
 *     event NAME FUNCTION DATA                   the same for the handler of an event
 *     join NAME ARG        barrier NAME ARG      post NAME ARG          wait NAME ARG
 *     allocator NAME [SIZE]                      returns a new object, of so many bytes
 *
 * What such a function does inside is not looked at any more. `#` begins a comment. */
#include "static/detect/detect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    char *name;
    char *model; /* or NULL: as the table has it */
    sync_entry sync;
    uint16_t asks;
} rule;

struct detect_config {
    VEC(rule) rules;
    sync_index names; /* what the tables have of others */
};

typedef struct {
    const char *word;
    uint8_t kind; /* sync_kind; SYNC_NONE: a model only */
    bool shared;
    uint8_t when;
    uint8_t least, most; /* numbers behind the name */
} word_rule;

static const word_rule words[] = {
    {"lock", SYNC_ACQUIRE, false, SYNC_ALWAYS, 1, 1},
    {"rdlock", SYNC_ACQUIRE, true, SYNC_ALWAYS, 1, 1},
    {"trylock", SYNC_ACQUIRE, false, SYNC_ZERO, 1, 1},
    {"tryrdlock", SYNC_ACQUIRE, true, SYNC_ZERO, 1, 1},
    {"unlock", SYNC_RELEASE, false, SYNC_ALWAYS, 1, 1},
    {"join", SYNC_JOIN, false, SYNC_ALWAYS, 1, 1},
    {"barrier", SYNC_BARRIER, false, SYNC_ALWAYS, 1, 1},
    {"post", SYNC_POST, false, SYNC_ALWAYS, 1, 1},
    {"wait", SYNC_WAIT, false, SYNC_ALWAYS, 1, 1},
    {"thread", SYNC_NONE, false, SYNC_ALWAYS, 2, 2},
    {"event", SYNC_EVENT, false, SYNC_ALWAYS, 2, 2},
    {"allocator", SYNC_NONE, false, SYNC_ALWAYS, 0, 1},
};
enum { WORDS = sizeof words / sizeof *words, PARTS = 6, MOST_ARG = 5 };

/* The words of a line; their number, or PARTS + 1. */
static unsigned split(const char *from, const char *to, char parts[PARTS][128])
{
    unsigned n = 0;
    while (from < to) {
        while (from < to && isspace((unsigned char)*from))
            from++;
        const char *start = from;
        while (from < to && !isspace((unsigned char)*from))
            from++;
        if (start == from || *start == '#') break;
        if (n == PARTS || from - start > 127) return PARTS + 1;
        memcpy(parts[n], start, (size_t)(from - start));
        parts[n++][from - start] = 0;
    }
    return n;
}

static bool number(const char *text, int *out)
{
    if (text[0] < '0' || text[0] > '0' + MOST_ARG || text[1]) return false;
    *out = text[0] - '0';
    return true;
}

static bool add_rule(detect_config *c, char parts[PARTS][128], unsigned count)
{
    const word_rule *w = NULL;
    for (unsigned i = 0; i < WORDS && !w; i++)
        if (!strcmp(words[i].word, parts[0])) w = &words[i];
    int numbers[2] = {0, 0};
    unsigned n = 0;
    if (!w || count < 2) return false;
    for (unsigned i = 2; i < count && n < 2 && number(parts[i], &numbers[n]); i++)
        n++;
    if (n < w->least || n > w->most) return false;
    rule r = {.sync = {.kind = w->kind, .arg = n ? (int8_t)numbers[0] : -1, .other = -1, .when = w->when, .shared = w->shared}};
    if (count > 2 + n) {
        if (w->when == SYNC_ALWAYS || count > 3 + n || strcmp(parts[2 + n], "nonzero")) return false;
        r.sync.when = SYNC_NONZERO;
    }
    if (w->kind == SYNC_EVENT) r.sync.arg = -1;
    if (w->kind && r.sync.arg >= 0) r.asks = (uint16_t)(1u << r.sync.arg);
    char model[128];
    if (!strcmp(w->word, "allocator"))
        snprintf(model, sizeof model, n ? "ret = new(%d)" : "ret = new", numbers[0]);
    else if (!strcmp(w->word, "thread"))
        snprintf(model, sizeof model, "handle = new; *0 = handle; ret = handle; thread %d (%d)", numbers[0], numbers[1]);
    else if (!strcmp(w->word, "event"))
        snprintf(model, sizeof model, "events %d (%d)", numbers[0], numbers[1]);
    else
        model[0] = 0;
    r.model = base_format("%s", model);
    r.name = base_format("%s", parts[1]);
    vec_push(&c->rules, r);
    return true;
}

detect_config *detect_config_read(const char *path, const char *text, race_error *error)
{
    detect_config *c = base_alloc_zero(1, sizeof *c);
    sync_index_open(&c->names);
    unsigned line = 0;
    for (const char *at = text; *at;) {
        char parts[PARTS][128];
        size_t len = strcspn(at, "\n");
        unsigned count = split(at, at + len, parts);
        line++;
        at += len + (at[len] == '\n');
        if (!count) continue;
        if (count <= PARTS && add_rule(c, parts, count)) continue;
        base_fail(error, "%s:%u: not a line of a configuration (such as: lock my_lock 0)", path, line);
        detect_config_free(c);
        return NULL;
    }
    return c;
}

void detect_config_free(detect_config *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->rules.len; i++) {
        free(c->rules.data[i].name);
        free(c->rules.data[i].model);
    }
    vec_free(&c->rules);
    sync_index_close(&c->names);
    free(c);
}

static const rule *find(const detect_config *c, const char *name)
{
    for (uint32_t i = 0; c && i < c->rules.len; i++)
        if (!strcmp(c->rules.data[i].name, name)) return &c->rules.data[i];
    return NULL;
}

uint16_t detect_config_asks(const void *config, const char *name)
{
    const detect_config *c = config;
    const rule *r = find(c, name);
    return r ? r->asks : c ? sync_index_asks(&c->names, name) : hb_sync_asks(name);
}

const char *detect_config_model(const void *config, const char *name)
{
    const rule *r = find(config, name);
    return r ? r->model : NULL;
}

const sync_entry *detect_config_sync(const void *config, const char *name)
{
    const rule *r = find(config, name);
    return r && r->sync.kind != SYNC_NONE ? &r->sync : NULL;
}
