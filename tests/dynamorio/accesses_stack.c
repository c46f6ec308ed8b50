/* Shadow stacks: which activations a thread has, and where in the stack each of them lies.
 *
 * A function's activation is pushed when its first instruction runs, with the stack pointer of that moment, and popped
 * when it returns, or when code of an older one runs again (longjmp, exceptions: at the places where execution can come
 * back). A byte belongs to the youngest activation whose entry rsp is not below it, unless that one is in a call: then
 * what lies below its stack pointer belongs to code that is not analysed, such as the caller of a callback. A tail call
 * leaves nothing of the old activation.
 *
 * A thread may have several stacks (sigaltstack, coroutines); an entry on one does not touch the others. */
#include "accesses.h"

#include "drmgr.h"

#include <syscall.h>

enum { MAIN_STACK = 8 << 20, RED_ZONE = 128 };

static struct {
    void *lock; /* of the list of threads */
    thread *threads;
    int field;
    bool seen_first;
} all;

uint64_t stack_odd;

thread *thread_current(void)
{
    return drmgr_get_tls_field(dr_get_current_drcontext(), all.field);
}

/* --- thread-local storage ----------------------------------------------------------------------------------------- */

static uint64_t thread_pointer(void)
{
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
    return (uint64_t)opnd_compute_address(
        opnd_create_far_base_disp(DR_SEG_FS, DR_REG_NULL, DR_REG_NULL, 0, 0, OPSZ_1), &mc);
}

static uint64_t word_at(uint64_t addr)
{
    uint64_t value = 0;
    size_t done;
    return dr_safe_read((void *)addr, sizeof value, &value, &done) && done == sizeof value ? value : 0;
}

typedef struct {
    thread *t;
    uint64_t addr;
    object *found;
    int64_t *offset;
    bool yes;
} tls_query;

static void tls_try(tls_query *q, module *m, uint64_t block)
{
    if (q->yes || q->addr - block >= m->tls_size) return;
    *q->found = object_of(OBJECT_TLS, m->number, 0);
    *q->offset = (int64_t)(q->addr - block);
    q->yes = true;
}

/* The words are filled in before the module's code runs, and never change. */
static void learn_tls(module *m)
{
    for (uint32_t i = 0; i < m->tp_count && !m->tls_distance; i++) {
        uint64_t distance = word_at(m->tp_word[i] + m->bias);
        if (distance) m->tls_distance = distance - m->tp_offset[i];
    }
    for (uint32_t i = 0; i < m->id_count && !m->tls_id; i++)
        m->tls_id = word_at(m->id_word[i] + m->bias);
    m->tls_known = true;
}

static void tls_of_module(module *m, void *context)
{
    tls_query *q = context;
    if (!m->tls_size) return;
    if (!m->tls_known) learn_tls(m);
    if (m->in_executable) tls_try(q, m, q->t->pointer - m->tls_size);
    if (m->tls_distance) tls_try(q, m, q->t->pointer + m->tls_distance);
    for (uint32_t k = 0; m->tls_id && k < q->t->block_count; k++)
        if (q->t->block_module[k] == m->tls_id) tls_try(q, m, q->t->block_start[k]);
}

bool tls_find(thread *t, uint64_t addr, object *found, int64_t *offset)
{
    tls_query q = {t, addr, found, offset, false};
    if (t->pointer) modules_each(tls_of_module, &q);
    return q.yes;
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

static void add_stack(thread *t, uint64_t sp)
{
    uint64_t low = 0, high = 0;
    byte *base;
    size_t size;
    uint prot;
    if (sp >= t->alt_low && sp < t->alt_high) {
        low = t->alt_low;
        high = t->alt_high;
    } else if (!heap_bounds(sp, &low, &high) && dr_query_memory((byte *)sp, &base, &size, &prot)) {
        low = (uint64_t)base;
        high = low + size;
        if (t->pointer > sp && t->pointer < high) high = t->pointer; /* the thread's control block lies on top */
        if (t->first && !t->stack_count && high - low < MAIN_STACK) low = high - MAIN_STACK; /* it grows */
    }
    if (!high) {
        low = sp - MAIN_STACK;
        high = sp + 4096;
    }
    uint32_t slot = t->stack_count < MAX_STACKS ? t->stack_count++ : MAX_STACKS - 1;
    t->stacks[slot].low = low;
    t->stacks[slot].high = high;
    t->stacks[slot].count = 0;
    t->current = slot;
}

/* The stack that sp is on becomes the current one. With the lock held. */
static stack *switch_stack(thread *t, uint64_t sp)
{
    if (!t->pointer) t->pointer = thread_pointer();
    for (uint32_t i = 0; i <= t->stack_count; i++) {
        uint32_t at = i ? i - 1 : t->current;
        if (at >= t->stack_count || sp < t->stacks[at].low || sp >= t->stacks[at].high) continue;
        t->current = at;
        return &t->stacks[at];
    }
    add_stack(t, sp);
    return &t->stacks[t->current];
}

static activation *top(stack *s)
{
    return s->count ? &s->frames[s->count - 1] : NULL;
}

static void pop(stack *s)
{
    bool signal = top(s)->signal;
    s->count--;
    if (signal && s->count) top(s)->state = ACTIVE_RUNS;
}

static activation *push(stack *s)
{
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 256;
        activation *frames = dr_global_alloc(capacity * sizeof *frames);
        if (s->count) memcpy(frames, s->frames, s->count * sizeof *frames);
        if (s->capacity) dr_global_free(s->frames, s->capacity * sizeof *frames);
        s->frames = frames;
        s->capacity = capacity;
    }
    return &s->frames[s->count++];
}

