/* reach FILE...: prints what each thread touches, one line per element, sorted:
 *
 *   worker  heap@main:44.partial  W
 *
 * and lines that begin with '#': elements on stacks that no other thread can see (`# local`), and the counts:
 *
 *   # accesses   of all functions reached: those that remain after promotion
 *   # frame      of these: to the own frame
 *   # indexed    of these: to objects that never leave the function, but that it indexes by a variable: local arrays,
 *                which have to be memory at any -O level
 *   # fixed      of these: at a constant place
 *   # slots      of `frame`: to other objects whose address is never passed on or stored
 *   # unknown    accesses and calls that lead nowhere
 *
 * With -v first: the places in the code. Objects: a global by name, `variable:line` on a stack, `heap@function:line` by
 * the call that allocates it. */
#include "reach.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    char *text;
    bool local;
} element;

typedef struct {
    reach *r;
    VEC(element) elements;
    const char *thread;
    bool write, local;
    const touch *where; /* NULL: not asked for */
} report;

static void add_element(void *user, const char *path)
{
    report *rep = user;
    if (rep->where) {
        const context *c = &rep->r->contexts.data[rep->where->context];
        uint64_t at = rep->where->access ? c->func->insns[c->func->ir->insns[rep->where->access].insn].addr : 0;
        printf("# at %s\t%s\t%c\t%s 0x%llx\n", rep->thread, path, rep->write ? 'W' : 'R', c->func->name,
               (unsigned long long)at);
    }
    vec_push(&rep->elements, (element){.local = rep->local,
                                       .text = base_format("%s%s\t%s\t%c", rep->local ? "# local " : "", rep->thread,
                                                           path, rep->write ? 'W' : 'R')});
}

static bool is_stack(const reach *r, const object *o)
{
    root_kind kind = r->roots.data[o->root].kind;
    return kind == ROOT_FRAME || kind == ROOT_ALIGNED;
}

static bool is_heap(const reach *r, const object *o)
{
    return r->roots.data[o->root].kind == ROOT_HEAP;
}

/* --- objects without a type: runs of bytes ----------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 16 };

static bool same_place(const reach *r, const touch *a, const touch *b)
{
    return a->object == b->object || !strcmp(r->objects.data[a->object].name, r->objects.data[b->object].name);
}

/* All touches of the objects of one name, in one thread and of one kind; the union of their bytes, modulo the strides
 * that occur. */
static void add_bytes(report *rep, const touch *first, uint32_t thread)
{
    reach *r = rep->r;
    uint64_t modulus = 0;
    uint8_t *bytes = base_alloc_zero(MOST_BYTES, 1);
    int64_t low = 0;
    for (uint32_t i = 0; i < r->touches.len; i++) {
        const touch *t = &r->touches.data[i];
        if (!same_place(r, t, first)) continue;
        modulus = number_gcd(modulus, strides_divisor(&t->by));
        if (t->offset < low) low = t->offset;
    }
    if (modulus) low = 0;
    for (uint32_t i = 0; i < r->touches.len; i++) {
        const touch *t = &r->touches.data[i];
        if (!same_place(r, t, first) || t->write != first->write || r->contexts.data[t->context].thread != thread)
            continue;
        for (uint64_t k = 0; k < t->width; k++) {
            int64_t at = t->offset + (int64_t)k - low;
            if (modulus) at = (at % (int64_t)modulus + (int64_t)modulus) % (int64_t)modulus;
            if (at >= 0 && at < MOST_BYTES) bytes[at] = 1;
        }
    }
    for (int64_t at = 0; at < MOST_BYTES; at++) {
        if (!bytes[at]) continue;
        int64_t end = at;
        while (end < MOST_BYTES && bytes[end])
            end++;
        char path[512];
        int n = snprintf(path, sizeof path, "%s[%lld,%lld)", r->objects.data[first->object].name, (long long)(at + low),
                         (long long)(end + low));
        if (modulus && n > 0 && n < (int)sizeof path)
            snprintf(path + n, sizeof path - (size_t)n, "%%%llu", (unsigned long long)modulus);
        add_element(rep, path);
        at = end;
    }
    free(bytes);
}

static void add_touch(report *rep, const touch *t, bool list)
{
    reach *r = rep->r;
    const object *o = &r->objects.data[t->object];
    if (o->constant) return;
    uint32_t thread = r->contexts.data[t->context].thread;
    rep->thread = r->threads.data[thread].func->name;
    rep->write = t->write;
    rep->where = list ? t : NULL;
    rep->local = is_stack(r, o) && !o->shared;
    if (o->type)
        field_each(o, is_heap(r, o), t, add_element, rep);
    else
        add_bytes(rep, t, thread);
}

