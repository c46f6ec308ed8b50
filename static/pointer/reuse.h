/* Inside a program that others come after: what was generated for its functions. */
#ifndef RACE_POINTER_REUSE_H
#define RACE_POINTER_REUSE_H

#include "static/pointer/generate.h"

typedef struct pta_reuse pta_reuse;
typedef VEC(uint32_t) id_numbers;

/* In this order: open, `module` for each as soon as it is known how functions are given arguments, then `take` or
 * `keep` for each function, `settle`. `before`: the program before, with what was kept of it, or NULL; what is taken
 * from it is gone from there. */
pta_reuse *reuse_open(const pta_program *program, const pta_program *before);
void reuse_module(pta_reuse *r, const pta_program *program, const pta_program *before, uint32_t m);
bool reuse_take(pta_reuse *r, pta_program *before, const pta_program *program,
                uint32_t func); /* false: it has to be generated */
void reuse_keep(pta_reuse *r, const pta_program *program, const generate_module *about, uint32_t func, generated *code);
const generated *reuse_code(const pta_reuse *r, uint32_t func);
void reuse_settle(pta_reuse *r);
void reuse_close(pta_reuse *r);

#endif
