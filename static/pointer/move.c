/* A result for another program that says the same.
 *
 * The least fixed point is a function of the statements, of the sizes and shapes of objects, and of types as far as they tell where
 * pointers may lie; not of addresses, names, machine instructions or the accesses that will be asked for. pta_says is a hash of all
 * that it is a function of. A program whose hash is the same, after an edit that concerns no pointer, has the same result, with the
 * same numbers for everything: it needs only to be told where the program is now. */
#include <xxhash.h>

#include "static/pointer/graph.h"
#include "static/pointer/says.h"

static void flush(saying *s)
{
    s->hash = XXH3_64bits_withSeed(s->words.data, s->words.len * sizeof *s->words.data, s->hash);
    vec_clear(&s->words);
}

static void say(saying *s, uint64_t word)
{
    vec_push(&s->words, word);
}

static void say_two(saying *s, uint32_t a, uint32_t b)
{
    vec_push(&s->words, (uint64_t)a << 32 | b);
}

static void say_shape(saying *s, const pta_shape *shape)
{
    say(s, says_shape(s, shape));
}

static void say_operand(saying *s, pta_operand o)
{
    say_two(s, o.var, (uint32_t)o.delta);
}

static void say_func(saying *s, const pta_func *f)
{
    say_two(s, f->stmts.len, f->var_count);
    say_two(s, f->stack, (uint32_t)f->needs << 16 | f->takes);
    say(s, f->gives | (uint64_t)f->clone << 8 | (uint64_t)f->root << 9 | (uint64_t)f->loader << 10 | (uint64_t)f->modelled << 11 |
               (uint64_t)(f->lift != NULL) << 12);
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        say(s, stmt->kind | (uint64_t)stmt->dead << 8);
        say_operand(s, stmt->dst);
        say_operand(s, stmt->src);
        say_two(s, stmt->stride, stmt->ref);
    }
    flush(s);
}

static void say_call(saying *s, const pta_call *c)
{
    say(s, says_type(s, c->makes));
    say_two(s, c->func, c->known);
    say_operand(s, c->target);
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        say_operand(s, c->args[i]);
    say_two(s, c->ret, c->ret2);
    say_two(s, c->caller, (uint32_t)c->spawn << 1 | c->in_loop);
    for (unsigned i = 0; i < PTA_SIZES; i++)
        say_two(s, c->sizes[i].multiple, (uint32_t)(uint16_t)c->sizes[i].delta << 16 | (uint32_t)c->sizes[i].param << 1 | c->sizes[i].exact);
}

static void say_site(saying *s, const pta_site *site)
{
    say(s, site->kind | (uint64_t)site->constant << 8 | (uint64_t)site->any << 9 | (uint64_t)site->open << 10 |
               (uint64_t)site->sized << 16 | (uint64_t)site->counted << 24 | (uint64_t)site->align << 32);
    say_two(s, site->module, site->func);
    say_two(s, site->memory, 0);
    say(s, site->size);
    say(s, (uint64_t)site->base);
    say_shape(s, site->shape);
}

uint64_t pta_says(const pta *p, const pta_program *program)
{
    saying s = {0};
    const uint32_t parts[] = {program->external, program->wild,    program->wilderness, program->wild_call,      program->escaped,
                              program->unknown,  program->outside, program->stack,      program->module_count,   program->funcs.len,
                              program->sites.len, program->calls.len};
    for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++)
        say(&s, parts[i]);
    for (uint32_t f = 0; f < program->funcs.len; f++)
        say_func(&s, &program->funcs.data[f]);
    for (uint32_t i = 0; i < program->calls.len; i++)
        say_call(&s, &program->calls.data[i]);
    flush(&s);
    for (uint32_t i = 0; i < program->sites.len; i++)
        say_site(&s, &program->sites.data[i]);
    for (const pta *of = p; of; of = of->plain)
        for (uint32_t i = 0; i < of->asked.len; i++)
            say(&s, says_type(&s, heap_asked(program, &of->asked.data[i])));
    flush(&s);
    says_free(&s);
    return s.hash;
}

void pta_move(pta *p, pta_program *to)
{
    p->program = to;
    for (uint32_t i = 0; i < p->asked.len; i++) {
        const heap_ask *ask = &p->asked.data[i];
        pta_shape *shape = ask->shape == HEAP_NO_SHAPE ? NULL : p->heap_shapes.data[ask->shape];
        if (shape) shape->type = heap_asked(to, ask);
    }
    map_free(&p->type_map); /* by types of the program that it was of */
    map_free(&p->shape_map);
    p->type_map = p->shape_map = (map64){0};
    for (uint32_t o = 1; o < p->objects.len; o++) {
        const pta_site *site = &to->sites.data[p->objects.data[o].site];
        if (site->kind != PTA_HEAP) p->shapes.data[o] = site->shape;
    }
    if (p->plain) pta_move(p->plain, to);
}
