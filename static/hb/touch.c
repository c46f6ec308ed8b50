/* Accesses as ranges of objects: those of the code, and those that library functions make for it. */
#include "static/hb/answers.h"
#include "static/pointer/offset.h"
#include "static/pointer/shape.h"

static const int64_t FAR = 1ll << 40;

uint32_t hb_access_ir(hb *h, uint32_t func, uint32_t insn, uint16_t flags)
{
    const lift_func *f = hb_code(h, func);
    if (!f || insn >= f->insn_count) return 0;
    hb_func *own = &h->funcs[func];
    if (!own->access_of) {
        own->access_of = base_alloc_zero(f->insn_count, sizeof *own->access_of);
        for (ir_value v = f->ir->insn_count; v-- > 1;)
            if (f->ir->insns[v].op == IR_ACCESS) own->access_of[f->ir->insns[v].insn] = v;
    }
    for (ir_value v = own->access_of[insn]; v && v < f->ir->insn_count && f->ir->insns[v].insn == insn; v++)
        if (f->ir->insns[v].op == IR_ACCESS && f->ir->insns[v].flags == flags) return v;
    return own->access_of[insn];
}

hb_extent hb_extent_of(hb *h, const pta_place *place, uint32_t width, bool open)
{
    const pta_site *site = &h->program->sites.data[place->site];
    hb_extent x = {.object = hb_object(h, site->memory, place->context), .at = site->base + place->offset, .low = -FAR,
                   .high = FAR, .width = width ? width : 1};
    if (site->kind == PTA_HEAP) x.object = hb_mapped_object(h, place, x.object);
    if (site->size && !site->open) {
        x.low = site->base;
        x.high = site->base + (int64_t)site->size;
    }
    if (place->exact) {
        x.low = x.at;
        if (!open) x.high = x.at + x.width; /* else up to the end of the object */
        if (open) x.stride = 1, x.at = 0;
        return x;
    }
    x.stride = open ? 1 : place->stride;
    if (!x.stride) x.stride = 1;
    x.at = (x.at % (int64_t)x.stride + (int64_t)x.stride) % (int64_t)x.stride;
    if (open || place->end == INT32_MAX || place->least < 0) return x;
    if (place->element) {
        x.period = place->element;
        x.from = place->least;
        x.to = place->end;
    } else {
        x.low = site->base + place->least;
        x.high = site->base + place->end;
    }
    return x;
}

static bool same_extent(const hb_extent *a, const hb_extent *b)
{
    return a->object == b->object && a->stride == b->stride && a->at == b->at && a->low == b->low && a->high == b->high &&
           a->width == b->width && a->period == b->period && a->from == b->from && a->to == b->to;
}

static uint32_t number_of(hb *h, const hb_extent *x)
{
    uint64_t hash = map_hash((uint64_t)x->object << 32 | x->stride);
    hash = map_hash(map_hash(map_hash(hash + (uint64_t)x->at) + (uint64_t)x->low) + (uint64_t)x->high + x->width);
    hash = map_hash(hash + x->period + ((uint64_t)x->from << 20) + ((uint64_t)x->to << 40));
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&h->extent_map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = h->extents.len;
            vec_push(&h->extents, *x);
            return *at;
        }
        if (same_extent(&h->extents.data[*at], x)) return *at;
    }
}

/* Parts of elements: of two classes with one period, or of a class and exact bytes. */
static bool windows_meet(const hb_extent *a, const hb_extent *b)
{
    if (!a->period && !b->period) return true;
    if (a->period && b->period) return a->period != b->period || (a->from < b->to && b->from < a->to);
    const hb_extent *part = a->period ? a : b, *other = a->period ? b : a;
    if (other->stride && other->stride % part->period) return true;
    int64_t at = ((other->at % (int64_t)part->period) + (int64_t)part->period) % (int64_t)part->period;
    return at < part->to && (at + (int64_t)other->width > part->from || at + (int64_t)other->width > (int64_t)part->period);
}

bool hb_overlap(const hb_extent *a, const hb_extent *b)
{
    if (a->object != b->object || a->high <= b->low || b->high <= a->low) return false;
    if (!windows_meet(a, b)) return false;
    uint64_t g = offset_gcd(a->stride, b->stride);
    if (!g) return true; /* both exact: the ranges have decided */
    int64_t d = ((a->at - b->at) % (int64_t)g + (int64_t)g) % (int64_t)g;
    return d < (int64_t)b->width || (int64_t)g - d < (int64_t)a->width;
}

