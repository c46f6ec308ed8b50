/* Upper halves of vector registers.
 *
 * DynamoRIO restores vector registers with 256- or 512-bit moves when it enters the code cache and behind calls (its issue 3935). A
 * program of older SSE instructions has zeros in the upper halves, but they count as in use from then on, and on Intel's processors
 * as on newer ones of AMD's each such instruction has to wait for what is in its destination, to keep an upper half that nobody
 * wants: loops take up to seven times as long, until the kernel gives the processor to somebody else and back, which finds the
 * zeros. `vzeroupper` ends that, and changes nothing where the upper halves are zero.
 *
 * So blocks of traces, which is code that runs often, begin with a test if they have instructions that suffer from it:
 *
 *     cmp [RAW_USED], 0;  je done         nothing was restored since the last look
 *     sub [RAW_USED], 1;  jne done        not yet: the next call may come soon
 *     call look                           are there only zeros where vzeroupper makes zeros?
 *     cmp [RAW_ZERO], 0;  je done
 *     vzeroupper
 *   done:
 *
 * Our own calls and events say that registers are restored (client_called). Where DynamoRIO leaves and enters the cache without
 * them (to link two blocks that both exist), the loop stays slow until one comes. */
#include "runtime/dynamorio/client.h"

#include "drreg.h"
#include "drwrap.h"

enum { UPPER_REGISTERS = 16, UPPER_BEGIN = 4, UPPER_END_AVX = 8, UPPER_END_AVX512 = 16 }; /* words of 32 bits */

/* Until an instruction of AVX-512 is found in the program, DynamoRIO does not save what only these can set, and it is zero. */
static bool are_zero(const dr_mcontext_t *mc)
{
    const int end = dr_mcontext_zmm_fields_valid() ? UPPER_END_AVX512 : UPPER_END_AVX;
    uint seen = 0;
    for (int i = 0; i < UPPER_REGISTERS; i++)
        for (int word = UPPER_BEGIN; word < end; word++)
            seen |= mc->simd[i].u32[word];
    return !seen;
}

static void look(void)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = client_thread_of(drcontext);
    dr_mcontext_t mc;
    mc.size = sizeof mc;
    mc.flags = DR_MC_MULTIMEDIA;
    t->raw[RAW_ZERO] = dr_get_mcontext(drcontext, &mc) && are_zero(&mc);
}

/* Does it write the lower part of a register and keep the upper one? */
static bool suffers(instr_t *instr)
{
    for (int i = 0; i < instr_num_dsts(instr); i++) {
        opnd_t o = instr_get_dst(instr, i);
        if (opnd_is_reg(o) && reg_is_strictly_xmm(opnd_get_reg(o))) return !instr_zeroes_ymmh(instr);
    }
    return false;
}

static dr_emit_flags_t event_analysis(void *drcontext, void *tag, instrlist_t *block, bool for_trace, bool translating,
                                      void **found)
{
    *found = NULL;
    if (!translating) client_called(drcontext);
    for (instr_t *i = instrlist_first_app(block); for_trace && i && !*found; i = instr_get_next_app(i))
        if (suffers(i)) *found = i;
    return CLIENT_EMIT;
}

static opnd_t word(void *drcontext, uint slot)
{
    opnd_t o = dr_raw_tls_opnd(drcontext, client.raw_segment, client.raw_offset + slot * (uint)sizeof(uint64_t));
    opnd_set_size(&o, OPSZ_4);
    return o;
}

static dr_emit_flags_t event_insert(void *dc, void *tag, instrlist_t *block, instr_t *instr, bool for_trace,
                                    bool translating, void *found)
{
    if (!found || !instr_is_app(instr) || !drmgr_is_first_instr(dc, instr)) return CLIENT_EMIT;
    if (drreg_reserve_aflags(dc, block, instr) != DRREG_SUCCESS) return CLIENT_EMIT;
    instr_t *done = INSTR_CREATE_label(dc);
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_cmp(dc, word(dc, RAW_USED), OPND_CREATE_INT8(0)));
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_jcc(dc, OP_je, opnd_create_instr(done)));
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_sub(dc, word(dc, RAW_USED), OPND_CREATE_INT8(1)));
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_jcc(dc, OP_jne, opnd_create_instr(done)));
    /* not one that is optimised, which may save less than all registers */
    dr_insert_clean_call_ex(dc, block, instr, (void *)look, DR_CLEANCALL_ALWAYS_OUT_OF_LINE, 0);
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_cmp(dc, word(dc, RAW_ZERO), OPND_CREATE_INT8(0)));
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_jcc(dc, OP_je, opnd_create_instr(done)));
    instrlist_meta_preinsert(block, instr, INSTR_CREATE_vzeroupper(dc));
    instrlist_meta_preinsert(block, instr, done);
    drreg_unreserve_aflags(dc, block, instr);
    return CLIENT_EMIT;
}

bool upper_init(void)
{
    drmgr_priority_t priority = {sizeof priority, "race.upper", NULL, NULL, DRMGR_PRIORITY_INSERT_DRWRAP - 2};
    return !proc_avx_enabled() || drmgr_register_bb_instrumentation_event(event_analysis, event_insert, &priority);
}

void upper_exit(void)
{
    if (proc_avx_enabled()) drmgr_unregister_bb_insertion_event(event_insert);
}
