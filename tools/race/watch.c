/* `race watch`: keeps the analysis of a program current while it is being built, and prints what each change brings and takes away.
 *
 * Only files whose contents have changed are read and lifted again, and pointers follow what has changed (pta_follow); order and races
 * are then worked out anew, since a change anywhere may concern everything, but for what static/hb keeps of the last analysis (hb_memo). The last few states are remembered by the contents of all files: what was taken back, or
 * checked out again, is answered at once. What can wait until the answer is printed, does (tidy). A file that cannot be read (half-written, damaged) stays what it was; files that are
 * gone are no part of the program any more, but when all are (make clean), the last state stays until there are some again. */
#include "tools/race/watch.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tools/race/diff.h"

enum { KEY_HELP = CHECK_OPTIONS, KEY_SETTLE, KEY_CHANGES, KEY_STATS, KEY_RECHECK };
enum { SOON = 200 }; /* milliseconds until the next look when something is on its way */

static const cli_option options[] = {
    {"help", 'h', KEY_HELP, false},
    {"format", 0, CHECK_FORMAT, true},
    {"context", 0, CHECK_CONTEXT, true},
    {"incremental", 0, CHECK_INCREMENTAL, true},
    {"jobs", 'j', CHECK_JOBS, true},
    {"suppressions", 0, CHECK_SUPPRESSIONS, true},
    {"config", 0, CHECK_CONFIG, true},
    {"open", 0, CHECK_OPEN, false},
    {"settle", 0, KEY_SETTLE, true},
    {"changes", 0, KEY_CHANGES, true},
    {"stats", 0, KEY_STATS, false},
    {"recheck", 0, KEY_RECHECK, false},
    {"all", 0, CHECK_ALL, false},
    {0},
};

typedef struct {
    long settle;  /* milliseconds of quiet before a change is looked at */
    long changes; /* end after that many; 0: never */
    bool stats;
    bool rechecks; /* hb_options.recheck */
    check_how how; /* `all`: everything each time, as race check prints it */
    char **operands;
    int operand_count;
} request;

enum { STATES = 6 };

typedef struct {
    uint64_t files;      /* hash of their names and contents */
    uint64_t used;       /* when, in reports; 0: it is none */
    store_record record;
    const char **ids;    /* of its warnings, as they were found: comparing gives them those of the state before */
    check_lifted *lifted; /* its modules, when it was analysed */
} state;

typedef struct {
    const request *r;
    watch_set set;
    check texts;         /* suppressions and configuration */
    state states[STATES];
    state *last;         /* one of them, or NULL */
    uint64_t reports;
    uint64_t generation; /* of lift_update_all */
    hb_memo *memo;
    pta *pointers;       /* of the last analysis, or NULL */
    pta_program *program; /* of which they are */
    check ended;         /* the last analysis, until it is tidied up */
    int signals;         /* signalfd of SIGINT and SIGTERM */
} watcher;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int parse(int argc, char **argv, request *r)
{
    cli_walk walk = {.argc = argc, .argv = argv, .options = options};
    for (int key; (key = cli_next(&walk)) != CLI_END;) {
        switch (key) {
        case CLI_BAD:
        case KEY_HELP: return key;
        case CLI_OPERAND: r->operands[r->operand_count++] = walk.value; break;
        case KEY_STATS: r->stats = true; break;
        case KEY_RECHECK: r->rechecks = true; break;
        case KEY_SETTLE:
            if (cli_number(walk.value, 0, 60000, &r->settle)) break;
            cli_usage(argv[0], "the milliseconds of quiet are 0 to 60000, not %s", walk.value);
            return CLI_BAD;
        case KEY_CHANGES:
            if (cli_number(walk.value, 0, 1000000000, &r->changes)) break;
            cli_usage(argv[0], "the number of changes is 0 or more, not %s", walk.value);
            return CLI_BAD;
        default:
            if (!check_option(argv[0], key, walk.value, &r->how)) return CLI_BAD;
        }
    }
    return CLI_END;
}

/* --- one analysis ------------------------------------------------------------------------------------------------------- */

