/* An engine that writes down what it tells the core. This file is linked into an engine as it is, with every function of the
 * core wrapped by the linker (--wrap): the engine holds threads and a core that look like the core's own but are made
 * here, and whose same-epoch path never settles anything, since no region of theirs has cells. So each event comes by
 * here, where one lock orders it: what is written is the order in which the core heard it.
 *
 * RACE_RECORD names a folder; each process leaves a file there. It is mapped and written in place, so it is right up to the
 * last event however the process ends. A process that was forked records nothing.
 *
 * The acquires that the core delays (core.h, atomics) are made here, before the next event of their thread: when the core
 * would make them depends on which accesses it need not look at. */
#include "runtime/core/private.h"
#include "tests/record/trace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { FAKES = 4096, MOST = 1 << 23 /* records: sparse, 400 MB */ };

typedef struct {
    ft_thread pub;
    ft_thread *real;
} fake_thread;

static struct {
    uint32_t lock;
    ft_core *core, *real; /* the engine's, the core's own */
    ft_host host;         /* the engine's */
    fake_thread fakes[FAKES];
    fake_thread *current; /* whose event it is */
    trace_record *records;
    uint32_t count;
    uint32_t resets;
} rec;

#define WRAPPED(type, name, ...)      \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

/* --- the file ----------------------------------------------------------------------------------------------------- */

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The value of RACE_RECORD, from the process's first environment: there is no libc here. */
static bool find_folder(char *to, size_t size)
{
    static char text[1 << 17];
    static const char name[] = "RACE_RECORD=";
    long file = call(SYS_open, (long)"/proc/self/environ", O_RDONLY, 0, 0, 0, 0), got, all = 0;
    while (file >= 0 && (got = call(SYS_read, file, (long)text + all, (long)sizeof text - 1 - all, 0, 0, 0)) > 0)
        all += got;
    if (file >= 0) call(SYS_close, file, 0, 0, 0, 0, 0);
    for (long at = 0; at < all; at += (long)strlen(text + at) + 1)
        if (!memcmp(text + at, name, sizeof name - 1) && strlen(text + at) < size) {
            memcpy(to, text + at + sizeof name - 1, strlen(text + at) - sizeof name + 2);
            return true;
        }
    return false;
}

static void add_number(char *text, uint64_t number)
{
    size_t at = strlen(text);
    text[at++] = '.';
    for (int shift = 60; shift >= 0; shift -= 4)
        text[at++] = "0123456789abcdef"[number >> shift & 15];
    text[at] = 0;
}

static void open_file(void)
{
    char path[512];
    if (!find_folder(path, sizeof path - 64)) return;
    memcpy(path + strlen(path), "/trace", sizeof "/trace");
    add_number(path, (uint64_t)call(SYS_getpid, 0, 0, 0, 0, 0, 0));
    add_number(path, __builtin_ia32_rdtsc());
    long file = call(SYS_open, (long)path, O_RDWR | O_CREAT | O_EXCL, 0600, 0, 0, 0);
    if (file < 0) return;
    const long bytes = (long)MOST * (long)sizeof *rec.records;
    if (!call(SYS_ftruncate, file, bytes, 0, 0, 0, 0)) {
        long at = call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at > 0 || at < -4095) rec.records = (trace_record *)at;
    }
    call(SYS_close, file, 0, 0, 0, 0, 0);
}

