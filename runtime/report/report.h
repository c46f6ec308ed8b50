/* runtime/report: what every engine does alike around the core: its options, who is who when a race is reported, what
 * the user reads, the event log.
 *
 *   options.c    the words on an engine's command line, or in RACE_OPTIONS
 *   module.c     the loaded modules and their plans; sites by number, by address, by return address
 *   find.c       which plan belongs to a module: its build id as it is in memory, or the hash of its file
 *   race.c       data races: ThreadSanitizer's shape of text, and an event
 *   deadlock.c   cycles of lock orders, the same way
 *   stack.c      walking a stack by the unwind rows of the plans
 *   frames.c     stacks in words: text, and frames of events
 *   suppress.c   suppression files in ThreadSanitizer's syntax
 *   log.c        the text log and the event log (include/race/event.h)
 *   text.c       text in a fixed buffer
 *   report.c     start, notices, fork, the summary at the end
 *
 * It runs inside of processes that are not its own: no libc call but memcpy, memset, strlen and the like, no
 * allocation but what the host reserves, locks that only spin and are never held by a thread that waits for the
 * program. An engine must not let a signal handler of the program run in the middle of a call of these functions
 * (DynamoRIO delays signals by itself; the core tells by `inside` when a race is being reported). */
#ifndef RACE_REPORT_H
#define RACE_REPORT_H

#include "include/race/event.h"
#include "include/race/plan.h"
#include "runtime/core/core.h"

#include <stdarg.h>

/* --- options ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *plan_dir;     /* -plan DIR: one <build id>.plan per module */
    const char *log_dir;      /* -log DIR: race.<pid>.log and race.<pid>.events; NULL: none */
    const char *suppressions; /* -suppressions FILE; NULL: none */
    const char *ask_dir;      /* -ask DIR: plans that are missing are asked for there (module.c); NULL: they stay missing */
    int exit_code;            /* -exit_code N: when the program ends with 0 but raced */
    int stack_depth;          /* -stack_depth N: frames kept for each access, 0 to FT_FRAMES; 0: only the access */
    uint64_t memory;          /* -memory MB, in bytes: limit of shadow memory; 0: none */
    bool all;                 /* -all: modules without a plan are checked at every access */
    bool audit;               /* -audit: accesses that the plans call harmless are checked too (`claim`) */
    bool breakpoints;         /* -breakpoints: of the bytes that are overwritten, only the first begins an instruction */
    bool halt_on_error;       /* -halt_on_error: the first report ends the process */
    bool stats;               /* -stats: counters at exit */
    bool unchecked;           /* -unchecked: a module whose plan is damaged runs without checks instead of not at all */
    bool quiet;               /* -quiet: reports go to the log only */
    bool no_deadlocks;        /* -no_deadlocks: lock orders are not watched */
} report_options;

typedef enum { OPTIONS_OK, OPTIONS_HELP, OPTIONS_BAD } options_status;

void options_default(report_options *options);
/* argv[first] to argv[argc - 1]; the options point into them. OPTIONS_BAD: `problem` is a phrase for one line. */
options_status options_parse(report_options *options, int first, int argc, const char *const *argv, char *problem,
                             size_t size);
/* Splits `text` in place at blanks (`\ ` is a blank that does not split, `\\` a backslash); returns how many words, at
 * most `cap`. For RACE_OPTIONS. */
int options_split(char *text, const char **words, int cap);
extern const char options_help[]; /* the lines about the options, for -help of each engine */

/* --- host --------------------------------------------------------------------------------------------------------- */

enum { REPORT_STDERR = 2 };

typedef struct {
    char name[512];
    char file[512]; /* empty, and line 0: not known */
    uint32_t line;
} report_symbol;

typedef struct {
    void *context;
    const char *engine; /* its name */
    /* As in ft_host. */
    void *(*reserve)(void *context, size_t size);
    void (*discard)(void *context, void *pages, size_t size); /* or NULL */
    void (*yield)(void *context);                             /* or NULL */
    ft_site (*stack)(void *context, ft_thread *thread, ft_site site); /* or NULL */
    /* Copies memory of the program; false: it cannot be read. */
    bool (*read)(void *context, uint64_t from, void *to, size_t size);
    /* All of a regular file, mapped read-only (an empty one: any pointer and size 0); NULL: it cannot be read, or *size is not 0 and
     * it is no regular file: a FIFO would keep who opens it waiting. */
    const void *(*map)(void *context, const char *path, size_t *size);
    void (*unmap)(void *context, const void *map, size_t size);
    /* A file for appending, made if need be, emptied if it was there; below 0: it cannot be. Survives the program's
     * closing of descriptors, is closed on exec. */
    int (*open)(void *context, const char *path);
    /* REPORT_STDERR, or one of `open`. Never to a file that the program has in the place of stderr. */
    bool (*write)(void *context, int file, const void *bytes, size_t size);
    void (*close)(void *context, int file);
    uint64_t (*now)(void *context); /* nanoseconds, monotonic */
    int (*pid)(void *context);
    void (*sleep)(void *context, unsigned milliseconds); /* NULL: plans that are missing are not waited for */
    /* What an address of code without a plan is in; false: unknown. NULL: never known. */
    bool (*symbol)(void *context, uint64_t addr, report_symbol *out);
    void (*halt)(void *context, int code); /* ends the process at once */
} report_host;

