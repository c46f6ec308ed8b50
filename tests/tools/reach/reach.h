/* reach: which (object, field, read or write) each thread of a program touches, as the IR shows it.
 *
 * A measuring device for the lifter, not the pointer analysis: it answers whether the IR of a -O0 build carries the
 * same facts as that of a -O2 build. So it leans on the IR alone, and on nothing that would make up for a weak one:
 * values in registers and promoted slots are followed exactly, memory is one cell per place whatever the order of
 * stores, and every call chain is a context of its own (what the optimiser inlines is apart as well).
 *
 *   number.c   numbers and linear forms: what an address expression adds to a pointer
 *   object.c   roots, abstract pointers, objects and their memory
 *   place.c    where optimised code keeps its variables
 *   model.c    the library functions that matter, as a table
 *   value.c    the values of one context
 *   call.c     contexts, calls, threads
 *   walk.c     the walk over all of them, to a fixpoint
 *   field.c    from bytes of an object to the fields of its type
 *   main.c     the report
 *
 * What is deliberately not there: flow-sensitive memory, locks, order. */
#ifndef RACE_TESTS_REACH_H
#define RACE_TESTS_REACH_H

#include "static/lift/lift.h"

/* --- number.c ---------------------------------------------------------------------------------------------------- */

enum { MOST_STRIDES = 4, MOST_OFFSETS = 4 };

/* Multiples of any of these may be added, largest first: an index per array on the way to a place. Mathematically that
 * is their common divisor; they are kept apart since an index stays inside its array (see field.c). */
typedef struct {
    uint32_t count;
    uint64_t of[MOST_STRIDES];
} strides;

void strides_add(strides *set, uint64_t stride);
void strides_join(strides *into, const strides *from);
uint64_t strides_divisor(const strides *set); /* 0: none */
/* Do `p` and its multiples cover what lies `apart` from it and has the strides `q`? */
bool strides_cover(const strides *p, const strides *q, uint64_t apart);

/* One of the offsets, plus multiples of the strides. */
typedef struct {
    uint32_t count; /* 0: no number has come here so far */
    int64_t offset[MOST_OFFSETS];
    strides by;
} number;

static const number ANY_NUMBER = {.count = 1, .by = {1, {1}}};

uint64_t number_gcd(uint64_t a, uint64_t b);
uint64_t number_apart(int64_t a, int64_t b);
bool number_join(number *into, const number *from);                  /* true: has changed */
number number_sum(const number *a, const number *b, int64_t factor); /* a + factor * b */
bool number_is(const number *n, int64_t *value);                     /* true: it is this one */

enum { LINEAR_TERMS = 6 };

/* constant + sum of factor * value. A value that is not a sum of others is its own form. */
typedef struct {
    uint32_t count;
    int64_t constant;
    ir_value value[LINEAR_TERMS];
    int64_t factor[LINEAR_TERMS];
} linear;

/* The forms of all values of a function; free() the result. */
linear *linear_forms(const ir_func *ir);
/* a + scale * b + constant */
bool linear_add(linear *a, const linear *b, int64_t scale, int64_t constant); /* false: too many terms */

/* --- object.c ---------------------------------------------------------------------------------------------------- */

typedef enum {
    ROOT_MODULE,   /* offset is a module address */
    ROOT_THREAD,   /* the thread pointer */
    ROOT_FRAME,    /* the stack pointer at entry of a context */
    ROOT_ALIGNED,  /* its realigned stack pointer */
    ROOT_HEAP,     /* what a call at `site` in a context allocates */
    ROOT_EXTERN,   /* a symbol of another module */
    ROOT_RESULT,   /* what the library function `name` returns */
    ROOT_ARGUMENT, /* variable `site` on entry of a thread */
    ROOT_DEREF     /* what was loaded from `parent` at `offset` and nobody here has stored */
} root_kind;

typedef struct {
    root_kind kind;
    uint32_t context;
    uint64_t site;
    const char *name;
    uint32_t parent;
    int64_t offset;
} root;

typedef struct {
    uint32_t root;
    int64_t offset;
    strides by;
} pointer;

typedef VEC(pointer) pointers;

bool pointers_add(pointers *set, pointer p); /* true: has changed. Widens when one root has many offsets */
bool pointers_join(pointers *into, const pointers *from);

typedef struct {
    int64_t offset;
    uint64_t stride;
    pointers to;
} cell;

typedef struct {
    uint32_t root; /* what kind of thing it is */
    int64_t start; /* where it begins, relative to the root */
    uint64_t size; /* 0: unknown */
    const char *name;
    const image_type *type; /* or NULL */
    bool constant;          /* nobody writes it: its reads are not reported */
    bool shared;            /* another thread may have its address */
    bool opaque;            /* memory of other modules: loads give ROOT_DEREF */
    VEC(cell) cells;
} object;

typedef struct reach reach;

uint32_t root_intern(reach *r, root wanted);
/* The object that a pointer points into, and the place in it. */
uint32_t object_at(reach *r, pointer p, int64_t *offset);
object *object_of(reach *r, pointer p, int64_t *offset); /* valid until the next object is made */
/* SLOT_* of an object in some frame, 0 for others. */
void object_mark(reach *r, uint32_t object, uint32_t flags);
uint32_t object_marks(const reach *r, uint32_t object);
bool object_store(reach *r, pointer p, const pointers *values);
void object_load(reach *r, pointer p, pointers *values);
bool object_copy(reach *r, pointer to, pointer from); /* memcpy: all cells of one object become cells of the other */

