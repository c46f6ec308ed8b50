/* A program: the functions of all modules and the models of what they import; surround.c adds what no module has. */
#include "static/pointer/program.h"
#include "static/pointer/shape.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "static/pointer/maps.h"
#include "static/pointer/passing.h"
#include "static/pointer/reuse.h"

/* --- building blocks --------------------------------------------------------------------------------------------------- */

uint32_t program_add_func(pta_program *program, const char *name, const lift_func *lift, uint32_t module)
{
    vec_push(&program->funcs, (pta_func){.lift = lift, .module = module, .name = name, .var_count = PTA_FIRST_LOCAL});
    return program->funcs.len - 1;
}

uint32_t program_add_site(pta_program *program, pta_site site)
{
    site.shape = shape_build(&program->memory, site.type, 0, 0);
    vec_push(&program->sites, site);
    return program->sites.len - 1;
}

uint32_t program_add_call(pta_program *program, pta_call call)
{
    vec_push(&program->calls, call);
    return program->calls.len - 1;
}

void program_add_stmt(pta_program *program, uint32_t func, pta_stmt stmt)
{
    vec_push(&program->funcs.data[func].stmts, stmt);
}

uint32_t program_new_var(pta_program *program, uint32_t func)
{
    return program->funcs.data[func].var_count++;
}

uint32_t program_external_site(pta_program *program)
{
    return program->external;
}

uint32_t program_library_site(pta_program *program, const char *name)
{
    name_entry *known = names_find(&program->maps->libraries, name);
    if (known) return known->site;
    const char *copy = arena_string(&program->memory, name, strlen(name));
    uint32_t site = program->sites.len;
    program_add_site(program, (pta_site){.kind = PTA_LIBRARY, .func = PTA_NO_FUNC, .memory = site, .align = 16, .name = copy});
    names_add(&program->maps->libraries, (name_entry){copy, PTA_NO_FUNC, site});
    return site;
}

uint32_t program_func_at(const pta_program *program, uint32_t module, uint64_t entry)
{
    const lift_func *f = lift_func_at(program->modules[module], entry);
    return f ? program->maps->modules[module].first_func + f->id : PTA_NO_FUNC;
}

static uint32_t add_function_site(pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    uint32_t site = program->sites.len;
    return program_add_site(program, (pta_site){.kind = PTA_FUNCTION, .constant = true, .module = f->module, .func = func,
                                                .start = f->lift ? f->lift->entry : 0, .size = 1, .memory = site,
                                                .align = 1, .name = f->name});
}

uint32_t program_function_site(pta_program *program, uint32_t func)
{
    const pta_func *f = &program->funcs.data[func];
    if (f->lift) return program->maps->modules[f->module].first_function_site + f->lift->id;
    struct pta_maps *maps = program->maps;
    if (func >= maps->function_site_count) {
        maps->function_sites = base_realloc(maps->function_sites, (func + 1) * 2 * sizeof *maps->function_sites);
        for (uint32_t i = maps->function_site_count; i < (func + 1) * 2; i++)
            maps->function_sites[i] = PTA_NO_SITE;
        maps->function_site_count = (func + 1) * 2;
    }
    if (maps->function_sites[func] == PTA_NO_SITE) {
        uint32_t site = add_function_site(program, func);
        maps->function_sites[func] = site;
    }
    return maps->function_sites[func];
}

uint32_t program_import(pta_program *program, const char *name)
{
    name_entry *known = names_find(&program->maps->names, name);
    if (known) return known->func;
    const char *copy = arena_string(&program->memory, name, strlen(name));
    const pta_wishes *wishes = program->wishes;
    const char *wished = wishes && wishes->model ? wishes->model(wishes->with, name) : NULL;
    const char *text = wished ? wished : model_find(name);
    uint32_t func = PTA_NO_FUNC;
    race_error error;
    if (text) {
        func = program_add_func(program, copy, NULL, 0);
        program->funcs.data[func].clone = true;
        if (model_fill(program, func, text, &error)) func = PTA_NO_FUNC; /* the tests see to it that no text is wrong */
    }
    names_add(&program->maps->names, (name_entry){copy, func, PTA_NO_SITE});
    return func;
}

