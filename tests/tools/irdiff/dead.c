/* Liveness, tried out: what ir->live calls dead before the block is changed, and the block is run again. Every register
 * and flag that is live behind an instruction must have the value of the first run, control must go the same way, and
 * the same bytes of memory must be accessed. */
#include "irdiff.h"

#include <inttypes.h>

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
        snprintf(why, COMPARE_TEXT, "liveness: register %u becomes %" PRIx64 " instead of %" PRIx64, i, b->gpr[i], a->gpr[i]);
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

static step_status dead_step(irdiff *d, const trace_entry *t, machine *m, uint64_t *random)
{
    const step *s = &t->how;
    uint64_t next = s->insn->addr + s->insn->len + d->bias;
    step_status status = STEP_UNSUPPORTED;
    if (s->insn->flow == FLOW_SYSCALL) {
        block_simulate_syscall(m, next, random);
        return STEP_OK;
    }
    vec_clear(&d->performed);
    machine before = *m;
    if (!t->native)
        status = emulator_step(d->emu, m, &s->kind, &d->performed);
    if (status != STEP_OK && d->nat) {
        *m = before;
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

void dead_check(irdiff *d, const lift_func *func, uint32_t block, uint64_t seed, const machine *entry, const trace *t)
{
    const lift_block *b = &func->blocks[block];
    uint64_t random = random_mix(seed ^ 0xdead);
    machine m = *entry;
    uint32_t changed = dead_change(&m, func->ir->live[b->first_insn], &random);
    if (!t->len || !changed) return;
    d->stats->dead_blocks++;
    d->stats->dead += changed;
    emulator_begin(d->emu);
    for (uint32_t i = 0; i < t->len; i++) {
        char why[COMPARE_TEXT] = "liveness: cannot be run a second time";
        const trace_entry *at = &t->data[i];
        machine before = m;
        if (is_random(at->how.zydis.mnemonic)) return;
        m.rip = at->how.insn->addr + d->bias;
        random = at->random;
        if (at->equal.size) memory_write(d->mem, at->equal.addr, &at->equal_to, at->equal.size);
        uint32_t live = live_behind(func, block, i, at->after.rip - d->bias);
        if (dead_step(d, at, &m, &random) != STEP_OK || !dead_same(&at->after, &m, live, why)) {
            block_report(d, func, seed, &at->how, &before, why);
            return;
        }
    }
}
