/* One block: a random state, then instruction by instruction the prediction, the machine's step, and the comparison.
 *
 * A step is made by the emulator if it can, else by the processor. Where emulator and IR differ, the processor decides:
 * it is the machine that the IR is about. Calls return at once, with every register that they may change changed;
 * system calls as well, without being made. */
#include "irdiff.h"

#include <inttypes.h>

enum { DEAD_EVERY = 4 }; /* one block in so many is run again by dead.c */

/* --- reporting ---------------------------------------------------------------------------------------------------- */

static void print_operand(void *context, ir_value v)
{
    interpreter *in = context;
    value x = interpret_value(in, v);
    printf(" v%u", v);
    if (x.known) printf("(%" PRIx64 "%s)", x.bits & x.known, x.known == ~0ull ? "" : "?");
}

static void report_ir(irdiff *d, const step *s)
{
    const ir_func *ir = d->in.ir;
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &ir->insns[v];
        char name[16];
        printf("    v%u", v);
        if (insn->var != IR_NOVAR) printf(":%s", ir_var_name(ir, insn->var, name));
        printf(" = %s.%u", ir_op_name((ir_op)insn->op), insn->width);
        interpret_operands(ir, insn, print_operand, &d->in);
        printf(" scale %u imm %" PRIx64, insn->scale, (uint64_t)insn->imm);
        if (insn->op == IR_ACCESS) printf(" flags %x", insn->flags);
        value x = interpret_value(&d->in, v);
        if (insn->op != IR_ACCESS && x.known) printf("  -> %" PRIx64, x.bits & x.known);
        printf("\n");
    }
}

/* One line: address, bytes, text. */
static void print_instruction(irdiff *d, const lift_insn *insn)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    char text[160];
    uint64_t available;
    const uint8_t *bytes = image_bytes(d->module->img, insn->addr, &available);
    if (!bytes || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, bytes, available, &in, ops))) return;
    ZydisFormatterFormatInstruction(&d->formatter, &in, ops, in.operand_count_visible, text, sizeof text, insn->addr,
                                    NULL);
    printf("  %" PRIx64 ":", insn->addr);
    for (unsigned i = 0; i < in.length; i++)
        printf(" %02x", bytes[i]);
    printf("  %s\n", text);
}

void block_report(irdiff *d, const lift_func *func, uint64_t seed, const step *s, const machine *before,
                  const char *why)
{
    d->stats->mismatches[s->insn->mnemonic]++;
    if (d->stats->mismatch_count++ >= d->most_reports) return;
    const lift_block *b = &func->blocks[d->in.block];
    printf("MISMATCH %s: %s block %" PRIx64 " (seed %" PRIx64 ")\n", d->module->img->path, func->name, b->start, seed);
    if (s->insn > &func->insns[b->first_insn]) print_instruction(d, s->insn - 1);
    print_instruction(d, s->insn);
    printf("  %s\n", why);
    report_ir(d, s);
    printf("    registers:");
    for (int i = 0; i < 16; i++) {
        char name[16];
        printf(" %s=%" PRIx64, ir_var_name(d->in.ir, (uint16_t)i, name), before->gpr[i]);
    }
    printf(" flags=%" PRIx64 " entry_sp=%" PRIx64 "\n", before->flags, d->in.entry_sp);
    fflush(stdout);
}

/* --- what an instruction is --------------------------------------------------------------------------------------- */

static bool is_vector(const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    ZydisRegisterClass class = ZydisRegisterGetClass(op->reg.value);
    return class == ZYDIS_REGCLASS_XMM || class == ZYDIS_REGCLASS_YMM || class == ZYDIS_REGCLASS_ZMM;
}

