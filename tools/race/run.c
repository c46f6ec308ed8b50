/* `race run`: runs a program with the planned checks injected, and reports the races that happen.
 *
 * The modules of the program (itself, and the libraries it needs that are not the system's) are analysed unless a
 * current plan is there; then this process becomes the engine's. The engine gives the exit code: the program's own, or
 * 66 when the program ended with 0 but raced. */
#include "tools/race/race.h"

#include "include/race/plan.h"
#include "static/place/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RACE_DYNAMORIO_HOME
#define RACE_DYNAMORIO_HOME ""
#endif

typedef struct {
    const char *engine, *state, *plans, *log;
    long exit_code, jobs;
    bool stats;
    char **program; /* its path as given, its arguments, NULL */
} request;

enum { KEY_HELP = 1, KEY_ENGINE, KEY_STATE, KEY_PLAN, KEY_LOG, KEY_EXIT_CODE, KEY_STATS, KEY_JOBS };

static const cli_option options[] = {
    {"help", 'h', KEY_HELP, false}, {"engine", 0, KEY_ENGINE, true}, {"state", 0, KEY_STATE, true},
    {"plan", 0, KEY_PLAN, true},    {"log", 0, KEY_LOG, true},       {"exit-code", 0, KEY_EXIT_CODE, true},
    {"stats", 0, KEY_STATS, false}, {"jobs", 'j', KEY_JOBS, true},   {0},
};

/* --- files -------------------------------------------------------------------------------------------------------- */

static bool is_program_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The file that the shell would run; free() the result. NULL: there is none. */
static char *find_program(const char *name)
{
    if (strchr(name, '/')) return is_program_file(name) ? base_format("%s", name) : NULL;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t len = strcspn(path, ":");
        char *candidate = len ? base_format("%.*s/%s", (int)len, path, name) : base_format("./%s", name);
        if (is_program_file(candidate)) return candidate;
        free(candidate);
        path += len + (path[len] == ':');
    }
    return NULL;
}

static int make_directory(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return 0;
    return cli_error("%s: cannot be made: %s", path, strerror(errno));
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* A sound plan of this module is there. */
static bool is_current(const char *path, const image *img)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool current = false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            plan p;
            current = plan_read(map, (size_t)st.st_size, &p) == PLAN_OK && !strcmp(p.header->build_id, img->build_id);
            munmap(map, (size_t)st.st_size);
        }
    }
    close(fd);
    return current;
}

static int plan_image(const request *r, const image *img, const char *plans)
{
    int code = EXIT_CLEAN;
    race_error error;
    char *path = base_format("%s/%s.plan", plans, img->build_id);
    if (!is_current(path, img)) {
        lift_module *module = lift_open(img, &(lift_options){.jobs = (int)r->jobs});
        plan_draft draft;
        place_every(module, &draft);
        if (plan_write(&draft, path, &error) < 0) code = cli_error("%s", error.text);
        draft_free(&draft);
        lift_close(module);
    }
    free(path);
    return code;
}

static bool is_system_library(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/"};
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(path, folders[i], strlen(folders[i]))) return true;
    return false;
}

/* What the dynamic loader says the program needs, one `name => path (address)` a line. It is asked as ldd asks it: only
 * it knows run paths, LD_LIBRARY_PATH and the cache together. NULL: it cannot be asked. */
static FILE *ask_loader(const char *program, pid_t *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return NULL;
    *child = fork();
    if (*child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        int null = open("/dev/null", O_RDWR);
        if (null >= 0) dup2(null, STDIN_FILENO), dup2(null, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = *child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!from) close(ends[0]);
    return from;
}

/* A library that cannot be read is left out: its accesses are not checked, like those of the system's libraries. */
static int plan_libraries(const request *r, const char *program, const char *plans)
{
    pid_t child;
    FILE *from = ask_loader(program, &child);
    if (!from) return cli_error("%s: its libraries cannot be found: %s", program, strerror(errno));
    int code = EXIT_CLEAN;
    char *line = NULL;
    size_t size = 0;
    while (code == EXIT_CLEAN && getline(&line, &size, from) > 0) {
        char *path = strstr(line, "=> /"), *end = path ? strstr(path, " (0x") : NULL;
        if (!end) continue;
        *end = 0;
        path += strlen("=> ");
        image *img;
        if (is_system_library(path) || image_open(path, &img, NULL) < 0) continue;
        code = plan_image(r, img, plans);
        image_close(img);
    }
    free(line);
    fclose(from);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return code;
}

/* Plans of the program and its libraries, into `plans`. */
static int analyse(const request *r, const char *program, const char *plans)
{
    image *img;
    race_error error;
    if (image_open(program, &img, &error) < 0) return cli_error("%s", error.text);
    int code;
    if (img->kind != IMAGE_EXEC && img->kind != IMAGE_PIE)
        code = cli_error("%s: not a program", program);
    else if (!img->needed_count)
        code = cli_error("%s: statically linked: its synchronisation cannot be seen", program);
    else
        code = plan_image(r, img, plans);
    if (code == EXIT_CLEAN) code = plan_libraries(r, program, plans);
    image_close(img);
    return code;
}

/* --- the engine --------------------------------------------------------------------------------------------------- */

/* The first of the candidates that is a file, or NULL; all are freed but the result. */
static char *first_file(char **candidates, unsigned count, int mode)
{
    char *found = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!found && candidates[i] && access(candidates[i], mode) == 0)
            found = candidates[i];
        else
            free(candidates[i]);
    }
    return found;
}

