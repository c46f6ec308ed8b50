/* Homes: every address constant of the code means a place in some object. Named objects come from symbols and DWARF. What
 * nothing names (stripped programs) is divided at the addresses that the program itself refers to; such stretches are only
 * names for places in their section, since any of them may be reached from the one before it. */
#include "static/pointer/address.h"

#include <stdlib.h>

#include "static/pointer/program.h"

void address_add(address_space *space, int64_t start, int64_t end, uint32_t site, bool named)
{
    if (start < end) vec_push(&space->homes, (address_home){start, end, site, named});
}

static int by_start(const void *a, const void *b)
{
    const address_home *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

void address_seal(address_space *space)
{
    if (space->homes.len) qsort(space->homes.data, space->homes.len, sizeof *space->homes.data, by_start);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < space->homes.len; i++) {
        address_home home = space->homes.data[i];
        if (kept && home.start < space->homes.data[kept - 1].end) continue;
        space->homes.data[kept++] = home;
    }
    space->homes.len = kept;
}

void address_replace(address_space *space, int64_t start, uint32_t site)
{
    address_home *home = (address_home *)address_find(space, start);
    if (home && home->start == start) home->site = site;
}

const address_home *address_find(const address_space *space, int64_t at)
{
    uint32_t low = 0, high = space->homes.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (space->homes.data[mid].start <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low) return NULL;
    const address_home *home = &space->homes.data[low - 1];
    return at < home->end ? home : NULL;
}

uint32_t address_places(const address_space *space, int64_t at, address_place places[2])
{
    uint32_t n = 0;
    const address_home *home = address_find(space, at);
    if (home) places[n++] = (address_place){home->site, (int32_t)(at - home->start)};
    if (!home || home->start == at) {
        const address_home *before = address_find(space, at - 1);
        if (before && before->named) places[n++] = (address_place){before->site, (int32_t)(at - before->start)};
    }
    return n;
}

/* Whether an index from `at` on is likely to stay in the object there: it has further elements, and this is its first one. */
static bool is_first_element(const address_home *home, int64_t at, uint32_t stride)
{
    return home && at - home->start < (int64_t)stride && home->end - home->start >= 2 * (int64_t)stride;
}

uint32_t address_indexed(const address_space *space, int64_t at, uint32_t stride, address_place places[ADDRESS_INDEXED])
{
    uint32_t n = address_places(space, at, places);
    const address_home *before = address_find(space, at - stride), *here = address_find(space, at);
    if (before && before->named && before != here && before->end > at - stride && before->end < at)
        places[n++] = (address_place){before->site, (int32_t)(at - stride - before->start)};
    if (is_first_element(here, at, stride)) return n;
    const address_home *last = here;
    for (int64_t ahead = at + stride; ahead <= at + ADDRESS_AHEAD * (int64_t)stride; ahead += stride) {
        const address_home *home = address_find(space, ahead);
        if (!home || home == last) continue;
        last = home;
        if (home->named && (ahead == at + stride || home->end - home->start >= (int64_t)stride))
            places[n++] = (address_place){home->site, (int32_t)(ahead - home->start)};
    }
    return n;
}

static uint8_t alignment(uint64_t at)
{
    return at % 16 == 0 ? 16 : at % 8 == 0 ? 8 : at % 4 == 0 ? 4 : at % 2 == 0 ? 2 : 1;
}

enum { MAX_HOME = 1 << 29 }; /* offsets are 30 bits: see offset.h */

static uint32_t add_named(pta_program *program, uint32_t module, pta_site_kind kind, uint64_t start, uint64_t size,
                          const char *name, const image_type *type, bool constant)
{
    uint32_t site = program->sites.len;
    return program_add_site(program, (pta_site){.kind = (uint8_t)kind, .constant = constant, .module = module,
                                                .func = PTA_NO_FUNC, .start = start, .size = size, .memory = site,
                                                .align = alignment(start), .name = name, .type = type});
}

/* Constants that the loader fills nothing into hold no pointers; strings for example. */
static bool holds_nothing(const image *img, uint64_t start, uint64_t end, bool constant)
{
    uint32_t first;
    return constant && !image_relocs_in(img, start, end, &first);
}

static bool names_data(const image_symbol *symbol, const image_section *section)
{
    if (symbol->type == IMAGE_SYM_FUNC || symbol->type == IMAGE_SYM_IFUNC || symbol->type == IMAGE_SYM_TLS) return false;
    return symbol->size && symbol->addr >= section->addr && symbol->addr + symbol->size <= section->addr + section->size;
}

