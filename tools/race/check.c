/* `race check`: analyses programs without running them and prints what may race or deadlock. */
#include "tools/race/race.h"
#include "tools/race/check.h"
#include "tools/race/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    bool stats, full, diff, stateless;
    check_how how;
    const char *state;
    char **files;
    int file_count;
} request;

enum { KEY_HELP = CHECK_OPTIONS, KEY_STATS, KEY_STATE, KEY_NO_STATE, KEY_FULL, KEY_DIFF };

static const cli_option options[] = {
    {"help", 'h', KEY_HELP, false},
    {"format", 0, CHECK_FORMAT, true},
    {"context", 0, CHECK_CONTEXT, true},
    {"incremental", 0, CHECK_INCREMENTAL, true},
    {"jobs", 'j', CHECK_JOBS, true},
    {"stats", 0, KEY_STATS, false},
    {"suppressions", 0, CHECK_SUPPRESSIONS, true},
    {"config", 0, CHECK_CONFIG, true},
    {"open", 0, CHECK_OPEN, false},
    {"state", 0, KEY_STATE, true},
    {"no-state", 0, KEY_NO_STATE, false},
    {"full", 0, KEY_FULL, false},
    {"diff", 0, KEY_DIFF, false},
    {"all", 0, CHECK_ALL, false},
    {0},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A line that is overwritten; only for people who wait at a terminal. */
static void progress(const char *what)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%s%s", what ? what : "", what ? " ..." : "");
    fflush(stderr);
}

