/* A check at every access, in front of its instruction: FastTrack's own placement (`--place ft`).
 *
 * Left out are accesses that no other thread can see or that nobody can write:
 *   - slots that the IR carries in variables, and the pushes and pops of calls
 *   - a function's own frame when no address of it leaves the function
 *   - reads of memory that is constant once the program runs (.rodata, .got)
 *   - the thread control block (fs:0 and above), which belongs to libc
 *   - reads of what the same block writes a little later (a[i] += x), when nothing that could order anything comes
 *     between: the check of the write covers them (BigFoot, section 3)
 * Everything else that a plan can express is checked; what it cannot is counted as unplanned: gathers and scatters,
 * masked vector moves, saves of the processor's state. */
#include "static/place/place.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    plan_draft *draft;
    const lift_module *module;
    const place_options *options;
    place_declared declared;
    const lift_func *func;
    bool is_atomic;  /* a function of std::atomic, or of Rust's */
    uint32_t *first; /* per machine instruction: its first IR_ACCESS, or 0 */
    uint32_t *next;  /* per IR instruction: the next IR_ACCESS of the same machine instruction, or 0 */
    uint32_t *effect; /* per machine instruction: what it writes, and EFFECT_*; 0: not looked at yet */
} placer;

enum { EFFECT_KNOWN = 1 << 16, EFFECT_ORDERS = 1 << 17 };

typedef enum { FATE_LOCAL, FATE_READ_ONLY, FATE_COVERED, FATE_CHECK, FATE_SYNC, FATE_UNPLANNED } fate;

/* --- what the IR says about an access ----------------------------------------------------------------------------- */

static void index_accesses(placer *p)
{
    const ir_func *ir = p->func->ir;
    p->first = base_alloc_zero(p->func->insn_count, sizeof *p->first);
    p->next = base_alloc_zero(ir ? ir->insn_count : 1, sizeof *p->next);
    p->effect = base_alloc_zero(p->func->insn_count, sizeof *p->effect);
    if (!ir) return;
    for (uint32_t v = ir->insn_count; v-- > 1;) { /* backwards: the lists are in order */
        const ir_insn *i = &ir->insns[v];
        if (i->op != IR_ACCESS || i->flags & IR_IMPLICIT || i->insn >= p->func->insn_count) continue;
        p->next[v] = p->first[i->insn];
        p->first[i->insn] = v;
    }
}

static bool is_own_frame(const ir_func *ir, const ir_insn *access)
{
    if (access->flags & IR_PROMOTED) return true;
    return access->flags & IR_FRAME && ir->frame_known && !ir->frame_escapes;
}

/* --- what its address says ---------------------------------------------------------------------------------------- */

static bool is_fixed(const plan_action *a)
{
    return a->index == PLAN_NOTHING && a->bits == PLAN_NOTHING && a->count == 1 && a->width == 8;
}

/* The module address that is accessed, when it is one and always the same: in the instruction, or by the IR (at -O0
 * compilers put it into a register first). */
static bool fixed_address(const placer *p, const plan_action *a, const ir_insn *access, uint64_t *addr)
{
    *addr = (uint64_t)a->disp;
    if (a->segment != PLAN_SEGMENT_NONE || !is_fixed(a)) return false;
    if (a->base == PLAN_MODULE || (a->base == PLAN_NOTHING && p->module->img->kind == IMAGE_EXEC)) return true;
    if (!access || access->b || !access->a) return false;
    const ir_insn *base = &p->func->ir->insns[ir_origin(p->func->ir, access->a)];
    *addr = (uint64_t)base->imm + (uint64_t)access->imm;
    return base->op == IR_ADDRESS;
}

/* A variable that was declared atomic is accessed by plain moves too. */
static bool is_atomic_variable(const image *img, uint64_t addr, uint32_t size)
{
    const image_variable *v = image_global_at(img, addr);
    if (!v || !v->type) return false;
    if (v->type->is_atomic) return true;
    const image_type *t = image_type_at(v->type, addr - (uint64_t)v->offset, size);
    return t && t->is_atomic;
}

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* The guard of a static object of a C++ function: its first byte is read without a call once it is set. */
static bool is_guard(const image *img, uint64_t addr)
{
    const image_symbol *s = image_symbol_covering(img, addr);
    return s && s->name && starts_with(s->name, "_ZGV");
}

