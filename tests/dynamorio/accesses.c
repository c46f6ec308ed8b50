/* libaccesses.so: records which objects the instructions of a program access, for the check of the pointer analysis.
 *
 *   drrun -c libaccesses.so LIST PREFIX -- PROGRAM ARG...
 *
 * LIST, written by `pta_oracle --list`, names the analysed modules and what has to be known about their code. Addresses
 * are hexadecimal and as the file has them:
 *
 *   m PATH              a module; the lines after it are about it
 *   f ADDRESS           a function's first instruction
 *   t ADDRESS           a jump that is a tail call
 *   l ADDRESS           where execution comes back: behind a call, at a landing pad, behind a conditional tail call
 *   p START END         PLT stubs: no code of the program
 *   s SIZE 0|1          the size of its TLS block; 1: of an executable
 *   g ADDRESS OFFSET    a word that holds the distance from the thread pointer to OFFSET in the TLS block
 *   d ADDRESS           a word that holds the module's TLS module id
 *
 * When a process ends, PREFIX.<pid> is written:
 *
 *   m NUMBER PATH INSTRUCTIONS              a module; how many of its instructions ran, - when it is not analysed
 *   a MODULE INSTRUCTION r|w|m WIDTH KIND MODULE WHERE[/MODULE.OUTER]... MIN MAX OFFSET...
 *                       what an instruction read, wrote or modified: the object (see accesses.h; KIND is one of own,
 *                       frame, heap, library, static, tls, external; OUTER: the calls that led to the one that
 *                       allocated it, outwards, 0 where code is not analysed) and where in it: the least and largest offset, and
 *                       at most MAX_OFFSETS, a sample in which each distinct one has the same chance
 *   x COUNT WHAT        something that limits what the record says
 *
 * Nothing is written while the program runs: for each instruction the distinct pairs are kept, at most MAX_OBJECTS
 * objects. Implicit accesses of call and ret are left out. Not handled: code that is unmapped and mapped again
 * elsewhere, generated code, accesses of the kernel, bit strings in memory addressed by a register. */
#include "accesses.h"

#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"
#include "drx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_OBJECTS = 256, MAX_OFFSETS = 16, BUCKET = 256, CHUNK = 1 << 20, INSN_TABLE = 1 << 16, LINE = 8192 };

typedef struct spread { /* what one instruction did with one object */
    struct spread *next;
    object what;
    int64_t min, max;
    uint32_t count;
    int64_t offsets[MAX_OFFSETS]; /* when there are more, those with the least hashes */
} spread;

typedef struct insn {
    struct insn *next; /* of the same hash */
    module *m;
    uint64_t pc;
    uint8_t operand; /* number, over sources and destinations */
    char direction;
    uint16_t width;
    spread *volatile first; /* grows at the front; read without the lock */
    uint32_t count;
} insn;

static struct {
    char prefix[MAXIMUM_PATH];
    void *lock;
    module *modules; /* slots are filled once, in order */
    volatile uint32_t module_count;
    module *analysed; /* as LIST describes them; a module that is loaded becomes a copy */
    uint32_t analysed_count;
    module *by_list[64]; /* loaded analysed modules */
    volatile uint32_t by_list_count;
    insn **insns;
    char *chunk;
    size_t chunk_left;
    uint64_t dropped;
} record;