/* The activation that called or jumped to a function that is entered now; NULL: none that is known. */
static const activation *entered_from(stack *s, uint64_t sp)
{
    const activation *a = top(s);
    if (!a) return NULL;
    if (a->state == ACTIVE_LEFT && a->sp == sp) return a;
    for (uint32_t i = s->count; i-- > 0;)
        if (s->frames[i].sp > sp) return s->frames[i].state == ACTIVE_CALLS && s->frames[i].call_sp - 8 == sp ? &s->frames[i] : NULL;
    return NULL;
}

void on_entry(module *m, uint64_t entry, uint64_t sp)
{
    thread *t = thread_current();
    dr_mutex_lock(t->lock);
    stack *s = switch_stack(t, sp);
    const activation *from = entered_from(s, sp);
    call_place by[OUTER] = {{0}};
    if (from && from->call) {
        by[0] = (call_place){from->module, from->call};
        for (unsigned i = 1; i < OUTER; i++)
            by[i] = from->by[i - 1];
    }
    while (s->count && top(s)->sp <= sp)
        pop(s);
    bool signal = false, odd = false;
    if (s->count && top(s)->state == ACTIVE_RUNS) { /* neither called nor jumped to */
        signal = t->signal_sp > sp && t->signal_sp <= top(s)->sp + 8;
        odd = !signal;
        if (signal) {
            top(s)->state = ACTIVE_CALLS;
            top(s)->call = 0;
            top(s)->call_sp = t->signal_sp - RED_ZONE;
        }
    }
    t->signal_sp = 0;
    if (odd) {
        stack_odd++; /* a label that was taken for a function */
    } else {
        activation *a = push(s);
        *a = (activation){.sp = sp, .entry = entry, .module = m->number, .signal = signal};
        memcpy(a->by, by, sizeof by);
    }
    dr_mutex_unlock(t->lock);
}

void on_call(uint64_t pc, uint64_t sp)
{
    thread *t = thread_current();
    dr_mutex_lock(t->lock);
    activation *a = top(switch_stack(t, sp));
    if (a) {
        a->state = ACTIVE_CALLS;
        a->call = pc;
        a->call_sp = sp;
    }
    dr_mutex_unlock(t->lock);
}

void on_leave(uint64_t pc, uint64_t sp)
{
    thread *t = thread_current();
    dr_mutex_lock(t->lock);
    activation *a = top(switch_stack(t, sp));
    if (a && a->sp == sp) { /* else its frame is still there: it is no tail call */
        a->state = ACTIVE_LEFT;
        a->call = pc;
    }
    dr_mutex_unlock(t->lock);
}

void on_return(uint64_t sp)
{
    thread *t = thread_current();
    dr_mutex_lock(t->lock);
    stack *s = switch_stack(t, sp);
    while (s->count && top(s)->sp <= sp)
        pop(s);
    dr_mutex_unlock(t->lock);
}