/* What lies between named objects: one site that holds the words, and a name for each address that is referred to. */
static void add_gap(pta_program *program, uint32_t module, const image_section *section, uint64_t start, uint64_t end,
                    const uint64_t *referenced, uint32_t count, uint32_t *memory, address_space *out)
{
    bool constant = !(section->flags & IMAGE_W) || section->flags & IMAGE_RELRO;
    bool object = program->modules[module]->img->kind == IMAGE_OBJECT;
    if (holds_nothing(program->modules[module]->img, start, end, constant) && object) { /* the linker makes one section of them */
        uint32_t site = program_library_site(program, ".rodata");
        program->sites.data[site].kind = PTA_STATIC;
        program->sites.data[site].constant = program->sites.data[site].any = true;
        address_add(out, (int64_t)start, (int64_t)end, site, false);
        return;
    }
    if (holds_nothing(program->modules[module]->img, start, end, constant)) {
        uint32_t site = add_named(program, module, PTA_STATIC, start, end - start, section->name, NULL, constant);
        program->sites.data[site].any = true;
        address_add(out, (int64_t)start, (int64_t)end, site, false);
        return;
    }
    if (*memory == PTA_NO_SITE)
        *memory = add_named(program, module, PTA_STATIC, section->addr, section->size, section->name, NULL, constant);
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (referenced[mid] <= start)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint64_t at = start; at < end;) {
        uint64_t next = low < count && referenced[low] < end ? referenced[low++] : end;
        uint32_t site = add_named(program, module, PTA_STATIC, at, next - at, NULL, NULL, constant);
        program->sites.data[site].memory = *memory;
        program->sites.data[site].base = (int64_t)(at - section->addr);
        program->sites.data[site].open = true;
        address_add(out, (int64_t)at, (int64_t)next, site, false);
        at = next;
    }
}

void address_static(pta_program *program, uint32_t module, const uint64_t *referenced, uint32_t count, address_space *out)
{
    const image *img = program->modules[module]->img;
    uint32_t s = 0;
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *section = &img->sections[i];
        bool outside = img->kind == IMAGE_OBJECT && !section->flags; /* undefined symbols: of other modules */
        if (section->flags & IMAGE_TLS || !section->size || outside) continue;
        uint64_t at = section->addr, end = section->addr + section->size;
        uint32_t memory = PTA_NO_SITE;
        bool constant = !(section->flags & IMAGE_W) || section->flags & IMAGE_RELRO;
        while (s < img->symbol_count && img->symbols[s].addr < at && img->symbols[s].type != IMAGE_SYM_TLS)
            s++;
        for (; s < img->symbol_count && img->symbols[s].addr < end && img->symbols[s].type != IMAGE_SYM_TLS; s++) {
            const image_symbol *symbol = &img->symbols[s];
            if (!names_data(symbol, section) || symbol->addr < at || symbol->size > MAX_HOME) continue;
            if (symbol->addr > at) add_gap(program, module, section, at, symbol->addr, referenced, count, &memory, out);
            const image_variable *variable = image_global_at(img, symbol->addr);
            uint32_t site = add_named(program, module, PTA_STATIC, symbol->addr, symbol->size, symbol->name,
                                      variable ? variable->type : NULL, constant);
            program->sites.data[site].any = holds_nothing(img, symbol->addr, symbol->addr + symbol->size, constant);
            address_add(out, (int64_t)symbol->addr, (int64_t)(symbol->addr + symbol->size), site, true);
            at = symbol->addr + symbol->size;
        }
        if (at < end) add_gap(program, module, section, at, end, referenced, count, &memory, out);
    }
    address_seal(out);
}

static int by_place(const void *a, const void *b)
{
    const image_reloc *x = *(const image_reloc *const *)a, *y = *(const image_reloc *const *)b;
    int64_t p = (int64_t)x->target - x->addend, q = (int64_t)y->target - y->addend;
    return p < q ? -1 : p > q;
}

/* Undefined variables of an object file have places behind its own; the relocations name them. */
static void add_undefined_tls(pta_program *program, uint32_t module, uint64_t at, address_space *out)
{
    const image *img = program->modules[module]->img;
    VEC(const image_reloc *) all = {0};
    for (uint32_t i = 0; img->kind == IMAGE_OBJECT && i < img->reloc_count; i++) {
        const image_reloc *reloc = &img->relocs[i];
        bool tls = reloc->kind == IMAGE_REL_TPOFF || reloc->kind == IMAGE_REL_DTPOFF;
        if (tls && reloc->name && *reloc->name) vec_push(&all, reloc);
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, by_place);
    for (uint32_t i = 0; i < all.len; i++) {
        uint64_t start = all.data[i]->target - (uint64_t)all.data[i]->addend;
        if (start < at || start + 16 > img->tls_size || start + 16 < start || image_symbol_tls(img, start)) continue;
        uint32_t site = add_named(program, module, PTA_TLS, start, 16, all.data[i]->name, NULL, false);
        address_add(out, (int64_t)start, (int64_t)start + 16, site, true);
        at = start + 16;
    }
    vec_free(&all);
}