/* --- modules ------------------------------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The data addresses that a module names itself. */
static uint64_t *referenced(const lift_module *module, uint32_t *count)
{
    VEC(uint64_t) all = {0};
    const image *img = module->img;
    for (uint32_t i = 0; i < img->reloc_count; i++)
        if (img->relocs[i].kind == IMAGE_REL_ADDR || img->relocs[i].kind == IMAGE_REL_GUESS)
            vec_push(&all, img->relocs[i].target);
    for (uint32_t f = 0; f < module->func_count; f++) {
        const ir_func *ir = module->funcs[f]->ir;
        for (ir_value v = 1; ir && v < ir->insn_count; v++) {
            const ir_insn *insn = &ir->insns[v];
            bool address = insn->op == IR_ADDRESS ||
                           (img->kind == IMAGE_EXEC && insn->imm >= 4096 &&
                            (insn->op == IR_CONST || ((insn->op == IR_LEA || insn->op == IR_ACCESS) && !insn->a)));
            if (address && !image_is_code(img, (uint64_t)insn->imm)) vec_push(&all, (uint64_t)insn->imm);
        }
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_value);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all.len; i++)
        if (!kept || all.data[i] != all.data[kept - 1]) all.data[kept++] = all.data[i];
    *count = kept;
    return all.data;
}

/* What is known of a module alone: from before, or found. */
static void know_module(pta_program *program, uint32_t m)
{
    const lift_module *module = program->modules[m];
    module_map *map = &program->maps->modules[m];
    module_map *old = map->was != PTA_NO_MODULE ? &program->wishes->before->maps->modules[map->was] : NULL;
    if (old && old->stacks) {
        map->stacks = old->stacks;
        map->addresses = old->addresses;
        map->address_count = old->address_count;
        old->stacks = NULL;
        old->addresses = NULL;
        return;
    }
    map->stacks = base_alloc_zero((size_t)module->func_count + 1, sizeof *map->stacks);
    for (uint32_t f = 0; f < module->func_count; f++)
        if (module->funcs[f]->ir) map->stacks[f] = generate_stack(module->funcs[f]->ir);
    map->addresses = referenced(module, &map->address_count);
}

static void add_module(pta_program *program, uint32_t m)
{
    const lift_module *module = program->modules[m];
    module_map *map = &program->maps->modules[m];
    know_module(program, m);
    map->first_func = program->funcs.len;
    for (uint32_t f = 0; f < module->func_count; f++)
        program_add_func(program, module->funcs[f]->name, module->funcs[f], m);
    map->first_function_site = program->sites.len;
    for (uint32_t f = 0; f < module->func_count; f++) {
        add_function_site(program, map->first_func + f);
        program->funcs.data[map->first_func + f].stack = map->stacks[f];
        if (map->stacks[f] > program->stack) program->stack = map->stacks[f];
    }
    address_static(program, m, map->addresses, map->address_count, &map->statics);
    address_tls(program, m, &map->tls);
}

/* Exported names; the first module that defines one wins, as in the loader. */
static void add_names(pta_program *program, uint32_t m)
{
    const image *img = program->modules[m]->img;
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *symbol = &img->symbols[i];
        bool visible = img->kind == IMAGE_OBJECT ? link_is_chosen(program->maps->link, m, symbol) : symbol->exported;
        bool sized = symbol->size || (img->kind == IMAGE_OBJECT && symbol->type == IMAGE_SYM_FUNC);
        bool tls = symbol->type == IMAGE_SYM_TLS;
        if (!visible || !sized || (tls && img->kind != IMAGE_OBJECT) || names_find(&program->maps->names, symbol->name)) continue;
        uint32_t func = symbol->type == IMAGE_SYM_FUNC ? program_func_at(program, m, symbol->addr) : PTA_NO_FUNC;
        const module_map *map = &program->maps->modules[m];
        const address_home *home = symbol->type == IMAGE_SYM_OBJECT || tls
                                       ? address_find(tls ? &map->tls : &map->statics, (int64_t)symbol->addr)
                                       : NULL;
        uint32_t site = func != PTA_NO_FUNC ? program_function_site(program, func) : home ? home->site : PTA_NO_SITE;
        if (site == PTA_NO_SITE) continue;
        names_add(&program->maps->names, (name_entry){symbol->name, func, site});
    }
}