/* With the lock held, or before there are threads. */
void *record_alloc(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size > record.chunk_left) {
        record.chunk_left = size > CHUNK ? size : CHUNK;
        record.chunk = dr_raw_mem_alloc(record.chunk_left, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
    }
    void *result = record.chunk;
    record.chunk += size;
    record.chunk_left -= size;
    return result;
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t mark_slot(const mark_table *t, uint64_t addr)
{
    uint64_t i = mix(addr) & (t->size - 1);
    while (t->keys[i] && t->keys[i] != addr + 1)
        i = (i + 1) & (t->size - 1);
    return i;
}

static uint8_t mark_get(const mark_table *t, uint64_t addr)
{
    return t->size ? t->bits[mark_slot(t, addr)] : 0;
}

static void mark_add(mark_table *t, uint64_t addr, uint8_t bits)
{
    if (t->used * 2 >= t->size) {
        mark_table old = *t;
        t->size = old.size ? old.size * 2 : 1 << 12;
        t->keys = record_alloc(t->size * sizeof *t->keys);
        t->bits = record_alloc(t->size);
        for (uint64_t i = 0; i < old.size; i++) {
            if (!old.keys[i]) continue;
            uint64_t to = mark_slot(t, old.keys[i] - 1);
            t->keys[to] = old.keys[i];
            t->bits[to] = old.bits[i];
        }
    }
    uint64_t i = mark_slot(t, addr);
    t->used += !t->keys[i];
    t->keys[i] = addr + 1;
    t->bits[i] |= bits;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

module *module_of(uint64_t addr)
{
    for (uint32_t i = record.module_count; i-- > 0;) {
        module *m = &record.modules[i];
        if (addr >= (uint64_t)m->start && addr < (uint64_t)m->end && !m->unloaded) return m;
    }
    return NULL;
}

void modules_each(void (*visit)(module *m, void *context), void *context)
{
    for (uint32_t i = 0; i < record.by_list_count; i++)
        visit(record.by_list[i], context);
}

static void read_list_line(const char *line)
{
    unsigned long long a = 0, b = 0;
    if (line[0] == 'm') {
        if (record.analysed_count == 64) return;
        module *m = &record.analysed[record.analysed_count++];
        dr_snprintf(m->path, sizeof m->path - 1, "%s", line + 2);
        return;
    }
    int count = sscanf(line + 1, "%llx %llx", &a, &b);
    if (!record.analysed_count || count < 1) return;
    module *m = &record.analysed[record.analysed_count - 1];
    switch (line[0]) {
    case 'f': mark_add(&m->marks, a, MARK_ENTRY); break;
    case 't': mark_add(&m->marks, a, MARK_LEAVE); break;
    case 'l': mark_add(&m->marks, a, MARK_RESUME); break;
    case 'p':
        if (m->plt_count == MAX_PLT) break;
        m->plt_start[m->plt_count] = a;
        m->plt_end[m->plt_count++] = b;
        break;
    case 's':
        m->tls_size = a;
        m->in_executable = b;
        break;
    case 'g':
        if (m->tp_count == MAX_WORDS) break;
        m->tp_word[m->tp_count] = a;
        m->tp_offset[m->tp_count++] = b;
        break;
    case 'd':
        if (m->id_count < MAX_WORDS) m->id_word[m->id_count++] = a;
        break;
    }
}

static bool read_list(const char *path)
{
    file_t file = dr_open_file(path, DR_FILE_READ);
    if (file == INVALID_FILE) return false;
    char line[MAXIMUM_PATH + 16], buffer[4096];
    size_t len = 0;
    for (ssize_t got; (got = dr_read_file(file, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] != '\n') {
                if (len < sizeof line - 1) line[len++] = buffer[i];
                continue;
            }
            line[len] = 0;
            if (len > 2) read_list_line(line);
            len = 0;
        }
    dr_close_file(file);
    return true;
}

static void event_module_load(void *drcontext, const module_data_t *info, bool loaded)
{
    dr_mutex_lock(record.lock);
    if (record.module_count < MAX_MODULES && info->full_path) {
        uint32_t number = record.module_count;
        module *m = &record.modules[number], *known = NULL;
        for (uint32_t i = 0; i < record.analysed_count && !known; i++)
            if (!strcmp(record.analysed[i].path, info->full_path)) known = &record.analysed[i];
        if (known) {
            *m = *known;
            known->marks = (mark_table){0}; /* the loaded one has them now */
            known->path[0] = 0;
        }
        m->analysed = known != NULL;
        m->number = (uint16_t)number;
        m->start = info->start;
        m->end = info->end;
        m->bias = (uint64_t)info->start - (uint64_t)info->preferred_base;
        strncpy(m->path, info->full_path, sizeof m->path - 1);
        record.module_count = number + 1;
        if (known) record.by_list[record.by_list_count++] = m;
    }
    dr_mutex_unlock(record.lock);
    module *m = module_of((uint64_t)info->start);
    if (m && !m->analysed) heap_watch(info);
}

static void event_module_unload(void *drcontext, const module_data_t *info)
{
    module *m = module_of((uint64_t)info->start);
    if (m) m->unloaded = true;
}

/* --- what is accessed --------------------------------------------------------------------------------------------- */

static object find_object(uint64_t addr, int64_t *offset)
{
    thread *t = thread_current();
    object found;
    *offset = 0;
    if (tls_find(t, addr, &found, offset)) return found;
    stack *s = &t->stacks[t->current];
    bool on_stack = t->stack_count && addr >= s->low && addr < s->high;
    if (on_stack && stack_find(t, addr, &found, offset)) return found;
    module *m = module_of(addr);
    if (m && m->analysed) {
        *offset = (int64_t)(addr - m->bias);
        return object_of(OBJECT_STATIC, m->number, (uint64_t)*offset & -(uint64_t)BUCKET);
    }
    if (m) return object_of(OBJECT_EXTERNAL, m->number, EXTERNAL_STATIC);
    if (heap_find(addr, &found, offset)) {
        if (found.kind == OBJECT_EXTERNAL) *offset = 0;
        /* A thread's stack and control block are in a mapping that pthread_create made. */
        if (found.kind != OBJECT_LIBRARY) return found;
    } else {
        found = object_of(OBJECT_EXTERNAL, EXTERNAL_MODULE, EXTERNAL_UNKNOWN);
    }
    object other;
    int64_t other_offset;
    if (addr - t->pointer < 4096)
        other = object_of(OBJECT_EXTERNAL, EXTERNAL_MODULE, EXTERNAL_THREAD), other_offset = 0;
    else if (!stack_find(t, addr, &other, &other_offset))
        return found;
    *offset = other_offset;
    return other;
}

static bool is_full(const spread *s)
{
    return s->count == MAX_OFFSETS;
}

/* Whether the spread says all that it can say about an offset. */
static bool knows(const spread *s, int64_t offset)
{
    if (offset < s->min || offset > s->max) return false;
    uint64_t worst = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->offsets[i] == offset) return true;
        uint64_t hash = mix((uint64_t)s->offsets[i]);
        if (hash > worst) worst = hash;
    }
    return is_full(s) && mix((uint64_t)offset) > worst;
}

