/* Suppression files in ThreadSanitizer's syntax: one `kind:pattern` a line, `#` begins a comment. In a pattern `*` is
 * any text, `^` the beginning and `$` the end; otherwise it may fit anywhere. It is compared with functions, files and
 * modules of both stacks, and with the name of the location. Names of C++ are mangled there: a pattern that says in
 * which scope something is is mangled, too, as far as that can be done without its types. */
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

static bool pattern_matches(const report_pattern *p, const char *name)
{
    if (matches(p->pattern, name)) return true;
    for (int i = 0; i < 2; i++)
        if (p->mangled[i] && strstr(name, "_Z") && matches(p->mangled[i], name)) return true;
    return false;
}

const char *suppress_name(report *r, unsigned wanted, const char *name)
{
    for (uint32_t i = 0; i < r->pattern_count; i++)
        if (r->patterns[i].kind & wanted && pattern_matches(&r->patterns[i], name)) {
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

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '*' || c == '~';
}

static char *put(char *to, const char *text, size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

/* A name behind its length; of one with wildcards that is not known. */
static char *put_name(char *to, const char *name, size_t len)
{
    if (memchr(name, '*', len)) {
        if (*name != '*') *to++ = '*';
        return put(to, name, len);
    }
    char digits[20];
    size_t n = 0;
    for (size_t left = len; left; left /= 10)
        digits[n++] = (char)('0' + left % 10);
    while (n)
        *to++ = digits[--n];
    return put(to, name, len);
}

/* `ns::type::function`, what follows in brackets left out, as in _ZN2ns4type8functionEv; NULL: it is no such name. The
 * last one of a `local` name begins with an L. */
static const char *mangle(report *r, const char *pattern, bool local)
{
    static const char anonymous[] = "(anonymous namespace)";
    char *text = report_memory(r, 4 * strlen(pattern) + 64), *to = text;
    const char *before = NULL;
    size_t before_len = 0, names = 0;
    if (!text) return NULL;
    pattern += *pattern == '^';
    for (bool last = false; !last; names++) {
        const bool is_anonymous = !strncmp(pattern, anonymous, sizeof anonymous - 1);
        size_t len = is_anonymous ? sizeof anonymous - 1 : 0;
        while (!is_anonymous && is_name(pattern[len]))
            len++;
        const char *behind = pattern + len;
        last = !*behind || *behind == '(' || !strcmp(behind, "$");
        if (!len || (!last && (behind[0] != ':' || behind[1] != ':'))) return NULL;
        if (last && local) *to++ = 'L';
        if (is_anonymous) to = put(to, "12_GLOBAL__N_1", 14);
        else if (!names && len == 3 && !memcmp(pattern, "std", 3)) to = put(to, "St", 2);
        else if (last && len == before_len && !memcmp(pattern, before, len)) *to++ = 'C';
        else if (last && *pattern == '~') *to++ = 'D';
        else to = put_name(to, pattern, len);
        before = pattern;
        before_len = len;
        pattern = behind + 2 * !last;
    }
    *to = 0;
    return names > 1 ? text : NULL;
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
        const char *pattern = colon + 1;
        if (kinds[i].kind)
            r->patterns[r->pattern_count++] =
                (report_pattern){kinds[i].kind, pattern, {mangle(r, pattern, false), mangle(r, pattern, true)}, 0};
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
