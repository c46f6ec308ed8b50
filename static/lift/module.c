/* lift_open: a module's functions, their control flow, and in parallel their IR. */
#include "static/lift/flow.h"

#include <omp.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The best of the names that a function has: global before weak before local, then the first. */
static const char *symbol_name(const image *img, const lift_options *options, uint64_t entry)
{
    const image_symbol *best = NULL;
    uint32_t low = 0, high = img->symbol_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (img->symbols[mid].type != IMAGE_SYM_TLS && img->symbols[mid].addr < entry)
            low = mid + 1;
        else
            high = mid;
    }
    static const uint8_t rank[] = {[IMAGE_BIND_GLOBAL] = 0, [IMAGE_BIND_WEAK] = 1, [IMAGE_BIND_LOCAL] = 2};
    for (; low < img->symbol_count && img->symbols[low].addr == entry; low++) {
        const image_symbol *s = &img->symbols[low];
        if (s->type != IMAGE_SYM_FUNC && s->type != IMAGE_SYM_IFUNC) continue;
        if (options->ignore_symbols && !s->exported) continue;
        if (!best || rank[s->bind] < rank[best->bind]) best = s;
    }
    return best && best->name[0] ? best->name : NULL;
}

static void name_functions(lift_module *m, const lift_options *options)
{
    for (uint32_t i = 0; i < m->func_count; i++) {
        lift_func *f = m->funcs[i];
        f->name = symbol_name(m->img, options, f->entry);
        if (f->name) continue;
        char text[32];
        int len = snprintf(text, sizeof text, "sub_%llx", (unsigned long long)f->entry);
        f->name = arena_string(&m->memory, text, (size_t)len);
    }
}

static void count_flow(lift_module *m)
{
    lift_stats *s = &m->stats;
    s->functions = m->func_count;
    for (uint32_t i = 0; i < m->func_count; i++) {
        const lift_func *f = m->funcs[i];
        s->blocks += f->block_count;
        s->instructions += f->insn_count;
        s->jumps_resolved += f->resolved_jumps;
        s->jumps_unresolved += f->unresolved_jumps;
        s->jumps_tail += f->tail_jumps;
        for (uint32_t b = 0; b < f->block_count; b++)
            s->bad_blocks += f->blocks[b].end_kind == END_BAD;
    }
}

/* --- IR ---------------------------------------------------------------------------------------------------------- */

static void count_ir(const ir_func *ir, lift_stats *s, uint64_t *opaque)
{
    uint32_t last = UINT32_MAX; /* a machine instruction counts once, however many opaque values it makes */
    s->ir_instructions += ir->insn_count ? ir->insn_count - 1 : 0;
    s->frames_unknown += !ir->frame_known;
    for (uint32_t i = 1; i < ir->insn_count; i++) {
        const ir_insn *insn = &ir->insns[i];
        if (insn->op == IR_ACCESS) {
            s->accesses++;
            s->accesses_promoted += (insn->flags & IR_PROMOTED) != 0;
            s->accesses_frame += (insn->flags & IR_FRAME) != 0;
            s->accesses_wide += (insn->flags & IR_WIDE) != 0;
        }
        if (insn->op != IR_OPAQUE) continue;
        s->ir_opaque++;
        if (insn->insn != last && insn->insn < ir->func->insn_count) opaque[ir->func->insns[insn->insn].mnemonic]++;
        last = insn->insn;
    }
}

static void add_stats(lift_stats *to, const lift_stats *from)
{
    to->accesses += from->accesses;
    to->accesses_promoted += from->accesses_promoted;
    to->accesses_frame += from->accesses_frame;
    to->accesses_wide += from->accesses_wide;
    to->ir_instructions += from->ir_instructions;
    to->ir_opaque += from->ir_opaque;
    to->frames_unknown += from->frames_unknown;
}

static int by_count(const void *a, const void *b)
{
    const lift_opaque *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->mnemonic < y->mnemonic ? -1 : 1;
}

