/* From bytes to fields.
 *
 * The unit is the memory location of C11: a scalar, or a run of adjacent bit fields, since compilers access those
 * together as they like. All elements of an array are one, since loops are unrolled and vectorised. */
#include "reach.h"

#include <stdio.h>
#include <stdlib.h>

/* --- fields of a type -------------------------------------------------------------------------------------------- */

typedef struct {
    field_emit *emit;
    void *user;
    bool any;
} visitor;

static bool ends_open(const image_type *type) /* with a flexible array */
{
    if (!type) return false;
    if (type->kind == IMAGE_TYPE_ARRAY) return type->count == 0 && type->size == 0;
    return type->kind == IMAGE_TYPE_STRUCT && type->member_count &&
           ends_open(type->members[type->member_count - 1].type);
}

static uint64_t element_size(const image_type *array)
{
    return array->target && array->target->size ? array->target->size : 1;
}

static int64_t modulo(int64_t offset, uint64_t size)
{
    int64_t within = offset % (int64_t)size;
    return within < 0 ? within + (int64_t)size : within;
}

/* A run of bit fields, or another member: [*start, *end) and the number of the next one. */
static uint32_t member_extent(const image_type *type, uint32_t i, uint64_t *start, uint64_t *end)
{
    const image_member *m = &type->members[i++];
    *start = m->offset;
    *end = ends_open(m->type) ? UINT32_MAX : m->offset + (m->type ? m->type->size : 1);
    if (!m->bit_size) return i;
    *start = m->offset + m->bit_offset / 8u;
    *end = m->offset + (m->bit_offset + m->bit_size + 7u) / 8;
    for (; i < type->member_count && type->members[i].bit_size; i++) {
        const image_member *n = &type->members[i];
        uint64_t to = n->offset + (n->bit_offset + n->bit_size + 7u) / 8;
        if (to > *end) *end = to;
    }
    return i;
}

/* Is there, on the way to the place at `offset`, an array for each of the strides? */
static bool absorbs(const image_type *type, int64_t offset, strides by)
{
    if (!by.count) return true;
    if (!type || offset < 0 || (!ends_open(type) && offset >= (int64_t)type->size)) return false;
    if (type->kind == IMAGE_TYPE_UNION) return by.of[0] < type->size;
    if (type->kind == IMAGE_TYPE_STRUCT) {
        uint64_t start, end;
        for (uint32_t i = 0; i < type->member_count;) {
            const image_member *m = &type->members[i];
            i = member_extent(type, i, &start, &end);
            if (offset >= (int64_t)start && offset < (int64_t)end)
                return !m->bit_size && absorbs(m->type, offset - (int64_t)start, by);
        }
        return false;
    }
    if (type->kind != IMAGE_TYPE_ARRAY) return false;
    strides rest = {0};
    for (uint32_t i = 0; i < by.count; i++)
        if (by.of[i] % element_size(type)) strides_add(&rest, by.of[i]);
    return absorbs(type->target, modulo(offset, element_size(type)), rest);
}

int64_t field_place(const image_type *type, int64_t offset, const strides *by, uint64_t *stride)
{
    int64_t place = 0;
    *stride = strides_divisor(by);
    if (!absorbs(type, offset, *by)) return offset;
    *stride = 0;
    while (type && offset >= 0) {
        uint64_t start = 0, end;
        const image_type *inner = NULL;
        if (type->kind == IMAGE_TYPE_ARRAY) {
            offset = modulo(offset, element_size(type));
            inner = type->target;
        }
        for (uint32_t i = 0; type->kind == IMAGE_TYPE_STRUCT && i < type->member_count;) {
            const image_member *m = &type->members[i];
            i = member_extent(type, i, &start, &end);
            if (offset < (int64_t)start || offset >= (int64_t)end || m->bit_size) continue;
            inner = m->type;
            break;
        }
        if (!inner) break;
        place += (int64_t)start;
        offset -= (int64_t)start;
        type = inner;
    }
    return place + offset;
}

/* Bytes [offset, offset + width), with the strides that arrays further in absorb; or, when `step` is given, these bytes
 * and all that are a multiple of it away. */
typedef struct {
    int64_t offset;
    uint64_t width, step;
} bytes;

