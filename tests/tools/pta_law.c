/* The law of the incremental pointer analysis: after any edits its result is that of an analysis from scratch.
 *
 *   pta_law [--context none|origin[:K]|cfa:K] [--algorithm ipa|reset|reach] [--threads N]... [--wild N] [--edits N] [--batch N]
 *           [--comparisons N] [--seed N] [--seconds N] [--memory MB] [--shrink SECONDS] [--replay LIST] FILE...
 *
 * Makes random edits (pta_law/edits.c), up to --batch in one update (500), until there were --edits of them, and
 * compares at --comparisons points, spread evenly (0: after each update), the hash of the whole relation with that of a
 * fresh analysis. With several --threads there is an analysis for each number, and all must agree; a fresh analysis for
 * one result only (pta_options.once), with the last number, must agree too. When one does not, its edits since the last
 * point are shrunk and printed with the seed; --replay repeats such a list, with the same seed. In the end an update is
 * interrupted, which must leave no trace.
 * --seconds: the whole run ends then, with what it has. --memory: address space.
 *
 * Last line: what was done. Exit 0: the law holds; 1: it does not; 2: it could not be said; 3: time was over. */
#include "tests/tools/pta_law/law.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    uint32_t edits, batch, comparisons, seed, seconds, memory, shrink;
    const char *replay;
} settings;

/* What signal handlers have to know. */
static struct {
    volatile int stop;
    volatile uint32_t update, seed;
} watch;

static void say(const char *what)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%s in update %u with seed %u\n", what, watch.update, watch.seed);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0) _exit(4);
}

static void on_time(int signal)
{
    (void)signal;
    if (watch.stop) {
        say("does not stop");
        _exit(3);
    }
    watch.stop = 1;
    alarm(60);
}

static void on_crash(int number)
{
    say("crashed");
    signal(number, SIG_DFL);
    raise(number);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: pta_law [--context C] [--algorithm A] [--threads N]... [--wild N] [--edits N] [--batch N] [--comparisons N]\n"
            "       [--seed N] [--seconds N] [--memory MB] [--shrink SECONDS] [--replay LIST] FILE...\n");
    return 2;
}

static int fail(const char *text)
{
    fprintf(stderr, "pta_law: %s\n", text);
    return 2;
}

static int replay(law *l, const char *path)
{
    law_history h = {0};
    char text[128] = "";
    if (law_read(l, path, &h)) {
        law_history_clear(&h);
        return fail("no list of edits of this program");
    }
    law_verdict verdict = law_replay(l, &h, LAW_UPDATED, text, sizeof text);
    law_history_clear(&h);
    printf("%s\n", verdict == LAW_HOLDS ? "the law holds" : verdict == LAW_STOPPED ? "stopped" : text);
    return verdict == LAW_HOLDS ? 0 : verdict == LAW_STOPPED ? 3 : 1;
}

/* The sizes of all updates; their number is what comparisons are spread over. */
static void plan(const settings *with, uint32_t **sizes, uint32_t *count)
{
    VEC(uint32_t) all = {0};
    uint64_t state = tool_seed(with->seed ^ 0x5eed);
    for (uint32_t done = 0; done < with->edits;) {
        uint32_t size = edits_batch(&state, with->batch);
        if (size > with->edits - done) size = with->edits - done;
        vec_push(&all, size);
        done += size;
    }
    *sizes = all.data;
    *count = all.len;
}

