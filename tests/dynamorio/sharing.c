/* libsharing.so: which instructions of a program access memory that another thread accesses too, one of both writing.
 *
 *   drrun -c libsharing.so FILE -- PROGRAM ARG...
 *
 * When the process ends, FILE has a line for each instruction of the executable that accessed memory, `ADDRESS 0|1`: as the file
 * has it, and whether some thread shared with it. It is what `pta_bench --precision --ran FILE` compares the analysis with: what
 * is shared in one run has to be so in any sound result.
 *
 * Memory is compared in pieces of 4 bytes. A block that malloc or calloc gives is new memory, whoever had it before. Accesses of
 * libraries are not seen, as the analysis does not count them. Threads beyond 64 count as one. The executable has to be
 * position-independent. */
#include "dr_api.h"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"

#include <stdint.h>
#include <string.h>

typedef struct note { /* what one instruction did with a piece of memory */
    struct note *next;
    uint32_t insn;
    bool write;
    uint64_t threads;
} note;

typedef struct piece {
    struct piece *next; /* of the same hash */
    uint64_t addr;
    note *notes;
} piece;

typedef struct insn {
    uint64_t pc;
    bool ran, shared;
} insn;

enum { PIECES = 1 << 20, INSNS = 1 << 18, SLOTS = 2 * INSNS, CHUNK = 1 << 20, LARGEST = 1 << 24 };

static struct {
    char path[MAXIMUM_PATH];
    uint64_t start, end; /* of the executable */
    void *lock;
    piece **pieces;
    insn *insns;      /* from 1 on */
    uint32_t *slots;  /* numbers in insns, by the hash of their addresses */
    uint32_t insn_count;
    uint32_t threads;
    int tls;
    char *chunk;
    size_t left;
} record;

static void *raw_memory(size_t size)
{
    return dr_raw_mem_alloc(size, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
}

/* With the lock held. */
static void *take_memory(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size > record.left) {
        record.left = CHUNK;
        record.chunk = raw_memory(CHUNK);
    }
    void *result = record.chunk;
    record.chunk += size;
    record.left -= size;
    return result;
}

static uint64_t mix(uint64_t x)
{
    return x * 0x9e3779b97f4a7c15u >> 44;
}

