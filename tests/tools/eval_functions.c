/* Compares the functions found without symbols with those that symbols tell.
 *
 *   eval_functions [-v] FILE [STRIPPED]
 *
 * FILE has symbols, in itself or in a separate debug file. STRIPPED, or else FILE itself, is lifted as if it had none
 * but the exported ones. Truth: symbols of type function with a size, in code; aliases count once; NAME.cold is a part
 * of NAME. Function symbols without a size (start-up code of the compiler) count neither way.
 *
 * Prints one line: file, functions in truth, found, recall and precision of starts, share of right ends. -v: and each
 * difference. */
#include "static/lift/lift.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint64_t addr, size;
    const char *name;
    bool found, counts;
} truth;

static int by_addr(const void *a, const void *b)
{
    const truth *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->counts != y->counts ? (x->counts ? -1 : 1) : 0;
}

static uint32_t read_truth(const image *img, truth **out)
{
    VEC(truth) all = {0};
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *s = &img->symbols[i];
        if ((s->type != IMAGE_SYM_FUNC && s->type != IMAGE_SYM_IFUNC) || !image_is_code(img, s->addr)) continue;
        const char *cold = strstr(s->name, ".cold");
        if (cold && (!cold[5] || cold[5] == '.')) continue;
        vec_push(&all, (truth){.addr = s->addr, .size = s->size, .name = s->name, .counts = s->size > 0});
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_addr);
    *out = all.data;
    return all.len;
}

static uint32_t first_at(const truth *t, uint32_t count, uint64_t addr)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (t[mid].addr < addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    argv += verbose;
    argc -= verbose;
    if (argc < 2) {
        fprintf(stderr, "usage: eval_functions [-v] FILE [STRIPPED]\n");
        return 2;
    }
    race_error error;
    image *full, *bare;
    if (image_open(argv[1], &full, &error) || image_open(argc > 2 ? argv[2] : argv[1], &bare, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    if (!full->has_symtab) {
        fprintf(stderr, "%s: no symbols to compare with\n", argv[1]);
        return 2;
    }
    lift_module *m = lift_open(bare, &(lift_options){.flow_only = true, .ignore_symbols = true});
    truth *t;
    uint32_t count = read_truth(full, &t), expected = 0, right = 0, wrong = 0, ends = 0;
    for (uint32_t i = 0; i < m->func_count; i++) {
        const lift_func *f = m->funcs[i];
        uint32_t at = first_at(t, count, f->entry);
        if (at == count || t[at].addr != f->entry) {
            wrong++;
            if (verbose) printf("  wrong start %llx, found by %x\n", (unsigned long long)f->entry, f->found);
            continue;
        }
        if (!t[at].counts) continue;
        t[at].found = true;
        right++;
        bool end = false;
        for (uint32_t k = at; k < count && t[k].addr == f->entry; k++)
            end |= t[k].addr + t[k].size == f->end;
        ends += end;
        if (!end && verbose)
            printf("  wrong end %llx instead of %llx of %s\n", (unsigned long long)f->end,
                   (unsigned long long)(t[at].addr + t[at].size), t[at].name);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!t[i].counts || (i && t[i - 1].addr == t[i].addr)) continue;
        expected++;
        if (!t[i].found && verbose) printf("  missed %llx %s\n", (unsigned long long)t[i].addr, t[i].name);
    }
    const char *name = strrchr(argv[1], '/');
    printf("%-28s %7u %7u %9.4f %9.4f %9.4f\n", name ? name + 1 : argv[1], expected, right + wrong,
           expected ? (double)right / expected : 1, right + wrong ? (double)right / (right + wrong) : 1,
           right ? (double)ends / right : 1);
    free(t);
    lift_close(m);
    image_close(bare);
    image_close(full);
    return 0;
}
