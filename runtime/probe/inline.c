/* A check in a trampoline.
 *
 * A check of 1, 2, 4, 8 or 16 aligned bytes is settled inline when this thread's epoch is in the cell
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
 *     for each cell: a read: cmp c, read(b,a,2);  je next;   both: cmp c, write(b,a,2);  jne slow;   next:
 *   done:   add $127, %al;  sahf;  pop ...;  lea 128(%rsp), %rsp
 *
 * An address that is known now needs neither a nor the first lines. The directory lies below 2 GB, so its address fits
 * into an instruction. The slow part is out of line: it restores all, and calls C (quick.c) with the address, which is
 * computed again; what C cannot do there is done with all registers of the program below the red zone (check.c).
 *
 * Everything between is described by spans, so that a signal handler can be shown the program's own state. */
#include "runtime/probe/tramp.h"

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
    return p->form != FORM_CALL && p->action->size < FT_GRANULE;
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

uint32_t inline_registers(const plan_action *a)
{
    return (a->base < 16 ? 1u << a->base : 0) | (a->index < 16 ? 1u << a->index : 0);
}

/* `address`: registers that are wanted for addresses later than for this one. */
static void choose_registers(check_plan *p, slow_part *s, uint32_t dead, uint32_t address)
{
    const uint32_t all = 0xffff & ~(1u << RSP | 1u << RBP), own = inline_registers(p->action);
    uint32_t free = dead & all, others = all & ~free;
    s->flags = (dead & PLAN_DEAD_STATUS) != PLAN_DEAD_STATUS;
    s->overflow = s->flags && !(dead & PLAN_DEAD_OF);
    if (s->flags) {
        if (!(free & 1 << RAX)) s->saved[s->saved_count++] = RAX;
        free &= ~(1u << RAX);
        others &= ~(1u << RAX);
    }
    if (p->form == FORM_CALL) return;
    free &= ~address;
    others &= ~address;
    if (p->form == FORM_COMPUTED || is_part(p)) { /* not one of those it is computed from, and not rax while flags are in it */
        uint32_t good = free & ~own, poor = others & ~own;
        p->a = take_register(&good, &poor, s);
        free &= ~(1u << p->a);
        others &= ~(1u << p->a);
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

static void emit_epoch(builder *b, uint8_t to)
{
    emit_load_fs(&b->c, to, probe.self_offset + (int32_t)offsetof(probe_thread, thread));
    emit_load32(&b->c, to, (memory){to, NO_REGISTER, 1, offsetof(ft_thread, epoch)});
}

/* Back from a slow part that has made the check. */
static void emit_done(builder *b, const slow_part *s)
{
    if (s->run)
        emit_epoch(b, s->plan.c); /* the rest of the run is checked next */
    else
        emit_restore(b, s);
    emit_jump(&b->c, b->c.at + s->back);
}

static uint32_t offset_of(uint64_t address) /* of its cell, in its region */
{
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1;
    return (uint32_t)(address & in_region & ~3u) * (sizeof(ft_epochs) / FT_GRANULE);
}

static uint32_t cells_of(const check_plan *p)
{
    return p->action->size < FT_GRANULE ? 1 : p->action->size / FT_GRANULE;
}

/* A read of what several threads read: all cells have the read vector that was found here last, and what is known of it
 * still is true. Registers are as emit_cells has left them. */
static void emit_known(builder *b, const check_plan *p, slow_part *s)
{
    const uint32_t offset = p->form == FORM_FIXED ? offset_of(p->address) : 0, site = probe.records[s->record].site;
    const int32_t known = probe.self_offset + (int32_t)offsetof(probe_thread, known) +
                          (int32_t)(site % PROBE_KNOWN * sizeof(probe_known));
    emit_compare32_fs(&b->c, p->c, known + (int32_t)offsetof(probe_known, epoch));
    slow_jump(b, s, JNE, SLOW_READERS);
    for (uint32_t cell = 0; cell < cells_of(p); cell++) {
        const memory m = {p->b, p->form == FORM_FIXED ? NO_REGISTER : p->a, 2,
                          (int32_t)(offset + FT_SITES_AT + cell * sizeof(ft_sites) + offsetof(ft_sites, read))};
        if (!cell) {
            emit_load32(&b->c, p->c, m);
            emit_compare32_fs(&b->c, p->c, known + (int32_t)offsetof(probe_known, readers));
        } else {
            emit_compare32(&b->c, p->c, m);
        }
        slow_jump(b, s, JNE, SLOW_READERS);
    }
    emit_load32(&b->c, p->c, absolute((uint64_t)&probe.core->given_back));
    emit_compare32_fs(&b->c, p->c, known + (int32_t)offsetof(probe_known, given_back));
    slow_jump(b, s, JNE, SLOW_READERS);
    emit_done(b, s);
}

/* A part of a cell that is split: this access was made in this epoch, and nothing was cleared since. Registers are as
 * emit_cells has left them, and those of the address are the program's. */
static void emit_part(builder *b, const check_plan *p, slow_part *s)
{
    const plan_action *a = p->action;
    const int32_t table = probe.self_offset + (int32_t)offsetof(probe_thread, parts) +
                          (int32_t)(part_kind(a->flags & PLAN_WRITE, a->size) * sizeof probe_self.parts[0]);
    if (p->form == FORM_FIXED)
        emit_load_number(&b->c, p->a, p->address);
    else
        emit_address(b, a, p->a, s->saved_count ? PROBE_RED_ZONE + 8 * s->saved_count : 0);
    emit_move(&b->c, p->b, p->a);
    emit_and32(&b->c, p->b, PROBE_PARTS - 1);
    emit_shift_left(&b->c, p->b, 4);
    const memory part = {p->b, NO_REGISTER, 1, table};
    emit_fs(&b->c);
    emit_compare(&b->c, p->a, memory_at(part, offsetof(probe_part, addr)));
    slow_jump(b, s, JNE, SLOW_READERS);
    emit_fs(&b->c);
    emit_compare32(&b->c, p->c, memory_at(part, offsetof(probe_part, epoch)));
    slow_jump(b, s, JNE, SLOW_READERS);
    emit_load32(&b->c, p->c, absolute((uint64_t)&probe.core->cleared));
    emit_fs(&b->c);
    emit_compare32(&b->c, p->c, memory_at(part, offsetof(probe_part, cleared)));
    slow_jump(b, s, JNE, SLOW_READERS);
    emit_done(b, s);
}
_Static_assert(sizeof(probe_part) == 16 && FT_GRANULE == 4, "emit_part");

/* Compares the cells with the epoch in c. */
static void emit_some_cells(builder *b, const check_plan *p, slow_part *s, uint32_t count, slow_entry otherwise)
{
    const bool is_write = p->action->flags & PLAN_WRITE;
    const bool is_fixed = p->form == FORM_FIXED;
    const uint32_t offset = is_fixed ? offset_of(p->address) : 0;
    for (uint32_t cell = 0; cell < count; cell++) {
        memory m = {p->b, is_fixed ? NO_REGISTER : p->a, 2, (int32_t)(offset + cell * sizeof(ft_epochs))};
        size_t next = 0;
        if (!is_write) {
            m.disp += (int32_t)offsetof(ft_epochs, read);
            emit_compare32(&b->c, p->c, m);
            next = emit_branch_short(&b->c, JE);
            m.disp -= (int32_t)offsetof(ft_epochs, read);
        }
        emit_compare32(&b->c, p->c, m);
        slow_jump(b, s, JNE, otherwise);
        if (!is_write) emit_fill_short(&b->c, next);
    }
}

static void emit_cells(builder *b, const check_plan *p, slow_part *s)
{
    emit_some_cells(b, p, s, cells_of(p), SLOW_CELL);
}
_Static_assert(offsetof(ft_epochs, write) == 0 && sizeof(ft_epochs) == 8 && FT_GRANULE == 4, "layout");

/* Compressors read words wherever they lie. Of a run the next check may count on an offset that is exact. */
static bool may_be_unaligned(const check_plan *p, const slow_part *s)
{
    return p->form == FORM_COMPUTED && !s->run && (p->action->size == 4 || p->action->size == 8);
}

/* All cells that the access has a part of are this thread's of this epoch. One that is split never is. */
static void emit_unaligned(builder *b, const check_plan *p, slow_part *s)
{
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1, cells = p->action->size / FT_GRANULE + 1;
    emit_epoch(b, p->c);
    emit_and32(&b->c, p->a, in_region & ~3u);
    emit_compare32_number(&b->c, p->a, (in_region & ~3u) - (cells - 1) * FT_GRANULE);
    slow_jump(b, s, JA, SLOW_OTHER);
    emit_some_cells(b, p, s, cells, SLOW_OTHER);
    emit_done(b, s);
}

/* The region into b, and the offset in it into a: the address is there. */
static void emit_place(builder *b, const check_plan *p, slow_part *s)
{
    const uint64_t regions = (uint64_t)&probe.core->regions;
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1, size = p->action->size;
    if (p->form == FORM_FIXED) {
        emit_load(&b->c, p->b, absolute(regions + 8 * (p->address >> FT_REGION_BITS)));
        emit_test(&b->c, p->b);
        slow_jump(b, s, JE, SLOW_OTHER);
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
        slow_jump(b, s, JNE, may_be_unaligned(p, s) ? SLOW_UNALIGNED : SLOW_OTHER);
    }
    emit_and32(&b->c, p->a, in_region & ~3u);
}
_Static_assert(FT_REGION_COUNT == 1 << (47 - FT_REGION_BITS), "the directory covers 47 bits");

void inline_action(builder *b, const plan_action *a, uint32_t record, uint64_t pc, uint32_t dead)
{
    if (b->slow_count == SLOW_PARTS) {
        b->c.failed = true;
        return;
    }
    slow_part *s = &b->slow[b->slow_count++];
    *s = (slow_part){.record = record, .pc = pc, .dead = dead & 0xffff};
    check_plan p = {.action = a};
    p.form = probe.records[record].kind == RECORD_CHECK ? form_of(a, b->module->bias, &p.address) : FORM_CALL;
    choose_registers(&p, s, dead, is_part(&p) ? inline_registers(a) : 0); /* of a part the address is wanted again */
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
        emit_place(b, &p, s);
        emit_epoch(b, p.c);
        emit_cells(b, &p, s);
        emit_fill(&b->c, done);
    }
    emit_restore(b, s);
    s->back = b->c.len;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

bool inline_can_join(const builder *b, const plan_action *a)
{
    uint64_t address;
    return form_of(a, b->module->bias, &address) != FORM_CALL;
}

static bool is_same_base(const plan_action *a, const plan_action *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale && a->segment == b->segment;
}

/* Is the access settled when the other one is? The same epoch is in its cells then. */
static bool is_settled_by(const plan_action *a, const plan_action *other)
{
    const int64_t from = a->disp - other->disp;
    return is_same_base(a, other) && from >= 0 && from < other->size && a->size <= other->size - (uint32_t)from &&
           (other->flags & PLAN_WRITE || !(a->flags & PLAN_WRITE)) && !(from % FT_GRANULE) && a->size >= FT_GRANULE;
}

/* The offset of a check is in a: that of another one with the same base. False: it is not known to be in the same region. */
static bool emit_step(builder *b, const check_plan *from, const check_plan *to, slow_part *s)
{
    const int64_t delta = to->action->disp - from->action->disp;
    const uint32_t in_region = (1u << FT_REGION_BITS) - 1, size = to->action->size;
    if (from->form != FORM_COMPUTED || to->form != FORM_COMPUTED || !is_same_base(from->action, to->action) ||
        from->action->size < FT_GRANULE || delta != (int32_t)delta)
        return false;
    if (delta) emit_lea(&b->c, to->a, (memory){to->a, NO_REGISTER, 1, (int32_t)delta});
    emit_test32(&b->c, to->a, ~in_region | (size - 1));
    slow_jump(b, s, JNE, SLOW_OTHER);
    if (size < FT_GRANULE) emit_and32(&b->c, to->a, ~3u);
    return true;
}

void inline_run(builder *b, const run_check *checks, unsigned count, uint64_t pc, uint32_t dead, unsigned run)
{
    slow_part frame = {.pc = pc, .dead = dead & 0xffff, .run = (uint8_t)(run + 1)};
    check_plan common = {.action = checks[0].action, .form = FORM_COMPUTED};
    uint32_t address = 0;
    for (unsigned i = 0; i < count; i++)
        address |= inline_registers(checks[i].action);
    choose_registers(&common, &frame, dead, address);
    emit_save(b, &frame);
    emit_save_flags(b, &frame);
    emit_compare32_zero(&b->c, absolute((uint64_t)&probe.core->concurrent));
    const size_t done = emit_branch(&b->c, JE);
    emit_epoch(b, common.c);
    const slow_part *last = NULL;
    for (unsigned i = 0; i < count; i++) {
        bool is_settled = false;
        for (unsigned k = 0; k < i; k++)
            is_settled |= is_settled_by(checks[i].action, checks[k].action);
        if (is_settled) continue;
        if (b->slow_count == SLOW_PARTS) {
            b->c.failed = true;
            return;
        }
        slow_part *s = &b->slow[b->slow_count++];
        *s = frame;
        s->record = checks[i].record;
        s->plan = common;
        s->plan.action = checks[i].action;
        s->plan.form = form_of(checks[i].action, b->module->bias, &s->plan.address);
        if (!last || !emit_step(b, &last->plan, &s->plan, s)) {
            if (s->plan.form == FORM_COMPUTED)
                emit_address(b, s->plan.action, s->plan.a, s->saved_count ? PROBE_RED_ZONE + 8 * s->saved_count : 0);
            emit_place(b, &s->plan, s);
        }
        emit_cells(b, &s->plan, s);
        s->back = b->c.len;
        last = s;
    }
    emit_fill(&b->c, done);
    emit_restore(b, &frame);
}

/* --- the first access of an epoch --------------------------------------------------------------------------------- */

static bool is_for_first(const check_plan *p)
{
    return p->form != FORM_CALL && p->action->size <= 8;
}

/* The offset and the region, wherever they are, to where first.S wants them; of a part the address. */
static void emit_first_address(builder *b, const check_plan *p)
{
    if (is_part(p)) {
        if (p->a != RDI) emit_move(&b->c, RDI, p->a);
        return;
    }
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

/* Where the return address lies, into r9; 0: unknown. rbp is the program's: no check uses it for itself. */
static void emit_back(builder *b, const probe_record *record, int32_t pushed)
{
    if (record->back == PROBE_NO_BACK)
        emit_load_number32(&b->c, R9, 0);
    else if (record->back & 1)
        emit_lea(&b->c, R9, (memory){RBP, NO_REGISTER, 1, record->back - 1});
    else
        emit_lea(&b->c, R9, (memory){RSP, NO_REGISTER, 1, record->back + pushed});
}

/* Makes the check if it is simple (first.S); else goes on behind this. */
static void emit_first(builder *b, const check_plan *p, slow_part *s)
{
    uint32_t live = PROBE_FIRST & ~s->dead;
    for (unsigned i = 0; i < s->saved_count; i++)
        live &= ~(1u << s->saved[i]);
    if (s->run) live |= PROBE_FIRST & (1u << p->a | 1u << p->b); /* the next check may be beside this one */
    if (!s->saved_count) emit_move_stack(&b->c, -PROBE_RED_ZONE);
    for (uint8_t r = 0; r < 16; r++)
        if (live >> r & 1) emit_push(&b->c, r);
    const int32_t pushed = PROBE_RED_ZONE + 8 * (s->saved_count + __builtin_popcount(live));
    emit_first_address(b, p);
    emit_load_number32(&b->c, RCX, probe.records[s->record].site);
    emit_load_fs(&b->c, RDX, probe.self_offset + (int32_t)offsetof(probe_thread, thread));
    emit_lea(&b->c, R8, (memory){RSP, NO_REGISTER, 1, pushed});
    emit_back(b, &probe.records[s->record], pushed);
    emit_load_fs(&b->c, R10, probe.self_offset + (int32_t)offsetof(probe_thread, last) +
                                 (int32_t)(probe.records[s->record].site % PROBE_LAST * sizeof probe_self.last[0]));
    const unsigned which = (p->action->flags & PLAN_WRITE ? 4 : 0) + (unsigned)__builtin_ctz(p->action->size);
    emit_call_absolute(&b->c, (uint64_t)&probe.low[LOW_FIRST + which]);
    for (uint8_t r = 16; r-- > 0;)
        if (live >> r & 1) emit_pop(&b->c, r);
    if (!s->saved_count) emit_move_stack(&b->c, PROBE_RED_ZONE);
    if (s->run) slow_jump(b, s, JB, SLOW_WAITING);
    slow_jump(b, s, JNE, SLOW_OTHER);
    emit_done(b, s);
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

void inline_slow_parts(builder *b)
{
    for (unsigned i = 0; i < b->slow_count; i++) {
        slow_part *s = &b->slow[i];
        tramp_span(b, SPAN_SLOW, s->pc, s);
        if (may_be_unaligned(&s->plan, s)) {
            slow_begins(b, s, SLOW_UNALIGNED);
            emit_unaligned(b, &s->plan, s);
            tramp_span(b, SPAN_SLOW, s->pc, s);
        }
        slow_begins(b, s, SLOW_CELL);
        if (is_part(&s->plan)) {
            emit_part(b, &s->plan, s);
            tramp_span(b, SPAN_SLOW, s->pc, s);
        } else if (s->plan.form != FORM_CALL && !(s->plan.action->flags & PLAN_WRITE)) {
            emit_known(b, &s->plan, s);
            tramp_span(b, SPAN_SLOW, s->pc, s);
        }
        slow_begins(b, s, SLOW_READERS);
        if (is_for_first(&s->plan)) {
            emit_first(b, &s->plan, s);
            tramp_span(b, SPAN_SLOW, s->pc, s);
        }
        slow_begins(b, s, SLOW_OTHER);
        emit_restore(b, s);
        const size_t back = s->run ? b->runs[s->run - 1].again : s->back; /* of a run, all is done again one by one */
        if (s->run) {
            emit_jump(&b->c, b->c.at + back);
            if (!is_for_first(&s->plan)) continue;
            /* What is done again would find the check made, and only a call delivers the signal. */
            tramp_span(b, SPAN_SLOW, s->pc, s);
            slow_begins(b, s, SLOW_WAITING);
            emit_restore(b, s);
        }
        emit_move_stack(&b->c, -PROBE_RED_ZONE);
        emit_push_number(&b->c, s->record);
        emit_call(b, &s->plan);
        emit_move_stack(&b->c, PROBE_RED_ZONE + 8);
        emit_jump(&b->c, b->c.at + back);
    }
}
