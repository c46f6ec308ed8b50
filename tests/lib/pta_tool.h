/* What the test tools of the pointer analysis share: programs by their files, names of options, time and chance. */
#ifndef RACE_TEST_PTA_TOOL_H
#define RACE_TEST_PTA_TOOL_H

#include "static/pointer/pointer.h"

#include <stdlib.h>
#include <time.h>

enum { TOOL_MODULES = 16 };

typedef struct {
    image *images[TOOL_MODULES];
    lift_module *modules[TOOL_MODULES];
    uint32_t count;
    pta_program *program;
    uint64_t instructions, functions, statements;
    double lift_seconds, generate_seconds;
} tool_program;

static inline double tool_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* xorshift64*; the state is never 0. */
static inline uint64_t tool_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static inline uint32_t tool_below(uint64_t *state, uint32_t limit) /* 0 for a limit of 0 */
{
    return limit ? (uint32_t)((tool_random(state) >> 32) * limit >> 32) : 0;
}

static inline uint64_t tool_seed(uint64_t seed)
{
    return (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
}

static inline void tool_close(tool_program *t)
{
    if (t->program) pta_program_close(t->program);
    for (uint32_t i = 0; i < t->count; i++) {
        lift_close(t->modules[i]);
        image_close(t->images[i]);
    }
    *t = (tool_program){0};
}

static inline int tool_open(tool_program *t, char *const *paths, uint32_t count, int jobs, race_error *error)
{
    *t = (tool_program){0};
    if (!count || count > TOOL_MODULES) return base_fail(error, "1 to %d files make a program", TOOL_MODULES);
    double start = tool_now();
    for (; t->count < count; t->count++) {
        if (image_open(paths[t->count], &t->images[t->count], error)) {
            tool_close(t);
            return -1;
        }
        lift_module *m = t->modules[t->count] = lift_open(t->images[t->count], &(lift_options){.jobs = jobs});
        t->instructions += m->stats.instructions;
        t->functions += m->func_count;
    }
    double lifted = tool_now();
    t->program = pta_program_open(t->modules, count, jobs);
    t->lift_seconds = lifted - start;
    t->generate_seconds = tool_now() - lifted;
    for (uint32_t f = 0; f < t->program->funcs.len; f++)
        t->statements += t->program->funcs.data[f].stmts.len;
    return 0;
}

/* none, origin, origin:K, cfa:K */
static inline bool tool_context(const char *text, pta_options *options)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    options->k = colon ? (unsigned)atoi(colon + 1) : 1;
    if (!options->k || options->k > 9) return false;
    if (length == 4 && !strncmp(text, "none", length) && !colon)
        options->context = PTA_CONTEXT_NONE;
    else if (length == 6 && !strncmp(text, "origin", length))
        options->context = PTA_CONTEXT_ORIGIN;
    else if (length == 3 && !strncmp(text, "cfa", length) && colon)
        options->context = PTA_CONTEXT_CFA;
    else
        return false;
    return true;
}

static const char *const tool_algorithms[] = {[PTA_IPA] = "ipa", [PTA_RESET] = "reset", [PTA_REACH] = "reach"};

static inline bool tool_algorithm(const char *text, pta_algorithm *algorithm)
{
    for (unsigned i = 0; i < sizeof tool_algorithms / sizeof *tool_algorithms; i++)
        if (!strcmp(text, tool_algorithms[i])) {
            *algorithm = (pta_algorithm)i;
            return true;
        }
    return false;
}

/* The whole text as a number. */
static inline bool tool_number(const char *text, uint32_t *to)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number > UINT32_MAX) return false;
    *to = (uint32_t)number;
    return true;
}

#endif
