/* The warnings of `race check` for people: as a good compiler would print them. */
#include "tools/race/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *bold, *red, *yellow, *dim, *off;
} paint;

static const paint colours = {"\033[1m", "\033[1;31m", "\033[1;33m", "\033[2m", "\033[0m"};
static const paint plain = {"", "", "", "", ""};

static const char *const confidences[] = {[DETECT_HIGH] = "high", [DETECT_MEDIUM] = "medium", [DETECT_LOW] = "low"};

check_place check_place_of(const check *c, uint32_t func, uint64_t addr)
{
    const pta_func *f = &c->program->funcs.data[func];
    const image *img = c->program->modules[f->module]->img;
    check_place place = {.function = f->name, .path = img->path};
    image_frame frames[16];
    uint32_t n = image_frames_at(img, addr, frames, 16), own = 0;
    image_line line;
    while (own + 1 < n && frames[own].at.file && strstr(frames[own].at.file, "/c++/")) /* inlined from the standard library */
        own++;
    if (n && frames[own].at.file) {
        place.file = frames[own].at.file;
        place.line = frames[own].at.line;
        place.column = frames[own].at.column;
        if (frames[own].function && n > own + 1) place.function = frames[own].function;
    } else if (image_line_at(img, addr, &line) && line.file) {
        place.file = line.file;
        place.line = line.line;
        place.column = line.column;
    }
    return place;
}

