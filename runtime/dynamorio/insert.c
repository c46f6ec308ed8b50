/* What is added to basic blocks: at each planned site its actions.
 *
 * A check of 4, 8 or 16 bytes, aligned, is settled by inlined code when it is the thread's first or a later one in
 * this epoch of a kind that the cell knows (runtime/core/core.h, "same-epoch path"):
 *
 *     lea   address -> a
 *     core  -> b;  cmp [b + concurrent], 0;  je done          one thread: nothing to check
 *     region of a -> b;  test b, b;  jz slow
 *     test  a, size - 1;  jnz slow                            not aligned
 *     cell of a -> b;  epoch -> c
 *     for each cell: a read: cmp [b + read], c;  je next;  both: cmp [b + write], c;  jne slow;  next:
 *     jmp done
 *   slow:  clean call (address, site, size)
 *   done:
 *
 * All else calls C: other sizes, expressions that one `lea` cannot compute, strided ranges, atomics. A repeated string
 * instruction is noted before it runs and checked after it, when it is known how far it came. */
#include "runtime/dynamorio/client.h"

#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"

#include <string.h>

/* --- called from the code cache ----------------------------------------------------------------------------------- */

static void check(client_thread *t, bool is_write, uint64_t addr, uint64_t size, ft_site site)
{
    if (!t->ft) return;
    if (t->sync.waiting) sync_settle(&t->sync);
    (is_write ? ft_write : ft_read)(t->ft, addr, size, site);
}

static void on_access(bool is_write, ft_site site, uint size, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    leave_if_signalled(drcontext, t, pc);
    check(t, is_write, t->raw[RAW_ADDRESS], size, site);
    leave_if_signalled(drcontext, t, pc);
}

static void on_read(ft_site site, uint size, app_pc pc)
{
    on_access(false, site, size, pc);
}

static void on_write(ft_site site, uint size, app_pc pc)
{
    on_access(true, site, size, pc);
}

static dr_mcontext_t program_registers(void *drcontext)
{
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
    dr_get_mcontext(drcontext, &mc);
    return mc;
}

/* A check in general: any expression, count and stride. */
static void on_check(const report_module *module, const plan_action *a, ft_site site, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    if (!client.core->concurrent || !t->ft) return;
    leave_if_signalled(drcontext, t, pc);
    if (t->sync.waiting) sync_settle(&t->sync);
    dr_mcontext_t mc = program_registers(drcontext);
    uint64_t addr = expr_address(a, module, &mc);
    uint64_t elements = a->counter == PLAN_NOTHING ? a->count : expr_value(a->counter, &mc);
    ft_strided range = {.addr = addr, .size = a->size, .count = elements, .stride = a->stride};
    (a->flags & PLAN_WRITE ? ft_write_strided : ft_read_strided)(t->ft, range, site);
    leave_if_signalled(drcontext, t, pc);
}

static void on_rep_before(const report_module *module, const plan_action *a, uint number, app_pc pc)
{
    const uint64_t direction_flag = 1 << 10;
    void *drcontext = dr_get_current_drcontext();
    client_rep *rep = &client_called(drcontext)->rep[number];
    dr_mcontext_t mc = program_registers(drcontext);
    rep->addr = expr_address(a, module, &mc);
    rep->count = expr_value(a->counter, &mc);
    rep->down = mc.xflags & direction_flag;
    leave_if_signalled(drcontext, client_thread_of(drcontext), pc);
}

static void on_rep_after(const plan_action *a, ft_site site, uint number, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    const client_rep *rep = &t->rep[number];
    dr_mcontext_t mc = program_registers(drcontext);
    uint64_t done = rep->count - expr_value(a->counter, &mc);
    if (!done || !client.core->concurrent) return;
    uint64_t first = rep->down ? rep->addr - (done - 1) * a->size : rep->addr;
    check(t, a->flags & PLAN_WRITE, first, done * a->size, site);
}

static void on_atomic_before(const report_module *module, const plan_action *a, ft_site site, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    dr_mcontext_t mc = program_registers(drcontext);
    t->atomic = expr_address(a, module, &mc);
    if (t->ft && a->flags & PLAN_RELEASE) ft_atomic_before(t->ft, t->atomic);
    leave_if_signalled(drcontext, t, pc);
}

