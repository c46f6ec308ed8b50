/* From bytes to fields.
 *
 * The unit is the memory location of C11: a scalar, or a run of adjacent bit fields, since compilers access those
 * together as they like. All elements of an array are one, since loops are unrolled and vectorised. */
#include "reach.h"

#include <stdio.h>
#include <stdlib.h>

/* --- fields of a type ---------------------------------------------------------------------------------------------------- */

typedef struct {
    field_emit *emit;
    void *user;
    bool any;
} visitor;

static bool ends_open(const image_type *type) /* with a flexible array */
{
    if (!type) return false;
    if (type->kind == IMAGE_TYPE_ARRAY) return type->count == 0 && type->size == 0;
    return type->kind == IMAGE_TYPE_STRUCT && type->member_count && ends_open(type->members[type->member_count - 1].type);
}

/* Do the bytes offset + k * stride, width of them, overlap [0, size)? */
static bool overlaps(int64_t offset, uint64_t stride, uint64_t width, uint64_t size)
{
    if (!stride) return offset < (int64_t)size && offset + (int64_t)width > 0;
    int64_t step = (int64_t)stride, within = offset % step;
    if (within < 0) within += step;
    return (uint64_t)within < size || (uint64_t)within + width > stride;
}

static void visit(visitor *v, const image_type *type, const char *path, int64_t offset, uint64_t stride, uint64_t width);

static void visit_struct(visitor *v, const image_type *type, const char *path, int64_t offset, uint64_t stride,
                         uint64_t width)
{
    for (uint32_t i = 0; i < type->member_count;) {
        const image_member *m = &type->members[i++];
        uint64_t size = m->type ? m->type->size : 1, start = m->offset;
        char name[512];
        snprintf(name, sizeof name, "%s%s%s", path, m->name[0] ? "." : "", m->name);
        if (m->bit_size) { /* with all its neighbours up to the next ordinary member */
            uint64_t end = start + (m->bit_offset + m->bit_size + 7u) / 8;
            for (; i < type->member_count && type->members[i].bit_size; i++) {
                const image_member *n = &type->members[i];
                uint64_t to = n->offset + (n->bit_offset + n->bit_size + 7u) / 8;
                if (to > end) end = to;
            }
            if (!overlaps(offset - (int64_t)start, stride, width, end - start)) continue;
            v->any = true;
            v->emit(v->user, name);
        } else if (ends_open(m->type)) {
            visit(v, m->type, name, offset - (int64_t)start, stride, width);
        } else if (overlaps(offset - (int64_t)start, stride, width, size)) {
            visit(v, m->type, name, offset - (int64_t)start, stride, width);
        }
    }
}

static void visit_array(visitor *v, const image_type *type, const char *path, int64_t offset, uint64_t stride,
                        uint64_t width)
{
    uint64_t element = type->target && type->target->size ? type->target->size : 1;
    char name[512];
    snprintf(name, sizeof name, "%s[*]", path);
    visit(v, type->target, name, offset, number_gcd(stride, element), width);
}

static void visit(visitor *v, const image_type *type, const char *path, int64_t offset, uint64_t stride, uint64_t width)
{
    if (type && !stride && !ends_open(type) && type->size) { /* what lies outside is not ours */
        int64_t end = offset + (int64_t)width;
        if (offset < 0) offset = 0;
        if (end > (int64_t)type->size) end = (int64_t)type->size;
        if (offset >= end) return;
        width = (uint64_t)(end - offset);
    }
    if (!type || (type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_ARRAY)) {
        v->any = true;
        v->emit(v->user, path);
    } else if (type->kind == IMAGE_TYPE_STRUCT) {
        visit_struct(v, type, path, offset, stride, width);
    } else if (!ends_open(type) || offset >= 0 || stride) {
        visit_array(v, type, path, offset, stride, width);
    }
}

void field_each(const object *o, bool heap, int64_t offset, uint64_t stride, uint64_t width, field_emit *emit, void *user)
{
    visitor v = {.emit = emit, .user = user};
    const image_type *type = o->type;
    /* a heap object may be an array of its type */
    if (heap && !ends_open(type) && type->size) stride = number_gcd(stride, type->size);
    visit(&v, type, o->name, offset, stride, width);
    if (v.any) return;
    char text[512]; /* padding, or outside the object: it must not get lost */
    snprintf(text, sizeof text, "%s+%lld", o->name, (long long)offset);
    emit(user, text);
}

/* --- types of heap objects ----------------------------------------------------------------------------------------------- */

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

void field_infer_types(reach *r)
{
    for (bool again = true; again;) {
        again = from_memory(r);
        again |= from_signatures(r);
    }
}