/* --- state -------------------------------------------------------------------------------------------------------- */

typedef struct report_module {
    struct report_module *next; /* newest first; modules that are unloaded stay, for reports */
    uint64_t start, end;        /* where it is loaded */
    uint64_t bias;              /* of module-relative addresses */
    uint32_t loaded;            /* 0: it is not any more */
    bool is_modelled;           /* known at its interface (libc, the loader, OpenMP): what it does inside is not checked,
                                   and what it calls inside is not counted */
    bool has_interpreter;       /* names a loader: a program that does not is linked statically */
    bool is_system;             /* lies where the system's libraries do */
    char name[64];              /* of the file, without its directory */
    char id[72];                /* build id; empty: none was found */
    const plan *plan;           /* NULL: none */
    bool is_checked;            /* its accesses are: there is a plan, which is not of atomic instructions only */
    ft_site first_site;         /* number of the plan's site 0 */
    ft_site first_same;         /* the same where the module was loaded first */
    const char *refused;        /* why its plan was not taken, or NULL */
    char plan_path[512];
    plan plan_data;
    uint64_t walked;            /* for the engine's use */
    uint8_t *ran;               /* per site: not 0 once it has run; the engine's, for an audit. NULL: not counted */
} report_module;

enum { REPORT_TEXT = 1 << 16, REPORT_LOOSE = 1 << 21, REPORT_PATTERNS = 1024, REPORT_OBJECTS = 1 << 16 };

typedef struct {
    char *at;
    size_t len, cap;
} report_text;

typedef struct {
    uint8_t kind; /* suppress.c */
    const char *pattern;
    const char *mangled[2]; /* the same as C++ compilers write it, for all and for what is local to its file; NULL: it names no scope */
    uint32_t used;
} report_pattern;

typedef struct { /* what an engine counts */
    uint64_t sites_injected, sites_trapped, sites_refused;
} report_counters;

typedef struct report {
    report_host host;
    report_options options;
    ft_core *core;
    report_counters counters;
    uint32_t lock;       /* of the buffers and files below */
    uint64_t reported, deadlocks, audits, suppressed;
    uint64_t sites, accesses_planned;
    int text_log, event_log; /* files, or below 0 */
    int unseen_log;          /* the same; made when it is needed */
    uint32_t next_record;
    bool event_log_failed;
    uint32_t module_lock; /* of adding modules and sites; looking needs none */
    report_module *modules;
    ft_site next_site;
    struct report_range *ranges; /* of site numbers, newest first */
    report_pattern patterns[REPORT_PATTERNS];
    uint32_t pattern_count;
    char program[512];
    char text[REPORT_TEXT]; /* first half: the report; second half: strings of the event (frames.c) */
    char scratch[1024];
    report_symbol symbol;
    union {
        event_record record;
        event_race race;
        event_deadlock deadlock;
        event_exit exit;
        char bytes[REPORT_TEXT];
    } event __attribute__((aligned(8)));
    uint32_t event_len; /* bytes of it in use */
    struct loose_site {
        uint64_t addr;
        ft_site number; /* 0: being made */
        uint32_t unused;
    } *loose; /* REPORT_LOOSE of them, by hash of addr */
    uint32_t loose_count;
} report;

/* NULL: no memory. Opens the logs and reads the suppressions; what does not work is said in one line, and `problem`
 * (if not NULL) is set when the user asked for something that cannot be had: the engine should refuse to run. */
report *report_create(const report_host *host, const report_options *options, const char *program,
                      const char **problem);