static void on_atomic_after(const report_module *module, const plan_action *a, ft_site site, app_pc pc)
{
    client_thread *t = client_called(dr_get_current_drcontext());
    if (t->ft) ft_atomic_after(t->ft, t->atomic);
}

/* --- inserted code ------------------------------------------------------------------------------------------------ */

typedef struct { /* where code is inserted, and for what */
    void *drcontext;
    instrlist_t *block;
    instr_t *where; /* the instruction of the program */
    const report_module *module;
    const plan_action *action;
    ft_site site;
} place;

static void put(const place *p, instr_t *instr)
{
    instrlist_meta_preinsert(p->block, p->where, instr);
}

static void put_jump(const place *p, int opcode, instr_t *label)
{
    put(p, INSTR_CREATE_jcc(p->drcontext, opcode, opnd_create_instr(label)));
}

/* A call of a function that reads the program's registers, before or after the instruction. Its last argument is the
 * instruction's address. */
static void put_call(const place *p, instr_t *before, void *function, opnd_t one, opnd_t two, opnd_t three)
{
    dr_insert_clean_call_ex(p->drcontext, p->block, before, function, DR_CLEANCALL_READS_APP_CONTEXT, 4, one, two,
                            three, OPND_CREATE_INTPTR(instr_get_app_pc(p->where)));
}

static uint raw_offset(uint slot)
{
    return client.raw_offset + slot * (uint)sizeof(uint64_t);
}

static void put_thread(const place *p, reg_id_t to)
{
    dr_insert_read_raw_tls(p->drcontext, p->block, p->where, client.raw_segment, raw_offset(RAW_THREAD), to);
}

static opnd_t field(reg_id_t base, int offset, opnd_size_t size)
{
    return opnd_create_base_disp(base, DR_REG_NULL, 0, offset, size);
}

/* The same-epoch path; falls through or jumps to `slow`, or jumps to `done`. a has the address; b and c are free. */
static void put_fast_path(const place *p, reg_id_t a, reg_id_t b, reg_id_t c, instr_t *slow, instr_t *done)
{
    void *dc = p->drcontext;
    const uint size = p->action->size;
    const bool is_write = p->action->flags & PLAN_WRITE;
    const reg_id_t c32 = reg_64_to_32(c);
    enum { TOP_BITS = 17, USER_BITS = 47 }; /* bits of an address that the directory ignores and uses */

    put_thread(p, b);
    put(p, INSTR_CREATE_mov_ld(dc, opnd_create_reg(b), field(b, offsetof(ft_thread, core), OPSZ_8)));
    put(p, INSTR_CREATE_cmp(dc, field(b, offsetof(ft_core, concurrent), OPSZ_4), OPND_CREATE_INT8(0)));
    put_jump(p, OP_je, done);
    if (size != 4 && size != 8 && size != 16) return;

    put(p, INSTR_CREATE_mov_ld(dc, opnd_create_reg(c), opnd_create_reg(a)));
    put(p, INSTR_CREATE_shl(dc, opnd_create_reg(c), OPND_CREATE_INT8(TOP_BITS)));
    put(p, INSTR_CREATE_shr(dc, opnd_create_reg(c), OPND_CREATE_INT8(TOP_BITS + FT_REGION_BITS)));
    put(p, INSTR_CREATE_mov_ld(dc, opnd_create_reg(b),
                               opnd_create_base_disp(b, c, 8, offsetof(ft_core, regions), OPSZ_8)));
    put(p, INSTR_CREATE_test(dc, opnd_create_reg(b), opnd_create_reg(b)));
    put_jump(p, OP_je, slow);
    put(p, INSTR_CREATE_mov_ld(dc, opnd_create_reg(c32), opnd_create_reg(reg_64_to_32(a))));
    put(p, INSTR_CREATE_and(dc, opnd_create_reg(c32), OPND_CREATE_INT32((1 << FT_REGION_BITS) - 1)));
    put(p, INSTR_CREATE_test(dc, opnd_create_reg(c32), OPND_CREATE_INT32(size - 1)));
    put_jump(p, OP_jne, slow);
    put(p, INSTR_CREATE_lea(dc, opnd_create_reg(b),
                            opnd_create_base_disp(b, c, sizeof(ft_epochs) / FT_GRANULE, 0, OPSZ_lea)));
    put_thread(p, c);
    put(p, INSTR_CREATE_mov_ld(dc, opnd_create_reg(c32), field(c, offsetof(ft_thread, epoch), OPSZ_4)));
    for (uint cell = 0; cell < size / FT_GRANULE; cell++) {
        const int at = (int)(cell * sizeof(ft_epochs));
        instr_t *next = INSTR_CREATE_label(dc);
        if (!is_write) {
            put(p, INSTR_CREATE_cmp(dc, field(b, at + (int)offsetof(ft_epochs, read), OPSZ_4), opnd_create_reg(c32)));
            put_jump(p, OP_je, next);
        }
        put(p, INSTR_CREATE_cmp(dc, field(b, at + (int)offsetof(ft_epochs, write), OPSZ_4), opnd_create_reg(c32)));
        put_jump(p, OP_jne, slow);
        put(p, next);
    }
    put(p, INSTR_CREATE_jmp(dc, opnd_create_instr(done)));
}
_Static_assert(sizeof(ft_epochs) == 8 && FT_GRANULE == 4, "a cell's offset is twice the address's");
_Static_assert(FT_REGION_COUNT == 1 << (47 - FT_REGION_BITS), "the directory covers 47 bits");

