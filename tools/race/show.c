/* `race show`: look inside a module. Which of its views is printed is decided here; the views are in show_*.c and, for
 * IR and dot, in static/lift/print.c. */
#include "tools/race/race.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef enum { VIEW_AUTO, VIEW_IR, VIEW_CFG, VIEW_PTS, VIEW_CALLS, VIEW_ORDER, VIEW_PLAN } view;
typedef enum { FORMAT_TEXT, FORMAT_DOT, FORMAT_JSON } format;

typedef struct {
    view view;
    format format;
    bool all;  /* every opaque mnemonic, not only the frequent ones */
    long jobs; /* 0: as many as there are cores */
    show_pointer pointer;
    char **operands;
    int operand_count;
} request;

enum { KEY_HELP = 1, KEY_IR, KEY_CFG, KEY_PTS, KEY_CALLS, KEY_ORDER, KEY_PLAN, KEY_CONTEXT, KEY_FORMAT, KEY_ALL, KEY_JOBS };

static const cli_option options[] = {
    {"help", 'h', KEY_HELP, false},
    {"ir", 0, KEY_IR, false},
    {"cfg", 0, KEY_CFG, false},
    {"pts", 0, KEY_PTS, false},
    {"callgraph", 0, KEY_CALLS, false},
    {"shb", 0, KEY_ORDER, false},
    {"plan", 0, KEY_PLAN, false},
    {"context", 0, KEY_CONTEXT, true},
    {"format", 0, KEY_FORMAT, true},
    {"all", 0, KEY_ALL, false},
    {"jobs", 'j', KEY_JOBS, true},
    {0},
};

static const char *const formats[] = {[FORMAT_TEXT] = "text", [FORMAT_DOT] = "dot", [FORMAT_JSON] = "json"};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

/* A line that is overwritten while many modules are read; only for people who wait at a terminal. */
static void progress(const char *path, uint32_t done, uint32_t count)
{
    char plain[80];
    if (count < 2 || !isatty(STDERR_FILENO)) return;
    if (done < count)
        fprintf(stderr, "\r\033[K%s: %u of %u", cli_plain(path, plain, sizeof plain), done + 1, count);
    else
        fputs("\r\033[K", stderr);
}

/* Threads for one module. A small one, such as most members of an archive, is done before other threads have woken up,
 * and waiting for them costs more than the work. */
static int jobs_for(const request *r, const image *img)
{
    enum { SMALL = 64 << 10 };
    uint64_t code = 0;
    for (uint32_t i = 0; i < img->section_count; i++)
        if (img->sections[i].flags & IMAGE_X) code += img->sections[i].size;
    return code < SMALL ? 1 : (int)r->jobs;
}

static int show_modules(const request *r, const char *path, json_t *array)
{
    image_list list;
    race_error error;
    double start = now();
    if (image_open_all(path, &list, &error) < 0) return cli_error("%s", error.text);
    for (uint32_t i = 0; i < list.count; i++) {
        progress(path, i, list.count);
        lift_module *module = lift_open(list.images[i], &(lift_options){.jobs = jobs_for(r, list.images[i])});
        double seconds = now() - start;
        if (array)
            json_array_append_new(array, show_module_json(module, seconds));
        else
            show_module_text(stdout, module, seconds, r->all);
        lift_close(module);
        start = now();
    }
    progress(path, list.count, list.count);
    image_list_close(&list);
    return EXIT_CLEAN;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

static void show_function(const request *r, const lift_module *module, const lift_func *func, json_t *array)
{
    if (array)
        json_array_append_new(array, show_cfg_json(module, func));
    else if (r->format == FORMAT_DOT)
        ir_print_dot(stdout, module, func);
    else if (r->view == VIEW_CFG)
        show_cfg_text(stdout, module, func);
    else
        ir_print(stdout, module, func, true);
}

/* Every member of an archive that has the function shows it. */
static int show_functions(const request *r, json_t *array)
{
    const char *path = r->operands[0];
    image_list list;
    race_error error;
    if (image_open_all(path, &list, &error) < 0) return cli_error("%s", error.text);
    int names = r->operand_count - 1;
    bool *found = base_alloc_zero((size_t)names, sizeof *found);
    for (uint32_t i = 0; i < list.count; i++) {
        lift_options lift = {.jobs = jobs_for(r, list.images[i]), .flow_only = true};
        lift_module *module = lift_open(list.images[i], &lift);
        for (int k = 0; k < names; k++) {
            lift_func *func = lift_func_named(module, r->operands[k + 1]);
            if (!func) continue;
            found[k] = true;
            if (!func->ir) func->ir = ir_build(list.images[i], func);
            show_function(r, module, func, array);
        }
        lift_close(module);
    }
    image_list_close(&list);
    int code = EXIT_CLEAN;
    for (int k = 0; k < names; k++)
        if (!found[k]) code = cli_error("%s: no function %s", path, r->operands[k + 1]);
    free(found);
    return code;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

static bool parse_format(const char *text, format *out)
{
    for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i], text)) return *out = (format)i, true;
    return false;
}

