/* A record as bytes:
 *
 *   8  magic          "RACESTAT"
 *   4  version
 *   4  size of the strings
 *   8  checksum of all that follows, and of the two numbers above
 *      strings, each ended by NUL
 *      the record: numbers of 1, 4 and 8 bytes, little-endian; a text is its place in the strings + 1, 0 for none; an array is
 *      its length and its elements
 *
 * One walk over the record serves both ways, so that the writer and the reader cannot disagree. The reader trusts nothing: a
 * length is believed only as far as there are bytes for it. */
#include "static/store/store.h"

#include <stdlib.h>
#include <xxhash.h>

#include "static/pointer/map.h"

enum { VERSION = 1, HEADER = 24 };
static const char MAGIC[8] = "RACESTAT";

uint64_t store_name_hash(const char *name)
{
    return store_hash(name, strlen(name), 0) | 1; /* 0: no name */
}

uint64_t store_hash(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

typedef struct {
    bool reading;
    VEC(uint8_t) out;         /* writing */
    VEC(char) strings;
    map64 places;             /* hash of a string: where it is */
    const uint8_t *at, *end;  /* reading */
    const char *texts;
    uint32_t text_size;
    arena *memory;
    const char *wrong;        /* the first thing that was; NULL */
} codec;

static void bad(codec *c, const char *what)
{
    if (!c->wrong) c->wrong = what;
}

static void raw(codec *c, void *value, uint32_t size)
{
    if (!c->reading) {
        vec_reserve(&c->out, c->out.len + size);
        memcpy(c->out.data + c->out.len, value, size);
        c->out.len += size;
    } else if (c->wrong || (size_t)(c->end - c->at) < size) {
        memset(value, 0, size);
        bad(c, "it ends too early");
    } else {
        memcpy(value, c->at, size);
        c->at += size;
    }
}

static void number(codec *c, uint32_t *value)
{
    raw(c, value, sizeof *value);
}

static void wide(codec *c, uint64_t *value)
{
    raw(c, value, sizeof *value);
}

static void small(codec *c, uint8_t *value, unsigned limit)
{
    raw(c, value, 1);
    if (*value < limit) return;
    *value = 0;
    bad(c, "a number is out of its range");
}

static void flag(codec *c, bool *value)
{
    uint8_t byte = *value;
    small(c, &byte, 2);
    *value = byte;
}

static uint32_t place_of(codec *c, const char *text)
{
    size_t len = strlen(text) + 1;
    uint64_t hash = store_hash(text, len, 0);
    for (;; hash += 2) { /* on when another text has the same one */
        uint32_t *at = map_at(&c->places, hash >> 1);
        if (*at != MAP_NONE && !strcmp(c->strings.data + *at, text)) return *at;
        if (*at != MAP_NONE) continue;
        *at = c->strings.len;
        vec_reserve(&c->strings, c->strings.len + (uint32_t)len);
        memcpy(c->strings.data + c->strings.len, text, len);
        c->strings.len += (uint32_t)len;
        return *at;
    }
}

static void maybe_text(codec *c, const char **text)
{
    uint32_t at = c->reading || !*text ? 0 : place_of(c, *text) + 1;
    number(c, &at);
    if (!c->reading) return;
    *text = NULL;
    if (at > c->text_size)
        bad(c, "a text is outside of the file");
    else if (at)
        *text = c->texts + at - 1;
}

static void text(codec *c, const char **text)
{
    maybe_text(c, text);
    if (*text) return;
    *text = "";
    bad(c, "a text is missing");
}

/* The length of an array whose elements take at least `least` bytes each; allocates it when reading. */
static void *array(codec *c, void *data, uint32_t *count, size_t item, size_t least)
{
    number(c, count);
    if (!c->reading) return data;
    if (*count > (size_t)(c->end - c->at) / least) {
        *count = 0;
        bad(c, "an array is longer than the file");
    }
    return arena_alloc(c->memory, *count * item);
}

static void func(codec *c, store_func *f)
{
    text(c, &f->name);
    text(c, &f->file);
    number(c, &f->ordinal);
    wide(c, &f->entry);
    wide(c, &f->shape);
    wide(c, &f->body);
    wide(c, &f->around);
    f->callees = array(c, f->callees, &f->callee_count, sizeof *f->callees, sizeof *f->callees);
    for (uint32_t i = 0; i < f->callee_count; i++)
        wide(c, &f->callees[i]);
}

static void module(codec *c, store_module *m)
{
    text(c, &m->path);
    text(c, &m->member);
    text(c, &m->build_id);
    wide(c, &m->content);
    wide(c, &m->facts);
    wide(c, &m->instructions);
    m->funcs = array(c, m->funcs, &m->func_count, sizeof *m->funcs, 48);
    for (uint32_t i = 0; i < m->func_count; i++)
        func(c, &m->funcs[i]);
}

static void place(codec *c, const store_record *r, store_place *p)
{
    number(c, &p->module);
    number(c, &p->func);
    number(c, &p->insn);
    wide(c, &p->addr);
    text(c, &p->function);
    maybe_text(c, &p->file);
    number(c, &p->line);
    number(c, &p->column);
    text(c, &p->path);
    if (p->module == STORE_NONE || (p->module < r->module_count && p->func < r->modules[p->module].func_count)) return;
    p->module = STORE_NONE;
    bad(c, "a function is outside of its module");
}

static void texts(codec *c, const char ***all, uint32_t *count)
{
    *all = array(c, *all, count, sizeof **all, 4);
    for (uint32_t i = 0; i < *count; i++)
        text(c, &(*all)[i]);
}

static void side(codec *c, const store_record *r, store_side *s)
{
    place(c, r, &s->at);
    flag(c, &s->write);
    flag(c, &s->read);
    flag(c, &s->atomic);
    text(c, &s->origin);
    texts(c, &s->locks, &s->lock_count);
    maybe_text(c, &s->lock);
    flag(c, &s->has_since);
    if (!s->has_since) return;
    place(c, r, &s->since);
    text(c, &s->held);
}

static void warning(codec *c, const store_record *r, store_warning *w)
{
    small(c, &w->kind, 2);
    small(c, &w->confidence, 3);
    text(c, &w->id);
    text(c, &w->location);
    text(c, &w->key);
    maybe_text(c, &w->about);
    maybe_text(c, &w->why);
    number(c, &w->size);
    texts(c, &w->reasons, &w->reason_count);
    w->sides = array(c, w->sides, &w->side_count, sizeof *w->sides, 60);
    for (uint32_t i = 0; i < w->side_count; i++)
        side(c, r, &w->sides[i]);
    if (!*w->id) bad(c, "a warning has no id");
    if (!w->side_count) bad(c, "a warning has no sides");
}

static void record(codec *c, store_record *r)
{
    wide(c, &r->how);
    r->modules = array(c, r->modules, &r->module_count, sizeof *r->modules, 40);
    for (uint32_t i = 0; i < r->module_count; i++)
        module(c, &r->modules[i]);
    r->warnings = array(c, r->warnings, &r->warning_count, sizeof *r->warnings, 34);
    for (uint32_t i = 0; i < r->warning_count; i++)
        warning(c, r, &r->warnings[i]);
    r->counters = array(c, r->counters, &r->counter_count, sizeof *r->counters, 12);
    for (uint32_t i = 0; i < r->counter_count; i++) {
        text(c, &r->counters[i].name);
        wide(c, &r->counters[i].value);
    }
}

static uint64_t checksum(const uint8_t *bytes, size_t size)
{
    return store_hash(bytes + HEADER, size - HEADER, store_hash(bytes, 16, 0));
}

void store_seal(uint8_t *bytes, size_t size)
{
    if (size < HEADER) return;
    uint64_t sum = checksum(bytes, size);
    memcpy(bytes + 16, &sum, sizeof sum);
}

uint8_t *store_encode(const store_record *r, size_t *size)
{
    codec c = {0};
    store_record copy = *r; /* the walk writes to it only when it reads */
    record(&c, &copy);
    uint32_t version = VERSION;
    *size = HEADER + (size_t)c.strings.len + c.out.len;
    uint8_t *bytes = base_alloc(*size);
    memcpy(bytes, MAGIC, sizeof MAGIC);
    memcpy(bytes + 8, &version, 4);
    memcpy(bytes + 12, &c.strings.len, 4);
    if (c.strings.len) memcpy(bytes + HEADER, c.strings.data, c.strings.len);
    memcpy(bytes + HEADER + c.strings.len, c.out.data, c.out.len);
    store_seal(bytes, *size);
    vec_free(&c.out);
    vec_free(&c.strings);
    map_free(&c.places);
    return bytes;
}

int store_decode(const uint8_t *bytes, size_t size, store_record *out, race_error *error)
{
    uint32_t version = 0, strings = 0;
    uint64_t sum = 0;
    *out = (store_record){0};
    if (size < HEADER || memcmp(bytes, MAGIC, sizeof MAGIC)) return base_fail(error, "is no saved analysis");
    memcpy(&version, bytes + 8, 4);
    memcpy(&strings, bytes + 12, 4);
    memcpy(&sum, bytes + 16, 8);
    if (version != VERSION) return base_fail(error, "was saved by another version of race (%u instead of %u)", version, VERSION);
    if (sum != checksum(bytes, size)) return base_fail(error, "is damaged: its checksum is wrong");
    if (strings > size - HEADER || (strings && bytes[HEADER + strings - 1]))
        return base_fail(error, "is damaged: its strings do not end");
    codec c = {.reading = true, .at = bytes + HEADER + strings, .end = bytes + size, .text_size = strings, .memory = &out->memory};
    c.texts = arena_copy(&out->memory, bytes + HEADER, strings);
    record(&c, out);
    if (!c.wrong && c.at != c.end) bad(&c, "there is something behind its end");
    if (!c.wrong) return 0;
    store_record_free(out);
    return base_fail(error, "is damaged: %s", c.wrong);
}

void store_record_free(store_record *r)
{
    arena_free(&r->memory);
    *r = (store_record){0};
}
