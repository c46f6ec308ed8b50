/* runtime/probe: librace_probe.so, the embedded engine. Preloaded into the program; patches the planned sites in place.
 *
 *   process.c   start (a constructor that runs before all others), options, fork, exit
 *   exec.c      programs that the program executes;  clone.c  processes and threads that libc is not told of
 *   seccomp.c   programs that forbid system calls to themselves
 *   module.c    modules as the loader maps and unmaps them; their plans
 *   loader.c    what the loader's locks order
 *   patch.c     how control gets from a site to its trampoline: which bytes are overwritten with what
 *   tramp.c     trampolines: checks, the displaced instructions, the way back
 *   inline.c    a check in a trampoline, with the same-epoch path inlined; several in one go
 *   insn.c      lengths of instructions;  move.c  instructions at another place;  emit.h  a small assembler
 *   near.c      memory that is near to a module
 *   stack.c     stacks of accesses
 *   quick.c     what trampolines call when the inlined path cannot settle it, where that is simple
 *   check.c     and where it is not
 *   first.S     the simplest of these, which most are
 *   entry.S     the ways in from trampolines and wrappers: registers, flags, stack
 *   wrap.c      calls of the functions of the sync table; thunks.c makes one exported function for each row
 *   callback.c  functions of the program that libraries call back
 *   symbol.c    the real functions behind the wrappers
 *   thread.c    threads: birth, death, names
 *   signal.c    handlers of the program: delayed while the core is busy; they see original addresses
 *   cancel.c    cancellation;  timer.c  threads of timers
 *   system.c    system calls and memory without libc; names.h  its functions are not the program's
 *
 * The library brings nothing along: no libraries but libc, no exported names but the wrappers. All of it, the core
 * included, is compiled for general registers only, so the program's vector state is never touched and needs no saving.
 * What runs inside of checks uses no libc function and takes no lock that the program could hold.
 *
 * State of a thread is in one thread-local struct at a fixed distance from the thread pointer, so that inlined code
 * reads it with one instruction. A thread that was not created by a wrapped pthread_create has `nobody` there. */
#ifndef RACE_PROBE_H
#define RACE_PROBE_H

#include "include/race/plan.h"
#include "runtime/core/core.h"
#include "runtime/report/report.h"
#include "runtime/sync/sync.h"

#include <pthread.h>
#include <signal.h>

enum { PROBE_PAGE = 4096, PROBE_JUMP = 5, PROBE_SHORT_JUMP = 2, PROBE_FAR_JUMP = 14, PROBE_RED_ZONE = 128 };
enum { PROBE_TRAP = 0x06, PROBE_TRAP_SIGNAL = SIGILL }; /* in 64-bit code no instruction begins with it */
enum { PROBE_SIGNALS = 65 };
#define PROBE_TRAP_BIT (1ul << (PROBE_TRAP_SIGNAL - 1)) /* in a mask */

#define EXPORT __attribute__((visibility("default"))) /* called by the program */
enum { PROBE_REPS = 4, PROBE_KNOWN = 512, PROBE_LAST = 256, PROBE_LATE = 4 };

/* --- what trampolines call (check.c, entry.S) --------------------------------------------------------------------- */

typedef struct { /* registers of the program, as entry.S stores them */
    uint64_t flags;
    uint64_t general[16]; /* by machine number; [4], the stack pointer, is filled in by C */
    uint64_t back;        /* into the trampoline */
    uint64_t record;
    uint64_t red_zone[PROBE_RED_ZONE / 8];
    uint64_t stack[]; /* of the program */
} probe_registers;

typedef enum { RECORD_CHECK, RECORD_SYNC_BEFORE, RECORD_SYNC_AFTER, RECORD_REP_BEFORE, RECORD_REP_AFTER, RECORD_SYSTEM } record_kind;

typedef struct { /* one way to call C from a trampoline; trampolines name it by its number */
    const plan_action *action;
    uint64_t bias;
    uint64_t pc; /* what the program would have as its instruction pointer */
    ft_site site;
    uint8_t kind;   /* record_kind */
    uint8_t number; /* of the action at its site */
    uint8_t size;   /* of a check for probe_quick */
    bool is_write;  /* likewise */
    int32_t back;   /* where the return address of the function lies, see back_address; PROBE_NO_BACK: unknown */
} probe_record;

