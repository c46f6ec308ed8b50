/* SSA: liveness of variables, removal of definitions that nothing needs, pruned phi placement, renaming.
 *
 * Phis are placed at the iterated dominance frontier of the definitions, where the variable is live (Cytron et al.).
 * Copies are not propagated: that keeps the rule that a value used in another block is the content of its variable. */
#include "static/lift/raw.h"

#include <stdlib.h>

enum { VAR_LIMIT = IR_SLOT + IR_MAX_SLOTS, NO_VAR = UINT16_MAX };

typedef struct {
    raw_func *raw;
    ir_func *ir;
    const lift_func *func;
    uint16_t dense[VAR_LIMIT]; /* variable -> dense number, or NO_VAR */
    uint16_t *vars;            /* dense number -> variable */
    uint32_t var_count;
    uint32_t words; /* of a set of variables */
    uint64_t *live_in, *live_out;
    uint8_t *keep;    /* per raw instruction */
    ir_value *number; /* raw instruction -> value */
    uint32_t *frontier_first, *frontier; /* dominance frontiers; NULL when too large: then every join is in every one */
    VEC(uint64_t) phis; /* block << 16 | dense variable, sorted */
    uint32_t *phi_first; /* per block, and one more: its phis in `phis` */
} ssa;

static bool set_has(const uint64_t *set, uint32_t v)
{
    return set[v / 64] >> (v % 64) & 1;
}

static void set_add(uint64_t *set, uint32_t v)
{
    set[v / 64] |= UINT64_C(1) << (v % 64);
}

static void set_remove(uint64_t *set, uint32_t v)
{
    set[v / 64] &= ~(UINT64_C(1) << (v % 64));
}