/* A function of std::atomic, C++'s or Rust's, which accesses its object by plain moves when it is not inlined. */
static bool is_atomic_function(const char *name)
{
    static const char *const starts[] = {"_ZNSt6atomic", "_ZNKSt6atomic", "_ZNVSt6atomic", "_ZNVKSt6atomic",
                                         "_ZNSt13__atomic_base", "_ZNKSt13__atomic_base", "_ZNVSt13__atomic_base",
                                         "_ZNVKSt13__atomic_base", "_ZNSt11atomic_flag", "_ZNVSt11atomic_flag",
                                         "_ZNKSt11atomic_flag", "_ZNSt12__atomic_impl", "_ZNSt3__1L", "_ZNSt3__117__cxx_atomic",
                                         "_ZN4core4sync6atomic"};
    for (unsigned i = 0; name && i < sizeof starts / sizeof *starts; i++)
        if (starts_with(name, starts[i])) return true;
    return false;
}

/* An access that comes from the file that defines std::atomic, however it was inlined. */
static bool is_in_atomic_source(const image *img, uint64_t addr)
{
    image_frame frame;
    if (!image_frames_at(img, addr, &frame, 1) || !frame.at.file) return false;
    const char *name = strrchr(frame.at.file, '/');
    return name && (!strcmp(name, "/atomic_base.h") || (!strcmp(name, "/atomic") && strstr(frame.at.file, "c++")) ||
                    starts_with(name, "/cxx_atomic_impl") || (!strcmp(name, "/atomic.rs") && strstr(frame.at.file, "/core/src/sync/")));
}

/* The thread's variables lie below the thread pointer (variant II of the ABI). */
static bool is_control_block(const plan_action *a)
{
    return a->segment == PLAN_SEGMENT_FS && a->base == PLAN_NOTHING && is_fixed(a) && a->disp >= 0;
}

static void make_sync(plan_action *a)
{
    a->kind = PLAN_SYNC;
    if (a->flags & PLAN_READ) a->flags |= PLAN_ACQUIRE;
    if (a->flags & PLAN_WRITE) a->flags |= PLAN_RELEASE;
}

/* --- one instruction ---------------------------------------------------------------------------------------------- */

/* What becomes of one operand, given what the IR knows about it: `value` is its IR_ACCESS, or 0 when it has none. */
static fate judge(const placer *p, uint64_t at, const place_insn *insn, place_operand *operand, ir_value value)
{
    const image *img = p->module->img;
    plan_action *a = &operand->action;
    const ir_insn *access = value ? &p->func->ir->insns[value] : NULL;
    if (access) {
        a->flags = (uint8_t)((a->flags & ~(PLAN_READ | PLAN_WRITE)) | (access->flags & IR_READ ? PLAN_READ : 0) |
                             (access->flags & IR_WRITE ? PLAN_WRITE : 0));
        if (is_own_frame(p->func->ir, access)) return FATE_LOCAL;
        if (access->flags & IR_WIDE) return FATE_UNPLANNED;
        if (access->flags & IR_COND && !insn->is_exchange && !insn->is_repeated) return FATE_UNPLANNED;
        if (access->width != a->size) return FATE_UNPLANNED; /* decoder and IR disagree: neither is trusted */
    }
    if (!operand->known) return FATE_UNPLANNED;
    uint64_t addr;
    bool fixed = fixed_address(p, a, access, &addr);
    bool constant = fixed && !(a->flags & PLAN_WRITE) && image_is_constant(img, addr, a->size);
    if (constant) return FATE_READ_ONLY;
    if (is_control_block(a)) return FATE_LOCAL;
    bool atomic = access && access->flags & IR_ATOMIC;
    const bool is_string = a->count != 1; /* that is how many atomics at once are made, not how one is accessed */
    if (is_string && !atomic) return FATE_CHECK;
    if (atomic || (fixed && (is_atomic_variable(img, addr, a->size) || is_guard(img, addr))) || p->is_atomic ||
        is_in_atomic_source(img, at) || (access && place_is_atomic(&p->declared, at, a))) {
        make_sync(a);
        return FATE_SYNC;
    }
    return FATE_CHECK;
}

/* --- reads that are covered --------------------------------------------------------------------------------------- */

static bool is_same_place(const ir_insn *a, const ir_insn *b)
{
    const uint16_t segment = IR_FS | IR_GS;
    return a->a == b->a && a->b == b->b && a->scale == b->scale && a->imm == b->imm && a->width == b->width &&
           (a->flags & segment) == (b->flags & segment);
}

