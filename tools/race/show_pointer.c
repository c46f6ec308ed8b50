/* `race show --pts` and `--callgraph`: what the pointer analysis knows, in words. */
#include "tools/race/show.h"

#include <stdlib.h>
#include <string.h>

bool show_context(const char *text, show_pointer *out)
{
    static const struct {
        const char *name;
        pta_context_kind kind;
        long k; /* without a number behind the name; 0: there has to be one */
    } kinds[] = {{"none", PTA_CONTEXT_NONE, 1}, {"origin", PTA_CONTEXT_ORIGIN, 1}, {"cfa", PTA_CONTEXT_CFA, 0}};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen(kinds[i].name);
        long k = kinds[i].k;
        if (strncmp(text, kinds[i].name, len)) continue;
        bool numbered = text[len] == ':' && kinds[i].kind != PTA_CONTEXT_NONE;
        if (numbered ? !cli_number(text + len + 1, 1, 4, &k) : text[len] || !k) return false;
        out->context = (int)kinds[i].kind;
        out->k = (unsigned)k;
        return true;
    }
    return false;
}

void show_analysis_close(show_analysis *a)
{
    detect_close(a->found);
    hb_close(a->order);
    pta_close(a->result);
    pta_program_close(a->program);
    for (uint32_t i = 0; i < a->list.count; i++)
        lift_close(a->modules[i]);
    free(a->modules);
    image_list_close(&a->list);
}

int show_analysis_open(show_analysis *a, const char *path, const show_pointer *how)
{
    race_error error;
    if (image_open_all(path, &a->list, &error) < 0) return cli_error("%s", error.text);
    a->modules = base_alloc_zero(a->list.count, sizeof *a->modules);
    for (uint32_t i = 0; i < a->list.count; i++)
        a->modules[i] = lift_open(a->list.images[i], &(lift_options){.jobs = how->jobs});
    pta_wishes wishes = {.asks = detect_config_asks, .model = detect_config_model};
    a->program = pta_program_open_for(a->modules, a->list.count, how->jobs, &wishes);
    pta_options options = {.context = (pta_context_kind)how->context, .k = how->k, .once = true, .jobs = how->jobs, .patient = true};
    if (pta_open(a->program, &options, &a->result, &error)) {
        show_analysis_close(a);
        return cli_error("%s: %s", path, error.text);
    }
    return EXIT_CLEAN;
}

void show_order_open(show_analysis *a)
{
    a->order = hb_open(a->result, a->program, &(hb_options){0});
    a->found = detect_open(a->order, a->result, a->program, &(detect_options){0});
}

void show_line(const image *img, uint64_t addr, uint32_t *last)
{
    image_line line;
    if (!image_line_at(img, addr, &line) || !line.file || line.line == *last) return;
    const char *slash = strrchr(line.file, '/');
    printf("    %s:%u\n", slash ? slash + 1 : line.file, line.line);
    *last = line.line;
}

typedef struct {
    char text[256];
    uint32_t at;
} place_text;

static int by_text(const void *a, const void *b)
{
    const place_text *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

static int by_place(const void *a, const void *b)
{
    const place_text *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Places in words, each once: what different threads have of one kind reads the same. */
static uint32_t describe_places(const show_analysis *a, const pta_places *places, place_text *texts)
{
    for (uint32_t i = 0; i < places->len; i++) {
        pta_describe(a->result, &places->data[i], texts[i].text, sizeof texts[i].text);
        texts[i].at = i;
    }
    qsort(texts, places->len, sizeof *texts, by_text);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < places->len; i++)
        if (!kept || strcmp(texts[kept - 1].text, texts[i].text)) texts[kept++] = texts[i];
    qsort(texts, kept, sizeof *texts, by_place);
    return kept;
}

void show_places(const show_analysis *a, const pta_access *access, pta_places *places)
{
    char plain[256];
    pta_access_places(a->result, access, places);
    place_text *texts = base_alloc((places->len + 1) * sizeof *texts);
    uint32_t count = describe_places(a, places, texts);
    for (uint32_t i = 0; i < count; i++)
        printf("%s%s", i ? ", " : "", cli_plain(texts[i].text, plain, sizeof plain));
    free(texts);
    if (!places->len) printf("nothing");
}

bool show_is_named(const show_analysis *a, const pta_func *func, const char *name)
{
    const lift_func *found = func->lift ? lift_func_named(a->modules[func->module], name) : NULL;
    return found && found == func->lift;
}

int show_points_to(const char *path, char **names, int count, const show_pointer *how)
{
    show_analysis a = {0};
    if (show_analysis_open(&a, path, how) != EXIT_CLEAN) return EXIT_USAGE;
    int code = EXIT_CLEAN;
    pta_places places = {0};
    for (int k = 0; k < count; k++) {
        bool found = false;
        for (uint32_t f = 0; f < a.program->funcs.len; f++) {
            const pta_func *func = &a.program->funcs.data[f];
            if (!show_is_named(&a, func, names[k])) continue;
            found = true;
            uint32_t accesses, line = 0;
            const pta_access *all = pta_accesses(a.program, f, &accesses);
            printf("function %s\n", func->name);
            for (uint32_t i = 0; i < accesses; i++) {
                show_line(a.list.images[func->module], func->lift->insns[all[i].insn].addr, &line);
                printf("  0x%llx  %s%s%u  ", (unsigned long long)func->lift->insns[all[i].insn].addr, all[i].flags & IR_READ ? "r" : "",
                       all[i].flags & IR_WRITE ? "w" : "", all[i].width);
                show_places(&a, &all[i], &places);
                putchar('\n');
            }
        }
        if (!found) code = cli_error("%s: no function %s", path, names[k]);
    }
    vec_free(&places);
    show_analysis_close(&a);
    return code;
}

static int by_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    int order = strcmp(x[0], y[0]);
    return order ? order : strcmp(x[1], y[1]);
}

int show_call_graph(const char *path, const show_pointer *how)
{
    show_analysis a = {0};
    if (show_analysis_open(&a, path, how) != EXIT_CLEAN) return EXIT_USAGE;
    pta_call_edge *edges;
    uint32_t count = pta_call_graph(a.result, &edges);
    const char *(*names)[2] = base_alloc(count * sizeof *names);
    for (uint32_t i = 0; i < count; i++) {
        pta_instance caller, callee;
        pta_instance_at(a.result, edges[i].caller, &caller);
        pta_instance_at(a.result, edges[i].callee, &callee);
        names[i][0] = a.program->funcs.data[caller.func].name;
        names[i][1] = a.program->funcs.data[callee.func].name;
    }
    if (count) qsort(names, count, sizeof *names, by_names);
    for (uint32_t i = 0; i < count; i++) {
        char from[256], to[256];
        if (i && !by_names(names[i], names[i - 1])) continue;
        printf("%s -> %s\n", cli_plain(names[i][0], from, sizeof from), cli_plain(names[i][1], to, sizeof to));
    }
    free(names);
    free(edges);
    show_analysis_close(&a);
    return EXIT_CLEAN;
}