static void lower_functions(lift_module *m, int jobs)
{
    uint64_t *opaque = base_alloc_zero(ZYDIS_MNEMONIC_MAX_VALUE + 1, sizeof *opaque);
#pragma omp parallel num_threads(jobs)
    {
        lift_stats mine = {0};
        uint64_t *counts = base_alloc_zero(ZYDIS_MNEMONIC_MAX_VALUE + 1, sizeof *counts);
#pragma omp for schedule(dynamic, 8)
        for (uint32_t i = 0; i < m->func_count; i++) {
            m->funcs[i]->ir = ir_build(m->img, m->funcs[i]);
            count_ir(m->funcs[i]->ir, &mine, counts);
        }
#pragma omp critical
        {
            add_stats(&m->stats, &mine);
            for (uint32_t i = 0; i <= ZYDIS_MNEMONIC_MAX_VALUE; i++)
                opaque[i] += counts[i];
        }
        free(counts);
    }
    m->opaque = arena_alloc(&m->memory, (ZYDIS_MNEMONIC_MAX_VALUE + 1) * sizeof *m->opaque);
    for (uint32_t i = 0; i <= ZYDIS_MNEMONIC_MAX_VALUE; i++)
        if (opaque[i]) m->opaque[m->opaque_count++] = (lift_opaque){(uint16_t)i, opaque[i]};
    if (m->opaque_count) qsort(m->opaque, m->opaque_count, sizeof *m->opaque, by_count);
    free(opaque);
}

/* --- the module -------------------------------------------------------------------------------------------------- */

lift_module *lift_open(const image *img, const lift_options *options)
{
    static const lift_options none = {0};
    if (!options) options = &none;
    int jobs = options->jobs > 0 ? options->jobs : omp_get_num_procs();
    lift_module *m = base_alloc_zero(1, sizeof *m);
    m->generation = options->generation;
    flow_space space;
    flow_found found;
    double start = now();
    m->img = img;
    flow_space_open(&space, img, options);
    discover(&space, jobs, &found);
    m->targets = targets_open(&space, &found);
    flow_space_close(&space);
    m->func_count = found.count;
    m->funcs = base_alloc(found.count * sizeof *m->funcs);
    for (uint32_t i = 0; i < found.count; i++) {
        m->funcs[i] = found.funcs[i].func;
        free(found.funcs[i].leaves);
        free(found.funcs[i].refs);
    }
    free(found.funcs);
    name_functions(m, options);
    count_flow(m);
    m->stats.seconds_flow = now() - start;
    if (!options->flow_only) {
        lower_functions(m, jobs);
        lift_preserve(m);
    }
    m->stats.seconds_ir = now() - start - m->stats.seconds_flow;
    return m;
}

void lift_close(lift_module *m)
{
    if (!m) return;
    for (uint32_t i = 0; i < m->func_count; i++) {
        if (m->funcs[i]->ir) ir_free(m->funcs[i]->ir);
        flow_free_func(m->funcs[i]);
    }
    free(m->funcs);
    targets_close(m->targets);
    lift_told_free(m->told);
    arena_free(&m->memory);
    free(m);
}

lift_func *lift_func_at(const lift_module *m, uint64_t entry)
{
    uint32_t low = 0, high = m->func_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->funcs[mid]->entry < entry)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->func_count && m->funcs[low]->entry == entry ? m->funcs[low] : NULL;
}

static bool block_covers(const lift_func *f, const lift_block *block, uint64_t addr)
{
    if (addr < block->start || addr >= block->end) return false;
    for (uint32_t i = 0; i < block->insn_count; i++) {
        const lift_insn *insn = &f->insns[block->first_insn + i];
        if (addr >= insn->addr && addr < insn->addr + insn->len) return true;
    }
    return false;
}

/* Blocks but the first are sorted; they may overlap, so all before the address are candidates, the nearest first. */
static bool covers(const lift_func *f, uint64_t addr)
{
    if (block_covers(f, &f->blocks[0], addr)) return true;
    if (f->block_count < 2 || addr < f->blocks[1].start) return false;
    uint32_t low = 1, high = f->block_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->blocks[mid].start <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    while (low-- > 1)
        if (block_covers(f, &f->blocks[low], addr)) return true;
    return false;
}

lift_func *lift_func_covering(const lift_module *m, uint64_t addr)
{
    uint32_t low = 0, high = m->func_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->funcs[mid]->entry <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (low && covers(m->funcs[low - 1], addr)) return m->funcs[low - 1];
    for (uint32_t i = 0; i < m->func_count; i++) /* a part that lies elsewhere */
        if (covers(m->funcs[i], addr)) return m->funcs[i];
    return NULL;
}

lift_func *lift_func_named(const lift_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->func_count; i++)
        if (!strcmp(m->funcs[i]->name, name)) return m->funcs[i];
    for (uint32_t i = 0; i < m->img->symbol_count; i++) {
        const image_symbol *s = &m->img->symbols[i];
        if ((s->type != IMAGE_SYM_FUNC && s->type != IMAGE_SYM_IFUNC) || strcmp(s->name, name)) continue;
        lift_func *f = lift_func_at(m, s->addr);
        if (f) return f;
    }
    char *end = NULL;
    if (!strncmp(name, "0x", 2)) {
        uint64_t addr = strtoull(name, &end, 16);
        if (*end == 0) return lift_func_covering(m, addr);
    }
    return NULL;
}