static trace_record *put(trace_kind kind, uint32_t thread)
{
    static trace_record nowhere;
    if (!rec.records || rec.count == MOST) return &nowhere;
    trace_record *r = &rec.records[rec.count++];
    r->kind = rec.count == MOST ? TRACE_FULL : kind;
    r->thread = thread;
    r->concurrent = rec.real->concurrent;
    return r;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static bool is_fake(const ft_thread *t)
{
    return (const char *)t >= (const char *)rec.fakes && (const char *)t < (const char *)(rec.fakes + FAKES);
}

static void lock(void)
{
    while (__atomic_exchange_n(&rec.lock, 1, __ATOMIC_ACQUIRE))
        if (rec.host.yield) rec.host.yield(rec.host.context);
}

static void unlock(void)
{
    __atomic_store_n(&rec.lock, 0, __ATOMIC_RELEASE);
}

/* Begins an event of a thread. NULL: it comes from the core itself, or in the middle of another one, and is not to be
 * recorded; *pass says whether the core is to hear it. */
static fake_thread *begin(ft_thread *thread, bool *pass)
{
    fake_thread *t = (fake_thread *)(void *)thread;
    *pass = !is_fake(thread);
    if (*pass) return NULL;
    if (__atomic_exchange_n(&t->pub.inside, 1, __ATOMIC_RELAXED)) {
        if (rec.current == t) put(TRACE_LOST, t->pub.number); /* it has the lock */
        return NULL;
    }
    lock();
    rec.current = t;
    if (sync_has_pending(state_of(t->real))) sync_acquire_pending(state_of(t->real));
    return t;
}

static void end(fake_thread *t)
{
    core_state *core = core_of(rec.real);
    if (core->resets != rec.resets) {
        rec.resets = core->resets;
        put(TRACE_RESET, t->pub.number);
    }
    rec.core->concurrent = rec.real->concurrent;
    rec.current = NULL;
    unlock();
    __atomic_store_n(&t->pub.inside, 0, __ATOMIC_RELAXED);
}

static ft_thread *make_fake(ft_thread *real)
{
    if (!real) return NULL;
    for (unsigned i = 0; i < FAKES; i++) {
        fake_thread *t = &rec.fakes[i];
        if (t->real) continue;
        t->real = real;
        t->pub = (ft_thread){.epoch = 1, .number = real->number, .core = rec.core};
        return &t->pub;
    }
    return NULL;
}

static ft_thread *real_of(ft_thread *t)
{
    return is_fake(t) ? ((fake_thread *)(void *)t)->real : t;
}

static void free_fake(ft_thread *t)
{
    if (is_fake(t)) ((fake_thread *)(void *)t)->real = NULL;
}

/* --- the core ----------------------------------------------------------------------------------------------------- */

static void tell_race(void *context, const ft_race *race)
{
    trace_record *r = put(TRACE_RACE, race->now.thread);
    r->other = race->before.thread;
    r->addr = race->addr;
    r->size = race->size;
    r->count = race->before.is_write;
    rec.host.race(context, race);
}

static ft_site find_stack(void *context, ft_thread *thread, ft_site site)
{
    (void)thread;
    return rec.host.stack(context, &rec.current->pub, site);
}

WRAPPED(ft_core *, ft_create, const ft_host *host)
{
    rec.host = *host;
    ft_host mine = *host;
    mine.race = tell_race;
    if (host->stack) mine.stack = find_stack;
    /* the first reservation is the one that an engine may want at a place of its own */
    rec.core = host->reserve(host->context, (sizeof(ft_core) + 4095) & ~(size_t)4095);
    rec.real = __real_ft_create(&mine);
    if (!rec.real || !rec.core) return NULL;
    open_file();
    return rec.core;
}

#define OF_CORE(core) ((core) == rec.core ? rec.real : (core))
#define PASSES_ON(type, name, declared, ...) \
    WRAPPED(type, name, declared) { return __real_##name(__VA_ARGS__); }
#define COMMA ,

PASSES_ON(void, ft_statistics, ft_core *core COMMA ft_stats *out, OF_CORE(core), out)
PASSES_ON(void, ft_set_limits, ft_core *core COMMA const ft_limits *limits, OF_CORE(core), limits)
PASSES_ON(bool, ft_describe_thread, ft_core *core COMMA uint32_t number COMMA ft_thread_info *out, OF_CORE(core), number, out)
PASSES_ON(uint64_t, ft_block_size, ft_core *core COMMA uint64_t addr, OF_CORE(core), addr)
PASSES_ON(bool, ft_block_covering, ft_core *core COMMA uint64_t addr COMMA ft_block *out, OF_CORE(core), addr, out)
PASSES_ON(ft_site, ft_stack_put,
          ft_core *core COMMA ft_site site COMMA const uint64_t *frames COMMA uint32_t count, OF_CORE(core), site, frames, count)
PASSES_ON(uint32_t, ft_stack_get,
          ft_core *core COMMA uint32_t stack COMMA uint64_t *frames COMMA uint32_t cap, OF_CORE(core), stack, frames, cap)
PASSES_ON(bool, ft_report_first, ft_core *core COMMA ft_site one COMMA ft_site other, OF_CORE(core), one, other)

/* --- threads ------------------------------------------------------------------------------------------------------ */

WRAPPED(ft_thread *, ft_first_thread, ft_core *core)
{
    ft_thread *real = __real_ft_first_thread(OF_CORE(core));
    if (real) put(TRACE_START, real->number);
    return make_fake(real);
}

WRAPPED(ft_thread *, ft_fork, ft_thread *parent, ft_site site)
{
    bool pass;
    fake_thread *t = begin(parent, &pass);
    if (!t) return pass ? __real_ft_fork(parent, site) : NULL;
    trace_record *r = put(TRACE_FORK, t->pub.number);
    ft_thread *child = make_fake(__real_ft_fork(t->real, site));
    r->other = child ? child->number : UINT32_MAX;
    end(t);
    return child;
}

WRAPPED(void, ft_fork_undo, ft_thread *parent, ft_thread *child)
{
    bool pass;
    fake_thread *t = begin(parent, &pass);
    if (t || pass) __real_ft_fork_undo(real_of(parent), real_of(child));
    free_fake(child);
    if (t) end(t);
}

WRAPPED(void, ft_end, ft_thread *thread)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (t || pass) __real_ft_end(real_of(thread));
    if (t) end(t);
}

WRAPPED(void, ft_join, ft_thread *thread, ft_thread *child)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (t) put(TRACE_JOIN, t->pub.number)->other = child->number;
    if (t || pass) __real_ft_join(real_of(thread), real_of(child));
    free_fake(child);
    if (t) end(t);
}

