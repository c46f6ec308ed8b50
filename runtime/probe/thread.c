/* Threads: birth, death, names.
 *
 * A child's ft_thread is made by its creator before the real pthread_create, so that nothing the child does can come
 * too early. It dies when the last destructor of thread-specific data has run: ours puts itself off to the last round.
 * Both creator and child enter it into the list of names, whoever is first: the creator may ask for it before the child
 * runs, and others may know it before the creator does. */
#include "runtime/probe/probe.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_SIZE = 1 << 17, SLAB = 1 << 16 };

static struct {
    uint32_t lock;
    probe_birth *listed; /* newest first */
    probe_birth *spare;
    char *slab;
    size_t slab_left;
    pthread_key_t key;
    bool has_key;
} threads;

__thread probe_thread probe_self = {.thread = &probe.nobody, .stacks = &stack_none};

/* --- names -------------------------------------------------------------------------------------------------------- */

probe_birth *thread_new_birth(void)
{
    sys_lock(&threads.lock);
    probe_birth *b = threads.spare;
    if (b) {
        threads.spare = b->next;
    } else {
        if (threads.slab_left < sizeof *b) {
            threads.slab = sys_map(NULL, SLAB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
            threads.slab_left = threads.slab ? SLAB : 0;
        }
        if (threads.slab) {
            b = (probe_birth *)threads.slab;
            threads.slab += sizeof *b;
            threads.slab_left -= sizeof *b;
        }
    }
    sys_unlock(&threads.lock);
    if (b) *b = (probe_birth){.holders = 2, .blocks_trap = probe_self.blocks_trap};
    return b;
}

/* Requires the lock. */
static void drop(probe_birth *b)
{
    if (--b->holders) return;
    b->next = threads.spare;
    threads.spare = b;
}

/* Requires the lock. */
static void unlist(probe_birth *b)
{
    for (probe_birth **link = &threads.listed; *link; link = &(*link)->next)
        if (*link == b) {
            *link = b->next;
            b->is_listed = false;
            drop(b);
            return;
        }
}

static void list(probe_birth *b, uint64_t handle)
{
    if (b->is_listed || b->is_gone) return;
    b->handle = handle;
    b->is_listed = true;
    b->holders++;
    b->next = threads.listed;
    threads.listed = b;
}

void thread_created(probe_birth *b, uint64_t handle)
{
    sys_lock(&threads.lock);
    list(b, handle);
    drop(b);
    sys_unlock(&threads.lock);
}

void thread_not_created(probe_birth *b)
{
    sys_lock(&threads.lock);
    drop(b);
    drop(b);
    sys_unlock(&threads.lock);
}

static ft_thread *thread_of(void *context, uint64_t handle)
{
    (void)context;
    sys_lock(&threads.lock);
    probe_birth *b = threads.listed;
    while (b && b->handle != handle)
        b = b->next;
    ft_thread *found = b ? b->thread : NULL;
    sys_unlock(&threads.lock);
    return found;
}

static void joined(void *context, ft_thread *thread)
{
    (void)context;
    sys_lock(&threads.lock);
    probe_birth *b = threads.listed;
    while (b && b->thread != thread)
        b = b->next;
    if (b) {
        b->is_gone = true;
        unlist(b);
    }
    sys_unlock(&threads.lock);
}

static void detached(void *context, ft_thread *thread)
{
    (void)context;
    sys_lock(&threads.lock);
    probe_birth *b = threads.listed;
    while (b && b->thread != thread)
        b = b->next;
    bool ended = false;
    if (b) {
        b->is_detached = true;
        ended = b->has_ended;
        b->is_gone |= ended;
        if (ended) unlist(b);
    }
    sys_unlock(&threads.lock);
    if (ended) ft_never_joined(probe.core, thread);
}

/* --- birth and death ---------------------------------------------------------------------------------------------- */

void thread_bind(ft_thread *thread)
{
    probe_thread *self = &probe_self;
    char *stack = sys_map(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (stack && sys_protect(stack, PROBE_PAGE, PROT_NONE)) {
        self->stack_map = stack;
        self->stack = stack + STACK_SIZE;
    }
    self->sync.ft = thread;
    memset(self->known, 0xff, sizeof self->known); /* nothing: see quick.c */
    self->thread = thread ? thread : &probe.nobody;
}

static void find_stack(probe_thread *self, probe_birth *b)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    int detached = PTHREAD_CREATE_JOINABLE;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (!pthread_attr_getstack(&attributes, &low, &size)) {
        self->stack_low = (uint64_t)low;
        self->stack_high = (uint64_t)low + size;
        self->stack_is_fixed = true;
    }
    if (!pthread_attr_getdetachstate(&attributes, &detached)) b->is_detached = detached == PTHREAD_CREATE_DETACHED;
    pthread_attr_destroy(&attributes);
}

/* Its stack and thread-local storage may have been another thread's before. */
static void clear_stack(void *context)
{
    probe_thread *self = context;
    ft_clear(self->thread, self->stack_low, self->stack_high - self->stack_low);
}

static void end_in_core(void *context)
{
    probe_birth *b = context;
    sync_ending(&probe.engine, &probe_self.sync);
    ft_end(b->thread);
}

static void end(probe_birth *b)
{
    probe_thread *self = &probe_self;
    if (probe.disabled) return; /* what it has is left as it is */
    if (b->thread) probe_in_core(end_in_core, b);
    self->thread = &probe.nobody;
    void *stack = self->stack_map;
    self->stack = self->stack_map = NULL;
    if (stack) sys_unmap(stack, STACK_SIZE);
    stack_forget();
    sys_lock(&threads.lock);
    b->has_ended = true;
    ft_thread *alone = NULL;
    if (b->is_detached) {
        alone = b->thread;
        b->is_gone = true;
        if (b->is_listed) unlist(b);
    }
    drop(b);
    sys_unlock(&threads.lock);
    if (alone) ft_never_joined(probe.core, alone);
}

/* A destructor of thread-specific data: comes back until the last round. */
static void event_thread_exit(void *birth)
{
    if (++probe_self.endings < PTHREAD_DESTRUCTOR_ITERATIONS && !pthread_setspecific(threads.key, birth)) return;
    end(birth);
}

static void begin(probe_birth *b)
{
    probe_thread *self = &probe_self;
    find_stack(self, b);
    thread_bind(b->thread);
    sys_lock(&threads.lock);
    list(b, (uint64_t)pthread_self());
    sys_unlock(&threads.lock);
    if (b->thread && self->stack_high) probe_in_core(clear_stack, self);
    if (threads.has_key) pthread_setspecific(threads.key, b);
}

void *thread_begin(void *birth)
{
    probe_birth *b = birth;
    void *(*start)(void *) = b->start;
    void *argument = b->argument;
    probe_self.blocks_trap = b->blocks_trap;
    begin(b);
    return start(argument);
}

void thread_adopt(ft_thread *thread)
{
    probe_birth *b = thread_new_birth();
    if (!b) return;
    b->thread = thread;
    b->holders = 1; /* no creator */
    begin(b);
}

void thread_forked(void)
{
    threads.lock = 0;
    for (probe_birth *b = threads.listed, *next; b; b = next) { /* the others are not in this process */
        next = b->next;
        if (b->thread == probe_self.thread) continue;
        b->holders = 1;
        unlist(b);
    }
    probe_self.busy = 0;
    sync_forked(&probe.engine);
    if (probe_self.thread != &probe.nobody) ft_forked_process(probe_self.thread);
}

void thread_start(void)
{
    threads.has_key = !pthread_key_create(&threads.key, event_thread_exit);
    probe.engine.thread_of = thread_of;
    probe.engine.joined = joined;
    probe.engine.detached = detached;
    probe.engine.watch = callback_watch;
    probe.engine.report = probe.report;
    if (!sync_create(&probe.engine)) process_refuse("not enough memory to start");
    probe_self.stack_high = (uint64_t)probe.environment; /* above all frames */
    thread_bind(ft_first_thread(probe.core));
    probe_birth *b = thread_new_birth(); /* it may be joined too, when it ends before the process does */
    if (!b) return;
    b->thread = probe_self.thread == &probe.nobody ? NULL : probe_self.thread;
    b->holders = 1;
    list(b, (uint64_t)pthread_self());
    if (threads.has_key) pthread_setspecific(threads.key, b);
}
