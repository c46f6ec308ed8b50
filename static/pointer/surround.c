/* The functions that no module has: `*start*` calls what may be called from outside, `*data*` stores the words that the loader
 * fills in, `*outside*` does with everything that has escaped whatever unknown code could do, `*wilderness*` what wild pointers do. */
#include "static/pointer/program.h"

#include <string.h>

#include "static/pointer/maps.h"

static uint32_t address_var(pta_program *program, uint32_t func, uint32_t site, int32_t offset, uint32_t stride)
{
    uint32_t var = program_new_var(program, func);
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, offset}, .ref = site,
                                               .stride = stride});
    return var;
}

/* A variable that may be anything that the outside knows. */
static uint32_t external_var(pta_program *program, uint32_t func)
{
    return address_var(program, func, program->external, 0, PTA_ANY);
}

static void add_call_of(pta_program *program, uint32_t from, uint32_t callee, uint32_t target, uint32_t value, uint32_t ret)
{
    pta_call call = {.func = callee, .target = {target, 0}, .ret = ret, .ret2 = ret, .caller = from, .in_loop = true};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){value, 0};
    program_add_stmt(program, from, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
}

/* All that has escaped is in one variable; what it leads to escapes too, may be overwritten with anything that is known
 * outside, and may be called with it. */
static void add_outside(pta_program *program)
{
    uint32_t func = program->outside = program_add_func(program, "*outside*", NULL, 0);
    uint32_t anything = external_var(program, func), word = address_var(program, func, program->escaped, 0, PTA_SAME);
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_LOAD, .dst = {PTA_RET, 0}, .src = {word, 0}});
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_LOAD, .dst = {PTA_RET, 0}, .src = {PTA_RET, 0}, .stride = PTA_ANY});
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {PTA_RET, 0}, .src = {anything, 0}, .stride = PTA_ANY});
    add_call_of(program, func, PTA_NO_FUNC, PTA_RET, anything, PTA_RET);
}

/* What wild pointers (set.h) do is done once for all of them. */
static void add_wilderness(pta_program *program)
{
    uint32_t func = program->wilderness = program_add_func(program, "*wilderness*", NULL, 0);
    program->funcs.data[func].root = true;
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_LOAD, .dst = {PTA_RET, 0}, .src = {PTA_RDI, 0}});
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {PTA_RDI, 0}, .src = {PTA_RSI, 0}});
    uint32_t code = program_new_var(program, func), word = address_var(program, func, program_library_site(program, "wild_code"),
                                                                       0, PTA_SAME);
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_COPY, .dst = {code, 0}, .src = {PTA_RDI, 0}, .stride = PTA_CODE});
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {word, 0}, .src = {code, 0}});
    race_error error;
    program->wild_call = program_add_func(program, "*wild call*", NULL, 0);
    model_fill(program, program->wild_call, "f = lib wild_code; ret = call f (0, 1, 2, 3, 4, 5, 6...)", &error);
    program->calls.data[program->calls.len - 1].ret2 = PTA_RET2;
}

/* The object of another module that the loader copies from; NULL: nobody knows it. */
static const address_home *copied_object(const pta_program *program, uint32_t m, const char *name)
{
    for (uint32_t k = 0; name && k < program->module_count; k++) {
        const image *img = program->modules[k]->img;
        for (uint32_t i = 0; k != m && i < img->symbol_count; i++) {
            const image_symbol *symbol = &img->symbols[i];
            if (symbol->exported && symbol->type == IMAGE_SYM_OBJECT && !strcmp(symbol->name, name))
                return address_find(&program->maps->modules[k].statics, (int64_t)symbol->addr);
        }
    }
    return NULL;
}

/* A variable of a library that the program has a copy of. */
static void add_copy(pta_program *program, uint32_t func, const address_home *to, const address_home *from)
{
    enum { WORDS = 64 };
    int64_t words = (to->end - to->start) / 8;
    for (int64_t i = 0; i < (words <= WORDS ? words : 1); i++) {
        uint32_t stride = words <= WORDS ? PTA_SAME : 8 | PTA_BLOCK;
        uint32_t source = address_var(program, func, from->site, (int32_t)(8 * i), PTA_SAME);
        uint32_t dest = address_var(program, func, to->site, (int32_t)(8 * i), PTA_SAME), var = program_new_var(program, func);
        program_add_stmt(program, func, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = {source, 0}, .stride = stride});
        program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {dest, 0}, .src = {var, 0}, .stride = stride});
    }
}

