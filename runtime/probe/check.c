/* What trampolines call: actions that the inlined path cannot settle. The address is computed from the registers of the
 * program. Everything here may run in the middle of anything: no libc, no lock of the program. */
#include "runtime/probe/emit.h"
#include "runtime/probe/probe.h"

static uint64_t value_of(uint8_t value, const probe_registers *r)
{
    return value < 16 ? r->general[value] : 0;
}

static uint64_t segment_base(uint8_t segment)
{
    uint64_t base = 0;
    if (segment == PLAN_SEGMENT_FS) __asm__("mov %%fs:0, %0" : "=r"(base));
    if (segment == PLAN_SEGMENT_GS) { /* hardly anybody; ask the kernel */
        enum { ARCH_GET_GS_BASE = 0x1004, ARCH_PRCTL = 158 };
        sys_call(ARCH_PRCTL, ARCH_GET_GS_BASE, (long)&base, 0, 0, 0, 0);
    }
    return base;
}

static uint64_t bit_offset(const plan_action *a, const probe_registers *r)
{
    int64_t bits = (int64_t)value_of(a->bits, r);
    if (a->size == 4) bits = (int32_t)bits;
    if (a->size == 2) bits = (int16_t)bits;
    int64_t elements = bits >> __builtin_ctz(8 * a->size); /* towards minus infinity; the size is a power of two */
    return (uint64_t)elements * a->size;
}

static uint64_t address_of(const probe_record *record, const probe_registers *r)
{
    const plan_action *a = record->action;
    uint64_t addr = (uint64_t)a->disp + value_of(a->index, r) * a->scale;
    addr += a->base == PLAN_MODULE ? record->bias : value_of(a->base, r);
    if (a->bits != PLAN_NOTHING) addr += bit_offset(a, r);
    if (a->width == 4) addr = (uint32_t)addr;
    if (a->segment != PLAN_SEGMENT_NONE) addr += segment_base(a->segment);
    return addr;
}

static void check(const probe_record *record, const probe_registers *r, ft_thread *thread)
{
    const plan_action *a = record->action;
    const uint64_t addr = address_of(record, r);
    const bool is_write = a->flags & PLAN_WRITE;
    if (a->count == 1) {
        (is_write ? ft_write : ft_read)(thread, addr, a->size, record->site);
        return;
    }
    uint64_t elements = a->counter == PLAN_NOTHING ? a->count : value_of(a->counter, r);
    ft_strided range = {.addr = addr, .size = a->size, .count = elements, .stride = a->stride};
    (is_write ? ft_write_strided : ft_read_strided)(thread, range, record->site);
}

static void rep_after(const probe_record *record, const probe_registers *r, ft_thread *thread)
{
    const plan_action *a = record->action;
    const probe_rep *rep = &probe_self.rep[record->number % PROBE_REPS];
    uint64_t done = rep->count - value_of(a->counter, r);
    if (!done) return;
    uint64_t first = rep->down ? rep->addr - (done - 1) * a->size : rep->addr;
    (a->flags & PLAN_WRITE ? ft_write : ft_read)(thread, first, done * a->size, record->site);
}

void probe_check(probe_registers *r, uint32_t number)
{
    const uint64_t direction_flag = 1 << 10;
    const probe_record *record = &probe.records[number];
    probe_thread *self = &probe_self;
    ft_thread *thread = self->thread;
    if (record->kind == RECORD_SYSTEM) {
        const bool is_made = signal_system_call(r) || mask_system_call(r);
        r->general[RCX] = is_made;
        r->record += is_made; /* what a handler is shown: it is behind it */
        return;
    }
    if (thread == &probe.nobody) return;
    r->general[RSP] = (uint64_t)r->stack;
    self->stack_seen = (uint64_t)r->stack;
    self->frame_seen = r->general[RBP];
    self->pc_seen = record->pc;
    self->back_seen = back_address(record->back, self->stack_seen, self->frame_seen);
    const bool is_nested = __atomic_load_n(&thread->inside, __ATOMIC_RELAXED) != 0; /* a handler came in between */
    if (self->sync.waiting && !is_nested) sync_settle(&self->sync);
    switch (record->kind) {
    case RECORD_CHECK:
        check(record, r, thread);
        break;
    case RECORD_SYNC_BEFORE:
        self->atomic = address_of(record, r);
        if (!is_nested && record->action->flags & PLAN_RELEASE) ft_atomic_before(thread, self->atomic);
        break;
    case RECORD_SYNC_AFTER:
        if (!is_nested) ft_atomic_after(thread, self->atomic);
        break;
    case RECORD_REP_BEFORE:
        self->rep[record->number % PROBE_REPS] = (probe_rep){.addr = address_of(record, r),
                                                             .count = value_of(record->action->counter, r),
                                                             .down = r->flags & direction_flag};
        break;
    case RECORD_REP_AFTER:
        rep_after(record, r, thread);
        break;
    default:
        break;
    }
    self->stack_seen = 0;
}
