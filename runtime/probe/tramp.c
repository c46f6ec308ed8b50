/* Trampolines.
 *
 * For each displaced instruction: its checks (inline.c), then the instruction itself at its new place; at the end a jump to
 * behind the last one.
 *
 * Neighbours. Where the plan allows it (plan.h, `early`), the checks of several instructions are made in front of the first of
 * them, in one go: what is saved, the thread's epoch and the place of their cells serve all. As long as each is settled
 * inline or by first.S, the instructions then follow without checks. Else the checks are made one by one, each in front of
 * its own instruction, by a second copy of all of it that is out of line: what calls C never moves.
 *
 * Everything is described by spans, so that a signal handler can be shown the program's own state. */
#include "runtime/probe/tramp.h"

#include <sys/syscall.h>

size_t tramp_bound(uint32_t actions, uint32_t instructions, uint32_t ranges)
{
    return (size_t)actions * 640 + (size_t)instructions * INSN_MOVED + (size_t)ranges * 32 + PROBE_PAGE;
}

void tramp_span(builder *b, span_kind kind, uint64_t pc, const slow_part *slow)
{
    probe_code *m = b->module;
    if (m->span_count == m->span_cap) {
        b->c.failed = true;
        return;
    }
    probe_span *s = &m->spans[m->span_count++];
    *s = (probe_span){.at = (uint32_t)(m->arena_used + b->c.len), .kind = (uint8_t)kind, .pc = pc};
    if (!slow) return;
    s->flags_saved = slow->flags;
    s->saved_count = slow->saved_count;
    memcpy(s->saved, slow->saved, sizeof s->saved);
}

/* Where the return address lies at pc (probe_record). Rows are asked for in the order of their addresses, mostly. */
static int32_t back_at(builder *b, uint64_t pc)
{
    const plan *p = b->module->plan;
    const uint64_t addr = pc - b->module->bias, at = addr - p->header->low;
    const plan_unwind *row = b->row, *end = p->unwind + p->unwind_count;
    const bool is_same = row && addr >= p->header->low && addr < p->header->high && row->start <= at &&
                         (row + 1 == end || at < row[1].start);
    if (!is_same) b->row = row = plan_unwind_at(p, addr);
    return back_of_row(row);
}

/* Two: before the call, and behind it. */
static uint32_t add_system_records(builder *b, uint64_t pc, uint64_t next)
{
    probe_code *m = b->module;
    if (m->record_cap - m->record_count < 2) {
        b->c.failed = true;
        return 0;
    }
    const uint32_t at = m->first_record + m->record_count;
    m->record_count += 2;
    const probe_record before = {.bias = m->bias, .pc = pc, .kind = RECORD_SYSTEM, .back = back_at(b, pc)};
    probe.records[at] = probe.records[at + 1] = before;
    probe.records[at + 1].pc = next;
    return at;
}

static uint32_t add_record(builder *b, const plan_site *site, unsigned number, record_kind kind, uint64_t pc)
{
    probe_code *m = b->module;
    if (m->record_count == m->record_cap) {
        b->c.failed = true;
        return 0;
    }
    uint32_t at = m->first_record + m->record_count++;
    probe.records[at] = (probe_record){
        .action = &m->plan->actions[site->first_action + number],
        .bias = m->bias,
        .pc = pc,
        .site = m->first_site + (ft_site)(site - m->plan->sites),
        .kind = (uint8_t)kind,
        .number = (uint8_t)number,
        .size = (uint8_t)m->plan->actions[site->first_action + number].size,
        .is_write = m->plan->actions[site->first_action + number].flags & PLAN_WRITE,
        .back = back_at(b, pc),
    };
    return at;
}

/* --- an instruction ----------------------------------------------------------------------------------------------- */

static bool is_wanted(const plan_action *a)
{
    return a->claim == PLAN_CLAIM_NONE || probe.report->options.audit;
}

/* For an audit: the site has run. */
static void emit_ran(builder *b, const plan_site *site)
{
    if (b->module->ran) emit_set_byte(&b->c, absolute((uint64_t)&b->module->ran[site - b->module->plan->sites]), 1);
}

static void emit_before(builder *b, const plan_site *site, uint64_t pc, bool goes_on)
{
    for (unsigned i = 0; i < site->action_count; i++) {
        const plan_action *a = &b->module->plan->actions[site->first_action + i];
        if (!is_wanted(a) || a->kind == PLAN_CAPTURE) continue;
        const bool rep = a->flags & PLAN_DOWN && a->kind == PLAN_CHECK;
        record_kind kind = a->kind == PLAN_SYNC ? RECORD_SYNC_BEFORE : rep ? RECORD_REP_BEFORE : RECORD_CHECK;
        inline_action(b, a, add_record(b, site, i, kind, pc), pc, site->dead);
        if (kind == RECORD_SYNC_BEFORE && a->flags & PLAN_ACQUIRE && !goes_on)
            inline_action(b, a, add_record(b, site, i, RECORD_SYNC_AFTER, pc), pc, site->dead);
    }
}

