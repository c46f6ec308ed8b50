/* The bytes of a plan, and its file: written beside and renamed, so that no reader ever sees half of one. */
#include "static/place/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static size_t align8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

/* Sections are sorted and do not overlap. */
static void set_range(const image *img, plan_header *h)
{
    if (!img->section_count) return;
    const image_section *last = &img->sections[img->section_count - 1];
    h->low = img->sections[0].addr;
    h->high = last->addr + last->size;
}

void *plan_encode(const plan_draft *draft, size_t *size)
{
    const struct {
        const void *data;
        uint32_t count, record;
    } tables[PLAN_TABLES] = {
        [PLAN_SITES] = {draft->sites.data, draft->sites.len, sizeof(plan_site)},
        [PLAN_ACTIONS] = {draft->actions.data, draft->actions.len, sizeof(plan_action)},
        [PLAN_SOURCES] = {draft->sources.data, draft->sources.len, sizeof(plan_source)},
        [PLAN_OBJECTS] = {draft->objects.data, draft->objects.len, sizeof(plan_object)},
        [PLAN_STRINGS] = {draft->strings.data, draft->strings.len, 1},
        [PLAN_UNWIND] = {draft->unwind.data, draft->unwind.len, sizeof(plan_unwind)},
    };
    plan_header h = {
        .magic = PLAN_MAGIC,
        .version = PLAN_VERSION,
        .header_size = sizeof h,
        .flags = (draft->img->has_build_id ? 0 : PLAN_ID_IS_HASH) | (draft->img->has_debug ? PLAN_FROM_DEBUG : 0) |
                 (draft->only_atomics ? PLAN_ONLY_ATOMICS : 0),
        .code = image_code(draft->img),
        .accesses_planned = draft->planned,
        .accesses_local = draft->local,
        .accesses_unplanned = draft->unplanned,
        .functions = draft->functions,
    };
    memcpy(h.build_id, draft->img->build_id, sizeof draft->img->build_id);
    set_range(draft->img, &h);
    size_t end = sizeof h;
    for (int i = 0; i < PLAN_TABLES; i++) {
        if (!tables[i].record) continue;
        h.tables[i] = (plan_table){.offset = end, .count = tables[i].count, .record = tables[i].record};
        end = align8(end + (size_t)tables[i].count * tables[i].record);
    }
    h.file_size = end;
    char *bytes = base_alloc_zero(1, end);
    for (int i = 0; i < PLAN_TABLES; i++)
        if (tables[i].count)
            memcpy(bytes + h.tables[i].offset, tables[i].data, (size_t)tables[i].count * tables[i].record);
    memcpy(bytes, &h, sizeof h);
    const size_t from = offsetof(plan_header, build_id);
    h.checksum = XXH64(bytes + from, end - from, 0);
    memcpy(bytes + offsetof(plan_header, checksum), &h.checksum, sizeof h.checksum);
    *size = end;
    return bytes;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

int plan_write(const plan_draft *draft, const char *path, race_error *error)
{
    size_t size;
    char *bytes = plan_encode(draft, &size);
    char *beside = base_format("%s.XXXXXX", path);
    int result = 0, fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        result = base_fail(error, "%s: cannot be written: %s", path, strerror(errno));
    } else {
        bool good = write_all(fd, bytes, size) && fchmod(fd, 0644) == 0;
        if (close(fd)) good = false;
        if (good && rename(beside, path)) good = false;
        if (!good) {
            result = base_fail(error, "%s: cannot be written: %s", path, strerror(errno));
            unlink(beside);
        }
    }
    free(beside);
    free(bytes);
    return result;
}
