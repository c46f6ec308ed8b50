/* Reading a plan: every claim of include/race/plan.h is checked before anything is used, since a plan comes from a
 * file and a wrong one would make an engine rewrite the wrong instructions of somebody's program.
 *
 * An engine may call this at any time: no allocation, no system call, no lock, no recursion. */
#include "include/race/plan.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

#include <string.h>

uint64_t plan_checksum(const void *bytes, size_t size)
{
    size_t from = offsetof(plan_header, build_id);
    return XXH64((const char *)bytes + from, size - from, 0);
}

void plan_content_id(const void *bytes, size_t size, char id[33])
{
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes, size));
    for (int i = 0; i < 16; i++) {
        id[2 * i] = "0123456789abcdef"[hash.digest[i] >> 4];
        id[2 * i + 1] = "0123456789abcdef"[hash.digest[i] & 15];
    }
    id[32] = 0;
}

const char *plan_claim_text(uint8_t claim)
{
    static const char *const texts[PLAN_CLAIMS] = {"",        "local",   "read-only", "unreached",  "unshared",
                                                   "ordered", "guarded", "apart",     "handed"};
    return claim < PLAN_CLAIMS ? texts[claim] : "";
}

const char *plan_status_text(plan_status status)
{
    static const char *const text[] = {
        [PLAN_OK] = "a sound plan",
        [PLAN_SHORT] = "the plan is cut short",
        [PLAN_LONG] = "the plan is longer than it says",
        [PLAN_NOT_PLAN] = "not a plan",
        [PLAN_OTHER_VERSION] = "a plan of another version of race",
        [PLAN_DAMAGED] = "the plan is damaged (its checksum is wrong)",
        [PLAN_BAD_TABLE] = "the plan is malformed (tables)",
        [PLAN_BAD_SITE] = "the plan is malformed (sites)",
        [PLAN_BAD_ACTION] = "the plan is malformed (actions)",
        [PLAN_BAD_SOURCE] = "the plan is malformed (sources)",
        [PLAN_BAD_OBJECT] = "the plan is malformed (objects)",
        [PLAN_BAD_STRING] = "the plan is malformed (strings)",
        [PLAN_BAD_UNWIND] = "the plan is malformed (unwind rows)",
    };
    return status < sizeof text / sizeof *text ? text[status] : "the plan is malformed";
}

