/* irdiff: the differential test of the IR. For random blocks of real programs in random states, the memory accesses and
 * values that the IR predicts are compared with those of an emulator (unicorn), or of the processor where the emulator
 * cannot follow. See irdiff/irdiff.h.
 *
 *   irdiff [--blocks N] [--seed S] [--only FUNCTION] [--reports N] [--zoo N] FILE...
 *
 * --zoo N adds a module of N random instructions to the files.
 * The blocks are spread evenly over the files. Prints what was compared; exit 0: no mismatch, 1: some, 2: usage. */
#include "irdiff/irdiff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unicorn/unicorn.h>

static void print_mnemonics(const char *title, const uint64_t *counts)
{
    enum { MOST = 400 };
    bool *printed = base_alloc_zero(MNEMONICS, 1), any = false;
    for (int n = 0; n < MOST; n++) {
        uint32_t best = 0;
        for (uint32_t i = 0; i < MNEMONICS; i++)
            if (counts[i] && !printed[i] && (!counts[best] || printed[best] || counts[i] > counts[best])) best = i;
        if (!counts[best] || printed[best]) break;
        printf("%s %s %" PRIu64, any ? "," : title, ZydisMnemonicGetString((ZydisMnemonic)best), counts[best]);
        printed[best] = any = true;
    }
    if (any) printf("\n");
    free(printed);
}

static void print_stats(const irdiff_stats *s, double seconds)
{
    printf("blocks tested           %" PRIu64 " (%" PRIu64 " to their end), %.1f s\n", s->blocks, s->blocks_whole,
           seconds);
    printf("instructions            %" PRIu64 " (%" PRIu64 " on the processor)\n", s->instructions,
           s->native_instructions);
    printf("accesses compared       %" PRIu64 " (%" PRIu64 " promoted, %" PRIu64 " conditional), wide %" PRIu64 "\n",
           s->accesses, s->accesses_promoted, s->accesses_cond, s->accesses_wide);
    printf("definitions compared    %" PRIu64 ", opaque %" PRIu64 ", of calls %" PRIu64 ", of unknown inputs %" PRIu64
           "\n",
           s->exact, s->opaque, s->called, s->unknown);
    printf("stored values compared  %" PRIu64 ", jump targets %" PRIu64 ", frame offsets %" PRIu64 "\n", s->stores,
           s->targets, s->frames);
    printf("arguments compared      %" PRIu64 ", values handed to successors %" PRIu64 "\n", s->arguments, s->passed);
    printf("dead registers changed  %" PRIu64 " in %" PRIu64 " blocks\n", s->dead, s->dead_blocks);
    printf("blocks cut short        wild address %" PRIu64 ", fault %" PRIu64 ", long rep %" PRIu64 "\n",
           s->stopped_address, s->stopped_fault, s->stopped_count);
    print_mnemonics("skipped by mnemonic    ", s->skipped);
    print_mnemonics("emulator wrong         ", s->emulator_wrong);
    print_mnemonics("mismatches by mnemonic ", s->mismatches);
    printf("mismatches              %" PRIu64 "\n", s->mismatch_count);
}

typedef struct {
    uint64_t blocks, seed, reports, zoo;
    const char *only;
    const char *const *files;
    uint32_t file_count;
} options;

static bool parse(options *o, int argc, char **argv)
{
    *o = (options){.blocks = 1000, .seed = 1, .reports = 20};
    const char **files = base_alloc(((size_t)argc + 1) * sizeof *files);
    o->files = files;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            files[o->file_count++] = argv[i];
            continue;
        }
        if (i + 1 == argc) return false;
        const char *name = argv[i], *given = argv[++i];
        if (strcmp(name, "--blocks") == 0)
            o->blocks = strtoull(given, NULL, 0);
        else if (strcmp(name, "--seed") == 0)
            o->seed = strtoull(given, NULL, 0);
        else if (strcmp(name, "--reports") == 0)
            o->reports = strtoull(given, NULL, 0);
        else if (strcmp(name, "--zoo") == 0)
            o->zoo = strtoull(given, NULL, 0);
        else if (strcmp(name, "--only") == 0)
            o->only = given;
        else
            return false;
    }
    if (o->zoo) files[o->file_count++] = "zoo";
    return o->file_count > 0;
}