/* Does the block write what it has read by instruction `number`, before anything else than vectors or the own frame is
 * accessed? Any other access could be an atomic one. */
static bool is_written_soon(const placer *p, uint32_t number, uint32_t end, const ir_insn *read)
{
    const uint16_t strange = IR_ATOMIC | IR_COND | IR_REP | IR_WIDE;
    const ir_func *ir = p->func->ir;
    if (read->flags & (strange | IR_WRITE)) return false;
    for (uint32_t i = number + 1; i < end && p->func->insns[i].flow == FLOW_PLAIN; i++) {
        place_insn decoded;
        bool known = false;
        for (ir_value v = p->first[i]; v; v = p->next[v]) {
            const ir_insn *access = &ir->insns[v];
            if (is_own_frame(ir, access)) continue;
            if (access->flags & strange) return false;
            if (!known && !place_decode(p->module->img, &p->func->insns[i], &decoded)) return false;
            known = true;
            if (!decoded.is_vector) return false;
            if (access->flags & IR_WRITE && is_same_place(access, read)) return decoded.operand_count == 1;
        }
    }
    return false;
}

/* The IR_ACCESS of each operand: the one of its kind. Two of one kind (cmps) are taken in order: both go through rsi
 * and then rdi. */
static ir_value take_access(const placer *p, const place_operand *operand, bool taken[PLACE_OPERANDS], uint32_t insn,
                            unsigned operands)
{
    unsigned at = 0;
    for (ir_value v = p->first[insn]; v && at < PLACE_OPERANDS; v = p->next[v], at++) {
        if (taken[at]) continue;
        const ir_insn *access = &p->func->ir->insns[v];
        bool same = !!(access->flags & IR_WRITE) == !!(operand->action.flags & PLAN_WRITE);
        if (!same && operands > 1) continue;
        taken[at] = true;
        return v;
    }
    return 0;
}

/* Accesses that the decoder shows no operand for. */
static void count_untaken(placer *p, const bool taken[PLACE_OPERANDS], uint32_t insn)
{
    unsigned at = 0;
    for (ir_value v = p->first[insn]; v; v = p->next[v], at++) {
        if (at < PLACE_OPERANDS && taken[at]) continue;
        bool local = is_own_frame(p->func->ir, &p->func->ir->insns[v]);
        *(local ? &p->draft->local : &p->draft->unplanned) += 1;
    }
}

/* A check that is not needed, and why; if it can be expressed. */
static void claim(placer *p, plan_site *site, place_operand *operand, fate why)
{
    if (!operand->known || operand->action.segment != PLAN_SEGMENT_NONE) return;
    operand->action.claim = why == FATE_LOCAL ? PLAN_CLAIM_LOCAL : PLAN_CLAIM_READ_ONLY;
    site->action_count++;
    vec_push(&p->draft->actions, operand->action);
}

/* `end`: of the block's instructions; `opinion`: or NULL. */
static void place_insn_at(placer *p, uint32_t number, uint32_t end, bool reachable, const place_opinion *opinion, plan_site *site)
{
    plan_draft *draft = p->draft;
    const ir_func *ir = reachable ? p->func->ir : NULL;
    const lift_insn *insn = &p->func->insns[number];
    place_insn decoded;
    bool has_access = p->first[number] != 0;
    if (ir && !has_access) return; /* no access, or an operand that is not one: nop, prefetch */
    if (!place_decode(p->module->img, insn, &decoded)) {
        draft->unplanned += has_access;
        return;
    }
    const bool warned = site->warnings;
    bool taken[PLACE_OPERANDS] = {false};
    for (unsigned i = 0; i < decoded.operand_count; i++) {
        place_operand *operand = &decoded.operands[i];
        ir_value access = ir ? take_access(p, operand, taken, number, decoded.operand_count) : 0;
        if (ir && !access) continue;
        fate what = judge(p, insn->addr, &decoded, operand, access);
        if (what == FATE_CHECK && access && decoded.is_vector && !p->options->only_warned &&
            is_written_soon(p, number, end, &ir->insns[access]))
            what = FATE_COVERED;
        switch (what) {
        case FATE_LOCAL:
        case FATE_READ_ONLY:
            draft->local++;
            if (p->options->claims) claim(p, site, operand, what);
            break;
        case FATE_COVERED: draft->planned++; break;
        case FATE_UNPLANNED: draft->unplanned++; break;
        case FATE_CHECK:
            if (p->options->only_atomics || (p->options->only_warned && !warned)) break; /* not asked for */
            if (p->options->claims && opinion)
                operand->action.claim = operand->action.flags & PLAN_WRITE ? opinion->write_claim : opinion->read_claim;
            __attribute__((fallthrough));
        case FATE_SYNC:
            draft->planned++;
            site->action_count++;
            vec_push(&draft->actions, operand->action);
            break;
        }
    }
    if (ir) count_untaken(p, taken, number);
}

