/* What pointers were asked by the last analysis, and what they said.
 *
 * Nearly all that an edit leaves of a program points where it pointed before, and pta_follow says what does not. So the answers stay:
 * those about an instance that did not move, of a function whose variables have kept their numbers, as long as numbers of sites
 * and contexts mean what they meant. An answer is found again by the order in which questions come, since the code of a function
 * asks the same ones in the same order; it is taken only if its question is the one that is asked now, so nothing is said of the
 * code, which may have changed in ways that pointers do not know of. (Words of memory are asked for each time: which of them there
 * are hangs on the statements that go through them, so that nearly every edit is one of words.)
 *
 * Whoever asks pointers about the accesses of an instance does so here. */
#include "static/hb/answers.h"

enum { LOST = UINT32_MAX };

typedef struct {
    pta_operand what; /* the question */
    uint32_t stride;
    bool access;
    uint32_t first, count; /* in places; LOST: to too many */
} answer;

typedef struct {
    VEC(answer) all;
    VEC(pta_place) places;
} instance_answers;

struct hb_answers { /* of one result */
    const pta *of;
    instance_answers *instances;
    uint32_t instance_count;
};

typedef struct hb_asking {
    struct hb_answers *own; /* NULL: nobody wants them later */
    uint32_t instance, at;  /* who is asked about, and the number of its next question */
    pta_places places;      /* room for an answer */
} hb_asking;

static void free_instance(instance_answers *a)
{
    vec_free(&a->all);
    vec_free(&a->places);
}

void hb_answers_free(struct hb_answers *all)
{
    if (!all) return;
    for (uint32_t i = 0; i < all->instance_count; i++)
        free_instance(&all->instances[i]);
    free(all->instances);
    free(all);
}

/* What is still there has kept its number. */
static bool keeps_numbers(const uint32_t *was, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (was[i] != i && was[i] != PTA_NEW) return false;
    return true;
}

/* Places mean what they meant. */
static bool keeps_places(const pta_changes *c)
{
    return !c->anew && !c->wild && keeps_numbers(c->sites, c->site_count) && keeps_numbers(c->contexts, c->context_count);
}

static void take_instances(hb *h, struct hb_answers *own, struct hb_answers *old)
{
    const pta_changes *c = h->options.changes;
    for (uint32_t i = 0; i < h->instance_count; i++) {
        uint32_t func = h->instances[i].func;
        if (func == PTA_NO_FUNC || c->moved[i] || c->changed[func]) continue;
        own->instances[i] = old->instances[c->instances[i]];
        old->instances[c->instances[i]] = (instance_answers){0};
    }
}

void hb_answers_open(hb *h)
{
    struct hb_answers **kept = hb_memo_answers(h->options.memo), *old = kept ? *kept : NULL;
    const pta_changes *c = h->options.changes;
    h->asking = base_alloc_zero(1, sizeof *h->asking);
    if (!kept) return;
    struct hb_answers *own = h->asking->own = base_alloc_zero(1, sizeof *own);
    own->of = h->p;
    own->instance_count = h->instance_count;
    own->instances = base_alloc_zero(h->instance_count, sizeof *own->instances);
    if (old && c && old->of == h->p && keeps_places(c)) take_instances(h, own, old);
    hb_answers_free(old);
    *kept = NULL;
}

void hb_answers_close(hb *h)
{
    if (!h->asking) return;
    if (h->asking->own) *hb_memo_answers(h->options.memo) = h->asking->own;
    vec_free(&h->asking->places);
    free(h->asking);
}

/* --- what is taken over is what would be found ----------------------------------------------------------------------------------- */

static bool same_places(const pta_place *x, const pta_place *y, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (x[i].site != y[i].site || x[i].context != y[i].context || x[i].exact != y[i].exact || x[i].offset != y[i].offset ||
            x[i].stride != y[i].stride || x[i].element != y[i].element || x[i].least != y[i].least || x[i].end != y[i].end)
            return false;
    return true;
}

/* --- asking ---------------------------------------------------------------------------------------------------------------------- */

enum { MOST_FACTS = 2048 }; /* of a pointer: most of them would have to be out of bounds to leave few places */

/* False: to too many. */
static bool ask(const hb *h, uint32_t instance, const hb_question *q, pta_places *out)
{
    if (pta_breadth_in(h->p, instance, q->what.var) > MOST_FACTS || pta_is_broad_in(h->p, instance, q->what, q->stride, HB_MOST_PLACES))
        return false;
    if (q->access)
        pta_access_places_in(h->p, instance, q->access, out);
    else
        hb_points_to(h, instance, q->what, out);
    return true;
}

static bool is_about(const answer *a, const hb_question *q)
{
    return a->what.var == q->what.var && a->what.delta == q->what.delta && a->stride == q->stride && a->access == (q->access != NULL);
}

void hb_answers_begin(hb *h, uint32_t instance)
{
    h->asking->instance = instance;
    h->asking->at = 0;
}

/* Answers from here on were to other questions. */
static void cut(instance_answers *own, uint32_t at)
{
    if (at == own->all.len) return;
    own->places.len = own->all.data[at].first;
    own->all.len = at;
}

static void add(instance_answers *own, const hb_question *q, bool few, const pta_places *places)
{
    vec_push(&own->all, ((answer){q->what, q->stride, q->access != NULL, own->places.len, few ? places->len : LOST}));
    for (uint32_t i = 0; few && i < places->len; i++)
        vec_push(&own->places, places->data[i]);
}

static void recheck(hb_asking *a, const hb *h, const hb_question *q, const instance_answers *own, const answer *known)
{
    bool few = ask(h, a->instance, q, &a->places);
    if (known->count != (few ? a->places.len : LOST) || (few && !same_places(own->places.data + known->first, a->places.data, known->count)))
        hb_memo_differs("what an access is to");
}

bool hb_answers_next(hb *h, const hb_question *q, pta_places *out)
{
    hb_asking *a = h->asking;
    instance_answers *own = a->own ? &a->own->instances[a->instance] : NULL;
    bool known = own && a->at < own->all.len && is_about(&own->all.data[a->at], q);
    if (known && h->options.recheck) recheck(a, h, q, own, &own->all.data[a->at]);
    if (!known) {
        bool few = ask(h, a->instance, q, &a->places);
        if (!own) {
            *out = a->places;
            return few;
        }
        cut(own, a->at);
        add(own, q, few, &a->places);
    }
    const answer *now = &own->all.data[a->at++];
    out->data = own->places.data + now->first;
    out->len = now->count;
    return now->count != LOST;
}
