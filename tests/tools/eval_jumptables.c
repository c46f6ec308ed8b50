/* How many indirect jumps of a file have known targets.
 *
 *   eval_jumptables [-v] [-s] FILE
 *
 * -s: lifted as if the file were stripped; -v: lists the jumps without answer. Prints one line: file, instructions,
 * indirect jumps that are neither tail calls nor in PLT stubs, how many of them are resolved, the share in percent, and
 * the number of those that are tail calls. */
#include "static/lift/lift.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    bool verbose = false, stripped = false;
    for (; argc > 1 && argv[1][0] == '-'; argv++, argc--) {
        verbose |= !strcmp(argv[1], "-v");
        stripped |= !strcmp(argv[1], "-s");
    }
    race_error error;
    image *img;
    if (argc != 2) {
        fprintf(stderr, "usage: eval_jumptables [-v] [-s] FILE\n");
        return 2;
    }
    if (image_open(argv[1], &img, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    lift_module *m = lift_open(img, &(lift_options){.flow_only = true, .ignore_symbols = stripped});
    for (uint32_t i = 0; verbose && i < m->func_count; i++) {
        const lift_func *f = m->funcs[i];
        for (uint32_t b = 0; b < f->block_count; b++)
            if (f->blocks[b].end_kind == END_UNKNOWN)
                printf("  unknown: %llx in %s\n",
                       (unsigned long long)f->insns[f->blocks[b].first_insn + f->blocks[b].insn_count - 1].addr,
                       f->name);
    }
    uint32_t resolved = m->stats.jumps_resolved, all = resolved + m->stats.jumps_unresolved;
    const char *name = strrchr(argv[1], '/');
    printf("%-24s %9llu %8u %8u %8.2f %8u\n", name ? name + 1 : argv[1], (unsigned long long)m->stats.instructions, all,
           resolved, all ? 100.0 * resolved / all : 100.0, m->stats.jumps_tail);
    lift_close(m);
    image_close(img);
    return 0;
}
