/* Liveness, tried out: what ir->live calls dead before the block is changed, and the block is run again. Every register
 * and flag that is live behind an instruction must have the value of the first run, control must go the same way, and
 * the same bytes of memory must be accessed. */
#include "irdiff.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct {
    uint64_t flag;
    uint32_t live;
} flag_bits[] = {{FLAG_CF, LIVE_CF}, {FLAG_PF, LIVE_PF}, {FLAG_AF, LIVE_AF}, {FLAG_ZF, LIVE_ZF},
                 {FLAG_SF, LIVE_SF}, {FLAG_OF, LIVE_OF}, {FLAG_DF, LIVE_DF}};
enum { FLAG_BITS = sizeof flag_bits / sizeof *flag_bits };

static uint32_t dead_change(machine *m, uint32_t live, uint64_t *random)
{
    uint32_t changed = 0;
    for (int i = 0; i < 16; i++) {
        if (live >> i & 1) continue;
        m->gpr[i] = random_next(random);
        changed++;
    }
    for (int i = 0; i < FLAG_BITS; i++) {
        if (live & flag_bits[i].live) continue;
        m->flags ^= random_next(random) & flag_bits[i].flag;
        changed++;
    }
    return changed;
}

static bool dead_same(const machine *a, const machine *b, uint32_t live, char *why)
{
    for (unsigned i = 0; i < 16; i++) {
        if (!(live >> i & 1) || a->gpr[i] == b->gpr[i]) continue;
        snprintf(why, COMPARE_TEXT, "liveness: register %u becomes %" PRIx64 " instead of %" PRIx64, i, b->gpr[i],
                 a->gpr[i]);
        return false;
    }
    for (int i = 0; i < FLAG_BITS; i++) {
        if (!(live & flag_bits[i].live) || !((a->flags ^ b->flags) & flag_bits[i].flag)) continue;
        snprintf(why, COMPARE_TEXT, "liveness: flag %" PRIx64 " differs", flag_bits[i].flag);
        return false;
    }
    if (a->rip == b->rip) return true;
    snprintf(why, COMPARE_TEXT, "liveness: goes to %" PRIx64 " instead of %" PRIx64, b->rip, a->rip);
    return false;
}

/* What is live where the block goes on; 0 where that is not known. */
static uint32_t live_behind(const lift_func *func, uint32_t block, uint32_t i, uint64_t rip)
{
    const lift_block *b = &func->blocks[block];
    const uint32_t *live = func->ir->live;
    if (i + 1 < b->insn_count) return live[b->first_insn + i + 1];
    for (uint32_t k = 0; k < b->succ_count; k++) {
        const lift_block *to = &func->blocks[func->edges[b->first_succ + k].to];
        if (to->start == rip && to->insn_count) return live[to->first_insn];
    }
    return 0;
}

/* Gives another result each time. */
static bool is_random(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_RDTSC || mnemonic == ZYDIS_MNEMONIC_RDTSCP || mnemonic == ZYDIS_MNEMONIC_RDRAND ||
           mnemonic == ZYDIS_MNEMONIC_RDSEED || mnemonic == ZYDIS_MNEMONIC_RDPID;
}

static step_status dead_step(irdiff *d, const trace_entry *t, machine *m, bool native, uint64_t *random)
{
    const step *s = &t->how;
    uint64_t next = s->insn->addr + s->insn->len + d->bias;
    step_status status = STEP_UNSUPPORTED;
    if (s->insn->flow == FLOW_SYSCALL) {
        block_simulate_syscall(m, next, random);
        return STEP_OK;
    }
    vec_clear(&d->performed);
    if (!native) {
        status = emulator_step(d->emu, m, &s->kind, &d->performed);
    } else if (d->nat) {
        for (uint32_t i = 0; i < t->written_count; i++)
            memory_save(d->mem, t->written[i].addr, t->written[i].size);
        status = native_step(d->nat, m, &s->kind, NULL, 0);
    }
    if (status == STEP_OK && t->returns) {
        block_return_from_call(m, next, random);
        block_scribble_below(d, m, random);
    }
    return status;
}

/* Runs the block again from `m`; afterwards memory is as it was. `after`: the state behind each instruction. Returns
 * how many instructions were run: all, unless there is a fault. */
static uint32_t dead_run(irdiff *d, const trace *t, machine m, bool native, machine *after)
{
    uint32_t mark = memory_mark(d->mem), i;
    emulator_begin(d->emu);
    for (i = 0; i < t->len && !is_random(t->data[i].how.zydis.mnemonic); i++) {
        const trace_entry *at = &t->data[i];
        uint64_t random = at->random;
        m.rip = at->how.insn->addr + d->bias;
        if (at->equal.size) memory_write(d->mem, at->equal.addr, &at->equal_to, at->equal.size);
        if (dead_step(d, at, &m, native || at->native, &random) != STEP_OK) break;
        after[i] = m;
    }
    memory_undo(d->mem, mark);
    return i;
}

/* The first instruction behind which the runs differ in what is live; the number of instructions: none. */
static uint32_t dead_compare(irdiff *d, const lift_func *func, uint32_t block, const trace *t, uint32_t count,
                             const machine *one, uint32_t count_two, const machine *two, char *why)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i >= count_two) {
            snprintf(why, COMPARE_TEXT, "liveness: cannot be run with dead registers changed");
            return i;
        }
        if (!dead_same(&one[i], &two[i], live_behind(func, block, i, one[i].rip - d->bias), why)) return i;
    }
    return t->len;
}

void dead_check(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed, const machine *entry, const trace *t)
{
    const lift_block *b = &func->blocks[block];
    uint64_t random = random_mix(seed ^ 0xdead);
    machine changed = *entry;
    uint32_t number = dead_change(&changed, func->ir->live[b->first_insn], &random);
    char why[COMPARE_TEXT];
    if (!t->len || !number) return;
    d->stats->dead_blocks++;
    d->stats->dead += number;

    machine *one = base_alloc((size_t)t->len * 2 * sizeof *one), *two = one + t->len;
    uint32_t first = t->len;
    for (uint32_t i = 0; i < t->len; i++)
        one[i] = t->data[i].after;
    for (uint32_t i = 0; i < t->len && first == t->len; i++)
        if (is_random(t->data[i].how.zydis.mnemonic)) first = i;
    uint32_t at = dead_compare(d, func, block, t, first, one, dead_run(d, t, changed, false, two), two, why);
    if (at != t->len && d->nat) { /* the processor decides */
        uint32_t count = dead_run(d, t, *entry, true, one), count_two = dead_run(d, t, changed, true, two);
        uint32_t again = dead_compare(d, func, block, t, count, one, count_two, two, why);
        if (again == t->len) d->stats->emulator_wrong[t->data[at].how.insn->mnemonic]++;
        at = again;
    }
    if (at != t->len) block_report(d, func, seed, &t->data[at].how, at ? &two[at - 1] : &changed, why);
    free(one);
}
