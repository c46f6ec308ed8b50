/* Roots, pointers, objects and what their memory holds.
 *
 * A pointer is a root with an offset; which object it points into is asked when it is used, since optimised code points
 * past the end of one object and comes back by a displacement. Memory is flow-insensitive: a cell holds every address
 * that anyone stores there; cells and loads that may name the same place by their strides meet. */
#include "reach.h"

#include <stdio.h>
#include <stdlib.h>

/* --- pointers ---------------------------------------------------------------------------------------------------- */

static bool includes(const pointer *p, const pointer *q)
{
    return p->root == q->root && strides_cover(&p->by, &q->by, number_apart(p->offset, q->offset));
}

/* All pointers of one root become the first of them with the stride that covers the others: the first is where a loop
 * began, and inside the object if anything is. */
static void widen(pointers *set, uint32_t from)
{
    uint32_t kept = 0, first = UINT32_MAX;
    uint64_t step = 0;
    for (uint32_t i = 0; i < set->len; i++) {
        pointer p = set->data[i];
        if (p.root != from) {
            set->data[kept++] = p;
        } else if (first == UINT32_MAX) {
            first = kept;
            set->data[kept++] = p;
        } else {
            step = number_gcd(step, number_apart(set->data[first].offset, p.offset));
            strides_join(&set->data[first].by, &p.by);
        }
    }
    if (first != UINT32_MAX) strides_add(&set->data[first].by, step);
    set->len = kept;
}

bool pointers_add(pointers *set, pointer p)
{
    uint32_t kept = 0, same = 0, place = UINT32_MAX;
    for (uint32_t i = 0; i < set->len; i++)
        if (includes(&set->data[i], &p)) return false;
    for (uint32_t i = 0; i < set->len; i++) {
        if (includes(&p, &set->data[i])) {
            if (place != UINT32_MAX) continue;
            place = kept; /* takes the place of what it includes */
            p.offset = set->data[i].offset;
            set->data[kept++] = p;
        } else {
            same += set->data[i].root == p.root;
            set->data[kept++] = set->data[i];
        }
    }
    set->len = kept;
    if (place == UINT32_MAX) vec_push(set, p);
    if (same >= MOST_OFFSETS) widen(set, p.root);
    return true;
}

bool pointers_join(pointers *into, const pointers *from)
{
    bool changed = false;
    for (uint32_t i = 0; i < from->len; i++)
        changed |= pointers_add(into, from->data[i]);
    return changed;
}

/* --- roots ------------------------------------------------------------------------------------------------------- */

static bool same_root(const root *a, const root *b)
{
    return a->kind == b->kind && a->context == b->context && a->site == b->site && a->parent == b->parent &&
           a->offset == b->offset && (a->name == b->name || (a->name && b->name && !strcmp(a->name, b->name)));
}

uint32_t root_intern(reach *r, root wanted)
{
    for (uint32_t i = 0; i < r->roots.len; i++)
        if (same_root(&r->roots.data[i], &wanted)) return i;
    vec_push(&r->roots, wanted);
    return r->roots.len - 1;
}

/* What is loaded from memory that we know nothing of. A path that comes back to an offset it has been through is a list
 * or a tree: all its nodes are one. */
static uint32_t deref(reach *r, uint32_t parent, int64_t offset)
{
    for (uint32_t up = parent; r->roots.data[up].kind == ROOT_DEREF; up = r->roots.data[up].parent)
        if (r->roots.data[up].offset == offset) return up;
    return root_intern(r, (root){.kind = ROOT_DEREF, .parent = parent, .offset = offset});
}

/* --- objects ----------------------------------------------------------------------------------------------------- */

static const char *plain_name(reach *r, const char *name) /* without the .1234 of a function-level static */
{
    const char *dot = strchr(name, '.');
    return dot && dot != name ? arena_string(&r->memory, name, (size_t)(dot - name)) : name;
}

