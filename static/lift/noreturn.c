/* Which functions never return.
 *
 * For other modules: by name. For this one: the least set of functions that may return, that is, in which a path leads
 * from the entry to a return (or to something that is not understood) and every call on it may return. Functions that
 * only call each other thus do not return. The graphs may contain too much: code behind calls that turn out not to
 * return is simply never reached here.
 *
 * A function may return as far as its own code tells, but its callers say that they do not count on it: with
 * __builtin_unreachable() behind the call, as in the assertions of many programs. The compiler then ends the code of the
 * caller with the call, or puts anything behind it, to which a path would lead that is none. One such end says nothing, a
 * caller may know of a special case; where at least two calls, and a quarter of all, are the last instruction of their function,
 * the others are taken to be of the same kind. */
#include "static/lift/flow.h"

/* clang-format off */
static const struct { const char *name; bool defined; } names[] = { /* defined: holds for a module's own function too */
    {"_Exit", true}, {"_Unwind_Resume", true}, {"_ZN10__cxxabiv111__terminateEPFvvE", true},
    {"_ZSt10unexpectedv", true}, {"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", true},
    {"_ZSt21__glibcxx_assert_failPKciS0_S0_", true}, {"_ZSt9terminatev", true},
    {"____longjmp_chk", true}, {"__assert", true}, {"__assert_fail", true}, {"__assert_perror_fail", true},
    {"__chk_fail", true}, {"__cxa_bad_cast", true}, {"__cxa_bad_typeid", true}, {"__cxa_call_terminate", true},
    {"__cxa_call_unexpected", true}, {"__cxa_deleted_virtual", true}, {"__cxa_pure_virtual", true},
    {"__cxa_rethrow", true}, {"__cxa_throw", true}, {"__cxa_throw_bad_array_length", true},
    {"__cxa_throw_bad_array_new_length", true}, {"__fortify_fail", true}, {"__gnat_last_chance_handler", true},
    {"__gnat_raise_exception", true}, {"__libc_fatal", true}, {"__libc_longjmp", true}, {"__libc_siglongjmp", true},
    {"__longjmp", true}, {"__longjmp_chk", true}, {"__pthread_unwind", true}, {"__pthread_unwind_next", true},
    {"__stack_chk_fail", true}, {"__stack_chk_fail_local", true}, {"__ubsan_handle_builtin_unreachable", true},
    {"__ubsan_handle_missing_return", true}, {"_exit", true},
    {"_gfortran_error_stop_numeric", false}, {"_gfortran_error_stop_string", false}, {"_gfortran_os_error", false},
    {"_gfortran_os_error_at", false}, {"_gfortran_runtime_error", false}, {"_gfortran_runtime_error_at", false},
    {"_gfortran_stop_numeric", false}, {"_gfortran_stop_string", false}, {"_longjmp", true},
    {"abort", true}, {"err", false}, {"errx", false}, {"exit", true}, {"g_assertion_message_expr", false},
    {"longjmp", true}, {"objc_exception_throw", false}, {"pthread_exit", true}, {"quick_exit", true},
    {"siglongjmp", true}, {"thrd_exit", true}, {"verr", false}, {"verrx", false},
};
/* clang-format on */

/* std::__throw_...: _ZSt, the length, the name. */
static bool is_std_throw(const char *name)
{
    if (strncmp(name, "_ZSt", 4)) return false;
    name += 4;
    const char *digits = name;
    while (*name >= '0' && *name <= '9')
        name++;
    return name > digits && !strncmp(name, "__throw_", 8);
}

bool noreturn_name(const char *name, bool defined)
{
    uint32_t low = 0, high = sizeof names / sizeof *names;
    if (is_std_throw(name) || !strncmp(name, "__gnat_rcheck_", 14)) return true;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        int order = strcmp(name, names[mid].name);
        if (!order) return names[mid].defined || !defined;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return false;
}

bool noreturn_outside(const flow_space *space, const char *name)
{
    const lift_options *o = space->options;
    return noreturn_name(name, false) || (o->ends && o->ends(o->with, name));
}

/* --- the fixpoint ------------------------------------------------------------------------------------------------ */

enum { NOBODY = UINT32_MAX };

typedef struct {
    uint32_t func, block;
    uint32_t leave; /* the first leave of the block that has not been passed */
} place;

typedef struct {
    place where;
    uint32_t next; /* waiter + 1 of the same function */
    bool tail;     /* returns as soon as the other does */
} waiter;

typedef struct {
    const flow_func *funcs;
    uint32_t count;
    bool *returns;
    bool *abandoned; /* its callers do not count on its return */
    uint32_t *table; /* hash of entries: function + 1 */
    uint32_t table_size;
    uint32_t *first_waiter; /* per function, waiter + 1 */
    VEC(waiter) waiters;
    VEC(place) work;
    uint64_t *reached;  /* bit per block of all functions */
    uint64_t *first_bit; /* per function */
} solver;

static uint32_t hash(uint64_t entry)
{
    return (uint32_t)(entry * 0x9e3779b97f4a7c15u >> 32);
}

static void index_entries(solver *s)
{
    s->table_size = 16;
    while (s->table_size < s->count * 2)
        s->table_size *= 2;
    s->table = base_alloc_zero(s->table_size, sizeof *s->table);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t h = hash(s->funcs[i].func->entry) & (s->table_size - 1);
        while (s->table[h])
            h = (h + 1) & (s->table_size - 1);
        s->table[h] = i + 1;
    }
}

