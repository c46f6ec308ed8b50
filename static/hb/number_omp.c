/* Iterations that OpenMP gives to the threads of a team, by the calls and by the computations that compilers make of loops. */
#include "static/hb/number.h"

static const char *callee_name(const hb *h, const hb_call *call)
{
    uint32_t func = h->program->calls.data[call->call].func;
    return func == PTA_NO_FUNC ? "" : h->program->funcs.data[func].name;
}

bool omp_is_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    if (insn->op != IR_RESULT || insn->var != IR_RAX) return false;
    const hb_call *call = hb_call_at(h, func, ir->insns[insn->a].insn);
    return call && call->sync && call->sync->kind == SYNC_NUMBER;
}

/* The argument that points to where the first iteration is left, or -1. */
static int lower_argument(const char *name)
{
    if (!strncmp(name, "__kmpc_for_static_init_", 23)) return 4;
    if (!strncmp(name, "__kmpc_dispatch_next_", 21)) return 3;
    if (strncmp(name, "GOMP_loop_", 10)) return -1;
    if (strstr(name, "_next")) return 0;
    if (!strstr(name, "_start")) return -1;
    if (!strcmp(name, "GOMP_loop_start") || !strcmp(name, "GOMP_loop_ordered_start")) return 5;
    if (!strcmp(name, "GOMP_loop_doacross_start")) return 4;
    if (strstr(name, "doacross")) return 3 - !!strstr(name, "runtime") + !!strstr(name, "_ull_");
    return 4 - !!strstr(name, "runtime") + !!strstr(name, "_ull_");
}

/* A loop that is handed out anew each time round another one, without a barrier in between: an iteration may go to another thread
 * while the one that had it the last time is at it still. */
static bool is_repeated(const hb *h, uint32_t func, const ir_func *ir, const hb_call *call)
{
    uint32_t loop = ir->blocks[hb_block_of(ir->func, call->insn)].loop;
    const char *name = callee_name(h, call);
    if (strstr(name, "_next") && loop) loop = ir->loops[loop - 1].parent; /* the loop that asks for more */
    if (!loop || strstr(name, "static")) return false;
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *other = &h->funcs[func].calls[c];
        if (!other->sync || other->sync->kind != SYNC_BARRIER) continue;
        for (uint32_t l = ir->blocks[hb_block_of(ir->func, other->insn)].loop; l; l = ir->loops[l - 1].parent)
            if (l == loop) return false;
    }
    return true;
}

/* What the variable of the frame that an argument points to is set to before a call, if that is a constant. */
static int64_t frame_constant(const ir_func *ir, const hb_call *call, unsigned arg)
{
    int32_t at, to;
    uint8_t base, other;
    ir_value pointer = part_argument(ir, call, arg), found = 0;
    uint32_t here = hb_block_of(ir->func, call->insn);
    if (!pointer || !ir_frame_offset(ir, pointer, &at, &base)) return -1;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE) continue;
        const ir_insn *access = &ir->insns[ir->insns[v].a];
        if (access->b || !access->a || !ir_frame_offset(ir, access->a, &to, &other) || other != base) continue;
        if (to + access->imm + ir->insns[v].imm != at) continue;
        uint32_t block = hb_block_of(ir->func, ir->insns[v].insn);
        if (block == here ? ir->insns[v].insn > call->insn : !ir_dominates(ir, block, here)) continue;
        uint32_t before = found ? hb_block_of(ir->func, ir->insns[found].insn) : 0;
        if (!found || (before == block ? ir->insns[found].insn < ir->insns[v].insn : ir_dominates(ir, before, block))) found = v;
    }
    return found ? part_number(ir, ir->insns[found].b) : -1;
}

/* The call that has filled a variable of the frame with the first iteration, when a load of it is reached. */
static const hb_call *handing_out(const hb *h, uint32_t func, const ir_func *ir, const ir_insn *access, uint32_t insn)
{
    int32_t at, given;
    uint8_t base, other;
    const hb_call *found = NULL;
    if (access->b || !access->a || !ir_frame_offset(ir, access->a, &at, &base)) return NULL;
    for (uint32_t c = 0; c < h->funcs[func].call_count; c++) {
        const hb_call *call = &h->funcs[func].calls[c];
        int arg = lower_argument(callee_name(h, call));
        if (arg < 0 || !call->value) continue;
        ir_value pointer = part_argument(ir, call, (unsigned)arg);
        if (!pointer || !ir_frame_offset(ir, pointer, &given, &other) || other != base || given != at + access->imm) continue;
        uint32_t from = hb_block_of(ir->func, call->insn), to = hb_block_of(ir->func, insn);
        if (from == to ? call->insn > insn : !ir_dominates(ir, from, to)) continue;
        uint32_t before = found ? hb_block_of(ir->func, found->insn) : 0;
        if (!found || (before == from ? found->insn < call->insn : ir_dominates(ir, before, from))) found = call;
    }
    return found;
}

