/* Stack slots become variables.
 *
 * Requires the places of accesses and what else can reach them, from frame.c. Overlapping accesses form a cluster, which
 * is split into lanes of eight bytes, one variable each; an access that lies across lanes keeps its cluster in memory.
 * Calls need care twice: the slots at the stack pointer may be arguments, and those below it are overwritten. */
#include "static/lift/slot.h"

#include <stdlib.h>

enum { REGS = 16, MAX_STACK_ARGS = 32 };

typedef struct {
    raw_func *raw;
    const ir_func *ir;
    slot_spans killed;
    slot_places direct;
    bool *read;              /* per slot: some instruction uses it */
    slot_places overwritten; /* at: slot number; access: the call */
    uint32_t most_overwritten;
} slots;

static int by_start(const void *x, const void *y)
{
    const slot_span *a = x, *b = y;
    return (a->start > b->start) - (a->start < b->start);
}

static int by_place(const void *x, const void *y)
{
    const slot_place *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->access > b->access) - (a->access < b->access);
}

static int32_t place_end(const slots *f, const slot_place *p)
{
    return p->at + f->raw->code.data[p->access].width;
}

/* Bytes lo.. of a cluster are split into lanes of eight; a part of an access must lie inside one. */
static bool fits_lanes(const slots *f, const slot_place *p, int32_t lo)
{
    unsigned within = (unsigned)(p->at - lo) % 8, width = f->raw->code.data[p->access].width;
    return within == 0 || within + width <= 8;
}

/* Loads and stores of one access become copies of slot variables. `slot`: the first lane's number. */
static void promote(slots *f, const slot_place *p, int32_t lo, int32_t hi, uint32_t slot)
{
    raw_func *raw = f->raw;
    raw->code.data[p->access].flags |= IR_PROMOTED;
    uint32_t machine = raw->code.data[p->access].insn;
    for (uint32_t i = p->access + 1; i < raw->code.len && raw->code.data[i].insn == machine; i++) {
        ir_insn *insn = &raw->code.data[i];
        if ((insn->op != IR_LOAD && insn->op != IR_STORE) || insn->a != p->access) continue;
        uint32_t at = (uint32_t)(p->at - lo) + (uint32_t)insn->imm, lane = at / 8, byte = at % 8;
        int32_t size = hi - lo - (int32_t)lane * 8;
        bool whole = byte == 0 && insn->width == (size < 8 ? size : 8);
        ir_value var = RAW_VAR | (IR_SLOT + slot + lane);
        if (insn->op == IR_LOAD) {
            insn->op = whole ? IR_COPY : IR_EXTRACT;
            insn->a = var;
            insn->imm = whole ? 0 : byte;
        } else {
            insn->op = whole ? IR_COPY : IR_INSERT;
            insn->a = whole ? insn->b : var;
            insn->b = whole ? 0 : insn->b;
            insn->imm = whole ? 0 : byte;
            insn->var = (uint16_t)(IR_SLOT + slot + lane);
        }
    }
}

static void promote_cluster(slots *f, uint32_t first, uint32_t end, int32_t hi)
{
    raw_func *raw = f->raw;
    int32_t lo = f->direct.data[first].at;
    uint32_t lanes = (uint32_t)(hi - lo + 7) / 8, slot = raw->slots.len;
    for (uint32_t i = first; i < end; i++)
        if (!fits_lanes(f, &f->direct.data[i], lo)) return;
    if (slot + lanes > IR_MAX_SLOTS) return;
    bool realigned = lo > FRAME_LIMIT;
    for (uint32_t k = 0; k < lanes; k++) {
        int32_t size = hi - lo - (int32_t)k * 8;
        vec_push(&raw->slots, (ir_slot){.offset = lo + (int32_t)k * 8 - (realigned ? FRAME_REALIGNED : 0),
                                        .size = (uint8_t)(size < 8 ? size : 8),
                                        .base = realigned});
    }
    for (uint32_t i = first; i < end; i++)
        promote(f, &f->direct.data[i], lo, hi, slot);
}

static void promote_all(slots *f)
{
    if (f->killed.len) qsort(f->killed.data, f->killed.len, sizeof *f->killed.data, by_start);
    if (f->direct.len) qsort(f->direct.data, f->direct.len, sizeof *f->direct.data, by_place);
    uint32_t k = 0;
    int32_t killed_to = INT32_MIN;
    for (uint32_t first = 0, end; first < f->direct.len; first = end) {
        int32_t lo = f->direct.data[first].at, hi = place_end(f, &f->direct.data[first]);
        for (end = first + 1; end < f->direct.len && f->direct.data[end].at < hi; end++) {
            int32_t to = place_end(f, &f->direct.data[end]);
            if (to > hi) hi = to;
        }
        while (k < f->killed.len && f->killed.data[k].start < hi) {
            if (f->killed.data[k].end > killed_to) killed_to = f->killed.data[k].end;
            k++;
        }
        if (killed_to <= lo) promote_cluster(f, first, end, hi);
    }
}