static uint32_t name_site(pta_program *program, const char *name)
{
    uint32_t func = program_import(program, name);
    if (func != PTA_NO_FUNC) return program_function_site(program, func);
    return names_find(&program->maps->names, name)->site;
}

/* The site of another module that takes the place of one that this module defines itself, as the loader and the linker see to
 * it: one definition is everybody's. PTA_NO_SITE: its own is meant. */
static uint32_t interposed(const pta_program *program, uint32_t m, const char *name, const image_symbol *own)
{
    const image *img = program->modules[m]->img;
    bool may = img->kind == IMAGE_SHARED || (img->kind == IMAGE_OBJECT && own && own->bind != IMAGE_BIND_LOCAL);
    const name_entry *entry = may ? names_find(&program->maps->names, name) : NULL;
    if (!entry || entry->site == PTA_NO_SITE) return PTA_NO_SITE;
    const pta_site *site = &program->sites.data[entry->site];
    bool other = (site->kind == PTA_STATIC || site->kind == PTA_FUNCTION) && site->module != m &&
                 (site->kind == PTA_STATIC || program->funcs.data[site->func].lift);
    return other ? entry->site : PTA_NO_SITE;
}

/* The symbol of this name at an address. */
static const image_symbol *symbol_named(const image *img, uint64_t addr, const char *name)
{
    const image_symbol *symbol = image_symbol_at(img, addr);
    for (; symbol && symbol < img->symbols + img->symbol_count && symbol->addr == addr; symbol++)
        if (!strcmp(symbol->name, name)) return symbol;
    return image_symbol_at(img, addr);
}

/* What an undefined symbol of an object file may be the address of. */
static uint32_t undefined_site(pta_program *program, uint32_t m, const image_plt *symbol)
{
    uint32_t func = program_import(program, symbol->name);
    if (func != PTA_NO_FUNC) return program_function_site(program, func);
    uint32_t site = names_find(&program->maps->names, symbol->name)->site;
    if (site != PTA_NO_SITE) return site;
    const name_entry *known = names_find(&program->maps->foreign, symbol->name);
    if (known) return known->site;
    site = program->sites.len;
    program_add_site(program, (pta_site){.kind = PTA_STATIC, .module = m, .func = PTA_NO_FUNC, .start = symbol->addr, .memory = site,
                                         .align = 16, .open = true, .name = symbol->name});
    names_add(&program->maps->foreign, (name_entry){symbol->name, PTA_NO_FUNC, site});
    return site;
}

/* An object file sees the definitions that the linker chooses, in the places of its undefined symbols and of those of its own
 * that are dropped. */
