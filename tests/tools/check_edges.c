/* Checks what ran (a trace of tests/dynamorio/edges.c) against the control-flow graphs.
 *
 *   check_edges [-v] [-s] TRACE FILE
 *
 * Of the module FILE: every instruction that ran must be one of a function's block, at the same boundary; every jump
 * must go where the graph of a function that contains it says, or leave the function by a tail call. -s: lift without
 * symbols. PLT stubs are no functions and are passed over. Prints one line: instructions that ran, how many are in no
 * block; edges that ran, by indirect jumps, that are in no graph; jumps that ran whose targets the graph does not know.
 * Exit 0: nothing is missing; 1: something is. */
#include "static/lift/lift.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint64_t addr;
    uint32_t func, block;
    bool last; /* of its block */
} place;

static int by_addr(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

typedef VEC(place) places;

static void index_insns(const lift_module *m, places *out)
{
    for (uint32_t f = 0; f < m->func_count; f++)
        for (uint32_t b = 0; b < m->funcs[f]->block_count; b++) {
            const lift_block *block = &m->funcs[f]->blocks[b];
            for (uint32_t i = 0; i < block->insn_count; i++)
                vec_push(out,
                         (place){m->funcs[f]->insns[block->first_insn + i].addr, f, b, i + 1 == block->insn_count});
        }
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_addr);
}

static uint32_t first_at(const places *p, uint64_t addr)
{
    uint32_t low = 0, high = p->len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (p->data[mid].addr < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_plt(const image *img, uint64_t addr)
{
    const image_section *s = image_section_at(img, addr);
    return s && !strncmp(s->name, ".plt", 4);
}

typedef enum { EDGE_MISSING, EDGE_UNKNOWN, EDGE_GOOD } verdict;

/* Does the jump at the end of this block go to `to`? */
static verdict follows(const lift_module *m, const place *p, uint64_t to)
{
    const lift_func *f = m->funcs[p->func];
    const lift_block *b = &f->blocks[p->block];
    if (!p->last) return EDGE_MISSING;
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
        if (f->blocks[f->edges[e].to].start == to) return EDGE_GOOD;
    bool outside = lift_func_at(m, to) || is_plt(m->img, to);
    switch (b->end_kind) {
    case END_TAIL:
    case END_TAIL_IND: return outside ? EDGE_GOOD : EDGE_MISSING;
    case END_BRANCH: return b->tail && outside ? EDGE_GOOD : EDGE_MISSING;
    case END_UNKNOWN: return EDGE_UNKNOWN;
    default: return EDGE_MISSING;
    }
}

typedef struct {
    uint32_t insns, insns_missing, edges, indirect, edges_missing, edges_unknown;
} counts;

static void check_line(const lift_module *m, const places *p, const char *line, uint32_t module, bool verbose,
                       counts *n)
{
    uint32_t number;
    unsigned long long from, to;
    char kind;
    if (sscanf(line, "i %u %llx", &number, &from) == 2 && number == module && !is_plt(m->img, from)) {
        uint32_t at = first_at(p, from);
        n->insns++;
        if (at < p->len && p->data[at].addr == from) return;
        n->insns_missing++;
        if (verbose) printf("  ran, but in no block: %llx\n", from);
    }
    if (sscanf(line, "e %u %llx %llx %c", &number, &from, &to, &kind) != 4 || number != module || is_plt(m->img, from))
        return;
    verdict best = EDGE_MISSING;
    for (uint32_t at = first_at(p, from); at < p->len && p->data[at].addr == from; at++) {
        verdict v = follows(m, &p->data[at], to);
        if (v > best) best = v;
    }
    n->edges++;
    n->indirect += kind == 'j';
    n->edges_missing += best == EDGE_MISSING;
    n->edges_unknown += best == EDGE_UNKNOWN;
    if (verbose && best != EDGE_GOOD)
        printf("  %s: %llx to %llx\n", best == EDGE_MISSING ? "not in the graph" : "unknown jump", from, to);
}

int main(int argc, char **argv)
{
    bool verbose = false, stripped = false;
    for (; argc > 1 && argv[1][0] == '-'; argv++, argc--) {
        verbose |= !strcmp(argv[1], "-v");
        stripped |= !strcmp(argv[1], "-s");
    }
    race_error error;
    image *img;
    if (argc != 3) {
        fprintf(stderr, "usage: check_edges [-v] [-s] TRACE FILE\n");
        return 2;
    }
    FILE *trace = fopen(argv[1], "r");
    char *path = realpath(argv[2], NULL), line[8192], name[8192];
    if (!trace || !path) {
        perror(trace ? argv[2] : argv[1]);
        return 2;
    }
    if (image_open(path, &img, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    lift_module *m = lift_open(img, &(lift_options){.flow_only = true, .ignore_symbols = stripped});
    places p = {0};
    index_insns(m, &p);
    uint32_t module = UINT32_MAX, number;
    counts n = {0};
    while (fgets(line, sizeof line, trace)) {
        if (sscanf(line, "m %u %8191[^\n]", &number, name) == 2) {
            char *real = realpath(name, NULL);
            if (real && !strcmp(real, path)) module = number;
            free(real);
        } else {
            check_line(m, &p, line, module, verbose, &n);
        }
    }
    const char *base = strrchr(argv[2], '/');
    printf("%-24s %9u %8u %9u %9u %8u %8u\n", base ? base + 1 : argv[2], n.insns, n.insns_missing, n.edges, n.indirect,
           n.edges_missing, n.edges_unknown);
    fclose(trace);
    free(path);
    vec_free(&p);
    lift_close(m);
    image_close(img);
    return n.insns_missing || n.edges_missing || !n.insns;
}
