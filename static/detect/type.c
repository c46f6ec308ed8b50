/* Types of objects. Variables have theirs from DWARF. What is on the heap gets the type that pointers to its first byte are
 * declared with: parameters, members of typed objects, local variables of unoptimised code; or the only struct of its size. */
#include "static/detect/private.h"

#include <stdlib.h>

static bool worth(const image_type *type)
{
    return type && type->size && (type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION || type->is_atomic);
}

static bool may_get(const detect *d, const pta_place *place)
{
    return d->program->sites.data[place->site].kind == PTA_HEAP && place->exact && !place->offset;
}

static bool give(detect *d, const pta_place *place, const image_type *type)
{
    const pta_site *site = &d->program->sites.data[place->site];
    if (!worth(type) || !may_get(d, place)) return false;
    uint32_t object = hb_find_object(d->h, site->memory, place->context);
    if (object >= d->type_count || d->types[object]) return false;
    d->types[object] = type;
    return true;
}

/* What a pointer is declared to point to; a struct that its object file only declares is the one that another one defines. */
static const image_type *pointee(const detect *d, const image_type *type)
{
    const image_type *target = type && type->kind == IMAGE_TYPE_POINTER ? type->target : NULL;
    if (!target || !target->is_declaration || !target->name || !*target->name) return target;
    for (uint32_t m = 0; m < d->program->module_count; m++) {
        const image *img = d->program->modules[m]->img;
        const image_type *whole = img->kind == IMAGE_OBJECT ? image_struct_named(img, target->name) : NULL;
        if (whole && !whole->is_declaration) return whole;
    }
    return target;
}

typedef struct {
    detect *d;
    const image_type *type;
} gift;

static void give_begin(void *with, uint32_t site, uint32_t context)
{
    const gift *g = with;
    give(g->d, &(pta_place){.site = site, .context = context, .exact = true}, g->type);
}

/* Parameters in registers: pointers and numbers in order; a struct by value ends what can be told. Who has got a type keeps it, so
 * that what was told of once need not be told of again. */
static void take_parameters(detect *d, uint32_t func, pta_told *told)
{
    const pta_func *f = &d->program->funcs.data[func];
    const image_function *debug = f->lift ? image_function_at(detect_image(d, func), f->lift->entry) : NULL;
    unsigned reg = 0;
    for (uint32_t i = 0; debug && i < debug->parameter_count && reg < 6; i++) {
        const image_type *type = debug->variables[i].type;
        if (!type || type->kind == IMAGE_TYPE_STRUCT || type->kind == IMAGE_TYPE_UNION) return;
        if (type->kind == IMAGE_TYPE_FLOAT) continue;
        gift g = {d, pointee(d, type)};
        if (worth(g.type)) pta_each_begin(d->p, func, reg, told, give_begin, &g);
        reg++;
    }
}

/* The variable of unoptimised code that a value is the content of. */
static const image_variable *variable_of(const image_function *debug, const ir_func *ir, ir_value v)
{
    for (unsigned depth = 0; v && depth < 8; depth++) {
        const ir_insn *insn = &ir->insns[v];
        if (insn->var >= IR_SLOT && insn->var - IR_SLOT < (int)ir->slot_count) {
            const ir_slot *slot = &ir->slots[insn->var - IR_SLOT];
            for (uint32_t i = 0; i < debug->variable_count; i++)
                if (debug->variables[i].place == IMAGE_PLACE_FRAME && !slot->base && debug->variables[i].offset == slot->offset - 8)
                    return &debug->variables[i];
        }
        if (insn->op != IR_COPY) return NULL;
        v = insn->a;
    }
    return NULL;
}

static void take_locals(detect *d, uint32_t func)
{
    const pta_func *f = &d->program->funcs.data[func];
    const image_function *debug = f->lift ? image_function_at(detect_image(d, func), f->lift->entry) : NULL;
    if (!debug || !f->lift->ir) return;
    const ir_func *ir = f->lift->ir;
    uint32_t count;
    const hb_touch *touches = hb_touches(d->h, &count);
    for (uint32_t t = hb_first_touch(d->h, func); t < count && touches[t].func == func; t++) {
        if (!touches[t].ir || ir->insns[touches[t].ir].op != IR_ACCESS) continue;
        const ir_insn *access = &ir->insns[touches[t].ir];
        const image_variable *variable = access->a && !access->b ? variable_of(debug, ir, access->a) : NULL;
        const image_type *type = variable ? pointee(d, variable->type) : NULL;
        if (!worth(type)) continue;
        const hb_place *places = hb_places(d->h, &touches[t]);
        for (uint32_t i = 0; i < touches[t].place_count; i++) {
            pta_place place = places[i].place;
            place.offset -= (int32_t)access->imm;
            give(d, &place, type);
        }
    }
}

/* The pointer that a word of a typed object is declared as. */
static const image_type *member_type(const detect *d, const image_type *type, uint64_t offset)
{
    const image_type *scalar = type ? image_type_at(type, offset, 8) : NULL;
    return pointee(d, scalar);
}

typedef struct {
    pta_place word;
    uint32_t first, count; /* what it holds that may get a type, in `held` */
} heap_word;

