/* Allocators that are called through a pointer: `static void *(*allocate)(size_t) = malloc;`. Calls through pointers share one
 * instance of a model (context.c), so all that is allocated so would be one object. But that the loader puts the address of the
 * allocator into the word is certain, and so is the call: it is also a call by name, and the pointer need not make it again. */
#include <stdlib.h>
#include <string.h>

#include "static/pointer/program.h"

typedef struct {
    uint32_t site; /* PTA_NO_SITE: none */
    int64_t at;
    uint32_t func; /* what the word there points to */
} allocator_word;

typedef VEC(allocator_word) word_list;

static bool allocates(const pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    for (uint32_t i = 0; !f->lift && f->clone && i < f->stmts.len; i++)
        if (f->stmts.data[i].kind == PTA_ADDR && program->sites.data[f->stmts.data[i].ref].kind == PTA_HEAP) return true;
    return false;
}

/* The place that each variable of a function points to by a statement of its own. */
static allocator_word *find_addresses(const pta_func *f)
{
    allocator_word *of = base_alloc((size_t)f->var_count * sizeof *of);
    memset(of, 0xff, f->var_count * sizeof *of);
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        if (stmt->kind == PTA_ADDR) of[stmt->dst.var] = (allocator_word){stmt->ref, stmt->src.delta, PTA_NO_FUNC};
    }
    return of;
}

/* The words of static data with the address of an allocator in them. */
static void find_words(const pta_program *program, const pta_func *data, word_list *words)
{
    allocator_word *of = find_addresses(data);
    for (uint32_t i = 0; i < data->stmts.len; i++) {
        const pta_stmt *stmt = &data->stmts.data[i];
        if (stmt->kind != PTA_STORE || stmt->stride || of[stmt->src.var].site == PTA_NO_SITE || of[stmt->dst.var].site == PTA_NO_SITE)
            continue;
        const pta_site *value = &program->sites.data[of[stmt->src.var].site];
        if (value->kind != PTA_FUNCTION || !allocates(program, value->func)) continue;
        vec_push(words, (allocator_word){of[stmt->dst.var].site, of[stmt->dst.var].at + stmt->dst.delta, value->func});
    }
    free(of);
}

/* The allocator that a pointer is set to when the program starts; PTA_NO_FUNC: none. */
static uint32_t named_by(const pta_func *f, const allocator_word *of, pta_operand target, const word_list *words)
{
    for (uint32_t i = 0; i < f->stmts.len && !target.delta; i++) {
        const pta_stmt *stmt = &f->stmts.data[i];
        if (stmt->kind != PTA_LOAD || stmt->dst.var != target.var || stmt->stride) continue;
        for (uint32_t w = 0; w < words->len; w++)
            if (words->data[w].site == of[stmt->src.var].site && words->data[w].at == of[stmt->src.var].at + stmt->src.delta)
                return words->data[w].func;
    }
    return PTA_NO_FUNC;
}

static bool calls_pointers(const pta_program *program, const pta_func *f)
{
    for (uint32_t i = 0; i < f->stmts.len; i++)
        if (f->stmts.data[i].kind == PTA_CALL && program->calls.data[f->stmts.data[i].ref].func == PTA_NO_FUNC) return true;
    return false;
}

static void name_calls(pta_program *program, uint32_t func, const word_list *words)
{
    if (!calls_pointers(program, &program->funcs.data[func])) return;
    allocator_word *of = find_addresses(&program->funcs.data[func]);
    uint32_t count = program->funcs.data[func].stmts.len;
    for (uint32_t i = 0; i < count; i++) {
        const pta_func *f = &program->funcs.data[func];
        pta_stmt stmt = f->stmts.data[i];
        if (stmt.kind != PTA_CALL || program->calls.data[stmt.ref].func != PTA_NO_FUNC) continue;
        pta_call call = program->calls.data[stmt.ref];
        uint32_t named = call.target.var == PTA_NO_VAR ? PTA_NO_FUNC : named_by(f, of, call.target, words);
        if (named == PTA_NO_FUNC) continue;
        program->calls.data[stmt.ref].known = named + 1;
        call.func = named;
        call.target = (pta_operand){PTA_NO_VAR, 0};
        stmt.ref = program_add_call(program, call);
        program_add_stmt(program, func, stmt);
    }
    free(of);
}

void program_name_allocators(pta_program *program)
{
    word_list words = {0};
    for (uint32_t f = 0; f < program->funcs.len; f++)
        if (program->funcs.data[f].loader) find_words(program, &program->funcs.data[f], &words);
    for (uint32_t f = 0; words.len && f < program->funcs.len; f++)
        if (program->funcs.data[f].lift) name_calls(program, f, &words);
    vec_free(&words);
}
