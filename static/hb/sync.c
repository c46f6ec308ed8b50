/* Finding functions in the tables of sync_table.c by name: one by one, or, for those who ask for every call of a program, by an index. */
#include "static/hb/sync.h"

#include <stdlib.h>

/* Whether a list of names has `name`. */
static bool has_name(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, " ");
        bool family = n && at[n - 1] == '*';
        if (family ? len >= n - 1 && !memcmp(at, name, n - 1) : len == n && !memcmp(at, name, n)) return true;
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

/* libc has its functions under names with underscores too. */
static const char *plain(const char *name)
{
    static const char prefix[] = "__pthread_";
    while (!strncmp(name, prefix, sizeof prefix - 1))
        name += 2;
    return name;
}

static const char *names_at(bool touches, uint32_t entry)
{
    return touches ? hb_sync_touches[entry].names : hb_sync_table[entry].names;
}

/* The first entry of a table that has the name. */
static uint32_t find(bool touches, const char *name)
{
    for (uint32_t i = 0, n = touches ? hb_sync_touch_count : hb_sync_count; i < n; i++)
        if (has_name(names_at(touches, i), name)) return i;
    return MAP_NONE;
}

const sync_entry *hb_sync_find(const char *name)
{
    uint32_t entry = find(false, plain(name));
    return entry == MAP_NONE ? NULL : &hb_sync_table[entry];
}

const sync_touch *hb_sync_touch_find(const char *name)
{
    uint32_t entry = find(true, name);
    return entry == MAP_NONE ? NULL : &hb_sync_touches[entry];
}

static uint64_t hash_name(const char *name, size_t len)
{
    uint64_t hash = len;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3;
    return map_hash(hash) & ~(1ull << 63);
}

void sync_index_open(sync_index *index)
{
    for (unsigned touches = 0; touches < 2; touches++)
        for (uint32_t i = 0, n = touches ? hb_sync_touch_count : hb_sync_count; i < n; i++)
            for (const char *at = names_at(touches, i); *at; at += strspn(at, " ")) {
                size_t len = strcspn(at, " ");
                uint32_t *known = len && at[len - 1] == '*' ? NULL : map_at(&index->exact[touches], hash_name(at, len));
                if (!known)
                    vec_push(&index->families[touches], ((sync_family){at, (uint32_t)len - 1, i}));
                else if (*known == MAP_NONE)
                    *known = i;
                at += len;
            }
}

void sync_index_close(sync_index *index)
{
    for (unsigned touches = 0; touches < 2; touches++) {
        map_free(&index->exact[touches]);
        vec_free(&index->families[touches]);
    }
}

static uint32_t look_up(const sync_index *index, bool touches, const char *name)
{
    uint32_t entry = map_get(&index->exact[touches], hash_name(name, strlen(name)));
    if (entry != MAP_NONE && !has_name(names_at(touches, entry), name)) return find(touches, name); /* two names with one hash */
    for (uint32_t i = 0; i < index->families[touches].len; i++) { /* in the order of the table, whose first word counts */
        const sync_family *family = &index->families[touches].data[i];
        if (entry != MAP_NONE && family->entry >= entry) break;
        if (!strncmp(name, family->begin, family->len)) return family->entry;
    }
    return entry;
}

const sync_entry *sync_index_find(const sync_index *index, const char *name)
{
    uint32_t entry = look_up(index, false, plain(name));
    return entry == MAP_NONE ? NULL : &hb_sync_table[entry];
}

const sync_touch *sync_index_touch_find(const sync_index *index, const char *name)
{
    uint32_t entry = look_up(index, true, name);
    return entry == MAP_NONE ? NULL : &hb_sync_touches[entry];
}

uint32_t hb_sync_touch_ranges(const sync_touch *touch, sync_range ranges[SYNC_RANGES])
{
    uint32_t n = 0;
    for (const char *at = touch->text; *at && n < SYNC_RANGES; n++) {
        sync_range r = {.write = *at != 'r' && *at != 'R',
                        .frees = *at == 'f',
                        .text = *at == 'W' || *at == 'R',
                        .arg = (uint8_t)(at[1] - '0'),
                        .size_arg = -1,
                        .times_arg = -1};
        at += 2;
        if (*at == ':') {
            r.size_arg = (int8_t)(at[1] - '0');
            at += 2;
            if (*at == '*') {
                r.times_arg = (int8_t)(at[1] - '0');
                at += 2;
            }
        } else if (*at == '=') {
            char *end;
            r.size = (uint32_t)strtoul(at + 1, &end, 10);
            at = end;
        }
        at += strspn(at, " ");
        ranges[n] = r;
    }
    return n;
}

static uint16_t asks_of(const char *name, const sync_entry *entry, const sync_touch *touch)
{
    enum { ARGS = 16 }; /* bits of what is asked for; `other` may be something else than an argument */
    uint16_t asks = 0;
    if (entry && entry->arg >= 0) asks |= (uint16_t)(1u << entry->arg);
    if (entry && entry->other >= 0 && entry->other < ARGS) asks |= (uint16_t)(1u << entry->other);
    if (strstr(name, "setjmp")) asks |= 1; /* whose buffer it is */
    sync_range ranges[SYNC_RANGES];
    for (uint32_t i = 0, n = touch ? hb_sync_touch_ranges(touch, ranges) : 0; i < n; i++)
        asks |= (uint16_t)(1u << ranges[i].arg);
    return asks;
}

uint16_t hb_sync_asks(const char *name)
{
    return asks_of(name, hb_sync_find(name), hb_sync_touch_find(name));
}

uint16_t sync_index_asks(const sync_index *index, const char *name)
{
    return asks_of(name, sync_index_find(index, name), sync_index_touch_find(index, name));
}
