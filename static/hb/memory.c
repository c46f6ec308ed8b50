/* Objects, what their words hold, and which of them never leave the thread that owns them.
 *
 * An object belongs to the origin whose code makes it: its frame variables, what it allocates, its thread-local variables. It
 * stays there as long as nothing but what stays there too holds its address, and it is not handed to a thread. */
#include "static/hb/private.h"
#include "static/pointer/offset.h"

enum { OBJECT_LEFT = 1, OBJECT_ASKED = 2, OBJECT_SPECIFIC = 4 };

uint32_t hb_object(hb *h, uint32_t site, uint32_t context)
{
    uint32_t *at = map_at(&h->objects, (uint64_t)site << 32 | context);
    if (*at == MAP_NONE) {
        *at = h->object_list.len;
        uint32_t base = pta_context_base(h->p, context);
        uint8_t kind = h->program->sites.data[site].kind;
        bool owned = kind == PTA_HEAP || kind == PTA_FRAME || kind == PTA_TLS;
        vec_reserve(&h->object_list, h->object_list.len + 1);
        h->object_list.data[h->object_list.len].site = site;
        h->object_list.data[h->object_list.len].context = context;
        h->object_list.data[h->object_list.len].owner = owned && base < h->base_count ? h->origin_of_base[base] : HB_NONE;
        h->object_list.data[h->object_list.len].state = owned ? 0 : OBJECT_LEFT;
        h->object_list.len++;
    }
    return *at;
}

static uint32_t object_of_place(hb *h, const pta_place *place)
{
    return hb_object(h, h->program->sites.data[place->site].memory, place->context);
}

static void take_word(void *with, const pta_place *word, const pta_places *holds)
{
    hb *h = with;
    hb_word w = {*word, h->held.len, holds->len};
    for (uint32_t i = 0; i < holds->len; i++)
        vec_push(&h->held, holds->data[i]);
    vec_push(&h->memory, w);
}

typedef struct {
    hb *h;
    hb_numbers work;
} leaving;

static void leave(leaving *l, uint32_t object)
{
    if (l->h->object_list.data[object].state & OBJECT_LEFT) return;
    l->h->object_list.data[object].state |= OBJECT_LEFT;
    vec_push(&l->work, object);
}

static bool is_memory(const hb *h, const pta_place *place)
{
    return h->program->sites.data[place->site].kind != PTA_FUNCTION;
}

/* What a thread is given. */
static void leave_arguments(leaving *l)
{
    hb *h = l->h;
    pta_places places = {0};
    for (uint32_t e = 0; e < h->edge_count; e++) {
        if (!hb_spawns(h, &h->edges[e])) continue;
        const pta_call *call = &h->program->calls.data[h->edges[e].call];
        for (unsigned a = 0; a < PTA_PARAMS; a++) {
            if (call->args[a].var == PTA_NO_VAR) continue;
            pta_points_to_in(h->p, h->edges[e].caller, call->args[a], PTA_SAME, &places);
            for (uint32_t i = 0; i < places.len; i++)
                if (is_memory(h, &places.data[i])) leave(l, object_of_place(h, &places.data[i]));
        }
    }
    pta_escaped(h->p, &places);
    for (uint32_t i = 0; i < places.len; i++)
        if (is_memory(h, &places.data[i])) leave(l, object_of_place(h, &places.data[i]));
    vec_free(&places);
}

static void find_left(hb *h)
{
    leaving l = {.h = h};
    leave_arguments(&l);
    for (uint32_t w = 0; w < h->memory.len; w++) {
        uint32_t holder = hb_object(h, h->memory.data[w].word.site, h->memory.data[w].word.context);
        for (uint32_t i = 0; i < h->memory.data[w].count; i++) {
            const pta_place *place = &h->held.data[h->memory.data[w].first + i];
            if (!is_memory(h, place)) continue;
            uint32_t object = object_of_place(h, place);
            bool left = h->object_list.data[holder].state & OBJECT_LEFT;
            if (left || h->object_list.data[holder].owner != h->object_list.data[object].owner) leave(&l, object);
        }
    }
    while (l.work.len) {
        uint32_t object = l.work.data[--l.work.len];
        uint32_t first = map_get(&h->memory_of, object);
        if (first == MAP_NONE) continue;
        for (uint32_t w = first; w < h->memory.len; w++) {
            const hb_word *word = &h->memory.data[w];
            if (hb_object(h, word->word.site, word->word.context) != object) break;
            for (uint32_t i = 0; i < word->count; i++)
                if (is_memory(h, &h->held.data[word->first + i]))
                    leave(&l, object_of_place(h, &h->held.data[word->first + i]));
        }
    }
    vec_free(&l.work);
}

