/* Types of values from declarations: parameters, results of functions, variables, and members on the way from one pointer to the
 * next. A declaration is believed about what is where in a struct: numbers are no pointers, bytes are text, an index of an array
 * member stays in it. It is not believed about which object a pointer points to, since programs cast. */
#include "static/pointer/typed.h"

#include <stdlib.h>

#include "static/pointer/kinds.h"
#include "static/pointer/linear.h"
#include "static/pointer/shape.h"

enum { DEPTH = 12, ROUNDS = 8 };

static const int64_t LARGEST = 1ll << 31; /* types and offsets: what is larger is not believed */

typedef struct {
    const generator *g;
    typed_value *types;
    bool *seen;
    bool waits; /* what is made of a value that was not seen yet is not seen either */
} typing;

static bool is_byte(const image_type *type)
{
    return type && type->kind == IMAGE_TYPE_INT && type->size == 1;
}

static typed_value pointer_to(const image_type *type, int64_t at)
{
    bool known = type && type->size && type->size < (uint64_t)LARGEST && type->kind != IMAGE_TYPE_VOID && !type->is_declaration;
    return known && at > -LARGEST && at < LARGEST ? (typed_value){.to = type, .at = at} : (typed_value){0};
}

/* A value that is declared so. */
static typed_value declared(const image_type *type)
{
    return type && type->kind == IMAGE_TYPE_POINTER ? pointer_to(type->target, 0) : (typed_value){0};
}

/* --- inside of types ------------------------------------------------------------------------------------------------------ */

/* The member of a struct that a place is in, with the place in it; NULL: none, or one of several. */
static const image_type *member_at(const image_type *type, int64_t *at, bool *last)
{
    const image_member *found = NULL;
    *last = true;
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        if (!m->type || m->bit_size || m->offset > (uint64_t)LARGEST || m->type->size > (uint64_t)LARGEST) continue;
        if (*at < (int64_t)m->offset) continue;
        if (*at >= (int64_t)(m->offset + m->type->size) && m->type->size) continue;
        if (found) return NULL;
        found = m;
    }
    for (uint32_t i = 0; found && i < type->member_count; i++)
        if (type->members[i].offset > found->offset) *last = false;
    if (!found) return NULL;
    *at -= (int64_t)found->offset;
    return found->type;
}

/* The array that a place is in; NULL: none. `*at`: the place in it; `*open`: it may be longer than declared. */
static const image_type *array_of(typed_value place, int64_t *at, bool *open)
{
    const image_type *type = place.to;
    bool last = true, ends = false;
    *at = place.at;
    for (unsigned depth = 0; type && type->kind == IMAGE_TYPE_STRUCT && depth < DEPTH; depth++) {
        type = *at < 0 ? NULL : member_at(type, at, &last);
        ends |= !last;
    }
    *open = !ends;
    return type && type->kind == IMAGE_TYPE_ARRAY && type->size ? type : NULL;
}

/* The array of typed_array. */
static const image_type *array_around(typed_value place, int64_t *at)
{
    bool open;
    const image_type *array = array_of(place, at, &open);
    return open ? NULL : array;
}

bool typed_array(typed_value place, int64_t *start, int64_t *end)
{
    int64_t at;
    const image_type *type = array_around(place, &at);
    if (!type) return false;
    *start = -at;
    *end = (int64_t)type->size - at;
    return true;
}

/* The place that an index leads to, when no constant will be added any more: in an array it is the same place of each element. */
static typed_value settled(typed_value place)
{
    int64_t at;
    if (!place.to || !place.step) return place;
    const image_type *array = array_around(place, &at);
    bool each = array && array->target && array->target->size && place.step % array->target->size == 0;
    return each ? (typed_value){.to = place.to, .at = place.at} : (typed_value){0};
}

bool typed_is_bytes(typed_value pointer)
{
    pointer = settled(pointer);
    const image_type *type = pointer.to;
    int64_t at = pointer.at;
    bool last;
    for (unsigned depth = 0; type && type->kind == IMAGE_TYPE_STRUCT && depth < DEPTH; depth++)
        type = at < 0 ? NULL : member_at(type, &at, &last);
    while (type && type->kind == IMAGE_TYPE_ARRAY)
        type = type->target;
    return is_byte(type);
}

bool typed_is_text(typed_value pointer)
{
    enum { SHORT = 8 }; /* a member at the end that is no longer than this may stand for any number of bytes */
    int64_t at;
    bool open;
    pointer = settled(pointer);
    const image_type *array = pointer.to ? array_of(pointer, &at, &open) : NULL;
    return array && is_byte(array->target) && at >= 0 && (array == pointer.to || !open || array->size > SHORT);
}

