/* Calls of the functions of the sync table, in whatever module exports them, of functions that libraries call back, and of
 * handlers of signals.
 *
 * A function that is chosen at load time (memcpy and its like: an IFUNC) is found by watching the resolver: what it
 * returns is the function. One that only accesses memory, and that nothing is to be done after, is not wrapped:
 * insert.c adds a call at its entry that costs a test as long as there is one thread. */
#include "runtime/dynamorio/client.h"

#include "drwrap.h"

#include <signal.h>
#include <string.h>

/* --- calls of the table ------------------------------------------------------------------------------------------- */

static bool is_checked(const report_module *caller)
{
    if (client.report->options.all) return !caller || !caller->is_modelled;
    return caller && caller->is_checked;
}

static void set_arguments(sync_call *call, const dr_mcontext_t *mc)
{
    const uint64_t args[SYNC_ARGS] = {mc->xdi, mc->xsi, mc->xdx, mc->xcx, mc->r8, mc->r9};
    memcpy(call->args, args, sizeof args);
    call->stack = mc->xsp + sizeof(uint64_t);
}

/* Has another one ended in a jump to this one (strdup to memcpy, mq_send to mq_timedsend)? It returns to the same call then,
 * which calls one function only unless it calls through a pointer. Requires a call that is checked: not what libraries
 * call meanwhile. */
static bool is_continuation(client_thread *t, const sync_row *row, uint64_t sp, uint64_t return_address)
{
    const bool same_call = t->entered.sp == sp && t->entered.return_address == return_address;
    if (same_call && t->entered.row != row && !report_is_pointer_call(client.report, return_address)) return true;
    t->entered.row = row;
    t->entered.sp = sp;
    t->entered.return_address = return_address;
    return false;
}

/* False: it does not concern the program. */
static bool fill_call(sync_call *call, client_thread *t, const sync_row *row, const dr_mcontext_t *mc,
                      uint64_t return_address)
{
    const report_module *caller = report_module_at(client.report, return_address - 1);
    if (!sync_concerns(&t->sync, row, caller)) return false;
    memset(call, 0, sizeof *call);
    call->row = row;
    /* libc's own functions end in jumps to those that access memory, so only of the others we know who it was */
    const bool by_jump = caller && caller->is_modelled && !t->sync.depth && !sync_is_only_ranges(row) &&
                         report_is_pointer_call(client.report, return_address);
    call->is_checked = is_checked(caller) || by_jump;
    if (!call->is_checked && sync_is_only_ranges(row)) return false;
    set_arguments(call, mc);
    if (sync_is_only_ranges(row) && sync_is_jump(&t->sync, call->stack)) return false;
    if (call->is_checked && is_continuation(t, row, mc->xsp, return_address)) {
        if (sync_is_only_ranges(row)) return false;
        call->is_checked = false; /* its ranges are checked already */
    }
    call->site = report_call_site(client.report, return_address);
    return true;
}

/* --- entered once, returned from once ----------------------------------------------------------------------------- */

/* When code is thrown away, drwrap's or ours, threads that are in the code cache go on from the instruction that they have come
 * to: a thread that has told us of a call, but not yet made the first step in the function, tells us again. The second time
 * is the same call as long as the first one has not returned: nothing else can be at its stack pointer with its return
 * address. But drwrap may also have lost the return of the first (see note_return): if the arguments are others, that is it. */
static bool is_again(const client_thread *t, const client_pending *p)
{
    const client_pending *top = t->pending;
    return top && top->function == p->function && top->sp == p->sp && top->return_address == p->return_address &&
           top->first == p->first;
}

static void push_pending(client_thread *t, client_pending *p)
{
    p->outer = t->pending;
    t->pending = p;
}

static void remove_pending(client_thread *t, const client_pending *p)
{
    for (client_pending **link = &t->pending; *link; link = &(*link)->outer)
        if (*link == p) {
            *link = p->outer;
            return;
        }
}

/* drwrap looks for returns at the addresses that it has in a table. It notes that an address is there a moment before it is, and
 * who calls from the same place at that moment returns unseen. */
static void note_return(client_thread *t, uint64_t return_address)
{
    uint64_t *noted = &t->returns[(return_address ^ return_address >> 6) % CLIENT_RETURNS];
    if (*noted == return_address) return;
    *noted = return_address;
    drwrap_mark_as_post_call((app_pc)return_address);
}