/* What std::thread keeps for the thread that it starts, and hands over. */
static bool is_thread_state(const hb *h, const pta_place *place)
{
    uint32_t calls[PTA_HEAP_CALLS];
    if (!h->has_std_thread || h->program->sites.data[place->site].kind != PTA_HEAP) return false;
    for (uint32_t i = 0, n = pta_heap_calls(h->p, place, calls); i < n; i++) {
        const char *caller = h->program->funcs.data[h->program->calls.data[calls[i]].caller].name;
        if (!strncmp(caller, "_ZNSt6threadC", 13) || !strncmp(caller, "_ZNSt6thread13_S_make_state", 27)) return true;
    }
    return false;
}

/* What free() is called with: a pointer into a variable is one that the analysis could not tell from another. */
static bool is_freed(uint8_t kind)
{
    return kind != PTA_STATIC && kind != PTA_TLS && kind != PTA_FRAME;
}

static void leave_out(hb *h, const hb_touch *touch, hb_reason_left_out why)
{
    if (why == HB_LEFT_OUT_OWN && !h->options.notes) return;
    vec_push(&h->left_out, ((hb_left_out){touch->instance, touch->func, touch->insn, touch->ir, touch->flags, touch->width, (uint8_t)why}));
}

/* It is counted, and makes no pairs. */
static void lose(hb *h, const hb_touch *touch)
{
    h->stats.accesses++;
    h->stats.accesses_lost++;
    leave_out(h, touch, HB_LEFT_OUT_LOST);
}

/* How many bytes an access goes over. */
typedef enum {
    LENGTH_KNOWN,
    LENGTH_OPEN,  /* to the end of the object */
    LENGTH_BLOCK, /* as many as somebody says: an array or a struct that it begins with, or begins in, is not left */
    LENGTH_TEXT   /* up to a zero: the same of the smallest one */
} touch_length;

/* Where a block ends that begins in a declared array or struct: README, Limits, has it. */
static void end_block(const hb *h, const pta_place *place, touch_length length, hb_extent *x)
{
    const pta_site *site = &h->program->sites.data[place->site];
    const pta_shape *shape = site->shape;
    if (!shape || !shape->count || site->kind == PTA_HEAP || length < LENGTH_BLOCK) return;
    if (!place->exact) {
        if (place->element || place->end == INT32_MAX || place->least < 0) return;
        x->low = site->base + place->least;
        x->high = site->base + place->end;
        return;
    }
    const shape_window *w =
        &shape->windows[length == LENGTH_TEXT ? shape_around(shape, place->offset) : shape_indexed(shape, place->offset)];
    if (w->end != INT32_MAX && site->base + w->end < x->high) x->high = site->base + w->end;
}

static void add_touch(hb *h, hb_touch touch, const pta_places *places, uint32_t width, touch_length length, bool frees)
{
    touch.first_place = h->places.len;
    bool unknown = false, any = false;
    if (places->len > HB_MOST_PLACES) {
        lose(h, &touch);
        return;
    }
    for (uint32_t i = 0; i < places->len; i++) {
        const pta_site *site = &h->program->sites.data[places->data[i].site];
        if (site->kind == PTA_FUNCTION || site->constant || (frees && !is_freed(site->kind))) continue;
        unknown |= site->kind == PTA_EXTERNAL || site->kind == PTA_WILD;
        any = true;
        hb_extent x = hb_extent_of(h, &places->data[i], width, length != LENGTH_KNOWN);
        end_block(h, &places->data[i], length, &x);
        if (hb_stays(h, x.object) || is_thread_state(h, &places->data[i])) continue;
        vec_push(&h->places, (hb_place){number_of(h, &x), places->data[i]});
    }
    touch.place_count = h->places.len - touch.first_place;
    h->stats.accesses++;
    h->stats.accesses_unknown += unknown;
    h->stats.accesses_nowhere += !any && !places->len;
    if (unknown)
        leave_out(h, &touch, HB_LEFT_OUT_UNKNOWN);
    else if (!touch.place_count)
        leave_out(h, &touch, places->len ? HB_LEFT_OUT_OWN : HB_LEFT_OUT_LOST);
    if (touch.place_count) vec_push(&h->touches, touch);
}

