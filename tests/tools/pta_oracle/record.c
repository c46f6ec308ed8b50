/* Reads what libaccesses.so wrote (see tests/dynamorio/accesses.c). */
#include "oracle.h"

#include <stdlib.h>

const char *const seen_names[SEEN_KINDS] = {
    [SEEN_OWN] = "own",       [SEEN_FRAME] = "frame", [SEEN_HEAP] = "heap",        [SEEN_LIBRARY] = "library",
    [SEEN_STATIC] = "static", [SEEN_TLS] = "tls",     [SEEN_EXTERNAL] = "external",
};

enum { MODULES = 1024, LINE = 8192 };

static int by_place(const void *a, const void *b)
{
    const seen *x = a, *y = b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->direction != y->direction) return x->direction < y->direction ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->in != y->in) return x->in < y->in ? -1 : 1;
    if (x->where != y->where) return x->where < y->where ? -1 : 1;
    for (uint32_t i = 0; i < SEEN_OUTER; i++)
        if (x->outer[i].addr != y->outer[i].addr) return x->outer[i].addr < y->outer[i].addr ? -1 : 1;
    return 0;
}

static void add_offset(seen *s, int64_t offset)
{
    for (uint32_t i = 0; i < s->offset_count; i++)
        if (s->offsets[i] == offset) return;
    if (s->offset_count < SEEN_OFFSETS) s->offsets[s->offset_count++] = offset;
}

/* `numbers`: from the record's module numbers to the analysed ones. False: not understood. */
static bool read_access(const char *line, const uint32_t *numbers, seen *s)
{
    unsigned module, width, in;
    unsigned long long addr, where;
    char direction, kind[16];
    int used;
    if (sscanf(line, "a %u %llx %c %u %15s %u %llx%n", &module, &addr, &direction, &width, kind, &in, &where,
               &used) != 7)
        return false;
    if (module >= MODULES || numbers[module] == UINT32_MAX) return false;
    *s = (seen){.module = numbers[module], .addr = addr, .direction = direction, .width = width, .kind = SEEN_KINDS};
    s->in = in < MODULES ? numbers[in] : UINT32_MAX;
    s->where = where;
    for (int more = 0; line[used] == '/' && s->outer_count < SEEN_OUTER; used += more) {
        if (sscanf(line + used, "/%u.%llx%n", &in, &where, &more) != 2 || in >= MODULES || numbers[in] == UINT32_MAX) return false;
        s->outer[s->outer_count].module = numbers[in];
        s->outer[s->outer_count++].addr = where;
    }
    for (uint8_t k = 0; k < SEEN_KINDS; k++)
        if (!strcmp(kind, seen_names[k])) s->kind = k;
    for (const char *at = line + used;;) {
        char *end;
        long long offset = strtoll(at, &end, 10);
        if (end == at) break;
        add_offset(s, offset);
        at = end;
    }
    return s->kind != SEEN_KINDS && s->offset_count && (s->kind >= SEEN_EXTERNAL || s->in != UINT32_MAX);
}

/* `m NUMBER PATH INSTRUCTIONS`; a path may have blanks. */
static void read_module(char *line, char *const *paths, uint32_t path_count, uint32_t *numbers, uint64_t *executed)
{
    unsigned number;
    int used;
    char *last = strrchr(line, ' ');
    if (sscanf(line, "m %u %n", &number, &used) != 1 || number >= MODULES || last <= line + used) return;
    *last = 0;
    char *real = realpath(line + used, NULL);
    for (uint32_t i = 0; real && i < path_count; i++)
        if (!strcmp(real, paths[i])) {
            numbers[number] = i;
            *executed += strtoull(last + 1, NULL, 10);
        }
    free(real);
}

int record_read(const char *file, char *const *paths, uint32_t path_count, seen_list *out, race_error *error)
{
    FILE *from = fopen(file, "r");
    if (!from) return base_fail(error, "%s: cannot be read", file);
    uint32_t numbers[MODULES];
    memset(numbers, 0xff, sizeof numbers);
    static char line[LINE];
    while (fgets(line, sizeof line, from)) {
        line[strcspn(line, "\n")] = 0;
        seen s;
        if (line[0] == 'm')
            read_module(line, paths, path_count, numbers, &out->executed);
        else if (line[0] == 'x')
            vec_push(&out->notes, base_format("%s", line + 2));
        else if (read_access(line, numbers, &s))
            vec_push(&out->all, s);
        else
            out->skipped++;
    }
    fclose(from);
    if (out->all.len) qsort(out->all.data, out->all.len, sizeof *out->all.data, by_place);
    return 0;
}

void record_free(seen_list *list)
{
    for (uint32_t i = 0; i < list->notes.len; i++)
        free(list->notes.data[i]);
    vec_free(&list->notes);
    vec_free(&list->all);
}