/* With the lock held: the spread does not know it. */
static void add_offset(spread *s, int64_t offset)
{
    if (offset < s->min) s->min = offset;
    if (offset > s->max) s->max = offset;
    if (knows(s, offset)) return;
    if (!is_full(s)) {
        s->offsets[s->count] = offset;
        __atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
        return;
    }
    uint32_t worst = 0;
    for (uint32_t i = 1; i < s->count; i++)
        if (mix((uint64_t)s->offsets[i]) > mix((uint64_t)s->offsets[worst])) worst = i;
    s->offsets[worst] = offset;
}

static void on_access(insn *at, uint64_t addr)
{
    int64_t offset;
    object what = find_object(addr, &offset);
    spread *s = __atomic_load_n(&at->first, __ATOMIC_ACQUIRE);
    while (s && !object_same(&s->what, &what))
        s = s->next;
    if (s && knows(s, offset)) return;
    dr_mutex_lock(record.lock);
    for (s = at->first; s && !object_same(&s->what, &what);)
        s = s->next;
    if (!s && at->count == MAX_OBJECTS) {
        record.dropped++;
    } else if (!s) {
        s = record_alloc(sizeof *s);
        *s = (spread){.next = at->first, .what = what, .min = offset, .max = offset, .count = 1, .offsets = {offset}};
        at->count++;
        __atomic_store_n(&at->first, s, __ATOMIC_RELEASE);
    } else {
        add_offset(s, offset);
    }
    dr_mutex_unlock(record.lock);
}

/* --- what is added to blocks -------------------------------------------------------------------------------------- */

