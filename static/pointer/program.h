/* Inside static/pointer: how a program is put together. */
#ifndef RACE_POINTER_PROGRAM_H
#define RACE_POINTER_PROGRAM_H

#include "static/pointer/pointer.h"

/* --- adding to a program ------------------------------------------------------------------------------------------- */

uint32_t program_add_func(pta_program *program, const char *name, const lift_func *lift, uint32_t module);
uint32_t program_add_site(pta_program *program, pta_site site);
uint32_t program_add_call(pta_program *program, pta_call call);
void program_add_stmt(pta_program *program, uint32_t func, pta_stmt stmt);
uint32_t program_new_var(pta_program *program, uint32_t func);

/* The one site of static data `name` of a modelled library, and the one of everything outside; made on first use. */
uint32_t program_library_site(pta_program *program, const char *name);
uint32_t program_external_site(pta_program *program);

/* surround.c, allocator.c, wrapper.c: when all functions of modules are there. */
void program_surround(pta_program *program);
void program_name_allocators(pta_program *program);
void program_find_wrappers(pta_program *program);
void program_find_helpers(pta_program *program); /* helper.c; after the wrappers */

/* prune.c: after everything is added. */
void program_prune(pta_program *program);

/* --- looking things up --------------------------------------------------------------------------------------------- */

/* The function that a name of another module stands for: of an analysed module, or a model, which is made on first use.
 * PTA_NO_FUNC: unknown. Not thread-safe. */
uint32_t program_import(pta_program *program, const char *name);
uint32_t program_func_at(const pta_program *program, uint32_t module, uint64_t entry); /* or PTA_NO_FUNC */
/* The same, or what stands for it when it is of a library that is linked statically. */
uint32_t program_func_meant(const pta_program *program, uint32_t module, uint64_t entry);
uint32_t program_function_site(pta_program *program, uint32_t func); /* the site of its code; made on first use */

/* --- model.c, model_name.c -------------------------------------------------------------------------------------------
 *
 * A model is text, statements separated by `;`:
 *
 *     DEST = SOURCE
 *     [DEST =] call TARGET (SOURCE, ...)    calls the functions that TARGET points to; `calls`: any number of times
 *     [DEST =] thread TARGET (SOURCE, ...)  the same in another thread, `threads`: in any number of them; `event` and
 *                                           `events`: in an event handler
 *     copy TO FROM                          block copy of unknown size between what both point to: any aligned word to
 *                                           any
 *
 *     SOURCE  N           argument, from 0; from 6 on they are on the stack
 *             new         the address of a fresh object; new(N): of one of the size of argument N; new(N*M): of M elements
 *                         of the size of argument N; bytes: of one whose places are not told apart
 *             lib NAME    a variable of the library; tls NAME: one of each thread; &lib NAME, &tls NAME: its address
 *             &func NAME  the address of the function of that name
 *             ext         anything that the outside knows
 *             ret, NAME   the result; a variable of the model, which must have got a value before
 *             X+          somewhere in what X points to; X+8, X-8: that many bytes behind X or before it; X%12, X%12+4:
 *                         the same, and any multiple of 12 bytes away. No blanks in front of these
 *             *X          the word that X points to. `*` takes all that follows: `*0+8` is the word at 8, `(*0)+8` a
 *                         place 8 bytes behind where the first word points
 *     DEST    ret, ret2, NAME, *X, lib NAME, tls NAME, ext
 *
 * An argument of a call may be `_`, which is nothing; the seventh may be `N...`: the stack from argument N on, as it
 * is.
 *
 * The empty text: no effect on pointers. A text of NULL: the name is no function. */
typedef struct {
    const char *name; /* one name, or several separated by spaces; `name*` stands for all that begin so */
    const char *text;
} pta_model;

extern const pta_model model_table[];
extern const uint32_t model_count;

/* The text for a function, NULL when there is none. Names are compared without the prefixes and suffixes by which libc
 * spells variants of one function (`__isoc99_`, `_chk`, ...), which model_name.c knows. */
const char *model_find(const char *name);
/* Fills a new function with the statements of `text`. Returns 0, or -1 with the place of a mistake in `error`. */
int model_fill(pta_program *program, uint32_t func, const char *text, race_error *error);

#endif