bool typed_is_number(typed_value place)
{
    return place.to && place.to->kind == IMAGE_TYPE_STRUCT && place.at >= 0 && place.at < (int64_t)place.to->size &&
           !shape_type_may_point(place.to, (uint64_t)place.at);
}

/* A pointer to a place, with an index of a stride added. */
static typed_value indexed(typed_value place, const generator *g, ir_value index, unsigned scale)
{
    if (!index || !place.to) return place;
    int64_t at, shift;
    bool back;
    uint64_t stride = linear_stride(g->ir, index, scale, &shift, &back);
    if (!stride) return pointer_to(place.to, linear_sum(place.at, shift));
    if (stride % place.to->size == 0 && shift % (int64_t)place.to->size == 0) return place;
    typed_value moved = pointer_to(place.to, linear_sum(place.at, shift));
    if (!moved.to) return moved;
    typed_value pending = {.to = moved.to, .at = moved.at, .step = stride}, each = settled(pending);
    if (each.to || !array_around(moved, &at)) return each.to ? each : pending;
    const image_type *scalar = image_type_at(place.to, (uint64_t)moved.at, 8);
    return scalar && stride % 8 == 0 && (stride == 8 || scalar->kind == IMAGE_TYPE_POINTER) ? moved : pending;
}

/* --- values --------------------------------------------------------------------------------------------------------------- */

/* Parameters fill the registers in order, as long as none is a struct. */
typed_value typed_parameter(const image *img, const lift_func *func, unsigned reg)
{
    const image_function *debug = image_function_at(img, func->entry);
    if (!debug || debug->start != func->entry || strchr(func->name, '.')) return (typed_value){0};
    if (debug->returns && (debug->returns->kind == IMAGE_TYPE_STRUCT || debug->returns->kind == IMAGE_TYPE_UNION))
        return (typed_value){0};
    for (uint32_t i = 0, at = 0; i < debug->parameter_count; i++) {
        const image_type *type = debug->variables[i].type;
        if (!type || (type->kind != IMAGE_TYPE_FLOAT && type->size > 8) || type->kind == IMAGE_TYPE_STRUCT ||
            type->kind == IMAGE_TYPE_UNION || type->kind == IMAGE_TYPE_OTHER)
            break;
        if (type->kind == IMAGE_TYPE_FLOAT) continue;
        if (at++ != reg) continue;
        return is_byte(type->target) ? (typed_value){0} : declared(type); /* bytes are what any caller casts to */
    }
    return (typed_value){0};
}

static typed_value static_place(const generator *g, int64_t addr)
{
    const address_home *home = address_find(g->module->statics, addr);
    const image_type *type = home ? g->program->sites.data[home->site].type : NULL;
    if (!type) return (typed_value){0};
    if (type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->size)
        return pointer_to(type->target, (addr - home->start) % (int64_t)type->target->size);
    return pointer_to(type, addr - home->start);
}

static typed_value frame_place(const generator *g, ir_value v)
{
    int32_t offset;
    uint8_t base;
    if (!ir_frame_offset(g->ir, v, &offset, &base) || base) return (typed_value){0};
    const address_home *home = address_find(&g->frame, offset);
    return home ? pointer_to(g->out->sites.data[home->site].type, offset - home->start) : (typed_value){0};
}

/* a + b * scale, of which one is the pointer. */
static typed_value sum(const generator *g, const typed_value *types, ir_value a, ir_value b, unsigned scale, int64_t imm)
{
    if (b && scale == 1 && !types[a].to && g->kinds[a] != KIND_POINTER) {
        ir_value t = a;
        a = b, b = t;
    }
    typed_value base = types[a];
    if (!base.to || (b && g->kinds[b] == KIND_POINTER)) return (typed_value){0};
    typed_value place = pointer_to(base.to, linear_sum(base.at, imm));
    if (!base.step || !place.to) return indexed(place, g, b, scale);
    place.step = base.step;
    return b ? indexed(settled(place), g, b, scale) : place;
}

static typed_value place_of(const generator *g, const typed_value *types, const ir_insn *access, int64_t lane)
{
    if (access->flags & (IR_WIDE | IR_REP | IR_FS | IR_GS)) return (typed_value){0};
    if (access->a) return settled(sum(g, types, access->a, access->b, access->scale, linear_sum(access->imm, lane)));
    return access->b ? (typed_value){0} : static_place(g, linear_sum(access->imm, lane));
}

typed_value typed_access(const generator *g, const ir_insn *access, int64_t lane)
{
    return place_of(g, g->types, access, lane);
}

typed_value typed_guessed(const generator *g, const ir_insn *access)
{
    return place_of(g, g->guesses, access, 0);
}

