/* Functions that are generated already.
 *
 * The statements of a function follow from its code, from what names and addresses in its module stand for (tables),
 * and from what is known of the functions that it calls: how they are given arguments, and what they are declared with.
 * Where its module is the one that it was generated from, and hashes of the others are what they were, so are its
 * statements, number by number. Types are compared by what they say, since those of a module that was read again lie
 * elsewhere; a function that has one of another module in its statements is always generated again. */
#include "static/pointer/reuse.h"

#include <stdlib.h>

#include "static/pointer/map.h"
#include "static/pointer/maps.h"

typedef struct {
    generated code;
    uint64_t depends; /* hash of all that it depends on outside of its module; 0: it is not kept */
    id_numbers callees;
} reuse_func;

typedef struct {
    uintptr_t at;
    uint64_t generation; /* another may lie where it was */
} identity;

struct pta_reuse {
    identity *modules;
    uint64_t *tables, *declared; /* by module, by function */
    uint32_t *first;             /* by module: its first function */
    reuse_func *funcs;
    uint32_t module_count, func_count;
    map64 type_map; /* while it is made: by address */
    VEC(uint64_t) types;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return map_hash(hash * 0x100000001b3u + value + 1);
}

static uint64_t text_hash(const char *text)
{
    uint64_t hash = 7;
    for (; text && *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

/* All of a type, and of those that it leads to. One that leads to itself is told by the others on the way. */
static uint64_t type_hash(pta_reuse *r, const image_type *type)
{
    if (!type) return 1;
    uint32_t *known = map_at(&r->type_map, (uint64_t)(uintptr_t)type);
    if (*known != MAP_NONE) return r->types.data[*known];
    uint32_t at = *known = r->types.len;
    uint64_t hash =
        mix(mix(mix(text_hash(type->name), type->size), type->count),
            (uint64_t)type->kind << 8 | type->is_atomic | type->is_volatile << 1 | type->is_declaration << 2);
    vec_push(&r->types, hash);
    hash = mix(hash, type_hash(r, type->target));
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        hash = mix(mix(hash, m->offset), (uint64_t)m->bit_offset << 32 | (uint64_t)m->bit_size << 1 | m->is_address);
        hash = mix(mix(hash, text_hash(m->name)), type_hash(r, m->type));
    }
    return r->types.data[at] = hash;
}

static uint64_t declaration_hash(pta_reuse *r, const image *img, const lift_func *func)
{
    const image_function *debug = img->has_debug ? image_function_at(img, func->entry) : NULL;
    if (!debug || debug->start != func->entry) return 3;
    uint64_t hash = type_hash(r, debug->returns);
    for (uint32_t i = 0; i < debug->parameter_count; i++)
        hash = mix(hash, type_hash(r, debug->variables[i].type));
    return hash;
}

/* The module is the one that was there before. */
static bool is_same_module(const pta_reuse *r, const pta_reuse *before, uint32_t m)
{
    return before && m < before->module_count && before->modules[m].at == r->modules[m].at &&
           before->modules[m].generation == r->modules[m].generation;
}

/* Before functions are generated: what they may be known by. */
pta_reuse *reuse_open(const pta_program *program, const pta_reuse *before)
{
    pta_reuse *r = base_alloc_zero(1, sizeof *r);
    r->module_count = program->module_count;
    r->func_count = program->funcs.len;
    r->modules = base_alloc_zero(r->module_count + 1, sizeof *r->modules);
    r->tables = base_alloc_zero(r->module_count + 1, sizeof *r->tables);
    r->first = base_alloc_zero(r->module_count + 1, sizeof *r->first);
    r->declared = base_alloc_zero(r->func_count + 1, sizeof *r->declared);
    r->funcs = base_alloc_zero(r->func_count + 1, sizeof *r->funcs);
    for (uint32_t m = 0; m < r->module_count; m++) {
        const lift_module *module = program->modules[m];
        r->modules[m] = (identity){(uintptr_t)module, module->generation};
        r->first[m] = program->maps->modules[m].first_func;
        bool same = is_same_module(r, before, m);
        for (uint32_t f = 0; f < module->func_count; f++)
            r->declared[r->first[m] + f] =
                same ? before->declared[before->first[m] + f] : declaration_hash(r, module->img, module->funcs[f]);
    }
    return r;
}

static uint64_t site_hash(pta_reuse *r, const pta_program *program, uint32_t site)
{
    if (site == PTA_NO_SITE) return 5;
    const pta_site *s = &program->sites.data[site];
    return mix(mix(mix(site, s->kind), s->func), type_hash(r, s->type));
}

static uint64_t space_hash(pta_reuse *r, const pta_program *program, const address_space *space)
{
    uint64_t hash = space->homes.len;
    for (uint32_t i = 0; i < space->homes.len; i++) {
        const address_home *home = &space->homes.data[i];
        hash = mix(mix(mix(hash, (uint64_t)home->start), (uint64_t)home->end), home->named);
        hash = mix(hash, site_hash(r, program, home->site));
    }
    return hash;
}

/* When it is known how functions are given arguments. */
void reuse_module(pta_reuse *r, const pta_program *program, uint32_t m, const generate_module *about)
{
    const image *img = program->modules[m]->img;
    const module_map *map = &program->maps->modules[m];
    uint64_t hash = mix(mix(map->first_func, map->first_function_site), about->count);
    hash = mix(mix(mix(hash, (uint64_t)about->unknown << 32 | about->copied),
                   (uint64_t)about->external << 32 | about->messages),
               program->stack);
    for (uint32_t i = 0; i < img->reloc_count; i++)
        hash = mix(hash, site_hash(r, program, map->slots[i]));
    for (uint32_t i = 0; i < img->plt_count; i++)
        hash = mix(hash, map->plts[i]);
    for (uint32_t i = 0; i < 2 * about->count; i++)
        hash = mix(hash, map->chosen[i]);
    r->tables[m] = mix(mix(hash, space_hash(r, program, &map->statics)), space_hash(r, program, &map->tls));
}

static uint64_t func_hash(const pta_reuse *r, const pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    uint64_t hash = mix(mix(mix(func, f->takes), f->gives), f->stack);
    return f->lift ? mix(hash, r->declared[func]) : mix(hash, text_hash(f->name));
}

static uint64_t depends(const pta_reuse *r, const pta_program *program, uint32_t func, const id_numbers *callees)
{
    uint64_t hash = mix(r->tables[program->funcs.data[func].module], func_hash(r, program, func));
    for (uint32_t i = 0; i < callees->len; i++)
        hash = mix(hash, func_hash(r, program, callees->data[i]));
    return hash | 1;
}

/* What was generated before, if it is good; it is r's from then on. */
bool reuse_take(pta_reuse *r, pta_reuse *before, const pta_program *program, uint32_t func)
{
    uint32_t m = program->funcs.data[func].module;
    if (!is_same_module(r, before, m) || func >= before->func_count) return false;
    reuse_func *old = &before->funcs[func];
    for (uint32_t i = 0; i < old->callees.len; i++)
        if (old->callees.data[i] >= r->func_count) return false; /* there are fewer functions now */
    if (!old->depends || old->depends != depends(r, program, func, &old->callees)) return false;
    r->funcs[func] = *old;
    *old = (reuse_func){0};
    return true;
}

static bool has_foreign_type(const pta_program *program, uint32_t func, const generated *code)
{
    const image *img = program->modules[program->funcs.data[func].module]->img;
    for (uint32_t i = 0; i < code->calls.len; i++)
        if (code->calls.data[i].makes && !image_owns_type(img, code->calls.data[i].makes)) return true;
    return false;
}

/* Keeps what was generated now. */
void reuse_keep(pta_reuse *r, const pta_program *program, const generate_module *about, uint32_t func, generated *code)
{
    reuse_func *f = &r->funcs[func];
    const ir_func *ir = program->funcs.data[func].lift->ir;
    f->code = *code;
    *code = (generated){0};
    if (has_foreign_type(program, func, &f->code)) return;
    for (ir_value v = 1; ir && v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_CALL && ir->insns[v].op != IR_TAIL) continue;
        uint32_t callee = generate_callee(program, about, func, &ir->insns[v]);
        if (callee != PTA_NO_FUNC) vec_push(&f->callees, callee);
    }
    f->depends = depends(r, program, func, &f->callees);
}

const generated *reuse_code(const pta_reuse *r, uint32_t func)
{
    return &r->funcs[func].code;
}

void reuse_settle(pta_reuse *r)
{
    map_free(&r->type_map);
    vec_free(&r->types);
}

void reuse_close(pta_reuse *r)
{
    if (!r) return;
    reuse_settle(r);
    for (uint32_t f = 0; f < r->func_count; f++) {
        generate_free(&r->funcs[f].code);
        vec_free(&r->funcs[f].callees);
    }
    free(r->modules);
    free(r->tables);
    free(r->declared);
    free(r->first);
    free(r->funcs);
    free(r);
}
