/* Constants before indices. `s->array[i].member` is computed as `s + i * size + (array + member)`, with the constant added last as a
 * rule. Solved as it stands, the index starts at the beginning of the struct, and nothing tells where it ends. But a sum has no
 * order: with the constant added first, the index starts in the array, and stays in it. Each use of `v + k`, where v is nothing
 * but other variables with an index added, becomes a use of a variable of its own that has the constant added before the index. */
#include <stdlib.h>

#include "static/pointer/generate.h"
#include "static/pointer/offset.h"

typedef struct {
    uint32_t var;
    int32_t delta;
    uint32_t hoisted;
} known_sum;

typedef struct {
    generated *out;
    uint32_t vars;          /* at the beginning */
    uint32_t *first, *next; /* copies by target: statement + 1 */
    bool *other;            /* per variable: something else defines it */
    VEC(known_sum) sums;
} hoister;

static bool is_indexed_copy(const pta_stmt *s)
{
    uint32_t step = s->stride & ~(uint32_t)PTA_FLAGS;
    return s->kind == PTA_COPY && s->stride < PTA_ALIGN && !(s->stride & PTA_BLOCK) && step > 1 && s->src.var != s->dst.var;
}

static void find_definitions(hoister *h)
{
    const generated *out = h->out;
    for (uint32_t v = 0; v < PTA_FIRST_LOCAL; v++)
        h->other[v] = true;
    for (uint32_t i = out->stmts.len; i-- > 0;) {
        const pta_stmt *s = &out->stmts.data[i];
        if (s->kind == PTA_STORE || s->kind == PTA_CALL) continue;
        if (!is_indexed_copy(s)) {
            h->other[s->dst.var] = true;
            continue;
        }
        h->next[i] = h->first[s->dst.var];
        h->first[s->dst.var] = i + 1;
    }
    for (uint32_t i = 0; i < out->calls.len; i++) {
        const pta_call *call = &out->calls.data[i];
        if (call->ret != PTA_NO_VAR) h->other[call->ret] = true;
        if (call->ret2 != PTA_NO_VAR) h->other[call->ret2] = true;
    }
}

enum { LARGEST = 1 << 28 }; /* sums of constants of statements have room */

static bool has_room(const hoister *h, uint32_t var, int32_t delta)
{
    for (uint32_t i = h->first[var]; i; i = h->next[i - 1]) {
        int64_t sum = (int64_t)h->out->stmts.data[i - 1].src.delta + delta;
        if (sum < -LARGEST || sum > LARGEST) return false;
    }
    return true;
}

static void hoist(hoister *h, pta_operand *what)
{
    if (what->var == PTA_NO_VAR || what->var >= h->vars || !what->delta || h->other[what->var] || !h->first[what->var]) return;
    if (!has_room(h, what->var, what->delta)) return;
    uint32_t i = 0;
    while (i < h->sums.len && (h->sums.data[i].var != what->var || h->sums.data[i].delta != what->delta))
        i++;
    if (i == h->sums.len) {
        vec_push(&h->sums, (known_sum){what->var, what->delta, h->out->var_count++});
        for (uint32_t d = h->first[what->var]; d; d = h->next[d - 1]) {
            pta_stmt copy = h->out->stmts.data[d - 1];
            copy.dst.var = h->sums.data[i].hoisted;
            copy.src.delta += what->delta;
            vec_push(&h->out->stmts, copy);
        }
    }
    *what = (pta_operand){h->sums.data[i].hoisted, 0};
}

void generate_hoisted(generated *out)
{
    hoister h = {.out = out, .vars = out->var_count};
    h.first = base_alloc_zero(h.vars, sizeof *h.first);
    h.other = base_alloc_zero(h.vars, sizeof *h.other);
    h.next = base_alloc_zero(out->stmts.len + 1, sizeof *h.next);
    find_definitions(&h);
    uint32_t count = out->stmts.len;
    for (uint32_t i = 0; i < count; i++) {
        pta_stmt s = out->stmts.data[i];
        if (s.kind == PTA_CALL) {
            pta_call *call = &out->calls.data[s.ref & ~(uint32_t)GENERATE_LOCAL];
            hoist(&h, &call->target);
            for (unsigned a = 0; a < PTA_PARAMS; a++)
                hoist(&h, &call->args[a]);
            continue;
        }
        if (s.kind != PTA_ADDR) hoist(&h, &s.src);
        if (s.kind == PTA_STORE) hoist(&h, &s.dst);
        out->stmts.data[i] = s;
    }
    for (uint32_t i = 0; i < out->accesses.len; i++)
        hoist(&h, &out->accesses.data[i].base);
    free(h.first);
    free(h.other);
    free(h.next);
    vec_free(&h.sums);
}
