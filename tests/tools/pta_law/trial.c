/* One program state and what must hold in it; and the way from a failure to a small one. */
#include "tests/tools/pta_law/law.h"

#include <stdio.h>

/* --- the dead statements ----------------------------------------------------------------------------------------- */

bool *law_flags(const pta_program *program)
{
    VEC(bool) flags = {0};
    for (uint32_t f = 0; f < program->funcs.len; f++)
        for (uint32_t s = 0; s < program->funcs.data[f].stmts.len; s++)
            vec_push(&flags, program->funcs.data[f].stmts.data[s].dead);
    return flags.data;
}

static void set_flags(pta_program *program, const bool *flags)
{
    for (uint32_t f = 0; f < program->funcs.len; f++)
        for (uint32_t s = 0; s < program->funcs.data[f].stmts.len; s++)
            program->funcs.data[f].stmts.data[s].dead = *flags++;
}

static pta_stmt *stmt_of(const law *l, const pta_edit *edit)
{
    return &l->program->funcs.data[edit->func].stmts.data[edit->stmt];
}

/* --- the analyses ------------------------------------------------------------------------------------------------ */

void law_close(law *l, law_state *s)
{
    for (uint32_t t = 0; t < l->thread_count; t++)
        pta_close(s->analyses[t]);
    *s = (law_state){0};
}

int law_open(law *l, law_state *s, race_error *error)
{
    *s = (law_state){0};
    for (uint32_t t = 0; t < l->thread_count; t++) {
        pta_options options = l->options;
        options.jobs = l->threads[t];
        if (!pta_open(l->program, &options, &s->analyses[t], error)) continue;
        law_close(l, s);
        return -1;
    }
    return 0;
}

int law_update(law *l, law_state *s, const pta_edit *list, uint32_t count, race_error *error)
{
    bool *before = base_alloc(count ? count : 1);
    int status = 0;
    for (uint32_t i = 0; i < count; i++)
        before[i] = stmt_of(l, &list[i])->dead;
    for (uint32_t t = 0; t < l->thread_count && !status; t++) {
        for (uint32_t i = count; t && i-- > 0;) /* an update marks the statements, and would find its work done */
            stmt_of(l, &list[i])->dead = before[i];
        double start = tool_now();
        status = pta_update(s->analyses[t], list, count, error);
        double seconds = tool_now() - start;
        l->update_seconds += seconds;
        if (seconds > l->worst) l->worst = seconds;
    }
    free(before);
    return status;
}

/* From scratch with the first number of threads, or with the last for one result only. */
static int scratch_hash(law *l, bool once, uint64_t *hash, race_error *error)
{
    pta_options options = l->options;
    pta *fresh;
    options.once = once;
    options.jobs = l->threads[once ? l->thread_count - 1 : 0];
    double start = tool_now();
    int status = pta_open(l->program, &options, &fresh, error);
    if (!status) *hash = pta_relation_hash(fresh);
    pta_close(fresh);
    l->scratch_seconds += tool_now() - start;
    return status;
}

law_verdict law_check(law *l, const law_state *s, char *text, size_t size)
{
    race_error error;
    uint64_t fresh, once;
    if (scratch_hash(l, false, &fresh, &error)) return LAW_STOPPED;
    for (uint32_t t = 0; s && t < l->thread_count; t++) {
        if (pta_relation_hash(s->analyses[t]) == fresh) continue;
        snprintf(text, size, "updated with %d threads: another result than from scratch", l->threads[t]);
        return LAW_UPDATED;
    }
    if (scratch_hash(l, true, &once, &error)) return LAW_STOPPED;
    if (once == fresh) return LAW_HOLDS;
    snprintf(text, size, "from scratch for one result with %d threads: another result than with %d",
             l->threads[l->thread_count - 1], l->threads[0]);
    return LAW_SCRATCH;
}