/* Reads the command line into `r`; CLI_END when it is right, KEY_HELP, or CLI_BAD after it has said what is wrong. */
static int parse(int argc, char **argv, request *r)
{
    cli_walk walk = {.argc = argc, .argv = argv, .options = options};
    for (int key; (key = cli_next(&walk)) != CLI_END;) {
        switch (key) {
        case CLI_BAD:
        case KEY_HELP:
            return key;
        case CLI_OPERAND:
            r->operands[r->operand_count++] = walk.value;
            break;
        case KEY_IR:
            r->view = VIEW_IR;
            break;
        case KEY_CFG:
            r->view = VIEW_CFG;
            break;
        case KEY_PTS:
            r->view = VIEW_PTS;
            break;
        case KEY_CALLS:
            r->view = VIEW_CALLS;
            break;
        case KEY_ORDER:
            r->view = VIEW_ORDER;
            break;
        case KEY_PLAN:
            r->view = VIEW_PLAN;
            break;
        case KEY_CONTEXT:
            if (show_context(walk.value, &r->pointer)) break;
            cli_usage(argv[0], "the context is none, origin[:K] or cfa:K, not %s", walk.value);
            return CLI_BAD;
        case KEY_ALL:
            r->all = true;
            break;
        case KEY_FORMAT:
            if (parse_format(walk.value, &r->format)) break;
            cli_usage(argv[0], "the format is text, dot or json, not %s", walk.value);
            return CLI_BAD;
        case KEY_JOBS:
            if (cli_number(walk.value, 1, 1024, &r->jobs)) break;
            cli_usage(argv[0], "the number of jobs is 1 to 1024, not %s", walk.value);
            return CLI_BAD;
        }
    }
    return CLI_END;
}

/* What follows the first operand is a function, or with no view asked for and a file of that name, another file. */
static bool are_functions(const request *r)
{
    struct stat status;
    if (r->view == VIEW_CALLS || r->view == VIEW_PLAN) return false;
    return r->view != VIEW_AUTO || (r->operand_count == 2 && stat(r->operands[1], &status) != 0);
}

static int show_run(int argc, char **argv)
{
    request r = {.operands = base_alloc_zero((size_t)argc, sizeof(char *))};
    show_context("origin", &r.pointer);
    json_t *top = NULL, *array = NULL;
    int code = EXIT_USAGE;
    int parsed = parse(argc, argv, &r);
    if (parsed == KEY_HELP) {
        code = cli_help(&command_show);
        goto out;
    }
    if (parsed == CLI_BAD) goto out;
    if (r.operand_count == 0) {
        cli_usage(argv[0], "no file given");
        goto out;
    }
    bool functions = are_functions(&r);
    if (functions && r.operand_count == 1 && r.view != VIEW_ORDER) {
        cli_usage(argv[0], "no function given");
        goto out;
    }
    if (r.format == FORMAT_DOT && r.view != VIEW_CFG && !(r.view == VIEW_ORDER && r.operand_count == 1)) {
        cli_usage(argv[0], "the format dot is for --cfg, and for --shb of a whole file");
        goto out;
    }
    if (r.format == FORMAT_JSON && (functions || r.view != VIEW_AUTO) && r.view != VIEW_CFG) {
        cli_usage(argv[0], "only the summary and --cfg have a JSON format");
        goto out;
    }
    r.pointer.jobs = (int)r.jobs;
    if (r.format == FORMAT_JSON) {
        array = json_array();
        top = json_pack("{s:i, s:o}", "version", 1, functions ? "functions" : "modules", array);
        if (!top) base_oom(0);
    }
    code = EXIT_CLEAN;
    if (r.view == VIEW_PTS)
        code = show_points_to(r.operands[0], r.operands + 1, r.operand_count - 1, &r.pointer);
    else if (r.view == VIEW_ORDER)
        code = show_order(r.operands[0], r.operands + 1, r.operand_count - 1, r.format == FORMAT_DOT, &r.pointer);
    else if (r.view == VIEW_CALLS || r.view == VIEW_PLAN)
        for (int i = 0; i < r.operand_count; i++) {
            int one = r.view == VIEW_PLAN ? show_plan(r.operands[i], (int)r.jobs) : show_call_graph(r.operands[i], &r.pointer);
            if (one != EXIT_CLEAN) code = EXIT_USAGE;
        }
    else if (functions)
        code = show_functions(&r, array);
    else
        for (int i = 0; i < r.operand_count; i++)
            if (show_modules(&r, r.operands[i], array) != EXIT_CLEAN) code = EXIT_USAGE;
    if (top) {
        json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(top);
    }
    code = cli_finish(code);
out:
    free(r.operands);
    return code;
}

const command command_show = {
    .name = "show",
    .run = show_run,
    .summary = "look inside a program: functions, control flow, IR",
    .help = "usage: race show [OPTION...] FILE...\n"
            "       race show [OPTION...] FILE FUNCTION\n"
            "       race show --ir|--cfg|--pts [OPTION...] FILE FUNCTION...\n"
            "       race show --callgraph|--plan [OPTION...] FILE...\n"
            "       race show --shb [OPTION...] FILE [FUNCTION...]\n"
            "\n"
            "Prints what race understands of an x86-64 ELF file: a program, a shared library, an object file, or\n"
            "every object file of an archive. Without FUNCTION: a summary of each module. With FUNCTION, which is a\n"
            "symbol, sub_HEX or an address 0xHEX: the IR of that function with its source lines.\n"
            "\n"
            "options:\n"
            "  --ir                     the IR of the functions (what follows FILE is never taken for a file)\n"
            "  --cfg                    the control-flow graph of the functions\n"
            "  --pts                    what each access of the functions may point to\n"
            "  --callgraph              who calls whom, calls through pointers included\n"
            "  --shb                    threads and events, who creates them and waits for them, the order of locks; of\n"
            "                           functions: what is accessed, by whom, with which locks held\n"
            "  --plan                   where race run puts checks, and what each covers; FILE may be a plan too\n"
            "  --context C              of --pts, --callgraph and --shb: none, origin[:K] (the default) or cfa:K\n"
            "  --format text|dot|json   text is the default; dot is for --cfg and --shb, json for --cfg and the summary\n"
            "  --all                    list all opaque mnemonics, not only the most frequent ones\n"
            "  -j, --jobs N             number of threads; as many as there are cores unless given\n"
            "  -h, --help               this text\n",
};
