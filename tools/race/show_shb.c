/* `race show --shb`: the static happens-before graph in words. Of a program: its origins (threads, events, handlers), where they
 * begin, who creates them and who waits for them, and the order in which locks are taken. Of a function: its part of the graph,
 * which all who run it share: what it accesses, takes and creates, who does that and with which locks held. */
#include "tools/race/show.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t func, insn;
    char *text;
    hb_numbers by; /* origins; as words they follow the text */
} event;
typedef VEC(event) events;

static int by_event(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->func != y->func) return x->func < y->func ? -1 : 1;
    if (x->insn != y->insn) return x->insn < y->insn ? -1 : 1;
    return strcmp(x->text, y->text);
}

static void event_free(event *e)
{
    free(e->text);
    vec_free(&e->by);
}

/* In the order of the code; what several instances of a function do alike is one. */
static void events_sort(events *list)
{
    uint32_t kept = 0;
    if (list->len) qsort(list->data, list->len, sizeof *list->data, by_event);
    for (uint32_t i = 0; i < list->len; i++) {
        if (!kept || by_event(&list->data[kept - 1], &list->data[i])) {
            list->data[kept++] = list->data[i];
            continue;
        }
        for (uint32_t k = 0; k < list->data[i].by.len; k++)
            vec_push(&list->data[kept - 1].by, list->data[i].by.data[k]);
        event_free(&list->data[i]);
    }
    list->len = kept;
}

static void events_free(events *list)
{
    for (uint32_t i = 0; i < list->len; i++)
        event_free(&list->data[i]);
    vec_free(list);
}