static bool is_call(const lift_insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_SLOT || insn->flow == FLOW_CALL_IND;
}

/* Whole instructions from `number` on to the block's end, until a jump fits, and some that others have no room for. Other
 * functions may have the same code and jump into the middle of this one's block. */
static uint8_t window_of(const lift_module *module, const lift_func *func, const lift_block *block, uint32_t number)
{
    enum { ROOM = 64 };
    const lift_insn *insn = &func->insns[number];
    const uint64_t limit = lift_next_target(module, insn->addr + 1, block->end);
    uint32_t end = block->first_insn + block->insn_count, bytes = insn->len;
    for (uint32_t i = number + 1; i < end && bytes < ROOM && insn->addr + bytes + func->insns[i].len <= limit; i++)
        bytes += func->insns[i].len;
    return (uint8_t)bytes;
}

static uint32_t dead_before(const lift_func *func, uint32_t number, bool reachable)
{
    const uint32_t stack_pointer = 1 << IR_RSP;
    if (!func->ir || !func->ir->live || !reachable) return 0;
    return ~func->ir->live[number] & PLAN_DEAD_ALL & ~stack_pointer;
}
_Static_assert((int)LIVE_CF == (int)PLAN_DEAD_CF && (int)LIVE_OF == (int)PLAN_DEAD_OF &&
                   (int)LIVE_STATUS == (int)PLAN_DEAD_STATUS,
               "the plan has the IR's order of flags");

/* --- how early the checks of a site may be made ------------------------------------------------------------------- */

static uint32_t effect_of(placer *p, uint32_t number)
{
    if (p->effect[number]) return p->effect[number];
    const lift_insn *insn = &p->func->insns[number];
    place_insn decoded;
    uint32_t effect = EFFECT_KNOWN | EFFECT_ORDERS;
    if (insn->flow == FLOW_PLAIN && place_decode(p->module->img, insn, &decoded) && !decoded.is_ordering &&
        !decoded.is_repeated)
        effect = EFFECT_KNOWN | decoded.writes;
    return p->effect[number] = effect;
}

static uint32_t registers_of(const plan_action *a)
{
    uint32_t used = 1u << IR_RSP;
    if (a->base < 16) used |= 1u << a->base;
    if (a->index < 16) used |= 1u << a->index;
    return used;
}

/* Requires that the sites before it in its block are in the draft already, from `first_site` on. `first` is the block's
 * first instruction. A check moves over plain accesses only: it is legitimate there, and covers what it covered (BigFoot,
 * section 2). */
static uint32_t early_of(placer *p, const plan_site *site, uint32_t number, uint32_t first, uint32_t first_site)
{
    const plan_draft *draft = p->draft;
    uint32_t used = 0, early = 0;
    for (uint32_t i = 0; i < site->action_count; i++) {
        const plan_action *a = &draft->actions.data[site->first_action + i];
        if (a->kind != PLAN_CHECK || a->count != 1) return 0;
        used |= registers_of(a);
    }
    uint32_t at = draft->sites.len; /* sites at or behind the instruction, and then those before it */
    for (uint32_t i = number; used && i-- > first;) {
        const lift_insn *insn = &p->func->insns[i];
        const uint64_t distance = site->addr - insn->addr;
        if (distance > PLAN_EARLY || effect_of(p, i) & (used | EFFECT_ORDERS)) break;
        if (lift_next_target(p->module, insn->addr + 1, insn[1].addr + 1) <= insn[1].addr) break;
        while (at > first_site && draft->sites.data[at - 1].addr > insn->addr)
            at--;
        const plan_site *before = at > first_site ? &draft->sites.data[at - 1] : NULL;
        if (before && before->addr == insn->addr)
            for (uint32_t k = 0; k < before->action_count; k++)
                if (draft->actions.data[before->first_action + k].kind != PLAN_CHECK) return early;
        early = (uint32_t)distance;
    }
    return early;
}

