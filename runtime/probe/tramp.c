/* Trampolines.
 *
 * For each displaced instruction: its checks, then the instruction itself at its new place; at the end a jump to behind
 * the last one. A check of 1, 2, 4, 8 or 16 aligned bytes is settled inline when this thread's epoch is in the cell
 * already (runtime/core/core.h, "same-epoch path"):
 *
 *     lea   -128(%rsp), %rsp;  push ...       only when registers are needed that are not dead here
 *     lea   address, a
 *     lahf;  seto %al                         only when flags are not dead
 *     cmpl  $0, concurrent;  je done          one thread: nothing to check
 *     mov   a, b;  shr $26, b;  and $0x1fffff, b
 *     mov   regions(,b,8), b;  test b, b;  je slow
 *     test  $size - 1, a;  jne slow
 *     and   $0x3ffffff, a
 *     mov   %fs:thread, c;  mov epoch(c), c
 *     for each cell: a read: cmp c, read(b,a,4);  je next;   both: cmp c, write(b,a,4);  jne slow;   next:
 *   done:   add $127, %al;  sahf;  pop ...;  lea 128(%rsp), %rsp
 *
 * An address that is known now needs neither a nor the first lines. The directory lies below 2 GB, so its address fits
 * into an instruction. The slow part is out of line: it restores all, and calls C (quick.c) with the address, which is
 * computed again; what C cannot do there is done with all registers of the program below the red zone (check.c).
 *
 * Everything between is described by spans, so that a signal handler can be shown the program's own state. */
#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

enum { SLOW_PARTS = 96, SLOW_JUMPS = 16, SITE_LIMIT = 255 };

typedef enum { FORM_FIXED, FORM_COMPUTED, FORM_CALL } check_form;

typedef struct {
    const plan_action *action;
    check_form form;
    uint64_t address; /* FORM_FIXED */
    uint8_t a, b, c;
} check_plan;

typedef enum { /* what is not as it should be */
    SLOW_CELL,    /* a cell: not this thread's epoch */
    SLOW_READERS, /* nor is it known to have read it with others; a and b are still in their registers */
    SLOW_OTHER
} slow_entry;

typedef struct { /* a call of C, out of line */
    uint32_t record;
    uint64_t pc;
    uint32_t dead; /* registers of the program */
    check_plan plan;
    size_t jumps[SLOW_JUMPS]; /* that lead here */
    uint8_t to[SLOW_JUMPS];   /* slow_entry */
    uint8_t jump_count, saved_count;
    uint8_t saved[4];
    bool flags, overflow; /* saved in rax */
    size_t back;          /* where it goes on */
} slow_part;

typedef struct {
    probe_code *module;
    code c;
    slow_part slow[SLOW_PARTS];
    unsigned slow_count;
} builder;

size_t tramp_bound(uint32_t actions, uint32_t instructions, uint32_t ranges)
{
    return (size_t)actions * 512 + (size_t)instructions * INSN_MOVED + (size_t)ranges * 32 + PROBE_PAGE;
}

static void add_span(builder *b, span_kind kind, uint64_t pc, const slow_part *slow)
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
    };
    return at;
}

/* --- a check ------------------------------------------------------------------------------------------------------ */