static uint32_t image_count(const watch_set *set)
{
    uint32_t total = 0;
    for (uint32_t f = 0; f < set->files.len; f++)
        total += set->files.data[f]->list.count;
    return total;
}

/* Two object files with a main are two programs: the first other one, or NULL. */
static const char *second_main(const watch_set *set)
{
    const char *first = NULL;
    for (uint32_t f = 0; f < set->files.len; f++)
        for (uint32_t i = 0; i < set->files.data[f]->list.count; i++) {
            const image *img = set->files.data[f]->list.images[i];
            for (uint32_t s = 0; img->kind == IMAGE_OBJECT && s < img->symbol_count; s++) {
                const image_symbol *symbol = &img->symbols[s];
                if (symbol->bind != IMAGE_BIND_GLOBAL || symbol->type != IMAGE_SYM_FUNC || strcmp(symbol->name, "main")) continue;
                if (first) return set->files.data[f]->path;
                first = set->files.data[f]->path;
            }
        }
    return NULL;
}

/* What remains to be done of an analysis when its answer is printed: all of it goes but its pointers, which are for the next one. */
static void tidy(watcher *w)
{
    check *c = &w->ended;
    if (!c->program) return;
    pta_program_close(w->program);
    w->pointers = c->result;
    w->program = c->program;
    c->result = NULL;
    c->program = NULL;
    check_close_analysis(c);
}

/* On stderr: where the time of an analysis went, and what of it was known from the last ones. */
static void say_stats(const watcher *w, const check *c, uint32_t lifted)
{
    hb_memo_statistics memo = hb_memo_stats(w->memo);
    fprintf(stderr,
            "%.1f ms reading, %.1f pointers, %.1f order and locks, %.1f races; lifted %u times, generated %u functions; %u regions as "
            "before, %u new\n",
            c->seconds_lift * 1e3, c->seconds_pointer * 1e3, c->seconds_order * 1e3, c->seconds_detect * 1e3, lifted,
            c->program->generated, memo.hits, memo.misses);
}

/* The record of the files as they are now. */
static int analyse(watcher *w, state *out)
{
    uint32_t count = image_count(&w->set), n = 0;
    const image **images = base_alloc(count * sizeof *images);
    lift_module **modules = base_alloc(count * sizeof *modules);
    for (uint32_t f = 0; f < w->set.files.len; f++)
        for (uint32_t i = 0; i < w->set.files.data[f]->list.count; i++) {
            images[n] = w->set.files.data[f]->list.images[i];
            modules[n++] = w->set.files.data[f]->modules[i];
        }
    check c = {.started = now(), .modules = modules, .module_count = count, .suppressions = w->texts.suppressions,
               .config = w->texts.config, .result = w->pointers, .before = w->program, .follows = true, .memo = w->memo, .rechecks = w->r->rechecks,
               .last = w->last ? &w->last->record : NULL, .last_lifted = w->last ? w->last->lifted : NULL};
    uint32_t lifted =
        lift_update_all(images, count, &(lift_options){.jobs = (int)w->r->how.jobs, .generation = ++w->generation}, modules);
    n = 0;
    for (uint32_t f = 0; f < w->set.files.len; f++)
        for (uint32_t i = 0; i < w->set.files.data[f]->list.count; i++)
            w->set.files.data[f]->modules[i] = modules[n++];
    int code = check_analyse(&c, &w->r->how);
    if (code == EXIT_CLEAN) check_record(&c, (int)w->r->how.jobs, &out->record);
    out->lifted = base_alloc(count * sizeof *out->lifted);
    for (uint32_t m = 0; m < count; m++)
        out->lifted[m] = (check_lifted){modules[m], modules[m]->generation};
    if (code == EXIT_CLEAN && w->r->stats) say_stats(w, &c, lifted);
    w->ended = c;
    free(images);
    free(modules);
    return code;
}

static void say(const watcher *w, const char *text)
{
    if (w->r->how.json) return;
    printf("%s\n", text);
    fflush(stdout);
}

/* --- states that were there before -------------------------------------------------------------------------------------- */