static insn *get_insn(module *m, uint64_t pc, uint8_t operand, char direction, uint16_t width)
{
    uint64_t slot = mix(pc ^ (uint64_t)m->number << 48 ^ (uint64_t)operand << 40) % INSN_TABLE;
    dr_mutex_lock(record.lock);
    insn *at = record.insns[slot];
    while (at && (at->pc != pc || at->m != m || at->operand != operand))
        at = at->next;
    if (!at) {
        at = record_alloc(sizeof *at);
        *at = (insn){.next = record.insns[slot], .m = m, .pc = pc, .operand = operand, .direction = direction};
        at->width = width;
        record.insns[slot] = at;
    }
    dr_mutex_unlock(record.lock);
    return at;
}

static void insert_access(void *drcontext, instrlist_t *bb, instr_t *where, opnd_t memory, insn *at)
{
    reg_id_t address, scratch;
    if (drreg_reserve_register(drcontext, bb, where, NULL, &address) != DRREG_SUCCESS) return;
    if (drreg_reserve_register(drcontext, bb, where, NULL, &scratch) != DRREG_SUCCESS) return;
    reg_id_t swap = DR_REG_NULL; /* registers of the address may still hold what the access before left there */
    drreg_restore_app_values(drcontext, bb, where, memory, &swap);
    if (drutil_insert_get_mem_addr(drcontext, bb, where, memory, address, scratch))
        dr_insert_clean_call(drcontext, bb, where, (void *)on_access, false, 2, OPND_CREATE_INTPTR(at),
                             opnd_create_reg(address));
    drreg_unreserve_register(drcontext, bb, where, scratch);
    drreg_unreserve_register(drcontext, bb, where, address);
}

static bool accesses_nothing(instr_t *instr)
{
    int opcode = instr_get_opcode(instr);
    bool bit_string = opcode == OP_bt || opcode == OP_bts || opcode == OP_btr || opcode == OP_btc;
    return instr_is_prefetch(instr) || opcode == OP_nop_modrm || opcode == OP_lea || opcode == OP_clflush ||
           opcode == OP_clflushopt || opcode == OP_clwb || opcode == OP_invlpg ||
           (bit_string && !opnd_is_immed(instr_get_src(instr, 0)));
}

static void insert_accesses(void *drcontext, instrlist_t *bb, instr_t *where, instr_t *instr, module *m, uint64_t pc)
{
    if (accesses_nothing(instr)) return;
    uint8_t number = 0;
    int sources = instr_is_return(instr) ? 0 : instr_num_srcs(instr);
    int targets = instr_is_call(instr) ? 0 : instr_num_dsts(instr);
    for (int i = 0; i < sources; i++) {
        opnd_t memory = instr_get_src(instr, i);
        if (!opnd_is_memory_reference(memory)) continue;
        char direction = 'r';
        for (int k = 0; k < targets; k++)
            if (opnd_same(memory, instr_get_dst(instr, k))) direction = 'm';
        insn *at = get_insn(m, pc, number++, direction, (uint16_t)drutil_opnd_mem_size_in_bytes(memory, instr));
        insert_access(drcontext, bb, where, memory, at);
    }
    for (int k = 0; k < targets; k++) {
        opnd_t memory = instr_get_dst(instr, k);
        bool seen = false;
        for (int i = 0; i < sources; i++)
            seen |= opnd_same(memory, instr_get_src(instr, i));
        if (seen || !opnd_is_memory_reference(memory)) continue;
        insn *at = get_insn(m, pc, number++, 'w', (uint16_t)drutil_opnd_mem_size_in_bytes(memory, instr));
        insert_access(drcontext, bb, where, memory, at);
    }
}

