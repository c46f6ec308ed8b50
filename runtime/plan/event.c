/* Reading an event log: every claim of include/race/event.h is checked before a record is handed out. */
#include "include/race/event.h"

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

#include <string.h>

static const uint32_t fixed_size[EVENT_KINDS] = {
    [EVENT_PROCESS] = sizeof(event_process), [EVENT_RACE] = sizeof(event_race),
    [EVENT_DEADLOCK] = sizeof(event_deadlock), [EVENT_AUDIT] = sizeof(event_race),
    [EVENT_NOTICE] = sizeof(event_notice), [EVENT_EXIT] = sizeof(event_exit),
};

uint64_t event_checksum(const event_record *record)
{
    const size_t from = offsetof(event_record, kind);
    return XXH64((const char *)record + from, record->size - from, 0);
}

const char *event_status_text(event_status status)
{
    static const char *const text[] = {
        [EVENT_OK] = "a sound record",
        [EVENT_END] = "the end of the log",
        [EVENT_NOT_LOG] = "not an event log",
        [EVENT_OTHER_VERSION] = "an event log of another version of race",
        [EVENT_DAMAGED] = "the event log is damaged",
    };
    return status < sizeof text / sizeof *text ? text[status] : "the event log is damaged";
}

const event_frame *event_frames(const event_record *record)
{
    return (const event_frame *)((const char *)record + fixed_size[record->kind]);
}

const char *event_string(const event_record *record, uint32_t offset)
{
    return offset ? (const char *)record + offset : "";
}

/* A string lies behind the frames and ends inside the record. */
static bool is_string(const event_record *r, uint32_t offset)
{
    if (!offset) return true;
    uint32_t from = fixed_size[r->kind] + r->frames * (uint32_t)sizeof(event_frame);
    return offset >= from && offset < r->size && memchr((const char *)r + offset, 0, r->size - offset);
}

static bool are_frames(const event_record *r, uint32_t first, uint32_t count)
{
    return first <= r->frames && count <= r->frames - first;
}

static bool check_race(const event_record *r)
{
    const event_race *e = (const event_race *)r;
    for (int i = 0; i < 2; i++) {
        const event_side *s = &e->sides[i];
        if (s->op != EVENT_READ && s->op != EVENT_WRITE && s->op != (EVENT_WRITE | EVENT_FREE)) return false;
        if (s->reserved || !are_frames(r, s->first_frame, s->frame_count)) return false;
    }
    return !e->reserved && is_string(r, e->location) && is_string(r, e->claim) && is_string(r, e->suppressed) &&
           are_frames(r, e->location_first_frame, e->location_frame_count);
}

static bool check_deadlock(const event_record *r)
{
    const event_deadlock *e = (const event_deadlock *)r;
    if (e->count < 2 || e->count > EVENT_MAX_CYCLE || !is_string(r, e->suppressed)) return false;
    for (uint32_t i = 0; i < e->count; i++) {
        const event_edge *edge = &e->edges[i];
        if (edge->reserved || !are_frames(r, edge->first_frame, edge->frame_count) ||
            !are_frames(r, edge->held_first_frame, edge->held_frame_count) || !is_string(r, edge->held_name) ||
            !is_string(r, edge->wanted_name))
            return false;
    }
    return true;
}

static bool check_kind(const event_record *r)
{
    switch (r->kind) {
    case EVENT_PROCESS: {
        const event_process *e = (const event_process *)r;
        return !e->reserved && is_string(r, e->engine) && is_string(r, e->program);
    }
    case EVENT_RACE:
    case EVENT_AUDIT: return check_race(r);
    case EVENT_DEADLOCK: return check_deadlock(r);
    case EVENT_NOTICE: {
        const event_notice *e = (const event_notice *)r;
        return !e->reserved && is_string(r, e->text);
    }
    default: return true;
    }
}

static bool check_record(const event_record *r, uint32_t number)
{
    if (r->kind < EVENT_PROCESS || r->kind >= EVENT_KINDS || r->number != number) return false;
    if ((r->kind == EVENT_PROCESS) != !number || r->frames > EVENT_MAX_FRAMES) return false;
    if (r->size < fixed_size[r->kind] || (r->size - fixed_size[r->kind]) / sizeof(event_frame) < r->frames) return false;
    if (r->check != event_checksum(r)) return false;
    const event_frame *frames = event_frames(r);
    for (uint32_t i = 0; i < r->frames; i++) {
        const event_frame *f = &frames[i];
        if (f->reserved[0] || f->reserved[1] || f->inlined > 1 || !is_string(r, f->warnings) || !is_string(r, f->module) || !is_string(r, f->build_id) ||
            !is_string(r, f->function) || !is_string(r, f->file))
            return false;
    }
    return check_kind(r);
}

event_status event_next(event_reader *reader, const event_record **record)
{
    size_t left = reader->size - reader->at;
    if (!left) return EVENT_END;
    const event_record *r = (const event_record *)(reader->bytes + reader->at);
    if (left < sizeof *r) {
        reader->cut = true;
        return reader->number || left < sizeof r->magic || r->magic == EVENT_MAGIC ? EVENT_END : EVENT_NOT_LOG;
    }
    if (r->magic != EVENT_MAGIC) return reader->number ? EVENT_DAMAGED : EVENT_NOT_LOG;
    if (r->size < sizeof *r || r->size % 8 || r->size > EVENT_MAX_RECORD) return EVENT_DAMAGED;
    if (r->size > left) {
        reader->cut = true;
        return EVENT_END;
    }
    if (!reader->number && r->kind == EVENT_PROCESS && r->size >= sizeof(event_process) &&
        ((const event_process *)r)->version != EVENT_VERSION)
        return EVENT_OTHER_VERSION;
    if (!check_record(r, reader->number)) return EVENT_DAMAGED;
    reader->at += r->size;
    reader->number++;
    *record = r;
    return EVENT_OK;
}