static void touch_code(hb *h, uint32_t instance)
{
    pta_places places;
    uint32_t func = h->instances[instance].func, count;
    const ir_func *ir = hb_code(h, func)->ir;
    const pta_access *accesses = pta_accesses(h->program, func, &count);
    for (uint32_t a = 0; a < count; a++) {
        const pta_access *access = &accesses[a];
        if (access->flags & IR_IMPLICIT || (access->flags & IR_FRAME && !ir->frame_escapes)) continue;
        hb_touch touch = {.instance = instance, .func = func, .insn = access->insn, .flags = access->flags, .width = access->width,
                          .ir = hb_access_ir(h, func, access->insn, access->flags)};
        if (hb_answers_next(h, &(hb_question){access->base, access->stride, access}, &places))
            add_touch(h, touch, &places, access->width, access->flags & IR_REP ? LENGTH_OPEN : LENGTH_KNOWN, false);
        else
            lose(h, &touch);
    }
}

static void touch_library(hb *h, uint32_t instance, const hb_call *call)
{
    pta_places places;
    sync_range ranges[SYNC_RANGES];
    const pta_call *c = &h->program->calls.data[call->call];
    for (uint32_t i = 0, n = hb_sync_touch_ranges(call->touch, ranges); i < n; i++) {
        if (c->args[ranges[i].arg].var == PTA_NO_VAR) continue;
        uint32_t size = ranges[i].size;
        if (ranges[i].size_arg >= 0 && ranges[i].size_arg < PTA_SIZES && c->sizes[ranges[i].size_arg].exact)
            size = c->sizes[ranges[i].size_arg].multiple;
        if (ranges[i].times_arg >= 0) size = 0;
        hb_touch touch = {.instance = instance, .func = h->instances[instance].func, .insn = call->insn, .ir = call->value,
                          .flags = (uint16_t)(HB_LIBRARY | (ranges[i].write ? IR_WRITE : IR_READ)),
                          .width = size && size < UINT16_MAX ? (uint16_t)size : 0};
        touch_length unknown = ranges[i].frees ? LENGTH_OPEN : ranges[i].text ? LENGTH_TEXT : LENGTH_BLOCK;
        if (hb_answers_next(h, &(hb_question){c->args[ranges[i].arg], PTA_SAME, NULL}, &places))
            add_touch(h, touch, &places, size, size ? LENGTH_KNOWN : unknown, ranges[i].frees);
        else
            lose(h, &touch);
    }
}

/* By function and instruction; those of one instruction stay as they were found, by instance and then by place. */
static void sort_touches(hb *h)
{
    uint32_t funcs = h->program->funcs.len, count = h->touches.len;
    uint32_t *base = base_alloc_zero((size_t)funcs + 1, sizeof *base); /* per function: the number of its first instruction */
    for (uint32_t f = 0; f < funcs; f++)
        base[f + 1] = base[f] + (hb_code(h, f) ? hb_code(h, f)->insn_count : 0);
    uint32_t *first = base_alloc_zero((size_t)base[funcs] + 1, sizeof *first);
    hb_touch *sorted = base_alloc(count * sizeof *sorted);
    for (uint32_t t = 0; t < count; t++)
        first[base[h->touches.data[t].func] + h->touches.data[t].insn + 1]++;
    for (uint32_t i = 0; i < base[funcs]; i++)
        first[i + 1] += first[i];
    for (uint32_t t = 0; t < count; t++)
        sorted[first[base[h->touches.data[t].func] + h->touches.data[t].insn]++] = h->touches.data[t];
    if (count) memcpy(h->touches.data, sorted, count * sizeof *sorted);
    free(sorted);
    free(first);
    free(base);
}

static void index_writes(hb *h)
{
    uint32_t objects = h->writes_objects = h->object_list.len;
    h->writes_first = base_alloc_zero((size_t)objects + 2, sizeof *h->writes_first);
    for (unsigned round = 0; round < 2; round++) { /* first their numbers, then they */
        for (uint32_t t = 0; t < h->touches.len; t++) {
            const hb_touch *touch = &h->touches.data[t];
            for (uint32_t i = touch->first_place; touch->flags & IR_WRITE && i < touch->first_place + touch->place_count; i++) {
                uint32_t object = h->extents.data[h->places.data[i].extent].object;
                if (round)
                    h->writes[h->writes_first[object + 1]++] = (hb_use){t, i};
                else
                    h->writes_first[object + 2]++;
            }
        }
        for (uint32_t o = 0; o < objects && !round; o++)
            h->writes_first[o + 2] += h->writes_first[o + 1];
        if (!round) h->writes = base_alloc(h->writes_first[objects + 1] * sizeof *h->writes);
    }
}