static const char *format(reach *r, const char *what, const char *name, int64_t number)
{
    char *text = base_format("%s%s%lld", what, name, (long long)number);
    const char *kept = arena_string(&r->memory, text, strlen(text));
    free(text);
    return kept;
}

static object of_module(reach *r, uint32_t from, uint64_t addr)
{
    const image *img = r->module->img;
    const image_variable *variable = image_global_at(img, addr);
    const image_symbol *symbol = image_symbol_covering(img, addr);
    object o = {.root = from, .start = (int64_t)addr, .size = 8};
    if (variable && variable->type && variable->type->size) {
        o.start = variable->offset, o.size = variable->type->size, o.type = variable->type;
        o.name = variable->name;
    } else if (symbol && symbol->name[0]) {
        o.start = (int64_t)symbol->addr, o.size = symbol->size ? symbol->size : 8;
        o.name = plain_name(r, symbol->name);
    } else {
        o.name = format(r, "module", "+", (int64_t)addr);
    }
    o.constant = image_is_constant(img, (uint64_t)o.start, variable || symbol ? o.size : 1);
    return o;
}

static object of_thread(reach *r, uint32_t from, int64_t offset)
{
    const image *img = r->module->img;
    int64_t place = offset + (int64_t)img->tls_size;
    const image_variable *variable = place >= 0 && offset < 0 ? image_global_tls(img, (uint64_t)place) : NULL;
    object o = {.root = from, .start = offset, .size = 8, .constant = offset >= 0}; /* above: libc's own */
    if (variable && variable->type && variable->type->size) {
        o.start = variable->offset - (int64_t)img->tls_size, o.size = variable->type->size, o.type = variable->type;
        o.name = variable->name;
    } else {
        o.name = format(r, "tls", "", offset);
    }
    return o;
}

typedef struct {
    const image_variable *variable;
    int64_t start; /* relative to the stack pointer at entry */
} stack_variable;

/* Of several variables that share a place, the smallest. */
static void consider(stack_variable *best, const image_variable *v, int64_t start, int64_t offset)
{
    if (!v->type || !v->type->size || offset < start || offset >= start + (int64_t)v->type->size) return;
    if (!best->variable || v->type->size < best->variable->type->size) *best = (stack_variable){v, start};
}

static stack_variable stack_variable_at(reach *r, const lift_func *func, int64_t offset)
{
    stack_variable best = {0};
    const image_function *debug = image_function_at(r->module->img, func->entry);
    for (uint32_t i = 0; debug && i < debug->variable_count; i++)
        if (debug->variables[i].place == IMAGE_PLACE_FRAME)
            consider(&best, &debug->variables[i], debug->variables[i].offset + 8, offset);
    if (best.variable || !debug) return best;
    const place_list *places = place_variables(r, func);
    for (uint32_t k = 0; k < places->len; k++) {
        const image_variable *v = place_variable(debug, &places->data[k]);
        if (v && places->data[k].var == IR_NOVAR) consider(&best, v, places->data[k].offset, offset);
    }
    return best;
}

static object of_frame(reach *r, uint32_t from, int64_t offset)
{
    const root *at = &r->roots.data[from];
    const lift_func *func = r->contexts.data[at->context].func;
    stack_variable found = {0};
    object o = {.root = from, .start = offset, .size = 8};
    if (at->kind == ROOT_FRAME) found = stack_variable_at(r, func, offset);
    if (found.variable) {
        o.start = found.start, o.size = found.variable->type->size, o.type = found.variable->type;
        o.name = format(r, found.variable->name, ":", found.variable->line);
    } else {
        o.name = format(r, func->name, at->kind == ROOT_ALIGNED ? ".aligned" : ".frame", offset);
    }
    return o;
}

