/* What the views of `race show` share that need more than one module's code: an analysis of a file. */
#ifndef RACE_TOOL_SHOW_H
#define RACE_TOOL_SHOW_H

#include "static/detect/detect.h"
#include "tools/race/race.h"

typedef struct {
    image_list list;
    lift_module **modules;
    pta_program *program;
    pta *result;
    hb *order; /* show_order_open */
    detect *found;
} show_analysis;

/* Return EXIT_CLEAN, or EXIT_USAGE after they have said what is wrong. */
int show_analysis_open(show_analysis *a, const char *path, const show_pointer *how); /* pointers */
void show_order_open(show_analysis *a);                                              /* and order and locks */
void show_analysis_close(show_analysis *a);

/* The function is one of those that a user calls so. */
bool show_is_named(const show_analysis *a, const pta_func *func, const char *name);
/* The source line of an instruction, unless it is the last one that was printed. */
void show_line(const image *img, uint64_t addr, uint32_t *last);
/* What an access may touch, in words, separated by commas. */
void show_places(const show_analysis *a, const pta_access *access, pta_places *places);

#endif
