/* Code that no plan speaks of. Of a module that is not modelled at its interface at least the atomic instructions are
 * seen as synchronisation: dropping them would make false alarms. With -all every access is checked too, except those
 * that no single address says (gathers, scatters). A release store or an acquire load is a plain move on x86 and cannot
 * be told from one: with -all a program that uses them in code without a plan may be accused wrongly. */
#include "runtime/dynamorio/client.h"

#include "drreg.h"
#include "drutil.h"

static void on_atomic_before(ft_site site, uint size, app_pc pc)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_called(drcontext);
    t->atomic = t->raw[RAW_ADDRESS];
    if (t->ft) ft_atomic_before(t->ft, t->atomic);
    leave_if_signalled(drcontext, t, pc);
}

static void on_atomic_after(void)
{
    client_thread *t = client_called(dr_get_current_drcontext());
    if (t->ft) ft_atomic_after(t->ft, t->atomic);
}

static bool is_atomic(instr_t *instr)
{
    return instr_get_prefix_flag(instr, PREFIX_LOCK) ||
           (instr_get_opcode(instr) == OP_xchg && (instr_reads_memory(instr) || instr_writes_memory(instr)));
}

/* The first memory operand; an atomic instruction has one only. */
static bool memory_operand(instr_t *instr, opnd_t *out)
{
    for (int i = 0; i < instr_num_dsts(instr); i++)
        if (opnd_is_memory_reference(*out = instr_get_dst(instr, i))) return true;
    for (int i = 0; i < instr_num_srcs(instr); i++)
        if (opnd_is_memory_reference(*out = instr_get_src(instr, i))) return true;
    return false;
}

static void put_atomic(void *dc, instrlist_t *block, instr_t *instr)
{
    opnd_t memory;
    reg_id_t a, b;
    if (!memory_operand(instr, &memory)) return;
    if (drreg_reserve_aflags(dc, block, instr) != DRREG_SUCCESS) return;
    bool good = false;
    if (drreg_reserve_register(dc, block, instr, &client.scratch, &a) == DRREG_SUCCESS) {
        if (drreg_reserve_register(dc, block, instr, &client.scratch, &b) == DRREG_SUCCESS) {
            drreg_restore_app_values(dc, block, instr, memory, NULL);
            good = drutil_insert_get_mem_addr(dc, block, instr, memory, a, b);
            if (good) insert_call(dc, block, instr, a, on_atomic_before, 0, 0);
            drreg_unreserve_register(dc, block, instr, b);
        }
        drreg_unreserve_register(dc, block, instr, a);
    }
    drreg_unreserve_aflags(dc, block, instr);
    if (good) dr_insert_clean_call(dc, block, instr_get_next(instr), (void *)on_atomic_after, false, 0);
}

/* The stack accesses of push, pop, call and ret are the thread's own; what is relative to fs is too, mostly. */
static bool is_of_interest(instr_t *instr, opnd_t o)
{
    if (!opnd_is_memory_reference(o)) return false;
    if (opnd_is_far_memory_reference(o)) return false;
    if (opnd_is_base_disp(o) && opnd_is_vsib(o)) return false;
    if (opnd_is_base_disp(o) && opnd_get_base(o) == DR_REG_XSP && opnd_get_index(o) == DR_REG_NULL) {
        int opcode = instr_get_opcode(instr);
        bool implicit = opcode == OP_push || opcode == OP_push_imm || opcode == OP_pop || opcode == OP_pushf ||
                        opcode == OP_popf || opcode == OP_leave || opcode == OP_enter || instr_is_call(instr) ||
                        instr_is_return(instr);
        if (implicit) return false;
    }
    return true;
}

static bool is_written_too(instr_t *instr, opnd_t o)
{
    for (int i = 0; i < instr_num_dsts(instr); i++)
        if (opnd_same_address(instr_get_dst(instr, i), o)) return true;
    return false;
}

static void put_checks(void *dc, instrlist_t *block, instr_t *instr)
{
    ft_site site = report_loose_site(client.report, (uint64_t)instr_get_app_pc(instr));
    for (int i = 0; i < instr_num_srcs(instr); i++) {
        opnd_t o = instr_get_src(instr, i);
        if (is_of_interest(instr, o) && !is_written_too(instr, o))
            insert_check(dc, block, instr, o, drutil_opnd_mem_size_in_bytes(o, instr), false, site);
    }
    for (int i = 0; i < instr_num_dsts(instr); i++) {
        opnd_t o = instr_get_dst(instr, i);
        if (is_of_interest(instr, o))
            insert_check(dc, block, instr, o, drutil_opnd_mem_size_in_bytes(o, instr), true, site);
    }
}

bool loose_wants(const report_module *m)
{
    return !m || !m->is_modelled;
}

void loose_insert(void *dc, instrlist_t *block, instr_t *instr)
{
    if (!instr_reads_memory(instr) && !instr_writes_memory(instr)) return;
    if (is_atomic(instr))
        put_atomic(dc, block, instr);
    else if (client.report->options.all && !instr_is_prefetch(instr))
        put_checks(dc, block, instr);
}