/* --- place.c ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    uint32_t line;  /* of the declaration */
    uint64_t start; /* from this address on */
    uint16_t var;   /* the register that it is in, or IR_NOVAR: */
    int64_t offset; /* in memory, from the stack pointer at entry */
} place;

typedef VEC(place) place_list;

const place_list *place_variables(reach *r, const lift_func *func);
const image_variable *place_variable(const image_function *debug, const place *p);
void place_close(reach *r);

/* --- model.c ----------------------------------------------------------------------------------------------------- */

enum { /* what a library function returns */
       RESULT_NUMBER,
       RESULT_FRESH,
       RESULT_FIRST,
       RESULT_INTO_FIRST, /* a fresh object; its first argument; a place in that */
       RESULT_UNKNOWN
};

/* Arguments are counted from 1; 0: none. */
typedef struct {
    const char *name;
    uint8_t args;                  /* integer arguments it takes */
    uint8_t result;                /* RESULT_* */
    uint8_t written, read, length; /* bytes that it accesses as the program's own code would */
    uint8_t starts, argument;      /* it starts a thread with this function and this argument */
    uint8_t calls, passes;         /* it calls this function, with pointers into that argument */
    uint8_t keeps;                 /* the fresh object has the content of this one */
} model;

const model *model_of(const char *name); /* never NULL: a model of the unknown */

/* --- walk.c ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pointers to;
    number num;
} state;

enum { PARAMS = IR_VECTOR + 64 }; /* registers and lanes of xmm0 to xmm7 */

typedef struct {
    const lift_func *func;
    uint32_t parent; /* context, 0: the entry of a thread */
    ir_value call;   /* of the parent */
    uint32_t thread; /* index in reach->threads */
    uint32_t depth;
    bool has_caller_rsp;
    int32_t caller_rsp; /* its entry stack pointer relative to the parent's */
    const linear *forms;
    state *values;
    state *params;    /* PARAMS of them */
    state results[4]; /* rax, rdx, xmm0, xmm1 */
} context;

typedef struct {
    const lift_func *func;
    uint32_t context;
} thread;

enum { SLOT_ESCAPES = 1, SLOT_INDEXED = 2 };

/* What is known of an object in the frames of a function, in whatever context. */
typedef struct {
    const lift_func *func;
    int64_t start;
    uint32_t flags;
} slot;

/* An access as one context performs it, to one object. */
typedef struct {
    uint32_t context;
    ir_value access; /* 0: a call that accesses memory for the program */
    uint32_t object;
    int64_t offset;
    strides by;
    uint64_t width;
    bool write;
} touch;

struct reach {
    const lift_module *module;
    VEC(root) roots;
    VEC(object) objects;
    VEC(context) contexts; /* [0] unused */
    VEC(thread) threads;   /* [0] is main */
    VEC(slot) slots;
    VEC(touch) touches; /* filled by the last round */
    linear **forms;     /* per function */
    place_list *places; /* per function */
    bool *places_read;
    struct Dwarf *debug;
    int debug_file;
    bool changed, last;
    uint32_t rounds, cut, unknown_calls, unknown_accesses;
    arena memory;
};

/* Walks from main to a fixpoint. False: the program has no main. */
bool reach_walk(reach *r);
void reach_free(reach *r);

/* --- value.c ----------------------------------------------------------------------------------------------------- */

ir_value walk_argument(const ir_func *ir, const ir_insn *insn, uint32_t k); /* 0: none */
void state_join(reach *r, state *into, const state *from);
void state_add_root(reach *r, state *into, root at, int64_t offset);
void state_add_number(reach *r, state *into, number n);
/* The pointers of an address expression in a context. */
void reach_address(const context *c, const ir_insn *access, pointers *out);
void walk_value(reach *r, uint32_t context, ir_value v);

/* --- call.c ------------------------------------------------------------------------------------------------------ */

uint32_t walk_open(reach *r, const lift_func *func, uint32_t parent, ir_value call, uint32_t thread);
bool walk_call(reach *r, uint32_t context, ir_value call); /* false: nothing is known to be called */
void walk_result(reach *r, uint32_t context, const ir_insn *insn, state *into);
/* Notes addresses of the context's own frame that are passed on or stored. */
void walk_escapes(reach *r, uint32_t context, const pointers *set);

/* --- field.c ----------------------------------------------------------------------------------------------------- */

/* Gives heap objects the types that the memory, parameters, results and variables which hold their addresses declare.
 */
void field_infer_types(reach *r);

/* The place of a cell in an object of this type: all elements of an array are one. Leaves in *stride what no array
 * accounts for. */
int64_t field_place(const image_type *type, int64_t offset, const strides *by, uint64_t *stride);

typedef void field_emit(void *user, const char *path);
/* Calls emit for each field of a typed object that an access to `width` bytes there overlaps. */
void field_each(const object *o, bool heap, const touch *t, field_emit *emit, void *user);

#endif
