/* Which nodes have something of an object. Deletion asks that of a few objects, when wild pointers may point into them
 * no more: which other pointer says that they do, and where what SET_WILD stood for has to be made known again. There
 * are as many nodes as the program has variables, and most have nothing of it.
 *
 * The lists are made when somebody asks first, and kept complete from then on: whatever a node gets is noted. What it
 * loses is not, so whoever asks has to look whether it is still there; when too much of that has gathered they are made
 * anew. */
#include <stdlib.h>

#include "static/pointer/graph.h"

static void add(pta *p, uint32_t object, uint32_t node)
{
    while (p->holders.len <= object)
        vec_push(&p->holders, (id_list){0});
    id_list *of = &p->holders.data[object];
    if (of->len && of->data[of->len - 1] == node) return;
    vec_push(of, node);
    p->held++;
}

static void add_all(pta *p, uint32_t node)
{
    const pta_set *set = &p->nodes.data[node].set;
    for (uint32_t i = 0; i < set->len; i++)
        add(p, key_object(set->keys[i]), node);
}

void holders_note(pta *p, uint32_t node)
{
    graph_node *n = &p->nodes.data[node];
    if (!p->holders.len) return;
    for (uint32_t i = 0; i < n->delta.len && !n->quiet; i++)
        add(p, key_object(n->delta.data[i]), node);
    if (n->quiet) add_all(p, node);
    n->quiet = false;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

const id_list *holders_of(pta *p, uint32_t object)
{
    if (p->holders.len && p->held > p->held_most) holders_free(p);
    if (!p->holders.len) {
        add(p, p->objects.len, 0); /* so that it is not empty */
        for (uint32_t n = 0; n < p->nodes.len; n++)
            add_all(p, n);
        p->held_most = 2 * p->held + 100000;
    }
    while (p->holders.len <= object)
        vec_push(&p->holders, (id_list){0});
    id_list *of = &p->holders.data[object];
    uint32_t kept = 0;
    if (of->len > 1) qsort(of->data, of->len, sizeof *of->data, by_number);
    for (uint32_t i = 0; i < of->len; i++) {
        if (kept && of->data[kept - 1] == of->data[i]) continue;
        const pta_set *set = &p->nodes.data[of->data[i]].set;
        uint32_t at = set_group(set, object);
        if (at < set->len && key_object(set->keys[at]) == object) of->data[kept++] = of->data[i];
    }
    p->held -= of->len - kept;
    of->len = kept;
    return of;
}

void holders_free(pta *p)
{
    for (uint32_t i = 0; i < p->holders.len; i++)
        vec_free(&p->holders.data[i]);
    vec_free(&p->holders);
    p->held = 0;
}