/* Code that may be none: an engine that writes jumps over it would change data, or the middle of instructions. */
static void leave_function(placer *p)
{
    const bool taken[PLACE_OPERANDS] = {false};
    index_accesses(p);
    for (uint32_t i = 0; i < p->func->insn_count; i++)
        if (p->func->insns[i].addr - p->func->entry < p->func->end - p->func->entry) count_untaken(p, taken, i);
    free(p->first);
    free(p->next);
    free(p->effect);
}

static void place_function(placer *p)
{
    const lift_func *func = p->func;
    index_accesses(p);
    p->is_atomic = is_atomic_function(func->name);
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        bool reachable = func->ir && func->ir->blocks[b].rpo != UINT32_MAX;
        const uint32_t first_site = p->draft->sites.len;
        for (uint32_t i = 0; i < block->insn_count; i++) {
            uint32_t number = block->first_insn + i;
            const lift_insn *insn = &func->insns[number];
            plan_site site = {.addr = insn->addr, .length = insn->len, .first_action = p->draft->actions.len};
            const place_opinion *opinion = p->options->opinions ? place_opinion_at(p->options->opinions, insn->addr) : NULL;
            if (opinion && opinion->ids) site.warnings = draft_string(p->draft, opinion->ids);
            place_insn_at(p, number, block->first_insn + block->insn_count, reachable, opinion, &site);
            if (is_call(insn) && !p->options->only_atomics) site.flags = PLAN_CALL;
            if (insn->flow == FLOW_SYSCALL && !p->options->only_atomics) site.flags = PLAN_SYSTEM;
            if (!site.action_count && !site.flags) continue;
            if (opinion && opinion->decided) site.flags |= PLAN_DECIDED;
            site.window = window_of(p->module, func, block, number);
            site.dead = p->options->only_atomics ? 0 : dead_before(func, number, reachable);
            site.early = early_of(p, &site, number, block->first_insn, first_site);
            site.source = draft_source(p->draft, func, insn->addr);
            vec_push(&p->draft->sites, site);
        }
    }
    free(p->first);
    free(p->next);
    free(p->effect);
}

bool place_is_left_out(const image *img)
{
    for (uint32_t i = 0; i < img->section_count; i++) {
        const char *name = img->sections[i].name;
        if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab") || !strcmp(name, ".go.buildinfo")) return true;
    }
    return false;
}

void place_nothing(const image *img, plan_draft *draft)
{
    draft_start(draft, img);
    draft_finish(draft);
}

/* By its first bytes: may it be an atomic instruction? */
static bool may_be_atomic(const uint8_t *code, uint8_t length)
{
    uint8_t i = 0;
    for (; i < length; i++) {
        const bool is_prefix = code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x2e || code[i] == 0x3e ||
                               code[i] == 0x64 || code[i] == 0x65 || (code[i] & 0xf0) == 0x40;
        if (code[i] == 0xf0) return true;
        if (!is_prefix) break;
    }
    return i < length && (code[i] & 0xfe) == 0x86; /* xchg */
}

static bool has_atomics(const image *img, const lift_func *func)
{
    for (uint32_t i = 0; i < func->insn_count; i++) {
        uint64_t there;
        const uint8_t *code = image_bytes(img, func->insns[i].addr, &there);
        if (code && there >= func->insns[i].len && may_be_atomic(code, func->insns[i].len)) return true;
    }
    return false;
}

void place_every(lift_module *module, const place_options *options, plan_draft *draft)
{
    if (place_is_left_out(module->img)) {
        place_nothing(module->img, draft);
        return;
    }
    draft_start(draft, module->img);
    draft->only_atomics = options->only_atomics;
    placer p = {.draft = draft, .module = module, .options = options};
    if (!options->only_atomics) place_declared_open(module, options->jobs, &p.declared);
    for (uint32_t i = 0; i < module->func_count; i++) {
        p.func = module->funcs[i];
        if (options->only_atomics && !has_atomics(module->img, p.func)) continue;
        if (options->only_atomics && !p.func->ir) module->funcs[i]->ir = ir_build(module->img, p.func);
        if (p.func->guessed)
            leave_function(&p);
        else
            place_function(&p);
    }
    place_declared_close(&p.declared);
    draft->functions = module->func_count;
    draft_finish(draft);
}
