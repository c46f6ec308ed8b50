/* From the IR of one function to statements. Reads the program only, so that functions are done in parallel. */
#ifndef RACE_POINTER_GENERATE_H
#define RACE_POINTER_GENERATE_H

#include "static/pointer/address.h"
#include "static/pointer/program.h"

enum { GENERATE_LOCAL = 1u << 31 }; /* in pta_stmt.ref and pta_call: numbers of `generated`, not yet of the program */

typedef struct {
    VEC(pta_stmt) stmts;
    VEC(pta_call) calls;
    VEC(pta_site) sites;
    VEC(pta_access) accesses;
    uint32_t var_count;
    uint64_t unknown_calls, unknown_accesses;
} generated;

typedef struct {
    const address_space *statics; /* of the module */
    const address_space *tls;
    const uint32_t *slots; /* per relocation of the module: the site that its name stands for, or PTA_NO_SITE */
    const uint32_t *plts;  /* per PLT stub: the function, or PTA_NO_FUNC */
    uint32_t unknown;      /* the function that stands for all unknown ones */
    uint32_t copied;       /* the function that stands for a block copy whose words are copied by the caller */
    uint32_t external;     /* site */
    uint32_t messages;     /* site: what the program has sent to itself, as far as it knows */
    const uint32_t *chosen; /* per function of the module: the one of the program that its name means, and its site behind
                               them all: another one where an object file has a copy that the linker drops */
    uint32_t count;         /* functions of the module */
} generate_module;

static inline uint32_t generate_chosen(const generate_module *module, const lift_func *f)
{
    return module->chosen[f->id];
}

static inline uint32_t generate_chosen_site(const generate_module *module, const lift_func *f)
{
    return module->chosen[module->count + f->id];
}

/* Whom a call names in the words of its module, which follows from the module alone; and which function of the program that is,
 * in module number `m`. PTA_NO_FUNC: only the value of the target tells. */
uint32_t generate_name(const lift_module *module, const lift_func *func, const ir_insn *call);
uint32_t generate_named(const pta_program *program, const generate_module *module, uint32_t m, uint32_t name);
/* Both. */
uint32_t generate_callee(const pta_program *program, const generate_module *module, uint32_t func, const ir_insn *call);
void generate_function(const pta_program *program, const generate_module *module, uint32_t func, generated *out);
/* march.c: pointers that march through an array as indices of it. */
void generate_marches(generated *out);
/* hoist.c: constants are added before indices. */
void generate_hoisted(generated *out);
void generate_free(generated *out);

/* The bytes that a function may be passed on the stack, the return address included; 0: none. GENERATE_STACK where it walks
 * through them. */
enum { GENERATE_STACK = 8 + 8 * 64 };
uint32_t generate_stack(const ir_func *ir);

#endif
