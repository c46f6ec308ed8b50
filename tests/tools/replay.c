/* A recorded run (tests/record/trace.h), given to an oracle that knows happens-before by full vector clocks only.
 *
 *   replay FILE
 *
 * For each access, each byte of it that has not raced since it was new: the core reported it if and only if the oracle
 * finds an earlier access that is not ordered before it. Prints the first differences and one line; exit
 * code 1 if there is one.
 *
 * The oracle keeps, for each byte and each thread, when the thread last read and last wrote it, and for each thread and each
 * object a clock with an entry for every thread. A thread's accesses are ordered among themselves, so its last one tells
 * of all. Nothing is shared with the core: no epochs, no slots, no granules. */
#include "tests/record/trace.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- clocks ------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t *at, cap; /* by thread */
} clock_of;

static void *grow(void *at, size_t size)
{
    void *result = realloc(at, size);
    if (!result && size) {
        fprintf(stderr, "replay: no memory\n");
        exit(2);
    }
    return result;
}

static uint32_t clock_get(const clock_of *c, uint32_t thread)
{
    return thread < c->cap ? c->at[thread] : 0;
}

static uint32_t *clock_entry(clock_of *c, uint32_t thread)
{
    if (thread >= c->cap) {
        uint32_t cap = thread + 8;
        c->at = grow(c->at, cap * sizeof *c->at);
        memset(c->at + c->cap, 0, (cap - c->cap) * sizeof *c->at);
        c->cap = cap;
    }
    return &c->at[thread];
}

static void clock_merge(clock_of *to, const clock_of *from)
{
    for (uint32_t i = 0; i < from->cap; i++)
        if (from->at[i] > clock_get(to, i)) *clock_entry(to, i) = from->at[i];
}

static void clock_clear(clock_of *c)
{
    if (c->cap) memset(c->at, 0, c->cap * sizeof *c->at);
}

/* --- objects, by address and round ---------------------------------------------------------------------------------- */

enum { NO_ROUND = 0xffffffffu, BUCKETS = 1 << 14 };

typedef struct object {
    struct object *next;
    uint64_t addr;
    uint32_t round; /* of a barrier; NO_ROUND: not of a barrier */
    uint32_t inside;
    clock_of released, readers;
    uint32_t writer; /* thread plus 1 */
    bool is_atomic;
} object;

static object *objects[BUCKETS];

static unsigned bucket_of(uint64_t addr) { return (unsigned)(addr * 0x9e3779b97f4a7c15u >> 50); }

static object *object_at(uint64_t addr, uint32_t round, bool create)
{
    object **first = &objects[bucket_of(addr)];
    for (object *o = *first; o; o = o->next)
        if (o->addr == addr && o->round == round) return o;
    if (!create) return NULL;
    object *o = grow(NULL, sizeof *o);
    *o = (object){.next = *first, .addr = addr, .round = round};
    return *first = o;
}

static void object_forget(object *o)
{
    clock_clear(&o->released);
    clock_clear(&o->readers);
    o->writer = 0;
    o->is_atomic = false;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t thread, read, write; /* times; 0: never */
} accesses_of;

typedef struct {
    accesses_of *by;
    uint32_t count, cap;
    bool raced;
} byte_of;

enum { PAGE = 4096, PAGES = 1 << 14 };
typedef struct page {
    struct page *next;
    uint64_t number;
    byte_of bytes[PAGE];
} page;

static page *pages[PAGES];

static byte_of *byte_at(uint64_t addr, bool create)
{
    static page *last;
    if (last && last->number == addr / PAGE) return &last->bytes[addr % PAGE];
    page **first = &pages[addr / PAGE * 0x9e3779b97f4a7c15u >> 50];
    page *p = *first;
    while (p && p->number != addr / PAGE)
        p = p->next;
    if (!p && !create) return NULL;
    if (!p) {
        p = grow(NULL, sizeof *p);
        memset(p, 0, sizeof *p);
        p->next = *first;
        p->number = addr / PAGE;
        *first = p;
    }
    last = p;
    return &p->bytes[addr % PAGE];
}