/* --- counts ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t accesses, frame, indexed, fixed, slots;
} counts;

/* The own frame, or what the caller has put there as arguments. */
static bool is_own(const reach *r, const context *c, const pointer *p)
{
    const root *at = &r->roots.data[p->root];
    return (at->kind == ROOT_FRAME || at->kind == ROOT_ALIGNED) && &r->contexts.data[at->context] == c;
}

static void count_access(reach *r, const context *c, ir_value v, counts *sum, bool list)
{
    pointers to = {0};
    reach_address(c, &c->func->ir->insns[v], &to);
    sum->accesses++;
    if (to.len == 1 && is_own(r, c, &to.data[0])) {
        int64_t offset;
        uint32_t o = object_at(r, to.data[0], &offset), marks = object_marks(r, o);
        sum->frame++;
        sum->indexed += marks == SLOT_INDEXED;
        sum->fixed += marks == SLOT_INDEXED && !to.data[0].by.count;
        sum->slots += !marks;
        if (!marks && list)
            printf("# slot %s 0x%llx %s\n", c->func->name,
                   (unsigned long long)c->func->insns[c->func->ir->insns[v].insn].addr, r->objects.data[o].name);
    }
    vec_free(&to);
}

static counts count_all(reach *r, bool list)
{
    counts sum = {0};
    bool *seen = base_alloc_zero(r->module->func_count + 1, 1);
    for (uint32_t i = 1; i < r->contexts.len; i++) {
        const context *c = &r->contexts.data[i];
        if (seen[c->func->id]) continue;
        seen[c->func->id] = true;
        for (ir_value v = c->func->ir->blocks[0].first; v < c->func->ir->insn_count; v++) {
            const ir_insn *insn = &c->func->ir->insns[v];
            if (insn->op == IR_ACCESS && !(insn->flags & (IR_PROMOTED | IR_IMPLICIT)))
                count_access(r, c, v, &sum, list);
        }
    }
    free(seen);
    return sum;
}

/* --- the report -------------------------------------------------------------------------------------------------- */

static int by_text(const void *x, const void *y)
{
    return strcmp(((const element *)x)->text, ((const element *)y)->text);
}

static int run(const char *path, bool list)
{
    race_error error;
    image *img;
    if (image_open(path, &img, &error)) {
        fprintf(stderr, "reach: %s\n", error.text);
        return 2;
    }
    lift_module *module = lift_open(img, &(lift_options){.jobs = 1});
    reach r = {.module = module};
    bool found = reach_walk(&r);
    if (found) {
        field_infer_types(&r);
        report rep = {.r = &r};
        for (uint32_t i = 0; i < r.touches.len; i++)
            add_touch(&rep, &r.touches.data[i], list);
        if (rep.elements.len) qsort(rep.elements.data, rep.elements.len, sizeof *rep.elements.data, by_text);
        for (uint32_t i = 0; i < rep.elements.len; i++)
            if (!i || strcmp(rep.elements.data[i].text, rep.elements.data[i - 1].text)) puts(rep.elements.data[i].text);
        for (uint32_t i = 0; i < rep.elements.len; i++)
            free(rep.elements.data[i].text);
        vec_free(&rep.elements);
        counts sum = count_all(&r, list);
        printf("# threads\t%u\n# contexts\t%u\n# rounds\t%u\n", r.threads.len, r.contexts.len - 1, r.rounds);
        printf("# accesses\t%u\n# frame\t%u\n# indexed\t%u\n# fixed\t%u\n# slots\t%u\n", sum.accesses, sum.frame,
               sum.indexed, sum.fixed, sum.slots);
        printf("# unknown\t%u\n# cut\t%u\n", r.unknown_accesses + r.unknown_calls, r.cut);
    } else {
        fprintf(stderr, "reach: %s: has no main\n", path);
    }
    reach_free(&r);
    lift_close(module);
    image_close(img);
    return found ? 0 : 2;
}

int main(int argc, char **argv)
{
    int code = 0;
    bool list =
        argc > 1 && !strcmp(argv[1], "-v"); /* also where: the accesses of each element, and each of `# slots` */
    for (int i = 1 + list; i < argc; i++)
        if (run(argv[i], list)) code = 2;
    return argc > 1 ? code : 2;
}