/* --- both halves -------------------------------------------------------------------------------------------------- */

typedef struct {
    client_pending pending;
    sync_call call;
} table_call;

static void before_call(void *wrapcxt, void **user_data)
{
    void *drcontext = drwrap_get_drcontext(wrapcxt);
    client_thread *t = client_called(drcontext);
    const sync_row *row = *user_data;
    *user_data = NULL;
    if (!t->ft) return;
    dr_mcontext_t *mc = drwrap_get_mcontext_ex(wrapcxt, DR_MC_INTEGER | DR_MC_CONTROL);
    uint64_t return_address = (uint64_t)drwrap_get_retaddr(wrapcxt);
    const client_pending pending = {
        .function = (uint64_t)row, .sp = mc->xsp, .return_address = return_address, .first = mc->xdi};
    if (is_again(t, &pending)) return;
    table_call *kept = dr_thread_alloc(drcontext, sizeof *kept);
    sync_call *call = &kept->call;
    if (!fill_call(call, t, row, mc, return_address)) {
        dr_thread_free(drcontext, kept, sizeof *kept);
        return;
    }
    t->caller = (stack_place){.pc = return_address - 1, .sp = mc->xsp + sizeof(uint64_t)};
    if (row->meaning == SYNC_CREATE) t->create_site = stack_of_access(NULL, t->ft, call->site);
    sync_before(&client.sync, &t->sync, call);
    t->caller.pc = 0;
    if (sync_has_second_half(row)) {
        note_return(t, return_address);
        kept->pending = pending;
        push_pending(t, &kept->pending);
        *user_data = kept;
    } else {
        dr_thread_free(drcontext, kept, sizeof *kept);
    }
}

/* wrapcxt is NULL when the call was left by longjmp, or by the end of the thread: then there is no result. */
static void after_call(void *wrapcxt, void *user_data)
{
    void *drcontext = wrapcxt ? drwrap_get_drcontext(wrapcxt) : dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    table_call *kept = user_data;
    if (!kept) return;
    sync_call *call = &kept->call;
    remove_pending(t, &kept->pending);
    if (wrapcxt) {
        t->caller = (stack_place){.pc = (uint64_t)drwrap_get_retaddr(wrapcxt) - 1, .sp = call->stack};
        sync_after(&client.sync, &t->sync, call, (uint64_t)drwrap_get_retval(wrapcxt));
        t->caller.pc = 0;
    } else {
        sync_left(&client.sync, &t->sync, call);
    }
    dr_thread_free(drcontext, kept, sizeof *kept);
}

/* --- functions that only access memory ---------------------------------------------------------------------------- */

void wrap_entered(const sync_row *row, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
    uint64_t return_address;
    if (!t->ft || !dr_get_mcontext(drcontext, &mc)) return;
    size_t done;
    if (!dr_safe_read((void *)mc.xsp, sizeof return_address, &return_address, &done)) return;
    sync_call call;
    if (!fill_call(&call, t, row, &mc, return_address)) return;
    t->caller = (stack_place){.pc = return_address - 1, .sp = mc.xsp + sizeof(uint64_t)};
    sync_before(&client.sync, &t->sync, &call);
    t->caller.pc = 0;
    leave_if_signalled(drcontext, t, pc);
}

static uint32_t entry_place(app_pc pc)
{
    return (uint32_t)(((uint64_t)pc * 0x9e3779b97f4a7c15u) >> 32) % CLIENT_ENTRIES;
}

static void add_entry(app_pc pc, const sync_row *row)
{
    dr_mutex_lock(client.wrap_lock);
    uint32_t at = entry_place(pc);
    for (uint32_t i = 0; i < CLIENT_ENTRIES && client.entries[at].pc && client.entries[at].pc != pc; i++)
        at = (at + 1) % CLIENT_ENTRIES;
    if (!client.entries[at].pc || client.entries[at].pc == pc) {
        client.entries[at].row = row;
        __atomic_store_n(&client.entries[at].pc, pc, __ATOMIC_RELEASE);
    }
    dr_mutex_unlock(client.wrap_lock);
}