/* The address is passed in a slot: all registers are the program's in the call. */
void insert_call(void *dc, instrlist_t *block, instr_t *where, reg_id_t address, insert_callee callee, ft_site site,
                 uint size)
{
    dr_insert_write_raw_tls(dc, block, where, client.raw_segment, raw_offset(RAW_ADDRESS), address);
    dr_insert_clean_call_ex(dc, block, where, (void *)callee, DR_CLEANCALL_READS_APP_CONTEXT | DR_CLEANCALL_MULTIPATH,
                            3, OPND_CREATE_INT32(site), OPND_CREATE_INT32(size),
                            OPND_CREATE_INTPTR(instr_get_app_pc(where)));
}

/* A check of one element at an address that `memory` names. False: no registers; nothing was inserted. */
static bool put_check(const place *p, opnd_t memory)
{
    void *dc = p->drcontext;
    reg_id_t a, b, c;
    if (drreg_reserve_aflags(dc, p->block, p->where) != DRREG_SUCCESS) return false;
    if (drreg_reserve_register(dc, p->block, p->where, &client.scratch, &a) != DRREG_SUCCESS) goto no_a;
    if (drreg_reserve_register(dc, p->block, p->where, &client.scratch, &b) != DRREG_SUCCESS) goto no_b;
    if (drreg_reserve_register(dc, p->block, p->where, &client.scratch, &c) != DRREG_SUCCESS) goto no_c;

    bool good = true;
    if (opnd_is_near_abs_addr(memory)) {
        instrlist_insert_mov_immed_ptrsz(dc, (ptr_int_t)opnd_get_addr(memory), opnd_create_reg(a), p->block, p->where,
                                         NULL, NULL);
    } else {
        good = drreg_restore_app_values(dc, p->block, p->where, memory, NULL) != DRREG_ERROR_INVALID_PARAMETER &&
               drutil_insert_get_mem_addr(dc, p->block, p->where, memory, a, b);
    }
    if (good) {
        instr_t *slow = INSTR_CREATE_label(dc), *done = INSTR_CREATE_label(dc);
        put_fast_path(p, a, b, c, slow, done);
        put(p, slow);
        insert_call(dc, p->block, p->where, a, p->action->flags & PLAN_WRITE ? on_write : on_read, p->site,
                    p->action->size);
        put(p, done);
    }
    drreg_unreserve_register(dc, p->block, p->where, c);
    drreg_unreserve_register(dc, p->block, p->where, b);
    drreg_unreserve_register(dc, p->block, p->where, a);
    drreg_unreserve_aflags(dc, p->block, p->where);
    return good;
no_c:
    drreg_unreserve_register(dc, p->block, p->where, b);
no_b:
    drreg_unreserve_register(dc, p->block, p->where, a);
no_a:
    drreg_unreserve_aflags(dc, p->block, p->where);
    return false;
}