static bool overlaps(bytes b, uint64_t start, uint64_t end)
{
    int64_t offset = b.offset - (int64_t)start;
    if (!b.step) return offset < (int64_t)(end - start) && offset + (int64_t)b.width > 0;
    uint64_t within = (uint64_t)modulo(offset, b.step);
    return within < end - start || within + b.width > b.step;
}

static void visit(visitor *v, const image_type *type, const char *path, bytes b);

static void visit_struct(visitor *v, const image_type *type, const char *path, bytes b)
{
    uint64_t start, end;
    for (uint32_t i = 0; i < type->member_count;) {
        const image_member *m = &type->members[i];
        i = member_extent(type, i, &start, &end);
        if (!overlaps(b, start, end)) continue;
        char name[512];
        snprintf(name, sizeof name, "%s%s%s", path, m->name[0] ? "." : "", m->name);
        if (m->bit_size) {
            v->any = true;
            v->emit(v->user, name);
        } else {
            visit(v, m->type, name, (bytes){b.offset - (int64_t)start, b.width, b.step});
        }
    }
}

/* All elements are one: the bytes modulo the element's size. */
static void visit_array(visitor *v, const image_type *type, const char *path, bytes b)
{
    uint64_t size = element_size(type);
    char name[512];
    snprintf(name, sizeof name, "%s%s", path, type->name ? "[*]" : "");
    if (b.step) {
        b.step = number_gcd(b.step, size);
        visit(v, type->target, name, b);
        return;
    }
    int64_t within = modulo(b.offset, size);
    uint64_t first = size - (uint64_t)within;
    if (b.width >= size) {
        visit(v, type->target, name, (bytes){0, size, 0});
    } else if (b.width > first) {
        visit(v, type->target, name, (bytes){within, first, 0});
        visit(v, type->target, name, (bytes){0, b.width - first, 0});
    } else {
        visit(v, type->target, name, (bytes){within, b.width, 0});
    }
}

static void visit(visitor *v, const image_type *type, const char *path, bytes b)
{
    if (!b.step) { /* what lies outside is not ours */
        int64_t end = b.offset + (int64_t)b.width;
        if (b.offset < 0) b.offset = 0;
        if (type && type->size && !ends_open(type) && end > (int64_t)type->size) end = (int64_t)type->size;
        if (b.offset >= end) return;
        b.width = (uint64_t)(end - b.offset);
    }
    if (type && type->kind == IMAGE_TYPE_STRUCT) {
        visit_struct(v, type, path, b);
    } else if (type && type->kind == IMAGE_TYPE_ARRAY) {
        visit_array(v, type, path, b);
    } else {
        v->any = true;
        v->emit(v->user, path);
    }
}

void field_each(const object *o, bool heap, const touch *t, field_emit *emit, void *user)
{
    visitor v = {.emit = emit, .user = user};
    /* a heap object may be an array of its type, one that needs no mention */
    image_type many = {
        .kind = IMAGE_TYPE_ARRAY, .target = o->type, .count = UINT32_MAX, .size = o->type->size * UINT64_C(0x10000)};
    const image_type *type = heap && !ends_open(o->type) && o->type->size ? &many : o->type;
    bytes b = {t->offset, t->width, absorbs(type, t->offset, t->by) ? 0 : strides_divisor(&t->by)};
    visit(&v, type, o->name, b);
    if (v.any) return;
    char text[512]; /* padding, or outside the object: it must not get lost */
    snprintf(text, sizeof text, "%s+%lld", o->name, (long long)t->offset);
    emit(user, text);
}

/* --- types of heap objects --------------------------------------------------------------------------------------- */

static int rank(const image_type *type)
{
    return type->kind == IMAGE_TYPE_STRUCT ? 2 : type->kind == IMAGE_TYPE_UNION ? 1 : 0;
}

/* The order in which facts come differs between builds: the choice must not depend on it. */
static bool better(const image_type *new, const image_type *old)
{
    if (!old) return true;
    if (rank(new) != rank(old)) return rank(new) > rank(old);
    if (new->size != old->size) return new->size > old->size;
    return strcmp(new->name, old->name) < 0;
}