/* `back` is an offset from the stack pointer, or, when it is odd, one more than an offset from rbp. */
enum { PROBE_NO_BACK = INT32_MIN };
static inline int32_t back_of_row(const plan_unwind *row)
{
    if (!row || row->base == PLAN_UNWIND_END || row->cfa % 8) return PROBE_NO_BACK;
    return row->cfa - 8 + (row->base == PLAN_UNWIND_RBP);
}
static inline uint64_t back_address(int32_t back, uint64_t sp, uint64_t bp)
{
    if (back == PROBE_NO_BACK) return 0;
    return (back & 1 ? bp - 1 : sp) + (uint64_t)(int64_t)back;
}

/* --- trampolines (tramp.c) ---------------------------------------------------------------------------------------- */

typedef struct {                   /* a piece of a trampoline in which one thing is true */
    uint32_t at;                   /* from the start of the arena; up to the next span */
    uint8_t kind;                  /* span_kind */
    bool flags_saved;              /* SPAN_SLOW: it begins with the flags in rax */
    uint8_t saved_count, saved[4]; /* SPAN_SLOW: it begins with these registers pushed, in this order */
    uint64_t pc;                   /* of the original instruction */
} probe_span;

typedef enum {
    SPAN_CHECK, /* before the instruction at pc; begins with the program's own state */
    SPAN_SLOW,  /* the same, out of line; begins as the span says */
    SPAN_MOVED, /* the instruction at pc, moved */
    SPAN_AFTER, /* pc comes next; begins with the program's own state */
    SPAN_SYSTEM /* the system call at pc is made, if rcx is not 0; begins with a record pushed */
} span_kind;

typedef struct { /* of one module */
    const plan *plan;
    uint64_t bias;
    ft_site first_site;
    uint32_t first_record, record_count, record_cap; /* in probe.records */
    uint8_t *arena;
    size_t arena_size, arena_used;
    bool is_full;      /* a trampoline did not fit into the arena */
    probe_span *spans; /* in order of `at` */
    uint32_t span_count, span_cap;
    uint8_t *ran;      /* of report_module, below 2 GB, or NULL */
} probe_code;

typedef struct {          /* consecutive instructions that are displaced together */
    uint64_t start, end;  /* absolute */
    const uint8_t *bytes; /* the original ones, of start */
} tramp_range;

/* Appends a trampoline for the range to the arena: checks of the sites in it, instructions, the jump to its end.
 * Returns its address; 0: it cannot be made (nothing is appended). */
uint64_t tramp_build(probe_code *module, const tramp_range *range);
/* Worst case of bytes for these. */
size_t tramp_bound(uint32_t actions, uint32_t instructions, uint32_t ranges);

/* --- patching (patch.c) ------------------------------------------------------------------------------------------- */

typedef enum {
    WAY_JUMP,  /* a jump of five bytes */
    WAY_SHORT, /* a short jump into a gap that another displaced block left, and from there */
    WAY_PUN,   /* a jump whose last bytes are those of the next instruction */
    WAY_TRAP,  /* an instruction that there is not */
    WAY_NONE,  /* not at all: the site is not checked */
    WAYS
} patch_way;

typedef struct {
    uint64_t start; /* of the displaced bytes */
    uint64_t tramp; /* 0: none */
    uint64_t gap;   /* WAY_SHORT: where the short jump leads to */
    uint32_t saved; /* its displaced bytes, in `originals` of the module */
    uint16_t size;  /* displaced bytes, from start on: whole instructions */
    uint16_t limit; /* could be displaced: whole instructions of which only the first is jumped to */
    uint8_t way;    /* patch_way */
    uint8_t sites;  /* with actions, in it */
    uint8_t gaps;   /* WAY_JUMP: gaps in it that are used: five bytes each, behind the jump */
    bool evades;    /* could have displaced a call with a jump, but a return is faster when the call stays */
    bool alone;     /* instructions overlap here: only one byte may be overwritten, by a trap */
} patch_group;

typedef struct {
    uint64_t start, end;
} patch_text;

enum { PATCH_TEXTS = 4 };