typed_value typed_loaded(typed_value place)
{
    if (!place.to || place.at < 0) return (typed_value){0};
    if (typed_is_number(place)) return (typed_value){.number = true};
    if (place.to->kind == IMAGE_TYPE_POINTER) return place.at % 8 ? (typed_value){0} : declared(place.to);
    int64_t at = place.at % (int64_t)place.to->size;
    return place.to->kind == IMAGE_TYPE_STRUCT ? declared(image_type_at(place.to, (uint64_t)at, 8)) : (typed_value){0};
}

typed_value typed_returned(const image *img, const lift_func *func)
{
    const image_function *debug = image_function_at(img, func->entry);
    return debug && debug->start == func->entry ? declared(debug->returns) : (typed_value){0};
}

static typed_value result(const generator *g, const ir_insn *insn)
{
    const ir_insn *call = &g->ir->insns[insn->a];
    if (insn->var != IR_RAX || insn->b || (call->op != IR_CALL && call->op != IR_TAIL)) return (typed_value){0};
    uint32_t callee = generate_callee(g->program, g->module, g->func_id, call);
    const pta_func *f = callee == PTA_NO_FUNC ? NULL : &g->program->funcs.data[callee];
    if (!f || !f->lift) return (typed_value){0};
    return typed_returned(g->program->modules[f->module]->img, f->lift);
}

static bool same(typed_value a, typed_value b)
{
    return a.to == b.to && a.at == b.at && a.step == b.step && a.number == b.number;
}

/* What all operands that are seen are; constants are anything. */
static typed_value merged(const typing *t, const ir_value *values, uint32_t count, bool *seen)
{
    typed_value all = {0};
    *seen = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!values[i] || !t->seen[values[i]] || t->g->ir->insns[values[i]].op == IR_CONST) continue;
        if (*seen && !same(all, t->types[values[i]])) return (typed_value){0};
        all = t->types[values[i]];
        *seen = true;
    }
    return all;
}

/* What a variable is declared as that has been promoted from the frame; shared places have no type. */
static typed_value slot_type(const generator *g, uint16_t var)
{
    if (var < IR_SLOT || var - IR_SLOT >= (int)g->ir->slot_count) return (typed_value){0};
    const ir_slot *slot = &g->ir->slots[var - IR_SLOT];
    const address_home *home = slot->base || slot->size != 8 ? NULL : address_find(&g->frame, slot->offset);
    if (!home || home->start != slot->offset) return (typed_value){0};
    return declared(g->out->sites.data[home->site].type);
}

static bool rounds_down(const generator *g, const ir_insn *insn)
{
    enum { MOST = 16 };
    int64_t mask = insn->b ? g->ir->insns[insn->b].imm : insn->imm;
    if (insn->b && g->ir->insns[insn->b].op != IR_CONST) return false;
    return mask < 0 && mask >= -MOST && !(-mask & (-mask - 1));
}

/* Not before what it is made of. */
static bool is_early(const typing *t, const ir_insn *insn)
{
    ir_value of = 0;
    if (insn->op == IR_COPY || insn->op == IR_LEA || insn->op == IR_SUB || insn->op == IR_AND) of = insn->a;
    if (insn->op == IR_LOAD) of = t->g->ir->insns[insn->a].a;
    return t->waits && of && !t->seen[of];
}

static typed_value flow_type(const typing *t, ir_value v, bool *seen)
{
    static const uint8_t arg_of[IR_FLAGS] = {[IR_RDI] = PTA_RDI + 1, [IR_RSI] = PTA_RSI + 1, [IR_RDX] = PTA_RDX + 1,
                                             [IR_RCX] = PTA_RCX + 1, [IR_R8] = PTA_R8 + 1,   [IR_R9] = PTA_R9 + 1};
    const generator *g = t->g;
    const ir_insn *insn = &g->ir->insns[v];
    typed_value base;
    *seen = true;
    if (insn->width != 8 && insn->op != IR_ENTRY && insn->op != IR_PHI && insn->op != IR_ADDRESS) return (typed_value){0};
    typed_value frame = frame_place(g, v);
    if (frame.to) return frame;
    *seen = !is_early(t, insn);
    if (!*seen) return (typed_value){0};
    switch (insn->op) {
    case IR_ENTRY: return insn->var < IR_FLAGS && arg_of[insn->var] ? typed_parameter(g->img, g->func, arg_of[insn->var] - 1u) : (typed_value){0};
    case IR_ADDRESS: return static_place(g, insn->imm);
    case IR_COPY: return t->types[insn->a];
    case IR_LEA:
        return insn->a ? sum(g, t->types, insn->a, insn->b, insn->scale, insn->imm) : (typed_value){0};
    case IR_SUB:
        if (insn->b) return (typed_value){0};
        base = t->types[insn->a];
        return insn->imm == INT64_MIN || base.step ? (typed_value){0} : pointer_to(base.to, linear_sum(base.at, -insn->imm));
    case IR_AND: /* rounded down, among bytes */
        base = t->types[insn->a];
        return rounds_down(g, insn) && typed_is_text(base) ? base : (typed_value){0};
    case IR_LOAD: return typed_loaded(place_of(g, t->types, &g->ir->insns[insn->a], insn->imm));
    case IR_RESULT: return result(g, insn);
    case IR_SELECT: return merged(t, (ir_value[]){insn->a, insn->b}, 2, seen);
    case IR_PHI: return merged(t, g->ir->args + insn->a, insn->b, seen);
    default: return (typed_value){0};
    }
}