static int run(law *l, const settings *with, edits *chance)
{
    race_error error;
    law_state state;
    law_history history = {0};
    edit_list list = {0};
    char text[128];
    uint32_t *sizes, updates, u = 0, compared = 0, different = 0, done = 0, statements = 0;
    double start = tool_now();
    if (law_open(l, &state, &error)) {
        if (!watch.stop) return fail(error.text);
        printf("stopped: from scratch takes longer\n");
        return 3;
    }
    double scratch = (tool_now() - start) / l->thread_count;
    edits_prefer(chance, state.analyses[0]);
    plan(with, &sizes, &updates);
    uint32_t points = with->comparisons && with->comparisons < updates ? with->comparisons : updates;
    law_history_begin(l, &history);
    for (; u < updates && !different && !watch.stop; u++) {
        watch.update = u;
        edits_next(chance, sizes[u], &list);
        law_history_add(&history, &list);
        if (law_update(l, &state, list.data, list.len, &error)) {
            if (!watch.stop) different++, printf("update %u: %s\n", u, error.text);
            break;
        }
        done += sizes[u];
        statements += list.len;
        if ((uint64_t)(u + 1) * points / updates == (uint64_t)u * points / updates) continue;
        law_verdict verdict = law_check(l, &state, text, sizeof text);
        if (verdict == LAW_STOPPED) break;
        compared++;
        if (verdict == LAW_HOLDS) {
            law_history_begin(l, &history);
            continue;
        }
        different++;
        printf("update %u, seed %u: %s\n", u, with->seed, text);
        fflush(stdout);
        if (with->shrink) law_shrink(l, &history, verdict, with->shrink);
    }
    if (u == updates && !different && !watch.stop) {
        law_verdict verdict = law_interrupt(l, &state, &list, &watch.stop, text, sizeof text);
        if (verdict != LAW_HOLDS && verdict != LAW_STOPPED) different++, printf("interrupted, seed %u: %s\n", with->seed, text);
    }
    printf("%s%u edits, %u updates, %u statements, %u compared, %u different, %.1f s; from scratch %.4f s, update mean "
           "%.6f s, "
           "worst %.4f s\n",
           watch.stop ? "stopped: " : "", done, u, statements, compared, different, tool_now() - start, scratch,
           u ? l->update_seconds / u / l->thread_count : 0, l->worst);
    free(sizes);
    vec_free(&list);
    law_history_clear(&history);
    law_close(l, &state);
    return different ? 1 : watch.stop ? 3 : 0;
}

static bool set_option(law *l, settings *with, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint32_t *to;
    } numbers[] = {{"--edits", &with->edits},  {"--batch", &with->batch},     {"--comparisons", &with->comparisons},
                   {"--seed", &with->seed},    {"--seconds", &with->seconds}, {"--memory", &with->memory},
                   {"--shrink", &with->shrink}};
    uint32_t number;
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(name, numbers[i].name)) return tool_number(value, numbers[i].to);
    if (!strcmp(name, "--context")) return tool_context(value, &l->options);
    if (!strcmp(name, "--wild") && tool_number(value, &number)) {
        l->options.wild_at = (uint32_t)number;
        return true;
    }
    if (!strcmp(name, "--algorithm")) return tool_algorithm(value, &l->options.algorithm);
    if (!strcmp(name, "--threads") && tool_number(value, &number) && number && l->thread_count < LAW_THREADS) {
        l->threads[l->thread_count++] = (int)number;
        return true;
    }
    if (strcmp(name, "--replay")) return false;
    with->replay = value;
    return true;
}

int main(int argc, char **argv)
{
    law l = {.options = {.k = 1, .stop = &watch.stop}};
    settings with = {.edits = 100, .batch = 500, .seed = 1, .shrink = 60};
    tool_program program;
    race_error error;
    int at = 1;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2)
        if (!set_option(&l, &with, argv[at], argv[at + 1])) return usage();
    if (at >= argc || !with.batch) return usage();
    if (!l.thread_count) l.threads[l.thread_count++] = 1;
    if (with.memory) {
        rlim_t bytes = (rlim_t)with.memory << 20;
        setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
    }
    if (tool_open(&program, argv + at, (uint32_t)(argc - at), 0, &error)) return fail(error.text);
    l.program = program.program;
    watch.seed = with.seed;
    signal(SIGALRM, on_time);
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    if (with.seconds) alarm(with.seconds);
    edits *chance = edits_open(l.program, with.seed);
    l.start = law_flags(l.program);
    int status = with.replay ? replay(&l, with.replay) : run(&l, &with, chance);
    free(l.start);
    edits_close(chance);
    tool_close(&program);
    return status;
}