typedef struct probe_module {
    struct probe_module *next; /* newest first */
    report_module *report;
    uint64_t start, end; /* where it is loaded */
    bool loaded, counted, told;
    uint32_t seen;                 /* in which scan */
    patch_text texts[PATCH_TEXTS]; /* its code */
    uint32_t text_count;
    probe_code code;
    patch_group *groups; /* by start */
    uint32_t group_count, group_cap;
    uint64_t *pages; /* single ones, where puns lead to */
    uint32_t page_count, page_cap;
    void *tables; /* all of the above */
    size_t tables_size;
    uint8_t *originals; /* bytes that were displaced */
    size_t originals_size;
} probe_module;

/* Patches the planned sites of a module that nobody runs yet. Returns NULL, or why it cannot be done. */
const char *patch_module(probe_module *m);
/* The program will come to this address, in the middle of what was displaced: from now on it is its own code there. */
void patch_give_back(probe_module *m, uint64_t pc);
void patch_restore(const probe_module *m, const patch_group *group); /* its bytes as they were; the process is dying */
/* All of its bytes as they were, while it may be running; what is in trampolines finds its way. False: not possible. */
bool patch_undo(probe_module *m);
/* What can be used where this engine cannot: DynamoRIO's code cache is memory that is both written and executed. */
const char *patch_alternative(void);
void patch_forget(probe_module *m); /* it is not mapped any more: its memory is given back */

/* --- state -------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t addr, count;
    bool down;
} probe_rep;

/* A part of a cell that the thread has accessed: in this epoch, when so often memory had been cleared. */
typedef struct {
    uint64_t addr;
    uint32_t epoch, cleared;
} probe_part;
enum { PROBE_PARTS = 128, PART_KINDS = 4 }; /* read or written, one byte or two */

/* For checks of data that several threads read: the read vector that was found there. The thread's epoch is in it, as long as
 * this is its epoch and so many vectors were given back (the lower half of that; it cannot come round in one epoch). */
typedef struct {
    uint32_t readers, epoch; /* epoch 0: empty */
    uint32_t given_back;
    uint32_t unused;
} probe_known;

typedef struct probe_call probe_call;

typedef struct {             /* of one thread; entry.S knows the first members */
    ft_thread *thread;       /*  0  never NULL */
    uint32_t busy;           /*  8  in the core: signals wait, and `stack` is in use */
    uint32_t pending;        /* 12  a signal has come meanwhile */
    void *stack;             /* 16  the end of a stack of our own; NULL: none */
    probe_registers *inside; /* 24  what a signal that is delivered late has interrupted; NULL: nothing */
    uint64_t atomic;         /*     address of the atomic access that is running */
    probe_rep rep[PROBE_REPS];
    siginfo_t signal;               /* that is pending */
    uint64_t signal_mask;           /* of the program, meanwhile all is blocked */
    uint64_t stack_low, stack_high; /* of the program's stack; the first thread's grows, see stack_is_fixed */
    uint64_t stack_seen;            /* rsp of the program when C was called; 0: unknown */
    uint64_t frame_seen, pc_seen;   /* its rbp, and where it is */
    uint64_t back_seen;             /* where its return address lies; 0: unknown */
    bool stack_is_fixed;
    void *stack_map;
    sync_thread sync;
    probe_known known[PROBE_KNOWN]; /* by sites */
    probe_part parts[PART_KINDS][PROBE_PARTS]; /* by the lowest bits of the address */
    struct probe_stacks *stacks; /* stack.c; never NULL */
    void *walking;
    uint32_t endings; /* rounds of thread-specific destructors so far */
    uint32_t readable_next;
    uint64_t readable[2]; /* pages that this call of a library has read before (system.c); 0: none */
    bool is_in_call, is_direct;
    const void *last[PROBE_LAST]; /* by sites: the memo of a stack that was found last there, or NULL (stack.c, first.S) */
    bool blocks_trap; /* the program thinks that it has blocked the signal of traps */
    /* Queued signals that are older than those in the kernel's queue (signal.c), by number in order; since so many numbers
     * were ignored, which empties that queue. */
    siginfo_t late[PROBE_LATE];
    uint32_t late_count, late_since;
} probe_thread;

