/* Functions that are generated already.
 *
 * The statements of a function follow from its code, from what names and addresses in its module stand for (tables),
 * and from what is known of the functions that it calls: how they are given arguments, and what they are declared with.
 * Where its module is the one that it was generated from, and the others are what they were, so are its statements, but
 * for the numbers of functions and sites, which move when something before them comes or goes. So tables are compared
 * without numbers, and side by side they say what has become of each number; statements that are taken over get the new
 * ones.
 *
 * Types are compared by what they say, since those of a module that was read again lie elsewhere; a function that has
 * one of such a module in its statements is generated again. */
#include "static/pointer/reuse.h"

#include <stdlib.h>

#include "static/pointer/map.h"
#include "static/pointer/maps.h"

typedef struct {
    generated code;
    uint64_t depends; /* hash of all that it depends on outside of its module; 0: it is not kept */
    id_numbers callees;
    id_numbers lenders; /* modules other than its own that have given it types */
} reuse_func;

typedef struct {
    uint64_t hash;           /* of all but numbers */
    id_numbers funcs, sites; /* in the order of the tables */
    bool same;               /* as before, so that its functions may be taken over */
} reuse_table;

struct pta_reuse {
    reuse_table *tables;
    uint64_t *declared; /* by function */
    uint64_t *names;    /* by function of a module: hash of its name; by module: of its path */
    uint64_t *paths;
    uint32_t *first; /* by module: its first function */
    reuse_func *funcs;
    uint32_t module_count, func_count;
    /* While it is made: */
    map64 type_map; /* by address */
    VEC(uint64_t) types;
    uint32_t *func_now,
        *site_now; /* numbers of the program before: what they are now, or UINT32_MAX; NULL: there was none */
    uint32_t *module_now;
    uint32_t *site_was; /* the other way round */
    uint32_t funcs_before, sites_before, sites_then;
    bool moved; /* some number is another one */
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

static void pair_site(pta_reuse *r, uint32_t was, uint32_t now)
{
    r->site_now[was] = now;
    r->site_was[now] = was;
    r->moved |= was != now;
}

/* A module that was read again: those that call its functions do so by their names. */
static void pair_by_name(pta_reuse *r, const pta_reuse *old, uint32_t was, uint32_t now)
{
    uint32_t count = r->first[now + 1] - r->first[now];
    map64 names = {0};
    for (uint32_t f = r->first[now]; f < r->first[now] + count; f++) {
        uint32_t *at = map_at(&names, r->names[f] >> 1);
        *at = *at == MAP_NONE ? f : r->func_count; /* twice: it tells nothing */
    }
    for (uint32_t f = old->first[was]; f < old->first[was + 1]; f++) {
        uint32_t *at = map_at(&names, old->names[f] >> 1), found = *at;
        *at = r->func_count; /* the first one only */
        if (found != MAP_NONE && found != r->func_count) r->func_now[f] = found;
    }
    map_free(&names);
}

static void pair_changed(pta_reuse *r, const pta_program *program, const pta_reuse *old)
{
    map64 paths = {0};
    for (uint32_t m = 0; m < old->module_count; m++)
        if (r->module_now[m] == PTA_NO_MODULE) *map_at(&paths, old->paths[m] >> 1) = m;
    for (uint32_t m = 0; m < r->module_count && paths.count; m++) {
        uint32_t *at = program->maps->modules[m].was == PTA_NO_MODULE ? map_at(&paths, r->paths[m] >> 1) : NULL;
        if (!at || *at == MAP_NONE) continue;
        pair_by_name(r, old, *at, m);
        *at = MAP_NONE;
    }
    map_free(&paths);
}

/* What is known of numbers before tables are compared: functions of modules that were there, models by their names. */
static void pair_numbers(pta_reuse *r, const pta_program *program, const pta_program *before)
{
    r->funcs_before = before->funcs.len;
    r->sites_before = before->sites.len;
    r->sites_then = program->sites.len;
    r->func_now = base_alloc(r->funcs_before * sizeof *r->func_now);
    r->site_now = base_alloc(r->sites_before * sizeof *r->site_now);
    r->site_was = base_alloc(r->sites_then * sizeof *r->site_was);
    r->module_now = base_alloc((before->module_count + 1) * sizeof *r->module_now);
    memset(r->func_now, 0xff, r->funcs_before * sizeof *r->func_now);
    memset(r->site_now, 0xff, r->sites_before * sizeof *r->site_now);
    memset(r->site_was, 0xff, r->sites_then * sizeof *r->site_was);
    memset(r->module_now, 0xff, (before->module_count + 1) * sizeof *r->module_now);
    for (uint32_t m = 0; m < program->module_count; m++) {
        const module_map *map = &program->maps->modules[m];
        if (map->was == PTA_NO_MODULE) continue;
        r->module_now[map->was] = m;
        r->moved |= map->was != m;
        const module_map *old = &before->maps->modules[map->was];
        for (uint32_t f = 0; f < program->modules[m]->func_count; f++)
            r->func_now[old->first_func + f] = map->first_func + f;
    }
    pair_changed(r, program, before->maps->reuse);
    for (uint32_t f = 0; f < r->funcs_before; f++) {
        const pta_func *func = &before->funcs.data[f];
        const name_entry *entry = func->lift ? NULL : names_find(&program->maps->names, func->name);
        if (entry && entry->func != PTA_NO_FUNC && !program->funcs.data[entry->func].lift) r->func_now[f] = entry->func;
        r->moved |= r->func_now[f] != f;
    }
    r->func_now[before->unknown] = program->unknown;
    r->func_now[before->maps->copied] = program->maps->copied;
    pair_site(r, before->external, program->external);
    pair_site(r, before->wild, program->wild);
    pair_site(r, before->escaped, program->escaped);
    pair_site(r, before->maps->messages, program->maps->messages);
}

/* Before functions are generated: what they may be known by. */
pta_reuse *reuse_open(const pta_program *program, const pta_program *before)
{
    pta_reuse *r = base_alloc_zero(1, sizeof *r);
    const pta_reuse *old = before ? before->maps->reuse : NULL;
    r->module_count = program->module_count;
    r->func_count = program->funcs.len;
    r->tables = base_alloc_zero(r->module_count + 1, sizeof *r->tables);
    r->first = base_alloc_zero(r->module_count + 2, sizeof *r->first);
    r->declared = base_alloc_zero(r->func_count + 1, sizeof *r->declared);
    r->names = base_alloc_zero(r->func_count + 1, sizeof *r->names);
    r->paths = base_alloc_zero(r->module_count + 1, sizeof *r->paths);
    r->funcs = base_alloc_zero(r->func_count + 1, sizeof *r->funcs);
    for (uint32_t m = 0; m < r->module_count; m++) {
        const lift_module *module = program->modules[m];
        r->first[m] = program->maps->modules[m].first_func;
        r->first[m + 1] = r->first[m] + module->func_count;
        r->paths[m] = mix(text_hash(module->img->path), text_hash(module->img->member));
        uint32_t was = old ? program->maps->modules[m].was : PTA_NO_MODULE;
        for (uint32_t f = 0; f < module->func_count; f++)
            r->names[r->first[m] + f] =
                was != PTA_NO_MODULE ? old->names[old->first[was] + f] : text_hash(module->funcs[f]->name);
        for (uint32_t f = 0; f < module->func_count; f++)
            r->declared[r->first[m] + f] = was != PTA_NO_MODULE ? old->declared[old->first[was] + f]
                                                                : declaration_hash(r, module->img, module->funcs[f]);
    }
    if (old) pair_numbers(r, program, before);
    return r;
}

static void add_func(reuse_table *table, uint32_t func)
{
    vec_push(&table->funcs, func);
}

static void add_site(pta_reuse *r, const pta_program *program, reuse_table *table, uint32_t site)
{
    vec_push(&table->sites, site);
    if (site == PTA_NO_SITE) return;
    const pta_site *s = &program->sites.data[site];
    table->hash = mix(mix(table->hash, s->kind), type_hash(r, s->type));
    if (s->kind == PTA_FUNCTION) add_func(table, s->func);
}

static void add_space(pta_reuse *r, const pta_program *program, reuse_table *table, const address_space *space)
{
    table->hash = mix(table->hash, space->homes.len);
    for (uint32_t i = 0; i < space->homes.len; i++) {
        const address_home *home = &space->homes.data[i];
        table->hash = mix(mix(mix(table->hash, (uint64_t)home->start), (uint64_t)home->end), home->named);
        add_site(r, program, table, home->site);
    }
}

static bool is_same_site(const pta_reuse *r, uint32_t was, uint32_t now)
{
    if (was == PTA_NO_SITE || now == PTA_NO_SITE) return was == now;
    return was < r->sites_before &&
           (r->site_now[was] == now || (r->site_now[was] == PTA_NO_SITE && r->site_was[now] == PTA_NO_SITE));
}

static bool is_same_func(const pta_reuse *r, uint32_t was, uint32_t now)
{
    if (was == PTA_NO_FUNC || now == PTA_NO_FUNC) return was == now;
    return was < r->funcs_before && r->func_now[was] == now;
}

/* The tables of a module are those of before; what is new of the numbers is noted. */
static bool is_same_table(pta_reuse *r, const reuse_table *was, const reuse_table *now)
{
    if (was->hash != now->hash || was->funcs.len != now->funcs.len || was->sites.len != now->sites.len) return false;
    for (uint32_t i = 0; i < now->funcs.len; i++)
        if (!is_same_func(r, was->funcs.data[i], now->funcs.data[i])) return false;
    for (uint32_t i = 0; i < now->sites.len; i++) {
        if (!is_same_site(r, was->sites.data[i], now->sites.data[i])) return false;
        if (now->sites.data[i] != PTA_NO_SITE) pair_site(r, was->sites.data[i], now->sites.data[i]);
    }
    return true;
}

/* When it is known how functions are given arguments. */
void reuse_module(pta_reuse *r, const pta_program *program, const pta_program *before, uint32_t m)
{
    const image *img = program->modules[m]->img;
    const module_map *map = &program->maps->modules[m];
    uint32_t count = program->modules[m]->func_count;
    reuse_table *table = &r->tables[m];
    table->hash = mix(count, program->stack);
    for (uint32_t i = 0; i < img->reloc_count; i++)
        add_site(r, program, table, map->slots[i]);
    for (uint32_t i = 0; i < img->plt_count; i++)
        add_func(table, map->plts[i]);
    for (uint32_t i = 0; i < count; i++) {
        add_func(table, map->chosen[i]);
        add_site(r, program, table, map->chosen[count + i]);
    }
    add_space(r, program, table, &map->statics);
    add_space(r, program, table, &map->tls);
    table->same =
        r->func_now && map->was != PTA_NO_MODULE && is_same_table(r, &before->maps->reuse->tables[map->was], table);
}

static uint64_t func_hash(const pta_reuse *r, const pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    uint64_t hash = mix(mix(f->takes, f->gives), f->stack);
    return f->lift ? mix(hash, r->declared[func]) : mix(hash, text_hash(f->name));
}

static uint64_t depends(const pta_reuse *r, const pta_program *program, uint32_t func, const id_numbers *callees)
{
    uint64_t hash = func_hash(r, program, func);
    for (uint32_t i = 0; i < callees->len; i++)
        hash = mix(hash, func_hash(r, program, callees->data[i]));
    return hash | 1;
}

/* The numbers of now in what was generated before. False: one of them is no more. */
static bool renumber(const pta_reuse *r, reuse_func *f, uint32_t func)
{
    generated *code = &f->code;
    for (uint32_t i = 0; i < code->stmts.len; i++) { /* first, all are looked at: nothing is changed in vain */
        const pta_stmt *stmt = &code->stmts.data[i];
        if (stmt->kind == PTA_ADDR && !(stmt->ref & GENERATE_LOCAL) && r->site_now[stmt->ref] == PTA_NO_SITE)
            return false;
    }
    for (uint32_t i = 0; i < code->calls.len; i++)
        if (code->calls.data[i].func != PTA_NO_FUNC && r->func_now[code->calls.data[i].func] == PTA_NO_FUNC)
            return false;
    if (!r->moved) return true;
    for (uint32_t i = 0; i < code->stmts.len; i++) {
        pta_stmt *stmt = &code->stmts.data[i];
        if (stmt->kind == PTA_ADDR && !(stmt->ref & GENERATE_LOCAL)) stmt->ref = r->site_now[stmt->ref];
    }
    for (uint32_t i = 0; i < code->calls.len; i++) {
        pta_call *call = &code->calls.data[i];
        if (call->func != PTA_NO_FUNC) call->func = r->func_now[call->func];
        call->caller = func;
    }
    for (uint32_t i = 0; i < code->sites.len; i++)
        if (code->sites.data[i].func != PTA_NO_FUNC) code->sites.data[i].func = func;
    for (uint32_t i = 0; i < code->accesses.len; i++)
        code->accesses.data[i].func = func;
    return true;
}

/* What was generated before, if it is good; it is r's from then on. */
bool reuse_take(pta_reuse *r, pta_program *before, const pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    if (!r->tables[f->module].same) return false;
    pta_reuse *then = before->maps->reuse;
    reuse_func *old = &then->funcs[then->first[program->maps->modules[f->module].was] + f->lift->id];
    if (!old->depends) return false;
    id_numbers now = {0};
    bool good = true;
    for (uint32_t i = 0; i < old->callees.len; i++) {
        uint32_t callee = r->func_now[old->callees.data[i]];
        good &= callee != PTA_NO_FUNC;
        vec_push(&now, callee);
    }
    for (uint32_t i = 0; i < old->lenders.len; i++)
        good &= r->module_now[old->lenders.data[i]] != PTA_NO_MODULE;
    if (!good || old->depends != depends(r, program, func, &now) || !renumber(r, old, func)) {
        vec_free(&now);
        return false;
    }
    for (uint32_t i = 0; i < old->lenders.len; i++)
        old->lenders.data[i] = r->module_now[old->lenders.data[i]];
    vec_free(&old->callees);
    r->funcs[func] = *old;
    r->funcs[func].callees = now;
    *old = (reuse_func){0};
    return true;
}

/* False: nobody knows whose type it is. */
static bool note_lender(const pta_program *program, uint32_t module, const image_type *type, id_numbers *lenders)
{
    if (image_owns_type(program->modules[module]->img, type)) return true;
    for (uint32_t i = 0; i < lenders->len; i++)
        if (image_owns_type(program->modules[lenders->data[i]]->img, type)) return true;
    for (uint32_t m = 0; m < program->module_count; m++)
        if (image_owns_type(program->modules[m]->img, type)) {
            vec_push(lenders, m);
            return true;
        }
    return false;
}

/* Keeps what was generated now. */
void reuse_keep(pta_reuse *r, const pta_program *program, const generate_module *about, uint32_t func, generated *code)
{
    reuse_func *f = &r->funcs[func];
    const ir_func *ir = program->funcs.data[func].lift->ir;
    f->code = *code;
    *code = (generated){0};
    for (uint32_t i = 0; i < f->code.calls.len; i++) {
        const image_type *type = f->code.calls.data[i].makes;
        if (type && !note_lender(program, program->funcs.data[func].module, type, &f->lenders)) return;
    }
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
    free(r->func_now);
    free(r->site_now);
    free(r->site_was);
    free(r->module_now);
    r->func_now = r->site_now = r->site_was = r->module_now = NULL;
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
        vec_free(&r->funcs[f].lenders);
    }
    for (uint32_t m = 0; m < r->module_count; m++) {
        vec_free(&r->tables[m].funcs);
        vec_free(&r->tables[m].sites);
    }
    free(r->tables);
    free(r->declared);
    free(r->names);
    free(r->paths);
    free(r->first);
    free(r->funcs);
    free(r);
}