static void link_object(pta_program *program, uint32_t m)
{
    const image *img = program->modules[m]->img;
    module_map *map = &program->maps->modules[m];
    uint32_t count = program->modules[m]->func_count;
    map->chosen = base_alloc(2 * (size_t)count * sizeof *map->chosen);
    for (uint32_t f = 0; f < count; f++) {
        map->chosen[f] = map->first_func + f;
        map->chosen[count + f] = map->first_function_site + f;
    }
    if (img->kind != IMAGE_OBJECT) return;
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *symbol = &img->symbols[i];
        uint32_t site = interposed(program, m, symbol->name, symbol);
        if (site == PTA_NO_SITE || symbol->type == IMAGE_SYM_TLS) continue;
        const lift_func *f = symbol->type == IMAGE_SYM_FUNC ? lift_func_at(program->modules[m], symbol->addr) : NULL;
        if (f && program->sites.data[site].kind == PTA_FUNCTION) {
            map->chosen[f->id] = program->sites.data[site].func;
            map->chosen[count + f->id] = site;
        } else if (!f) {
            address_replace(&map->statics, (int64_t)symbol->addr, site);
        }
    }
    const image_section *section = img->plt_count ? image_section_at(img, img->plts[0].addr) : NULL;
    for (uint32_t i = 0; section && i < img->plt_count; i++) {
        uint64_t end = i + 1 < img->plt_count ? img->plts[i + 1].addr : section->addr + section->size;
        address_add(&map->statics, (int64_t)img->plts[i].addr, (int64_t)end, undefined_site(program, m, &img->plts[i]), true);
    }
    address_seal(&map->statics);
    for (uint32_t i = 0; i < img->reloc_count; i++) {
        const image_reloc *reloc = &img->relocs[i];
        bool tls = reloc->name && *reloc->name && (reloc->kind == IMAGE_REL_TPOFF || reloc->kind == IMAGE_REL_DTPOFF);
        const name_entry *entry = tls ? names_find(&program->maps->names, reloc->name) : NULL;
        int64_t at = (int64_t)reloc->target - reloc->addend;
        if (entry && entry->site != PTA_NO_SITE && !image_symbol_tls(img, (uint64_t)at)) address_replace(&map->tls, at, entry->site);
    }
}

/* Whether a function of a program that is linked statically is of the libraries that are known at their interface: behind the start
 * of the C library everything is. In front of it is also the library of C++, whose names nobody else has. */
static bool is_library(const image *img, uint64_t addr, const image_symbol *symbol)
{
    static const char *const reserved[] = {"abort", "pthread_", "__pthread_", "__cxa_", "_Znw", "_Zna",
                                           "_Zdl", "_Zda", "_ZNSt", "_ZNKSt", "_ZSt", "_Unwind_"};
    if (addr >= img->libc) return true;
    if (!symbol || symbol->bind == IMAGE_BIND_LOCAL || image_function_at(img, addr) || !model_find(symbol->name)) return false;
    for (unsigned i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strncmp(symbol->name, reserved[i], strlen(reserved[i])))
            return symbol->bind != IMAGE_BIND_WEAK || strncmp(symbol->name, "_ZN", 3); /* else a template of the program's own */
    return false;
}

/* A library's function is what it would be if it were linked dynamically, whatever its code does: of its names the plainest that
 * has a model. */
static uint32_t library_func(pta_program *program, const image *img, uint64_t addr)
{
    const image_symbol *best = image_symbol_at(img, addr), *symbol = best;
    uint32_t func = best ? program_import(program, best->name) : PTA_NO_FUNC;
    while (symbol && symbol > img->symbols && symbol[-1].addr == addr)
        symbol--;
    for (; func == PTA_NO_FUNC && symbol && symbol < img->symbols + img->symbol_count && symbol->addr == addr; symbol++)
        func = program_import(program, symbol->name);
    return func == PTA_NO_FUNC ? program->unknown : func;
}

static void link_libraries(pta_program *program, uint32_t m)
{
    const lift_module *module = program->modules[m];
    const image *img = module->img;
    module_map *map = &program->maps->modules[m];
    for (uint32_t f = 0; img->libc && f < module->func_count; f++) {
        uint64_t entry = module->funcs[f]->entry;
        const image_symbol *symbol = image_symbol_at(img, entry);
        if (!is_library(img, entry, symbol)) continue;
        map->chosen[f] = library_func(program, img, entry);
        map->chosen[module->func_count + f] = program_function_site(program, map->chosen[f]);
    }
}

uint32_t program_func_meant(const pta_program *program, uint32_t module, uint64_t entry)
{
    const lift_func *f = lift_func_at(program->modules[module], entry);
    return !f ? PTA_NO_FUNC : program->modules[module]->img->libc ? program->maps->modules[module].chosen[f->id]
                                                                  : program->maps->modules[module].first_func + f->id;
}