static char *find_drrun(void)
{
    const char *home = getenv("DYNAMORIO_HOME");
    char *candidates[] = {
        home && *home ? base_format("%s/bin64/drrun", home) : NULL,
        *RACE_DYNAMORIO_HOME ? base_format("%s/bin64/drrun", RACE_DYNAMORIO_HOME) : NULL,
        find_program("drrun"),
    };
    return first_file(candidates, sizeof candidates / sizeof *candidates, X_OK);
}

/* Beside this command in a build tree, in its library folder when installed. */
static char *find_client(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0) return NULL;
    self[len] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    char *candidates[] = {
        base_format("%s/librace.so", self),
        base_format("%s/../lib/race/librace.so", self),
        base_format("%s/../lib/x86_64-linux-gnu/race/librace.so", self),
        base_format("%s/../lib64/race/librace.so", self),
    };
    return first_file(candidates, sizeof candidates / sizeof *candidates, R_OK);
}

/* Becomes drrun. Returns only on failure. */
static int start_dynamorio(const request *r, const char *drrun, const char *client, const char *program,
                           const char *plans)
{
    VEC(char *) args = {0};
    char *exit_code = base_format("%ld", r->exit_code);
    const char *const fixed[] = {drrun, "-quiet", "-c", client, "-plan", plans, "-exit_code", exit_code};
    for (unsigned i = 0; i < sizeof fixed / sizeof *fixed; i++)
        vec_push(&args, (char *)fixed[i]);
    if (r->log) {
        vec_push(&args, (char *)"-log");
        vec_push(&args, (char *)r->log);
    }
    if (r->stats) vec_push(&args, (char *)"-stats");
    vec_push(&args, (char *)"--");
    vec_push(&args, (char *)program);
    for (char **a = r->program + 1; *a; a++)
        vec_push(&args, *a);
    vec_push(&args, NULL);
    fflush(NULL);
    cli_restore_signals();
    execv(drrun, args.data);
    int code = cli_error("%s: cannot be started: %s", drrun, strerror(errno));
    vec_free(&args);
    free(exit_code);
    return code;
}

static char *absolute(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real) cli_error("%s: %s", path, strerror(errno));
    return real;
}

static int run_program(request *r)
{
    char *drrun = find_drrun(), *client = find_client(), *program = find_program(r->program[0]);
    char *plans = r->plans ? base_format("%s", r->plans) : base_format("%s/plans", r->state);
    char *plans_real = NULL, *log_real = NULL;
    int code = EXIT_CLEAN;
    if (!program)
        code = cli_error("%s: no such program", r->program[0]);
    else if (!drrun)
        code = cli_error("no DynamoRIO found (set DYNAMORIO_HOME to where it is)");
    else if (!client)
        code = cli_error("no librace.so found: this build has no DynamoRIO client");
    if (code == EXIT_CLEAN && !r->plans) {
        code = make_directory(r->state);
        if (code == EXIT_CLEAN) code = make_directory(plans);
        if (code == EXIT_CLEAN) code = analyse(r, program, plans);
    }
    if (code == EXIT_CLEAN && r->log) code = make_directory(r->log);
    if (code == EXIT_CLEAN && r->log && !(r->log = log_real = absolute(r->log))) code = EXIT_USAGE;
    if (code == EXIT_CLEAN && !(plans_real = absolute(plans))) code = EXIT_USAGE;
    if (code == EXIT_CLEAN) code = start_dynamorio(r, drrun, client, program, plans_real);
    free(drrun);
    free(client);
    free(program);
    free(plans);
    free(plans_real);
    free(log_real);
    return code;
}

static int run(int argc, char **argv)
{
    request r = {.engine = "dynamorio", .state = ".race", .exit_code = 66};
    cli_walk walk = {.argc = argc, .argv = argv, .options = options, .stop_at_operand = true};
    for (int key; (key = cli_next(&walk)) != CLI_END;) {
        switch (key) {
        case KEY_HELP: return cli_help(&command_run);
        case KEY_ENGINE: r.engine = walk.value; break;
        case KEY_STATE: r.state = walk.value; break;
        case KEY_PLAN: r.plans = walk.value; break;
        case KEY_LOG: r.log = walk.value; break;
        case KEY_STATS: r.stats = true; break;
        case KEY_EXIT_CODE:
            if (!cli_number(walk.value, 0, 255, &r.exit_code))
                return cli_usage("run", "%s is no exit code", walk.value);
            break;
        case KEY_JOBS:
            if (!cli_number(walk.value, 1, 1024, &r.jobs))
                return cli_usage("run", "%s is no number of jobs", walk.value);
            break;
        default: return EXIT_USAGE;
        }
    }
    if (strcmp(r.engine, "dynamorio")) return cli_usage("run", "unknown engine %s", r.engine);
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
            "Analyses PROGRAM unless that is done already, runs it with a check at every access\n"
            "that another thread might touch, and reports data races on stderr as they happen.\n"
            "\n"
            "  --engine dynamorio  what injects the checks (the only one so far)\n"
            "  --state DIR         where plans are kept (.race)\n"
            "  --plan DIR          use the plans in DIR as they are; analyse nothing\n"
            "  --log DIR           also write the reports of each process to DIR/race.<pid>.log\n"
            "  --exit-code N       exit code when the program ended with 0 but raced (66)\n"
            "  --stats             print counters at the end\n"
            "  -j, --jobs N        threads for the analysis (as many as there are cores)\n"
            "  -h, --help          this text\n"
            "\n"
            "DynamoRIO is looked for in DYNAMORIO_HOME, where it was when race was built, and in PATH.\n"
            "\n"
            "exit codes: the program's own; 66 when it ended with 0 but raced; 2 wrong usage or input\n",
};
