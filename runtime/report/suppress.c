/* Suppression files in ThreadSanitizer's syntax: one `kind:pattern` a line, `#` begins a comment. In a pattern `*` is
 * any text, `^` the beginning and `$` the end; otherwise it may fit anywhere. It is compared with functions, files and
 * modules of both stacks, and with the name of the location. */
#include "runtime/report/report.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t kind;
} kinds[] = {
    {"race", SUPPRESS_RACE},
    {"race_top", SUPPRESS_RACE_TOP},
    {"deadlock", SUPPRESS_DEADLOCK},
    {"called_from_lib", SUPPRESS_LIBRARY},
    {"thread", 0}, {"mutex", 0}, {"signal", 0}, /* of ThreadSanitizer, about what is not reported here */
};

/* Does the pattern from here on fit at `text` or later? `anchored`: only at `text`. */
static bool fits(const char *pattern, const char *text, bool anchored)
{
    while (*pattern) {
        if (*pattern == '*') {
            anchored = false;
            pattern++;
            continue;
        }
        if (*pattern == '$' && !pattern[1]) return anchored ? !*text : true;
        size_t len = 0;
        while (pattern[len] && pattern[len] != '*' && !(pattern[len] == '$' && !pattern[len + 1]))
            len++;
        bool to_end = pattern[len] == '$';
        const char *found = NULL;
        for (const char *at = text; !found; at++) {
            if (!strncmp(at, pattern, len) && (!to_end || !at[len])) found = at;
            if (anchored || !*at) break;
        }
        if (!found) return false;
        text = found + len;
        pattern += len;
        anchored = true;
    }
    return true;
}

static bool matches(const char *pattern, const char *text)
{
    if (!*text) return false;
    bool anchored = *pattern == '^';
    return fits(pattern + anchored, text, anchored);
}

const char *suppress_name(report *r, unsigned wanted, const char *name)
{
    for (uint32_t i = 0; i < r->pattern_count; i++)
        if (r->patterns[i].kind & wanted && matches(r->patterns[i].pattern, name)) {
            r->patterns[i].used++;
            return r->patterns[i].pattern;
        }
    return NULL;
}

typedef struct {
    report *r;
    unsigned kinds;
    const char *found;
} pattern_walk;

static bool walk_frame(void *context, const report_frame *f)
{
    pattern_walk *w = context;
    const char *const names[] = {f->function, f->file, f->module ? f->module->name : ""};
    for (unsigned i = 0; i < sizeof names / sizeof *names && !w->found; i++)
        w->found = suppress_name(w->r, w->kinds, names[i]);
    if (!w->found && f->module) w->found = suppress_name(w->r, w->kinds & SUPPRESS_LIBRARY, f->module->name);
    if (!f->inlined) w->kinds &= ~(unsigned)SUPPRESS_RACE_TOP; /* only the innermost function */
    return !w->found;
}

const char *suppress_stack(report *r, unsigned wanted, const report_stack *stack)
{
    if (!r->pattern_count) return NULL;
    pattern_walk w = {r, wanted, NULL};
    frames_walk(r, stack, walk_frame, &w);
    return w.found;
}

/* One line, without its end. False: it is not one of the syntax. */
static bool take_line(report *r, char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if (!*line || *line == '#') return true;
    char *colon = strchr(line, ':');
    if (!colon) return false;
    *colon = 0;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(line, kinds[i].name)) continue;
        if (r->pattern_count == REPORT_PATTERNS) return false;
        if (kinds[i].kind) r->patterns[r->pattern_count++] = (report_pattern){kinds[i].kind, colon + 1, 0};
        return true;
    }
    return false;
}

bool suppress_load(report *r, const char *path, const char **problem)
{
    size_t size;
    const char *map = r->host.map(r->host.context, path, &size);
    if (!map) {
        *problem = "the suppressions cannot be read";
        return false;
    }
    char *text = report_memory(r, size + 1); /* patterns point into it */
    if (text) memcpy(text, map, size);
    r->host.unmap(r->host.context, map, size);
    if (!text) {
        *problem = "not enough memory for the suppressions";
        return false;
    }
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (!end) end = text + size;
        *end = 0;
        char *last = end;
        while (last > line && (last[-1] == ' ' || last[-1] == '\r' || last[-1] == '\t'))
            *--last = 0;
        if (!take_line(r, line)) {
            *problem = "a line of the suppressions is not kind:pattern, or there are too many";
            return false;
        }
        line = end + 1;
    }
    return true;
}