const sync_row *wrap_entry(app_pc pc)
{
    uint32_t at = entry_place(pc);
    for (uint32_t i = 0; i < CLIENT_ENTRIES; i++, at = (at + 1) % CLIENT_ENTRIES) {
        app_pc there = __atomic_load_n(&client.entries[at].pc, __ATOMIC_ACQUIRE);
        if (there == pc) return client.entries[at].row;
        if (!there) return NULL;
    }
    return NULL;
}

/* --- functions that libraries call back --------------------------------------------------------------------------- */

typedef struct {
    client_pending pending;
    sync_watch kind;
} watched_call;

static void before_watched(void *wrapcxt, void **user_data)
{
    void *drcontext = drwrap_get_drcontext(wrapcxt);
    client_thread *t = client_called(drcontext);
    const dr_mcontext_t *mc = drwrap_get_mcontext_ex(wrapcxt, DR_MC_INTEGER | DR_MC_CONTROL);
    const watched_call w = {.pending = {.function = (uint64_t)drwrap_get_func(wrapcxt),
                                        .sp = mc->xsp,
                                        .return_address = (uint64_t)drwrap_get_retaddr(wrapcxt),
                                        .first = mc->xdi},
                            .kind = (sync_watch)(ptr_uint_t)*user_data};
    *user_data = NULL;
    if (!t->ft || is_again(t, &w.pending)) return;
    watched_call *kept = dr_thread_alloc(drcontext, sizeof *kept);
    *kept = w;
    *user_data = kept;
    note_return(t, w.pending.return_address);
    push_pending(t, &kept->pending);
    sync_entered(&client.sync, &t->sync, w.pending.function, w.kind, w.pending.first);
}

static void after_watched(void *wrapcxt, void *user_data)
{
    void *drcontext = wrapcxt ? drwrap_get_drcontext(wrapcxt) : dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    watched_call *w = user_data;
    if (!w) return;
    remove_pending(t, &w->pending);
    if (t->ft) sync_returned(&client.sync, &t->sync, w->pending.function, w->kind, w->pending.first);
    dr_thread_free(drcontext, w, sizeof *w);
}

/* drwrap throws the old code of a function that it is to wrap away while it holds its lock, and so waits for threads
 * that wait for the lock, to build blocks: who formatted numbers in several threads hung (std::locale calls a function
 * once that has run before there were threads). So a function is noted first, its old code goes while no lock is held,
 * and drwrap hears of it when its first block is built, where there is no old code. */
enum { WATCH_HANDLER = SYNC_WATCH_COMBINE + 1 };
enum { WATCH_CLEAN = 1, WATCH_WRAPPED };

static void before_handler(void *wrapcxt, void **user_data);

static uint32_t watched_place(app_pc pc)
{
    return (uint32_t)(((uint64_t)pc * 0x9e3779b97f4a7c15u) >> 32) % CLIENT_WATCHED;
}