static void add_event(const show_analysis *a, events *list, hb_point at, char *text)
{
    pta_instance instance;
    uint32_t count;
    pta_instance_at(a->result, at.instance, &instance);
    event e = {.func = instance.func, .insn = at.insn, .text = text};
    hb_origins(a->order, &count);
    for (uint32_t o = 0; o < count; o++)
        if (hb_runs(a->order, o, at.instance)) vec_push(&e.by, o);
    vec_push(list, e);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* What happens, and who does it: each name once. */
static void print_event(const show_analysis *a, event *e)
{
    char plain[1024];
    printf("%s", cli_plain(e->text, plain, sizeof plain));
    if (e->by.len) qsort(e->by.data, e->by.len, sizeof *e->by.data, by_number);
    for (uint32_t i = 0; i < e->by.len; i++) {
        const char *name = hb_origin_name(a->order, e->by.data[i]);
        bool again = false; /* twins, and threads of one function */
        for (uint32_t k = 0; k < i && !again; k++)
            again = !strcmp(name, hb_origin_name(a->order, e->by.data[k]));
        if (!again) printf("%s%s", i ? ", " : "; by ", cli_plain(name, plain, sizeof plain));
    }
    printf("\n");
}

/* --- words ----------------------------------------------------------------------------------------------------------------- */

static char *place_text(const show_analysis *a, uint32_t func, uint32_t insn)
{
    const pta_func *f = &a->program->funcs.data[func];
    uint64_t addr = f->lift->insns[insn].addr;
    image_line line;
    if (!image_line_at(a->program->modules[f->module]->img, addr, &line) || !line.file)
        return base_format("%s, 0x%llx", f->name, (unsigned long long)addr);
    const char *slash = strrchr(line.file, '/');
    return base_format("%s, %s:%u", f->name, slash ? slash + 1 : line.file, line.line);
}

static char *locks_text(const show_analysis *a, uint32_t set)
{
    char *text = NULL, name[300];
    uint32_t lock;
    for (uint32_t i = 0; set != HB_NONE && hb_lock_shown(a->order, set, i, &lock); i++) {
        detect_lock_name(a->found, lock, name, sizeof name);
        char *longer = base_format("%s%s%s%s", text ? text : "", text ? ", " : "", name, hb_lock_shared(a->order, lock) ? " (shared)" : "");
        free(text);
        text = longer;
    }
    return text ? text : base_format("no locks");
}

/* --- of a program ----------------------------------------------------------------------------------------------------------- */

static void origin_events(const show_analysis *a, const hb_points *at, const char *what, events *out)
{
    for (uint32_t i = 0; i < at->len; i++) {
        hb_point point = hb_user_point(a->order, at->data[i]);
        pta_instance instance;
        pta_instance_at(a->result, point.instance, &instance);
        char *place = place_text(a, instance.func, point.insn);
        add_event(a, out, point, base_format("%s in %s", what, place));
        free(place);
    }
}

static void origin_links(const show_analysis *a, uint32_t origin, events *out)
{
    uint32_t count;
    hb_points waits = {0};
    origin_events(a, &hb_origins(a->order, &count)[origin].sites, "created", out);
    hb_waits_for(a->order, origin, &waits);
    origin_events(a, &waits, "waited for", out);
    vec_free(&waits);
    events_sort(out);
}

/* Not the other of two that stand for any number, nor a name outside of the file whose code nobody has seen. */
static bool is_shown(const show_analysis *a, const hb_origin *origins, uint32_t o)
{
    return !o || (origins[o].twin > o && a->program->funcs.data[origins[o].entry].lift);
}

static void print_origins(const show_analysis *a)
{
    uint32_t count;
    const hb_origin *origins = hb_origins(a->order, &count);
    char plain[512];
    printf("origins\n");
    for (uint32_t o = 0; o < count; o++) {
        events links = {0};
        if (!is_shown(a, origins, o)) continue;
        printf("  %s%s%s%s\n", hb_kind_name(origins[o].kind), o ? " " : "", o ? cli_plain(hb_origin_name(a->order, o), plain, sizeof plain) : "",
               origins[o].overlaps || origins[o].twin != HB_NONE ? ", several at the same time" : "");
        origin_links(a, o, &links);
        for (uint32_t i = 0; i < links.len; i++) {
            printf("    ");
            print_event(a, &links.data[i]);
        }
        events_free(&links);
    }
}

typedef struct {
    char *from, *to;
    char *at;
} lock_edge;
typedef VEC(lock_edge) lock_edges;

static int by_edge(const void *a, const void *b)
{
    const lock_edge *x = a, *y = b;
    int order = strcmp(x->from, y->from);
    if (!order) order = strcmp(x->to, y->to);
    return order ? order : strcmp(x->at, y->at);
}

static char *taken_text(const show_analysis *a, const hb_taking *t)
{
    char name[300];
    uint32_t lock = t->lock != HB_NONE ? t->lock : t->value;
    if (lock == HB_NONE) return base_format("a lock that is not known");
    detect_lock_name(a->found, lock, name, sizeof name);
    return base_format("%s", name);
}

/* Which lock is taken while which is held; each pair of names and places once. */
static void find_lock_edges(const show_analysis *a, lock_edges *out)
{
    hb_takings takings = {0};
    hb_lock_takings(a->order, &takings);
    for (uint32_t i = 0; i < takings.len; i++) {
        const hb_taking *t = &takings.data[i];
        uint32_t held;
        pta_instance instance;
        if (t->held == HB_NONE) continue;
        pta_instance_at(a->result, t->at.instance, &instance);
        for (uint32_t k = 0; hb_lock_shown(a->order, t->held, k, &held); k++) {
            char name[300];
            detect_lock_name(a->found, held, name, sizeof name);
            vec_push(out, (lock_edge){base_format("%s", name), taken_text(a, t), place_text(a, instance.func, t->at.insn)});
        }
    }
    vec_free(&takings);
    uint32_t kept = 0;
    if (out->len) qsort(out->data, out->len, sizeof *out->data, by_edge);
    for (uint32_t i = 0; i < out->len; i++) {
        if (kept && !by_edge(&out->data[kept - 1], &out->data[i])) {
            free(out->data[i].from);
            free(out->data[i].to);
            free(out->data[i].at);
        } else {
            out->data[kept++] = out->data[i];
        }
    }
    out->len = kept;
}

static void lock_edges_free(lock_edges *list)
{
    for (uint32_t i = 0; i < list->len; i++) {
        free(list->data[i].from);
        free(list->data[i].to);
        free(list->data[i].at);
    }
    vec_free(list);
}

static void print_text(const show_analysis *a)
{
    lock_edges edges = {0};
    char from[300], to[300], at[300];
    print_origins(a);
    find_lock_edges(a, &edges);
    if (edges.len) printf("locks that are taken while others are held\n");
    for (uint32_t i = 0; i < edges.len; i++)
        printf("  %s -> %s in %s\n", cli_plain(edges.data[i].from, from, sizeof from), cli_plain(edges.data[i].to, to, sizeof to),
               cli_plain(edges.data[i].at, at, sizeof at));
    lock_edges_free(&edges);
}

static void print_quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar((unsigned char)*text < ' ' || *text == 127 ? '?' : *text);
    }
    putchar('"');
}

/* Creations are solid, waits dashed; locks are boxes. */
static void print_dot(const show_analysis *a)
{
    uint32_t count;
    const hb_origin *origins = hb_origins(a->order, &count);
    lock_edges edges = {0};
    printf("digraph shb {\n");
    for (uint32_t o = 0; o < count; o++) {
        if (!is_shown(a, origins, o)) continue;
        hb_points waits = {0};
        char *name = base_format("%s%s%s", hb_kind_name(origins[o].kind), o ? " " : "", o ? hb_origin_name(a->order, o) : "");
        printf("  o%u [label=", o);
        print_quoted(name);
        printf("%s];\n", origins[o].overlaps || origins[o].twin != HB_NONE ? ", peripheries=2" : "");
        free(name);
        for (uint32_t i = 0; i < origins[o].parents.len; i++) {
            uint32_t parent = origins[o].parents.data[i];
            if (parent && origins[parent].twin < parent) parent = origins[parent].twin;
            printf("  o%u -> o%u;\n", parent, o);
        }
        hb_waits_for(a->order, o, &waits);
        for (uint32_t k = 0; waits.len && k < count; k++)
            if (is_shown(a, origins, k) && hb_runs(a->order, k, waits.data[0].instance)) printf("  o%u -> o%u [style=dashed];\n", o, k);
        vec_free(&waits);
    }
    find_lock_edges(a, &edges);
    printf("  node [shape=box];\n");
    for (uint32_t i = 0; i < edges.len; i++) {
        printf("  ");
        print_quoted(edges.data[i].from);
        printf(" -> ");
        print_quoted(edges.data[i].to);
        printf(" [label=");
        print_quoted(edges.data[i].at);
        printf("];\n");
    }
    lock_edges_free(&edges);
    printf("}\n");
}