WRAPPED(void, ft_never_joined, ft_core *core, ft_thread *child)
{
    lock();
    __real_ft_never_joined(OF_CORE(core), real_of(child));
    free_fake(child);
    unlock();
}

WRAPPED(void, ft_forked_process, ft_thread *thread)
{
    rec.records = NULL;
    rec.lock = 0;
    rec.current = NULL;
    for (unsigned i = 0; i < FAKES; i++) {
        rec.fakes[i].pub.inside = 0;
        if (&rec.fakes[i].pub != thread) rec.fakes[i].real = NULL;
    }
    __real_ft_forked_process(real_of(thread));
    rec.core->concurrent = rec.real->concurrent;
}

/* --- synchronisation ---------------------------------------------------------------------------------------------- */

#define OBJECT_EVENT(kind, name)                               \
    WRAPPED(void, name, ft_thread *thread, uint64_t object)    \
    {                                                          \
        bool pass;                                             \
        fake_thread *t = begin(thread, &pass);                 \
        if (t) put(kind, t->pub.number)->addr = object;        \
        if (t || pass) __real_##name(real_of(thread), object); \
        if (t) end(t);                                         \
    }

OBJECT_EVENT(TRACE_ACQUIRE, ft_acquire)
OBJECT_EVENT(TRACE_RELEASE, ft_release)
OBJECT_EVENT(TRACE_PUBLISH, ft_publish)
OBJECT_EVENT(TRACE_FORGET, ft_forget)
OBJECT_EVENT(TRACE_ATOMIC_BEFORE, ft_atomic_before)
OBJECT_EVENT(TRACE_ATOMIC_AFTER, ft_atomic_after)
OBJECT_EVENT(TRACE_LOCK_READ, ft_lock_read)
OBJECT_EVENT(TRACE_LOCK_WRITE, ft_lock_write)
OBJECT_EVENT(TRACE_UNLOCK, ft_unlock)