typedef struct {
    detect *d;
    bool changed;
    VEC(heap_word) words; /* on the heap, whose types are not known from the begin: once more, when some have got one */
    pta_places held;
} word_round;

static void take_word(void *with, const pta_place *word, const pta_places *holds)
{
    word_round *r = with;
    detect *d = r->d;
    const pta_site *site = &d->program->sites.data[word->site];
    const image_type *type = site->type;
    uint64_t offset = (uint64_t)word->offset;
    if (site->kind == PTA_HEAP) {
        uint32_t object = hb_find_object(d->h, site->memory, word->context);
        type = object < d->type_count ? d->types[object] : NULL;
        if (type && offset >= type->size) offset %= type->size;
    } else if (type && type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->size) {
        type = type->target;
        offset %= type->size;
    }
    const image_type *target = word->offset < 0 ? NULL : type && type->kind == IMAGE_TYPE_POINTER && !offset ? pointee(d, type) : member_type(d, type, offset);
    for (uint32_t i = 0; worth(target) && i < holds->len; i++)
        r->changed |= give(d, &holds->data[i], target);
}

/* Keeps what the next rounds need: what words of variables say does not change. */
static void take_first(void *with, const pta_place *word, const pta_places *holds)
{
    word_round *r = with;
    take_word(r, word, holds);
    if (r->d->program->sites.data[word->site].kind != PTA_HEAP) return;
    heap_word own = {*word, r->held.len, 0};
    for (uint32_t i = 0; i < holds->len; i++)
        if (may_get(r->d, &holds->data[i])) vec_push(&r->held, holds->data[i]);
    own.count = r->held.len - own.first;
    if (own.count) vec_push(&r->words, own);
}

static void take_words(detect *d)
{
    enum { ROUNDS = 4 };
    word_round r = {.d = d};
    hb_each_word(d->h, take_first, &r);
    for (unsigned round = 1; round < ROUNDS && r.changed; round++) {
        r.changed = false;
        for (uint32_t i = 0; i < r.words.len; i++) {
            const heap_word *w = &r.words.data[i];
            take_word(&r, &w->word, &(pta_places){.data = r.held.data + w->first, .len = w->count});
        }
    }
    vec_free(&r.words);
    vec_free(&r.held);
}

typedef struct {
    uint64_t addr;
    uint32_t call;
} call_at;

static int by_addr(const void *a, const void *b)
{
    const call_at *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* The first of the calls at an address. */
static uint32_t first_at(const call_at *calls, uint32_t count, uint64_t addr)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (calls[middle].addr < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_sizes(detect *d)
{
    uint32_t count = d->program->calls.len;
    call_at *calls = base_alloc(count * sizeof *calls);
    for (uint32_t c = 0; c < count; c++)
        calls[c] = (call_at){d->program->calls.data[c].addr, c};
    if (count) qsort(calls, count, sizeof *calls, by_addr);
    for (uint32_t o = 0; o < d->type_count; o++) {
        uint32_t site, context, module;
        uint64_t addr;
        hb_object_at(d->h, o, &site, &context);
        if (d->program->sites.data[site].kind != PTA_HEAP || d->types[o]) continue;
        pta_place place = {.site = site, .context = context, .exact = true};
        if (!pta_heap_call(d->p, &place, &module, &addr)) continue;
        for (uint32_t c = first_at(calls, count, addr); c < count && calls[c].addr == addr; c++) {
            const pta_call *call = &d->program->calls.data[calls[c].call];
            if (d->program->funcs.data[call->caller].module != module) continue;
            const pta_size *size = &call->sizes[d->program->sites.data[site].sized ? d->program->sites.data[site].sized - 1 : 0];
            if (size->exact) d->types[o] = image_struct_of_size(d->program->modules[module]->img, size->multiple);
        }
    }
    free(calls);
}

void detect_types_open(detect *d)
{
    d->type_count = hb_object_count(d->h);
    d->types = base_alloc_zero(d->type_count, sizeof *d->types);
    bool debug = false;
    for (uint32_t m = 0; m < d->program->module_count; m++)
        debug |= d->program->modules[m]->img->has_debug;
    if (!debug) return;
    pta_told *told = pta_told_open(d->p);
    for (uint32_t f = 0; f < d->program->funcs.len; f++) {
        take_parameters(d, f, told);
        take_locals(d, f);
    }
    pta_told_close(told);
    take_words(d);
    take_sizes(d);
}

const image_type *detect_place_type(const detect *d, const pta_place *place, uint64_t *offset)
{
    const pta_site *site = &d->program->sites.data[place->site];
    const image_type *type = site->type;
    *offset = place->offset < 0 ? 0 : (uint64_t)place->offset;
    if (site->kind == PTA_HEAP) {
        uint32_t object = hb_find_object(d->h, site->memory, place->context);
        type = object < d->type_count ? d->types[object] : NULL;
        if (type && type->size) *offset %= type->size;
        return type;
    }
    if (type && !place->exact && type->kind == IMAGE_TYPE_ARRAY && type->target && type->target->size) {
        if (place->stride % type->target->size && type->target->size % place->stride) return NULL;
        if (place->stride < type->target->size && type->target->kind != IMAGE_TYPE_ARRAY) return NULL;
        *offset %= type->target->size;
        return type->target;
    }
    return type;
}