/* The core's host: everything the report knows how to do. Then ft_create, and the core goes into r->core. */
ft_host report_core_host(report *r);
/* One line on stderr and in the logs, with "race: " in front. */
void report_say(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* In a process that was just forked, where one thread lives on: logs of its own, nothing reported yet. */
void report_forked(report *r);
/* The summary so far, and the counters if the user wants them; at exit, and whenever the user asks (servers). */
void report_summary(report *r);
/* What the process should end with when the program wants `code`. */
int report_exit_code(const report *r, int code);
int report_halt_code(const report *r); /* the same for -halt_on_error */
void report_close(report *r); /* the logs */

/* --- modules and sites -------------------------------------------------------------------------------------------- */

/* A module is loaded at [start, end), with its first page at start. Its plan is looked for and given numbers; one
 * that was there before, and is unloaded, has its entry again. When the plan cannot be used, `refused` says why (it was said
 * to the user already): without -unchecked the engine should end the process with code 2. NULL: no memory. */
report_module *report_module_add(report *r, const char *path, uint64_t start, uint64_t end);
void report_module_remove(report *r, uint64_t start);
report_module *report_module_at(const report *r, uint64_t addr); /* a loaded one, or NULL */
/* The module and site with this number; NULL: not a site of a plan (then *module is NULL too). */
const plan_site *report_site(const report *r, ft_site number, const report_module **module);
/* The number of this site where its module was loaded first: one for all places that it was loaded to. */
ft_site report_same_site(const report *r, ft_site number);
/* A number for an instruction that no plan has a site for; always the same for one address. 0: no memory. */
ft_site report_loose_site(report *r, uint64_t addr);
/* The number of the call that a return address belongs to: the plan's site, else a loose one. */
ft_site report_call_site(report *r, uint64_t return_address);
/* Does the call that this return address belongs to go through a pointer? What is called so is not of the same library, as a
 * rule; but it may have ended in a jump to whatever returns there now. */
bool report_is_pointer_call(const report *r, uint64_t return_address);
/* The address of a site in memory, or 0. */
uint64_t report_site_address(const report *r, ft_site number);
/* The data object that addr lies in, or NULL. */
const plan_object *report_object(const report *r, uint64_t addr, const report_module **module);

/* --- stacks ------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t pc;     /* in the instruction: for a caller its return address minus 1 */
    uint64_t sp, bp; /* rsp and rbp before the instruction; for a call that is running, as they will be after it */
} stack_place;

/* The return addresses of the callers, innermost first, at most `cap`; how many. */
uint32_t stack_walk(report *r, stack_place place, uint64_t *returns, uint32_t cap);

/* --- findings ----------------------------------------------------------------------------------------------------- */

void report_race(report *r, const ft_race *race);

typedef struct {
    uint64_t held, wanted; /* addresses of locks: `wanted` was locked while `held` was */
    uint32_t thread;
    ft_site site, held_site; /* where `wanted` was locked, and `held` before it */
} report_edge;
/* A cycle: each edge wants what the next one holds. */
void report_deadlock(report *r, const report_edge *edges, uint32_t count);

/* --- between the files of this folder ----------------------------------------------------------------------------- */

typedef struct report_range { /* of site numbers */
    struct report_range *next;
    ft_site first;
    uint32_t count;
    report_module *module; /* of a plan; NULL: loose */
    uint64_t *addresses;   /* of loose sites */
} report_range;

void report_lock(report *r, uint32_t *lock);
void report_unlock(uint32_t *lock);
void *report_memory(report *r, size_t size); /* zeroed; NULL: none */

void text_start(report_text *t, char *at, size_t cap);
void text_addv(report_text *t, const char *format, va_list args);
/* %s %c %d %u %x with l and ll; cut when the buffer is full. */
void text_add(report_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* find.c: the module's bias and id from its headers in memory, its id from the file when it has none. */
bool find_identity(const report_host *host, report_module *m, const char *path);
/* The plan of m, whose file is `path`, in the directory, into m->plan_data. 1: found; 0: there is none; -1: refused, m->refused
 * says why. */
int find_plan(const report_host *host, const char *directory, report_module *m, const char *path);
/* Is the file of other code than the plan, though its id is the same? */
bool find_other_code(const report_host *host, const plan_header *h, const char *path);

/* frames.c: a stack is the frames of `site` and then return addresses. */
typedef struct {
    ft_site site;
    uint64_t returns[FT_FRAMES];
    uint32_t count;
} report_stack;
void frames_of_side(const report *r, const ft_side *side, report_stack *out);
void frames_text(report *r, report_text *t, const report_stack *stack); /* and an empty line */
/* Appends frames to the event that is being made; returns how many. All frames of an event before its strings. */
uint32_t frames_event(report *r, const report_stack *stack);
void frames_event_strings(report *r); /* after all frames of an event */
/* Each frame of the stack in words, innermost first; false from `each` ends it. */
typedef struct {
    const report_module *module; /* or NULL */
    uint64_t addr;               /* module-relative, absolute without a module */
    const char *function, *file; /* or empty */
    uint32_t line, column;
    bool inlined;
    const plan_site *site; /* or NULL */
} report_frame;
typedef bool frames_each(void *context, const report_frame *frame);
void frames_walk(report *r, const report_stack *stack, frames_each *each, void *context);

/* suppress.c */
enum { SUPPRESS_RACE = 1, SUPPRESS_RACE_TOP = 2, SUPPRESS_DEADLOCK = 4, SUPPRESS_LIBRARY = 8 };
bool suppress_load(report *r, const char *path, const char **problem);
/* The pattern of one of these kinds that fits the stack, or NULL. */
const char *suppress_stack(report *r, unsigned kinds, const report_stack *stack);
const char *suppress_name(report *r, unsigned kinds, const char *name);

/* log.c: an event is made in r->event under r->lock: begin, fill, strings, write. */
void log_open(report *r);
void log_text(report *r, const char *bytes, size_t size); /* stderr and the text log */
void event_begin(report *r, event_kind kind, size_t fixed);
uint32_t event_add_string(report *r, const char *text);
void event_write(report *r);

#endif