static void put_action(const place *p, instr_t *after, uint number)
{
    const plan_action *a = p->action;
    opnd_t module = OPND_CREATE_INTPTR(p->module), action = OPND_CREATE_INTPTR(a);
    opnd_t site = OPND_CREATE_INT32(p->site), which = OPND_CREATE_INT32(number);
    if (a->kind == PLAN_SYNC) {
        put_call(p, p->where, on_atomic_before, module, action, site);
        if (a->flags & PLAN_ACQUIRE) put_call(p, after, on_atomic_after, module, action, site);
        return;
    }
    if (a->flags & PLAN_DOWN) {
        put_call(p, p->where, on_rep_before, module, action, which);
        put_call(p, after, on_rep_after, action, site, which);
        return;
    }
    bool usable;
    opnd_t memory = expr_operand(a, p->module, &usable);
    if (usable && a->count == 1 && put_check(p, memory)) return;
    put_call(p, p->where, on_check, module, action, site);
}

/* A call of a function at the entry of a library function, as long as there are several threads. */
static void put_entry(void *dc, instrlist_t *block, instr_t *where, const sync_row *row)
{
    reg_id_t a;
    if (drreg_reserve_aflags(dc, block, where) != DRREG_SUCCESS) return;
    if (drreg_reserve_register(dc, block, where, &client.scratch, &a) == DRREG_SUCCESS) {
        place p = {.drcontext = dc, .block = block, .where = where};
        instr_t *done = INSTR_CREATE_label(dc);
        instrlist_insert_mov_immed_ptrsz(dc, (ptr_int_t)&client.core->concurrent, opnd_create_reg(a), block, where, NULL,
                                         NULL);
        put(&p, INSTR_CREATE_cmp(dc, field(a, 0, OPSZ_4), OPND_CREATE_INT8(0)));
        put_jump(&p, OP_je, done);
        dr_insert_clean_call_ex(dc, block, where, (void *)wrap_entered,
                                DR_CLEANCALL_READS_APP_CONTEXT | DR_CLEANCALL_MULTIPATH, 2, OPND_CREATE_INTPTR(row),
                                OPND_CREATE_INTPTR(instr_get_app_pc(where)));
        put(&p, done);
        drreg_unreserve_register(dc, block, where, a);
    }
    drreg_unreserve_aflags(dc, block, where);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* A block that grows beyond 64 KB ends the program, and each check adds some 300 bytes: the rest becomes a block of its own. */
static void shorten(void *drcontext, instrlist_t *block)
{
    enum { MOST_ACCESSING = 64 }; /* instructions, with two checks each at most */
    unsigned accessing = 0;
    for (instr_t *instr = instrlist_first_app(block), *next; instr; instr = next) {
        next = instr_get_next_app(instr);
        if (instr_reads_memory(instr) || instr_writes_memory(instr)) accessing++;
        if (accessing <= MOST_ACCESSING) continue;
        instrlist_remove(block, instr);
        instr_destroy(drcontext, instr);
    }
}

static dr_emit_flags_t event_shape(void *drcontext, void *tag, instrlist_t *block, bool for_trace, bool translating)
{
    const report_module *m = report_module_at(client.report, (uint64_t)dr_fragment_app_pc(tag));
    const bool has_plan = m && m->is_checked, is_loose = client.report->options.all && !has_plan && loose_wants(m);
    if (has_plan || is_loose) shorten(drcontext, block);
    if (is_loose) drutil_expand_rep_string(drcontext, block); /* each repetition becomes one of its own */
    return CLIENT_EMIT;
}

static dr_emit_flags_t event_analysis(void *drcontext, void *tag, instrlist_t *block, bool for_trace, bool translating,
                                      void **module)
{
    report_module *m = report_module_at(client.report, (uint64_t)dr_fragment_app_pc(tag));
    if (!translating) {
        mask_settle(drcontext, client_thread_of(drcontext));
        wrap_block(dr_fragment_app_pc(tag), m);
    }
    *module = m && m->is_checked ? m : loose_wants(m) ? &client.loose : NULL;
    return CLIENT_EMIT;
}

static void insert_site(void *drcontext, instrlist_t *block, instr_t *instr, bool translating, const report_module *m)
{
    const plan_site *s = plan_site_at(m->plan, (uint64_t)instr_get_app_pc(instr) - m->bias);
    if (!s || !s->action_count) return;
    bool same = instr_length(drcontext, instr) == s->length;
    if (!translating)
        __atomic_fetch_add(same ? &client.report->counters.sites_injected : &client.report->counters.sites_refused, 1,
                           __ATOMIC_RELAXED);
    if (!same) return; /* the code is not what the plan was made for */
    if (m->ran) m->ran[s - m->plan->sites] = 1; /* blocks are built when they are about to run */
    instr_t *after = instr_get_next(instr);
    for (uint i = 0; i < s->action_count; i++) {
        const plan_action *a = &m->plan->actions[s->first_action + i];
        if (a->claim && !client.report->options.audit) continue;
        put_action(&(place){drcontext, block, instr, m, a, m->first_site + (ft_site)(s - m->plan->sites)}, after, i);
    }
}

static dr_emit_flags_t event_insert(void *drcontext, void *tag, instrlist_t *block, instr_t *instr, bool for_trace,
                                    bool translating, void *module)
{
    if (!instr_is_app(instr)) return CLIENT_EMIT;
    if (drmgr_is_first_instr(drcontext, instr)) {
        const sync_row *row = wrap_entry(instr_get_app_pc(instr));
        if (row && sync_is_only_ranges(row)) put_entry(drcontext, block, instr, row);
    }
    if (module == &client.loose)
        loose_insert(drcontext, block, instr);
    else if (module)
        insert_site(drcontext, block, instr, translating, module);
    return CLIENT_EMIT;
}

/* Before drwrap, which has a lock while it tells of a call. */
static dr_emit_flags_t event_prepare(void *drcontext, void *tag, instrlist_t *block, instr_t *instr, bool for_trace,
                                     bool translating, void *unused)
{
    if (!instr_is_app(instr) || !drmgr_is_first_instr(drcontext, instr)) return CLIENT_EMIT;
    const sync_row *row = wrap_entry(instr_get_app_pc(instr));
    if (row && !sync_is_only_ranges(row))
        dr_insert_clean_call_ex(drcontext, block, instr, (void *)wrap_prepare, DR_CLEANCALL_READS_APP_CONTEXT, 1,
                                OPND_CREATE_INTPTR(row));
    return CLIENT_EMIT;
}

/* When a trace is made, DynamoRIO takes the block that it begins with out of the cache, and frees it when every thread has left the
 * cache meanwhile. A signal that arrives in a block counts as leaving (unlink_fragment_for_signal), so the thread may come back to what
 * has been freed: one of a thousand runs of tests/probe/stress.cpp ended like that. Blocks stay as long as a client has a say in where
 * traces end. */
static dr_custom_trace_action_t event_trace_end(void *drcontext, void *trace_tag, void *next_tag)
{
    client_called(drcontext);
    return CUSTOM_TRACE_DR_DECIDES;
}

void insert_check(void *drcontext, instrlist_t *block, instr_t *where, opnd_t memory, uint size, bool is_write,
                  ft_site site)
{
    plan_action action = {.kind = PLAN_CHECK, .flags = is_write ? PLAN_WRITE : PLAN_READ, .size = size, .count = 1};
    if (size) put_check(&(place){drcontext, block, where, NULL, &action, site}, memory);
}

bool insert_init(void)
{
    drreg_init_and_fill_vector(&client.scratch, true);
    drreg_set_vector_entry(&client.scratch, DR_REG_XBP, false); /* stack.c reads it */
    /* While rax is reserved, drreg restores the flags with the help of a register that it saves there, on the slow path, and
     * restores at the end of the block, where the fast path has gone to as well. */
    drreg_set_vector_entry(&client.scratch, DR_REG_XAX, false);
    drreg_set_vector_entry(&client.scratch, DR_REG_R15, false); /* drreg cannot restore all when this is used and dead */
    /* After drwrap: what a call did that has just returned (an acquire) comes before the check of the next instruction,
     * and the result is still in its register. */
    drmgr_priority_t priority = {sizeof priority, "race", NULL, NULL, DRMGR_PRIORITY_INSERT_DRWRAP + 1};
    drmgr_priority_t before = {sizeof before, "race.prepare", NULL, NULL, DRMGR_PRIORITY_INSERT_DRWRAP - 1};
    dr_register_end_trace_event(event_trace_end);
    if (!drmgr_register_bb_app2app_event(event_shape, NULL)) return false;
    if (!drmgr_register_bb_instrumentation_event(NULL, event_prepare, &before)) return false;
    return drmgr_register_bb_instrumentation_event(event_analysis, event_insert, &priority);
}

void insert_exit(void)
{
    dr_unregister_end_trace_event(event_trace_end);
    drmgr_unregister_bb_app2app_event(event_shape);
    drmgr_unregister_bb_insertion_event(event_insert);
    drmgr_unregister_bb_insertion_event(event_prepare);
    drvector_delete(&client.scratch);
}