/* Tables of classes of a library that was not analysed, whose functions do nothing with the objects they are called for: an object of
 * a derived class has them while its base is made, so to a flow-insensitive analysis always. */
static bool is_quiet_table(const char *name)
{
    static const char *const tables[] = {"_ZTVNSt6thread6_StateE"}; /* a destructor, and the pure _M_run */
    for (unsigned i = 0; name && i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(name, tables[i])) return true;
    return false;
}

static void add_word(pta_program *program, uint32_t func, uint32_t m, const image_reloc *reloc)
{
    module_map *map = &program->maps->modules[m];
    address_place places[2];
    const address_home *home = address_find(&map->statics, (int64_t)reloc->addr);
    if (!home) return;
    if (reloc->kind == IMAGE_REL_COPY && is_quiet_table(reloc->name)) return;
    const address_home *original = reloc->kind == IMAGE_REL_COPY ? copied_object(program, m, reloc->name) : NULL;
    if (original) return add_copy(program, func, home, original);
    uint32_t at = address_var(program, func, home->site, (int32_t)((int64_t)reloc->addr - home->start), PTA_SAME);
    uint32_t value = PTA_NO_VAR;
    if (reloc->kind == IMAGE_REL_COPY || reloc->kind == IMAGE_REL_IFUNC) {
        value = external_var(program, func);
    } else if (reloc->kind == IMAGE_REL_SYMBOL || map->slots[reloc - program->modules[m]->img->relocs] != PTA_NO_SITE) {
        uint32_t site = map->slots[reloc - program->modules[m]->img->relocs];
        value = site == PTA_NO_SITE ? external_var(program, func)
                                    : address_var(program, func, site, (int32_t)reloc->addend, PTA_SAME);
    } else {
        uint32_t callee = image_is_code(program->modules[m]->img, reloc->target) ? program_func_meant(program, m, reloc->target)
                                                                                 : PTA_NO_FUNC;
        uint32_t n = callee == PTA_NO_FUNC ? address_places(&map->statics, (int64_t)reloc->target, places) : 0;
        value = program_new_var(program, func);
        if (callee != PTA_NO_FUNC)
            program_add_stmt(program, func, (pta_stmt){.kind = PTA_ADDR, .dst = {value, 0}, .src = {PTA_NO_VAR, 0},
                                                       .ref = program_function_site(program, callee)});
        for (uint32_t i = 0; i < n; i++)
            program_add_stmt(program, func, (pta_stmt){.kind = PTA_ADDR, .dst = {value, 0},
                                                       .src = {PTA_NO_VAR, places[i].offset}, .ref = places[i].site});
    }
    program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {at, 0}, .src = {value, 0},
                                               .stride = reloc->kind == IMAGE_REL_COPY ? 8 : PTA_SAME});
}

static uint32_t add_data(pta_program *program)
{
    uint32_t func = program_add_func(program, "*data*", NULL, 0);
    program->funcs.data[func].loader = true;
    for (uint32_t m = 0; m < program->module_count; m++) {
        const image *img = program->modules[m]->img;
        for (uint32_t i = 0; i < img->reloc_count; i++) {
            const image_reloc *reloc = &img->relocs[i];
            bool word = reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_SYMBOL ||
                        reloc->kind == IMAGE_REL_GUESS || reloc->kind == IMAGE_REL_IFUNC;
            if ((word && reloc->size == 8) || reloc->kind == IMAGE_REL_COPY) add_word(program, func, m, reloc);
        }
    }
    for (uint32_t i = 0; i < program->maps->foreign.capacity; i++) { /* of a library that was not analysed, like stderr */
        const name_entry *entry = &program->maps->foreign.entries[i];
        if (!entry->name || is_quiet_table(entry->name)) continue;
        uint32_t at = address_var(program, func, entry->site, 0, PTA_SAME);
        program_add_stmt(program, func, (pta_stmt){.kind = PTA_STORE, .dst = {at, 0}, .src = {external_var(program, func), 0}, .stride = 8});
    }
    return func;
}

/* Object files have no start-up code yet: it is there as soon as they are linked. */
static void add_main(pta_program *program, uint32_t start)
{
    const name_entry *entry = names_find(&program->maps->names, "main");
    uint32_t library = entry && entry->func != PTA_NO_FUNC ? program_import(program, "__libc_start_main") : PTA_NO_FUNC;
    if (library == PTA_NO_FUNC) return;
    pta_call call = {.func = library, .target = {PTA_NO_VAR, 0}, .ret = PTA_NO_VAR, .ret2 = PTA_NO_VAR, .caller = start};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = (pta_operand){PTA_NO_VAR, 0};
    call.args[PTA_RDI].var = address_var(program, start, entry->site, 0, PTA_SAME);
    program_add_stmt(program, start, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(program, call)});
}