/* A load of the first iteration that was handed out to this thread. */
static bool is_handed_out(const hb *h, uint32_t instance, ir_value v, uint64_t *space)
{
    uint32_t func = h->instances[instance].func;
    const ir_func *ir = part_code(h, instance);
    const ir_insn *load = &ir->insns[v];
    if (load->op != IR_LOAD) return false;
    const hb_call *call = handing_out(h, func, ir, &ir->insns[load->a], load->insn);
    if (!call || is_repeated(h, func, ir, call)) return false;
    ir_value pointer = part_argument(ir, call, (unsigned)lower_argument(callee_name(h, call)));
    const char *name = callee_name(h, call);
    int32_t given = 0;
    uint8_t base;
    ir_frame_offset(ir, pointer, &given, &base);
    *space = map_hash(((uint64_t)func << 32) + (uint64_t)(uint32_t)given) | 1; /* asking for the first and for more is one loop */
    if (strstr(name, "static_init")) {
        int64_t kind = part_number(ir, part_argument(ir, call, 2)), low = frame_constant(ir, call, 4), high = frame_constant(ir, call, 5);
        *space = map_hash(((uint64_t)func << 32) + call->insn) | 1;
        if (kind > 0 && low >= 0 && high >= 0) /* equal loops go to the same threads */
            *space = map_hash(map_hash(map_hash((uint64_t)kind) + (uint64_t)low) + (uint64_t)high) | 1;
    }
    return true;
}

/* The first iteration of a task of a task loop. */
static bool is_task_first(const hb *h, uint32_t origin, uint32_t instance, ir_value v, uint64_t *space)
{
    enum { GOMP_FIRST = 0, KMP_FIRST = 40 }; /* where in what the task is given: its arguments; kmp_task_t */
    const hb_origin *o = &h->origins.data[origin];
    const ir_func *ir = part_code(h, instance);
    if (!o->by || o->by->kind != SYNC_TASK || !o->by->shared || ir->insns[v].op != IR_LOAD) return false;
    value_sum address = value_address(ir, &ir->insns[ir->insns[v].a]);
    part_sum sum = {.known = true};
    part_expand(h, origin, instance, &address, 1, &sum);
    if (!sum.known || sum.count != 1 || sum.terms[0].factor != 1 || sum.terms[0].instance != o->instance) return false;
    int param = gift_param(part_code(h, o->instance), sum.terms[0].leaf);
    bool gomp = o->by->other >= 0;
    *space = map_hash(o->entry) | 1;
    return gomp ? param == 0 && sum.add == GOMP_FIRST : param == 1 && sum.add == KMP_FIRST;
}

static bool names_team(const char *name)
{
    return !strcmp(name, "omp_get_thread_num") || !strcmp(name, "omp_get_num_threads");
}

/* How a value is computed, as a number: equal ones are equal in all threads that have the same number. */
static uint64_t shape_of(const hb *h, uint32_t func, const ir_func *ir, ir_value v, unsigned depth)
{
    v = value_plain(ir, v, 4);
    const ir_insn *insn = &ir->insns[v];
    uint64_t hash = map_hash(insn->op);
    if (depth > 10) return map_hash(hash + v);
    switch (insn->op) {
    case IR_CONST: return map_hash(hash + (uint64_t)insn->imm);
    case IR_RESULT: {
        const hb_call *call = hb_call_at(h, func, ir->insns[insn->a].insn);
        return call && names_team(callee_name(h, call)) ? map_hash(hash + (call->sync ? 1 : 2)) : map_hash(hash + v);
    }
    case IR_LEA: case IR_SUB: case IR_MUL: case IR_SHL: case IR_SAR: case IR_SHR: case IR_AND:
        hash = map_hash(hash + (uint64_t)insn->imm + insn->scale * 7u);
        if (insn->a) hash = map_hash(hash + shape_of(h, func, ir, insn->a, depth + 1));
        if (insn->b) hash = map_hash(hash * 3 + shape_of(h, func, ir, insn->b, depth + 1));
        return hash;
    case IR_OPAQUE: case IR_PHI:
        hash = map_hash(hash + (insn->op == IR_PHI ? 0 : ir->func->insns[insn->insn].mnemonic) + insn->var);
        for (uint32_t i = 0; i < insn->b; i++)
            if (ir->args[insn->a + i]) hash = map_hash(hash * 3 + shape_of(h, func, ir, ir->args[insn->a + i], depth + 1));
        return hash;
    default: return map_hash(hash + v);
    }
}