check_place check_place_at(const check *c, const detect_access *a)
{
    hb_point at = hb_user_point(c->order, a->at);
    if (at.instance == a->at.instance && at.insn == a->at.insn) return check_place_of(c, a->func, a->addr);
    pta_instance instance;
    pta_instance_at(c->result, at.instance, &instance);
    return check_place_of(c, instance.func, c->program->funcs.data[instance.func].lift->insns[at.insn].addr);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void check_origin(const check *c, uint32_t origin, char *to, size_t size)
{
    static const char *const kinds[] = {[HB_MAIN] = "main", [HB_THREAD] = "thread", [HB_EVENT] = "event handler",
                                        [HB_SIGNAL] = "signal handler", [HB_AT_EXIT] = "exit handler",
                                        [HB_ENTRY] = "a caller of", [HB_OUTSIDE] = "code outside, which knows"};
    uint32_t count;
    const hb_origin *o = &hb_origins(c->order, &count)[origin];
    if (o->kind == HB_MAIN) {
        snprintf(to, size, "main");
        return;
    }
    int n = snprintf(to, size, "%s %s", kinds[o->kind], hb_origin_name(c->order, origin));
    if (!o->sites.len || n < 0 || (size_t)n >= size) return;
    hb_point from = hb_user_point(c->order, o->sites.data[0]);
    pta_instance at;
    pta_instance_at(c->result, from.instance, &at);
    const pta_func *f = &c->program->funcs.data[at.func];
    check_place place = check_place_of(c, at.func, f->lift->insns[from.insn].addr);
    if (place.file)
        snprintf(to + n, size - (size_t)n, ", created in %s, %s:%u", place.function, base_name(place.file), place.line);
    else
        snprintf(to + n, size - (size_t)n, ", created in %s", place.function);
}

/* The line of the source, if the source is there. */
static void excerpt(const check_place *place, const paint *p)
{
    enum { WIDE = 160 };
    char line[4096], shown[WIDE + 1];
    if (!place->file) return;
    FILE *file = fopen(place->file, "re");
    bool found = false;
    for (uint32_t n = 1; file && n <= place->line; n++) {
        if (!fgets(line, sizeof line, file)) break;
        if (!strchr(line, '\n') && !feof(file)) { /* a very long line is one line */
            int ch;
            while ((ch = getc(file)) != EOF && ch != '\n')
                continue;
        }
        found = n == place->line;
    }
    if (file) fclose(file);
    if (!found) return;
    line[strcspn(line, "\r\n")] = 0;
    for (char *tab = line; *tab; tab++)
        if (*tab == '\t') *tab = ' ';
    printf("    %s%6u |%s %s\n", p->dim, place->line, p->off, cli_plain(line, shown, sizeof shown));
}

static void print_locks(const check *c, uint32_t set, const paint *p)
{
    char name[300], shown[300];
    bool any = false;
    for (uint32_t i = 0; hb_lock_name(c->order, set, i, name, sizeof name); i++) {
        printf("%s%s", any ? ", " : "           locks held: ", cli_plain(name, shown, sizeof shown));
        any = true;
    }
    printf(any ? "\n" : "           %sno locks held%s\n", p->dim, p->off);
}

static void print_place(const check *c, const detect_access *a, const char *what, const paint *p)
{
    check_place place = check_place_at(c, a);
    char origin[400], shown[400], function[200];
    check_origin(c, a->origin, origin, sizeof origin);
    printf("  %s%s%s in %s", p->bold, what, p->off, cli_plain(place.function, function, sizeof function));
    if (place.file)
        printf(", %s:%u", cli_plain(place.file, shown, sizeof shown), place.line);
    else
        printf(", 0x%llx of %s", (unsigned long long)a->addr, cli_plain(place.path, shown, sizeof shown));
    printf("\n");
    excerpt(&place, p);
    printf("           by %s\n", cli_plain(origin, shown, sizeof shown));
}

static void print_race(const check *c, const detect_warning *w, const paint *p)
{
    char shown[400];
    const char *colour = w->confidence == DETECT_HIGH ? p->red : p->yellow;
    printf("%srace%s on %s%s%s (%u byte%s), %s confidence  %s[%s]%s\n", colour, p->off, p->bold, cli_plain(w->location, shown, sizeof shown),
           p->off, w->size, w->size == 1 ? "" : "s", confidences[w->confidence], p->dim, w->id, p->off);
    if (w->about) printf("  %s\n", cli_plain(w->about, shown, sizeof shown));
    for (uint32_t i = 0; i < w->access_count; i++) {
        const detect_access *a = &w->accesses[i];
        print_place(c, a, a->write ? a->atomic ? "atomic write" : "write" : a->atomic ? "atomic read" : "read", p);
        print_locks(c, a->locks, p);
    }
    if (w->why) printf("  not ordered: %s\n", w->why);
    for (uint32_t i = 0; i < w->reason_count; i++)
        printf("%s%s", i ? "; " : "  because ", w->reasons[i]);
    printf("\n\n");
}

static void print_holder(const check *c, const detect_access *a, const paint *p)
{
    char lock[300], name[300], function[200], shown[400];
    if (a->func == PTA_NO_FUNC || a->lock == HB_NONE) return;
    check_place place = check_place_at(c, a);
    hb_one_lock_name(c->order, a->lock, lock, sizeof lock);
    printf("  %sholding%s %s since %s", p->bold, p->off, cli_plain(lock, name, sizeof name), cli_plain(place.function, function, sizeof function));
    if (place.file)
        printf(", %s:%u\n", cli_plain(place.file, shown, sizeof shown), place.line);
    else
        printf(", 0x%llx of %s\n", (unsigned long long)a->addr, cli_plain(place.path, shown, sizeof shown));
    excerpt(&place, p);
}

static void print_deadlock(const check *c, const detect_warning *w, const paint *p)
{
    char shown[400], lock[300];
    printf("%sdeadlock%s of %s%s%s, %s confidence  %s[%s]%s\n", w->confidence == DETECT_HIGH ? p->red : p->yellow, p->off, p->bold,
           cli_plain(w->location, shown, sizeof shown), p->off, confidences[w->confidence], p->dim, w->id, p->off);
    for (uint32_t i = 0; i < w->access_count; i++) {
        const detect_access *a = &w->accesses[i];
        char what[340], name[300];
        if (a->lock == HB_NONE)
            strcpy(lock, "a lock");
        else
            hb_one_lock_name(c->order, a->lock, lock, sizeof lock);
        snprintf(what, sizeof what, "takes %s", cli_plain(lock, name, sizeof name));
        print_place(c, a, what, p);
        print_locks(c, a->locks, p);
        print_holder(c, &w->holders[i], p);
    }
    for (uint32_t i = 0; i < w->reason_count; i++)
        printf("%s%s", i ? "; " : "  because ", w->reasons[i]);
    printf("\n\n");
}

static void print_stats(const check *c)
{
    const hb_statistics *h = hb_stats(c->order);
    const detect_statistics *d = detect_stats(c->found);
    pta_stats p;
    pta_statistics(c->result, &p);
    uint64_t instructions = 0, unresolved = 0, opaque = 0;
    uint32_t functions = 0, frames = 0;
    for (uint32_t m = 0; m < c->module_count; m++) {
        functions += c->modules[m]->stats.functions;
        instructions += c->modules[m]->stats.instructions;
        unresolved += c->modules[m]->stats.jumps_unresolved;
        opaque += c->modules[m]->stats.ir_opaque;
        frames += c->modules[m]->stats.frames_unknown;
    }
    printf("modules           %u, %u functions, %llu instructions\n", c->module_count, functions, (unsigned long long)instructions);
    printf("not understood    %llu indirect jumps, %llu opaque IR instructions, %u frames, %llu calls of unknown functions\n",
           (unsigned long long)unresolved, (unsigned long long)opaque, frames, (unsigned long long)c->program->unknown_calls);
    printf("                  %llu accesses to unknown memory, %llu to too many places, %llu to nothing known, %u of %u calls of locks\n",
           (unsigned long long)h->accesses_unknown, (unsigned long long)h->accesses_lost, (unsigned long long)h->accesses_nowhere, h->lock_calls_unknown, h->lock_calls);
    printf("origins           %u: %u threads, %u events, %u called from outside\n", h->origins, h->threads, h->events, h->outside);
    printf("accesses          %llu in %llu instances; objects %u, of which %u shared and written\n", (unsigned long long)h->accesses,
           (unsigned long long)p.instances, h->objects, d->places_shared);
    printf("pairs             %llu: %llu guarded, %llu ordered, %llu apart, %llu racing; %llu atomic\n", (unsigned long long)d->pairs,
           (unsigned long long)d->pairs_guarded, (unsigned long long)d->pairs_ordered, (unsigned long long)d->pairs_disjoint,
           (unsigned long long)d->pairs_racing, (unsigned long long)d->pairs_atomic);
    printf("warnings          %u; %u suppressed, %u benign\n", detect_found(c->found)->len, d->suppressed, d->benign);
    printf("seconds           %.3f: %.3f reading, %.3f pointers, %.3f order and locks, %.3f races\n", c->seconds, c->seconds_lift,
           c->seconds_pointer, c->seconds_order, c->seconds_detect);
}

void check_text(const check *c, bool stats)
{
    const paint *p = isatty(STDOUT_FILENO) ? &colours : &plain;
    const detect_warnings *all = detect_found(c->found);
    uint32_t counts[3] = {0}, deadlocks = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        if (all->data[i].kind == DETECT_RACE)
            print_race(c, &all->data[i], p), counts[all->data[i].confidence]++;
        else
            print_deadlock(c, &all->data[i], p), deadlocks++;
    }
    uint32_t races = counts[0] + counts[1] + counts[2];
    printf("%u race%s (%u high, %u medium, %u low), %u deadlock%s\n", races, races == 1 ? "" : "s", counts[0], counts[1], counts[2],
           deadlocks, deadlocks == 1 ? "" : "s");
    if (stats) print_stats(c);
}