static inline unsigned part_kind(bool is_write, uint32_t size)
{
    return (is_write ? 2 : 0) + size - 1;
}

extern __thread probe_thread probe_self __attribute__((tls_model("initial-exec")));

typedef struct {
    report *report;
    ft_core *core;
    sync_engine engine;
    bool ready;            /* events go to the core */
    bool disabled;         /* the program runs as if there were no engine */
    probe_record *records; /* PROBE_RECORDS of them, reserved */
    uint32_t record_count;
    uint64_t *low; /* a page below 2 GB with addresses, by enum low_entry */
    int32_t self_offset; /* of probe_self from the thread pointer */
    probe_module *modules;
    uint32_t module_lock;
    uint32_t module_changes; /* how often modules came or went */
    uint64_t ways[WAYS];    /* sites by how they were injected */
    uint64_t sites_given_back; /* and how many were, and are not any more (patch_give_back) */
    uint64_t sites_refused; /* the code is not what the plan was made for */
    uint64_t unknown_threads;
    int pid;
    char **environment; /* as it was at the start */
    bool is_child;      /* of a process that was run by the engine too */
    bool low_next;      /* the next reservation must be below 2 GB */
    ft_thread nobody;
} probe_state;

extern probe_state probe; /* the one mutable global of this folder, with probe_self */
enum { PROBE_RECORDS = 1 << 24 };

/* What trampolines call through probe.low. The last eight (first.S) are by whether it is a write, then by size: 1, 2, 4, 8. */
typedef enum { LOW_CHECK, LOW_QUICK, LOW_FIRST } low_entry;
extern const char probe_first[], probe_first_end[];
void probe_first_read_1(void);
void probe_first_write_1(void);
void probe_first_read_2(void);
void probe_first_write_2(void);
void probe_first_read_4(void);
void probe_first_write_4(void);
void probe_first_read_8(void);
void probe_first_write_8(void);
/* Registers that these overwrite: rcx, rdx, rsi, rdi, r8, r9, r10. */
enum { PROBE_FIRST = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 };
bool probe_is_in_first(const ft_thread *thread); /* quick.c: in the middle of one of them: it must not be interrupted */

void probe_enter_check(void);                                  /* entry.S */
void probe_enter_quick(void);                                  /* entry.S */
void probe_check(probe_registers *registers, uint32_t record); /* check.c */
/* Does the check at addr if nothing is special; `sp`, `bp`: of the program. False: it must be done by probe_check. quick.c */
bool probe_quick(uint64_t addr, uint32_t record, uint64_t sp, uint64_t bp);
void probe_deliver(probe_registers *registers);                /* signal.c: a signal that has waited */

bool probe_peek(void *to, uint64_t from, size_t size); /* false: it is not all there */
extern const char probe_peek_fault[];

/* Runs function(argument) on the thread's own stack while signals wait. */
void probe_in_core(void (*function)(void *), void *argument); /* entry.S */
/* Does the core know this thread, and is it not at work for it already? */
static inline bool probe_sees(void)
{
    return probe.ready && !probe.disabled && probe_self.thread != &probe.nobody && !probe_self.busy;
}

/* --- system.c ----------------------------------------------------------------------------------------------------- */

long sys_call(long number, long a, long b, long c, long d, long e, long f);
void *sys_map(void *hint, size_t size, int protection, int flags, int fd); /* NULL: not possible */
void sys_unmap(void *at, size_t size);
bool sys_protect(void *at, size_t size, int protection);
const void *sys_map_file(const char *path, size_t *size); /* as `map` of report_host */
/* All of a file that does not tell its size; to be unmapped. NULL: not possible. */
char *sys_read_file(const char *path, size_t *size, size_t *mapped);
bool sys_copy(void *to, uint64_t from, size_t size); /* from memory that may not be there */
/* In between, what could be read once can be read again: nobody but the program's other threads could have unmapped it, and
 * then the library's own read would fail too. `directly`: it reads all this by itself, so it need not be asked for at all. */
void sys_call_begins(bool directly);
void sys_call_ends(void);
void sys_lock(uint32_t *lock);
void sys_unlock(uint32_t *lock);

/* --- stack.c ------------------------------------------------------------------------------------------------------ */

ft_site stack_of_access(void *context, ft_thread *thread, ft_site site);

