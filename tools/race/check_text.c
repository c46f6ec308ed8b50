/* The warnings of `race check` for people: as a good compiler would print them. */
#include "tools/race/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/race/source.h"

typedef struct {
    const char *bold, *red, *yellow, *dim, *off;
    sources *excerpts; /* lines of the source; NULL: none */
    names *names;
    uint32_t more;    /* pairs of accesses to the same place that are not shown */
    char here[4096];  /* the directory whose files are shown without it, with a slash at its end; "": none */
} paint;

static const paint colours = {"\033[1m", "\033[1;31m", "\033[1;33m", "\033[2m", "\033[0m", NULL, NULL, 0, ""};
static const paint plain = {"", "", "", "", "", NULL, NULL, 0, ""};

static const char *const confidences[] = {[DETECT_HIGH] = "high", [DETECT_MEDIUM] = "medium", [DETECT_LOW] = "low"};

/* A text with names in it, as the source has them. */
static const char *named(const char *text, const paint *p, char *to, size_t size)
{
    char plain_text[1024];
    names_show(p->names, text, plain_text, sizeof plain_text);
    return cli_plain(plain_text, to, size);
}

/* The line of the source, if the source is there. */
static void excerpt(const store_place *place, const paint *p)
{
    enum { WIDE = 160 };
    char line[4096], shown[WIDE + 1];
    if (!place->file || !p->excerpts || !sources_line(p->excerpts, place->file, place->line, line, sizeof line)) return;
    for (char *tab = line; *tab; tab++)
        if (*tab == '\t') *tab = ' ';
    printf("    %s%6u |%s %s\n", p->dim, place->line, p->off, cli_plain(line, shown, sizeof shown));
}

static void print_locks(const store_side *s, const paint *p)
{
    char shown[300];
    for (uint32_t i = 0; i < s->lock_count; i++)
        printf("%s%s", i ? ", " : "           locks held: ", named(s->locks[i], p, shown, sizeof shown));
    printf(s->lock_count ? "\n" : "           %sno locks held%s\n", p->dim, p->off);
}

/* A source as somebody in the current directory would call it. */
static const char *file_name(const char *file, const paint *p)
{
    size_t n = strlen(p->here);
    return n && !strncmp(file, p->here, n) && file[n] ? file + n : file;
}

static void print_place(const store_side *s, const char *what, const paint *p)
{
    const store_place *place = &s->at;
    char shown[400], function[200];
    printf("  %s%s%s in %s", p->bold, what, p->off, named(place->function, p, function, sizeof function));
    if (place->file)
        printf(", %s:%u", cli_plain(file_name(place->file, p), shown, sizeof shown), place->line);
    else
        printf(", 0x%llx of %s", (unsigned long long)place->addr, cli_plain(place->path, shown, sizeof shown));
    printf("\n");
    excerpt(place, p);
    printf("           by %s\n", named(s->origin, p, shown, sizeof shown));
}

static void print_reasons(const store_warning *w)
{
    char shown[400];
    for (uint32_t i = 0; i < w->reason_count; i++)
        printf("%s%s", i ? "; " : "  because ", cli_plain(w->reasons[i], shown, sizeof shown));
    printf("\n");
}

static void print_race(const store_warning *w, const paint *p)
{
    char shown[400], id[40];
    const char *colour = w->confidence == DETECT_HIGH ? p->red : p->yellow;
    printf("%srace%s on %s%s%s (%u byte%s), %s confidence  %s[%s]%s\n", colour, p->off, p->bold, named(w->location, p, shown, sizeof shown),
           p->off, w->size, w->size == 1 ? "" : "s", confidences[w->confidence], p->dim, cli_plain(w->id, id, sizeof id), p->off);
    if (w->about) printf("  %s\n", named(w->about, p, shown, sizeof shown));
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        print_place(s, s->write ? s->atomic ? "atomic write" : "write" : s->atomic ? "atomic read" : "read", p);
        print_locks(s, p);
    }
    if (w->why) printf("  not ordered: %s\n", cli_plain(w->why, shown, sizeof shown));
    print_reasons(w);
    if (p->more) printf("  %sand %u more pair%s of accesses to it%s\n", p->dim, p->more, p->more == 1 ? "" : "s", p->off);
    printf("\n");
}

