/* irverify FILE...: lifts each file with one thread and with two, checks the promises of lift.h for every function, and
 * that both results are the same to the last field. Exit 1 when anything is wrong. */
#include "static/lift/lift.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

static uint64_t hash_func(const lift_func *f, uint64_t seed)
{
    const ir_func *ir = f->ir;
    uint64_t shape[] = {f->entry, f->end, f->found, f->returns, f->complete, f->block_count, f->edge_count, f->table_count,
                        ir->insn_count, ir->arg_count, ir->slot_count, ir->loop_count, ir->rpo_count};
    seed = XXH64(shape, sizeof shape, seed);
    seed = XXH64(f->name, strlen(f->name), seed);
    for (uint32_t i = 0; i < f->insn_count; i++) {
        uint64_t fields[] = {f->insns[i].addr, f->insns[i].len, f->insns[i].flow, ir->live[i]};
        seed = XXH64(fields, sizeof fields, seed);
    }
    for (uint32_t i = 0; i < f->edge_count; i++) {
        uint32_t fields[] = {f->edges[i].from, f->edges[i].to, f->edges[i].kind, f->preds[i]};
        seed = XXH64(fields, sizeof fields, seed);
    }
    seed = XXH64(ir->insns + 1, (size_t)(ir->insn_count - 1) * sizeof *ir->insns, seed);
    seed = XXH64(ir->args, (size_t)ir->arg_count * sizeof *ir->args, seed);
    return XXH64(ir->frame, (size_t)ir->insn_count * sizeof *ir->frame, seed);
}

static uint64_t hash_module(const lift_module *m)
{
    uint64_t hash = m->func_count;
    for (uint32_t i = 0; i < m->func_count; i++)
        hash = hash_func(m->funcs[i], hash);
    return hash;
}

static int verify_module(const char *path, const lift_module *m)
{
    int bad = 0;
    for (uint32_t i = 0; i < m->func_count; i++) {
        race_error error;
        if (ir_verify(m->funcs[i]->ir, &error) == 0) continue;
        printf("%s: %s\n", path, error.text);
        if (++bad >= 10) break;
    }
    return bad;
}

static int check(const char *path)
{
    race_error error;
    image_list list;
    if (image_open_all(path, &list, &error) < 0) {
        printf("refused: %s\n", error.text);
        return 0;
    }
    int bad = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        lift_module *one = lift_open(list.images[i], &(lift_options){.jobs = 1});
        lift_module *two = lift_open(list.images[i], &(lift_options){.jobs = 2});
        bad += verify_module(path, one);
        uint64_t a = hash_module(one), b = hash_module(two);
        if (a != b) {
            printf("%s: one thread gives %016" PRIx64 ", two threads give %016" PRIx64 "\n", path, a, b);
            bad++;
        }
        lift_close(one);
        lift_close(two);
    }
    image_list_close(&list);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++)
        bad += check(argv[i]);
    printf("%d files, %d findings\n", argc - 1, bad);
    return bad != 0;
}