/* What a thread remembers of walks: which words each has read. As long as they are the same, so is the stack. The lower half of
 * a word is enough: a return address or a frame pointer that differs in the upper half only is as good as impossible. */
enum { STACK_MEMOS = 4096, STACK_WORDS = 40 };
typedef struct {
    ft_site site, result; /* result 0: empty */
    uint64_t sp;
    uint32_t count;
    bool overflow; /* more was read than is remembered */
    struct {
        uint32_t at, value; /* at: from sp */
    } words[STACK_WORDS];
} stack_memo;
typedef uint32_t __attribute__((may_alias)) stack_half;
/* Where a function of the table was called from, by its return address: what does not change as long as the modules do not. */
enum { CALL_PLACES = 512 };
typedef struct {
    uint64_t back;
    const report_module *caller; /* or NULL */
    uint32_t changes;            /* probe.module_changes when this was true */
    ft_site site;  /* 0: not asked for yet */
    int32_t frame; /* as probe_record.back, of the caller at the call */
} call_place;

typedef struct probe_stacks {
    stack_memo memos[STACK_MEMOS][2]; /* the later one first: what is called from two places has both */
    call_place places[CALL_PLACES];
} probe_stacks;
extern probe_stacks stack_none; /* empty: of a thread that has none */

/* A function that is called from many places has the same stack pointer in all of them, but not the same return address; where
 * that lies is known of most (back_address). 0: it is not. */
static inline uint64_t stack_hint(const probe_thread *self, uint64_t back, uint64_t sp)
{
    return back >= sp && back + sizeof back <= self->stack_high ? *(const uint64_t *)back : 0;
}
static inline stack_memo *stack_memos_of(const probe_thread *self, ft_site site, uint64_t sp, uint64_t back)
{
    return self->stacks->memos[(site ^ sp >> 4 ^ stack_hint(self, back, sp)) % STACK_MEMOS];
}
/* Is the stack the remembered one? Requires that its words are of this thread's stack, above its stack pointer. */
__attribute__((always_inline)) static inline bool stack_is_remembered(const stack_memo *memo, ft_site site, uint64_t sp)
{
    if (!memo->result || memo->site != site || memo->sp != sp) return false;
    for (uint32_t i = 0; i < memo->count; i++)
        if (*(const stack_half *)(sp + memo->words[i].at) != memo->words[i].value) return false;
    return true;
}
/* What is remembered of this stack, or NULL. Requires the same. */
__attribute__((always_inline)) static inline const stack_memo *stack_find(const probe_thread *self, ft_site site,
                                                                          uint64_t sp, uint64_t back)
{
    const stack_memo *memos = stack_memos_of(self, site, sp, back);
    if (__builtin_expect(stack_is_remembered(&memos[0], site, sp), true)) return &memos[0];
    return stack_is_remembered(&memos[1], site, sp) ? &memos[1] : NULL;
}
void stack_forget(void);                               /* the thread ends */
bool stack_read(uint64_t from, void *to, size_t size); /* as sys_copy */

/* --- near.c ------------------------------------------------------------------------------------------------------- */

/* Memory for reading and writing, all of which jumps from [low, high) reach, and the other way round. */
void *near_map(uint64_t low, uint64_t high, size_t size, bool beside_heap);
/* Below 2 GB. */
void *near_zero_map(size_t size);
/* Exactly here; NULL: something is there, or must not be. */
void *near_map_at(uint64_t at, size_t size);

/* --- module.c ----------------------------------------------------------------------------------------------------- */

void module_start(void);                                                /* all that are loaded, and those to come */
void loader_start(void);                                                /* loader.c */
const probe_module *module_of_trampoline(uint64_t pc);                  /* or NULL */
const probe_module *module_of_code(uint64_t pc);                        /* or NULL */
void module_disable(const char *why);                                   /* the program runs as if there were no engine */
uint64_t module_hooked(uint64_t pc);                                    /* on the way from the loader's notification to us: from where; else 0 */
const patch_group *module_group_at(const probe_module *m, uint64_t pc); /* that displaced pc, or NULL */

/* --- the rest ----------------------------------------------------------------------------------------------------- */