/* Calls `function` with the given value and the stack pointer, or with the stack pointer alone. */
static void insert_event(void *drcontext, instrlist_t *bb, instr_t *where, void *function, uint64_t value)
{
    reg_id_t sp;
    if (drreg_reserve_register(drcontext, bb, where, NULL, &sp) != DRREG_SUCCESS) return;
    instrlist_meta_preinsert(bb, where,
                             XINST_CREATE_move(drcontext, opnd_create_reg(sp), opnd_create_reg(DR_REG_XSP)));
    if (value)
        dr_insert_clean_call(drcontext, bb, where, function, false, 2, OPND_CREATE_INTPTR(value), opnd_create_reg(sp));
    else
        dr_insert_clean_call(drcontext, bb, where, function, false, 1, opnd_create_reg(sp));
    drreg_unreserve_register(drcontext, bb, where, sp);
}

static void insert_entry(void *drcontext, instrlist_t *bb, instr_t *where, module *m, uint64_t entry)
{
    reg_id_t sp;
    if (drreg_reserve_register(drcontext, bb, where, NULL, &sp) != DRREG_SUCCESS) return;
    instrlist_meta_preinsert(bb, where,
                             XINST_CREATE_move(drcontext, opnd_create_reg(sp), opnd_create_reg(DR_REG_XSP)));
    dr_insert_clean_call(drcontext, bb, where, (void *)on_entry, false, 3, OPND_CREATE_INTPTR(m),
                         OPND_CREATE_INTPTR(entry), opnd_create_reg(sp));
    drreg_unreserve_register(drcontext, bb, where, sp);
}

/* Returns what is known about the instruction. */
static uint8_t note_ran(module *m, uint64_t pc)
{
    dr_mutex_lock(record.lock);
    uint8_t bits = mark_get(&m->marks, pc);
    m->ran += !(bits & MARK_RAN);
    mark_add(&m->marks, pc, MARK_RAN);
    dr_mutex_unlock(record.lock);
    return bits;
}

static bool is_plt(const module *m, uint64_t pc)
{
    for (uint32_t i = 0; i < m->plt_count; i++)
        if (pc >= m->plt_start[i] && pc < m->plt_end[i]) return true;
    return false;
}