/* Whether a value is computed from the number of the thread in its team, by multiplication. */
static bool from_thread_number(const hb *h, uint32_t func, const ir_func *ir, ir_value v, bool times, unsigned depth)
{
    if (!v || depth > 10) return false;
    v = value_plain(ir, v, 4);
    const ir_insn *insn = &ir->insns[v];
    if (omp_is_thread_number(h, func, ir, v)) return times;
    switch (insn->op) {
    case IR_MUL: case IR_SHL: case IR_LEA: case IR_SUB:
        times |= insn->op == IR_MUL || insn->op == IR_SHL;
        return from_thread_number(h, func, ir, insn->a, times, depth + 1) || from_thread_number(h, func, ir, insn->b, times, depth + 1);
    default: return false;
    }
}

static bool is_first(const hb *h, uint32_t origin, uint32_t instance, ir_value v, uint64_t *space)
{
    uint32_t func = h->instances[instance].func;
    const ir_func *ir = part_code(h, instance);
    if (is_handed_out(h, instance, v, space) || is_task_first(h, origin, instance, v, space)) return true;
    if (!from_thread_number(h, func, ir, v, false, 0)) return false;
    *space = shape_of(h, func, ir, v, 0) | 1;
    return true;
}

/* Some call, or some store, has the address of a variable of the frame. */
static bool is_known(const ir_func *ir, int64_t at, uint8_t base)
{
    int32_t offset;
    uint8_t other;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        ir_value stored = insn->op == IR_STORE ? insn->b : 0;
        if (stored && ir_frame_offset(ir, stored, &offset, &other) && other == base && offset == at) return true;
        for (uint32_t i = 0; (insn->op == IR_CALL || insn->op == IR_TAIL) && i < insn->b; i++) {
            ir_value arg = i == IR_CALL_RSP ? 0 : ir->args[insn->a + i];
            if (arg && ir_frame_offset(ir, arg, &offset, &other) && other == base && offset == at) return true;
        }
    }
    return false;
}

/* Unoptimised code keeps the iteration in a variable of the frame, which begins with the first and grows by one. */
static bool is_counted_in_frame(const hb *h, uint32_t origin, uint32_t instance, ir_value v, uint64_t *space)
{
    const ir_func *ir = part_code(h, instance);
    int32_t at, to;
    uint8_t base, other;
    bool begins = false;
    if (ir->insns[v].op != IR_LOAD) return false;
    const ir_insn *access = &ir->insns[ir->insns[v].a];
    if (!(access->flags & IR_FRAME) || access->b || !access->a || !ir_frame_offset(ir, access->a, &at, &base) || is_known(ir, at + access->imm, base))
        return false;
    for (ir_value u = 1; u < ir->insn_count; u++) {
        if (ir->insns[u].op != IR_STORE) continue;
        const ir_insn *store = &ir->insns[ir->insns[u].a];
        if (store->b || !store->a || !ir_frame_offset(ir, store->a, &to, &other) || other != base) continue;
        if (to + store->imm >= at + access->imm + access->width || to + store->imm + store->width <= at + access->imm) continue;
        value_sum s = value_of(ir, ir->insns[u].b);
        uint64_t of = 0;
        bool grows = s.known && s.count == 1 && s.terms[0].factor == 1 && s.add == 1 && ir->insns[s.terms[0].leaf].op == IR_LOAD &&
                     value_same_access(ir, access, &ir->insns[ir->insns[s.terms[0].leaf].a]);
        bool first = false;
        for (uint32_t i = 0; s.known && !s.add && i < s.count && !first; i++)
            first = s.terms[i].factor == 1 && is_first(h, origin, instance, s.terms[i].leaf, &of);
        if (!grows && (!first || (begins && of != *space))) return false;
        if (first) *space = of;
        begins |= first;
    }
    return begins;
}

bool omp_first_iteration(const hb *h, uint32_t origin, uint32_t instance, ir_value v, uint64_t *space)
{
    return is_first(h, origin, instance, v, space) || is_counted_in_frame(h, origin, instance, v, space);
}