/* Thread-local variables of a library that its models know; others are external. */
static uint32_t thread_local_site(pta_program *program, const image_reloc *reloc)
{
    static const char *const known[] = {"_ZSt11__once_call", "_ZSt15__once_callable"};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(reloc->name, known[i])) continue;
        uint32_t site = program_library_site(program, known[i]);
        program->sites.data[site].kind = PTA_TLS;
        return site;
    }
    return PTA_NO_SITE;
}

static void resolve_imports(pta_program *program, uint32_t m)
{
    const image *img = program->modules[m]->img;
    module_map *map = &program->maps->modules[m];
    map->slots = base_alloc((size_t)img->reloc_count * sizeof *map->slots);
    map->plts = base_alloc((size_t)img->plt_count * sizeof *map->plts);
    for (uint32_t i = 0; i < img->reloc_count; i++) {
        const image_reloc *reloc = &img->relocs[i];
        bool named = reloc->name && *reloc->name;
        bool tls = reloc->kind == IMAGE_REL_TPOFF || reloc->kind == IMAGE_REL_DTPOFF || reloc->kind == IMAGE_REL_DTPMOD;
        map->slots[i] = named && reloc->kind == IMAGE_REL_SYMBOL ? name_site(program, reloc->name)
                        : named && tls && !reloc->target         ? thread_local_site(program, reloc)
                        : named && reloc->kind == IMAGE_REL_ADDR
                            ? interposed(program, m, reloc->name, symbol_named(img, reloc->target - (uint64_t)reloc->addend, reloc->name))
                                                                 : PTA_NO_SITE;
    }
    for (uint32_t i = 0; i < img->plt_count; i++) {
        const image_plt *plt = &img->plts[i];
        uint32_t func = plt->target && *plt->name ? program_func_at(program, m, plt->target) : PTA_NO_FUNC;
        uint32_t site = func != PTA_NO_FUNC ? interposed(program, m, plt->name, NULL) : PTA_NO_SITE;
        if (site != PTA_NO_SITE && program->sites.data[site].kind == PTA_FUNCTION) func = program->sites.data[site].func;
        if (img->libc && plt->target && !*plt->name && is_library(img, plt->target, image_symbol_at(img, plt->target)))
            func = library_func(program, img, plt->target); /* chosen for the processor when the program starts: memcpy, strlen */
        map->plts[i] = func == PTA_NO_FUNC && plt->name && *plt->name ? program_import(program, plt->name) : func;
    }
}

/* --- generation -------------------------------------------------------------------------------------------------------- */

static void take(pta_program *program, uint32_t func, generated *from)
{
    pta_func *f = &program->funcs.data[func];
    uint32_t first_site = program->sites.len, first_call = program->calls.len;
    for (uint32_t i = 0; i < from->sites.len; i++) {
        pta_site site = from->sites.data[i];
        site.memory = site.memory & GENERATE_LOCAL ? first_site + (site.memory & ~GENERATE_LOCAL) : program->sites.len;
        program_add_site(program, site);
    }
    for (uint32_t i = 0; i < from->calls.len; i++)
        program_add_call(program, from->calls.data[i]);
    for (uint32_t i = 0; i < from->stmts.len; i++) {
        pta_stmt *stmt = &from->stmts.data[i];
        if (stmt->ref & GENERATE_LOCAL)
            stmt->ref = (stmt->ref & ~GENERATE_LOCAL) + (stmt->kind == PTA_CALL ? first_call : first_site);
    }
    f->stmts.data = from->stmts.data;
    f->stmts.len = from->stmts.len;
    f->stmts.cap = from->stmts.cap;
    from->stmts.data = NULL;
    f->accesses = from->accesses.data;
    f->access_count = from->accesses.len;
    from->accesses.data = NULL;
    f->var_count = from->var_count;
    program->unknown_calls += from->unknown_calls;
    program->unknown_accesses += from->unknown_accesses;
}

static generate_module about_module(const pta_program *program, uint32_t m)
{
    const module_map *map = &program->maps->modules[m];
    return (generate_module){.statics = &map->statics, .tls = &map->tls, .slots = map->slots, .plts = map->plts,
                             .unknown = program->unknown, .copied = program->maps->copied, .external = program->external,
                             .messages = program->maps->messages, .chosen = map->chosen, .count = program->modules[m]->func_count};
}