/* Named by function and line of the innermost inlined frame: inlining changes nothing. */
static const char *allocation_name(reach *r, const root *at)
{
    image_frame frame;
    if (image_frames_at(r->module->img, at->site, &frame, 1) && frame.function && frame.at.line) {
        const char *name = format(r, "heap@", frame.function, 0);
        return format(r, arena_string(&r->memory, name, strlen(name) - 1), ":", frame.at.line);
    }
    return format(r, "heap@", r->contexts.data[at->context].func->name, 0);
}

static const char *path_name(reach *r, uint32_t from)
{
    const root *at = &r->roots.data[from];
    switch (at->kind) {
    case ROOT_RESULT:
    case ROOT_EXTERN:
        return at->name;
    case ROOT_ARGUMENT:
        return format(r, r->contexts.data[at->context].func->name, "#", (int64_t)at->site);
    case ROOT_DEREF:
        return format(r, path_name(r, at->parent), "->", at->offset);
    default:
        return "?";
    }
}

static slot *slot_of(const reach *r, uint32_t at)
{
    const object *o = &r->objects.data[at];
    const root *from = &r->roots.data[o->root];
    if (from->kind != ROOT_FRAME && from->kind != ROOT_ALIGNED) return NULL;
    for (uint32_t i = 0; i < r->slots.len; i++)
        if (r->slots.data[i].func == r->contexts.data[from->context].func && r->slots.data[i].start == o->start)
            return &r->slots.data[i];
    return NULL;
}

uint32_t object_marks(const reach *r, uint32_t at)
{
    const slot *found = slot_of(r, at);
    return found ? found->flags : 0;
}

void object_mark(reach *r, uint32_t at, uint32_t flags)
{
    const root *from = &r->roots.data[r->objects.data[at].root];
    if (from->kind != ROOT_FRAME && from->kind != ROOT_ALIGNED) return;
    slot *found = slot_of(r, at);
    if (found)
        found->flags |= flags;
    else
        vec_push(
            &r->slots,
            (slot){.func = r->contexts.data[from->context].func, .start = r->objects.data[at].start, .flags = flags});
}

/* Where the cell is, in terms of the type if the object has had one from the start. */
static int64_t place_in(const reach *r, const object *o, int64_t offset, const strides *by, uint64_t *stride)
{
    *stride = strides_divisor(by);
    return o->type && r->roots.data[o->root].kind != ROOT_HEAP ? field_place(o->type, offset, by, stride) : offset;
}

static cell *cell_at(object *o, int64_t offset, uint64_t stride)
{
    for (uint32_t i = 0; i < o->cells.len; i++)
        if (o->cells.data[i].offset == offset && o->cells.data[i].stride == stride) return &o->cells.data[i];
    vec_push(&o->cells, (cell){.offset = offset, .stride = stride});
    return &o->cells.data[o->cells.len - 1];
}

/* Relocated words are what memory holds from the start. */
static void initialise(reach *r, object *o)
{
    const image *img = r->module->img;
    uint32_t first, count = image_relocs_in(img, (uint64_t)o->start, (uint64_t)o->start + o->size, &first);
    for (uint32_t i = first; i < first + count; i++) {
        const image_reloc *reloc = &img->relocs[i];
        pointer p = {.offset = (int64_t)reloc->target};
        switch (reloc->kind) {
        case IMAGE_REL_ADDR:
        case IMAGE_REL_GUESS:
            p.root = root_intern(r, (root){.kind = ROOT_MODULE});
            break;
        case IMAGE_REL_SYMBOL:
            if (!reloc->name) continue;
            p.root = root_intern(r, (root){.kind = ROOT_EXTERN, .name = reloc->name});
            p.offset = reloc->addend;
            break;
        case IMAGE_REL_COPY:
            o->opaque = true;
            continue;
        case IMAGE_REL_TPOFF:
            /* the word is a number, but adding it to the thread pointer gives a variable: as a pointer it is enough */
            continue;
        default:
            continue;
        }
        strides none = {0};
        uint64_t stride;
        int64_t offset = place_in(r, o, (int64_t)reloc->addr - o->start, &none, &stride);
        pointers_add(&cell_at(o, offset, stride)->to, p);
    }
}