static dr_emit_flags_t event_expand(void *drcontext, void *tag, instrlist_t *bb, bool for_trace, bool translating)
{
    bool expanded;
    module *m = module_of((uint64_t)dr_fragment_app_pc(tag));
    if (!m || !m->analysed) return DR_EMIT_DEFAULT;
    drutil_expand_rep_string(drcontext, bb);
    drx_expand_scatter_gather(drcontext, bb, &expanded);
    return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t event_block(void *drcontext, void *tag, instrlist_t *bb, instr_t *where, bool for_trace,
                                   bool translating, void *user_data)
{
    instr_t *fetched = drmgr_orig_app_instr_for_fetch(drcontext), *has = drmgr_orig_app_instr_for_operands(drcontext);
    instr_t *any = fetched ? fetched : has;
    module *m = any ? module_of((uint64_t)instr_get_app_pc(any)) : NULL;
    if (!m || !m->analysed) return DR_EMIT_DEFAULT;
    uint64_t pc = (uint64_t)instr_get_app_pc(any) - m->bias;
    if (is_plt(m, pc)) return DR_EMIT_DEFAULT;
    uint8_t bits = fetched ? note_ran(m, pc) : 0;
    if (bits & MARK_ENTRY)
        insert_entry(drcontext, bb, where, m, pc);
    else if (bits & MARK_RESUME)
        insert_event(drcontext, bb, where, (void *)on_resume, 0);
    if (has) insert_accesses(drcontext, bb, where, has, m, pc);
    if (fetched && instr_is_call(fetched))
        insert_event(drcontext, bb, where, (void *)on_call, pc);
    else if (bits & MARK_LEAVE)
        insert_event(drcontext, bb, where, (void *)on_leave, pc);
    else if (fetched && instr_is_return(fetched))
        insert_event(drcontext, bb, where, (void *)on_return, 0);
    return DR_EMIT_DEFAULT;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [OBJECT_OWN] = "own",       [OBJECT_FRAME] = "frame", [OBJECT_HEAP] = "heap",        [OBJECT_LIBRARY] = "library",
    [OBJECT_STATIC] = "static", [OBJECT_TLS] = "tls",     [OBJECT_EXTERNAL] = "external",
};

typedef struct {
    file_t file;
    char text[LINE * 4];
    size_t len;
} writer;

static void say(writer *w, const char *format, ...)
{
    if (w->len + LINE > sizeof w->text) {
        dr_write_file(w->file, w->text, w->len);
        w->len = 0;
    }
    va_list args;
    va_start(args, format);
    int len = vsnprintf(w->text + w->len, LINE, format, args);
    va_end(args);
    if (len > 0) w->len += len < LINE ? (size_t)len : LINE - 1;
}

static void say_insn(writer *w, const insn *at)
{
    for (const spread *s = at->first; s; s = s->next) {
        say(w, "a %u %llx %c %u %s %u %llx", at->m->number, (unsigned long long)at->pc, at->direction, at->width,
            kind_names[s->what.kind], s->what.module, (unsigned long long)s->what.where);
        for (uint32_t i = 0; i < OUTER && s->what.outer[i].pc != UNKNOWN_CALL; i++)
            say(w, "/%u.%llx", s->what.outer[i].module, (unsigned long long)s->what.outer[i].pc);
        say(w, " %lld %lld", (long long)s->min, (long long)s->max);
        for (uint32_t i = 0; i < s->count; i++)
            say(w, " %lld", (long long)s->offsets[i]);
        say(w, "\n");
    }
}

static void event_exit(void)
{
    char path[MAXIMUM_PATH + 16];
    static writer w;
    dr_snprintf(path, sizeof path, "%s.%d", record.prefix, dr_get_process_id());
    path[sizeof path - 1] = 0;
    w.file = dr_open_file(path, DR_FILE_WRITE_OVERWRITE);
    for (uint32_t i = 0; i < record.module_count; i++) {
        module *m = &record.modules[i];
        say(&w, "m %u %s ", i, m->path);
        say(&w, m->analysed ? "%llu\n" : "-\n", (unsigned long long)m->ran);
    }
    for (uint32_t i = 0; i < INSN_TABLE; i++)
        for (insn *at = record.insns[i]; at; at = at->next)
            say_insn(&w, at);
    if (record.dropped) say(&w, "x %llu accesses to further objects\n", (unsigned long long)record.dropped);
    if (stack_odd) say(&w, "x %llu entries without a call\n", (unsigned long long)stack_odd);
    dr_write_file(w.file, w.text, w.len);
    dr_close_file(w.file);
    stack_exit();
    drwrap_exit();
    drx_exit();
    drutil_exit();
    drreg_exit();
    drmgr_exit();
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[])
{
    drreg_options_t registers = {.struct_size = sizeof registers, .num_spill_slots = 4, .conservative = false};
    dr_set_client_name("accesses", "");
    record.lock = dr_mutex_create();
    record.modules = record_alloc(MAX_MODULES * sizeof *record.modules);
    record.analysed = record_alloc(64 * sizeof *record.analysed);
    record.insns = record_alloc(INSN_TABLE * sizeof *record.insns);
    if (argc != 3 || !read_list(argv[1])) {
        dr_fprintf(STDERR, "accesses: LIST PREFIX: %s cannot be read\n", argc > 1 ? argv[1] : "no LIST");
        dr_abort();
    }
    strncpy(record.prefix, argv[2], sizeof record.prefix - 1);
    drmgr_init();
    drutil_init();
    drreg_init(&registers);
    drx_init();
    drwrap_init();
    heap_init();
    stack_init();
    drmgr_register_module_load_event(event_module_load);
    drmgr_register_module_unload_event(event_module_unload);
    drmgr_register_bb_app2app_event(event_expand, NULL);
    /* Behind drwrap's: an access right behind a call of malloc is to the new block. */
    drmgr_priority_t late = {sizeof late, "accesses", NULL, DRMGR_PRIORITY_NAME_DRWRAP, 2 * DRMGR_PRIORITY_INSERT_DRWRAP};
    drmgr_register_bb_instrumentation_event(NULL, event_block, &late);
    drmgr_register_exit_event(event_exit);
}