/* Blocks of a module in one sequence. */
typedef struct {
    const lift_func **funcs;
    uint64_t *first; /* number of the function's first block */
    uint32_t count;
    uint64_t total;
} population;

static population population_of(const lift_module *module, const char *only)
{
    population p = {.funcs = base_alloc((size_t)module->func_count * sizeof *p.funcs),
                    .first = base_alloc((size_t)module->func_count * sizeof *p.first)};
    for (uint32_t i = 0; i < module->func_count; i++) {
        const lift_func *f = module->funcs[i];
        if (!f->ir || !f->block_count || (only && strcmp(f->name, only) != 0)) continue;
        p.funcs[p.count] = f;
        p.first[p.count++] = p.total;
        p.total += f->block_count;
    }
    return p;
}

static void pick(const population *p, uint64_t number, const lift_func **func, uint32_t *block)
{
    uint32_t low = 0, high = p->count;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (p->first[mid] <= number)
            low = mid;
        else
            high = mid;
    }
    *func = p->funcs[low];
    *block = (uint32_t)(number - p->first[low]);
}

static void test_file(irdiff *d, const options *o, uint32_t number)
{
    race_error error;
    image *img;
    uint8_t *zoo = NULL;
    size_t size;
    if (o->zoo && number == o->file_count - 1) zoo = zoo_make((uint32_t)o->zoo, o->seed, &size);
    if ((zoo ? image_open_memory("zoo", zoo, size, &img, &error) : image_open(o->files[number], &img, &error)) < 0) {
        printf("not tested: %s\n", error.text);
        free(zoo);
        return;
    }
    lift_module *module = lift_open(img, &(lift_options){0});
    population p = population_of(module, o->only);
    uint64_t random = random_mix(o->seed) ^ number,
             blocks = o->blocks * (number + 1) / o->file_count - o->blocks * number / o->file_count;
    d->module = module;
    d->native_only =
        zoo != NULL; /* unicorn has its own ideas of rare encodings: lahf and extrq with REX, for example */
    d->bias = img->kind == IMAGE_PIE || img->kind == IMAGE_SHARED ? MEMORY_BIAS : 0;
    memory_load(d->mem, img, d->bias);
    emulator_close(d->emu); /* it keeps translated code of the file before */
    d->emu = emulator_open(d->mem);
    if (!d->emu) {
        fprintf(stderr, "irdiff: unicorn cannot be started\n");
        exit(2);
    }
    for (uint64_t i = 0; i < blocks && p.total; i++) {
        const lift_func *func;
        uint32_t block;
        pick(&p, random_next(&random) % p.total, &func, &block);
        irdiff_block(d, func, block, random_next(&random));
    }
    free(p.funcs);
    free(p.first);
    lift_close(module);
    image_close(img);
    free(zoo);
}

int main(int argc, char **argv)
{
    options o;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "usage: irdiff [--blocks N] [--seed S] [--only FUNCTION] [--reports N] [--zoo N] FILE...\n");
        return 2;
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    irdiff_stats *stats = base_alloc_zero(1, sizeof *stats);
    irdiff d = {.mem = memory_open(o.seed), .stats = stats, .most_reports = o.reports};
    d.nat = native_open(d.mem); /* before anything else: the child starts as a copy of this process */
    if (!d.nat) printf("no native steps: this system lets us trace no process\n");
    ZydisDecoderInit(&d.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&d.formatter, ZYDIS_FORMATTER_STYLE_ATT);
    for (uint32_t i = 0; i < o.file_count; i++)
        test_file(&d, &o, i);
    clock_gettime(CLOCK_MONOTONIC, &end);
    print_stats(stats, (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    int result = stats->mismatch_count ? 1 : 0;

    emulator_close(d.emu);
    native_close(d.nat);
    memory_close(d.mem);
    interpret_close(&d.in);
    vec_free(&d.performed);
    for (int i = 0; i < 4; i++)
        vec_free(&d.scratch[i]);
    vec_free(&d.trace);
    vec_free(&d.handovers);
    free((void *)(uintptr_t)o.files);
    free(stats);
    return result;
}