static void emit_after(builder *b, const plan_site *site, uint64_t next)
{
    for (unsigned i = 0; i < site->action_count; i++) {
        const plan_action *a = &b->module->plan->actions[site->first_action + i];
        if (!is_wanted(a)) continue;
        const bool rep = a->flags & PLAN_DOWN && a->kind == PLAN_CHECK;
        const bool acquire = a->kind == PLAN_SYNC && a->flags & PLAN_ACQUIRE;
        if (!rep && !acquire) continue;
        tramp_span(b, SPAN_AFTER, next, NULL);
        inline_action(b, a, add_record(b, site, i, rep ? RECORD_REP_AFTER : RECORD_SYNC_AFTER, next), next, 0);
    }
}

/* The instruction at `at`, moved. */
static void emit_moved(builder *b, const insn *i, const uint8_t *bytes, uint64_t at)
{
    uint8_t moved[INSN_MOVED];
    tramp_span(b, SPAN_MOVED, at, NULL);
    size_t len = insn_move(i, bytes, at, code_here(&b->c), moved);
    if (!len) b->c.failed = true;
    emit_bytes(&b->c, moved, len);
}

/* A system call that changes handlers or masks is C's, which may make it itself: then rcx is not 0. Before a system call rcx is
 * free. Flags are not changed, and the stack is not used for any other call: there may be none. */
static void emit_system(builder *b, const insn *i, const uint8_t *bytes, uint64_t at)
{
    size_t to_c[2], to_instruction[2];
    tramp_span(b, SPAN_CHECK, at, NULL);
    emit_lea32(&b->c, RCX, (memory){RAX, NO_REGISTER, 1, -SYS_rt_sigaction});
    to_c[0] = emit_branch_if_zero(&b->c);
    emit_lea32(&b->c, RCX, (memory){RAX, NO_REGISTER, 1, -SYS_rt_sigprocmask});
    to_c[1] = emit_branch_if_zero(&b->c);
    to_instruction[0] = emit_jump_short(&b->c);
    emit_fill_short(&b->c, to_c[0]);
    emit_fill_short(&b->c, to_c[1]);
    emit_move_stack(&b->c, -PROBE_RED_ZONE);
    emit_push_number(&b->c, add_system_records(b, at, at + i->length));
    emit_call_absolute(&b->c, (uint64_t)&probe.low[LOW_CHECK]);
    tramp_span(b, SPAN_SYSTEM, at, NULL);
    emit_move_stack(&b->c, PROBE_RED_ZONE + 8);
    to_instruction[1] = emit_branch_if_zero(&b->c);
    const size_t done = emit_jump_short(&b->c);
    emit_fill_short(&b->c, to_instruction[0]);
    emit_fill_short(&b->c, to_instruction[1]);
    emit_moved(b, i, bytes, at);
    emit_fill_short(&b->c, done);
}

static bool is_system_call(const plan_site *site, const insn *i)
{
    return site && site->flags & PLAN_SYSTEM && i->map == 1 && i->opcode == 0x05;
}

static const plan_site *site_of(const builder *b, uint64_t at, const insn *i)
{
    const plan_site *site = plan_site_at(b->module->plan, at - b->module->bias);
    return site && site->length == i->length ? site : NULL;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const plan_site *site[RUN_CHECKS];
    uint8_t number[RUN_CHECKS]; /* of the action at its site */
    unsigned count;
    uint32_t registers; /* of all addresses */
} run_draft;

/* False: they cannot all be in it. */
static bool join_run(const builder *b, run_draft *run, const plan_site *site)
{
    enum { MOST_REGISTERS = 9 }; /* what is left is enough for the checks */
    for (unsigned i = 0; i < site->action_count; i++) {
        const plan_action *a = &b->module->plan->actions[site->first_action + i];
        if (!is_wanted(a) || a->kind == PLAN_CAPTURE) continue;
        run->registers |= inline_registers(a);
        if (run->count == RUN_CHECKS || a->flags & PLAN_DOWN || !inline_can_join(b, a) ||
            __builtin_popcount(run->registers) > MOST_REGISTERS)
            return false;
        run->site[run->count] = site;
        run->number[run->count++] = (uint8_t)i;
    }
    return true;
}