static bool read_algorithm(const char *text, pta_algorithm *out)
{
    static const char *const algorithms[] = {[PTA_IPA] = "ipa", [PTA_RESET] = "reset", [PTA_REACH] = "reach"};
    for (unsigned i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (!strcmp(text, algorithms[i])) return *out = (pta_algorithm)i, true;
    return false;
}

bool check_option(const char *by, int key, char *value, check_how *how)
{
    switch (key) {
    case CHECK_FORMAT:
        how->json = !strcmp(value, "json");
        if (how->json || !strcmp(value, "text")) return true;
        cli_usage(by, "the format is text or json, not %s", value);
        return false;
    case CHECK_CONTEXT:
        if (show_context(value, &how->pointer)) return true;
        cli_usage(by, "the context is none, origin[:K] or cfa:K, not %s", value);
        return false;
    case CHECK_INCREMENTAL:
        if (read_algorithm(value, &how->algorithm)) return true;
        cli_usage(by, "results are updated by ipa, reset or reach, not %s", value);
        return false;
    case CHECK_JOBS:
        if (cli_number(value, 1, 1024, &how->jobs)) return true;
        cli_usage(by, "the number of jobs is 1 to 1024, not %s", value);
        return false;
    case CHECK_OPEN: how->open = true; return true;
    case CHECK_ALL: how->all = true; return true;
    case CHECK_SUPPRESSIONS: how->suppressions = value; return true;
    case CHECK_CONFIG: how->config = value; return true;
    default: return false;
    }
}

/* CLI_END when the command line is right, KEY_HELP, or CLI_BAD after it has said what is wrong. */
static int parse(int argc, char **argv, request *r)
{
    cli_walk walk = {.argc = argc, .argv = argv, .options = options};
    for (int key; (key = cli_next(&walk)) != CLI_END;) {
        switch (key) {
        case CLI_BAD:
        case KEY_HELP: return key;
        case CLI_OPERAND: r->files[r->file_count++] = walk.value; break;
        case KEY_STATS: r->stats = true; break;
        case KEY_STATE: r->state = walk.value; break;
        case KEY_NO_STATE: r->stateless = true; break;
        case KEY_FULL: r->full = true; break;
        case KEY_DIFF: r->diff = true; break;
        default:
            if (!check_option(argv[0], key, walk.value, &r->how)) return CLI_BAD;
        }
    }
    return CLI_END;
}

void check_close_analysis(check *c)
{
    detect_close(c->found);
    hb_close(c->order);
    pta_close(c->result);
    pta_program_close(c->program);
    pta_changes_free(&c->changes);
    c->found = NULL;
    c->order = NULL;
    c->result = NULL;
    c->program = NULL;
}

void check_close(check *c)
{
    check_close_analysis(c);
    for (uint32_t i = 0; i < c->module_count; i++)
        lift_close(c->modules[i]);
    free(c->modules);
    for (uint32_t i = 0; i < c->list_count; i++)
        image_list_close(&c->lists[i]);
    free(c->lists);
    detect_suppressions_free(c->suppressions);
    detect_config_free(c->config);
}

static int open_images(check *c, const request *r)
{
    race_error error;
    c->lists = base_alloc_zero((size_t)r->file_count, sizeof *c->lists);
    for (int f = 0; f < r->file_count; f++) {
        if (image_open_all(r->files[f], &c->lists[f], &error) < 0) return cli_error("%s", error.text);
        c->list_count++;
    }
    return EXIT_CLEAN;
}

static void lift_modules(check *c, const request *r)
{
    for (uint32_t l = 0; l < c->list_count; l++)
        c->module_count += c->lists[l].count;
    const image **images = base_alloc(c->module_count * sizeof *images);
    c->modules = base_alloc_zero(c->module_count, sizeof *c->modules);
    uint32_t n = 0;
    for (uint32_t l = 0; l < c->list_count; l++)
        for (uint32_t i = 0; i < c->lists[l].count; i++)
            images[n++] = c->lists[l].images[i];
    progress("reading");
    lift_open_all(images, n, &(lift_options){.jobs = (int)r->how.jobs}, c->modules);
    free(images);
}

int check_texts(check *c, const check_how *how)
{
    race_error error;
    if (how->suppressions) {
        char *text = cli_text(how->suppressions);
        if (!text) return EXIT_USAGE;
        c->how = store_hash(text, strlen(text), c->how + 1);
        c->suppressions = detect_suppressions_read(how->suppressions, text, &error);
        free(text);
        if (!c->suppressions) return cli_error("%s", error.text);
    }
    if (!how->config) {
        c->config = detect_config_read("", "", &error); /* one that says nothing: it knows the tables by name */
    } else {
        char *text = cli_text(how->config);
        if (!text) return EXIT_USAGE;
        c->how = store_hash(text, strlen(text), c->how + 2);
        c->config = detect_config_read(how->config, text, &error);
        free(text);
        if (!c->config) return cli_error("%s", error.text);
    }
    return EXIT_CLEAN;
}

/* From scratch, or from where the last analysis was. */
static int find_pointers(check *c, const check_how *how, race_error *error)
{
    pta_options solving = {.context = (pta_context_kind)how->pointer.context, .k = how->pointer.k, .algorithm = how->algorithm,
                           .once = !c->follows, .follow = c->follows, .jobs = (int)how->jobs, .patient = true};
    c->changes = (pta_changes){.anew = true};
    if (!c->result) return pta_open(c->program, &solving, &c->result, error);
    return pta_follow(c->result, c->program, &c->changes, error);
}

static bool readable(void *with, const char *text, char *to, size_t size)
{
    return names_show(with, text, to, size);
}

int check_analyse(check *c, const check_how *how)
{
    race_error error;
    double start = now();
    c->seconds_lift = start - c->started;
    progress("pointers");
    pta_wishes wishes = {.asks = detect_config_asks, .model = detect_config_model, .with = c->config, .open = how->open,
                         .keep = c->follows, .before = c->before};
    c->program = pta_program_open_for(c->modules, c->module_count, (int)how->jobs, &wishes);
    if (find_pointers(c, how, &error)) return cli_error("%s: %s", c->modules[0]->img->path, error.text);
    c->seconds_pointer = now() - start;
    start = now();
    progress("order and locks");
    c->order = hb_open(c->result, c->program, &(hb_options){.open = how->open, .sync = detect_config_sync, .with = c->config, .memo = c->memo,
                                                                    .changes = &c->changes, .recheck = c->rechecks});
    c->seconds_order = now() - start;
    start = now();
    progress("races");
    names shown = {0};
    c->found = detect_open(c->order, c->result, c->program, &(detect_options){.suppressions = c->suppressions, .readable = readable, .with = &shown});
    names_close(&shown);
    c->seconds_detect = now() - start;
    progress(NULL);
    return EXIT_CLEAN;
}

/* --- what was there before ----------------------------------------------------------------------------------------------- */

/* The file of the state: one for each program and way of looking at it. */
static char *state_name(const request *r)
{
    uint64_t hash = store_hash(&r->how.pointer.context, sizeof r->how.pointer.context, r->how.pointer.k * 2 + r->how.open);
    for (int f = 0; f < r->file_count; f++) {
        char *path = realpath(r->files[f], NULL);
        const char *text = path ? path : r->files[f];
        hash = store_hash(text, strlen(text), hash);
        free(path);
    }
    return base_format("check-%016llx", (unsigned long long)hash);
}

/* All that a result depends on besides the modules, this program included: another build of it may see more. 0: not known. */
static uint64_t how_hash(const check *c, const request *r)
{
    uint64_t self;
    if (!store_hash_file("/proc/self/exe", &self)) return 0;
    uint64_t all[] = {self, c->how, (uint64_t)r->how.pointer.context, r->how.pointer.k, r->how.open};
    return store_hash(all, sizeof all, 0) | 1;
}

/* What identifies the images that are open: their files, and separate debug files by what they have added. */
static void identify(const check *c, const request *r, store_module *modules)
{
    uint32_t m = 0;
    for (uint32_t l = 0; l < c->list_count; l++) {
        uint64_t content = 0;
        bool known = store_hash_file(r->files[l], &content);
        for (uint32_t i = 0; i < c->lists[l].count; i++, m++) {
            const image *img = c->lists[l].images[i];
            uint64_t facts[] = {known, img->has_debug, img->has_symtab, img->symbol_count};
            modules[m].content = content;
            modules[m].facts = store_hash(facts, sizeof facts, 0);
        }
    }
}

/* Whether a saved record is of just these modules, looked at in this way. */
static bool is_current(const check *c, const request *r, const store_record *old, uint64_t how)
{
    uint32_t total = 0;
    for (uint32_t l = 0; l < c->list_count; l++)
        total += c->lists[l].count;
    if (!how || old->how != how || old->module_count != total) return false;
    store_module *modules = base_alloc_zero(total, sizeof *modules);
    identify(c, r, modules);
    bool same = true;
    uint32_t m = 0;
    for (uint32_t l = 0; l < c->list_count; l++)
        for (uint32_t i = 0; i < c->lists[l].count; i++, m++)
            same &= modules[m].content == old->modules[m].content && modules[m].facts == old->modules[m].facts &&
                    !strcmp(old->modules[m].path, c->lists[l].images[i]->path);
    free(modules);
    return same;
}

static int print_all(const check *c, const request *r, const store_record *record)
{
    if (r->how.json)
        check_json(c, record, r->stats);
    else
        check_text(c, record, r->how.all, r->stats);
    return record->warning_count ? EXIT_FOUND : EXIT_CLEAN;
}

/* Programs whose calls have no names: that nothing was found in them says nothing. */
static bool are_nameless(const check *c)
{
    bool any = false;
    for (uint32_t l = 0; l < c->list_count; l++)
        for (uint32_t i = 0; i < c->lists[l].count; i++) {
            const image *img = c->lists[l].images[i];
            if (!check_is_nameless(img)) continue;
            cli_error("%s: statically linked%s: its threads and locks are not recognised", img->path,
                      img->has_symtab ? ", with no C library that is known" : " and stripped");
            any = true;
        }
    return any;
}

/* Analyses, unless a saved record says it all, prints, and saves. */
static int check_files(check *c, const request *r)
{
    race_error error;
    store_record old = {0}, new = {0};
    int code = check_texts(c, &r->how);
    if (code == EXIT_CLEAN) code = open_images(c, r);
    if (code != EXIT_CLEAN) return code;
    char *name = state_name(r);
    int loaded = r->full || r->stateless ? 0 : store_load(r->state, name, &old, &error);
    if (loaded < 0) cli_error("%s: everything is analysed again", error.text);
    uint64_t how = how_hash(c, r);
    bool current = loaded > 0 && !r->stats && is_current(c, r, &old, how);
    if (!current) {
        lift_modules(c, r);
        code = check_analyse(c, &r->how);
    }
    if (code != EXIT_CLEAN) goto out;
    if (!current) {
        c->seconds = now() - c->started;
        check_record(c, (int)r->how.jobs, &new);
        identify(c, r, new.modules);
        new.how = how;
    }
    store_record *record = current ? &old : &new;
    if (loaded > 0 || r->diff) {
        diff d = {.known = loaded > 0, .old = &old, .new = record};
        diff_open(&d);
        code = r->diff ? r->how.json ? diff_json(&d, false) : diff_text(&d) : print_all(c, r, record);
        diff_close(&d);
    } else {
        code = print_all(c, r, record);
    }
    code = cli_finish(code);
    if (are_nameless(c) && code == EXIT_CLEAN) code = EXIT_USAGE;
    if (!current && !r->stateless && store_save(r->state, name, record, &error)) cli_error("%s", error.text);
out:
    store_record_free(&old);
    store_record_free(&new);
    free(name);
    return code;
}

static int check_run(int argc, char **argv)
{
    request r = {.files = base_alloc_zero((size_t)argc, sizeof(char *)), .state = ".race"};
    show_context("origin", &r.how.pointer);
    check c = {.started = now()};
    int code = EXIT_USAGE, parsed = parse(argc, argv, &r);
    if (parsed == KEY_HELP) {
        free(r.files);
        return cli_help(&command_check);
    }
    if (parsed == CLI_BAD) goto out;
    if (!r.file_count)
        cli_usage(argv[0], "no file given");
    else if (r.diff && (r.full || r.stateless))
        cli_usage(argv[0], "--diff needs what was saved: it goes neither with --full nor with --no-state");
    else
        code = check_files(&c, &r);
    check_close(&c);
out:
    free(r.files);
    return code;
}

const command command_check = {
    .name = "check",
    .run = check_run,
    .summary = "find races and deadlocks without running the program",
    .help = "usage: race check [OPTION...] FILE...\n"
            "\n"
            "Analyses a program (with the shared libraries or object files of it that are given too) and prints pairs of\n"
            "accesses that may race, and cycles of locks that may deadlock, the surest first. Debug information (-g) gives\n"
            "source lines and the names of members; without it everything works on addresses.\n"
            "\n"
            "options:\n"
            "  --format text|json       text is the default\n"
            "  --all                    every pair of accesses, not only the surest of each place, and low confidence too\n"
            "  --open                   a library: exported functions may be called by any thread at any time\n"
            "  --suppressions FILE      leave out what ThreadSanitizer's suppressions name: race:FUNCTION, race:FILE,\n"
            "                           race:VARIABLE, deadlock:FUNCTION\n"
            "  --config FILE            locks, threads and allocators of your own: see race(1)\n"
            "  --context C              none, origin[:K] (the default) or cfa:K: what the pointer analysis tells apart\n"
            "  --incremental HOW        ipa (the default), reset or reach: how points-to sets follow a changed program (race watch)\n"
            "  --diff                   only what has changed since the last time: functions, warnings that are new or gone; the\n"
            "                           exit code is 1 when some are new\n"
            "  --state DIR              where the last analysis is kept (.race); ids of warnings go on from there\n"
            "  --full                   as if there were no earlier analysis\n"
            "  --no-state               the same, and save nothing\n"
            "  --stats                  what was counted, what was not understood, and the time it took\n"
            "  -j, --jobs N             number of threads; as many as there are cores unless given\n"
            "  -h, --help               this text\n"
            "\n"
            "exit codes: 0 nothing found, 1 races or deadlocks found, 2 wrong usage or input\n",
};