static void print_holder(const store_side *s, const paint *p)
{
    char name[300], function[200], shown[400];
    if (!s->has_since) return;
    const store_place *place = &s->since;
    printf("  %sholding%s %s since %s", p->bold, p->off, named(s->held, p, name, sizeof name), named(place->function, p, function, sizeof function));
    if (place->file)
        printf(", %s:%u\n", cli_plain(file_name(place->file, p), shown, sizeof shown), place->line);
    else
        printf(", 0x%llx of %s\n", (unsigned long long)place->addr, cli_plain(place->path, shown, sizeof shown));
    excerpt(place, p);
}

static void print_deadlock(const store_warning *w, const paint *p)
{
    char shown[400], id[40];
    printf("%sdeadlock%s of %s%s%s, %s confidence  %s[%s]%s\n", w->confidence == DETECT_HIGH ? p->red : p->yellow, p->off, p->bold,
           named(w->location, p, shown, sizeof shown), p->off, confidences[w->confidence], p->dim, cli_plain(w->id, id, sizeof id), p->off);
    for (uint32_t i = 0; i < w->side_count; i++) {
        const store_side *s = &w->sides[i];
        char what[340], name[300];
        snprintf(what, sizeof what, "takes %s", named(s->lock ? s->lock : "a lock", p, name, sizeof name));
        print_place(s, what, p);
        print_locks(s, p);
        print_holder(s, p);
    }
    print_reasons(w);
    printf("\n");
}

static void print_stats(const check *c)
{
    const hb_statistics *h = hb_stats(c->order);
    const detect_statistics *d = detect_stats(c->found);
    pta_stats p;
    pta_statistics(c->result, &p);
    uint64_t instructions = 0, unresolved = 0, opaque = 0;
    uint32_t functions = 0, frames = 0, nameless = 0;
    for (uint32_t m = 0; m < c->module_count; m++) {
        functions += c->modules[m]->stats.functions;
        instructions += c->modules[m]->stats.instructions;
        unresolved += c->modules[m]->stats.jumps_unresolved;
        opaque += c->modules[m]->stats.ir_opaque;
        frames += c->modules[m]->stats.frames_unknown;
        nameless += check_is_nameless(c->modules[m]->img);
    }
    printf("modules           %u, %u functions, %llu instructions\n", c->module_count, functions, (unsigned long long)instructions);
    printf("not understood    %llu indirect jumps, %llu opaque IR instructions, %u frames, %llu calls of unknown functions\n",
           (unsigned long long)unresolved, (unsigned long long)opaque, frames, (unsigned long long)c->program->unknown_calls);
    printf("                  %llu accesses to unknown memory, %llu to too many places, %llu to nothing known, %u of %u calls of locks\n",
           (unsigned long long)h->accesses_unknown, (unsigned long long)h->accesses_lost, (unsigned long long)h->accesses_nowhere, h->lock_calls_unknown, h->lock_calls);
    printf("                  %llu of these accesses are paired by type and member only, %llu not at all\n",
           (unsigned long long)d->accesses_typed, (unsigned long long)d->accesses_untyped);
    if (nameless) printf("                  the threads and locks of %u programs that are linked statically, without names\n", nameless);
    printf("origins           %u: %u threads, %u events, %u called from outside\n", h->origins, h->threads, h->events, h->outside);
    printf("accesses          %llu in %llu instances; objects %u, of which %u shared and written\n", (unsigned long long)h->accesses,
           (unsigned long long)p.instances, h->objects, d->places_shared);
    printf("pairs             %llu: %llu guarded, %llu ordered, %llu apart, %llu racing; %llu atomic\n", (unsigned long long)d->pairs,
           (unsigned long long)d->pairs_guarded, (unsigned long long)d->pairs_ordered, (unsigned long long)d->pairs_disjoint,
           (unsigned long long)d->pairs_racing, (unsigned long long)d->pairs_atomic);
    if (d->pairs_skipped)
        printf("                  %llu not looked at: of groups of accesses that race already, on objects with very many pairs\n", (unsigned long long)d->pairs_skipped);
    printf("warnings          %u; %u suppressed, %u benign\n", detect_found(c->found)->len, d->suppressed, d->benign);
    printf("seconds           %.3f: %.3f reading, %.3f pointers, %.3f order and locks, %.3f races\n", c->seconds, c->seconds_lift,
           c->seconds_pointer, c->seconds_order, c->seconds_detect);
}