/* The run that begins at `start`. Returns where it ends: behind its last check's instruction; `start`: there is none. */
static uint64_t find_run(const builder *b, const tramp_range *range, uint64_t start, run_draft *run)
{
    uint64_t end = start;
    insn i;
    run->count = run->registers = 0;
    for (uint64_t at = start; at < range->end; at += i.length) {
        const size_t offset = at - range->start;
        if (!insn_decode(range->bytes + offset, range->end - at, &i) || i.flow != INSN_PLAIN) break;
        const plan_site *site = site_of(b, at, &i);
        if (!site || !site->action_count) continue;
        run_draft longer = *run;
        if (at - start > site->early || !join_run(b, &longer, site)) break;
        *run = longer;
        end = at + i.length;
    }
    return run->count > 1 ? end : start;
}

/* Returns where it ends. */
static uint64_t emit_run(builder *b, const tramp_range *range, uint64_t start)
{
    run_draft run;
    if (b->singly || b->run_count == RUNS) return start;
    const uint64_t end = find_run(b, range, start, &run);
    if (end == start) return start;
    run_check checks[RUN_CHECKS];
    for (unsigned i = 0; i < run.count; i++) {
        checks[i].action = &b->module->plan->actions[run.site[i]->first_action + run.number[i]];
        checks[i].record = add_record(b, run.site[i], run.number[i], RECORD_CHECK, start);
    }
    tramp_span(b, SPAN_CHECK, start, NULL);
    for (unsigned i = 0; i < run.count; i++)
        if (!i || run.site[i] != run.site[i - 1]) emit_ran(b, run.site[i]);
    inline_run(b, checks, run.count, start, run.site[0]->dead, b->run_count);
    insn i;
    for (uint64_t at = start; at < end; at += i.length) {
        const uint8_t *bytes = range->bytes + (at - range->start);
        insn_decode(bytes, range->end - at, &i);
        emit_moved(b, &i, bytes, at);
    }
    b->runs[b->run_count++] = (tramp_run){.start = start, .end = end, .back = b->c.len};
    return end;
}

/* --- a range ------------------------------------------------------------------------------------------------------ */

/* Returns how its last instruction goes on. */
static insn_flow emit_range(builder *b, const tramp_range *range)
{
    insn i = {0};
    for (uint64_t at = range->start, next; at < range->end && !b->c.failed; at = next) {
        const uint8_t *bytes = range->bytes + (at - range->start);
        if (!insn_decode(bytes, range->end - at, &i)) {
            b->c.failed = true;
            break;
        }
        next = at + i.length;
        const plan_site *site = site_of(b, at, &i);
        const bool goes_on = i.flow == INSN_PLAIN || i.flow == INSN_STRANGE;
        if (site && site->action_count) {
            const uint64_t end = emit_run(b, range, at);
            if (end != at) { /* only what goes on is in it */
                next = end;
                continue;
            }
            tramp_span(b, SPAN_CHECK, at, NULL);
            emit_ran(b, site);
            emit_before(b, site, at, goes_on);
        }
        if (is_system_call(site, &i)) {
            emit_system(b, &i, bytes, at);
            continue;
        }
        emit_moved(b, &i, bytes, at);
        if (site && goes_on) emit_after(b, site, next);
    }
    return i.flow;
}

/* The checks of runs one by one, out of line. */
static void emit_again(builder *b, const tramp_range *range)
{
    b->singly = true;
    for (unsigned i = 0; i < b->run_count; i++) {
        tramp_run *run = &b->runs[i];
        run->again = b->c.len;
        emit_range(b, &(tramp_range){run->start, run->end, range->bytes + (run->start - range->start)});
        tramp_span(b, SPAN_AFTER, run->end, NULL);
        emit_jump(&b->c, b->c.at + run->back);
    }
}

static void emit_all(builder *b, const tramp_range *range)
{
    const insn_flow flow = emit_range(b, range);
    const bool ends = flow == INSN_END || flow == INSN_JUMP || flow == INSN_CALL || flow == INSN_CALL_IND;
    if (!ends) {
        tramp_span(b, SPAN_AFTER, range->end, NULL);
        emit_jump(&b->c, range->end);
    }
    emit_again(b, range);
    inline_slow_parts(b);
}

uint64_t tramp_build(probe_code *module, const tramp_range *range)
{
    static builder b; /* large; one module at a time is patched */
    const uint32_t spans = module->span_count, records = module->record_count;
    for (int singly = 0; singly < 2; singly++) {
        b.module = module;
        b.slow_count = b.run_count = 0;
        b.singly = singly;
        b.c = (code){.out = module->arena + module->arena_used,
                     .cap = module->arena_size - module->arena_used,
                     .at = (uint64_t)(module->arena + module->arena_used)};
        emit_all(&b, range);
        if (!b.c.failed) break;
        module->span_count = spans;
        module->record_count = records;
    }
    if (b.c.failed) {
        module->is_full |= b.c.cap - b.c.len < INSN_MOVED; /* nothing longer is written at once */
        return 0;
    }
    module->arena_used += (b.c.len + 15) & ~(size_t)15;
    if (module->arena_used > module->arena_size) module->arena_used = module->arena_size;
    return b.c.at;
}