law_verdict law_interrupt(law *l, law_state *s, const edit_list *last, volatile int *stop, char *text, size_t size)
{
    race_error error;
    edit_list back = {0};
    for (uint32_t i = 0; i < last->len; i++)
        vec_push(&back, (pta_edit){last->data[i].func, last->data[i].stmt, !last->data[i].insert});
    bool *before = law_flags(l->program), changed = false;
    for (uint32_t t = 0; t < l->thread_count && !changed; t++) {
        *stop = 1;
        changed = !pta_update(s->analyses[t], back.data, back.len, &error);
        *stop = 0;
        bool *after = law_flags(l->program);
        uint32_t at = 0;
        for (uint32_t f = 0; f < l->program->funcs.len; f++)
            for (uint32_t i = 0; i < l->program->funcs.data[f].stmts.len; i++, at++)
                changed |= before[at] != after[at];
        free(after);
        changed |= pta_update(s->analyses[t], NULL, 0, &error) && !*stop;
    }
    free(before);
    vec_free(&back);
    if (*stop) return LAW_STOPPED; /* time is over */
    if (!changed) return law_check(l, s, text, size);
    snprintf(text, size, "an interrupted update was not without effect");
    return LAW_UPDATED;
}

/* --- histories --------------------------------------------------------------------------------------------------- */

void law_history_clear(law_history *h)
{
    for (uint32_t i = 0; i < h->updates.len; i++)
        vec_free(&h->updates.data[i]);
    vec_free(&h->updates);
}

void law_history_add(law_history *h, const edit_list *list)
{
    edit_list copy = {0};
    for (uint32_t i = 0; i < list->len; i++)
        vec_push(&copy, list->data[i]);
    vec_push(&h->updates, copy);
}

void law_history_begin(const law *l, law_history *h)
{
    edit_list list = {0};
    uint32_t at = 0;
    for (uint32_t f = 0; f < l->program->funcs.len; f++)
        for (uint32_t s = 0; s < l->program->funcs.data[f].stmts.len; s++, at++)
            if (l->program->funcs.data[f].stmts.data[s].dead != l->start[at])
                vec_push(&list, (pta_edit){.func = f, .stmt = s, .insert = l->start[at]});
    law_history_clear(h);
    vec_push(&h->updates, list);
}

static void mark(const law *l, const edit_list *list)
{
    for (uint32_t i = 0; i < list->len; i++)
        stmt_of(l, &list->data[i])->dead = !list->data[i].insert;
}

law_verdict law_replay(law *l, const law_history *h, law_verdict wanted, char *text, size_t size)
{
    law_state s = {0};
    race_error error;
    set_flags(l->program, l->start);
    if (wanted == LAW_SCRATCH) {
        for (uint32_t u = 0; u < h->updates.len; u++)
            mark(l, &h->updates.data[u]);
        return law_check(l, NULL, text, size);
    }
    if (h->updates.len) mark(l, &h->updates.data[0]);
    if (law_open(l, &s, &error)) return LAW_STOPPED;
    law_verdict verdict = LAW_HOLDS;
    for (uint32_t u = 1; u < h->updates.len && verdict == LAW_HOLDS; u++)
        if (law_update(l, &s, h->updates.data[u].data, h->updates.data[u].len, &error)) verdict = LAW_STOPPED;
    if (verdict == LAW_HOLDS) verdict = law_check(l, &s, text, size);
    law_close(l, &s);
    return verdict;
}

typedef struct {
    pta_edit edit;
    uint32_t update;
} flat_edit;
typedef VEC(flat_edit) flat_list;

/* All edits but those of [from, to). The first update stays the first, though it may become empty. */
static law_history without(const flat_list *all, uint32_t from, uint32_t to)
{
    law_history some = {0};
    edit_list list = {0};
    uint32_t update = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        if (i >= from && i < to) continue;
        if (all->data[i].update != update && (list.len || !update)) law_history_add(&some, &list);
        if (all->data[i].update != update) vec_clear(&list);
        update = all->data[i].update;
        vec_push(&list, all->data[i].edit);
    }
    law_history_add(&some, &list);
    vec_free(&list);
    return some;
}