static void open_paint(paint *p)
{
    *p = isatty(STDOUT_FILENO) ? colours : plain;
    size_t n = getcwd(p->here, sizeof p->here - 1) ? strlen(p->here) : 0;
    if (n > 1) memcpy(p->here + n, "/", 2);
    if (n <= 1) p->here[0] = 0;
}

void check_text_warning(const store_warning *w, bool excerpts)
{
    paint p;
    sources excerpted = {0};
    names shown = {0};
    open_paint(&p);
    p.names = &shown;
    if (excerpts) p.excerpts = &excerpted;
    if (w->kind == DETECT_RACE)
        print_race(w, &p);
    else
        print_deadlock(w, &p);
    names_close(&shown);
    sources_close(&excerpted);
}

/* --- one warning for each place ---------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b, void *with)
{
    const store_warning *all = with;
    const uint32_t *i = a, *k = b;
    const store_warning *x = &all[*i], *y = &all[*k];
    int order = strcmp(x->location ? x->location : "", y->location ? y->location : "");
    if (!order) order = strcmp(x->about ? x->about : "", y->about ? y->about : "");
    return order ? order : *i < *k ? -1 : *i > *k;
}

/* Per warning: how many there are to the same place, itself included, if it is the first of them; 0: it is not. */
static uint32_t *count_places(const store_record *record)
{
    uint32_t *counts = base_alloc_zero(record->warning_count, sizeof *counts), n = 0;
    uint32_t *order = base_alloc(record->warning_count * sizeof *order);
    for (uint32_t i = 0; i < record->warning_count; i++)
        if (record->warnings[i].kind == DETECT_RACE)
            order[n++] = i;
        else
            counts[i] = 1;
    if (n) qsort_r(order, n, sizeof *order, by_place, record->warnings);
    for (uint32_t i = 0, first = 0; i < n; i++) {
        const store_warning *x = &record->warnings[order[first]], *y = &record->warnings[order[i]];
        bool same = !strcmp(x->location, y->location) && !strcmp(x->about ? x->about : "", y->about ? y->about : "");
        if (!same) first = i;
        counts[order[first]]++;
    }
    free(order);
    return counts;
}

void check_text(const check *c, const store_record *record, bool all, bool stats)
{
    uint32_t found[3] = {0}, deadlocks = 0, pairs = 0;
    uint32_t *counts = count_places(record);
    sources excerpted = {0};
    names shown = {0};
    paint p;
    open_paint(&p);
    p.names = &shown;
    p.excerpts = &excerpted;
    for (uint32_t i = 0; i < record->warning_count; i++) {
        const store_warning *w = &record->warnings[i];
        if (counts[i]) ++*(w->kind == DETECT_RACE ? &found[w->confidence] : &deadlocks);
        pairs += w->kind == DETECT_RACE;
    }
    /* What is hardly more than a guess is in the way of what is not; where there is nothing else, the first of them are enough. */
    enum { GUESSES = 40 };
    uint32_t room = all ? UINT32_MAX : found[DETECT_HIGH] + found[DETECT_MEDIUM] ? 0 : GUESSES;
    bool hides = found[DETECT_LOW] > room;
    for (uint32_t i = 0; i < record->warning_count; i++) {
        const store_warning *w = &record->warnings[i];
        if (!all && !counts[i]) continue;
        if (w->kind == DETECT_RACE && w->confidence == DETECT_LOW && !room--) {
            room = 0;
            continue;
        }
        p.more = all || !counts[i] ? 0 : counts[i] - 1;
        if (w->kind == DETECT_RACE)
            print_race(w, &p);
        else
            print_deadlock(w, &p);
    }
    free(counts);
    names_close(&shown);
    sources_close(&excerpted);
    uint32_t races = found[0] + found[1] + found[2];
    printf("%u race%s (%u high, %u medium, %u low), %u deadlock%s\n", races, races == 1 ? "" : "s", found[0], found[1], found[2],
           deadlocks, deadlocks == 1 ? "" : "s");
    if (!all && (pairs > races || hides))
        printf("%u pair%s of accesses in all%s: --all shows them\n", pairs, pairs == 1 ? "" : "s", !hides ? "" : found[DETECT_HIGH] + found[DETECT_MEDIUM] ? ", and races of low confidence" : ", and more races of low confidence");
    if (stats) print_stats(c);
}
