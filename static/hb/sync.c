/* Finding functions in the tables of sync_table.c by name. */
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

const sync_entry *hb_sync_find(const char *name)
{
    name = plain(name);
    for (uint32_t i = 0; i < hb_sync_count; i++)
        if (has_name(hb_sync_table[i].names, name)) return &hb_sync_table[i];
    return NULL;
}

const sync_touch *hb_sync_touch_find(const char *name)
{
    for (uint32_t i = 0; i < hb_sync_touch_count; i++)
        if (has_name(hb_sync_touches[i].names, name)) return &hb_sync_touches[i];
    return NULL;
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

uint16_t hb_sync_asks(const char *name)
{
    uint16_t asks = 0;
    const sync_entry *entry = hb_sync_find(name);
    if (entry && entry->arg >= 0) asks |= (uint16_t)(1u << entry->arg);
    if (entry && entry->other >= 0) asks |= (uint16_t)(1u << entry->other);
    if (strstr(name, "setjmp")) asks |= 1; /* whose buffer it is */
    const sync_touch *touch = hb_sync_touch_find(name);
    sync_range ranges[SYNC_RANGES];
    for (uint32_t i = 0, n = touch ? hb_sync_touch_ranges(touch, ranges) : 0; i < n; i++)
        asks |= (uint16_t)(1u << ranges[i].arg);
    return asks;
}