static void byte_forget(byte_of *b)
{
    b->count = 0;
    b->raced = false;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

enum { PENDING = 64, SHOWN = 10 };

typedef struct {
    clock_of clock;
    uint64_t pending[PENDING]; /* atomics that were read plainly: acquired before the next event */
    uint32_t pending_count;
} thread_of;

static thread_of *threads;
static uint32_t thread_cap;

static struct {
    uint64_t events, accesses, bytes, races, differences, lost, resets;
    uint32_t threads;
} sum;

static thread_of *thread_at(uint32_t number)
{
    if (number >= thread_cap) {
        threads = grow(threads, (number + 8) * sizeof *threads);
        memset(threads + thread_cap, 0, (number + 8 - thread_cap) * sizeof *threads);
        thread_cap = number + 8;
    }
    if (!clock_get(&threads[number].clock, number)) *clock_entry(&threads[number].clock, number) = 1;
    return &threads[number];
}

static void step(uint32_t thread) { ++*clock_entry(&thread_at(thread)->clock, thread); }

static void acquire(uint32_t thread, const clock_of *from)
{
    clock_merge(&thread_at(thread)->clock, from);
}

static void release(uint32_t thread, clock_of *to)
{
    clock_merge(to, &thread_at(thread)->clock);
    step(thread);
}

static void acquire_object(uint32_t thread, uint64_t addr)
{
    const object *o = object_at(addr, NO_ROUND, false);
    if (o) acquire(thread, &o->released);
}

static void forget_range(uint64_t addr, uint64_t size, bool with_objects)
{
    for (uint64_t at = addr; at - addr < size;) {
        byte_of *b = byte_at(at, false);
        if (b) byte_forget(b);
        at = b ? at + 1 : (at | (PAGE - 1)) + 1;
    }
    if (!with_objects) return;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (object *o = objects[i]; o; o = o->next)
            if (o->addr - addr < size && !o->inside) object_forget(o);
}

/* Is an access of this thread now in a race? */
static bool races(const byte_of *b, uint32_t thread, bool is_write)
{
    const clock_of *now = &threads[thread].clock;
    for (uint32_t i = 0; i < b->count; i++) {
        const accesses_of *a = &b->by[i];
        if (a->thread == thread) continue;
        if (a->write > clock_get(now, a->thread)) return true;
        if (is_write && a->read > clock_get(now, a->thread)) return true;
    }
    return false;
}

static void remember(byte_of *b, uint32_t thread, bool is_write)
{
    uint32_t i = 0;
    while (i < b->count && b->by[i].thread != thread)
        i++;
    if (i == b->count) {
        if (b->count == b->cap) b->by = grow(b->by, (b->cap = b->cap ? 2 * b->cap : 2) * sizeof *b->by);
        b->by[b->count++] = (accesses_of){.thread = thread};
    }
    *(is_write ? &b->by[i].write : &b->by[i].read) = clock_get(&threads[thread].clock, thread);
}

static bool is_reported(const trace_record *r, const trace_record *end, uint64_t addr)
{
    for (; r < end && r->kind == TRACE_RACE; r++)
        if (addr - r->addr < r->size) return true;
    return false;
}

static void access_byte(const trace_record *first, const trace_record *r, const trace_record *end, uint64_t addr, bool is_write)
{
    byte_of *b = byte_at(addr, true);
    sum.bytes++;
    bool expected = races(b, r->thread, is_write), found = is_reported(r + 1, end, addr);
    if (!b->raced && expected != found && sum.differences++ < SHOWN)
        printf("  event %zu: thread %u %s %llu bytes at 0x%llx: byte 0x%llx %s\n", r - first, r->thread,
               is_write ? "writes" : "reads", (unsigned long long)r->size, (unsigned long long)r->addr,
               (unsigned long long)addr, expected ? "races, and was not reported" : "was reported, and does not race");
    if (expected && !b->raced) sum.races++;
    b->raced |= expected || found;
    remember(b, r->thread, is_write);
}

static void add_pending(thread_of *t, uint64_t addr)
{
    if (t->pending_count < PENDING) t->pending[t->pending_count++] = addr;
}

/* A plain access of up to 8 bytes where an atomic instruction was seen is atomic too (core.h). */
static bool access_atomic(const trace_record *r)
{
    const object *o = r->count == 1 && r->size <= 8 ? object_at(r->addr, NO_ROUND, false) : NULL;
    if (!o || !o->is_atomic) return false;
    thread_of *t = thread_at(r->thread);
    if (r->kind == TRACE_WRITE)
        release(r->thread, &object_at(r->addr, NO_ROUND, true)->released);
    else
        add_pending(t, r->addr);
    return true;
}

static void access_range(const trace_record *first, const trace_record *r, const trace_record *end)
{
    sum.accesses++;
    if (r->kind != TRACE_FREE && access_atomic(r)) return;
    uint64_t low = r->addr, step_of = r->stride < 0 ? -(uint64_t)r->stride : (uint64_t)r->stride;
    if (r->stride < 0) low -= (r->count - 1) * step_of;
    uint64_t done = 0;
    for (uint64_t i = 0; i < r->count; i++) {
        uint64_t from = low + i * step_of, to = from + r->size;
        if (i && from < done) from = done; /* elements may overlap */
        for (; from < to; from++)
            access_byte(first, r, end, from, r->kind != TRACE_READ);
        done = to > done ? to : done;
    }
}

static void barrier(const trace_record *r)
{
    object *o = object_at(r->addr, r->other, r->kind == TRACE_ENTER);
    if (!o) return;
    if (r->kind == TRACE_ENTER) {
        o->inside++;
        release(r->thread, &o->released);
        return;
    }
    acquire(r->thread, &o->released);
    if (o->inside && --o->inside == 0) clock_clear(&o->released);
}

static void unlock(uint32_t thread, object *o)
{
    if (o->writer == thread + 1) {
        o->writer = 0;
        release(thread, &o->released);
    } else {
        release(thread, &o->readers);
    }
}

/* A thread that has read it just now may see what comes: it has done nothing since by which others could know. */
static void tell_readers(const trace_record *r)
{
    const byte_of *b = byte_at(r->addr, false);
    for (uint32_t i = 0; b && i < b->count; i++) {
        const accesses_of *a = &b->by[i];
        const uint32_t now = clock_get(&threads[a->thread].clock, a->thread);
        if (a->thread != r->thread && a->read == now && a->write != now) add_pending(&threads[a->thread], r->addr);
    }
}

static void atomic_before(const trace_record *r)
{
    object *o = object_at(r->addr, NO_ROUND, true);
    if (!r->concurrent) return; /* one thread: the core does not look */
    bool is_new = !o->is_atomic;
    o->is_atomic = true;
    release(r->thread, &o->released);
    if (!is_new || r->addr >> 47) return;
    tell_readers(r);
    forget_range(r->addr, 8, false);
}

static void run(const trace_record *first, const trace_record *r, const trace_record *end)
{
    thread_of *t = thread_at(r->thread);
    uint32_t pending = t->pending_count;
    t->pending_count = 0;
    for (uint32_t i = 0; i < pending; i++)
        acquire_object(r->thread, t->pending[i]);
    object *o;
    switch ((trace_kind)r->kind) {
    case TRACE_FORK:
        if (r->other == UINT32_MAX) break;
        thread_at(r->other);
        clock_merge(&threads[r->other].clock, &thread_at(r->thread)->clock);
        step(r->thread);
        break;
    case TRACE_JOIN:
        thread_at(r->other);
        clock_merge(&threads[r->thread].clock, &threads[r->other].clock);
        break;
    case TRACE_ACQUIRE:
    case TRACE_ATOMIC_AFTER:
    case TRACE_LOCK_READ:
        acquire_object(r->thread, r->addr);
        break;
    case TRACE_RELEASE:
        release(r->thread, &object_at(r->addr, NO_ROUND, true)->released);
        break;
    case TRACE_PUBLISH:
        release(r->thread, &object_at(r->addr, NO_ROUND, true)->released);
        clock_merge(&object_at(r->addr, NO_ROUND, true)->released, &thread_at(r->thread)->clock);
        break;
    case TRACE_ATOMIC_BEFORE:
        atomic_before(r);
        break;
    case TRACE_FORGET:
        o = object_at(r->addr, NO_ROUND, false);
        if (o) object_forget(o);
        break;
    case TRACE_LOCK_WRITE:
        o = object_at(r->addr, NO_ROUND, true);
        acquire(r->thread, &o->released);
        acquire(r->thread, &o->readers);
        o->writer = r->thread + 1;
        break;
    case TRACE_UNLOCK:
        unlock(r->thread, object_at(r->addr, NO_ROUND, true));
        break;
    case TRACE_ENTER:
    case TRACE_LEAVE:
        barrier(r);
        break;
    case TRACE_READ:
    case TRACE_WRITE:
    case TRACE_FREE:
        access_range(first, r, end);
        break;
    case TRACE_CLEAR:
        forget_range(r->addr, r->size, true);
        break;
    case TRACE_LOST:
        sum.lost++;
        break;
    case TRACE_RESET:
        sum.resets++;
        break;
    default:
        break;
    }
}

static bool replay(const char *path)
{
    int file = open(path, O_RDONLY);
    struct stat st;
    if (file < 0 || fstat(file, &st) || st.st_size < (off_t)sizeof(trace_record)) {
        fprintf(stderr, "replay: %s: cannot be read\n", path);
        exit(2);
    }
    size_t size = (size_t)st.st_size;
    const trace_record *first = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (first == MAP_FAILED) {
        fprintf(stderr, "replay: %s: cannot be mapped\n", path);
        exit(2);
    }
    memset(&sum, 0, sizeof sum);
    const trace_record *end = first + size / sizeof *first;
    for (const trace_record *r = first; r < end && r->kind != TRACE_NOTHING && r->kind != TRACE_FULL && !sum.resets; r++) {
        sum.events++;
        if (r->thread >= sum.threads) sum.threads = r->thread + 1;
        if (r->kind != TRACE_RACE) run(first, r, end);
    }
    printf("%llu events, %llu accesses of %llu bytes, %u threads, %llu bytes raced, %llu differences\n",
           (unsigned long long)sum.events, (unsigned long long)sum.accesses, (unsigned long long)sum.bytes, sum.threads,
           (unsigned long long)sum.races, (unsigned long long)sum.differences);
    munmap((void *)(uintptr_t)first, size);
    return !sum.differences;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: replay FILE\n");
        return 2;
    }
    return !replay(argv[1]);
}