void on_resume(uint64_t sp)
{
    thread *t = thread_current();
    dr_mutex_lock(t->lock);
    stack *s = switch_stack(t, sp);
    while (s->count && top(s)->sp < sp)
        pop(s);
    if (s->count) top(s)->state = ACTIVE_RUNS;
    dr_mutex_unlock(t->lock);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static bool find_in(thread *t, bool own, uint64_t addr, object *found, int64_t *offset)
{
    for (uint32_t i = 0; i < t->stack_count; i++) {
        stack *s = &t->stacks[i];
        if (addr < s->low || addr >= s->high) continue;
        uint32_t low = 0, high = s->count; /* the number of activations that reach up to addr */
        while (low < high) {
            uint32_t mid = (low + high) / 2;
            if (s->frames[mid].sp + 8 > addr)
                low = mid + 1;
            else
                high = mid;
        }
        activation *a = low ? &s->frames[low - 1] : NULL;
        bool gone = !a || (a->state == ACTIVE_LEFT && addr < a->sp) || (a->state == ACTIVE_CALLS && addr < a->call_sp);
        *offset = gone ? 0 : (int64_t)(addr - a->sp);
        if (gone)
            *found = object_of(OBJECT_EXTERNAL, EXTERNAL_MODULE, EXTERNAL_STACK);
        else
            *found = object_of(own && low == s->count ? OBJECT_OWN : OBJECT_FRAME, a->module, a->entry);
        return true;
    }
    return false;
}

/* Thread-local storage of threads other than t is looked for here too: it lies on top of their stacks. */
bool stack_find(thread *t, uint64_t addr, object *found, int64_t *offset)
{
    if (find_in(t, true, addr, found, offset)) return true;
    bool yes = false;
    dr_rwlock_read_lock(all.lock);
    for (thread *u = all.threads; u && !yes; u = u->next) {
        if (u == t) continue;
        dr_mutex_lock(u->lock);
        yes = tls_find(u, addr, found, offset) || find_in(u, false, addr, found, offset);
        dr_mutex_unlock(u->lock);
    }
    dr_rwlock_read_unlock(all.lock);
    return yes;
}

object stack_caller(thread *t, uint64_t sp)
{
    dr_mutex_lock(t->lock);
    stack *s = switch_stack(t, sp);
    /* Those below sp have returned, but for a tail call, which ends where it began. */
    activation *a = NULL;
    for (uint32_t i = s->count; i-- > 0 && !a;)
        if (s->frames[i].sp >= sp) a = &s->frames[i];
    object caller = object_of(OBJECT_EXTERNAL, EXTERNAL_MODULE, EXTERNAL_HEAP);
    if (a && a->state != ACTIVE_RUNS && a->call) {
        bool direct = sp == (a->state == ACTIVE_LEFT ? a->sp : a->call_sp - 8);
        caller = object_of(direct ? OBJECT_HEAP : OBJECT_LIBRARY, a->module, a->call);
        memcpy(caller.outer, a->by, sizeof caller.outer);
    }
    dr_mutex_unlock(t->lock);
    return caller;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void event_thread_init(void *drcontext)
{
    thread *t = dr_global_alloc(sizeof *t);
    memset(t, 0, sizeof *t);
    t->lock = dr_mutex_create();
    drmgr_set_tls_field(drcontext, all.field, t);
    dr_rwlock_write_lock(all.lock);
    t->first = !all.seen_first;
    all.seen_first = true;
    t->next = all.threads;
    all.threads = t;
    dr_rwlock_write_unlock(all.lock);
}

static void event_thread_exit(void *drcontext)
{
    thread *t = drmgr_get_tls_field(drcontext, all.field);
    dr_rwlock_write_lock(all.lock);
    for (thread **link = &all.threads; *link; link = &(*link)->next)
        if (*link == t) {
            *link = t->next;
            break;
        }
    dr_rwlock_write_unlock(all.lock);
    for (uint32_t i = 0; i < MAX_STACKS; i++)
        if (t->stacks[i].capacity) dr_global_free(t->stacks[i].frames, t->stacks[i].capacity * sizeof(activation));
    dr_mutex_destroy(t->lock);
    dr_global_free(t, sizeof *t);
}

/* The other threads are not in the child. */
static void event_fork(void *drcontext)
{
    thread *t = drmgr_get_tls_field(drcontext, all.field);
    all.threads = t;
    t->next = NULL;
}

static dr_signal_action_t event_signal(void *drcontext, dr_siginfo_t *info)
{
    thread *t = drmgr_get_tls_field(drcontext, all.field);
    if (t && info->mcontext) t->signal_sp = info->mcontext->xsp;
    return DR_SIGNAL_DELIVER;
}

static bool event_filter(void *drcontext, int number)
{
    return number == SYS_sigaltstack;
}

static bool event_syscall(void *drcontext, int number)
{
    struct {
        uint64_t start;
        int flags;
        uint64_t size;
    } given;
    size_t done;
    thread *t = drmgr_get_tls_field(drcontext, all.field);
    void *from = (void *)dr_syscall_get_param(drcontext, 0);
    if (number != SYS_sigaltstack || !from || !dr_safe_read(from, sizeof given, &given, &done)) return true;
    t->alt_low = given.start;
    t->alt_high = given.start + given.size;
    return true;
}

void stack_init(void)
{
    all.lock = dr_rwlock_create();
    all.field = drmgr_register_tls_field();
    drmgr_register_thread_init_event(event_thread_init);
    drmgr_register_thread_exit_event(event_thread_exit);
    drmgr_register_signal_event(event_signal);
    dr_register_fork_init_event(event_fork);
    drmgr_register_filter_syscall_event(event_filter);
    drmgr_register_pre_syscall_event(event_syscall);
}

void stack_exit(void)
{
    drmgr_unregister_tls_field(all.field);
    dr_rwlock_destroy(all.lock);
}
