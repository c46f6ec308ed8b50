/* Which model is meant by a name: the names of the table as a hash, variants of names, prefixes. */
#include <threads.h>

#include "static/pointer/program.h"

typedef struct {
    const char *name; /* in the table; NULL: free */
    uint32_t len;
    uint32_t model;
    bool prefix; /* written with `*` behind it */
} name_entry;

/* Derived from the table, which is constant, when it is first asked. */
static struct {
    once_flag once;
    name_entry *entries;
    uint32_t mask;
} names = {ONCE_FLAG_INIT, NULL, 0};

enum { HASH_START = 0x811c9dc5u };

static uint32_t hash_step(uint32_t hash, char c)
{
    return (hash ^ (uint8_t)c) * 0x01000193u;
}

static const name_entry *entry_find(const char *name, size_t len, bool prefix, uint32_t hash)
{
    for (uint32_t at = (hash ^ hash >> 15) & names.mask; names.entries[at].name; at = (at + 1) & names.mask) {
        const name_entry *entry = &names.entries[at];
        if (entry->len == len && entry->prefix == prefix && !memcmp(entry->name, name, len)) return entry;
    }
    return NULL;
}

static void entry_add(name_entry entry)
{
    uint32_t hash = HASH_START;
    for (uint32_t i = 0; i < entry.len; i++)
        hash = hash_step(hash, entry.name[i]);
    uint32_t at = (hash ^ hash >> 15) & names.mask;
    while (names.entries[at].name)
        at = (at + 1) & names.mask;
    names.entries[at] = entry;
}

/* The next of the names in `*at`, or 0. */
static size_t next_name(const char **at)
{
    *at += strspn(*at, " ");
    return strcspn(*at, " ");
}

static void names_build(void)
{
    uint32_t count = 0, capacity = 64;
    for (uint32_t i = 0; i < model_count; i++)
        for (const char *at = model_table[i].name; next_name(&at); at += next_name(&at))
            count++;
    while (capacity < count * 2)
        capacity *= 2;
    names.entries = base_alloc_zero(capacity, sizeof *names.entries);
    names.mask = capacity - 1;
    for (uint32_t i = 0; i < model_count; i++) {
        const char *at = model_table[i].name;
        for (size_t len; (len = next_name(&at)); at += len) {
            bool prefix = at[len - 1] == '*';
            entry_add((name_entry){at, (uint32_t)len - prefix, i, prefix});
        }
    }
}

/* How libraries spell variants of one function whose effect on pointers is the same. The arguments that fortified forms
 * have in addition stand behind the pointers that matter. */
static const struct { const char *prefix, *suffix; } variants[] = {
    {"__isoc99_", ""}, {"__isoc23_", ""}, {"__", "_chk"}, {"__", "_finite"}, {"__", "_internal"}, {"__libc_", ""},
    {"_IO_", ""}, {"__", ""}, {"", "64"}, {"", "_unlocked"}, {"", "_l"}, {"", "f128"}, {"", "f64x"}, {"", "f32x"},
    {"", "f32"},
};
enum { VARIANT_DEPTH = 4, SHORTEST_BASE = 2 };

/* The whole name, else its longest prefix, else the same for a name that it is a variant of. */
static const name_entry *find(const char *name, size_t len, unsigned depth)
{
    const name_entry *best = NULL;
    uint32_t hash = HASH_START;
    for (size_t i = 0; i < len; i++) {
        hash = hash_step(hash, name[i]);
        const name_entry *entry = entry_find(name, i + 1, true, hash);
        if (entry) best = entry;
    }
    const name_entry *whole = entry_find(name, len, false, hash);
    if (whole) best = whole;
    for (size_t i = 0; !best && depth && i < sizeof variants / sizeof *variants; i++) {
        size_t front = strlen(variants[i].prefix), back = strlen(variants[i].suffix);
        if (len < front + back + SHORTEST_BASE || memcmp(name, variants[i].prefix, front) ||
            memcmp(name + len - back, variants[i].suffix, back))
            continue;
        best = find(name + front, len - front - back, depth - 1);
    }
    return best;
}

const char *model_find(const char *name)
{
    call_once(&names.once, names_build);
    const name_entry *entry = find(name, strlen(name), VARIANT_DEPTH);
    return entry ? model_table[entry->model].text : NULL;
}
