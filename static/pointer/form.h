/* Inside generation: what a value of the IR is to the pointer analysis. Each value has a form: a constant address, a place in
 * the frame or in the TLS block, or a variable plus a constant, so that address arithmetic with constants costs no statement.
 * Forms of operands are known before a value is looked at: values in the order of the blocks, phis first. */
#ifndef RACE_POINTER_FORM_H
#define RACE_POINTER_FORM_H

#include "static/pointer/generate.h"

typedef enum {
    FORM_NONE,    /* not a pointer */
    FORM_VAR,     /* var + value */
    FORM_CONST,   /* the module address `value` */
    FORM_FRAME,   /* stack pointer at entry + value */
    FORM_ALIGNED, /* realigned stack pointer + value */
    FORM_TLS,     /* thread pointer + value */
    FORM_TPOFF,   /* the number `value`, to be added to the thread pointer */
    FORM_SITE,    /* the address of site `value`; only as a key */
    FORM_INDEXED, /* address * 4096 + stride: the base of an indexed access; only as a key */
    FORM_FRAMED,  /* the same in the frame: place * 4096 + stride */
    FORM_STACK,   /* the arguments on the stack: place in the frame * 2^21 + bytes; only as a key */
    FORM_DIRECT   /* the word at module address `value`, accessed as such; only as a key */
} form_kind;

typedef struct {
    uint8_t kind;
    uint32_t var;
    int64_t value;
} form;

typedef struct {
    uint8_t kind; /* FORM_NONE: free */
    int64_t value;
    uint32_t var;
} known_form;

#define EMPTIED (UINT32_MAX - 1)

typedef struct {
    uint32_t holds;   /* a value; EMPTIED: null; 0: not known */
    int32_t at;       /* its place in the frame */
    uint8_t argument; /* of a call, IR_CALL_*: its address */
    bool unasked;     /* ... or what it is made with, which nobody will ask for */
} emptied;

typedef struct {
    const pta_program *program;
    const generate_module *module;
    const image *img;
    const lift_func *func;
    const ir_func *ir;
    uint32_t func_id;
    generated *out;
    form *forms;
    uint8_t *kinds; /* value_kind of each value */
    bool *left;     /* passing_leavings */
    struct typed_value *types, *guesses; /* typed.h */
    const image_type **made;   /* made_infer */
    uint32_t *call_of; /* per value: local call number + 1 */
    emptied *emptied; /* emptied_find */
    known_form *known; /* hash table of forms that have a variable */
    uint32_t known_count, known_capacity;
    address_space frame;
    uint32_t frame_site, aligned_site;
    uint32_t block;
    int64_t block_at, block_size; /* the last block that was copied into the frame: its place and bytes */
    uint32_t insn; /* machine instruction of the value at hand */
} generator;

/* --- form.c ------------------------------------------------------------------------------------------------------------- */

uint32_t form_new_var(generator *g);
void form_emit(generator *g, pta_stmt stmt);
void form_emit_address(generator *g, uint32_t var, uint32_t site, int64_t offset);
/* The variable of a form that is not one itself; *fresh: it has no statements yet. */
uint32_t form_known(generator *g, uint8_t kind, int64_t value, bool *fresh);

form form_var(uint32_t var);
form form_site(generator *g, uint32_t site);
form form_const(const generator *g, int64_t value); /* a number that is an address, or nothing */
form form_add(form f, int64_t k);
bool form_is_own_tls(const image *img, const image_reloc *reloc);
/* A word that never changes after start-up; false: it may change. */
bool form_word(generator *g, uint64_t addr, form *f);
/* a + b * scale that is a pointer although neither a nor b is one, for example `2 * p - q`; or nothing. */
form form_linear(generator *g, ir_value a, ir_value b, int64_t scale);
/* Of two values that are added, the one that cannot be the pointer becomes FORM_NONE. */
void form_settle(const generator *g, ir_value a, ir_value b, form *fa, form *fb);

/* A form as an operand: as a value, for an access to exactly this address, as the base of an index. */
pta_operand form_operand(generator *g, form f);
pta_operand form_direct(generator *g, form f);
pta_operand form_indexed(generator *g, form f, uint32_t stride);
/* Adds delta to an operand that is then changed as `stride` says; where there is no room for the sum, it is anywhere. */
void form_shift(pta_operand *at, int64_t delta, uint32_t *stride);
bool form_is_far(int64_t delta);
/* dst may be what `f` is, changed as `stride` says after adding delta. */
void form_copy(generator *g, uint32_t dst, form f, int64_t delta, uint32_t stride);

/* What adding v * scale does: `shift` bytes and a stride, PTA_SAME when it is that alone. v 0: nothing. With a stride, either
 * the place that is added to is in the array (x[i + 1]), or the one `shift` bytes away (s.x[i], where the place of x went into
 * the index): both have to be looked at, the first with form_without_shift, unless the shift leads into the first element only. */
typedef struct {
    int64_t shift;
    uint32_t stride;
} form_index;
form_index form_index_of(const generator *g, ir_value v, int64_t scale);
bool form_is_shifted(form_index index); /* both have to be looked at */
form_index form_without_shift(form_index index);
/* v * scale where that is a pointer rounded down by shifts; or nothing. */
form form_rounded(generator *g, ir_value v, uint64_t scale);
/* dst may be what `f` is with `delta` and the index added. */
void form_copy_indexed(generator *g, uint32_t dst, form f, int64_t delta, form_index index);
uint32_t form_both_strides(uint32_t a, uint32_t b);
uint64_t form_number(const generator *g, ir_value v); /* a small positive constant, or 0 */

/* --- generate.c ------------------------------------------------------------------------------------------------------------- */

/* An access that is never made: of the table of an object that has none. */
bool generate_is_never(const generator *g, const ir_insn *access);

/* --- generate_memory.c ------------------------------------------------------------------------------------------------ */

enum { BLOCK_WORDS = 64 }; /* a larger block is copied from any word to any word */

void generate_access(generator *g, const ir_insn *access);
form generate_load(generator *g, const ir_insn *insn);
void generate_store(generator *g, const ir_insn *insn);
/* A block of `size` bytes was copied to that form: it may be an argument of the next call. */
void generate_note_block(generator *g, form to, uint64_t size);
/* A block copy of `size` bytes, 0: unknown. */
void generate_block(generator *g, pta_operand to, pta_operand from, uint64_t size);

/* --- emptied.c ------------------------------------------------------------------------------------------------------------ */

/* Per value, what a unique pointer in the frame holds where it is loaded or where a call is passed its address, by the flow;
 * NULL: the function has none. free() the result. */
emptied *emptied_find(const generator *g);

/* --- generate_call.c ---------------------------------------------------------------------------------------------------- */

void generate_call(generator *g, ir_value v);
/* Whether a block copy of a size that is not known moves text, which has no pointers in it. */
bool generate_copies_bytes(const generator *g, ir_value to, ir_value from, ir_value size);
form generate_result(generator *g, const ir_insn *insn);
void generate_return(generator *g, const ir_insn *insn);

#endif