void hb_words_open(hb *h)
{
    pta_each_word(h->p, take_word, h);
}

void hb_each_word(const hb *h, void (*each)(void *with, const pta_place *word, const pta_places *holds), void *with)
{
    for (uint32_t i = 0; i < h->memory.len; i++) {
        const hb_word *w = &h->memory.data[i];
        each(with, &w->word, &(pta_places){.data = h->held.data + w->first, .len = w->count});
    }
}

void hb_memory_open(hb *h)
{
    for (uint32_t w = 0; w < h->memory.len; w++) {
        uint32_t *first = map_at(&h->memory_of, hb_object(h, h->memory.data[w].word.site, h->memory.data[w].word.context));
        if (*first == MAP_NONE) *first = w;
    }
    find_left(h);
}

void hb_memory_close(hb *h)
{
    vec_free(&h->memory);
    vec_free(&h->held);
    vec_free(&h->object_list);
    vec_free(&h->mappings);
    map_free(&h->memory_of);
    vec_free(&h->holders);
    map_free(&h->holders_of);
    map_free(&h->objects);
}

bool hb_stays(const hb *h, uint32_t object)
{
    return !(h->object_list.data[object].state & OBJECT_LEFT);
}

static bool is_given(hb *h, uint32_t object)
{
    pta_places places = {0};
    bool given = false;
    for (uint32_t e = 0; e < h->edge_count && !given; e++) {
        const pta_func *model = &h->program->funcs.data[h->instances[h->edges[e].caller].func];
        const sync_entry *by = model->lift ? NULL : hb_sync(h, model->name);
        if (!hb_spawns(h, &h->edges[e]) || (by && by->kind == SYNC_KEY)) continue;
        const pta_call *call = &h->program->calls.data[h->edges[e].call];
        for (unsigned a = 0; a < PTA_PARAMS && !given; a++) {
            if (call->args[a].var == PTA_NO_VAR) continue;
            pta_points_to_in(h->p, h->edges[e].caller, call->args[a], PTA_SAME, &places);
            for (uint32_t i = 0; i < places.len; i++)
                given |= is_memory(h, &places.data[i]) && object_of_place(h, &places.data[i]) == object;
        }
    }
    pta_escaped(h->p, &places);
    for (uint32_t i = 0; i < places.len; i++)
        given |= is_memory(h, &places.data[i]) && object_of_place(h, &places.data[i]) == object;
    vec_free(&places);
    return given;
}

/* Other library functions that keep it may hand it to anybody. */
static bool is_kept(hb *h, uint32_t object)
{
    for (uint32_t w = 0; w < h->memory.len; w++) {
        const hb_word *word = &h->memory.data[w];
        const pta_site *site = &h->program->sites.data[word->word.site];
        if (site->kind != PTA_LIBRARY || (site->name && !strcmp(site->name, "specific"))) continue;
        for (uint32_t i = 0; i < word->count; i++) {
            const pta_place *place = &h->held.data[word->first + i];
            if (is_memory(h, place) && object_of_place(h, place) == object) return true;
        }
    }
    return false;
}

bool hb_specific(hb *h, uint32_t object)
{
    hb_extent holder;
    uint32_t from = 0;
    hb_object_note note = h->object_list.data[object];
    if (h->program->sites.data[note.site].kind != PTA_HEAP || note.owner == HB_NONE || h->origins.data[note.owner].kind != HB_THREAD) return false;
    if (!(note.state & OBJECT_ASKED)) {
        bool specific = !hb_holder(h, object, &from, &holder) && !is_given(h, object) && !is_kept(h, object);
        h->object_list.data[object].state |= OBJECT_ASKED | (specific ? OBJECT_SPECIFIC : 0);
    }
    return h->object_list.data[object].state & OBJECT_SPECIFIC;
}

void hb_holds(hb *h, const pta_place *place, pta_places *out)
{
    const pta_site *site = &h->program->sites.data[place->site];
    uint32_t object = object_of_place(h, place), first = map_get(&h->memory_of, object);
    int64_t at = site->base + place->offset;
    vec_clear(out);
    for (uint32_t w = first; first != MAP_NONE && w < h->memory.len; w++) {
        const hb_word *word = &h->memory.data[w];
        if (hb_object(h, word->word.site, word->word.context) != object) break;
        int64_t d = word->word.offset - at;
        uint64_t stride = word->word.exact ? (place->exact ? 0 : place->stride)
                          : place->exact   ? word->word.stride
                                           : offset_gcd(word->word.stride, place->stride);
        bool meets = stride ? (d % (int64_t)stride) == 0 : d == 0;
        for (uint32_t i = 0; meets && i < word->count; i++)
            vec_push(out, h->held.data[word->first + i]);
    }
}