static uint32_t insn_number(uint64_t pc)
{
    uint32_t at = (uint32_t)mix(pc) % SLOTS;
    while (record.slots[at] && record.insns[record.slots[at]].pc != pc)
        at = (at + 1) % SLOTS;
    if (!record.slots[at] && record.insn_count < INSNS - 1) {
        record.slots[at] = ++record.insn_count;
        record.insns[record.insn_count].pc = pc;
    }
    return record.slots[at];
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool is_two(uint64_t threads)
{
    return threads & (threads - 1);
}

/* Nobody will access this piece any more. */
static void finish(piece *p)
{
    for (note *a = p->notes; a; a = a->next)
        for (note *b = p->notes; b && !record.insns[a->insn].shared; b = b->next)
            record.insns[a->insn].shared = (a->write || b->write) && is_two(a->threads | b->threads);
    p->notes = NULL;
}

static piece *find_piece(uint64_t addr)
{
    piece *p = record.pieces[mix(addr)];
    while (p && p->addr != addr)
        p = p->next;
    return p;
}

static void add_note(uint64_t addr, uint32_t insn, bool write, uint64_t thread)
{
    piece *p = find_piece(addr);
    if (!p) {
        p = take_memory(sizeof *p);
        *p = (piece){.addr = addr, .next = record.pieces[mix(addr)]};
        record.pieces[mix(addr)] = p;
    }
    note *n = p->notes;
    while (n && (n->insn != insn || n->write != write))
        n = n->next;
    if (!n) {
        n = take_memory(sizeof *n);
        *n = (note){.next = p->notes, .insn = insn, .write = write};
        p->notes = n;
    }
    n->threads |= thread;
}

static void on_access(uint64_t addr, uint32_t insn, uint32_t width, bool write)
{
    uint64_t thread = (uint64_t)(uintptr_t)drmgr_get_tls_field(dr_get_current_drcontext(), record.tls);
    dr_mutex_lock(record.lock);
    record.insns[insn].ran = true;
    for (uint64_t at = addr >> 2; at <= (addr + width - 1) >> 2; at++)
        add_note(at, insn, write, thread);
    dr_mutex_unlock(record.lock);
}

static void before_malloc(void *wrap, void **size)
{
    *size = drwrap_get_arg(wrap, 0);
}

static void before_calloc(void *wrap, void **size)
{
    *size = (void *)((size_t)drwrap_get_arg(wrap, 0) * (size_t)drwrap_get_arg(wrap, 1));
}

static void after_malloc(void *wrap, void *size)
{
    uint64_t start = wrap ? (uint64_t)drwrap_get_retval(wrap) : 0, bytes = (uint64_t)size;
    if (!start || bytes > LARGEST) return; /* of its own pages: nobody had it before */
    dr_mutex_lock(record.lock);
    for (uint64_t at = start >> 2; at < (start + bytes) >> 2; at++) {
        piece *p = find_piece(at);
        if (p) finish(p);
    }
    dr_mutex_unlock(record.lock);
}

/* --- what is added to blocks -------------------------------------------------------------------------------------- */

static void insert_access(void *drcontext, instrlist_t *bb, instr_t *where, opnd_t memory, instr_t *instr, uint32_t insn, bool write)
{
    reg_id_t address, scratch, swap = DR_REG_NULL;
    uint32_t width = drutil_opnd_mem_size_in_bytes(memory, instr);
    if (drreg_reserve_register(drcontext, bb, where, NULL, &address) != DRREG_SUCCESS) return;
    if (drreg_reserve_register(drcontext, bb, where, NULL, &scratch) != DRREG_SUCCESS) return;
    drreg_restore_app_values(drcontext, bb, where, memory, &swap);
    if (drutil_insert_get_mem_addr(drcontext, bb, where, memory, address, scratch))
        dr_insert_clean_call(drcontext, bb, where, (void *)on_access, false, 4, opnd_create_reg(address), OPND_CREATE_INT32(insn),
                             OPND_CREATE_INT32(width ? width : 1), OPND_CREATE_INT32(write));
    drreg_unreserve_register(drcontext, bb, where, scratch);
    drreg_unreserve_register(drcontext, bb, where, address);
}

static bool is_ours(uint64_t pc)
{
    return pc >= record.start && pc < record.end;
}

static dr_emit_flags_t event_expand(void *drcontext, void *tag, instrlist_t *bb, bool for_trace, bool translating)
{
    if (is_ours((uint64_t)dr_fragment_app_pc(tag))) drutil_expand_rep_string(drcontext, bb);
    return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t event_block(void *drcontext, void *tag, instrlist_t *bb, instr_t *where, bool for_trace, bool translating,
                                   void *user_data)
{
    instr_t *instr = drmgr_orig_app_instr_for_operands(drcontext);
    uint64_t pc = instr ? (uint64_t)instr_get_app_pc(instr) : 0;
    if (!is_ours(pc) || instr_is_prefetch(instr) || instr_get_opcode(instr) == OP_lea || instr_get_opcode(instr) == OP_nop_modrm)
        return DR_EMIT_DEFAULT;
    dr_mutex_lock(record.lock);
    uint32_t insn = insn_number(pc - record.start);
    dr_mutex_unlock(record.lock);
    int sources = instr_is_return(instr) ? 0 : instr_num_srcs(instr), targets = instr_is_call(instr) ? 0 : instr_num_dsts(instr);
    for (int i = 0; insn && i < sources; i++)
        if (opnd_is_memory_reference(instr_get_src(instr, i)))
            insert_access(drcontext, bb, where, instr_get_src(instr, i), instr, insn, false);
    for (int i = 0; insn && i < targets; i++)
        if (opnd_is_memory_reference(instr_get_dst(instr, i)))
            insert_access(drcontext, bb, where, instr_get_dst(instr, i), instr, insn, true);
    return DR_EMIT_DEFAULT;
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

static void event_thread(void *drcontext)
{
    uint32_t number = dr_atomic_add32_return_sum((volatile int *)&record.threads, 1) - 1u;
    drmgr_set_tls_field(drcontext, record.tls, (void *)(uintptr_t)(1ull << (number < 63 ? number : 63)));
}

static void event_module(void *drcontext, const module_data_t *module, bool loaded)
{
    const char *name = dr_module_preferred_name(module);
    if (!name || !strstr(name, "libc.so")) return;
    app_pc plain = (app_pc)dr_get_proc_address(module->handle, "malloc");
    app_pc cleared = (app_pc)dr_get_proc_address(module->handle, "calloc");
    if (plain) drwrap_wrap(plain, before_malloc, after_malloc);
    if (cleared) drwrap_wrap(cleared, before_calloc, after_malloc);
}

static void event_exit(void)
{
    for (uint32_t i = 0; i < PIECES; i++)
        for (piece *p = record.pieces[i]; p; p = p->next)
            finish(p);
    file_t file = dr_open_file(record.path, DR_FILE_WRITE_OVERWRITE);
    for (uint32_t i = 1; i <= record.insn_count; i++)
        if (record.insns[i].ran) dr_fprintf(file, "%llx %d\n", (unsigned long long)record.insns[i].pc, record.insns[i].shared);
    dr_close_file(file);
    drwrap_exit();
    drutil_exit();
    drreg_exit();
    drmgr_exit();
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[])
{
    drreg_options_t registers = {.struct_size = sizeof registers, .num_spill_slots = 4, .conservative = false};
    dr_set_client_name("sharing", "");
    if (argc != 2) {
        dr_fprintf(STDERR, "sharing: FILE is missing\n");
        dr_abort();
    }
    strncpy(record.path, argv[1], sizeof record.path - 1);
    module_data_t *program = dr_get_main_module();
    record.start = (uint64_t)program->start;
    record.end = (uint64_t)program->end;
    dr_free_module_data(program);
    record.lock = dr_mutex_create();
    record.pieces = raw_memory(PIECES * sizeof *record.pieces);
    record.insns = raw_memory(INSNS * sizeof *record.insns);
    record.slots = raw_memory(SLOTS * sizeof *record.slots);
    drmgr_init();
    drutil_init();
    drreg_init(&registers);
    drwrap_init();
    record.tls = drmgr_register_tls_field();
    drmgr_register_thread_init_event(event_thread);
    drmgr_register_module_load_event(event_module);
    drmgr_register_bb_app2app_event(event_expand, NULL);
    drmgr_register_bb_instrumentation_event(NULL, event_block, NULL);
    drmgr_register_exit_event(event_exit);
}