WRAPPED(void, ft_barrier_init, ft_thread *thread, uint64_t object, uint32_t count)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (t || pass) __real_ft_barrier_init(real_of(thread), object, count);
    if (t) end(t);
}

WRAPPED(uint32_t, ft_barrier_enter, ft_thread *thread, uint64_t object)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (!t) return pass ? __real_ft_barrier_enter(thread, object) : 0;
    trace_record *r = put(TRACE_ENTER, t->pub.number);
    r->addr = object;
    uint32_t round = __real_ft_barrier_enter(t->real, object);
    r->other = round;
    end(t);
    return round;
}

#define ROUND_EVENT(kind, name)                                                 \
    WRAPPED(void, name, ft_thread *thread, uint64_t object, uint32_t round)     \
    {                                                                           \
        bool pass;                                                              \
        fake_thread *t = begin(thread, &pass);                                  \
        trace_record *r = t ? put(kind, t->pub.number) : NULL;                  \
        if (r) {                                                                \
            r->addr = object;                                                   \
            r->other = round;                                                   \
        }                                                                       \
        if (t || pass) __real_##name(real_of(thread), object, round);           \
        if (t) end(t);                                                          \
    }

ROUND_EVENT(TRACE_LEAVE, ft_barrier_leave)
ROUND_EVENT(TRACE_ENTER, ft_barrier_enter_round)
ROUND_EVENT(TRACE_LEAVE, ft_barrier_leave_round)

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void put_range(trace_kind kind, const fake_thread *t, ft_strided e)
{
    trace_record *r = put(kind, t->pub.number);
    r->addr = e.addr;
    r->size = e.size;
    r->count = e.count;
    r->stride = e.stride;
}

#define ACCESS_EVENT(kind, name)                                                          \
    WRAPPED(void, name, ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)    \
    {                                                                                     \
        bool pass;                                                                        \
        fake_thread *t = begin(thread, &pass);                                            \
        if (t) put_range(kind, t, (ft_strided){addr, size, 1, 0});                        \
        if (t || pass) __real_##name(real_of(thread), addr, size, site);                  \
        if (t) end(t);                                                                    \
    }                                                                                     \
    WRAPPED(void, name##_strided, ft_thread *thread, ft_strided elements, ft_site site)   \
    {                                                                                     \
        bool pass;                                                                        \
        fake_thread *t = begin(thread, &pass);                                            \
        if (t) put_range(kind, t, elements);                                              \
        if (t || pass) __real_##name##_strided(real_of(thread), elements, site);          \
        if (t) end(t);                                                                    \
    }

ACCESS_EVENT(TRACE_READ, ft_read)
ACCESS_EVENT(TRACE_WRITE, ft_write)

WRAPPED(void, ft_clear, ft_thread *thread, uint64_t addr, uint64_t size)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (t) put_range(TRACE_CLEAR, t, (ft_strided){addr, size, 1, 0});
    if (t || pass) __real_ft_clear(real_of(thread), addr, size);
    if (t) end(t);
}

WRAPPED(void, ft_allocated, ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    if (t) put_range(TRACE_CLEAR, t, (ft_strided){addr, size, 1, 0});
    if (t || pass) __real_ft_allocated(real_of(thread), addr, size, site);
    if (t) end(t);
}

WRAPPED(void, ft_freed, ft_thread *thread, uint64_t addr, ft_site site)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    uint64_t size = t ? __real_ft_block_size(rec.real, addr) : 0;
    if (size) put_range(TRACE_FREE, t, (ft_strided){addr, size, 1, 0});
    if (t || pass) __real_ft_freed(real_of(thread), addr, site);
    if (t) end(t);
}

WRAPPED(void, ft_discarded, ft_thread *thread, uint64_t addr)
{
    bool pass;
    fake_thread *t = begin(thread, &pass);
    uint64_t size = t ? __real_ft_block_size(rec.real, addr) : 0;
    if (size) put_range(TRACE_CLEAR, t, (ft_strided){addr, size, 1, 0});
    if (t || pass) __real_ft_discarded(real_of(thread), addr);
    if (t) end(t);
}