/* A call between the program and a library: entry.S makes it, and knows the members up to `result`. */
struct probe_call {
    uint64_t args[6];
    uint64_t rax;    /* number of vector registers of a call with variable arguments */
    uint16_t number; /* of the row, or of the stub */
    uint16_t words;  /* arguments on the stack */
    uint32_t unused;
    uint64_t back; /* return address */
    uint64_t result, result_high;
    sync_call call;
    struct probe_birth *birth;
    uint64_t cleanup[8]; /* a struct _pthread_cleanup_buffer */
    uint64_t mask;       /* of signals during the call, instead of the program's */
    int32_t frame;       /* of its call_place */
    bool is_seen;        /* the core knows of it */
    bool is_on_device;   /* what it would call back may run elsewhere, and must be known by its own address there */
};
enum { PROBE_FRAME = 640 };

void wrap_start(void);
void wrap_note_caller(const probe_call *call); /* for stacks */
/* Before a function of the table that is written in C here. */
void wrap_call_before(const char *name, uint64_t object, uint64_t back);
void wrap_call_inside(const char *name, uint64_t object); /* likewise, inside of the core */
void wrap_forget(uint64_t start, uint64_t end); /* functions in this module are no more */
/* What the library gets instead of this function: calls of it are told. 0: no more of them. */
uint64_t callback_for(uint64_t function);
void callback_watch(void *context, uint64_t stub, sync_watch kind);
void callback_forked(void);

void *symbol_next(const char *name); /* the function that the program would have without us; NULL: none */

typedef struct probe_birth { /* of a thread, between its creator and itself; then its name */
    struct probe_birth *next;
    ft_thread *thread;
    void *(*start)(void *); /* of the program */
    void *argument;
    pthread_attr_t attributes; /* what it is created with, if not with those of the program */
    uint64_t handle;  /* its pthread_t */
    uint32_t holders; /* creator, child, list of names */
    bool is_listed, is_gone, is_detached, has_ended;
    bool blocks_trap; /* as its creator */
} probe_birth;

void thread_start(void);
void thread_bind(ft_thread *thread);
probe_birth *thread_new_birth(void); /* NULL: no memory */
void *thread_begin(void *birth);     /* what the child runs */
void thread_adopt(ft_thread *thread); /* the calling thread, which libc has made, is this one until it ends */
void thread_created(probe_birth *birth, uint64_t handle);
void thread_not_created(probe_birth *birth);
void thread_forked(void);
void timer_forked(void);

bool undo_show_program(greg_t *registers); /* the state of the program itself, instead of ours; false: it is its own already */
void undo_registers(const probe_registers *entered, greg_t *registers); /* likewise, inside of what was entered with those */
uint64_t undo_real_place(uint64_t pc); /* where to go on for an address of the program: its bytes may be gone */
void undo_come_back_to(uint64_t was, uint64_t is); /* a handler goes on elsewhere than where it was shown that the program was */

void seccomp_start(void); /* says what the program may not do from its beginning on */
void signal_start(void);
void signal_forked(void);
bool signal_take(int number); /* a handler that libc has installed by itself is called as the program's; false: there is none */
/* A system call by an instruction of the program's own, inside of the core. True: it was made, and what it returns is in rax. */
bool signal_system_call(probe_registers *registers);
bool mask_system_call(probe_registers *registers);
long probe_syscall_error(long result); /* as libc's functions return it */
void mask_start(void);
void mask_during_call(probe_call *call); /* of a function that waits with a mask of its own */
bool signal_own_trap(void); /* the signal of a trap is ours from now on */

#define PROBE_OPTIONS_NAME "RACE_OPTIONS="
#define PROBE_PRELOAD_NAME "LD_PRELOAD="
void process_refuse(const char *what) __attribute__((noreturn)); /* NULL: that was said already */
/* From here on the program runs as if there were no engine, which makes no system calls in the end either. */
void process_seal(const char *why);
void process_forked(void);  /* this is a new process, with one thread */
bool process_is_own(void); /* not in a child of vfork, which runs in its parent's memory */
bool process_starts_with(const char *text, const char *start);
const char *process_entry(char *const *environment, const char *name); /* or NULL */
void exec_start(const char *options, const char *preload); /* what children get: entries of the environment */

#endif