static uint32_t find_object(const reach *r, const pointer *p)
{
    root_kind kind = r->roots.data[p->root].kind;
    bool placed = kind == ROOT_MODULE || kind == ROOT_THREAD || kind == ROOT_FRAME || kind == ROOT_ALIGNED;
    for (uint32_t i = 0; i < r->objects.len; i++) {
        const object *o = &r->objects.data[i];
        if (o->root != p->root) continue;
        if (!placed || (p->offset >= o->start && p->offset < o->start + (int64_t)o->size)) return i;
    }
    return UINT32_MAX;
}

static uint32_t make_object(reach *r, const pointer *p)
{
    root_kind kind = r->roots.data[p->root].kind;
    object o = {.root = p->root};
    switch (kind) {
    case ROOT_MODULE:
        o = of_module(r, p->root, (uint64_t)p->offset);
        break;
    case ROOT_THREAD:
        o = of_thread(r, p->root, p->offset);
        break;
    case ROOT_FRAME:
    case ROOT_ALIGNED:
        o = of_frame(r, p->root, p->offset);
        break;
    case ROOT_HEAP:
        o.name = allocation_name(r, &r->roots.data[p->root]);
        break;
    default:
        o.name = path_name(r, p->root), o.opaque = true;
    }
    if (kind == ROOT_MODULE) initialise(r, &o);
    vec_push(&r->objects, o);
    return r->objects.len - 1;
}

uint32_t object_at(reach *r, pointer p, int64_t *offset)
{
    uint32_t at = find_object(r, &p);
    if (at == UINT32_MAX) at = make_object(r, &p);
    *offset = p.offset - r->objects.data[at].start;
    return at;
}

object *object_of(reach *r, pointer p, int64_t *offset)
{
    uint32_t at = object_at(r, p, offset);
    return &r->objects.data[at];
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static bool may_meet(const cell *c, int64_t offset, uint64_t stride)
{
    uint64_t common = number_gcd(c->stride, stride), apart = number_apart(c->offset, offset);
    return common ? apart % common == 0 : apart == 0;
}

bool object_store(reach *r, pointer p, const pointers *values)
{
    if (!values->len) return false;
    int64_t offset;
    uint64_t stride;
    object *o = object_of(r, p, &offset);
    offset = place_in(r, o, offset, &p.by, &stride);
    return pointers_join(&cell_at(o, offset, stride)->to, values);
}

void object_load(reach *r, pointer p, pointers *values)
{
    int64_t offset;
    uint64_t stride;
    const object *o = object_of(r, p, &offset);
    offset = place_in(r, o, offset, &p.by, &stride);
    for (uint32_t i = 0; i < o->cells.len; i++)
        if (may_meet(&o->cells.data[i], offset, stride)) pointers_join(values, &o->cells.data[i].to);
    const root *at = &r->roots.data[o->root];
    if (at->kind == ROOT_THREAD && o->start == 0) /* the thread control block begins with its own address */
        pointers_add(values, (pointer){.root = o->root});
    if (o->opaque) pointers_add(values, (pointer){.root = deref(r, o->root, o->start + offset)});
}

bool object_copy(reach *r, pointer to, pointer from)
{
    int64_t at, source;
    bool changed = false;
    strides by = to.by;
    strides_join(&by, &from.by);
    uint32_t into = object_at(r, to, &at), out = object_at(r, from, &source);
    for (uint32_t i = 0; into != out && i < r->objects.data[out].cells.len; i++) {
        cell c = r->objects.data[out].cells.data[i];
        strides cell_by = by;
        uint64_t stride;
        if (c.stride) strides_add(&cell_by, c.stride);
        object *o = &r->objects.data[into];
        int64_t offset = place_in(r, o, c.offset - source + at, &cell_by, &stride);
        changed |= pointers_join(&cell_at(o, offset, stride)->to, &c.to);
    }
    return changed;
}