/* Calls fn on each operand of an instruction. */
#define EACH_OPERAND(s, insn, operand, body)                                                                           \
    do {                                                                                                               \
        if (raw_has_args((insn)->op)) {                                                                                \
            for (uint32_t k_ = 0; k_ < (insn)->b; k_++) {                                                              \
                ir_value operand = (s)->raw->args.data[(insn)->a + k_];                                                \
                body                                                                                                   \
            }                                                                                                          \
        } else {                                                                                                       \
            for (unsigned k_ = 0; k_ < 2; k_++) {                                                                      \
                ir_value operand = k_ ? (insn)->b : (insn)->a;                                                         \
                body                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        {                                                                                                              \
            ir_value operand = (insn)->c;                                                                              \
            body                                                                                                       \
        }                                                                                                              \
    } while (0)

static void number_var(ssa *s, uint32_t var)
{
    if (s->dense[var] != NO_VAR) return;
    s->dense[var] = (uint16_t)s->var_count;
    s->vars[s->var_count++] = (uint16_t)var;
}

static void number_vars(ssa *s)
{
    memset(s->dense, 0xff, sizeof s->dense);
    s->vars = base_alloc(VAR_LIMIT * sizeof *s->vars);
    for (uint32_t i = 1; i < s->raw->code.len; i++) {
        const ir_insn *insn = &s->raw->code.data[i];
        if (insn->op == IR_CLOBBER || insn->op == IR_RESULT) continue; /* no reason to track a variable */
        EACH_OPERAND(s, insn, v, { if (v & RAW_VAR) number_var(s, v & ~RAW_VAR); });
        if (insn->var != IR_NOVAR) number_var(s, insn->var);
    }
    s->words = (s->var_count + 63) / 64;
}

/* Definitions of variables that no instruction ever reads or otherwise sets (most lanes that a call clobbers). */
static bool is_idle(const ssa *s, const ir_insn *insn)
{
    return insn->var != IR_NOVAR && s->dense[insn->var] == NO_VAR;
}

/* The definition uses the old content, but only if the new one is needed: liveness passes through. */
static bool passes_through(const ir_insn *insn)
{
    ir_value old = RAW_VAR | insn->var;
    if (insn->var == IR_NOVAR) return false;
    return ((insn->op == IR_RESULT || insn->op == IR_CLOBBER) && insn->b == old) ||
           (insn->op == IR_INSERT && insn->a == old && insn->b != old);
}

/* --- liveness and dead definitions -------------------------------------------------------------------------------- */

static void local_sets(const ssa *s, uint32_t block, uint64_t *use, uint64_t *def)
{
    for (uint32_t i = s->raw->first[block]; i < s->raw->first[block + 1]; i++) {
        const ir_insn *insn = &s->raw->code.data[i];
        if (is_idle(s, insn)) continue;
        bool through = passes_through(insn);
        EACH_OPERAND(s, insn, v, {
            if ((v & RAW_VAR) && !(through && v == (RAW_VAR | insn->var)) && !set_has(def, s->dense[v & ~RAW_VAR]))
                set_add(use, s->dense[v & ~RAW_VAR]);
        });
        if (insn->var != IR_NOVAR && !through) set_add(def, s->dense[insn->var]);
    }
}

static void solve_liveness(ssa *s)
{
    const lift_func *func = s->func;
    size_t total = (size_t)func->block_count * s->words;
    uint64_t *use = base_alloc_zero(total, 8), *def = base_alloc_zero(total, 8);
    s->live_in = base_alloc_zero(total, 8);
    s->live_out = base_alloc_zero(total, 8);
    for (uint32_t b = 0; b < func->block_count; b++) {
        local_sets(s, b, use + (size_t)b * s->words, def + (size_t)b * s->words);
        if (func->blocks[b].end_kind == END_UNKNOWN) /* what comes after may need anything */
            for (uint32_t v = 0; v < s->var_count; v++)
                set_add(s->live_out + (size_t)b * s->words, v);
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = s->ir->rpo_count; n-- > 0;) {
            uint32_t b = s->ir->rpo[n];
            uint64_t *in = s->live_in + (size_t)b * s->words, *out = s->live_out + (size_t)b * s->words;
            const lift_block *block = &func->blocks[b];
            for (uint32_t e = 0; e < block->succ_count; e++) {
                const uint64_t *next = s->live_in + (size_t)func->edges[block->first_succ + e].to * s->words;
                for (uint32_t w = 0; w < s->words; w++)
                    out[w] |= next[w];
            }
            for (uint32_t w = 0; w < s->words; w++) {
                uint64_t now = use[(size_t)b * s->words + w] | (out[w] & ~def[(size_t)b * s->words + w]);
                again |= now != in[w];
                in[w] = now;
            }
        }
    }
    free(use);
    free(def);
}

static bool has_effect(uint8_t op)
{
    switch (op) {
    case IR_ACCESS:
    case IR_STORE:
    case IR_CALL:
    case IR_TAIL:
    case IR_BRANCH:
    case IR_SWITCH:
    case IR_RET:
    case IR_SYSCALL:
    case IR_TRAP: return true;
    default: return false;
    }
}

static void mark_kept(ssa *s)
{
    s->keep = base_alloc_zero(s->raw->code.len, 1);
    uint64_t *live = base_alloc_zero(s->words, 8);
    for (uint32_t n = 0; n < s->ir->rpo_count; n++) {
        uint32_t b = s->ir->rpo[n];
        memcpy(live, s->live_out + (size_t)b * s->words, (size_t)s->words * 8);
        for (uint32_t i = s->raw->first[b + 1]; i-- > s->raw->first[b];) {
            const ir_insn *insn = &s->raw->code.data[i];
            if (is_idle(s, insn)) continue;
            bool defines = insn->var != IR_NOVAR;
            if (!s->keep[i] && !has_effect(insn->op) && !(defines && set_has(live, s->dense[insn->var]))) continue;
            s->keep[i] = 1;
            if (defines) set_remove(live, s->dense[insn->var]);
            EACH_OPERAND(s, insn, v, {
                if (v & RAW_VAR)
                    set_add(live, s->dense[v & ~RAW_VAR]);
                else
                    s->keep[v] = 1;
            });
        }
    }
    free(live);
}

/* --- phis ------------------------------------------------------------------------------------------------------------ */

static bool is_join(const lift_func *func, uint32_t block)
{
    return func->blocks[block].pred_count + (block == 0) >= 2;
}

/* Walks from each predecessor of a join up to its dominator; fn counts or stores. False: more than `limit` steps. */
static bool walk_frontiers(const ssa *s, uint32_t *count, uint32_t *store, uint64_t limit)
{
    uint64_t steps = 0;
    for (uint32_t n = 0; n < s->ir->rpo_count; n++) {
        uint32_t b = s->ir->rpo[n];
        if (!is_join(s->func, b)) continue;
        const lift_block *block = &s->func->blocks[b];
        for (uint32_t p = 0; p < block->pred_count; p++) {
            uint32_t runner = s->func->edges[s->func->preds[block->first_pred + p]].from;
            if (s->ir->blocks[runner].rpo == UINT32_MAX) continue;
            while (b == 0 || runner != s->ir->blocks[b].idom) {
                if (++steps > limit) return false;
                if (store)
                    store[count[runner]++] = b;
                else
                    count[runner + 1]++;
                if (runner == 0) break;
                runner = s->ir->blocks[runner].idom;
            }
        }
    }
    return true;
}

static void find_frontiers(ssa *s)
{
    uint32_t blocks = s->func->block_count;
    uint32_t *first = base_alloc_zero((size_t)blocks + 2, sizeof *first);
    if (!walk_frontiers(s, first, NULL, 1000 + 50 * (uint64_t)blocks)) { /* deep nests of loops */
        free(first);
        return;
    }
    for (uint32_t b = 0; b < blocks; b++)
        first[b + 1] += first[b];
    uint32_t *next = base_alloc(((size_t)blocks + 1) * sizeof *next);
    memcpy(next, first, ((size_t)blocks + 1) * sizeof *next);
    s->frontier = base_alloc(((size_t)first[blocks] + 1) * sizeof *s->frontier);
    walk_frontiers(s, next, s->frontier, UINT64_MAX);
    free(next);
    s->frontier_first = first;
}

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static void place_everywhere(ssa *s)
{
    for (uint32_t b = 0; b < s->func->block_count; b++)
        if (s->ir->blocks[b].rpo != UINT32_MAX && is_join(s->func, b))
            for (uint32_t v = 0; v < s->var_count; v++)
                if (set_has(s->live_in + (size_t)b * s->words, v)) vec_push(&s->phis, (uint64_t)b << 16 | v);
}

static void place_at_frontiers(ssa *s)
{
    /* definitions as (variable, block), each once */
    VEC(uint64_t) defs = {0};
    uint32_t *seen = base_alloc_zero(s->var_count + 1, sizeof *seen);
    for (uint32_t n = 0; n < s->ir->rpo_count; n++) {
        uint32_t b = s->ir->rpo[n];
        for (uint32_t i = s->raw->first[b]; i < s->raw->first[b + 1]; i++) {
            const ir_insn *insn = &s->raw->code.data[i];
            if (!s->keep[i] || insn->var == IR_NOVAR) continue;
            uint32_t v = s->dense[insn->var];
            if (seen[v] == b + 1) continue;
            seen[v] = b + 1;
            vec_push(&defs, (uint64_t)v << 32 | b);
        }
    }
    if (defs.len) qsort(defs.data, defs.len, sizeof *defs.data, by_number);

    VEC(uint32_t) work = {0};
    uint32_t *has_phi = base_alloc_zero((size_t)s->func->block_count, sizeof *has_phi); /* variable + 1, last placed */
    for (uint32_t i = 0; i < defs.len;) {
        uint32_t v = (uint32_t)(defs.data[i] >> 32);
        vec_clear(&work);
        for (; i < defs.len && defs.data[i] >> 32 == v; i++)
            vec_push(&work, (uint32_t)defs.data[i]);
        while (work.len) {
            uint32_t b = work.data[--work.len];
            for (uint32_t k = s->frontier_first[b]; k < s->frontier_first[b + 1]; k++) {
                uint32_t to = s->frontier[k];
                if (has_phi[to] == v + 1 || !set_has(s->live_in + (size_t)to * s->words, v)) continue;
                has_phi[to] = v + 1;
                vec_push(&s->phis, (uint64_t)to << 16 | v);
                vec_push(&work, to);
            }
        }
    }
    free(has_phi);
    free(seen);
    vec_free(&work);
    vec_free(&defs);
}

static void place_phis(ssa *s)
{
    find_frontiers(s);
    if (s->frontier)
        place_at_frontiers(s);
    else
        place_everywhere(s);
    if (s->phis.len) qsort(s->phis.data, s->phis.len, sizeof *s->phis.data, by_number);
    s->phi_first = base_alloc_zero((size_t)s->func->block_count + 1, sizeof *s->phi_first);
    for (uint32_t i = 0; i < s->phis.len; i++)
        s->phi_first[(s->phis.data[i] >> 16) + 1]++;
    for (uint32_t b = 0; b < s->func->block_count; b++)
        s->phi_first[b + 1] += s->phi_first[b];
}

/* --- numbering and renaming ------------------------------------------------------------------------------------------- */

static int32_t entry_frame(uint16_t var)
{
    return var == IR_RSP ? 0 : FRAME_OTHER;
}

/* Gives every kept instruction and phi its number and copies the instructions, operands still raw. */
static void lay_out(ssa *s)
{
    ir_func *ir = s->ir;
    raw_func *raw = s->raw;
    const lift_func *func = s->func;
    s->number = base_alloc_zero(raw->code.len, sizeof *s->number);

    uint32_t entries = 0, kept = 0, phi_args = 0, args = 1;
    for (uint32_t v = 0; func->block_count && v < s->var_count; v++)
        entries += set_has(s->live_in, v);
    for (uint32_t i = 0; i < raw->code.len; i++)
        if (s->keep[i]) {
            kept++;
            if (raw_has_args(raw->code.data[i].op)) args += raw->code.data[i].b;
        }
    for (uint32_t i = 0; i < s->phis.len; i++) {
        uint32_t b = (uint32_t)(s->phis.data[i] >> 16);
        phi_args += func->blocks[b].pred_count + (b == 0);
    }

    ir->insn_count = 1 + entries + s->phis.len + kept;
    ir->insns = arena_alloc(&ir->memory, (size_t)ir->insn_count * sizeof *ir->insns);
    ir->frame = arena_alloc(&ir->memory, (size_t)ir->insn_count * sizeof *ir->frame);
    ir->args = arena_alloc(&ir->memory, (size_t)(args + phi_args) * sizeof *ir->args);
    ir->arg_count = 1;
    ir->insns[0].var = IR_NOVAR;
    ir->frame[0] = FRAME_OTHER;

    uint32_t n = 1;
    for (uint32_t v = 0; func->block_count && v < s->var_count; v++) {
        if (!set_has(s->live_in, v)) continue;
        uint16_t var = s->vars[v];
        bool local = var >= IR_SLOT && (raw->slots.data[var - IR_SLOT].base || raw->slots.data[var - IR_SLOT].offset < 0);
        ir->frame[n] = entry_frame(var);
        ir->insns[n++] = (ir_insn){.op = local ? IR_UNDEF : IR_ENTRY, .width = 8, .var = var};
    }
    for (uint32_t b = 0; b < func->block_count; b++) {
        ir->blocks[b].first = n;
        for (uint32_t p = s->phi_first[b]; p < s->phi_first[b + 1]; p++) {
            uint16_t var = s->vars[s->phis.data[p] & 0xffff];
            uint32_t count = func->blocks[b].pred_count + (b == 0);
            ir->frame[n] = var < 16 ? raw->frame_in[(size_t)b * 16 + var] : FRAME_OTHER;
            ir->insns[n++] = (ir_insn){.op = IR_PHI, .width = 8, .var = var, .insn = func->blocks[b].first_insn,
                                       .a = ir->arg_count, .b = count};
            ir->arg_count += count;
        }
        for (uint32_t i = raw->first[b]; i < raw->first[b + 1]; i++) {
            if (!s->keep[i]) continue;
            s->number[i] = n;
            ir->frame[n] = raw->frame[i];
            ir->insns[n++] = raw->code.data[i];
        }
        ir->blocks[b].count = n - ir->blocks[b].first;
    }
}

typedef struct {
    uint32_t var;
    ir_value before;
} undo;

typedef struct {
    uint32_t block;
    uint32_t next; /* child to go to */
    uint32_t log;  /* length of the undo log when the block was entered */
} visit;

typedef struct {
    ssa *s;
    ir_value *current; /* per dense variable */
    VEC(undo) log;
    uint32_t *pred_place; /* per edge: its place among the preds of its target */
} renamer;

static void rename_define(renamer *r, uint16_t var, ir_value v)
{
    if (var == IR_NOVAR) return;
    uint32_t d = r->s->dense[var];
    vec_push(&r->log, (undo){d, r->current[d]});
    r->current[d] = v;
}

static ir_value renamed(const renamer *r, ir_value v)
{
    return v & RAW_VAR ? r->current[r->s->dense[v & ~RAW_VAR]] : r->s->number[v];
}

static void rename_block(renamer *r, uint32_t b)
{
    ssa *s = r->s;
    ir_func *ir = s->ir;
    uint32_t end = ir->blocks[b].first + ir->blocks[b].count;
    for (uint32_t i = ir->blocks[b].first; i < end; i++) {
        ir_insn *insn = &ir->insns[i];
        if (insn->op == IR_PHI) {
            rename_define(r, insn->var, i);
            continue;
        }
        if (raw_has_args(insn->op)) {
            uint32_t from = insn->a;
            insn->a = ir->arg_count;
            for (uint32_t k = 0; k < insn->b; k++)
                ir->args[ir->arg_count++] = renamed(r, s->raw->args.data[from + k]);
        } else {
            insn->a = renamed(r, insn->a);
            insn->b = renamed(r, insn->b);
        }
        insn->c = renamed(r, insn->c);
        rename_define(r, insn->var, i);
    }
    const lift_block *block = &s->func->blocks[b];
    for (uint32_t e = 0; e < block->succ_count; e++) {
        uint32_t edge = block->first_succ + e, to = s->func->edges[edge].to;
        for (uint32_t p = s->phi_first[to]; p < s->phi_first[to + 1]; p++) {
            const ir_insn *phi = &ir->insns[ir->blocks[to].first + (p - s->phi_first[to])];
            ir->args[phi->a + r->pred_place[edge]] = r->current[s->phis.data[p] & 0xffff];
        }
    }
}

static void rename_all(ssa *s)
{
    const lift_func *func = s->func;
    ir_func *ir = s->ir;
    renamer r = {.s = s};
    r.current = base_alloc_zero(s->var_count + 1, sizeof *r.current);
    r.pred_place = base_alloc_zero((size_t)func->edge_count + 1, sizeof *r.pred_place);
    for (uint32_t b = 0; b < func->block_count; b++)
        for (uint32_t k = 0; k < func->blocks[b].pred_count; k++)
            r.pred_place[func->preds[func->blocks[b].first_pred + k]] = k;

    for (uint32_t i = 1; i < ir->insn_count && (ir->insns[i].op == IR_ENTRY || ir->insns[i].op == IR_UNDEF) &&
                         (!func->block_count || i < ir->blocks[0].first);
         i++)
        r.current[s->dense[ir->insns[i].var]] = i;
    for (uint32_t p = s->phi_first[0]; p < s->phi_first[1]; p++) { /* the entry's argument */
        const ir_insn *phi = &ir->insns[ir->blocks[0].first + p];
        ir->args[phi->a + phi->b - 1] = r.current[s->phis.data[p] & 0xffff];
    }

    /* the dominator tree's children, then a walk over it with a stack of our own */
    uint32_t *child_first = base_alloc_zero((size_t)func->block_count + 2, sizeof *child_first);
    uint32_t *child = base_alloc(((size_t)func->block_count + 1) * sizeof *child);
    for (uint32_t n = 1; n < ir->rpo_count; n++)
        child_first[ir->blocks[ir->rpo[n]].idom + 2]++;
    for (uint32_t b = 0; b < func->block_count; b++)
        child_first[b + 2] += child_first[b + 1];
    for (uint32_t n = 1; n < ir->rpo_count; n++)
        child[child_first[ir->blocks[ir->rpo[n]].idom + 1]++] = ir->rpo[n];

    VEC(visit) stack = {0};
    if (ir->rpo_count) {
        vec_push(&stack, (visit){0, child_first[0], 0});
        rename_block(&r, 0);
    }
    while (stack.len) {
        uint32_t top = stack.len - 1, b = stack.data[top].block;
        if (stack.data[top].next < child_first[b + 1]) {
            uint32_t next = child[stack.data[top].next++];
            vec_push(&stack, (visit){next, child_first[next], r.log.len});
            rename_block(&r, next);
        } else {
            while (r.log.len > stack.data[top].log) {
                undo u = r.log.data[--r.log.len];
                r.current[u.var] = u.before;
            }
            stack.len--;
        }
    }
    vec_free(&stack);
    vec_free(&r.log);
    free(child);
    free(child_first);
    free(r.current);
    free(r.pred_place);
}

void raw_to_ssa(raw_func *raw, ir_func *ir)
{
    ssa *s = base_alloc_zero(1, sizeof *s);
    s->raw = raw, s->ir = ir, s->func = raw->func;
    number_vars(s);
    solve_liveness(s);
    mark_kept(s);
    place_phis(s);
    lay_out(s);
    rename_all(s);
    ir->slots = arena_copy(&ir->memory, raw->slots.data, raw->slots.len * sizeof *raw->slots.data);
    ir->slot_count = raw->slots.len;
    ir->frame_known = raw->frame_known;
    ir->frame_escapes = raw->frame_escapes;

    free(s->vars);
    free(s->live_in);
    free(s->live_out);
    free(s->keep);
    free(s->number);
    free(s->frontier_first);
    free(s->frontier);
    vec_free(&s->phis);
    free(s->phi_first);
    free(s);
}