/* NULL: there is none, or with `add` no room. */
static client_watched *watched_at(app_pc pc, bool add)
{
    uint32_t at = watched_place(pc);
    for (uint32_t i = 0; i < CLIENT_WATCHED; i++, at = (at + 1) % CLIENT_WATCHED) {
        client_watched *w = &client.watched[at];
        app_pc there = __atomic_load_n(&w->pc, __ATOMIC_ACQUIRE);
        if (there == pc) return w;
        if (there) continue;
        if (!add) return NULL;
        if (__atomic_compare_exchange_n(&w->pc, &there, pc, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || there == pc)
            return w;
    }
    return NULL;
}

static void wrap_as(app_pc pc, uint32_t kind)
{
    if (kind == WATCH_HANDLER)
        drwrap_wrap(pc, before_handler, NULL);
    else
        drwrap_wrap_ex(pc, before_watched, after_watched, (void *)(ptr_uint_t)kind, DRWRAP_CALLCONV_DEFAULT);
}

static void throw_away(app_pc pc)
{
    if (dr_fragment_exists_at(dr_get_current_drcontext(), pc)) dr_unlink_flush_region(pc, 1);
}

/* From the code cache or a system call, without any lock. */
static void note_watched(app_pc pc, uint32_t kind)
{
    client_watched *w = watched_at(pc, true);
    uint32_t none = 0;
    if (!w) return;
    if (__atomic_compare_exchange_n(&w->kind, &none, kind, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        throw_away(pc);
        __atomic_store_n(&w->state, WATCH_CLEAN, __ATOMIC_RELEASE);
        throw_away(pc); /* who built a block meanwhile did not know */
    }
}

/* A block that begins there is about to be built. */
static void wrap_watched(app_pc pc)
{
    client_watched *w = watched_at(pc, false);
    uint32_t clean = WATCH_CLEAN;
    if (w && __atomic_compare_exchange_n(&w->state, &clean, WATCH_WRAPPED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        wrap_as(pc, w->kind);
}

/* A function that will have others watched is called: from the code cache, before drwrap has its lock for the call. */
void wrap_prepare(const sync_row *row)
{
    void *drcontext = dr_get_current_drcontext();
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
    if (!client_called(drcontext)->ft || !dr_get_mcontext(drcontext, &mc)) return;
    sync_call call = {.row = row};
    set_arguments(&call, &mc);
    sync_watch kind;
    const uint8_t argument = sync_watched(&client.sync, &call, &kind);
    if (argument < SYNC_ARGS && call.args[argument]) note_watched((app_pc)call.args[argument], kind);
}

void wrap_watch(void *context, uint64_t function, sync_watch kind)
{
    app_pc pc = (app_pc)function;
    if (!pc) return;
    const client_watched *w = watched_at(pc, false);
    if (w && __atomic_load_n(&w->kind, __ATOMIC_ACQUIRE) == kind) return;
    if (!drwrap_is_wrapped(pc, before_watched, after_watched)) wrap_as(pc, kind);
}

/* --- handlers of signals ------------------------------------------------------------------------------------------ */

static void before_handler(void *wrapcxt, void **user_data)
{
    (void)user_data;
    client_thread *t = client_called(drwrap_get_drcontext(wrapcxt));
    if (t->ft) sync_signalled(&client.sync, &t->sync, (int)(ptr_int_t)drwrap_get_arg(wrapcxt, 0));
}

void wrap_handler(app_pc pc)
{
    const bool is_code = pc != (app_pc)SIG_DFL && pc != (app_pc)SIG_IGN && pc != (app_pc)SIG_ERR;
    if (!is_code) return;
    note_watched(pc, WATCH_HANDLER);
    const client_watched *w = watched_at(pc, false);
    if ((!w || w->kind != WATCH_HANDLER) && !drwrap_is_wrapped(pc, before_handler, NULL)) wrap_as(pc, WATCH_HANDLER);
}

/* --- where calls return to ---------------------------------------------------------------------------------------- */

/* What looks like a call may be the end of something else, and a stub may not know its function yet. To read where they lead to
 * would be a fault, which looks like a signal (leave.c) and has a check made twice. */
static bool read_there(app_pc from, void *to, size_t size)
{
    size_t done;
    return (report_module_at(client.report, (uint64_t)from) || dr_memory_is_readable(from, size)) &&
           dr_safe_read(from, size, to, &done);
}

/* What a stub of a procedure linkage table jumps to, or where it would ask the loader to look (`is_unknown`). */
static app_pc through_stub(app_pc pc, bool *is_unknown)
{
    static const byte landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    byte code[16];
    if (!read_there(pc, code, sizeof code)) return NULL;
    uint at = memcmp(code, landing, sizeof landing) ? 0 : sizeof landing;
    at += code[at] == 0xf2; /* bnd */
    int offset;
    app_pc target;
    if (code[at] != 0xff || code[at + 1] != 0x25) return pc; /* jmp *offset(%rip) */
    memcpy(&offset, code + at + 2, sizeof offset);
    if (!read_there(pc + at + 6 + offset, &target, sizeof target)) return NULL;
    if (read_there(target, code, sizeof code))
        *is_unknown = code[memcmp(code, landing, sizeof landing) ? 0 : sizeof landing] == 0x68; /* push $number */
    return target;
}

/* The function that a call right before this address calls, if the call says so. */
static app_pc called_before(app_pc pc, bool *is_unknown)
{
    byte code[6];
    size_t done;
    int offset;
    app_pc target;
    if (!dr_safe_read(pc - sizeof code, sizeof code, code, &done)) return NULL;
    memcpy(&offset, code + 2, sizeof offset);
    if (code[1] == 0xe8) return through_stub(pc + offset, is_unknown); /* call offset(%rip) */
    if (code[0] != 0xff || code[1] != 0x15) return NULL;               /* call *offset(%rip) */
    return read_there(pc + offset, &target, sizeof target) ? target : NULL;
}

/* Does a call through a register or other memory end there? Not surely: what stands in front may be something else. */
static bool is_behind_pointer_call(app_pc pc)
{
    enum { LONGEST = 7 };
    byte code[LONGEST];
    size_t done;
    if (!dr_safe_read(pc - LONGEST, LONGEST, code, &done)) return false;
    for (uint at = 0; at + 2 <= LONGEST; at++) {
        const byte mode = code[at + 1] >> 6, place = code[at + 1] & 7;
        if (code[at] != 0xff || (code[at + 1] >> 3 & 7) != 2) continue;
        uint length = 2;
        if (mode != 3 && place == 4) length++; /* base and index */
        if (mode == 1) length++;
        if (mode == 2 || (mode == 0 && (place == 5 || (place == 4 && (code[at + 2] & 7) == 5)))) length += 4;
        if (at + length == LONGEST) return true;
    }
    return false;
}

/* A block that is about to be built. drwrap builds blocks anew when a wrapped function is first called from in front of them, and
 * whoever calls it from the same place meanwhile returns into the old block, unseen: a lock that was taken is not held. And
 * to throw code away it stops all threads wherever they are, which DynamoRIO does not always survive. So where a call names
 * its function, or may call any, drwrap is told of the return before there is a block, and has nothing to build anew. */
void wrap_block(app_pc start, const report_module *m)
{
    bool is_unknown = false;
    app_pc function = called_before(start, &is_unknown);
    const bool is_wrapped = function && (is_unknown || drwrap_is_wrapped(function, before_call, after_call));
    const bool is_any = !function && loose_wants(m) && is_behind_pointer_call(start);
    if (is_wrapped || is_any) drwrap_mark_as_post_call(start);
    wrap_watched(start);
}

/* --- finding them ------------------------------------------------------------------------------------------------- */

static void wrap_function(app_pc pc, const sync_row *row)
{
    if (sync_is_only_ranges(row) && !sync_has_second_half(row))
        add_entry(pc, row);
    else if (!drwrap_is_wrapped(pc, before_call, after_call)) {
        if (sync_watches(row)) add_entry(pc, row);
        drwrap_wrap_ex(pc, before_call, after_call, (void *)row, DRWRAP_CALLCONV_DEFAULT);
    }
}

static void before_resolver(void *wrapcxt, void **user_data)
{
    (void)wrapcxt;
    (void)user_data; /* the row stays in it */
}

static void after_resolver(void *wrapcxt, void *user_data)
{
    app_pc pc = wrapcxt ? drwrap_get_retval(wrapcxt) : NULL;
    if (pc) wrap_function(pc, user_data);
}

/* All versions of a symbol; those that are one function are wrapped once. */
static void wrap_exports(const module_data_t *module, bool forgets)
{
    dr_symbol_export_iterator_t *it = dr_symbol_export_iterator_start(module->handle);
    if (!it) return;
    while (dr_symbol_export_iterator_hasnext(it)) {
        dr_symbol_export_t *symbol = dr_symbol_export_iterator_next(it);
        const sync_row *row = symbol->is_code || symbol->is_indirect_code ? sync_find(symbol->name) : NULL;
        if (!row || (row->meaning == SYNC_FORGET) != forgets) continue;
        if (!symbol->is_indirect_code)
            wrap_function(symbol->addr, row);
        else if (!drwrap_is_wrapped(symbol->addr, before_resolver, after_resolver))
            drwrap_wrap_ex(symbol->addr, before_resolver, after_resolver, (void *)row, DRWRAP_CALLCONV_DEFAULT);
    }
    dr_symbol_export_iterator_stop(it);
}

void wrap_module(const module_data_t *module, const report_module *m)
{
    (void)m;
    /* Two names of one function: pthread_spin_init is pthread_spin_unlock in glibc, whose meaning must not be lost to the
     * other's, whichever is exported first. */
    wrap_exports(module, false);
    wrap_exports(module, true);
}
