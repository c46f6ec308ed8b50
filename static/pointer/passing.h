/* Inside static/pointer: the registers in which functions are given arguments, and give results. */
#ifndef RACE_POINTER_PASSING_H
#define RACE_POINTER_PASSING_H

#include "static/pointer/generate.h"

enum { PASSING_ARGS = 6, PASSING_ALL = (1 << PASSING_ARGS) - 1, PASSING_RET = 1, PASSING_RET2 = 2 };

/* Finds pta_func.takes and pta_func.gives of all functions of the modules, `about` one of each. */
void passing_find(pta_program *program, const generate_module *about);

/* Per IR value of a function: whether it is what happens to be left in a register, so that no call means it as an argument.
 * free() the result. */
bool *passing_leavings(const pta_program *program, const generate_module *about, uint32_t func);

#endif
