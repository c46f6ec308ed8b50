/* libaccesses.so: which objects the instructions of a program access. See accesses.c.
 *
 *   accesses.c         options, modules, what is added to basic blocks, the record and its output
 *   accesses_stack.c   threads and the shadow stacks of their activations
 *   accesses_heap.c    allocations, mappings, thread-local storage: calls that are watched
 *
 * Addresses of code are module-relative, as the file has them, wherever they are kept. */
#ifndef ACCESSES_H
#define ACCESSES_H

#include "dr_api.h"

#include <stdint.h>
#include <string.h>

enum { MAX_MODULES = 1024, MAX_PLT = 8, MAX_WORDS = 8, EXTERNAL_MODULE = 0xffff };

/* --- what an address belongs to ----------------------------------------------------------------------------------- */

typedef enum {
    OBJECT_OWN,     /* the activation that makes the access; where: the function's entry; offset from its entry rsp */
    OBJECT_FRAME,   /* another activation: the same */
    OBJECT_HEAP,    /* an analysed function called the allocator; where: the call instruction */
    OBJECT_LIBRARY, /* the same, but it called a library function, which called the allocator */
    OBJECT_STATIC,  /* of an analysed module; where: a bucket of addresses; the offset is the address itself */
    OBJECT_TLS,     /* of an analysed module; the offset is that in its TLS block */
    OBJECT_EXTERNAL /* all else; where: external_kind; there are no offsets */
} object_kind;

typedef enum {
    EXTERNAL_UNKNOWN, /* mapped by the kernel or by code that is not watched */
    EXTERNAL_STATIC,  /* data of a module that is not analysed: `module` */
    EXTERNAL_HEAP,    /* allocated while no analysed function was active */
    EXTERNAL_STACK,   /* a frame of code that is not analysed, or above all frames */
    EXTERNAL_THREAD   /* thread control block and TLS of modules that are not analysed */
} external_kind;

enum { OUTER = 2, UNKNOWN_CALL = 0 };

typedef struct {
    uint16_t module;
    uint64_t pc; /* UNKNOWN_CALL: from code that is not analysed */
} call_place;

typedef struct {
    uint8_t kind; /* object_kind */
    uint16_t module;
    uint64_t where;
    call_place outer[OUTER]; /* HEAP, LIBRARY: the call, or tail jump, that the function was entered by, and that of its caller */
} object;

static inline object object_of(uint8_t kind, uint16_t module, uint64_t where)
{
    return (object){.kind = kind, .module = module, .where = where};
}

static inline bool object_same(const object *a, const object *b)
{
    bool same = a->where == b->where && a->module == b->module && a->kind == b->kind;
    for (unsigned i = 0; same && i < OUTER; i++)
        same = a->outer[i].pc == b->outer[i].pc && a->outer[i].module == b->outer[i].module;
    return same;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

enum { /* what is known about an instruction; bits */
    MARK_ENTRY = 1,  /* a function starts here */
    MARK_LEAVE = 2,  /* a jump that is a tail call */
    MARK_RESUME = 4, /* execution comes back here: behind a call, at a landing pad, behind a conditional tail call */
    MARK_RAN = 8
};

typedef struct {
    uint64_t *keys; /* open hash: address + 1 */
    uint8_t *bits;
    uint64_t size, used;
} mark_table;

typedef struct {
    app_pc start, end;
    uint64_t bias;  /* subtract to get the file's address */
    uint16_t number;
    bool analysed, unloaded;
    char path[MAXIMUM_PATH];
    mark_table marks;
    uint64_t ran;   /* distinct instructions */
    uint64_t plt_start[MAX_PLT], plt_end[MAX_PLT];
    uint32_t plt_count;
    uint64_t tls_size; /* of an analysed one; 0: it has no thread-local storage */
    bool in_executable; /* its TLS block ends at the thread pointer */
    uint64_t tp_word[MAX_WORDS], tp_offset[MAX_WORDS]; /* words that hold the thread-pointer offset of a block offset */
    uint64_t id_word[MAX_WORDS];                       /* words that hold the TLS module id */
    uint32_t tp_count, id_count;
    bool tls_known; /* the words were read: */
    uint64_t tls_distance, tls_id; /* 0: it has none */
} module;

module *module_of(uint64_t addr); /* or NULL */
void modules_each(void (*visit)(module *m, void *context), void *context); /* analysed ones */

/* --- threads and stacks ------------------------------------------------------------------------------------------- */

enum { MAX_STACKS = 16, MAX_BLOCKS = 32 };

typedef enum { ACTIVE_RUNS, ACTIVE_CALLS, ACTIVE_LEFT } active_state;

typedef struct {
    uint64_t sp;      /* at entry: where the return address lies */
    uint64_t call_sp; /* ACTIVE_CALLS: the stack pointer before the call; what is below belongs to others */
    uint64_t call;    /* the last call or tail jump out of it */
    uint64_t entry;
    uint16_t module;
    uint8_t state;    /* active_state */
    bool signal;      /* a signal handler: the one below was interrupted, not in a call */
    call_place by[OUTER]; /* what it was entered by, and its caller */
} activation;

typedef struct {
    uint64_t low, high;
    activation *frames; /* oldest first: sp strictly falls */
    uint32_t count, capacity;
} stack;

typedef struct thread {
    struct thread *next;
    bool first; /* of the process */
    uint64_t pointer; /* the thread pointer, fs base; 0: not known yet */
    void *lock; /* of the stacks: the owner takes it to change them, others to read them */
    stack stacks[MAX_STACKS];
    uint32_t stack_count, current;
    uint64_t signal_sp;          /* where the last signal interrupted; 0: it is used up */
    uint64_t alt_low, alt_high;  /* sigaltstack */
    uint32_t allocating;         /* calls of allocation functions that have not returned */
    object allocated;            /* what the outermost of them allocates */
    uint64_t block_module[MAX_BLOCKS], block_start[MAX_BLOCKS]; /* TLS blocks by TLS module id */
    uint32_t block_count;
} thread;

void stack_init(void);
void stack_exit(void);
thread *thread_current(void);
/* The thread and the offset in the TLS block of an analysed module, when addr lies in one. */
bool tls_find(thread *t, uint64_t addr, object *found, int64_t *offset);
/* Of any thread's stacks; false: addr is on no stack. */
bool stack_find(thread *t, uint64_t addr, object *found, int64_t *offset);
/* Who the allocator works for when it is entered with stack pointer `sp`. */
object stack_caller(thread *t, uint64_t sp);
/* Clean calls. */
void on_entry(module *m, uint64_t entry, uint64_t sp);
void on_call(uint64_t pc, uint64_t sp);
void on_leave(uint64_t pc, uint64_t sp);
void on_return(uint64_t sp);
void on_resume(uint64_t sp);
extern uint64_t stack_odd; /* entries that no call explains */

/* --- the heap ----------------------------------------------------------------------------------------------------- */

void heap_init(void);
void heap_watch(const module_data_t *info); /* wraps the allocation functions that it exports */
bool heap_find(uint64_t addr, object *found, int64_t *offset);
bool heap_bounds(uint64_t addr, uint64_t *low, uint64_t *high);

void *record_alloc(size_t size); /* zeroed, never freed */

#endif
