/* Which threads run the handlers of events. An event loop runs what was registered with it, one after the other, in the thread
 * that called it; exit() runs what was registered, in the thread that called it or in main when that returns; a thread that has set
 * something for a key runs the destructor of the key at its end. */
#include "static/hb/private.h"

typedef struct {
    hb_point at;
    const sync_entry *sync;
    const hb_call *call;
} loop_call;
typedef VEC(loop_call) loop_calls;

static void find_loops(hb *h, loop_calls *out)
{
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (sync && (sync->kind == SYNC_DISPATCH || sync->kind == SYNC_EXIT))
                vec_push(out, (loop_call){{i, f->calls[c].insn}, sync, &f->calls[c]});
        }
    }
}

static void argument(const hb *h, uint32_t instance, const hb_call *call, int arg, pta_places *out)
{
    vec_clear(out);
    if (arg < 0) return;
    pta_operand what = h->program->calls.data[call->call].args[arg];
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, out);
}

static bool share(const pta_places *a, const pta_places *b)
{
    if (!a->len || !b->len) return true; /* nothing is known */
    for (uint32_t i = 0; i < a->len; i++)
        for (uint32_t k = 0; k < b->len; k++)
            if (a->data[i].site == b->data[k].site && a->data[i].context == b->data[k].context) return true;
    return false;
}

/* The bases that the events at some places may have, as far as all of them are known. */
static void bases_of(hb *h, pta_places *events, int at)
{
    pta_places bases = {0}, held = {0};
    bool known = events->len;
    for (uint32_t i = 0; i < events->len && known; i++) {
        pta_place word = events->data[i];
        word.offset += at;
        known = word.exact;
        hb_holds(h, &word, &held);
        known &= held.len > 0;
        for (uint32_t k = 0; k < held.len; k++)
            vec_push(&bases, held.data[k]);
    }
    if (!known) vec_clear(&bases);
    vec_free(events);
    vec_free(&held);
    *events = bases;
}

typedef enum { BELONGS_NOT, BELONGS_PERHAPS, BELONGS } belonging;

/* Whether an event and a loop may have the same base, or have. */
static belonging belongs(hb *h, const hb_origin *o, const loop_call *loop)
{
    pta_places mine = {0}, its = {0};
    bool found = !o->by || o->by->kind != SYNC_EVENT || !o->sites.len, surely = !found;
    argument(h, loop->at.instance, loop->call, loop->sync->arg, &its);
    surely &= its.len == 1;
    for (uint32_t s = 0; s < o->sites.len && (!found || surely); s++) {
        const hb_call *call = hb_call_at(h, h->instances[o->sites.data[s].instance].func, o->sites.data[s].insn);
        if (!call) {
            found = true, surely = false;
            break;
        }
        argument(h, o->sites.data[s].instance, call, o->by->arg, &mine);
        if (o->by->other >= 0) bases_of(h, &mine, o->by->other);
        found |= share(&mine, &its);
        surely &= mine.len == 1 && share(&mine, &its);
    }
    vec_free(&mine);
    vec_free(&its);
    return !found ? BELONGS_NOT : surely ? BELONGS : BELONGS_PERHAPS;
}

static void carry(hb *h, hb_origin *o, hb_point at)
{
    for (uint32_t t = 0; t < h->origins.len; t++) {
        const hb_origin *thread = &h->origins.data[t];
        if (thread->kind > HB_THREAD || !hb_bit(thread->self, at.instance)) continue;
        vec_push(&o->carriers, t);
        vec_push(&o->at, at);
        o->placed = true;
    }
}

/* The end of main: behind the last instruction of its code. */
static void carry_to_end(hb *h, hb_origin *o)
{
    for (uint32_t e = 0; e < h->edge_count; e++) {
        const pta_call_edge *edge = &h->edges[e];
        const pta_func *caller = &h->program->funcs.data[h->instances[edge->caller].func];
        if (hb_spawns(h, edge) || caller->lift || strcmp(caller->name, "__libc_start_main")) continue;
        const lift_func *f = hb_instance_code(h, edge->callee);
        for (uint32_t b = 0; f && b < f->block_count; b++) {
            const lift_block *block = &f->blocks[b];
            if (block->end_kind != END_RET || !block->insn_count) continue;
            vec_push(&o->carriers, 0);
            vec_push(&o->at, (hb_point){edge->callee, block->first_insn + block->insn_count - 1});
            o->placed = true;
        }
    }
}

/* The ends of the threads that set something for a key; main does not come to its end that way. */
static void carry_to_ends(hb *h, hb_origin *o)
{
    for (uint32_t t = 1; t < h->origins.len; t++) {
        const hb_origin *thread = &h->origins.data[t];
        bool sets = false;
        if (thread->kind != HB_THREAD || !hb_instance_code(h, thread->instance)) continue;
        for (uint32_t i = 0; i < h->instance_count && !sets; i++) {
            const hb_func *f = hb_bit(thread->self, i) && hb_instance_code(h, i) ? &h->funcs[h->instances[i].func] : NULL;
            for (uint32_t c = 0; f && c < f->call_count && !sets; c++)
                sets = f->calls[c].sync && f->calls[c].sync->kind == SYNC_SET_KEY;
        }
        if (!sets) continue;
        o->placed = true;
        o->overlaps |= thread->overlaps || o->carriers.len;
        vec_push(&o->carriers, t);
        vec_push(&o->at, (hb_point){thread->instance, hb_instance_code(h, thread->instance)->insn_count - 1});
    }
}

/* The loops that run an event. Of a base, one loop runs at a time, as libevent sees to: where it is known which one is for the event's
 * base, others of which it is not known are for others. */
static void place_event(hb *h, hb_origin *o, const loop_calls *loops)
{
    belonging *all = base_alloc_zero(loops->len, sizeof *all), most = BELONGS_NOT;
    for (uint32_t l = 0; l < loops->len; l++) {
        if (loops->data[l].sync->kind != SYNC_EXIT) all[l] = belongs(h, o, &loops->data[l]);
        if (all[l] > most) most = all[l];
    }
    for (uint32_t l = 0; l < loops->len && most != BELONGS_NOT; l++)
        if (all[l] == most) carry(h, o, loops->data[l].at);
    o->certain = most == BELONGS;
    free(all);
}

void hb_events_place(hb *h)
{
    loop_calls loops = {0};
    find_loops(h, &loops);
    for (uint32_t i = 1; i < h->origins.len; i++) {
        hb_origin *o = &h->origins.data[i];
        bool key = o->by && o->by->kind == SYNC_KEY;
        if (o->kind == HB_AT_EXIT) carry_to_end(h, o);
        if (key) carry_to_ends(h, o);
        for (uint32_t l = 0; l < loops.len; l++)
            if (o->kind == HB_AT_EXIT && loops.data[l].sync->kind == SYNC_EXIT) carry(h, o, loops.data[l].at);
        if (o->kind == HB_EVENT && !key) place_event(h, o, &loops);
    }
    vec_free(&loops);
}