static bool is_fast_size(uint32_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

static check_form form_of(const plan_action *a, uint64_t bias, uint64_t *address)
{
    if (a->kind != PLAN_CHECK || a->count != 1 || a->width != 8 || a->bits != PLAN_NOTHING || !is_fast_size(a->size))
        return FORM_CALL;
    const bool has_index = a->index != PLAN_NOTHING, has_base = a->base != PLAN_NOTHING;
    if ((has_index && a->index >= 16) || a->index == RSP || a->segment == PLAN_SEGMENT_GS) return FORM_CALL;
    const bool fixed = !has_index && (!has_base || a->base == PLAN_MODULE) && a->segment == PLAN_SEGMENT_NONE;
    if (fixed) {
        *address = (uint64_t)a->disp + (a->base == PLAN_MODULE ? bias : 0);
        const bool usual = *address < (uint64_t)1 << 47 && !(*address & (a->size - 1));
        return usual ? FORM_FIXED : FORM_CALL;
    }
    if ((has_base && a->base >= 16) || a->disp != (int32_t)a->disp) return FORM_CALL;
    if (a->segment == PLAN_SEGMENT_FS && has_base && has_index) return FORM_CALL;
    return FORM_COMPUTED;
}

static bool is_part(const check_plan *p)
{
    return p->form == FORM_COMPUTED && p->action->size < FT_GRANULE;
}

/* Registers for the check: dead ones first; others are put on the list of those to save. */
static uint8_t take_register(uint32_t *free, uint32_t *others, slow_part *s)
{
    uint32_t *from = *free ? free : others;
    uint8_t reg = (uint8_t)__builtin_ctz(*from);
    if (from == others) s->saved[s->saved_count++] = reg;
    *from &= *from - 1;
    return reg;
}

static void choose_registers(check_plan *p, slow_part *s, uint32_t dead)
{
    const uint32_t all = 0xffff & ~(1u << RSP), address = (p->action->base < 16 ? 1u << p->action->base : 0) |
                                                          (p->action->index < 16 ? 1u << p->action->index : 0);
    uint32_t free = dead & all, others = all & ~free;
    s->flags = (dead & PLAN_DEAD_STATUS) != PLAN_DEAD_STATUS;
    s->overflow = s->flags && !(dead & PLAN_DEAD_OF);
    if (s->flags) {
        if (!(free & 1 << RAX)) s->saved[s->saved_count++] = RAX;
        free &= ~(1u << RAX);
        others &= ~(1u << RAX);
    }
    if (p->form == FORM_CALL) return;
    if (p->form == FORM_COMPUTED) { /* not one of those it is computed from, and not rax while flags are in it */
        uint32_t good = free & ~address, poor = others & ~address;
        p->a = take_register(&good, &poor, s);
        free &= ~(1u << p->a);
        others &= ~(1u << p->a);
    }
    if (is_part(p)) { /* the address is wanted again */
        free &= ~address;
        others &= ~address;
    }
    p->b = take_register(&free, &others, s);
    p->c = take_register(&free, &others, s);
}

static void emit_save(builder *b, const slow_part *s)
{
    if (s->saved_count) emit_move_stack(&b->c, -PROBE_RED_ZONE);
    for (unsigned i = 0; i < s->saved_count; i++)
        emit_push(&b->c, s->saved[i]);
}

static void emit_save_flags(builder *b, const slow_part *s)
{
    if (s->flags) emit_byte(&b->c, 0x9f);                  /* lahf */
    if (s->overflow) emit_bytes(&b->c, "\x0f\x90\xc0", 3); /* seto %al */
}

static void emit_restore(builder *b, const slow_part *s)
{
    if (s->overflow) emit_bytes(&b->c, "\x04\x7f", 2); /* add $127, %al */
    if (s->flags) emit_byte(&b->c, 0x9e);              /* sahf */
    for (unsigned i = s->saved_count; i-- > 0;)
        emit_pop(&b->c, s->saved[i]);
    if (s->saved_count) emit_move_stack(&b->c, PROBE_RED_ZONE);
}

/* Into register `to`, when the stack pointer is `pushed` below the program's. */
static void emit_address(builder *b, const plan_action *a, uint8_t to, int64_t pushed)
{
    const int64_t disp = a->disp + (a->base == RSP ? pushed : 0);
    if (disp != (int32_t)disp) b->c.failed = true;
    memory m = {.base = a->base < 16 ? a->base : NO_REGISTER,
                .index = a->index < 16 ? a->index : NO_REGISTER,
                .scale = a->scale,
                .disp = (int32_t)disp};
    if (a->segment == PLAN_SEGMENT_FS) { /* the thread pointer is its own first word */
        emit_load_fs(&b->c, to, 0);
        if (m.base == NO_REGISTER)
            m.base = to;
        else
            m.index = to, m.scale = 1;
    }
    emit_lea(&b->c, to, m);
}

static void slow_jump(builder *b, slow_part *s, unsigned condition, slow_entry to)
{
    if (s->jump_count == SLOW_JUMPS) {
        b->c.failed = true;
        return;
    }
    s->to[s->jump_count] = (uint8_t)to;
    s->jumps[s->jump_count++] = emit_branch(&b->c, condition);
}

static void slow_begins(builder *b, const slow_part *s, slow_entry to)
{
    for (unsigned j = 0; j < s->jump_count; j++)
        if (s->to[j] == to) emit_fill(&b->c, s->jumps[j]);
}

static uint32_t offset_of(uint64_t address) /* of its cell, in its region */
{
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1;
    return (uint32_t)(address & in_region & ~3u) * (sizeof(ft_cell) / FT_GRANULE);
}

static uint32_t cells_of(const check_plan *p)
{
    return p->action->size < FT_GRANULE ? 1 : p->action->size / FT_GRANULE;
}

/* A read of what several threads read: all cells have the read vector that was found here last, and what is known of it
 * still is true. Registers are as emit_cells has left them. */
static void emit_known(builder *b, const check_plan *p, slow_part *s)
{
    const uint32_t offset = p->form == FORM_FIXED ? offset_of(p->address) : 0;
    for (uint32_t cell = 0; cell < cells_of(p); cell++) {
        const memory m = {p->b, p->form == FORM_FIXED ? NO_REGISTER : p->a, 4,
                          (int32_t)(offset + cell * sizeof(ft_cell) + offsetof(ft_cell, read_site))};
        if (!cell)
            emit_load32(&b->c, p->c, m);
        else
            emit_compare32(&b->c, p->c, m);
        if (cell) slow_jump(b, s, JNE, SLOW_READERS);
    }
    const int32_t self = probe.self_offset;
    emit_compare32_fs(&b->c, p->c, self + (int32_t)(offsetof(probe_thread, known) + s->record % PROBE_KNOWN * 4));
    slow_jump(b, s, JNE, SLOW_READERS);
    emit_load_fs(&b->c, p->b, self + (int32_t)offsetof(probe_thread, thread));
    emit_load32(&b->c, p->c, (memory){p->b, NO_REGISTER, 1, offsetof(ft_thread, epoch)});
    emit_compare32_fs(&b->c, p->c, self + (int32_t)offsetof(probe_thread, known_epoch));
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_load(&b->c, p->c, absolute((uint64_t)&probe.core->given_back));
    emit_compare_fs(&b->c, p->c, self + (int32_t)offsetof(probe_thread, known_given_back));
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_restore(b, s);
    emit_jump(&b->c, b->c.at + s->back);
}

/* A part of a cell that is split: this access was made in this epoch, and nothing was cleared since. Registers are as
 * emit_cells has left them, and those of the address are the program's. */
static void emit_part(builder *b, const check_plan *p, slow_part *s)
{
    const plan_action *a = p->action;
    const int32_t table = probe.self_offset + (int32_t)offsetof(probe_thread, parts) +
                          (int32_t)(part_kind(a->flags & PLAN_WRITE, a->size) * sizeof probe_self.parts[0]);
    emit_address(b, a, p->a, s->saved_count ? PROBE_RED_ZONE + 8 * s->saved_count : 0);
    emit_move(&b->c, p->b, p->a);
    emit_and32(&b->c, p->b, PROBE_PARTS - 1);
    emit_shift_left(&b->c, p->b, 4);
    const memory part = {p->b, NO_REGISTER, 1, table};
    emit_fs(&b->c);
    emit_compare(&b->c, p->a, memory_at(part, offsetof(probe_part, addr)));
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_fs(&b->c);
    emit_compare32(&b->c, p->c, memory_at(part, offsetof(probe_part, epoch)));
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_load32(&b->c, p->c, absolute((uint64_t)&probe.core->cleared));
    emit_fs(&b->c);
    emit_compare32(&b->c, p->c, memory_at(part, offsetof(probe_part, cleared)));
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_restore(b, s);
    emit_jump(&b->c, b->c.at + s->back);
}
_Static_assert(sizeof(probe_part) == 16 && FT_GRANULE == 4, "emit_part");

static void emit_cells(builder *b, const check_plan *p, slow_part *s, uint32_t offset)
{
    const bool is_write = p->action->flags & PLAN_WRITE;
    const bool is_fixed = p->form == FORM_FIXED;
    emit_load_fs(&b->c, p->c, probe.self_offset + (int32_t)offsetof(probe_thread, thread));
    emit_load32(&b->c, p->c, (memory){p->c, NO_REGISTER, 1, offsetof(ft_thread, epoch)});
    for (uint32_t cell = 0; cell < cells_of(p); cell++) {
        memory m = {p->b, is_fixed ? NO_REGISTER : p->a, 4, (int32_t)(offset + cell * sizeof(ft_cell))};
        size_t next = 0;
        if (!is_write) {
            m.disp += (int32_t)offsetof(ft_cell, read);
            emit_compare32(&b->c, p->c, m);
            next = emit_branch_short(&b->c, JE);
            m.disp -= (int32_t)offsetof(ft_cell, read);
        }
        emit_compare32(&b->c, p->c, m);
        slow_jump(b, s, JNE, SLOW_CELL);
        if (!is_write) emit_fill_short(&b->c, next);
    }
}
_Static_assert(offsetof(ft_cell, write) == 0 && sizeof(ft_cell) == 16 && FT_GRANULE == 4, "layout");

static void emit_fast_path(builder *b, const check_plan *p, slow_part *s)
{
    const uint64_t regions = (uint64_t)&probe.core->regions;
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1, size = p->action->size;
    if (p->form == FORM_FIXED) {
        emit_load(&b->c, p->b, absolute(regions + 8 * (p->address >> FT_REGION_BITS)));
        emit_test(&b->c, p->b);
        slow_jump(b, s, JE, SLOW_OTHER);
        emit_cells(b, p, s, offset_of(p->address));
        return;
    }
    emit_move(&b->c, p->b, p->a);
    emit_shift_right(&b->c, p->b, FT_REGION_BITS);
    emit_and32(&b->c, p->b, FT_REGION_COUNT - 1);
    emit_load(&b->c, p->b, (memory){NO_REGISTER, p->b, 8, (int32_t)regions});
    emit_test(&b->c, p->b);
    slow_jump(b, s, JE, SLOW_OTHER);
    if (size > 1) {
        emit_test8(&b->c, p->a, (uint8_t)(size - 1));
        slow_jump(b, s, JNE, SLOW_OTHER);
    }
    emit_and32(&b->c, p->a, in_region & ~3u);
    emit_cells(b, p, s, 0);
}
_Static_assert(FT_REGION_COUNT == 1 << (47 - FT_REGION_BITS), "the directory covers 47 bits");

/* C is called, or the inlined path makes it needless. `dead`: registers and flags that may be overwritten. */
static void emit_action(builder *b, const plan_action *a, uint32_t record, uint64_t pc, uint32_t dead)
{
    if (b->slow_count == SLOW_PARTS) {
        b->c.failed = true;
        return;
    }
    slow_part *s = &b->slow[b->slow_count++];
    *s = (slow_part){.record = record, .pc = pc, .dead = dead & 0xffff};
    check_plan p = {.action = a};
    p.form = probe.records[record].kind == RECORD_CHECK ? form_of(a, b->module->bias, &p.address) : FORM_CALL;
    choose_registers(&p, s, dead);
    emit_save(b, s);
    s->plan = p;
    if (p.form == FORM_COMPUTED)
        emit_address(b, a, p.a, s->saved_count ? PROBE_RED_ZONE + 8 * s->saved_count : 0);
    emit_save_flags(b, s);
    emit_compare32_zero(&b->c, absolute((uint64_t)&probe.core->concurrent));
    size_t done = 0;
    if (p.form == FORM_CALL) {
        slow_jump(b, s, JNE, SLOW_OTHER);
    } else {
        done = emit_branch(&b->c, JE);
        emit_fast_path(b, &p, s);
        emit_fill(&b->c, done);
    }
    emit_restore(b, s);
    s->back = b->c.len;
}

/* --- the first access of an epoch --------------------------------------------------------------------------------- */

static bool is_for_first(const check_plan *p)
{
    return p->form != FORM_CALL && (p->action->size == 4 || p->action->size == 8);
}

/* The offset and the region, wherever they are, to where first.S wants them. */
static void emit_first_address(builder *b, const check_plan *p)
{
    const bool crossed = p->form == FORM_COMPUTED && p->b == RDI;
    if (crossed && p->a == RSI) {
        emit_exchange(&b->c, RDI, RSI);
        return;
    }
    if (crossed) emit_move(&b->c, RSI, RDI);
    if (p->form == FORM_COMPUTED && p->a != RDI) emit_move(&b->c, RDI, p->a);
    if (!crossed && p->b != RSI) emit_move(&b->c, RSI, p->b);
    if (p->form == FORM_FIXED) emit_load_number32(&b->c, RDI, (uint32_t)(p->address & ((1u << FT_REGION_BITS) - 1)));
}

/* Makes the check if it is simple (first.S); else goes on behind this. */
static void emit_first(builder *b, const check_plan *p, slow_part *s)
{
    uint32_t live = PROBE_FIRST & ~s->dead;
    for (unsigned i = 0; i < s->saved_count; i++)
        live &= ~(1u << s->saved[i]);
    if (!s->saved_count) emit_move_stack(&b->c, -PROBE_RED_ZONE);
    for (uint8_t r = 0; r < 16; r++)
        if (live >> r & 1) emit_push(&b->c, r);
    const int32_t pushed = PROBE_RED_ZONE + 8 * (s->saved_count + __builtin_popcount(live));
    emit_first_address(b, p);
    emit_load_number32(&b->c, RCX, probe.records[s->record].site);
    emit_load_fs(&b->c, RDX, probe.self_offset + (int32_t)offsetof(probe_thread, thread));
    emit_lea(&b->c, R8, (memory){RSP, NO_REGISTER, 1, pushed});
    const unsigned which = (p->action->flags & PLAN_WRITE ? 2 : 0) + (p->action->size == 8);
    emit_call_absolute(&b->c, (uint64_t)&probe.low[LOW_FIRST + which]);
    for (uint8_t r = 16; r-- > 0;)
        if (live >> r & 1) emit_pop(&b->c, r);
    if (!s->saved_count) emit_move_stack(&b->c, PROBE_RED_ZONE);
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_restore(b, s);
    emit_jump(&b->c, b->c.at + s->back);
}

/* Requires the program's registers, and the record's number on the stack. */
static void emit_call(builder *b, const check_plan *p)
{
    const plan_action *a = p->action;
    const bool through_rax = a->segment == PLAN_SEGMENT_FS && a->base == RAX;
    const bool quick = p->form != FORM_CALL && !through_rax;
    if (quick) {
        emit_push(&b->c, RAX);
        if (p->form == FORM_FIXED)
            emit_load_number(&b->c, RAX, p->address);
        else
            emit_address(b, a, RAX, PROBE_RED_ZONE + 16);
    }
    emit_call_absolute(&b->c, (uint64_t)&probe.low[quick ? LOW_QUICK : LOW_CHECK]);
}

static void emit_slow_parts(builder *b)
{
    for (unsigned i = 0; i < b->slow_count; i++) {
        slow_part *s = &b->slow[i];
        add_span(b, SPAN_SLOW, s->pc, s);
        slow_begins(b, s, SLOW_CELL);
        if (is_part(&s->plan)) {
            emit_part(b, &s->plan, s);
            add_span(b, SPAN_SLOW, s->pc, s);
        } else if (s->plan.form != FORM_CALL && !(s->plan.action->flags & PLAN_WRITE)) {
            emit_known(b, &s->plan, s);
            add_span(b, SPAN_SLOW, s->pc, s);
        }
        slow_begins(b, s, SLOW_READERS);
        if (is_for_first(&s->plan)) {
            emit_first(b, &s->plan, s);
            add_span(b, SPAN_SLOW, s->pc, s);
        }
        slow_begins(b, s, SLOW_OTHER);
        emit_restore(b, s);
        emit_move_stack(&b->c, -PROBE_RED_ZONE);
        emit_push_number(&b->c, s->record);
        emit_call(b, &s->plan);
        emit_move_stack(&b->c, PROBE_RED_ZONE + 8);
        emit_jump(&b->c, b->c.at + s->back);
    }
}

/* --- a range ------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const plan_action *a)
{
    return a->claim == PLAN_CLAIM_NONE || probe.report->options.audit;
}

static void emit_before(builder *b, const plan_site *site, uint64_t pc, bool goes_on)
{
    for (unsigned i = 0; i < site->action_count; i++) {
        const plan_action *a = &b->module->plan->actions[site->first_action + i];
        if (!is_wanted(a) || a->kind == PLAN_CAPTURE) continue;
        const bool rep = a->flags & PLAN_DOWN && a->kind == PLAN_CHECK;
        record_kind kind = a->kind == PLAN_SYNC ? RECORD_SYNC_BEFORE : rep ? RECORD_REP_BEFORE : RECORD_CHECK;
        emit_action(b, a, add_record(b, site, i, kind, pc), pc, site->dead);
        if (kind == RECORD_SYNC_BEFORE && a->flags & PLAN_ACQUIRE && !goes_on)
            emit_action(b, a, add_record(b, site, i, RECORD_SYNC_AFTER, pc), pc, site->dead);
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
        add_span(b, SPAN_AFTER, next, NULL);
        emit_action(b, a, add_record(b, site, i, rep ? RECORD_REP_AFTER : RECORD_SYNC_AFTER, next), next, 0);
    }
}

static void emit_range(builder *b, const tramp_range *range)
{
    probe_code *m = b->module;
    insn i = {0};
    for (uint64_t at = range->start; at < range->end && !b->c.failed; at += i.length) {
        const uint8_t *bytes = range->bytes + (at - range->start);
        if (!insn_decode(bytes, range->end - at, &i)) {
            b->c.failed = true;
            return;
        }
        const plan_site *site = plan_site_at(m->plan, at - m->bias);
        const bool goes_on = i.flow == INSN_PLAIN || i.flow == INSN_STRANGE;
        if (site && site->length != i.length) site = NULL;
        if (site && site->action_count) {
            add_span(b, SPAN_CHECK, at, NULL);
            emit_before(b, site, at, goes_on);
        }
        add_span(b, SPAN_MOVED, at, NULL);
        uint8_t moved[INSN_MOVED];
        size_t len = insn_move(&i, bytes, at, code_here(&b->c), moved);
        if (!len) b->c.failed = true;
        emit_bytes(&b->c, moved, len);
        if (site && goes_on) emit_after(b, site, at + i.length);
    }
    const bool ends = i.flow == INSN_END || i.flow == INSN_JUMP || i.flow == INSN_CALL || i.flow == INSN_CALL_IND;
    if (!ends) {
        add_span(b, SPAN_AFTER, range->end, NULL);
        emit_jump(&b->c, range->end);
    }
}

uint64_t tramp_build(probe_code *module, const tramp_range *range)
{
    static builder b; /* large; one module at a time is patched */
    b.module = module;
    b.slow_count = 0;
    b.c = (code){.out = module->arena + module->arena_used,
                 .cap = module->arena_size - module->arena_used,
                 .at = (uint64_t)(module->arena + module->arena_used)};
    const uint32_t spans = module->span_count, records = module->record_count;
    emit_range(&b, range);
    emit_slow_parts(&b);
    if (b.c.failed) {
        module->span_count = spans;
        module->record_count = records;
        return 0;
    }
    module->arena_used += (b.c.len + 15) & ~(size_t)15;
    if (module->arena_used > module->arena_size) module->arena_used = module->arena_size;
    return b.c.at;
}
