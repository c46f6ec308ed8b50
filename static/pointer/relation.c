/* The result as one number. Everything that goes into it is named by the program (functions, variables, sites, calls), never
 * by internal numbers, and the sum of the hashes of its lines does not depend on their order. Cells are left out: what they
 * hold follows from the statements and the variables. */
#include "static/pointer/view.h"

static uint64_t context_hash(const pta *p, uint32_t context)
{
    const graph_context *c = &p->contexts.data[context];
    uint64_t hash = map_hash(p->rules->hash(p, c->base) + 1);
    for (uint32_t i = 0; i < c->count; i++)
        hash = map_hash(hash * 31 + view_call_of(p, c->calls[i]) + 1);
    return hash;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return map_hash(hash * 0x100000001b3u + value + 1);
}

uint64_t pta_relation_hash(const pta *p)
{
    uint64_t sum = 0;
    uint64_t *contexts = base_alloc(p->contexts.len * sizeof *contexts);
    for (uint32_t c = 0; c < p->contexts.len; c++)
        contexts[c] = !p->view || view_context_of(p, c) != FOLLOW_NONE ? context_hash(p, c) : 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sum)
    for (uint32_t i = 0; i < p->instances.len; i++) {
        const graph_instance *instance = &p->instances.data[i];
        if (!instance->live) continue;
        uint64_t place = mix(contexts[instance->context], view_func_of(p, instance->func));
        sum += mix(place, 0xca11);
        for (uint32_t c = 0; c < instance->callers.len; c++) {
            if (graph_is_dormant(p, &instance->callers.data[c])) continue;
            uint32_t use = instance->callers.data[c].use;
            const graph_instance *caller = &p->instances.data[p->uses.data[use].instance];
            uint32_t stmt = view_stmt_of(p, caller->func, p->uses.data[use].stmt);
            sum += mix(mix(mix(place, view_func_of(p, caller->func)), contexts[caller->context]), stmt);
        }
        key_list keys = {0};
        for (uint32_t v = 0; v < view_program(p)->funcs.data[view_func_of(p, instance->func)].var_count; v++) {
            vec_clear(&keys);
            set_normal(&p->nodes.data[graph_component(p, graph_var(instance, view_var(p, instance->func, v)))].set, graph_world(p), &keys);
            for (uint32_t k = 0; k < keys.len; k++) {
                const graph_object *o = &p->objects.data[key_object(keys.data[k])];
                sum += mix(mix(mix(mix(place, v), view_site_of(p, o->site)), contexts[o->context]), key_offset(keys.data[k]));
            }
        }
        vec_free(&keys);
    }
    free(contexts);
    return sum;
}
