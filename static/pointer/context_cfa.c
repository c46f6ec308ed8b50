/* Call strings: the context is the last k calls; one more stands for all calls through wild pointers. */
#include <stdio.h>

#include "static/pointer/view.h"

enum { MOST = 4 };

typedef struct {
    uint32_t calls[MOST], count; /* innermost last */
} call_string;

enum { ANY = 1 };

typedef struct {
    VEC(call_string) strings; /* [0]: empty; [ANY]: through wild pointers */
    map64 map;
} string_state;

static uint32_t intern(string_state *s, call_string string)
{
    uint64_t hash = string.count;
    for (uint32_t i = 0; i < string.count; i++)
        hash = map_hash(hash * 31 + string.calls[i] + 1);
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&s->map, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = s->strings.len;
            vec_push(&s->strings, string);
            return *at;
        }
        const call_string *known = &s->strings.data[*at];
        if (known->count == string.count && !memcmp(known->calls, string.calls, string.count * sizeof *string.calls)) return *at;
    }
}

static uint32_t enter(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin)
{
    (void)func, (void)twin;
    string_state *s = p->rules_state;
    if (!s) {
        s = p->rules_state = base_alloc_zero(1, sizeof *s);
        vec_push(&s->strings, (call_string){0});
        vec_push(&s->strings, (call_string){.calls = {UINT32_MAX}, .count = 1});
    }
    if (context_is_wild(p, caller, call)) return ANY;
    call_string string = s->strings.data[p->contexts.data[p->instances.data[caller].context].base], longer = {0};
    uint32_t k = p->options.k < MOST ? p->options.k : MOST, keep = string.count < k ? string.count : k - 1;
    if (!k) return 0;
    for (uint32_t i = 0; i < keep; i++)
        longer.calls[i] = string.calls[string.count - keep + i];
    longer.calls[keep] = call;
    longer.count = keep + 1;
    return intern(s, longer);
}

static uint64_t hash(const pta *p, uint32_t base)
{
    const string_state *s = p->rules_state;
    uint64_t h = 0;
    for (uint32_t i = 0; s && i < s->strings.data[base].count; i++)
        h = map_hash(h * 31 + view_call_of(p, s->strings.data[base].calls[i]) + 1);
    return h;
}

static int compare(const pta *p, uint32_t a, uint32_t b)
{
    const string_state *s = p->rules_state;
    if (a <= ANY || b <= ANY || !s) return a < b ? -1 : a > b;
    const call_string *x = &s->strings.data[a], *y = &s->strings.data[b];
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return context_compare_calls(p, x->calls, y->calls, x->count);
}

static void describe(const pta *p, uint32_t base, char *to, size_t size)
{
    const string_state *s = p->rules_state;
    size_t used = 0;
    if (size) *to = 0;
    for (uint32_t i = 0; s && i < s->strings.data[base].count && used < size; i++) {
        if (s->strings.data[base].calls[i] == UINT32_MAX) continue;
        const pta_call *call = &view_program(p)->calls.data[view_call_of(p, s->strings.data[base].calls[i])];
        used += (size_t)snprintf(to + used, size - used, "%s%s+0x%llx", i ? " > " : "",
                                 view_program(p)->funcs.data[call->caller].name, (unsigned long long)call->addr);
    }
}

static void close_rules(pta *p)
{
    string_state *s = p->rules_state;
    if (!s) return;
    vec_free(&s->strings);
    map_free(&s->map);
    free(s);
}

const context_rules context_cfa = {enter, context_one_twin, context_one_thread, hash, compare, describe, close_rules};
