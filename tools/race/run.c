/* `race run`: runs a program with the planned checks injected, and reports the races that happen.
 *
 * The program and its libraries are analysed unless a current plan is there; then the engine runs them, and all the
 * processes they start. This process waits, makes plans for what else is started, and in the end puts the logs of all
 * processes together: the exit code is the program's own, or 66 when that is 0 but something was found. */
#include "tools/race/run.h"

#include "static/detect/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KEY_HELP = 1, KEY_ENGINE, KEY_STATE, KEY_PLAN, KEY_LOG, KEY_EXIT_CODE, KEY_STATS, KEY_JOBS, KEY_FORMAT, KEY_OUTPUT,
    KEY_SUPPRESSIONS, KEY_HALT, KEY_ALL, KEY_AUDIT, KEY_UNCHECKED, KEY_MEMORY, KEY_DEPTH, KEY_SCOPE, KEY_PLACE, KEY_BREAKPOINTS
};
enum { HALTED = 66 }; /* how an engine ends the program at the first report */

static const cli_option options[] = {
    {"help", 'h', KEY_HELP, false},
    {"engine", 0, KEY_ENGINE, true},
    {"state", 0, KEY_STATE, true},
    {"plan", 0, KEY_PLAN, true},
    {"log", 0, KEY_LOG, true},
    {"exit-code", 0, KEY_EXIT_CODE, true},
    {"stats", 0, KEY_STATS, false},
    {"jobs", 'j', KEY_JOBS, true},
    {"format", 0, KEY_FORMAT, true},
    {"output", 'o', KEY_OUTPUT, true},
    {"suppressions", 0, KEY_SUPPRESSIONS, true},
    {"halt-on-error", 0, KEY_HALT, false},
    {"all", 0, KEY_ALL, false},
    {"audit", 0, KEY_AUDIT, false},
    {"breakpoints", 0, KEY_BREAKPOINTS, false},
    {"unchecked", 0, KEY_UNCHECKED, false},
    {"memory", 0, KEY_MEMORY, true},
    {"stack-depth", 0, KEY_DEPTH, true},
    {"scope", 0, KEY_SCOPE, true},
    {"place", 0, KEY_PLACE, true},
    {0},
};

/* --- the program -------------------------------------------------------------------------------------------------- */

/* A script runs by the interpreter that its first line names. True: *program was replaced, and *script is the file. */
static bool is_script(char **program, char **argument)
{
    char line[PATH_MAX];
    int fd = open(*program, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    if (fd >= 0) close(fd);
    if (len < 3 || line[0] != '#' || line[1] != '!') return false;
    line[len] = 0;
    line[strcspn(line, "\n")] = 0;
    char *interpreter = line + 2 + strspn(line + 2, " \t");
    char *end = interpreter + strcspn(interpreter, " \t");
    char *rest = end + strspn(end, " \t");
    *end = 0;
    if (!*interpreter) return false;
    *argument = *rest ? base_format("%s", rest) : NULL;
    *program = base_format("%s", interpreter);
    return true;
}

/* The command line of a script's interpreter in place of the script's. */
static void use_interpreter(run_request *r, char *interpreter, char *script, char *argument)
{
    size_t n = 0;
    while (r->program[n])
        n++;
    char **args = base_alloc_zero(n + 3, sizeof *args);
    size_t at = 0;
    args[at++] = interpreter;
    if (argument) args[at++] = argument;
    args[at++] = script;
    for (size_t i = 1; i < n; i++)
        args[at++] = r->program[i];
    r->program = args;
}

static char *absolute(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real) cli_error("%s: %s", path, strerror(errno));
    for (const char *c = real; c && *c; c++)
        if ((unsigned char)*c < ' ') { /* what is read as text may not have them: logs would be looked for elsewhere */
            cli_error("%s: control characters in this path cannot be handed to an engine: choose another (--state, --log, --plan)", path);
            free(real);
            return NULL;
        }
    return real;
}

/* A folder for logs of our own. NULL: it cannot be made, and that was said. */
static char *temporary(const char *state, const char *what)
{
    char *path = base_format("%s/%s.XXXXXX", state, what);
    if (mkdtemp(path)) return path;
    cli_error("%s: cannot be made: %s", path, strerror(errno));
    free(path);
    return NULL;
}