static bool give_type(reach *r, const pointers *to, const image_type *type)
{
    bool changed = false;
    if (!type || type->kind != IMAGE_TYPE_POINTER || !type->target || !type->target->size) return false;
    for (uint32_t i = 0; i < to->len; i++) {
        pointer p = to->data[i];
        if (r->roots.data[p.root].kind != ROOT_HEAP || p.offset != 0) continue;
        int64_t offset;
        object *o = object_of(r, p, &offset);
        if (o->type == type->target || !better(type->target, o->type)) continue;
        o->type = type->target;
        changed = true;
    }
    return changed;
}

static bool from_memory(reach *r)
{
    bool changed = false;
    for (uint32_t i = 0; i < r->objects.len; i++) {
        const image_type *type = r->objects.data[i].type;
        bool heap = r->roots.data[r->objects.data[i].root].kind == ROOT_HEAP;
        if (!type || !type->size) continue;
        for (uint32_t k = 0; k < r->objects.data[i].cells.len; k++) {
            const cell *c = &r->objects.data[i].cells.data[k];
            if (c->offset < 0) continue;
            uint64_t at = heap && !ends_open(type) ? (uint64_t)c->offset % type->size : (uint64_t)c->offset;
            changed |= give_type(r, &c->to, image_type_at(type, at, 8));
        }
    }
    return changed;
}

static bool from_signatures(reach *r)
{
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    bool changed = false;
    for (uint32_t i = 1; i < r->contexts.len; i++) {
        const context *c = &r->contexts.data[i];
        const image_function *debug = image_function_at(r->module->img, c->func->entry);
        if (!debug || strchr(c->func->name, '.')) continue; /* .isra and .constprop change the signature */
        changed |= give_type(r, &c->results[0].to, debug->returns);
        for (uint32_t k = 0, used = 0; k < debug->parameter_count && used < 6; k++) {
            const image_type *type = debug->variables[k].type;
            if (!type || rank(type) > 0) break; /* by value: we do not work out its registers */
            if (type->kind == IMAGE_TYPE_FLOAT) continue;
            changed |= give_type(r, &c->params[registers[used++]].to, type);
        }
    }
    return changed;
}

/* The value that a register has from an address on: the one on entry, or that of the instruction which ends there. */
static ir_value register_value(const lift_func *func, uint16_t var, uint64_t start)
{
    const ir_func *ir = func->ir;
    if (start == func->entry)
        for (ir_value v = 1; v < ir->blocks[0].first; v++)
            if (ir->insns[v].op == IR_ENTRY && ir->insns[v].var == var) return v;
    for (ir_value v = ir->insn_count; v-- > ir->blocks[0].first;) {
        const ir_insn *insn = &ir->insns[v];
        const lift_insn *machine = &func->insns[insn->insn];
        if (insn->op != IR_PHI && insn->var == var && machine->addr + machine->len == start) return v;
    }
    return 0;
}

/* What optimised code has in registers, unoptimised code in slots. */
static bool from_variables(reach *r)
{
    bool changed = false;
    for (uint32_t i = 1; i < r->contexts.len; i++) {
        const context *c = &r->contexts.data[i];
        const image_function *debug = image_function_at(r->module->img, c->func->entry);
        const place_list *places = place_variables(r, c->func);
        for (uint32_t k = 0; debug && k < places->len; k++) {
            const image_variable *v = place_variable(debug, &places->data[k]);
            if (!v || places->data[k].var == IR_NOVAR) continue;
            ir_value value = register_value(c->func, places->data[k].var, places->data[k].start);
            changed |= give_type(r, &c->values[value].to, v->type);
        }
        for (ir_value v = 1; debug && v < c->func->ir->insn_count; v++) {
            uint16_t var = c->func->ir->insns[v].var;
            if (var == IR_NOVAR || var < IR_SLOT || c->func->ir->slots[var - IR_SLOT].base) continue;
            for (uint32_t k = 0; k < debug->variable_count; k++)
                if (debug->variables[k].place == IMAGE_PLACE_FRAME &&
                    debug->variables[k].offset + 8 == c->func->ir->slots[var - IR_SLOT].offset)
                    changed |= give_type(r, &c->values[v].to, debug->variables[k].type);
        }
    }
    return changed;
}

void field_infer_types(reach *r)
{
    for (bool again = true; again;) {
        again = from_memory(r);
        again |= from_signatures(r);
        again |= from_variables(r);
    }
}