static generated copy_code(const generated *from)
{
    generated to = {.var_count = from->var_count, .unknown_calls = from->unknown_calls, .unknown_accesses = from->unknown_accesses};
#define COPY(list)                                                                                                     \
    do {                                                                                                               \
        vec_reserve(&to.list, from->list.len);                                                                         \
        if (from->list.len) memcpy(to.list.data, from->list.data, from->list.len * sizeof *to.list.data);              \
        to.list.len = from->list.len;                                                                                  \
    } while (0)
    COPY(stmts);
    COPY(calls);
    COPY(sites);
    COPY(accesses);
#undef COPY
    return to;
}

static void generate_module_of(pta_program *program, uint32_t m, const generate_module *about, int jobs)
{
    const module_map *map = &program->maps->modules[m];
    uint32_t count = program->modules[m]->func_count;
    generated *all = base_alloc_zero(count, sizeof *all);
    bool *done = base_alloc_zero(count + 1, 1);
    pta_reuse *reuse = program->maps->reuse;
    for (uint32_t f = 0; f < count && reuse; f++)
        done[f] = reuse_take(reuse, program->wishes->before, program, map->first_func + f);
#pragma omp parallel for schedule(dynamic, 16) num_threads(jobs)
    for (uint32_t f = 0; f < count; f++)
        if (!done[f]) generate_function(program, about, map->first_func + f, &all[f]);
    for (uint32_t f = 0; f < count; f++) {
        program->generated += !done[f];
        if (reuse && !done[f]) reuse_keep(reuse, program, about, map->first_func + f, &all[f]);
        if (reuse) all[f] = copy_code(reuse_code(reuse, map->first_func + f));
        take(program, map->first_func + f, &all[f]);
        generate_free(&all[f]);
    }
    free(all);
    free(done);
}

