/* tools/race: the `race` command.
 *
 *   main.c          the table of subcommands, help, version
 *   cli.c           what subcommands share: one-line errors, options, checked output
 *   show.c          `race show`: its options and what they select
 *   show_module.c   the summary of a module, as text and as JSON
 *   show_cfg.c      the control-flow graph of a function, as text and as JSON (dot is of static/lift)
 *   show_pointer.c  points-to sets and the call graph in words; show_shb.c: origins, order and locks;
 *                   show_plan.c: where checks go
 *   check.c         `race check`: analyses; check_record.c: what is printed of it; check_text.c, check_json.c: for people and for
 *                   scripts; source.c: lines of sources; diff.c: what is new and gone
 *   watch.c         `race watch`: the same again and again; watch_files.c: the files that it follows
 *   run.c           `race run`: makes the plans of a program, then becomes the engine that runs it
 *
 * A subcommand is a function over its own arguments that returns the exit code. */
#ifndef RACE_TOOL_H
#define RACE_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "static/base/base.h"
#include "static/lift/lift.h"

enum { EXIT_CLEAN = 0, EXIT_FOUND = 1, EXIT_USAGE = 2 };

typedef struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
    const char *summary;               /* a line for `race --help` */
    const char *help;                  /* all of `race NAME --help`, newline at the end */
} command;

extern const command command_check, command_show, command_run, command_watch;

/* --- cli.c -------------------------------------------------------------------------------------------------------- */

/* Prints "race: " and one line on stderr; control characters become '?'. Returns EXIT_USAGE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a wrong command line: points to the help of the subcommand. */
int cli_usage(const char *subcommand, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes stdout and returns `code`, or says that it could not be written and returns EXIT_USAGE. Every subcommand that
 * prints returns through here, so that a full disk or a closed pipe is never taken for success. */
int cli_finish(int code);

/* Prints the help of a subcommand; each has an option --help that returns through here. */
int cli_help(const command *c);

/* SIGPIPE is ignored in the whole command (a closed pipe is an error as above), and descriptors 0 to 2 are open. A subcommand
 * that starts a program undoes both in the child before exec: it gets what we were given. */
void cli_restore(void);

/* Called once, first: makes sure that descriptors 0 to 2 are open, so that no file of ours is taken for stdout. */
void cli_prepare(void);

typedef struct {
    const char *name; /* without the dashes */
    char letter;      /* short form, or 0 */
    int key;          /* what cli_next returns; above 0 */
    bool takes_value; /* --name VALUE, --name=VALUE */
} cli_option;

/* The state of a walk over a command line: {.argc, .argv, .options} set, the rest zero. */
typedef struct {
    int argc;
    char **argv;               /* argv[0] is the subcommand's name */
    const cli_option *options; /* ends with an entry without a name */
    bool stop_at_operand;      /* what follows the first operand is not ours (`race run PROGRAM -x`) */
    int at;                    /* index of the next argument */
    const char *letters;       /* rest of a cluster of short options */
    bool only_operands;        /* after `--` */
    char *value;               /* of the last option or operand */
} cli_walk;

enum { CLI_END = 0, CLI_OPERAND = -1, CLI_BAD = -2 };

/* The key of the next option, CLI_OPERAND with `value` set, CLI_END, or CLI_BAD after it has said what is wrong. With
 * stop_at_operand, CLI_END leaves `at` on the first operand. */
int cli_next(cli_walk *walk);

/* A whole number in [low, high], or false. */
bool cli_number(const char *text, long low, long high, long *out);

/* Opens a regular file to be read, and waits for nobody, as for the writer of a FIFO. Below 0: errno says why; 0: it is none. */
int cli_open(const char *path);
/* The text of a regular file, to be freed. NULL: there is none, which was said. */
char *cli_text(const char *path);

/* "s" unless there is one. */
const char *cli_plural(uint64_t n);

/* `text` with control characters replaced, for a terminal; `buffer` holds the result and cuts it if need be. */
const char *cli_plain(const char *text, char *buffer, size_t size);
/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
json_t *cli_json(const char *text);
/* Length of the UTF-8 sequence that starts here, 0 when it is none (overlong forms and surrogates included). */
size_t cli_utf8(const unsigned char *s);

/* --- show_module.c, show_cfg.c, show_pointer.c, show_shb.c, show_plan.c ------------------------------------------------------------------------------------ */

void show_module_text(FILE *to, const lift_module *module, double seconds, bool all);
json_t *show_module_json(const lift_module *module, double seconds);

/* How the pointer analysis is made. */
typedef struct {
    int context; /* pta_context_kind */
    unsigned k;
    int jobs; /* 0: as many as there are cores */
} show_pointer;

/* none, origin[:K], cfa:K */
bool show_context(const char *text, show_pointer *out);
int show_points_to(const char *path, char **names, int count, const show_pointer *how);
int show_call_graph(const char *path, const show_pointer *how);
int show_plan(const char *path, int jobs);
int show_order(const char *path, char **names, int count, bool dot, const show_pointer *how);

void show_cfg_text(FILE *to, const lift_module *module, const lift_func *func);
json_t *show_cfg_json(const lift_module *module, const lift_func *func);

#endif
