/* Prone pointers. Whether a pointer is wild hangs on whether it points into one object more or less. Where pointers of
 * all kinds meet, thousands of them hang on the first that is, which hangs on each of the objects that it points into,
 * and on how each of them came there: a statement in fifty is part of that proof. When one of them goes, all that is
 * wild falls, and then comes back by another object.
 *
 * With contexts there is something else to stand on: the result without (pta.plain), which is there before. A variable
 * that is wild there is prone. With contexts it is wild as soon as it points into a few objects, SET_PRONE times fewer
 * than others: contexts may tell it apart from others still, if they do so well, but nothing has to be collected first
 * for half of the program to learn what is known already. Only if wild pointers point into very many objects, all
 * together: else little hangs on them, and contexts may tell them apart to some avail.
 *
 * All that is a function of the program, as the result without contexts is, never of the order of solving or of edits.
 */
#include "static/pointer/delete.h"

/* An instance, named without the base of its context, so that it is the same with and without contexts. */
static uint64_t name_of(const pta *p, const graph_instance *i)
{
    const graph_context *c = &p->contexts.data[i->context];
    uint64_t hash = map_hash(i->func + 1ull);
    for (uint32_t k = 0; k < c->count; k++)
        hash = map_hash(hash * 31 + c->calls[k] + 1);
    return hash & ~(1ull << 63);
}

/* The variables of an instance that are wild. */
static void note_instance(pta *p, const pta *plain, const graph_instance *i)
{
    uint32_t count = plain->program->funcs.data[i->func].var_count, first = p->plain_wild.len;
    for (uint32_t v = 0; v < count; v++)
        if (set_is_wild(&plain->nodes.data[graph_component(plain, graph_var(i, v))].set)) vec_push(&p->plain_wild, v);
    uint64_t name = name_of(plain, i);
    if (p->plain_wild.len == first && map_get(&p->plain_wild_of, name) == MAP_NONE) return;
    vec_push(&p->plain_wild, UINT32_MAX); /* the end */
    *map_at(&p->plain_wild_of, name) = first;
}

static bool is_vast(const pta *p, const pta *plain)
{
    return plain->nodes.data[graph_component(plain, plain->wilderness)].set.len > 2 * p->options.wild_at;
}

void prone_note_plain(pta *p, const pta *plain)
{
    map_free(&p->plain_wild_of);
    p->plain_wild_of = (map64){0};
    vec_clear(&p->plain_wild);
    p->plain_vast = is_vast(p, plain);
    for (uint32_t i = 0; p->plain_vast && i < plain->instances.len; i++)
        note_instance(p, plain, &plain->instances.data[i]);
    p->plain_noted = p->plain_wild.len;
}

static const uint32_t *prone_variables(const pta *p, const graph_instance *i)
{
    static const uint32_t none = UINT32_MAX;
    uint32_t first = p->plain_wild_of.count ? map_get(&p->plain_wild_of, name_of(p, i)) : MAP_NONE;
    return first == MAP_NONE ? &none : &p->plain_wild.data[first];
}

void prone_begin(pta *p, uint32_t instance)
{
    const graph_instance *i = &p->instances.data[instance];
    for (const uint32_t *var = prone_variables(p, i); *var != UINT32_MAX; var++)
        p->nodes.data[graph_var(i, *var)].set.prone = true;
}

/* A variable is prone now, or no more. */
static void turn(pta *p, uint32_t node, id_list *due)
{
    pta_set *set = &p->nodes.data[node].set;
    set->prone = !set->prone;
    if (set->prone)
        vec_push(due, node);
    else if (set_is_wild(set) && (p->options.algorithm != PTA_IPA || set->reasons[0] == SET_NO_REASON))
        delete_question(p, node, 0);
}

static void follow_instance(pta *p, const graph_instance *i, id_list *due)
{
    const uint32_t *var = prone_variables(p, i);
    uint32_t count = p->program->funcs.data[i->func].var_count;
    for (uint32_t v = 0; v < count; v++) {
        bool prone = *var == v;
        uint32_t node = graph_var(i, v);
        if (prone != p->nodes.data[node].set.prone) turn(p, node, due);
        var += prone;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Those of `plain` in which a variable is wild that was not, or is no more, as functions. */
static void turned_functions(pta *p, pta *plain, id_list *funcs)
{
    id_list *turned = &plain->wild_turned;
    qsort(turned->data, turned->len, sizeof *turned->data, by_number);
    for (uint32_t k = 0; k < turned->len; k++) {
        if (k && turned->data[k] == turned->data[k - 1]) continue;
        const graph_instance *i = &plain->instances.data[turned->data[k]];
        note_instance(p, plain, i);
        vec_push(funcs, i->func);
    }
    if (funcs->len > 1) qsort(funcs->data, funcs->len, sizeof *funcs->data, by_number);
}

void prone_follow_plain(pta *p, pta *plain, id_list *due)
{
    bool vast = is_vast(p, plain);
    if (!vast && !p->plain_vast) return;
    if (vast != p->plain_vast || plain->wild_turned_all || p->plain_wild.len > 2 * p->plain_noted + 1000) {
        prone_note_plain(p, plain);
        for (uint32_t i = 0; i < p->instances.len; i++)
            follow_instance(p, &p->instances.data[i], due);
        return;
    }
    id_list funcs = {0};
    if (plain->wild_turned.len) turned_functions(p, plain, &funcs);
    for (uint32_t f = 0; f < funcs.len; f++) {
        const id_list *of = &p->instances_of.data[funcs.data[f]];
        for (uint32_t k = 0; (!f || funcs.data[f] != funcs.data[f - 1]) && k < of->len; k++)
            follow_instance(p, &p->instances.data[of->data[k]], due);
    }
    vec_free(&funcs);
}