static uint32_t find(const solver *s, uint64_t entry)
{
    uint32_t h = hash(entry) & (s->table_size - 1);
    for (; s->table[h]; h = (h + 1) & (s->table_size - 1))
        if (s->funcs[s->table[h] - 1].func->entry == entry) return s->table[h] - 1;
    return NOBODY;
}

static void reach(solver *s, uint32_t func, uint32_t block)
{
    uint64_t bit = s->first_bit[func] + block;
    if (flow_bit(s->reached, bit)) return;
    flow_set(s->reached, bit);
    const flow_func *f = &s->funcs[func];
    uint32_t low = 0, high = f->leave_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->leaves[mid].block < block)
            low = mid + 1;
        else
            high = mid;
    }
    vec_push(&s->work, (place){func, block, low});
}

static void mark(solver *s, uint32_t func)
{
    if (s->returns[func] || s->abandoned[func]) return;
    s->returns[func] = true;
    for (uint32_t w = s->first_waiter[func]; w; w = s->waiters.data[w - 1].next)
        vec_push(&s->work, s->waiters.data[w - 1].tail
                               ? (place){s->waiters.data[w - 1].where.func, NOBODY, 0}
                               : s->waiters.data[w - 1].where);
    s->first_waiter[func] = 0;
}

/* Does the function called return? If that is not known to be so, the place waits for it. */
static bool passes(solver *s, uint64_t target, place where, bool tail)
{
    uint32_t callee = find(s, target);
    if (callee == NOBODY || s->returns[callee]) return true;
    vec_push(&s->waiters, (waiter){where, s->first_waiter[callee], tail});
    s->first_waiter[callee] = s->waiters.len;
    return false;
}

static void reach_successors(solver *s, const place *at, bool pads_only)
{
    const lift_func *f = s->funcs[at->func].func;
    const lift_block *b = &f->blocks[at->block];
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
        if (!pads_only || f->edges[e].kind == EDGE_PAD) reach(s, at->func, f->edges[e].to);
}

/* Goes on at a place until something that may not return. */
static void proceed(solver *s, place at)
{
    if (s->returns[at.func]) return;
    if (at.block == NOBODY) {
        mark(s, at.func);
        return;
    }
    const flow_func *f = &s->funcs[at.func];
    const lift_block *b = &f->func->blocks[at.block];
    for (; at.leave < f->leave_count && f->leaves[at.leave].block == at.block; at.leave++) {
        const flow_leave *l = &f->leaves[at.leave];
        place next = {at.func, at.block, at.leave + 1};
        bool last = next.leave == f->leave_count || f->leaves[next.leave].block != at.block;
        switch (l->kind) {
        case LEAVE_CALL:
            if (passes(s, l->target, next, false)) break;
            /* An exception may come out of it all the same. */
            if (last && (b->end_kind == END_CALL || b->end_kind == END_NORETURN)) reach_successors(s, &at, true);
            return;
        case LEAVE_TAIL:
        case LEAVE_BRANCH:
            if (!passes(s, l->target, next, true)) break;
            mark(s, at.func);
            return;
        case LEAVE_OUTSIDE: mark(s, at.func); return;
        default: break;
        }
    }
    switch (b->end_kind) {
    case END_RET:
    case END_UNKNOWN:
    case END_TAIL_IND:
    case END_BAD: mark(s, at.func); return;
    case END_NORETURN: reach_successors(s, &at, true); return;
    default: reach_successors(s, &at, false); return;
    }
}

static void find_abandoned(solver *s)
{
    enum { FEWEST = 2, SHARE = 4 };
    uint32_t *calls = base_alloc_zero(s->count, sizeof *calls), *last = base_alloc_zero(s->count, sizeof *last);
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t l = 0; l < s->funcs[i].leave_count; l++) {
            const flow_leave *leave = &s->funcs[i].leaves[l];
            uint32_t callee = leave->kind == LEAVE_CALL ? find(s, leave->target) : NOBODY;
            if (callee == NOBODY) continue;
            calls[callee]++;
            last[callee] += leave->last;
        }
    s->abandoned = base_alloc_zero(s->count, sizeof *s->abandoned);
    for (uint32_t i = 0; i < s->count; i++)
        s->abandoned[i] = last[i] >= FEWEST && last[i] >= (calls[i] + SHARE - 1) / SHARE;
    free(calls);
    free(last);
}

void noreturn_solve(const flow_space *space, const flow_func *funcs, uint32_t count, bool *returns)
{
    solver s = {.funcs = funcs, .count = count, .returns = returns};
    uint64_t blocks = 0;
    index_entries(&s);
    find_abandoned(&s);
    s.first_waiter = base_alloc_zero(count, sizeof *s.first_waiter);
    s.first_bit = base_alloc_zero(count, sizeof *s.first_bit);
    for (uint32_t i = 0; i < count; i++) {
        returns[i] = false;
        s.first_bit[i] = blocks;
        blocks += funcs[i].func->block_count;
    }
    s.reached = base_alloc_zero(blocks / 64 + 1, sizeof *s.reached);
    for (uint32_t i = 0; i < count; i++) {
        if (flow_has(space, space->named_dead, funcs[i].func->entry)) continue;
        reach(&s, i, 0);
        while (s.work.len)
            proceed(&s, s.work.data[--s.work.len]);
    }
    free(s.table);
    free(s.abandoned);
    free(s.first_waiter);
    free(s.first_bit);
    free(s.reached);
    vec_free(&s.waiters);
    vec_free(&s.work);
}
