/* tools/race, `race run`: what its files share.
 *
 *   run.c          options, the whole
 *   run_plan.c     plans: of the program before it starts, of others when their engine asks
 *   run_engine.c   the engines: how a program is started under each, waiting for it
 *   run_log.c      the event logs of all processes: summary, JSON */
#ifndef RACE_RUN_H
#define RACE_RUN_H

#include "tools/race/race.h"

#include <signal.h>
#include <sys/types.h>
#include <time.h>

typedef struct {
    const char *engine, *format, *output, *scope, *place;
    const char *state, *plans, *log, *suppressions; /* plans: given by the user; NULL: ours, in `state` */
    long exit_code, jobs, memory, depth;
    bool stats, halt_on_error, all, audit, unchecked, breakpoints;
    char **program; /* its path as given, its arguments, NULL */
} run_request;

typedef struct { /* a file that was in the log folder before the run; it is not the run's unless it has changed */
    char *name;
    ino_t inode;
    off_t size;
    struct timespec changed;
} run_old_log;

typedef struct {   /* absolute paths */
    char *plans;   /* where the plans are */
    char *log;     /* where the logs go */
    char *ask;     /* where engines ask for plans; NULL: nobody answers */
    char *program; /* the file to run */
    char *suppressions; /* or NULL */
    bool own_log;  /* the log folder is removed in the end */
    VEC(run_old_log) old_logs;
    sigset_t signals; /* blocked in the beginning: the program's */
} run_paths;

/* run_plan.c */
char *run_find_program(const char *name); /* the file that the shell would run; free() the result. NULL: none */
int run_make_directory(const char *path); /* an exit code */
/* Plans of a program and its libraries, as far as they are missing or of an older version. An exit code. */
int run_plan_program(const run_request *r, const char *program, const char *plans);
/* The same on behalf of an engine: whatever cannot be planned is left out. */
void run_plan_asked(const run_request *r, const char *path, const char *plans);

/* run_engine.c */
/* Signals are for run_wait from now on. Before any thread is made: it would take them. */
void run_block_signals(run_paths *paths);
/* Starts the program and returns its process; below 0: an exit code, negated, was said why. */
pid_t run_start(const run_request *r, const run_paths *paths);
/* Waits for it and answers engines meanwhile; the status of waitpid. */
int run_wait(const run_request *r, const run_paths *paths, pid_t child);

/* run_log.c */
typedef struct {
    unsigned processes, found_in; /* with a log; with something reported */
    unsigned lost; /* with something reported that could not be written: the disk is full */
    unsigned long races, deadlocks, audits, suppressed;
} run_totals;
void run_note_old_logs(run_paths *paths); /* before the program starts */
void run_forget_old_logs(run_paths *paths);
/* Reads all logs of the run, and prints what its processes could not. With `json`, adds what they say to it: races,
 * deadlocks, stats. */
void run_read_logs(const run_paths *paths, run_totals *totals, json_t *json);
void run_remove_logs(const char *folder);

#endif