/* The folder that the user wants logs in. They say what was found: without them there would be no exit code. */
static int make_log(const char *path)
{
    int code = run_make_directory(path);
    char *trial = base_format("%s/race.trial.XXXXXX", path);
    int fd = code == EXIT_CLEAN ? mkostemp(trial, O_CLOEXEC) : -1;
    if (fd >= 0) {
        close(fd);
        unlink(trial);
    } else if (code == EXIT_CLEAN) {
        code = cli_error("%s: cannot be written: %s", path, strerror(errno));
    }
    free(trial);
    return code;
}

/* The engine would only say that something in them is wrong. */
static int check_suppressions(const char *path)
{
    race_error error;
    char *text = cli_text(path);
    if (!text) return EXIT_USAGE;
    detect_suppressions *read = detect_suppressions_read(path, text, &error);
    free(text);
    if (!read) return cli_error("%s", error.text);
    detect_suppressions_free(read);
    return EXIT_CLEAN;
}

/* Folders and plans. An exit code. */
static int prepare(run_request *r, run_paths *p)
{
    /* plans of one kind do for one kind of run */
    char *plans = r->plans ? base_format("%s", r->plans) : base_format("%s/plans%s%s", r->state, !strcmp(r->scope, "warned") ? "-warned" : "",
                                                                     r->audit ? "-audit" : "");
    int code = run_make_directory(r->state);
    if (code == EXIT_CLEAN && !r->plans) code = run_make_directory(plans);
    char *argument, *script = p->program;
    if (code == EXIT_CLEAN && is_script(&p->program, &argument))
        use_interpreter(r, p->program, script, argument);
    else if (code == EXIT_CLEAN && (!r->plans || !strcmp(r->engine, "probe"))) /* with plans, DynamoRIO can run static ones */
        code = run_plan_program(r, p->program, plans);
    if (code == EXIT_CLEAN && !(p->plans = absolute(plans))) code = EXIT_USAGE;
    if (code == EXIT_CLEAN && r->suppressions) code = check_suppressions(r->suppressions);
    if (code == EXIT_CLEAN && r->suppressions && !(p->suppressions = absolute(r->suppressions))) code = EXIT_USAGE;
    if (code == EXIT_CLEAN && r->log) code = make_log(r->log);
    p->own_log = !r->log;
    char *log = NULL, *ask = NULL;
    if (code == EXIT_CLEAN) log = r->log ? base_format("%s", r->log) : temporary(r->state, "log");
    if (code == EXIT_CLEAN && !r->plans) ask = temporary(r->state, "ask");
    if (code == EXIT_CLEAN && (!log || !(p->log = absolute(log)))) code = EXIT_USAGE;
    if (code == EXIT_CLEAN && ask && !(p->ask = absolute(ask))) code = EXIT_USAGE;
    free(plans);
    free(log);
    free(ask);
    return code;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* What cannot be written where it should go is printed on stderr: the program has run, perhaps for hours. */
static int write_json(const run_request *r, json_t *json)
{
    FILE *to = r->output ? fopen(r->output, "w") : stdout;
    bool good = to && json_dumpf(json, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
    if (to && (r->output ? fclose(to) : fflush(to))) good = false;
    if (good) return EXIT_CLEAN;
    cli_error("%s: cannot be written: %s; this was found:", r->output ? r->output : "stdout", strerror(errno));
    json_dumpf(json, stderr, JSON_INDENT(2));
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static int conclude(const run_request *r, const run_paths *p, int status)
{
    run_totals t;
    bool as_json = !strcmp(r->format, "json");
    json_t *json = as_json ? json_object() : NULL;
    if (json) json_object_set_new(json, "version", json_integer(1));
    run_read_logs(p, &t, json);
    if (!as_json && (t.found_in > 1 || (t.found_in && WIFSIGNALED(status)))) /* who ends by a signal has not said it */
        fprintf(stderr, "race: %lu race%s and %lu potential deadlock%s in %u of %u process%s\n", t.races, cli_plural(t.races),
                t.deadlocks, cli_plural(t.deadlocks), t.found_in, t.processes, t.processes == 1 ? "" : "es");
    int written = json ? write_json(r, json) : EXIT_CLEAN;
    json_decref(json);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    int code = WEXITSTATUS(status);
    const bool found = t.races || t.deadlocks || t.audits || t.lost, halted = r->halt_on_error && code == HALTED && r->exit_code;
    if (found && (code == 0 || halted)) code = (int)r->exit_code;
    return code ? code : written;
}

/* Ends as the program did, but for a core, which would take the place of the program's. */
static void end_by_signal(int number, const sigset_t *signals)
{
    prctl(PR_SET_DUMPABLE, 0);
    signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, signals, NULL);
    raise(number);
}

/* Shadow memory is a multiple of the program's, and reserved in large pieces. */
static bool has_room(int resource)
{
    const rlim_t wanted = (rlim_t)16 << 30;
    struct rlimit limit;
    return getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted;
}

/* What would otherwise be found out when the program has run. */
static int check_files(const run_request *r)
{
    struct stat st;
    if (r->plans && stat(r->plans, &st) == 0 && !S_ISDIR(st.st_mode)) return cli_error("%s: not a folder of plans", r->plans);
    FILE *to = r->output ? fopen(r->output, "a") : NULL;
    if (r->output && !to) return cli_error("%s: cannot be written: %s", r->output, strerror(errno));
    if (to) fclose(to);
    return EXIT_CLEAN;
}

static int run_program(run_request *r)
{
    run_paths p = {.program = run_find_program(r->program[0])};
    const bool is_file = strchr(r->program[0], '/') && access(r->program[0], F_OK) == 0;
    if (!p.program) return cli_error("%s: %s", r->program[0], is_file ? "cannot be run: not a program, or no permission" : "no such program");
    if (check_files(r) != EXIT_CLEAN) {
        free(p.program);
        return EXIT_USAGE;
    }
    const bool has_space = has_room(RLIMIT_AS);
    if (!has_space || !has_room(RLIMIT_DATA)) {
        free(p.program);
        return cli_error("%s: the limit of %s leaves no room for shadow memory", r->program[0],
                         has_space ? "data (ulimit -d)" : "address space (ulimit -v)");
    }
    run_block_signals(&p);
    int status = 0, code = prepare(r, &p);
    if (code == EXIT_CLEAN) {
        run_note_old_logs(&p);
        pid_t child = run_start(r, &p);
        code = child < 0 ? (int)-child : 0;
        if (child > 0) {
            status = run_wait(r, &p, child);
            if (p.ask) run_remove_logs(p.ask);
            free(p.ask);
            p.ask = NULL;
            code = conclude(r, &p, status);
        }
    }
    if (p.ask) run_remove_logs(p.ask);
    if (p.log && p.own_log) run_remove_logs(p.log);
    run_forget_old_logs(&p);
    free(p.ask);
    free(p.log);
    free(p.plans);
    free(p.suppressions);
    free(p.program);
    if (WIFSIGNALED(status)) end_by_signal(WTERMSIG(status), &p.signals);
    return code;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static int check_words(const run_request *r)
{
    static const struct {
        const char *what, *words;
    } known[] = {{"engine", " dynamorio probe "},
                 {"format", " text json "},
                 {"scope", " shared warned all "},
                 {"placement", " ft "}};
    const char *const given[] = {r->engine, r->format, r->scope, r->place};
    for (unsigned i = 0; i < sizeof given / sizeof *given; i++) {
        char *padded = base_format(" %s ", given[i]);
        bool good = !strchr(given[i], ' ') && *given[i] && strstr(known[i].words, padded);
        free(padded);
        if (!good) return cli_usage("run", "unknown %s %s", known[i].what, given[i]);
    }
    return EXIT_CLEAN;
}

static int run(int argc, char **argv)
{
    run_request r = {.engine = "probe",
                     .format = "text",
                     .scope = "shared",
                     .place = "ft",
                     .state = ".race",
                     .exit_code = 66,
                     .depth = -1};
    cli_walk walk = {.argc = argc, .argv = argv, .options = options, .stop_at_operand = true};
    for (int key; (key = cli_next(&walk)) != CLI_END;) {
        switch (key) {
        case KEY_HELP: return cli_help(&command_run);
        case KEY_ENGINE: r.engine = walk.value; break;
        case KEY_STATE: r.state = walk.value; break;
        case KEY_PLAN: r.plans = walk.value; break;
        case KEY_LOG: r.log = walk.value; break;
        case KEY_FORMAT: r.format = walk.value; break;
        case KEY_OUTPUT: r.output = walk.value; break;
        case KEY_SUPPRESSIONS: r.suppressions = walk.value; break;
        case KEY_SCOPE: r.scope = walk.value; break;
        case KEY_PLACE: r.place = walk.value; break;
        case KEY_STATS: r.stats = true; break;
        case KEY_HALT: r.halt_on_error = true; break;
        case KEY_ALL: r.all = true; break;
        case KEY_AUDIT: r.audit = true; break;
        case KEY_BREAKPOINTS: r.breakpoints = true; break;
        case KEY_UNCHECKED: r.unchecked = true; break;
        case KEY_EXIT_CODE:
            if (!cli_number(walk.value, 0, 255, &r.exit_code))
                return cli_usage("run", "%s is no exit code", walk.value);
            break;
        case KEY_JOBS:
            if (!cli_number(walk.value, 1, 1024, &r.jobs))
                return cli_usage("run", "%s is no number of jobs", walk.value);
            break;
        case KEY_MEMORY:
            if (!cli_number(walk.value, 1, 1 << 24, &r.memory))
                return cli_usage("run", "%s is no number of megabytes", walk.value);
            break;
        case KEY_DEPTH:
            if (!cli_number(walk.value, 0, 64, &r.depth)) return cli_usage("run", "%s is no depth", walk.value);
            break;
        default: return EXIT_USAGE;
        }
    }
    if (check_words(&r) != EXIT_CLEAN) return EXIT_USAGE;
    if (r.output && strcmp(r.format, "json")) return cli_usage("run", "--output is for --format json");
    if (walk.at >= argc) return cli_usage("run", "no program given");
    r.program = argv + walk.at;
    return run_program(&r);
}

const command command_run = {
    .name = "run",
    .run = run,
    .summary = "run a program and report the data races that happen",
    .help = "usage: race run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
            "\n"
            "Analyses PROGRAM unless that is done already, runs it and whatever it starts with a check\n"
            "at every access that another thread might touch, and reports data races and possible\n"
            "deadlocks on stderr as they happen. SIGUSR2 makes it say what was found so far.\n"
            "\n"
            "  --engine NAME       what injects the checks: probe, dynamorio (probe)\n"
            "  --scope SCOPE       what is checked: shared: what another thread might touch; warned: what takes\n"
            "                      part in a static warning; all: as shared, so far (shared)\n"
            "  --place KIND        where checks go: ft, one at each access (ft)\n"
            "  --state DIR         where plans are kept (.race)\n"
            "  --plan DIR          use the plans in DIR as they are; analyse nothing\n"
            "  --log DIR           keep the reports and events of each process in DIR\n"
            "  --format FORMAT     text: reports on stderr; json: all of them in the end, on stdout (text)\n"
            "  -o, --output FILE   write JSON there instead\n"
            "  --suppressions FILE what not to report, in ThreadSanitizer's syntax\n"
            "  --halt-on-error     the first report ends the process\n"
            "  --exit-code N       exit code when the program ended with 0 but raced (66)\n"
            "  --all               modules without a plan are checked at every access (dynamorio)\n"
            "  --audit             check also what the analysis calls harmless, and report where it is wrong\n"
            "  --breakpoints       a debugger may set breakpoints anywhere; slower (probe)\n"
            "  --unchecked         run modules whose plan is damaged without checks instead of refusing\n"
            "  --memory MB         limit of shadow memory (none)\n"
            "  --stack-depth N     frames kept for each access, 0 to 64 (16)\n"
            "  --stats             print counters at the end\n"
            "  -j, --jobs N        threads for the analysis (as many as there are cores)\n"
            "  -h, --help          this text\n"
            "\n"
            "DynamoRIO is looked for in DYNAMORIO_HOME, where it was when race was built, and in PATH.\n"
            "\n"
            "exit codes: the program's own; 66 when it ended with 0 but raced; 2 wrong usage or input\n",
};
