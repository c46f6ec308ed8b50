/* What the user does not want to see. ThreadSanitizer's syntax: lines `race:PATTERN` and `deadlock:PATTERN`, where the pattern,
 * with `*` for anything, is looked for in function names, file names and, for races, variable names; `^` and `$` pin its ends. Names
 * of C++ may be written as they are in the source or mangled.
 * Lines of other kinds are theirs (`thread:`, `mutex:`, ...) and mean nothing here; `#` begins a comment. */
#include "static/detect/private.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct {
    bool deadlock;
    char *pattern;
} rule;

struct detect_suppressions {
    VEC(rule) rules;
};

static const char *const kinds[] = {"race", "deadlock", "thread", "mutex", "signal", "called_from_lib", "race_top"};

detect_suppressions *detect_suppressions_read(const char *path, const char *text, race_error *error)
{
    detect_suppressions *s = base_alloc_zero(1, sizeof *s);
    unsigned line = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n");
        const char *from = at, *to = at + len;
        line++;
        at += len + (at[len] == '\n');
        while (from < to && isspace((unsigned char)*from))
            from++;
        while (to > from && isspace((unsigned char)to[-1]))
            to--;
        if (from == to || *from == '#') continue;
        const char *colon = memchr(from, ':', (size_t)(to - from));
        int kind = -1;
        for (unsigned k = 0; colon && k < sizeof kinds / sizeof *kinds; k++)
            if (strlen(kinds[k]) == (size_t)(colon - from) && !memcmp(kinds[k], from, (size_t)(colon - from))) kind = (int)k;
        if (kind < 0 || colon + 1 == to) {
            base_fail(error, "%s:%u: not a suppression (race:PATTERN or deadlock:PATTERN)", path, line);
            detect_suppressions_free(s);
            return NULL;
        }
        bool race = kind == 0 || kind == 6;
        if (!race && kind != 1) continue;
        rule r = {.deadlock = !race, .pattern = base_format("%.*s", (int)(to - colon - 1), colon + 1)};
        vec_push(&s->rules, r);
    }
    return s;
}

void detect_suppressions_free(detect_suppressions *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->rules.len; i++)
        free(s->rules.data[i].pattern);
    vec_free(&s->rules);
    free(s);
}

/* `*` stands for anything; the whole of `text` must match. Linear: after a mismatch only the last star is tried again. */
static bool matches_all(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool matches(const char *pattern, const char *text)
{
    if (!text) return false;
    size_t len = strlen(pattern);
    bool begins = *pattern == '^', ends = len && pattern[len - 1] == '$';
    char *whole = base_format("%s%.*s%s", begins ? "" : "*", (int)(len - begins - (ends && len > (size_t)begins)), pattern + begins,
                              ends ? "" : "*");
    bool found = matches_all(whole, text);
    free(whole);
    return found;
}

/* A name, or what it is in the source. */
static bool names(const detect *d, const char *pattern, const char *name)
{
    char readable[4096];
    if (!name) return false;
    if (matches(pattern, name)) return true;
    return strstr(name, "_Z") && d->options.readable && d->options.readable(d->options.with, name, readable, sizeof readable) &&
           matches(pattern, readable);
}

/* The location as it is called, and by the variable's symbol, which says its namespace or class. */
static bool names_location(const detect *d, const char *pattern, const detect_warning *w)
{
    if (names(d, pattern, w->location) || names(d, pattern, w->symbol)) return true;
    if (!w->symbol || strncmp(w->symbol, "_Z", 2)) return false;
    char *whole = base_format("%s%s", w->symbol, w->location + strcspn(w->location, ".[+ "));
    bool found = names(d, pattern, whole);
    free(whole);
    return found;
}

bool detect_suppressed(const detect *d, const detect_warning *w)
{
    const detect_suppressions *s = d->options.suppressions;
    for (uint32_t r = 0; s && r < s->rules.len; r++) {
        const rule *of = &s->rules.data[r];
        if (of->deadlock != (w->kind == DETECT_DEADLOCK)) continue;
        if (names_location(d, of->pattern, w)) return true;
        for (uint32_t i = 0; i < w->access_count; i++) {
            image_frame frames[16];
            uint32_t n = image_frames_at(detect_image(d, w->accesses[i].func), w->accesses[i].addr, frames, 16);
            if (names(d, of->pattern, d->program->funcs.data[w->accesses[i].func].name)) return true;
            for (uint32_t f = 0; f < n; f++)
                if (names(d, of->pattern, frames[f].function) || matches(of->pattern, frames[f].at.file)) return true;
        }
    }
    return false;
}