static bool step_decode(irdiff *d, step *s)
{
    uint64_t available;
    const uint8_t *bytes = image_bytes(d->module->img, s->insn->addr, &available);
    if (!bytes || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, bytes, available, &s->zydis, s->ops))) return false;
    step_kind *kind = &s->kind;
    *kind = (step_kind){.jumps = s->insn->flow != FLOW_PLAIN};
    for (int i = 0; i < s->zydis.operand_count; i++)
        kind->vectors |= is_vector(&s->ops[i]);
    switch (s->zydis.meta.category) {
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_SSE: /* fxsave and the like are here, too */
        kind->vectors = true;
        break;
    default:
        break;
    }
    kind->repeats = s->zydis.meta.category == ZYDIS_CATEGORY_GATHER ||
                    s->zydis.meta.category == ZYDIS_CATEGORY_AVX2GATHER ||
                    s->zydis.meta.category == ZYDIS_CATEGORY_SCATTER ||
                    s->zydis.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    return true;
}

/* What needs a privilege, ends the program, or depends on more than the state. */
static bool step_is_out(const step *s)
{
    if (s->zydis.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) return true;
    if (s->insn->flow == FLOW_TRAP) return true;
    /* Intel ignores the prefix, AMD goes to an address of 16 bits: no compiler makes one, but with REX.W as padding. */
    if (s->zydis.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && (s->zydis.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) &&
        !s->zydis.raw.rex.W)
        return true;
    switch (s->zydis.meta.category) {
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_SYSRET:
        return true;
    case ZYDIS_CATEGORY_RET:
        return s->zydis.mnemonic != ZYDIS_MNEMONIC_RET;
    default:
        break;
    }
    switch (s->zydis.mnemonic) {
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_XTEST:
    case ZYDIS_MNEMONIC_LFS: /* the size of a far pointer differs between vendors */
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_WRPKRU:
    case ZYDIS_MNEMONIC_RDPKRU:
        return true;
    default:
        return s->zydis.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

void block_return_from_call(machine *m, uint64_t next, uint64_t *random)
{
    static const uint8_t scratch[] = {IR_RAX, IR_RCX, IR_RDX, IR_RSI, IR_RDI, IR_R8, IR_R9, IR_R10, IR_R11};
    for (size_t i = 0; i < sizeof scratch; i++)
        m->gpr[scratch[i]] = random_next(random) & 1
                                 ? MEMORY_HEAP + (random_next(random) % (MEMORY_HEAP_SIZE / 2) & ~63ull)
                                 : random_next(random) & 0xff;
    for (int reg = 0; reg < 32; reg++)
        for (int lane = 0; lane < 8; lane++)
            m->vector[reg][lane] = random_next(random);
    m->flags = random_next(random) & FLAG_STATUS;
    m->rip = next;
    m->gpr[IR_RSP] += 8;
}

/* The callee's frame was below the stack pointer. */
void block_scribble_below(irdiff *d, const machine *m, uint64_t *random)
{
    uint64_t dead[16];
    for (int i = 0; i < 16; i++)
        dead[i] = random_next(random);
    memory_write(d->mem, m->gpr[IR_RSP] - sizeof dead, dead, sizeof dead);
}

void block_simulate_syscall(machine *m, uint64_t next, uint64_t *random)
{
    m->gpr[IR_RAX] = random_next(random) & 0xff;
    m->gpr[IR_RCX] = next;
    m->gpr[IR_R11] = random_next(random); /* the flags, which nobody asks for */
    m->rip = next;
}

/* --- the processor ------------------------------------------------------------------------------------------------ */

static bool is_predicted(const access_list *predicted, uint64_t byte)
{
    for (uint32_t i = 0; i < predicted->len; i++)
        if (byte - predicted->data[i].addr < predicted->data[i].size) return true;
    return false;
}

/* Uses only the low half of its 16 bytes of memory: "an implementation may fetch only the appropriate 64 bits". */
static bool reads_half(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
#define BOTH(name)                                                                                                     \
    case ZYDIS_MNEMONIC_##name:                                                                                        \
    case ZYDIS_MNEMONIC_V##name
        BOTH(UNPCKLPS)
            : BOTH(UNPCKLPD)
            : BOTH(PUNPCKLBW)
            : BOTH(PUNPCKLWD)
            : BOTH(PUNPCKLDQ)
            : BOTH(PUNPCKLQDQ)
            : BOTH(PSLLW)
            : BOTH(PSLLD)
            : BOTH(PSLLQ) : BOTH(PSRLW) : BOTH(PSRLD) : BOTH(PSRLQ) : BOTH(PSRAW) : BOTH(PSRAD) : return true;
#undef BOTH
    default:
        return false;
    }
}

typedef struct {
    native_probe probe;
    bool expected;
} expectation;

/* First and last byte of each access, and the bytes beside it that belong to no other. */
static unsigned expectations(const interpreter *in, ZydisMnemonic mnemonic, expectation *e, unsigned most)
{
    unsigned count = 0;
    bool half = reads_half(mnemonic);
    for (uint32_t i = 0; i < in->predicted.len && count + 4 <= most; i++) {
        const mem_access *a = &in->predicted.data[i];
        uint64_t beside[] = {a->addr - 1, a->addr + a->size}, inside[] = {a->addr, a->addr + a->size - 1};
        for (int k = 0; k < 2; k++) {
            if (half && k == 1) continue;
            if (!a->maybe && (k == 0 || a->size > 1))
                e[count++] = (expectation){{.addr = inside[k], .write_only = a->write}, true};
            if (!in->wide && !is_predicted(&in->predicted, beside[k]))
                e[count++] = (expectation){{.addr = beside[k]}, false};
        }
    }
    return count;
}

/* Has a memory operand, and does not access it. */
static bool is_hint(const step *s)
{
    switch (s->zydis.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_CLDEMOTE:
        return true;
    default:
        return s->zydis.mnemonic == ZYDIS_MNEMONIC_CLFLUSH;
    }
}

static bool operands_are_predicted(const interpreter *in, const step *s)
{
    bool half = reads_half(s->zydis.mnemonic);
    for (int i = 0; i < s->zydis.operand_count; i++) {
        const ZydisDecodedOperand *op = &s->ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || !op->size) continue;
        bool found = false;
        for (uint32_t k = 0; k < in->predicted.len; k++) {
            const mem_access *a = &in->predicted.data[k];
            found |= (s->kind.repeats || a->size * 8 == op->size || (half && a->size * 16 == op->size)) &&
                     a->read == !!(op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
                     a->write == !!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
        }
        if (!found && !(s->kind.repeats && !in->predicted.len)) return false;
    }
    return true;
}

static step_status step_native(irdiff *d, const step *s, machine *m, char *why)
{
    enum { MOST = 16 };
    expectation all[MOST];
    unsigned count = expectations(&d->in, s->zydis.mnemonic, all, MOST), done = 0;
    machine before = *m;
    uint32_t mark = memory_mark(d->mem);
    if (!d->nat) return STEP_UNSUPPORTED;
    do {
        native_probe probes[NATIVE_PROBES];
        unsigned n = count - done < NATIVE_PROBES ? count - done : NATIVE_PROBES;
        for (unsigned i = 0; i < n; i++)
            probes[i] = all[done + i].probe;
        memory_undo(d->mem, mark);
        for (uint32_t i = 0; i < d->in.predicted.len; i++)
            if (d->in.predicted.data[i].write)
                memory_save(d->mem, d->in.predicted.data[i].addr, d->in.predicted.data[i].size);
        *m = before;
        step_status status = native_step(d->nat, m, &s->kind, probes, n);
        if (status != STEP_OK) return status;
        for (unsigned i = 0; i < n; i++) {
            if (probes[i].hit == all[done + i].expected || *why) continue;
            snprintf(why, COMPARE_TEXT, "byte %" PRIx64 " is %s, predicted otherwise", probes[i].addr,
                     probes[i].hit ? (probes[i].write_only ? "written" : "accessed") : "not accessed (or only read)");
        }
        done += n;
    } while (done < count);

    /* No watchpoint tells of an access that nobody predicted, nor of a read of what is also written; operands do. */
    if (!*why && !d->in.wide && !is_hint(s) && !operands_are_predicted(&d->in, s))
        snprintf(why, COMPARE_TEXT, "a memory operand is not predicted with its kind and size");
    return STEP_OK;
}

/* --- one instruction ---------------------------------------------------------------------------------------------- */

typedef enum { NEXT, STOP } verdict;

static void add_counts(irdiff_stats *to, const irdiff_stats *part)
{
    to->exact += part->exact;
    to->opaque += part->opaque;
    to->called += part->called;
    to->unknown += part->unknown;
    to->stores += part->stores;
    to->targets += part->targets;
    to->frames += part->frames;
    to->arguments += part->arguments;
}

static void count_accesses(irdiff *d, const step *s)
{
    for (uint32_t v = s->from; v < s->to; v++) {
        const ir_insn *insn = &d->in.ir->insns[v];
        if (insn->op != IR_ACCESS) continue;
        d->stats->accesses += !(insn->flags & IR_WIDE);
        d->stats->accesses_wide += !!(insn->flags & IR_WIDE);
        d->stats->accesses_cond += !!(insn->flags & IR_COND);
        d->stats->accesses_promoted += !!(insn->flags & IR_PROMOTED);
    }
}

/* All that is compared once the machine has made its step. Pure: it may be asked again after another engine's step. */
static bool check(irdiff *d, const step *s, const machine *before, machine *m, bool returns, uint64_t *random,
                  irdiff_stats *counts, char *why)
{
    memset(counts, 0, offsetof(irdiff_stats, skipped));
    if (*why || !compare_arguments(&d->in, s, before, counts, why) || !compare_target(&d->in, s, m, counts, why) ||
        !compare_stores(&d->in, s, counts, why))
        return false;
    if (returns) block_return_from_call(m, s->insn->addr + s->insn->len + d->in.bias, random);
    return compare_definitions(&d->in, &d->handovers, s, m, counts, why);
}

/* Instructions that the emulator cannot decode, or gets wrong (cmpxchg of 32 bits clears the upper half of rax when it
 * succeeds, fcomi keeps flags), and a part of all others, so that no mistake is shared by the emulator and the IR. */
static bool is_for_processor(const irdiff *d, const step *s, uint64_t seed)
{
    enum { PART = 16 };
    if (s->zydis.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || d->native_only) return true;
    switch (s->zydis.mnemonic) {
    case ZYDIS_MNEMONIC_CMPXCHG:
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP:
    case ZYDIS_MNEMONIC_EXTRQ:
        return d->nat;
    default:
        return d->nat && random_mix(seed ^ s->insn->addr) % PART == 0;
    }
}

static verdict run_step(irdiff *d, const lift_func *func, const step *s, machine *m, bool returns, uint64_t seed,
                        uint64_t *random)
{
    char why[COMPARE_TEXT] = "";
    machine before = *m;
    uint32_t mark = memory_mark(d->mem);
    irdiff_stats counts;
    step_status status = STEP_UNSUPPORTED;
    bool emulated = false, agreed = false;

    if (s->insn->flow == FLOW_SYSCALL) {
        block_simulate_syscall(m, s->insn->addr + s->insn->len + d->in.bias, random);
        status = STEP_OK;
        agreed = check(d, s, &before, m, false, random, &counts, why);
    } else {
        if (!is_for_processor(d, s, seed)) {
            status = emulator_step(d->emu, m, &s->kind, &d->performed);
            emulated = status == STEP_OK;
            if (emulated) {
                uint64_t stream = *random;
                agreed = compare_accesses(&d->in, &d->performed, d->scratch, why) &&
                         check(d, s, &before, m, returns, &stream, &counts, why);
                if (agreed) *random = stream;
            }
        }
        if (!agreed) {
            char second[COMPARE_TEXT] = "";
            memory_undo(d->mem, mark);
            machine again = before;
            step_status other = step_native(d, s, &again, second);
            bool right = other == STEP_OK && check(d, s, &before, &again, returns, random, &counts, second);
            if (other == STEP_OK) {
                if (right && emulated) d->stats->emulator_wrong[s->insn->mnemonic]++;
                agreed = right;
                status = STEP_OK;
                *m = again;
                memcpy(why, second, sizeof why);
                d->stats->native_instructions++;
            } else if (!emulated || d->nat) { /* it cannot be run here: what the emulator made of it does not count */
                status = other;
            }
        }
    }
    if (status == STEP_FAULT) {
        d->stats->stopped_fault++;
        return STOP;
    }
    if (status == STEP_UNSUPPORTED) {
        d->stats->skipped[s->insn->mnemonic]++;
        return STOP;
    }
    d->stats->instructions++;
    if (!agreed) {
        block_report(d, func, seed, s, &before, why);
        return STOP;
    }
    add_counts(d->stats, &counts);
    count_accesses(d, s);
    if (returns) block_scribble_below(d, m, random);
    return NEXT;
}

/* Everything predicted is mapped; false: the block ends here. */
static bool can_access(irdiff *d)
{
    enum { LONGEST = 1 << 16 };
    if (d->in.wide_on_stack) { /* an xsave area that is too small in this state would run into the frame */
        d->stats->stopped_address++;
        return false;
    }
    for (uint32_t i = 0; i < d->in.predicted.len; i++) {
        const mem_access *a = &d->in.predicted.data[i];
        if (a->size > LONGEST) {
            d->stats->stopped_count++;
            return false;
        }
        if (!memory_map(d->mem, a->addr, a->size)) {
            d->stats->stopped_address++;
            return false;
        }
    }
    return true;
}

/* The stack pointer has been moved by a number that only the program knows to be good (alloca): here it is random, and
 * may have come to lie above the frame. */
static bool is_stack_lost(irdiff *d, const step *s, const machine *m)
{
    int32_t offset, lowest = 0;
    uint8_t base;
    bool moved = false;
    for (uint32_t v = s->from; v < s->to; v++)
        if (d->in.ir->insns[v].var == IR_RSP) moved = !ir_frame_offset(d->in.ir, v, &offset, &base);
    for (uint32_t i = 0; moved && i < d->in.ir->slot_count; i++)
        if (!d->in.ir->slots[i].base && d->in.ir->slots[i].offset < lowest) lowest = d->in.ir->slots[i].offset;
    return moved && m->gpr[IR_RSP] > d->in.entry_sp + (uint64_t)(int64_t)lowest;
}

/* Calls in the middle of a block return; the last one does if the block goes on. */
static bool call_returns(const lift_block *b, uint32_t i, const lift_insn *insn)
{
    bool call = insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_SLOT || insn->flow == FLOW_CALL_IND;
    return call && (i + 1 < b->insn_count || b->succ_count > 0);
}

/* The block has gone on to a successor, which relies on what it was promised. */
static void check_end(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed, const machine *m)
{
    const lift_block *b = &func->blocks[block];
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
        char why[COMPARE_TEXT];
        const lift_edge *edge = &func->edges[e];
        if (edge->kind == EDGE_PAD || func->blocks[edge->to].start + d->bias != m->rip) continue;
        step s = {.insn = &func->insns[b->first_insn + b->insn_count - 1]};
        if (!compare_handover(&d->in, &d->handovers, edge->to, m, d->stats, why) && step_decode(d, &s))
            block_report(d, func, seed, &s, m, why);
        return;
    }
}