const hb_use *hb_writes_to(const hb *h, uint32_t object, uint32_t *count)
{
    *count = object < h->writes_objects ? h->writes_first[object + 1] - h->writes_first[object] : 0;
    return *count ? h->writes + h->writes_first[object] : NULL;
}

/* Those that overlap an extent, found once: there are far fewer extents than accesses, and a large variable is written to by thousands. */
typedef struct hb_writes_over {
    const hb_use **of; /* per extent; NULL: not asked yet */
    uint32_t *count;
    VEC(hb_use) found;
    arena memory;
} hb_writes_over;

static void open_writes_over(hb *h)
{
    hb_writes_over *w = h->writes_over = base_alloc_zero(1, sizeof *w);
    w->of = base_alloc_zero(h->extents.len, sizeof *w->of);
    w->count = base_alloc(h->extents.len * sizeof *w->count);
}

const hb_use *hb_writes_over_extent(const hb *h, uint32_t extent, uint32_t *count)
{
    hb_writes_over *w = h->writes_over;
    const hb_extent *x = &h->extents.data[extent];
    if (!w->of[extent]) {
        const hb_use *writes = hb_writes_to(h, x->object, count);
        vec_clear(&w->found);
        for (uint32_t i = 0; i < *count; i++)
            if (hb_overlap(&h->extents.data[h->places.data[writes[i].place].extent], x)) vec_push(&w->found, writes[i]);
        w->of[extent] = arena_copy(&w->memory, w->found.data, w->found.len * sizeof *w->found.data);
        w->count[extent] = w->found.len;
    }
    *count = w->count[extent];
    return w->of[extent];
}

void hb_touches_open(hb *h)
{
    for (uint32_t f = 0; f < h->program->funcs.len && !h->has_std_thread; f++)
        h->has_std_thread = !strncmp(h->program->funcs.data[f].name, "_ZNSt6thread", 12);
    for (uint32_t i = 0; i < h->instance_count; i++) {
        bool runs = false;
        for (uint32_t o = 0; o < h->origins.len && !runs; o++)
            runs = hb_bit(h->origins.data[o].self, i);
        if (!runs || !hb_instance_code(h, i)) continue;
        hb_answers_begin(h, i);
        touch_code(h, i);
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++)
            if (f->calls[c].touch) touch_library(h, i, &f->calls[c]);
    }
    sort_touches(h);
    index_writes(h);
    open_writes_over(h);
}

void hb_touches_close(hb *h)
{
    vec_free(&h->touches);
    vec_free(&h->left_out);
    vec_free(&h->places);
    vec_free(&h->extents);
    map_free(&h->extent_map);
    free(h->writes);
    free(h->writes_first);
    if (!h->writes_over) return;
    free(h->writes_over->of);
    free(h->writes_over->count);
    vec_free(&h->writes_over->found);
    arena_free(&h->writes_over->memory);
    free(h->writes_over);
}

const hb_touch *hb_touches(const hb *h, uint32_t *count)
{
    *count = h->touches.len;
    return h->touches.data;
}

const hb_left_out *hb_left_outs(const hb *h, uint32_t *count)
{
    *count = h->left_out.len;
    return h->left_out.data;
}

const hb_place *hb_places(const hb *h, const hb_touch *touch)
{
    return h->places.data + touch->first_place;
}

const hb_extent *hb_extent_at(const hb *h, uint32_t extent)
{
    return &h->extents.data[extent];
}

uint32_t hb_first_touch(const hb *h, uint32_t func)
{
    uint32_t low = 0, high = h->touches.len;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->touches.data[middle].func < func)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const hb_touch *hb_touch_at(const hb *h, uint32_t instance, uint32_t insn)
{
    uint32_t func = h->instances[instance].func, low = 0, high = h->touches.len;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const hb_touch *t = &h->touches.data[middle];
        if (t->func != func ? t->func < func : t->insn != insn ? t->insn < insn : t->instance < instance)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t t = low; t < h->touches.len && h->touches.data[t].insn == insn && h->touches.data[t].instance == instance; t++)
        if (!(h->touches.data[t].flags & HB_LIBRARY)) return &h->touches.data[t];
    return NULL;
}
