/* Inside generation: what values point to, as far as declarations tell. */
#ifndef RACE_POINTER_TYPED_H
#define RACE_POINTER_TYPED_H

#include "static/pointer/form.h"

typedef struct typed_value {
    const image_type *to; /* it points into one of these, or into an array of them; NULL: unknown */
    int64_t at;           /* that many bytes behind its beginning */
    uint64_t step;        /* and a multiple of this, in an array that the constants to come will tell; 0: just there */
    bool number;          /* it is declared as a number that is no address */
} typed_value;

/* Per IR value; free() the result. Without debug information nothing is known. */
typed_value *typed_infer(const generator *g);

/* The same, but a pointer that goes through a list in a loop is what it began as, as long as nothing speaks against it: for those who
 * want to know what is meant, and do not draw conclusions from it. */
typed_value *typed_guess(const generator *g);
typed_value typed_guessed(const generator *g, const ir_insn *access);

/* What a parameter, by its register, and the result of a function are declared as; what is loaded from a place. */
typed_value typed_parameter(const image *img, const lift_func *func, unsigned reg);
typed_value typed_returned(const image *img, const lift_func *func);
typed_value typed_loaded(typed_value place);

/* made.c: per IR value, the struct or byte that it is kept as a pointer to; NULL: none, or several. Only after g->types. free()
 * the result. */
const image_type **made_infer(const generator *g);
/* Whether a value is kept as a pointer to bytes, and as nothing else. */
bool made_is_bytes(const generator *g, ir_value v);
/* typed_guessed, or else what the pointer of an access is kept as. */
typed_value made_access(const generator *g, const ir_insn *access);

/* The place of an access, `lane` bytes behind its address; to NULL: unknown. */
typed_value typed_access(const generator *g, const ir_insn *access, int64_t lane);
/* Whether what is there is declared as a number. */
bool typed_is_number(typed_value place);
/* Whether a pointer is declared to point to single bytes: text, a packet. */
bool typed_is_bytes(typed_value pointer);
/* Whether it points into what is declared as an array of bytes with an end. */
bool typed_is_text(typed_value pointer);
/* The array inside of a struct that a place is in, which an index that begins there does not leave, as bytes relative to the
 * place; false: it is in none, or nobody knows where that ends. */
bool typed_array(typed_value place, int64_t *start, int64_t *end);

/* The address that an IR_LEA or IR_ACCESS computes, where that is an element of a member that is declared as an array of few
 * elements: its base, and what is added to it for each of them. Returns their number, 0: it is something else. */
enum { TYPED_ELEMENTS = 6 };
uint32_t typed_elements(const generator *g, const ir_insn *insn, int64_t lane, ir_value *base, int64_t deltas[TYPED_ELEMENTS]);

#endif