static uint64_t hash_files(const watch_set *set)
{
    uint64_t hash = set->files.len;
    for (uint32_t f = 0; f < set->files.len; f++) {
        const watch_file *file = set->files.data[f];
        uint64_t all[] = {hash, file->content, file->list.count};
        hash = store_hash(file->path, strlen(file->path), store_hash(all, sizeof all, 0));
    }
    return hash;
}

static void forget(state *s)
{
    store_record_free(&s->record);
    free(s->ids);
    free(s->lifted);
    *s = (state){0};
}

/* The state of the files as they are now: one that is remembered, or a new one in the place of the oldest. */
static int find_state(watcher *w, state **out)
{
    uint64_t files = hash_files(&w->set);
    state *oldest = NULL;
    for (unsigned i = 0; i < STATES; i++) {
        state *s = &w->states[i];
        if (s->used && s->files == files) {
            for (uint32_t k = 0; s != w->last && k < s->record.warning_count; k++)
                s->record.warnings[k].id = s->ids[k];
            *out = s;
            return EXIT_CLEAN;
        }
        if (s != w->last && (!oldest || s->used < oldest->used)) oldest = s;
    }
    forget(oldest);
    int code = analyse(w, oldest);
    if (code != EXIT_CLEAN) return code;
    oldest->files = files;
    oldest->used = w->reports;
    oldest->ids = base_alloc(oldest->record.warning_count * sizeof *oldest->ids);
    for (uint32_t k = 0; k < oldest->record.warning_count; k++)
        oldest->ids[k] = oldest->record.warnings[k].id;
    *out = oldest;
    return EXIT_CLEAN;
}

/* Finds the state of what is there, and prints how it differs from the last one. */
static int report(watcher *w, double began)
{
    state *now_there;
    w->reports++;
    int code = find_state(w, &now_there);
    if (code != EXIT_CLEAN) return code;
    store_record *record = &now_there->record;
    bool known = w->last && !w->r->how.all;
    diff d = {.known = known, .old = known ? &w->last->record : NULL, .new = record};
    diff_open(&d);
    if (w->r->how.all) {
        if (w->r->how.json)
            check_json(NULL, record, false);
        else
            check_text(NULL, record, false, false);
    } else if (w->r->how.json) {
        diff_json(&d, true);
    } else if (!w->last) {
        uint32_t deadlocks = 0;
        for (uint32_t i = 0; i < record->warning_count; i++)
            deadlocks += record->warnings[i].kind == DETECT_DEADLOCK;
        printf("watching %u file%s, %u functions: %u races, %u deadlocks (%.0f ms)\n", w->set.files.len, w->set.files.len == 1 ? "" : "s",
               d.match.added, record->warning_count - deadlocks, deadlocks, (now() - began) * 1e3);
    } else {
        diff_text(&d);
        printf("(%.0f ms)\n", (now() - began) * 1e3);
    }
    diff_close(&d);
    now_there->used = w->reports;
    w->last = now_there;
    bool failed = fflush(stdout);
    int why = errno;
    tidy(w);
    return failed ? cli_error("cannot write the output: %s", strerror(why)) : EXIT_CLEAN;
}

/* --- the loop ----------------------------------------------------------------------------------------------------------- */

/* Waits for events, at most that long; -1: for ever. False: it is time to end. */
static bool wait_for(watcher *w, int milliseconds)
{
    struct pollfd fds[] = {{.fd = w->set.inotify, .events = POLLIN}, {.fd = w->signals, .events = POLLIN}};
    int got = poll(fds, 2, milliseconds);
    return !(got > 0 && fds[1].revents) && !(got < 0 && errno != EINTR);
}

/* Until nothing happens for a while. */
static bool settle(watcher *w)
{
    for (bool more = true; more;) {
        if (!wait_for(w, (int)w->r->settle)) return false;
        more = watch_events(&w->set, now());
    }
    return true;
}