/* --- of a function ---------------------------------------------------------------------------------------------------------- */

static void touch_events(const show_analysis *a, uint32_t func, events *out)
{
    uint32_t count;
    const hb_touch *touches = hb_touches(a->order, &count);
    for (uint32_t i = hb_first_touch(a->order, func); i < count && touches[i].func == func; i++) {
        const hb_touch *t = &touches[i];
        const hb_place *places = hb_places(a->order, t);
        char *where = NULL, text[256];
        for (uint32_t p = 0; p < t->place_count; p++) {
            pta_describe(a->result, &places[p].place, text, sizeof text);
            if (where && strstr(where, text)) continue;
            char *longer = base_format("%s%s%s", where ? where : "", where ? ", " : "", text);
            free(where);
            where = longer;
        }
        hb_point at = {t->instance, t->insn};
        char *locks = locks_text(a, hb_locks_at(a->order, at));
        add_event(a, out, at,
                  base_format("%s%s%s %s; %s held", t->flags & IR_ATOMIC ? "atomic " : "", t->flags & IR_READ ? "read" : "",
                              t->flags & IR_WRITE ? t->flags & IR_READ ? " and write" : "write" : "", where ? where : "of what is not known", locks));
        free(where);
        free(locks);
    }
}

static void sync_events(const show_analysis *a, uint32_t func, events *out)
{
    hb_takings takings = {0};
    uint32_t count;
    pta_instance instance;
    const hb_origin *origins = hb_origins(a->order, &count);
    hb_lock_takings(a->order, &takings);
    for (uint32_t i = 0; i < takings.len; i++) {
        const hb_taking *t = &takings.data[i];
        pta_instance_at(a->result, t->at.instance, &instance);
        if (instance.func != func) continue;
        char *lock = taken_text(a, t), *held = locks_text(a, t->held);
        add_event(a, out, t->at, base_format("%s %s%s; %s held", t->tries ? "tries" : "takes", lock, t->shared ? " (shared)" : "", held));
        free(lock);
        free(held);
    }
    vec_free(&takings);
    for (uint32_t o = 1; o < count; o++) {
        hb_points waits = {0};
        for (uint32_t i = 0; i < origins[o].sites.len; i++) {
            pta_instance_at(a->result, origins[o].sites.data[i].instance, &instance);
            if (instance.func == func)
                add_event(a, out, origins[o].sites.data[i], base_format("creates %s %s", hb_kind_name(origins[o].kind), hb_origin_name(a->order, o)));
        }
        hb_waits_for(a->order, o, &waits);
        for (uint32_t i = 0; i < waits.len; i++) {
            pta_instance_at(a->result, waits.data[i].instance, &instance);
            if (instance.func == func) add_event(a, out, waits.data[i], base_format("waits for %s", hb_origin_name(a->order, o)));
        }
        vec_free(&waits);
    }
}

static void print_function(const show_analysis *a, uint32_t func)
{
    const pta_func *f = &a->program->funcs.data[func];
    char plain[1024];
    uint32_t line = 0;
    events list = {0};
    touch_events(a, func, &list);
    sync_events(a, func, &list);
    events_sort(&list);
    printf("function %s\n", cli_plain(f->name, plain, sizeof plain));
    for (uint32_t i = 0; i < list.len; i++) {
        uint64_t addr = f->lift->insns[list.data[i].insn].addr;
        show_line(a->list.images[f->module], addr, &line);
        printf("  0x%llx  ", (unsigned long long)addr);
        print_event(a, &list.data[i]);
    }
    events_free(&list);
}

int show_order(const char *path, char **names, int count, bool dot, const show_pointer *how)
{
    show_analysis a = {0};
    if (show_analysis_open(&a, path, how) != EXIT_CLEAN) return EXIT_USAGE;
    show_order_open(&a);
    int code = EXIT_CLEAN;
    if (!count && dot)
        print_dot(&a);
    else if (!count)
        print_text(&a);
    for (int k = 0; k < count; k++) {
        bool found = false;
        for (uint32_t f = 0; f < a.program->funcs.len; f++) {
            if (!show_is_named(&a, &a.program->funcs.data[f], names[k])) continue;
            found = true;
            print_function(&a, f);
        }
        if (!found) code = cli_error("%s: no function %s", path, names[k]);
    }
    show_analysis_close(&a);
    return code;
}