static typed_value type_of(const typing *t, ir_value v, bool *seen)
{
    const ir_insn *insn = &t->g->ir->insns[v];
    typed_value slot = slot_type(t->g, insn->var);
    if (!slot.to) return flow_type(t, v, seen);
    if (is_byte(slot.to)) { /* what any parameter is cast to */
        typed_value flow = flow_type(t, v, seen);
        bool fresh = insn->op == IR_COPY && !flow.to && !flow.number && t->g->ir->insns[ir_origin(t->g->ir, v)].op == IR_RESULT;
        return fresh ? slot : flow;
    }
    *seen = true;
    return slot;
}

static typed_value *infer(const generator *g, bool waits)
{
    const ir_func *ir = g->ir;
    typing t = {.g = g, .types = base_alloc_zero(ir->insn_count, sizeof *t.types), .waits = waits};
    if (!g->img->has_debug) return t.types;
    t.seen = base_alloc_zero(ir->insn_count, sizeof *t.seen);
    bool changed = true;
    for (unsigned round = 0; changed; round++) {
        changed = false;
        for (ir_value v = 1; v < ir->insn_count; v++) {
            bool seen;
            typed_value now = type_of(&t, v, &seen);
            if (seen == t.seen[v] && same(now, t.types[v])) continue;
            if (round >= ROUNDS) now = (typed_value){0}; /* an offset that grows with each turn of a loop */
            if (t.seen[v] && same(now, t.types[v])) continue;
            t.types[v] = now;
            t.seen[v] = seen;
            changed = true;
        }
        if (round > 2 * ROUNDS) break;
    }
    if (changed) memset(t.types, 0, ir->insn_count * sizeof *t.types);
    free(t.seen);
    return t.types;
}

typed_value *typed_infer(const generator *g)
{
    return infer(g, false);
}

typed_value *typed_guess(const generator *g)
{
    return infer(g, true);
}

/* --- elements of arrays --------------------------------------------------------------------------------------------------- */

typedef struct { /* a + b * scale + imm */
    ir_value a, b;
    unsigned scale;
    int64_t imm;
} address_sum;

/* The sum with one index that an address is made of in several steps. */
static bool unfold(const generator *g, address_sum *sum)
{
    for (unsigned depth = 0; sum->a && !sum->b && depth < DEPTH; depth++) {
        const ir_insn *insn = &g->ir->insns[sum->a];
        if (insn->width != 8 || (insn->op != IR_COPY && insn->op != IR_LEA)) return false;
        sum->a = insn->a;
        if (insn->op == IR_COPY) continue;
        sum->b = insn->b;
        sum->scale = insn->scale;
        sum->imm = linear_sum(sum->imm, insn->imm);
    }
    if (!sum->a || !sum->b) return false;
    if (!g->types[sum->a].to && sum->scale == 1) {
        ir_value t = sum->a;
        sum->a = sum->b, sum->b = t;
    }
    return g->types[sum->a].to && !g->types[sum->a].step && g->kinds[sum->b] != KIND_POINTER;
}

uint32_t typed_elements(const generator *g, const ir_insn *insn, int64_t lane, ir_value *base, int64_t deltas[TYPED_ELEMENTS])
{
    address_sum sum = {insn->a, insn->b, insn->scale, linear_sum(insn->imm, lane)};
    int64_t shift, start, end;
    bool back;
    if (!g->img->has_debug || !unfold(g, &sum)) return 0;
    int64_t stride = (int64_t)linear_stride(g->ir, sum.b, sum.scale, &shift, &back);
    if (!stride) return 0;
    typed_value place = pointer_to(g->types[sum.a].to, linear_sum(g->types[sum.a].at, linear_sum(sum.imm, shift)));
    if (!place.to || form_is_far(shift)) return 0;
    if (!typed_array(place, &start, &end)) { /* x[i + 1], not s.x[i] with the place of x in the index */
        place.at -= shift;
        if (!shift || shift % stride || !typed_array(place, &start, &end)) return 0;
    }
    if ((end - start + stride - 1) / stride > TYPED_ELEMENTS) return 0;
    uint32_t n = 0;
    for (int64_t k = -(-start / stride) * stride; k < end; k += stride)
        deltas[n++] = place.at - g->types[sum.a].at + k;
    *base = sum.a;
    return n;
}