static int watch_loop(watcher *w)
{
    watch_changes changes;
    bool soon;
    double began = now();
    watch_look(&w->set, began, &changes, &soon);
    const char *other = second_main(&w->set);
    if (other) return cli_error("%s: another object defines main too: give the files of one program", other);
    if (changes.bad && !image_count(&w->set)) return EXIT_USAGE;
    int code = image_count(&w->set) ? report(w, began) : EXIT_CLEAN;
    if (!w->last && code == EXIT_CLEAN) say(w, "there are no object files yet: waiting");
    for (long left = w->r->changes; code == EXIT_CLEAN && (!w->r->changes || left > 0);) {
        if (!wait_for(w, soon ? SOON : -1)) break;
        began = now();
        bool events = watch_events(&w->set, began);
        if (events && !settle(w)) break;
        if (!events && !soon) continue;
        if (!watch_is_changed(&w->set, now(), &soon)) continue;
        watch_look(&w->set, now(), &changes, &soon);
        if (!image_count(&w->set)) {
            if (changes.gone) say(w, "all object files are gone: waiting");
            continue;
        }
        if (!changes.read && !changes.gone) continue;
        other = second_main(&w->set);
        if (other) {
            cli_error("%s: another object defines main too: this is not looked at", other);
            continue;
        }
        code = report(w, began);
        left--;
    }
    return code != EXIT_CLEAN ? code : cli_finish(w->last && w->last->record.warning_count ? EXIT_FOUND : EXIT_CLEAN);
}

enum { KEPT_BYTES = 1 << 30, LARGE_BYTES = 32 << 20 /* the most that malloc takes */ };

static int watch_run(int argc, char **argv)
{
    /* What one analysis gives back the next one needs: pages that go to the system and come again have to be cleared. */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    request r = {.settle = 5, .operands = base_alloc_zero((size_t)argc, sizeof(char *))};
    show_context("origin", &r.how.pointer);
    int code = EXIT_USAGE, parsed = parse(argc, argv, &r);
    watcher w = {.r = &r, .memo = hb_memo_open(), .signals = -1, .set = {.inotify = -1}};
    if (parsed == KEY_HELP) {
        code = cli_help(&command_watch);
    } else if (parsed == CLI_END && !r.operand_count) {
        cli_usage(argv[0], "no file or folder given");
    } else if (parsed == CLI_END && check_texts(&w.texts, &r.how) == EXIT_CLEAN) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        w.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (watch_open(&w.set, r.operands, r.operand_count) == 0) code = watch_loop(&w);
        tidy(&w);
        watch_close(&w.set);
        close(w.signals);
    }
    for (unsigned i = 0; i < STATES; i++)
        forget(&w.states[i]);
    hb_memo_close(w.memo);
    pta_close(w.pointers);
    pta_program_close(w.program);
    check_close(&w.texts);
    free(r.operands);
    return code;
}

const command command_watch = {
    .name = "watch",
    .run = watch_run,
    .summary = "follow the object files of a program and say what each change brings",
    .help = "usage: race watch [OPTION...] DIR|FILE...\n"
            "\n"
            "Analyses a program that is being worked on, from its object files (all *.o in a folder and below, or those given) or\n"
            "from its linked files, and again whenever one of them is built anew; prints which functions have changed, and the\n"
            "warnings that are new or gone. The program need not be linked. Ctrl-C ends it.\n"
            "\n"
            "options:\n"
            "  --format text|json       text is the default; JSON is one object for each change\n"
            "  --open, --suppressions FILE, --config FILE, --context C, --incremental HOW\n"
            "                           as for race check\n"
            "  --settle MS              look when nothing has happened for that long (5 milliseconds)\n"
            "  --all                    print all warnings each time, as race check does, instead of what has changed\n"
            "  --changes N              end after N changes\n"
            "  --stats                  where the time of each change went, on stderr\n"
            "  --recheck                look for everything that is taken over from the last analysis all the same, and end when it\n"
            "                           is another; for tests of race itself\n"
            "  -j, --jobs N             number of threads; as many as there are cores unless given\n"
            "  -h, --help               this text\n"
            "\n"
            "exit codes: 0 nothing left at the end, 1 races or deadlocks are left, 2 wrong usage or input\n",
};