static void generate_all(pta_program *program, int jobs)
{
    generate_module *about = base_alloc((size_t)program->module_count * sizeof *about);
    for (uint32_t m = 0; m < program->module_count; m++)
        about[m] = about_module(program, m);
    const pta_wishes *wishes = program->wishes;
    passing_memo *known = passing_find(program, about, wishes && wishes->before ? wishes->before->maps->passing : NULL);
    if (wishes && wishes->keep)
        program->maps->passing = known;
    else
        passing_forget(known);
    pta_reuse *reuse = NULL;
    if (wishes && wishes->keep) {
        pta_program *before = wishes->before && wishes->before->maps->reuse ? wishes->before : NULL;
        reuse = program->maps->reuse = reuse_open(program, before);
        for (uint32_t m = 0; m < program->module_count; m++)
            reuse_module(reuse, program, before, m);
    }
    for (uint32_t m = 0; m < program->module_count; m++)
        generate_module_of(program, m, &about[m], jobs);
    if (reuse) reuse_settle(reuse);
    free(about);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

/* A function of a module that a model was wished for does what the model says, and nothing else. */
static void replace_bodies(pta_program *program)
{
    const pta_wishes *wishes = program->wishes;
    uint32_t count = program->funcs.len;
    for (uint32_t f = 0; wishes && wishes->model && f < count; f++) {
        pta_func *func = &program->funcs.data[f];
        const char *text = func->lift ? wishes->model(wishes->with, func->name) : NULL;
        race_error error;
        if (!text) continue;
        vec_free(&func->stmts);
        func->access_count = 0;
        func->var_count = PTA_FIRST_LOCAL;
        func->clone = func->modelled = true;
        model_fill(program, f, text, &error);
    }
}

/* Which modules the program before had, too. */
static void identify_modules(pta_program *program, const pta_program *before)
{
    for (uint32_t m = 0; m < program->module_count; m++) {
        module_map *map = &program->maps->modules[m];
        map->at = (uintptr_t)program->modules[m];
        map->generation = program->modules[m]->generation;
        map->was = PTA_NO_MODULE;
        uint32_t at = m; /* nearly always where it was */
        for (uint32_t tries = 0; before && before->maps->reuse && tries < before->module_count && map->was == PTA_NO_MODULE; tries++) {
            const module_map *old = &before->maps->modules[(at + tries) % before->module_count];
            if (old->at == map->at && old->generation == map->generation) map->was = (at + tries) % before->module_count;
        }
    }
}

pta_program *pta_program_open(lift_module **modules, uint32_t count, int jobs)
{
    return pta_program_open_for(modules, count, jobs, NULL);
}

pta_program *pta_program_open_for(lift_module **modules, uint32_t count, int jobs, const pta_wishes *wishes)
{
    pta_program *program = base_alloc_zero(1, sizeof *program);
    program->wishes = wishes;
    program->maps = base_alloc_zero(1, sizeof *program->maps);
    program->modules = base_alloc((size_t)count * sizeof *modules);
    memcpy(program->modules, modules, (size_t)count * sizeof *modules);
    program->module_count = count;
    program->maps->modules = base_alloc_zero(count, sizeof *program->maps->modules);
    identify_modules(program, wishes ? wishes->before : NULL);
    program->external =
        program_add_site(program, (pta_site){.kind = PTA_EXTERNAL, .func = PTA_NO_FUNC, .align = 1, .name = "external"});
    program->wild = program_add_site(program, (pta_site){.kind = PTA_WILD, .func = PTA_NO_FUNC, .memory = program->sites.len,
                                                         .align = 1, .name = "wild"});
    program->escaped = program_library_site(program, "*escaped*");
    race_error error;
    program->unknown = program_add_func(program, "*unknown*", NULL, 0);
    model_fill(program, program->unknown,
               "ext = 0; ext = 1; ext = 2; ext = 3; ext = 4; ext = 5; ret = ext; ret2 = ext", &error);
    program->maps->messages = program_library_site(program, "*messages*");
    program->maps->copied = program_add_func(program, "*copied*", NULL, 0);
    program->funcs.data[program->maps->copied].clone = true;
    model_fill(program, program->maps->copied, "ret = 0", &error);
    for (uint32_t m = 0; m < count; m++)
        add_module(program, m);
    program->maps->link = link_open(modules, count);
    for (uint32_t m = 0; m < count; m++)
        add_names(program, m);
    for (uint32_t m = 0; m < count; m++) {
        link_object(program, m);
        link_libraries(program, m);
    }
    for (uint32_t m = 0; m < count; m++)
        resolve_imports(program, m);
    generate_all(program, jobs > 0 ? jobs : omp_get_max_threads());
    replace_bodies(program);
    program_surround(program);
    program_name_allocators(program);
    program_find_wrappers(program);
    program_find_helpers(program);
    program_prune(program);
    program->wishes = NULL;
    link_close(program->maps->link);
    program->maps->link = NULL;
    return program;
}

void pta_program_close(pta_program *program)
{
    if (!program) return;
    for (uint32_t f = 0; f < program->funcs.len; f++) {
        vec_free(&program->funcs.data[f].stmts);
        free(program->funcs.data[f].accesses);
    }
    for (uint32_t m = 0; m < program->module_count; m++) {
        module_map *map = &program->maps->modules[m];
        vec_free(&map->statics.homes);
        vec_free(&map->tls.homes);
        free(map->slots);
        free(map->plts);
        free(map->chosen);
        free(map->stacks);
        free(map->addresses);
    }
    passing_forget(program->maps->passing);
    reuse_close(program->maps->reuse);
    free(program->maps->foreign.entries);
    free(program->maps->names.entries);
    free(program->maps->libraries.entries);
    free(program->maps->function_sites);
    free(program->maps->modules);
    free(program->maps);
    free(program->modules);
    vec_free(&program->funcs);
    vec_free(&program->sites);
    vec_free(&program->calls);
    arena_free(&program->memory);
    free(program);
}

const pta_access *pta_accesses(const pta_program *program, uint32_t func, uint32_t *count)
{
    *count = program->funcs.data[func].access_count;
    return program->funcs.data[func].accesses;
}
