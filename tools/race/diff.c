/* What has changed between two analyses: which functions, and which warnings are new or gone. */
#include "tools/race/diff.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 40 }; /* functions of each kind that are named in text */

static const store_record nothing;

void diff_open(diff *d)
{
    if (!d->known) d->old = &nothing;
    d->kept = base_alloc_zero(d->old->warning_count, sizeof *d->kept);
    if (d->old == d->new) {
        memset(d->kept, true, d->old->warning_count);
        d->stayed = d->old->warning_count;
        for (uint32_t m = 0; m < d->old->module_count; m++)
            d->match.same += d->old->modules[m].func_count;
        return;
    }
    store_match_open(d->old, d->new, &d->match);
    d->twins = store_compare(d->old, d->new, &d->match);
    for (uint32_t i = 0; i < d->new->warning_count; i++) {
        if (d->twins[i] != STORE_NONE) d->kept[d->twins[i]] = true;
        ++*(d->twins[i] == STORE_NONE ? &d->came : &d->stayed);
    }
    d->gone = d->old->warning_count - d->stayed;
}

void diff_close(diff *d)
{
    store_match_free(&d->match);
    free(d->twins);
    free(d->kept);
}

/* --- functions --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const store_func *old, *new; /* one may be NULL */
    const store_module *module;
} change;
typedef VEC(change) changes;

static void collect(const diff *d, store_change kind, bool old, changes *out)
{
    const store_record *r = old ? d->old : d->new;
    store_twin **twins = old ? d->match.old_twins : d->match.new_twins;
    for (uint32_t m = 0; twins && m < r->module_count; m++)
        for (uint32_t f = 0; f < r->modules[m].func_count; f++) {
            store_twin twin = twins[m][f];
            const store_func *func = &r->modules[m].funcs[f];
            if (twin.change != kind) continue;
            const store_func *before = old ? func : kind == STORE_LONE ? NULL : &d->old->modules[twin.module].funcs[twin.func];
            vec_push(out, (change){before, old ? NULL : func, &r->modules[m]});
        }
}

static const char *name_of(const store_func *f, char *to, size_t size)
{
    if (*f->name) return cli_plain(f->name, to, size);
    snprintf(to, size, "sub_%llx", (unsigned long long)f->entry);
    return to;
}

static void list(const diff *d, const char *word, store_change kind, bool old)
{
    changes all = {0};
    collect(d, kind, old, &all);
    for (uint32_t i = 0; i < all.len && i < LISTED; i++) {
        const change *c = &all.data[i];
        char name[200], before[200], file[200];
        const store_func *f = old ? c->old : c->new;
        printf("  %-8s %s", word, name_of(f, name, sizeof name));
        if (kind == STORE_RENAMED) printf(", which was %s", name_of(c->old, before, sizeof before));
        if (*f->file) printf(" (%s)", cli_plain(f->file, file, sizeof file));
        printf("\n");
    }
    if (all.len > LISTED) printf("  %-8s %u more\n", word, all.len - LISTED);
    vec_free(&all);
}

/* --- text -------------------------------------------------------------------------------------------------------------- */

int diff_text(const diff *d)
{
    const store_match *m = &d->match;
    if (!d->known) printf("there is no earlier analysis: all warnings are new\n\n");
    if (d->known) {
        printf("functions: %u changed, %u renamed, %u added, %u removed, %u as before\n", m->changed, m->renamed, m->added, m->removed,
               m->same);
        list(d, "changed", STORE_CHANGED, false);
        list(d, "renamed", STORE_RENAMED, false);
        list(d, "added", STORE_LONE, false);
        list(d, "removed", STORE_LONE, true);
        printf("\n");
    }
    for (uint32_t i = 0; d->came && i < d->new->warning_count; i++) {
        if (d->twins[i] != STORE_NONE) continue;
        printf("new: ");
        check_text_warning(&d->new->warnings[i], true);
    }
    for (uint32_t i = 0; d->gone && i < d->old->warning_count; i++) {
        if (d->kept[i]) continue;
        printf("gone: ");
        check_text_warning(&d->old->warnings[i], false);
    }
    printf("%u new, %u gone, %u as before\n", d->came, d->gone, d->stayed);
    return d->came ? EXIT_FOUND : EXIT_CLEAN;
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static void add_functions(json_out *o, const char *key, const diff *d, store_change kind, bool old)
{
    changes all = {0};
    collect(d, kind, old, &all);
    out_array(o, key);
    for (uint32_t i = 0; i < all.len; i++) {
        const change *c = &all.data[i];
        const store_func *f = old ? c->old : c->new;
        char name[200];
        out_object(o, NULL);
        out_text(o, "name", *f->name ? f->name : name_of(f, name, sizeof name));
        if (kind == STORE_RENAMED) out_text(o, "was", c->old->name);
        if (*f->file) out_text(o, "file", f->file);
        out_text(o, "module", c->module->path);
        out_end(o, '}');
    }
    out_end(o, ']');
    vec_free(&all);
}

int diff_json(const diff *d, bool line)
{
    json_out o = {.to = stdout, .line = line};
    names shown = {0};
    out_object(&o, NULL);
    out_number(&o, "version", 1);
    out_bool(&o, "known", d->known);
    check_json_modules(&o, d->new);
    out_object(&o, "functions");
    add_functions(&o, "changed", d, STORE_CHANGED, false);
    add_functions(&o, "renamed", d, STORE_RENAMED, false);
    add_functions(&o, "added", d, STORE_LONE, false);
    add_functions(&o, "removed", d, STORE_LONE, true);
    out_number(&o, "as_before", d->match.same);
    out_end(&o, '}');
    out_array(&o, "new");
    for (uint32_t i = 0; d->twins && i < d->new->warning_count; i++)
        if (d->twins[i] == STORE_NONE) check_json_warning(&o, &d->new->warnings[i], &shown);
    out_end(&o, ']');
    out_array(&o, "gone");
    for (uint32_t i = 0; i < d->old->warning_count; i++)
        if (!d->kept[i]) check_json_warning(&o, &d->old->warnings[i], &shown);
    out_end(&o, ']');
    out_number(&o, "as_before", d->stayed);
    out_end(&o, '}');
    out_finish(&o);
    names_close(&shown);
    return d->came ? EXIT_FOUND : EXIT_CLEAN;
}