static bool check_build_id(const plan_header *h)
{
    size_t len = 0;
    while (len < sizeof h->build_id && h->build_id[len]) {
        char c = h->build_id[len++];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    if (!len || len == sizeof h->build_id) return false;
    for (size_t i = len; i < sizeof h->build_id; i++)
        if (h->build_id[i]) return false;
    return true;
}

/* Tables lie behind the header, one after another, inside the file. */
static plan_status check_tables(const plan_header *h)
{
    static const uint32_t record[PLAN_TABLES] = {
        sizeof(plan_site), sizeof(plan_action), sizeof(plan_source), sizeof(plan_object), 1, sizeof(plan_unwind)};
    uint64_t end = sizeof *h;
    for (int i = 0; i < PLAN_TABLES; i++) {
        const plan_table *t = &h->tables[i];
        if (t->record != record[i]) return PLAN_BAD_TABLE;
        uint64_t bytes = (uint64_t)t->count * t->record;
        if (t->offset % 8 || t->offset < end || t->offset > h->file_size || bytes > h->file_size - t->offset)
            return PLAN_BAD_TABLE;
        end = t->offset + bytes;
    }
    return PLAN_OK;
}

static plan_status check_sites(const plan *p)
{
    const plan_header *h = p->header;
    for (uint32_t i = 0; i < p->site_count; i++) {
        const plan_site *s = &p->sites[i];
        if (i && s->addr <= s[-1].addr) return PLAN_BAD_SITE;
        if (s->addr < h->low || s->addr >= h->high || s->length > h->high - s->addr) return PLAN_BAD_SITE;
        if (s->length < 1 || s->length > 15 || s->window < s->length) return PLAN_BAD_SITE;
        if (s->first_action > p->action_count || s->action_count > p->action_count - s->first_action)
            return PLAN_BAD_SITE;
        if (s->flags & ~(PLAN_CALL | PLAN_SYSTEM | PLAN_DECIDED) || s->dead & ~PLAN_DEAD_ALL || s->source > p->source_count) return PLAN_BAD_SITE;
        if (s->warnings >= p->string_bytes || s->early > PLAN_EARLY) return PLAN_BAD_SITE;
    }
    return PLAN_OK;
}

static bool is_value(uint8_t v)
{
    return v < PLAN_REGISTER + 16 || (v >= PLAN_CAPTURED && v < PLAN_CAPTURED + PLAN_CAPTURES) || v == PLAN_NOTHING;
}

static bool is_power_of_two(uint32_t x)
{
    return x && !(x & (x - 1));
}

static bool check_action(const plan_action *a)
{
    if (!(is_value(a->base) || a->base == PLAN_MODULE) || !is_value(a->index) || !is_value(a->counter)) return false;
    if (!is_power_of_two(a->scale) || a->scale > 8 || a->segment > PLAN_SEGMENT_GS) return false;
    if (a->width != 8 && a->width != 4) return false;
    if (a->bits != PLAN_NOTHING && a->bits >= PLAN_REGISTER + 16) return false;
    if (a->reserved || a->claim >= PLAN_CLAIMS || (a->claim && a->kind != PLAN_CHECK)) return false;
    if (a->kind == PLAN_CAPTURE)
        return !a->flags && !a->size && !a->count && !a->stride && a->counter == PLAN_NOTHING &&
               a->bits == PLAN_NOTHING && a->slot < PLAN_CAPTURES;

    const unsigned order = PLAN_ACQUIRE | PLAN_RELEASE, access = PLAN_READ | PLAN_WRITE;
    const unsigned string = PLAN_DOWN | PLAN_UNTIL;
    if (a->slot || !a->size || a->size > PLAN_MAX_ELEMENT || !(a->flags & access)) return false;
    if (a->bits != PLAN_NOTHING && !is_power_of_two(a->size)) return false;
    if (a->count > PLAN_MAX_COUNT || !a->count != (a->counter != PLAN_NOTHING)) return false;
    if (a->count == 1 && (a->stride || a->flags & string)) return false;
    switch (a->kind) {
    case PLAN_CHECK: return !(a->flags & ~(access | string));
    case PLAN_SYNC: return !(a->flags & ~(access | order)) && a->flags & order && a->count == 1;
    default: return false;
    }
}

static plan_status check_sources(const plan *p)
{
    for (uint32_t i = 0; i < p->source_count; i++) {
        const plan_source *s = &p->sources[i];
        /* an outer frame comes earlier, so that following it ends */
        if (s->function >= p->string_bytes || s->file >= p->string_bytes || s->outer > i || s->reserved)
            return PLAN_BAD_SOURCE;
    }
    return PLAN_OK;
}

static plan_status check_objects(const plan *p)
{
    const plan_header *h = p->header;
    for (uint32_t i = 0; i < p->object_count; i++) {
        const plan_object *o = &p->objects[i];
        if (i && o->addr <= o[-1].addr) return PLAN_BAD_OBJECT;
        if (o->addr < h->low || o->addr > h->high || o->size > h->high - o->addr) return PLAN_BAD_OBJECT;
        if (o->name >= p->string_bytes || o->reserved) return PLAN_BAD_OBJECT;
    }
    return PLAN_OK;
}

static plan_status check_unwind(const plan *p)
{
    for (uint32_t i = 0; i < p->unwind_count; i++) {
        const plan_unwind *u = &p->unwind[i];
        if (i && u->start <= u[-1].start) return PLAN_BAD_UNWIND;
        if (u->start > p->header->high - p->header->low) return PLAN_BAD_UNWIND;
        if (u->base != PLAN_UNWIND_END && u->base != PLAN_UNWIND_RSP && u->base != PLAN_UNWIND_RBP)
            return PLAN_BAD_UNWIND;
        if (u->reserved[0] || u->reserved[1] || u->reserved[2]) return PLAN_BAD_UNWIND;
    }
    return PLAN_OK;
}

plan_status plan_read(const void *bytes, size_t size, plan *out)
{
    memset(out, 0, sizeof *out);
    const plan_header *h = bytes;
    if (size < sizeof h->magic || (uintptr_t)bytes % 8) return PLAN_SHORT;
    if (memcmp(h->magic, PLAN_MAGIC, sizeof h->magic)) return PLAN_NOT_PLAN;
    if (size < sizeof *h) return PLAN_SHORT;
    if (h->version != PLAN_VERSION || h->header_size != sizeof *h) return PLAN_OTHER_VERSION;
    if (h->file_size != size) return h->file_size > size ? PLAN_SHORT : PLAN_LONG;
    if (h->checksum != plan_checksum(bytes, size)) return PLAN_DAMAGED;
    if (!check_build_id(h) || h->flags & ~(PLAN_ID_IS_HASH | PLAN_FROM_DEBUG | PLAN_ONLY_ATOMICS) || h->low > h->high) return PLAN_BAD_TABLE;

    plan_status status = check_tables(h);
    if (status != PLAN_OK) return status;
    const char *base = bytes;
    plan p = {
        .header = h,
        .sites = (const plan_site *)(base + h->tables[PLAN_SITES].offset),
        .actions = (const plan_action *)(base + h->tables[PLAN_ACTIONS].offset),
        .sources = (const plan_source *)(base + h->tables[PLAN_SOURCES].offset),
        .objects = (const plan_object *)(base + h->tables[PLAN_OBJECTS].offset),
        .strings = base + h->tables[PLAN_STRINGS].offset,
        .unwind = (const plan_unwind *)(base + h->tables[PLAN_UNWIND].offset),
        .site_count = h->tables[PLAN_SITES].count,
        .action_count = h->tables[PLAN_ACTIONS].count,
        .source_count = h->tables[PLAN_SOURCES].count,
        .object_count = h->tables[PLAN_OBJECTS].count,
        .string_bytes = h->tables[PLAN_STRINGS].count,
        .unwind_count = h->tables[PLAN_UNWIND].count,
    };
    /* offset 0 is the empty string, and every string ends inside the table */
    if (!p.string_bytes || p.strings[0] || p.strings[p.string_bytes - 1]) return PLAN_BAD_STRING;
    for (uint32_t i = 0; i < p.action_count; i++)
        if (!check_action(&p.actions[i]) || (h->flags & PLAN_ONLY_ATOMICS && p.actions[i].kind != PLAN_SYNC))
            return PLAN_BAD_ACTION;
    if ((status = check_sites(&p)) != PLAN_OK) return status;
    if ((status = check_sources(&p)) != PLAN_OK) return status;
    if ((status = check_objects(&p)) != PLAN_OK) return status;
    if ((status = check_unwind(&p)) != PLAN_OK) return status;
    *out = p;
    return PLAN_OK;
}

/* The last site at or before addr, or NULL. */
static const plan_site *site_before(const plan *p, uint64_t addr)
{
    uint32_t from = 0, to = p->site_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (p->sites[middle].addr <= addr)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? &p->sites[from - 1] : NULL;
}

const plan_site *plan_site_at(const plan *p, uint64_t addr)
{
    const plan_site *s = site_before(p, addr);
    return s && s->addr == addr ? s : NULL;
}

const plan_site *plan_site_covering(const plan *p, uint64_t addr)
{
    /* Instructions may overlap (a jump over a lock prefix), so the nearest start need not be the one. */
    for (const plan_site *s = site_before(p, addr); s && addr - s->addr<15; s = s> p->sites ? s - 1 : NULL)
        if (addr - s->addr < s->length) return s;
    return NULL;
}

const plan_object *plan_object_covering(const plan *p, uint64_t addr)
{
    uint32_t from = 0, to = p->object_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (p->objects[middle].addr <= addr)
            from = middle + 1;
        else
            to = middle;
    }
    if (!from) return NULL;
    const plan_object *o = &p->objects[from - 1];
    return addr - o->addr < o->size ? o : NULL;
}

const char *plan_string(const plan *p, uint32_t offset)
{
    return offset < p->string_bytes ? p->strings + offset : "";
}

const plan_unwind *plan_unwind_at(const plan *p, uint64_t addr)
{
    uint64_t at = addr - p->header->low;
    if (addr < p->header->low || addr >= p->header->high) return NULL;
    uint32_t from = 0, to = p->unwind_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (p->unwind[middle].start <= at)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? &p->unwind[from - 1] : NULL;
}