void address_tls(pta_program *program, uint32_t module, address_space *out)
{
    const image *img = program->modules[module]->img;
    uint64_t at = 0;
    for (uint32_t s = 0; s < img->symbol_count; s++) {
        const image_symbol *symbol = &img->symbols[s];
        if (symbol->type != IMAGE_SYM_TLS || !symbol->size || symbol->addr < at || symbol->size > img->tls_size ||
            symbol->addr > img->tls_size - symbol->size)
            continue;
        const image_variable *variable = image_global_tls(img, symbol->addr);
        uint32_t site = add_named(program, module, PTA_TLS, symbol->addr, symbol->size, symbol->name,
                                  variable ? variable->type : NULL, false);
        address_add(out, (int64_t)symbol->addr, (int64_t)(symbol->addr + symbol->size), site, true);
        at = symbol->addr + symbol->size;
    }
    add_undefined_tls(program, module, at, out);
    if (img->tls_size && img->tls_size <= MAX_HOME) { /* the rest of the block; named variables come first */
        uint32_t rest = add_named(program, module, PTA_TLS, 0, img->tls_size, NULL, NULL, false);
        uint32_t named = out->homes.len;
        int64_t from = 0;
        for (uint32_t i = 0; i <= named; i++) {
            int64_t to = i < named ? out->homes.data[i].start : (int64_t)img->tls_size;
            if (from < to) {
                uint32_t site = rest;
                if (from) {
                    site = add_named(program, module, PTA_TLS, (uint64_t)from, (uint64_t)(to - from), NULL, NULL, false);
                    program->sites.data[site].memory = rest;
                    program->sites.data[site].base = from;
                    program->sites.data[site].open = true;
                }
                address_add(out, from, to, site, false);
            }
            if (i < named) from = out->homes.data[i].end;
        }
    }
    address_seal(out);
}

static int site_order(const void *a, const void *b)
{
    int64_t x = (int64_t)((const pta_site *)a)->start, y = (int64_t)((const pta_site *)b)->start;
    return x < y ? -1 : x > y;
}

void address_frame(const image *img, const lift_func *func, uint32_t func_id, address_space *out, pta_site **sites,
                   uint32_t *count)
{
    *sites = NULL;
    *count = 0;
    const image_function *debug = img->has_debug ? image_function_at(img, func->entry) : NULL;
    if (!debug || debug->start != func->entry) return;
    VEC(pta_site) all = {0};
    for (uint32_t i = 0; i < debug->variable_count; i++) {
        const image_variable *variable = &debug->variables[i];
        if (variable->place != IMAGE_PLACE_FRAME || !variable->type) continue;
        int64_t start = variable->offset + 8; /* CFA = stack pointer at entry + 8 */
        int64_t size = variable->type->size < MAX_HOME ? (int64_t)variable->type->size : 0;
        if (!size || start < -MAX_HOME || start + size > 0) continue;
        vec_push(&all, (pta_site){.kind = PTA_FRAME, .func = func_id, .start = (uint64_t)start, .size = (uint64_t)size,
                                  .base = start, .align = alignment((uint64_t)(start + 8)), .name = variable->name,
                                  .type = variable->type});
    }
    if (all.len) qsort(all.data, all.len, sizeof *all.data, site_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all.len; i++) { /* variables of different scopes may share a place: one object */
        pta_site *last = kept ? &all.data[kept - 1] : NULL;
        int64_t start = (int64_t)all.data[i].start, end = start + (int64_t)all.data[i].size;
        if (last && start < (int64_t)(last->start + last->size)) {
            if (end > (int64_t)(last->start + last->size)) last->size = (uint64_t)end - last->start;
            last->type = NULL;
        } else {
            all.data[kept++] = all.data[i];
        }
    }
    for (uint32_t i = 0; i < kept; i++)
        address_add(out, (int64_t)all.data[i].start, (int64_t)(all.data[i].start + all.data[i].size), i, true);
    address_seal(out);
    *sites = all.data;
    *count = kept;
}