/* Takes away runs of edits, long ones first, for as long as the law is still broken without them. */
void law_shrink(law *l, law_history *h, law_verdict verdict, double seconds)
{
    char text[128];
    double until = tool_now() + seconds;
    if (law_replay(l, h, verdict, text, sizeof text) != verdict) {
        printf("not to be had again from the last good state: run with this seed and compare after each update\n");
        return;
    }
    flat_list all = {0};
    for (uint32_t u = 0; u < h->updates.len; u++)
        for (uint32_t i = 0; i < h->updates.data[u].len; i++)
            vec_push(&all, (flat_edit){h->updates.data[u].data[i], u});
    uint32_t run = all.len;
    bool fewer = true;
    while (tool_now() < until && (run > 1 || fewer)) {
        run = run > 1 ? (run + 1) / 2 : 1;
        fewer = false;
        for (uint32_t at = 0; at < all.len && tool_now() < until;) {
            uint32_t end = at + run < all.len ? at + run : all.len;
            law_history some = without(&all, at, end);
            bool broken = law_replay(l, &some, verdict, text, sizeof text) == verdict;
            law_history_clear(&some);
            if (!broken) {
                at = end;
                continue;
            }
            fewer = true;
            memmove(all.data + at, all.data + end, (all.len - end) * sizeof *all.data);
            all.len -= end - at;
        }
    }
    law_history_clear(h);
    *h = without(&all, 0, 0);
    vec_free(&all);
    law_print(l, h);
}

/* --- as text ----------------------------------------------------------------------------------------------------- */

static void print_edit(const law *l, const char *word, uint32_t func, uint32_t stmt)
{
    static const char *const kinds[] = {"addr", "copy", "load", "store", "call"};
    const pta_func *f = &l->program->funcs.data[func];
    const pta_stmt *s = &f->stmts.data[stmt];
    printf("%s %u %u", word, func, stmt);
    printf("    %s: %s", f->name, s->kind < sizeof kinds / sizeof *kinds ? kinds[s->kind] : "?");
    if (f->lift && s->insn < f->lift->insn_count)
        printf(" at 0x%llx", (unsigned long long)f->lift->insns[s->insn].addr);
    printf("\n");
}

void law_print(const law *l, const law_history *h)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < h->updates.len; u++)
        count += h->updates.data[u].len;
    printf("%u edits, of them %u before anything is analysed\n", count, h->updates.len ? h->updates.data[0].len : 0);
    for (uint32_t u = 0; u < h->updates.len; u++) {
        printf(u ? "update\n" : "before\n");
        for (uint32_t i = 0; i < h->updates.data[u].len; i++) {
            const pta_edit *e = &h->updates.data[u].data[i];
            print_edit(l, e->insert ? "insert" : "delete", e->func, e->stmt);
        }
    }
}

int law_read(const law *l, const char *path, law_history *h)
{
    FILE *in = fopen(path, "r");
    char line[1024], word[16];
    uint32_t func, stmt;
    edit_list list = {0};
    if (!in) return -1;
    int status = 0;
    while (!status && fgets(line, sizeof line, in)) {
        int found = sscanf(line, "%15s %u %u", word, &func, &stmt);
        if (found >= 1 && !strcmp(word, "update")) {
            law_history_add(h, &list);
            vec_clear(&list);
        }
        if (found != 3 || (strcmp(word, "delete") && strcmp(word, "insert"))) continue;
        bool known = func < l->program->funcs.len && stmt < l->program->funcs.data[func].stmts.len;
        if (!known || !pta_may_edit(l->program, func))
            status = -1;
        else
            vec_push(&list, (pta_edit){.func = func, .stmt = stmt, .insert = *word == 'i'});
    }
    law_history_add(h, &list);
    vec_free(&list);
    fclose(in);
    return status;
}