/* First slot at or above an encoded place. Slots lie in the order of their encoded places. */
static uint32_t slot_at(const raw_func *raw, int32_t at)
{
    uint32_t lo = 0, hi = raw->slots.len;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        const ir_slot *s = &raw->slots.data[mid];
        if (s->offset + (s->base ? FRAME_REALIGNED : 0) < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The slots at the stack pointer of a call may be arguments: the call uses them. */
static void add_stack_args(slots *f, uint32_t call, int32_t rsp)
{
    raw_func *raw = f->raw;
    int32_t at = rsp + (raw->code.data[call].op == IR_TAIL ? 8 : 0);
    uint32_t first = slot_at(raw, at), count = 0;
    while (first + count < raw->slots.len && count < MAX_STACK_ARGS) {
        const ir_slot *s = &raw->slots.data[first + count];
        if (s->offset + (s->base ? FRAME_REALIGNED : 0) != at + 8 * (int32_t)count) break;
        f->read[first + count] = true;
        count++;
    }
    if (!count) return;
    uint32_t start = raw->args.len, old = raw->code.data[call].a;
    vec_reserve(&raw->args, start + IR_CALL_ARGS + count);
    for (uint32_t k = 0; k < IR_CALL_ARGS; k++)
        vec_push(&raw->args, raw->args.data[old + k]);
    for (uint32_t k = 0; k < count; k++)
        vec_push(&raw->args, RAW_VAR | (IR_SLOT + first + k));
    raw->code.data[call].a = start;
    raw->code.data[call].b = IR_CALL_ARGS + count;
}

/* Slots below the stack pointer do not survive a call. Only those that are read somewhere matter. */
static void find_overwritten(slots *f, uint32_t call, int32_t rsp)
{
    const raw_func *raw = f->raw;
    if (raw->code.data[call].op != IR_CALL || f->overwritten.len > f->most_overwritten) return;
    uint32_t end = slot_at(raw, rsp);
    for (uint32_t s = rsp > FRAME_LIMIT ? slot_at(raw, FRAME_LIMIT) : 0; s < end; s++)
        if (f->read[s]) vec_push(&f->overwritten, (slot_place){(int32_t)s, call});
}

/* Calls `look` on every call and tail call whose stack pointer is known. */
static void each_call(slots *f, void (*look)(slots *f, uint32_t call, int32_t rsp))
{
    const raw_func *raw = f->raw;
    for (uint32_t n = 0; n < f->ir->rpo_count; n++) {
        uint32_t b = f->ir->rpo[n];
        int32_t rsp = raw->frame_in[(size_t)b * REGS + IR_RSP];
        for (uint32_t i = raw->first[b]; i < raw->first[b + 1]; i++) {
            uint8_t op = raw->code.data[i].op;
            if ((op == IR_CALL || op == IR_TAIL) && frame_is(rsp)) look(f, i, rsp);
            if (raw->code.data[i].var == IR_RSP) rsp = raw->frame[i];
        }
    }
}

static ir_value moved(const uint32_t *number, ir_value v)
{
    return v & RAW_VAR ? v : number[v];
}

static int by_access(const void *x, const void *y)
{
    const slot_place *a = x, *b = y;
    if (a->access != b->access) return a->access < b->access ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Puts an IR_CLOBBER behind each call for each slot that it overwrites; everything behind moves. */
static void insert_overwritten(slots *f)
{
    raw_func *raw = f->raw;
    uint32_t len = raw->code.len, added = f->overwritten.len, next = 0, n = 0, block = 0;
    ir_insn *code = base_alloc((size_t)(len + added) * sizeof *code);
    int32_t *places = base_alloc((size_t)(len + added) * sizeof *places);
    uint32_t *number = base_alloc((size_t)len * sizeof *number);
    qsort(f->overwritten.data, added, sizeof *f->overwritten.data, by_access);
    for (uint32_t i = 0; i < len; i++) {
        for (; block <= raw->func->block_count && raw->first[block] == i; block++)
            raw->first[block] = n;
        number[i] = n;
        places[n] = raw->frame[i];
        code[n++] = raw->code.data[i];
        for (; next < added && f->overwritten.data[next].access == i; next++) {
            places[n] = FRAME_OTHER;
            code[n++] = (ir_insn){.op = IR_CLOBBER, .width = 8, .insn = raw->code.data[i].insn, .a = i,
                                  .var = (uint16_t)(IR_SLOT + f->overwritten.data[next].at)};
        }
    }
    for (; block <= raw->func->block_count; block++)
        raw->first[block] = n;
    for (uint32_t i = 0; i < n; i++) {
        if (!raw_has_args(code[i].op)) {
            code[i].a = moved(number, code[i].a);
            code[i].b = moved(number, code[i].b);
        }
        code[i].c = moved(number, code[i].c);
    }
    for (uint32_t i = 0; i < raw->args.len; i++)
        raw->args.data[i] = moved(number, raw->args.data[i]);
    free(number);
    free(raw->code.data);
    free(raw->frame);
    raw->code.data = code;
    raw->code.len = n, raw->code.cap = len + added;
    raw->frame = places;
}

/* False: too many slots below too many calls, which no compiler makes. */
static bool mind_calls(slots *f)
{
    raw_func *raw = f->raw;
    if (!raw->slots.len) return true;
    f->read = base_alloc_zero(raw->slots.len, sizeof *f->read);
    for (uint32_t i = 1; i < raw->code.len; i++) {
        const ir_insn *insn = &raw->code.data[i];
        if (!raw_has_args(insn->op) && (insn->a & RAW_VAR) && (insn->a & ~RAW_VAR) >= IR_SLOT)
            f->read[(insn->a & ~RAW_VAR) - IR_SLOT] = true;
    }
    each_call(f, add_stack_args);
    f->most_overwritten = 10000 + 8 * raw->code.len;
    each_call(f, find_overwritten);
    bool fits = f->overwritten.len <= f->most_overwritten;
    if (fits && f->overwritten.len) insert_overwritten(f);
    free(f->read);
    return fits;
}

bool raw_slots(raw_func *raw, const ir_func *ir, slot_places direct, slot_spans killed)
{
    slots f = {.raw = raw, .ir = ir, .direct = direct, .killed = killed};
    promote_all(&f);
    bool good = mind_calls(&f);
    vec_free(&f.overwritten);
    return good;
}