/* Random numbers are hardly ever equal: the destination of a cmpxchg is made equal to the accumulator now and then. */
static void make_equal(irdiff *d, trace_entry *t, const machine *m)
{
    if (t->how.zydis.mnemonic != ZYDIS_MNEMONIC_CMPXCHG || (random_mix(t->random) & 1)) return;
    for (uint32_t v = t->how.from; v < t->how.to; v++) {
        const ir_insn *insn = &d->in.ir->insns[v];
        bool sure;
        if (insn->op != IR_ACCESS || (insn->flags & (IR_FRAME | IR_WIDE)) || insn->width > 8) continue;
        t->equal = (mem_access){.addr = interpret_address(&d->in, insn, &sure), .size = insn->width};
        t->equal_to = m->gpr[IR_RAX];
        if (!sure || !memory_write(d->mem, t->equal.addr, &t->equal_to, t->equal.size)) t->equal.size = 0;
    }
    interpret_before(&d->in, t->how.from, t->how.to, m);
}

void irdiff_block(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed)
{
    const ir_func *ir = func->ir;
    const lift_block *b = &func->blocks[block];
    const ir_block *irb = &ir->blocks[block];
    uint64_t random = seed;
    uint32_t mark = memory_mark(d->mem);
    machine m, entry;
    memory_trim(d->mem);
    memory_map(d->mem, b->start + d->bias, 1);
    emulator_begin(d->emu);
    d->in.mem = d->mem;
    d->in.ir = ir;
    d->in.block = block;
    d->in.bias = d->bias;
    state_random(&d->in, &m, &random);
    interpret_begin(&d->in, &m);
    d->stats->blocks++;
    entry = m;
    compare_handover_begin(&d->in, &m, &d->handovers);
    uint32_t ready = memory_mark(d->mem);
    vec_clear(&d->trace);

    uint32_t at = irb->first, end = irb->first + irb->count, i;
    while (at < end && (ir->insns[at].op == IR_PHI || ir->insns[at].op == IR_ENTRY || ir->insns[at].op == IR_UNDEF))
        at++;
    for (i = 0; i < b->insn_count; i++) {
        step s = {.insn = &func->insns[b->first_insn + i], .from = at};
        while (at < end && ir->insns[at].insn == b->first_insn + i)
            at++;
        s.to = at;
        m.rip = s.insn->addr + d->bias;
        if (!step_decode(d, &s) || step_is_out(&s)) {
            d->stats->skipped[s.insn->mnemonic]++;
            break;
        }
        interpret_before(&d->in, s.from, s.to, &m);
        trace_entry entered = {.how = s, .random = random, .returns = call_returns(b, i, s.insn)};
        make_equal(d, &entered, &m);
        if (d->in.lost) {
            machine before = m;
            block_report(d, func, seed, &s, &before, "an address depends on a value that nothing defines");
            break;
        }
        if (!compare_predicted_target(&d->in, &s, &s.kind.until)) memory_read(d->mem, m.gpr[IR_RSP], &s.kind.until, 8);
        entered.how.kind = s.kind;
        uint64_t native = d->stats->native_instructions;
        if (!can_access(d) || run_step(d, func, &s, &m, entered.returns, seed, &random) == STOP) break;
        interpret_after(&d->in, s.from, s.to, &m);
        if (is_stack_lost(d, &s, &m)) {
            d->stats->stopped_address++;
            break;
        }
        entered.after = m;
        entered.native = d->stats->native_instructions > native;
        for (uint32_t k = 0; k < d->in.predicted.len && entered.written_count < 4; k++)
            if (d->in.predicted.data[k].write) entered.written[entered.written_count++] = d->in.predicted.data[k];
        vec_push(&d->trace, entered);
    }
    if (i == b->insn_count && i) { /* an empty block is the fall into another function */
        d->stats->blocks_whole++;
        check_end(d, func, block, seed, &m);
        if (at != end) {
            step s = {.insn = &func->insns[b->first_insn + b->insn_count - 1], .from = at, .to = end};
            if (step_decode(d, &s)) block_report(d, func, seed, &s, &m, "IR instructions out of order");
        }
    }
    memory_undo(d->mem, ready);
    if (ir->live && random_mix(seed) % DEAD_EVERY == 0) dead_check(d, func, block, seed, &entry, &d->trace);
    memory_undo(d->mem, mark);
}
