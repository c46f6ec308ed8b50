/* Event logs: the reader must survive any bytes, and what it hands out may be used as it is. */
#include "include/race/event.h"

#include <stdlib.h>
#include <string.h>

static void use_frames(const event_record *r, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const event_frame *f = &event_frames(r)[first + i];
        size_t sum = strlen(event_string(r, f->function)) + strlen(event_string(r, f->file)) +
                     strlen(event_string(r, f->module)) + strlen(event_string(r, f->build_id)) +
                     strlen(event_string(r, f->warnings));
        if (sum == (size_t)-1) abort();
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    size_t room = (size + 7) / 8 * 8;
    unsigned char *bytes = aligned_alloc(8, room ? room : 8);
    if (!bytes) return 0;
    memcpy(bytes, data, size);
    /* Checksums are made right, so that what they guard is reached. */
    for (size_t at = 0; size - at >= sizeof(event_record);) {
        event_record *r = (event_record *)(void *)(bytes + at);
        if (r->size < sizeof *r || r->size % 8 || r->size > size - at) break;
        r->check = event_checksum(r);
        at += r->size;
    }
    event_reader reader = {.bytes = bytes, .size = size};
    const event_record *r;
    while (event_next(&reader, &r) == EVENT_OK) {
        if (r->kind == EVENT_RACE) {
            const event_race *e = (const event_race *)r;
            for (int i = 0; i < 2; i++)
                use_frames(r, e->sides[i].first_frame, e->sides[i].frame_count);
            use_frames(r, e->location_first_frame, e->location_frame_count);
            if (strlen(event_string(r, e->location)) == (size_t)-1) abort();
        }
        if (r->kind == EVENT_DEADLOCK) {
            const event_deadlock *e = (const event_deadlock *)r;
            for (uint32_t i = 0; i < e->count; i++)
                use_frames(r, e->edges[i].first_frame, e->edges[i].frame_count);
        }
    }
    free(bytes);
    return 0;
}
