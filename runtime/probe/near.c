/* Memory at places that matter: near enough to a module for jumps of 32 bits, below 2 GB, or exactly somewhere.
 *
 * What is free is read from /proc/self/maps, and taken with MAP_FIXED_NOREPLACE: whoever was faster keeps it. Kept
 * free: what the heap may grow into (a gigabyte behind its end; or, if asked for, just enough that it has begun when it must go
 * elsewhere, as glibc's can), and some room below the stack. The kernel begins the heap anywhere in the first gigabyte behind a
 * program at a fixed address, where two of them are near enough. */
#include "runtime/probe/probe.h"

#include <string.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { REACH_MARGIN = 1 << 20 };
static const uint64_t LOWEST = 0x10000, HIGHEST = 0x7ffffffff000, HEAP_ROOM = 1 << 30, LEAST_HEAP_ROOM = 1 << 26, STACK_ROOM = 1 << 30;
static const uint64_t REACH = 0x7fffffff - REACH_MARGIN;

static uint64_t read_hex(const char **at)
{
    uint64_t value = 0;
    for (;; ++*at) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t)(c - 'a' + 10);
        else
            return value;
    }
}

static const char *line_end(const char *at)
{
    while (*at && *at != '\n')
        at++;
    return at;
}

static bool ends_with(const char *from, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - from) >= len && !memcmp(end - len, word, len);
}

typedef struct {
    uint64_t low, high; /* where the memory must lie */
    uint64_t near;      /* as close to this as possible */
    uint64_t size;
    uint64_t heap_room;
    uint64_t best;
} search;

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void consider(search *s, uint64_t free, uint64_t end)
{
    if (free < s->low) free = s->low;
    if (end > s->high) end = s->high;
    if (end < free || end - free < s->size) return;
    const uint64_t last = end - s->size;
    const uint64_t at = (s->near < free ? free : s->near > last ? last : s->near) & ~(uint64_t)(PROBE_PAGE - 1);
    if (at < free) return;
    if (!s->best || distance(at, s->near) < distance(s->best, s->near)) s->best = at;
}

/* Calls consider for each gap. */
static void walk_gaps(search *s)
{
    size_t size = 0, mapped = 0;
    char *maps = sys_read_file("/proc/self/maps", &size, &mapped);
    if (!maps) return;
    maps[size] = 0;
    const uint64_t heap = (uint64_t)sys_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    uint64_t free = LOWEST;
    for (const char *at = maps; *at;) {
        const char *line = at, *end = line_end(at);
        uint64_t start = read_hex(&at);
        at++;
        uint64_t stop = read_hex(&at);
        uint64_t gap_end = start;
        if (ends_with(line, end, "[stack]")) gap_end = start > STACK_ROOM ? start - STACK_ROOM : 0;
        if (free <= heap && heap < gap_end) { /* the heap grows here */
            consider(s, free, heap);
            free = heap + s->heap_room;
        }
        if (free < gap_end) consider(s, free, gap_end);
        if (stop > free) free = stop;
        at = *end ? end + 1 : end;
    }
    if (free < HIGHEST) consider(s, free, HIGHEST);
    sys_unmap(maps, mapped);
}

static void *map_fixed(uint64_t at, size_t size)
{
    void *got = sys_map((void *)at, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1);
    if (got && (uint64_t)got != at) { /* a kernel that does not know the flag */
        sys_unmap(got, size);
        return NULL;
    }
    return got;
}

static void *find_and_map(search s)
{
    for (unsigned tries = 0; tries < 4; tries++) { /* another thread may take it */
        s.best = 0;
        walk_gaps(&s);
        void *got = s.best ? map_fixed(s.best, s.size) : NULL;
        if (got || !s.best) return got;
    }
    return NULL;
}

static size_t whole_pages(size_t size)
{
    return (size + PROBE_PAGE - 1) & ~(size_t)(PROBE_PAGE - 1);
}

void *near_map(uint64_t low, uint64_t high, size_t size, bool beside_heap)
{
    size = whole_pages(size);
    search s = {.low = high > REACH + LOWEST ? high - REACH : LOWEST,
                .high = low + REACH,
                .size = size,
                .heap_room = beside_heap ? LEAST_HEAP_ROOM : HEAP_ROOM};
    s.near = low > size + (1 << 20) ? low - size - (1 << 20) : s.high; /* below it: heaps grow upwards */
    if (low < (uint64_t)1 << 31) s.near = s.high;                      /* a program at a fixed address: far above it */
    return find_and_map(s);
}

void *near_zero_map(size_t size)
{
    size = whole_pages(size);
    const uint64_t end = 0x7ff00000;
    search s = {.low = LOWEST, .high = end, .near = end, .size = size, .heap_room = HEAP_ROOM};
    void *got = find_and_map(s);
    s.heap_room = LEAST_HEAP_ROOM;
    return got ? got : find_and_map(s);
}

void *near_map_at(uint64_t at, size_t size)
{
    const uint64_t heap = (uint64_t)sys_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    if (at < LOWEST || at >= HIGHEST - size || (at + size > heap && at < heap + HEAP_ROOM)) return NULL;
    return map_fixed(at, size);
}