/* What start-up code calls: the words of an object's arrays of initialisers. */
static void add_initialisers(pta_program *program, uint32_t m)
{
    const image *img = program->modules[m]->img;
    for (uint32_t i = 0; img->kind == IMAGE_OBJECT && i < img->reloc_count; i++) {
        const image_section *section = image_section_at(img, img->relocs[i].addr);
        bool array = section && (!strncmp(section->name, ".init_array", 11) || !strncmp(section->name, ".fini_array", 11) ||
                                 !strncmp(section->name, ".preinit_array", 14) || !strncmp(section->name, ".ctors", 6) ||
                                 !strncmp(section->name, ".dtors", 6));
        uint32_t f = array && img->relocs[i].kind == IMAGE_REL_ADDR ? program_func_at(program, m, img->relocs[i].target) : PTA_NO_FUNC;
        if (f != PTA_NO_FUNC) program->funcs.data[f].root = program->funcs.data[f].at_load = true;
    }
}

/* A program that was linked to export all it has (-rdynamic), for what it may load: that a function is exported does not tell that
 * somebody outside calls it. Else a linker exports only what a library that it links has asked for. */
static bool exports_all(const pta_program *program, const image *img)
{
    if (img->kind > IMAGE_PIE || !img->entry || (program->wishes && program->wishes->open)) return false;
    for (uint32_t i = 0; i < img->symbol_count; i++)
        if (img->symbols[i].exported && img->symbols[i].type == IMAGE_SYM_FUNC && !strcmp(img->symbols[i].name, "main")) return true;
    return false;
}

static void add_start(pta_program *program, uint32_t data)
{
    uint32_t start = program_add_func(program, "*start*", NULL, 0);
    uint32_t value = external_var(program, start);
    uint32_t returned = program_new_var(program, start); /* a pointer that a root returns has escaped */
    program_add_stmt(program, start, (pta_stmt){.kind = PTA_STORE, .dst = {value, 0}, .src = {returned, 0}, .stride = PTA_ANY});
    add_call_of(program, start, data, PTA_NO_VAR, PTA_NO_VAR, PTA_NO_VAR);
    add_call_of(program, start, program->outside, PTA_NO_VAR, PTA_NO_VAR, PTA_NO_VAR);
    bool has_program = false;
    for (uint32_t m = 0; m < program->module_count; m++)
        has_program |= program->modules[m]->img->kind <= IMAGE_PIE && program->modules[m]->img->entry;
    bool has_main = link_defines(program->maps->link, "main"); /* object files that are a program together */
    for (uint32_t m = 0; m < program->module_count; m++) {
        const image *img = program->modules[m]->img;
        uint32_t entry = img->entry ? program_func_at(program, m, img->entry) : PTA_NO_FUNC;
        if (entry != PTA_NO_FUNC) program->funcs.data[entry].root = true;
        for (uint32_t i = 0; i < img->init_count; i++) {
            uint32_t init = program_func_at(program, m, img->init[i]);
            if (init != PTA_NO_FUNC && init == program_func_meant(program, m, img->init[i])) program->funcs.data[init].root = program->funcs.data[init].at_load = true;
        }
        add_initialisers(program, m);
        if (((has_program || has_main) && img->kind == IMAGE_SHARED) || exports_all(program, img)) continue;
        for (uint32_t i = 0; i < img->symbol_count; i++) {
            const image_symbol *symbol = &img->symbols[i];
            bool visible = img->kind == IMAGE_OBJECT
                               ? !has_main && !has_program && link_is_chosen(program->maps->link, m, symbol)
                               : symbol->exported;
            uint32_t f = visible && symbol->type == IMAGE_SYM_FUNC ? program_func_at(program, m, symbol->addr) : PTA_NO_FUNC;
            if (f == PTA_NO_FUNC) continue;
            program->funcs.data[f].root = true;
            program->funcs.data[f].at_load = false; /* not only the loader */
        }
    }
    if (has_main && !has_program) add_main(program, start);
    for (uint32_t f = 0; f < start; f++)
        if (program->funcs.data[f].root) add_call_of(program, start, f, PTA_NO_VAR, value, returned);
    program->funcs.data[start].root = true;
}

void program_surround(pta_program *program)
{
    add_outside(program);
    add_start(program, add_data(program));
    add_wilderness(program);
}
