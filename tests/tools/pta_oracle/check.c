/* Each recorded access against the points-to sets.
 *
 * An access is right when the static result of its instruction, over all accesses of that direction, all functions that
 * contain the instruction and all contexts, has the object that was accessed, and in it the place. Accesses to promoted
 * slots are variables of the analysis and have no set: of these the place in the frame is compared. */
#include "oracle.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct {
    uint32_t module;
    uint64_t addr;
    uint32_t func, insn; /* in program->funcs and its lift->insns */
} code_place;

typedef VEC(code_place) code_index;

typedef struct {
    const pta *p;
    const pta_program *program;
    code_index code;
    VEC(uint32_t) owners; /* sites that hold words of static data, by kind, module and address */
    check_counts *n;
    uint32_t left; /* instructions that may still be printed */
    pta_places all, one;   /* of the instruction at hand */
    pta_places escaped;    /* what a pointer to `external` may point into as well */
    bool wide;
    bool reached; /* a function with the instruction has an instance */
    bool *called; /* by function: it has an instance */
} checker;

typedef enum { MISS_OBJECT, MISS_OFFSET, MISS_NOTHING } verdict;

/* --- instructions ------------------------------------------------------------------------------------------------- */

static int by_addr(const void *a, const void *b)
{
    const code_place *x = a, *y = b;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void index_code(checker *c)
{
    for (uint32_t f = 0; f < c->program->funcs.len; f++) {
        const pta_func *func = &c->program->funcs.data[f];
        for (uint32_t i = 0; func->lift && i < func->lift->insn_count; i++)
            vec_push(&c->code, (code_place){func->module, func->lift->insns[i].addr, f, i});
    }
    if (c->code.len) qsort(c->code.data, c->code.len, sizeof *c->code.data, by_addr);
}

/* The functions that contain the instruction: index of the first, and their number. */
static uint32_t find_code(const checker *c, uint32_t module, uint64_t addr, uint32_t *first)
{
    uint32_t low = 0, high = c->code.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const code_place *at = &c->code.data[mid];
        if (at->module < module || (at->module == module && at->addr < addr))
            low = mid + 1;
        else
            high = mid;
    }
    *first = low;
    while (high < c->code.len && c->code.data[high].module == module && c->code.data[high].addr == addr)
        high++;
    return high - low;
}

static bool same_direction(char direction, uint16_t flags)
{
    return (direction != 'w' && flags & IR_READ) || (direction != 'r' && flags & IR_WRITE);
}

/* The static set of the instruction. */
static void collect(checker *c, const seen *s, uint32_t first, uint32_t count)
{
    vec_clear(&c->all);
    c->wide = c->reached = false;
    for (uint32_t i = first; i < first + count; i++) {
        const code_place *at = &c->code.data[i];
        uint32_t accesses;
        c->reached |= c->called[at->func];
        const pta_access *access = pta_accesses(c->program, at->func, &accesses);
        for (uint32_t a = 0; a < accesses; a++) {
            if (access[a].insn != at->insn || !same_direction(s->direction, access[a].flags)) continue;
            c->wide |= access[a].flags & IR_WIDE;
            if (access[a].flags & IR_WIDE) continue;
            pta_points_to(c->p, at->func, access[a].base, access[a].stride, &c->one);
            for (uint32_t k = 0; k < c->one.len; k++)
                vec_push(&c->all, c->one.data[k]);
        }
    }
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

static bool contains(const pta_site *site, int64_t at)
{
    return at >= (int64_t)site->start && (uint64_t)at - site->start < site->size;
}

/* The site that holds the words of static data at `addr`: of those that contain it the one that begins last, since only
 * named objects lie in others, which stand for what is not named. PTA_NO_SITE: none. */
static uint32_t owner_of(const checker *c, uint8_t kind, uint32_t module, int64_t addr)
{
    uint32_t low = 0, high = c->owners.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const pta_site *site = &c->program->sites.data[c->owners.data[mid]];
        bool before = site->kind != kind     ? site->kind < kind
                      : site->module != module ? site->module < module
                                               : (int64_t)site->start <= addr;
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    while (low-- > 0) {
        const pta_site *site = &c->program->sites.data[c->owners.data[low]];
        if (site->kind != kind || site->module != module) break;
        if (contains(site, addr)) return c->owners.data[low];
    }
    return PTA_NO_SITE;
}

static const pta_program *sorted_program; /* of by_start: qsort has no argument for it */

static int by_start(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const pta_site *x = &sorted_program->sites.data[i], *y = &sorted_program->sites.data[k];
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->module != y->module) return x->module < y->module ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1; /* the inner one behind, the named one behind that */
    if (!x->name != !y->name) return x->name ? 1 : -1;
    return i < k ? -1 : i > k;
}

static void index_sites(checker *c)
{
    for (uint32_t i = 0; i < c->program->sites.len; i++) {
        const pta_site *site = &c->program->sites.data[i];
        if ((site->kind == PTA_STATIC || site->kind == PTA_TLS) && site->memory == i) vec_push(&c->owners, i);
    }
    sorted_program = c->program;
    if (c->owners.len) qsort(c->owners.data, c->owners.len, sizeof *c->owners.data, by_start);
}

static bool is_allocator(const pta_program *program, uint32_t func)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc",
                                        "posix_memalign", "valloc", "pvalloc", "mmap", "mmap64", "mremap",
                                        "_Znwm", "_Znam"};
    const char *name = func < program->funcs.len ? program->funcs.data[func].name : NULL;
    for (unsigned i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static bool covers(const pta_site *site, const pta_place *place, int64_t offset)
{
    if (site->any) return true;
    if (place->exact) return place->offset == offset;
    if (place->element) offset = ((offset % place->element) + place->element) % place->element;
    return place->stride && (offset - place->offset) % (int64_t)place->stride == 0 && offset >= place->least &&
           offset < place->end;
}

static verdict verdict_of(const pta_site *site, const pta_place *place, int64_t offset)
{
    return covers(site, place, offset) ? MISS_NOTHING : MISS_OFFSET;
}

/* A place in a section or TLS block is one in the site that holds the words. */
static verdict check_static(const checker *c, const pta_place *place, const seen *s, int64_t addr)
{
    const pta_site *site = &c->program->sites.data[place->site];
    uint8_t kind = s->kind == SEEN_TLS ? PTA_TLS : PTA_STATIC;
    if (site->kind != kind || site->module != s->in) return MISS_OBJECT;
    if (owner_of(c, kind, s->in, addr) != site->memory) return MISS_OBJECT;
    const pta_site *memory = &c->program->sites.data[site->memory];
    return verdict_of(memory, place, addr - (int64_t)memory->start - site->base);
}

/* A frame has sites for variables, one for the whole, and one for what lies relative to the realigned stack pointer,
 * which is at most REALIGN bytes below the one at entry and at most 8 above. */
static verdict check_frame(const checker *c, const pta_place *place, const seen *s, int64_t offset)
{
    enum { REALIGN = 64 };
    const pta_site *site = &c->program->sites.data[place->site];
    const pta_func *func = site->kind == PTA_FRAME ? &c->program->funcs.data[site->func] : NULL;
    if (!func || func->module != s->in || !func->lift || func->lift->entry != s->where) return MISS_OBJECT;
    if (site->size && !contains(site, offset)) return MISS_OBJECT;
    if (site->size) return verdict_of(site, place, offset - (int64_t)site->start);
    if (site->align < 16) return verdict_of(site, place, offset);
    for (int64_t shift = -8; shift <= REALIGN; shift += 8)
        if (covers(site, place, offset + shift)) return MISS_NOTHING;
    return MISS_OFFSET;
}

/* Whether the call that allocated an object did not name the function that did: it was called through a pointer, here or by a jump
 * at the end of what is called here. */
static bool is_through_pointer(const checker *c, const pta_site *site, const seen *s)
{
    uint32_t first;
    if (s->in == UINT32_MAX || !find_code(c, s->in, s->where, &first)) return false;
    const code_place *at = &c->code.data[first];
    const lift_insn *insn = &c->program->funcs.data[at->func].lift->insns[at->insn];
    const image *img = c->program->modules[s->in]->img;
    const image_plt *plt = insn->flow == FLOW_CALL ? image_plt_at(img, lift_target(insn)) : NULL;
    const image_reloc *slot = insn->flow == FLOW_CALL_SLOT ? image_reloc_at(img, lift_target(insn)) : NULL;
    const char *name = plt ? plt->name : slot ? slot->name : NULL;
    return !name || strcmp(name, c->program->funcs.data[site->func].name);
}

/* Whether the object was allocated by this call: each call on the way to it that tells static objects apart must be the one
 * that was made, as far as the record knows it. */
static bool is_call_of(const checker *c, const pta_place *place, const seen *s)
{
    uint32_t module, level = 0;
    uint64_t call;
    for (; pta_heap_outer_call(c->p, place, level, &module, &call) && level <= s->outer_count; level++) {
        uint32_t in = level ? s->outer[level - 1].module : s->in;
        uint64_t where = level ? s->outer[level - 1].addr : s->where;
        if (module != in || call != where) return false;
    }
    return level > 0 || is_through_pointer(c, &c->program->sites.data[place->site], s);
}

/* Memory of others: of the library, or memory that a library function returned: by this call, or by an earlier one of a
 * function that is more than an allocator. */
static verdict check_outside(const checker *c, const pta_place *place, const seen *s)
{
    const pta_site *site = &c->program->sites.data[place->site];
    bool per_thread = site->kind == PTA_TLS && !site->size; /* of a modelled library */
    bool yes = site->kind == PTA_EXTERNAL || site->kind == PTA_LIBRARY || per_thread ||
               (site->kind == PTA_HEAP &&
                ((s->kind == SEEN_LIBRARY && is_call_of(c, place, s)) || !is_allocator(c->program, site->func)));
    if (!yes) return MISS_OBJECT;
    c->n->external[site->kind == PTA_EXTERNAL ? 0 : site->kind == PTA_HEAP ? 2 : 1]++;
    return MISS_NOTHING;
}

static verdict check_place(const checker *c, const pta_place *place, const seen *s, int64_t offset)
{
    const pta_site *site = &c->program->sites.data[place->site];
    switch (s->kind) {
    case SEEN_OWN:
    case SEEN_FRAME: return check_frame(c, place, s, offset);
    case SEEN_STATIC:
    case SEEN_TLS: return check_static(c, place, s, offset);
    case SEEN_HEAP:
        return site->kind == PTA_HEAP && is_call_of(c, place, s) ? verdict_of(site, place, offset) : MISS_OBJECT;
    default: return check_outside(c, place, s);
    }
}

/* Whether code outside knows the object: then a pointer from there may point anywhere into it. */
static bool check_escaped(const checker *c, const seen *s, int64_t offset)
{
    for (uint32_t i = 0; i < c->escaped.len; i++)
        if (check_place(c, &c->escaped.data[i], s, offset) != MISS_OBJECT) return true;
    return false;
}

static verdict check_set(const checker *c, const seen *s, int64_t offset)
{
    verdict best = MISS_OBJECT;
    bool external = false;
    for (uint32_t i = 0; i < c->all.len && best != MISS_NOTHING; i++) {
        verdict v = check_place(c, &c->all.data[i], s, offset);
        if (v > best) best = v;
        external |= c->all.data[i].site == c->program->external;
    }
    if (best == MISS_NOTHING || !external || !check_escaped(c, s, offset)) return best;
    c->n->escaped++;
    return MISS_NOTHING;
}

/* --- the own frame ------------------------------------------------------------------------------------------------ */

typedef enum { IS_SLOT, IS_ARGUMENT, IS_THREAD } ir_wanted;

/* Whether the IR has an access of the instruction to a promoted slot at this place of the frame, to an argument on the
 * stack, or relative to the thread pointer. */
static bool has_access(const checker *c, const code_place *at, const seen *s, int64_t offset, ir_wanted wanted)
{
    const ir_func *ir = c->program->funcs.data[at->func].lift->ir;
    for (uint32_t v = 1; ir && v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        int32_t start;
        uint8_t base;
        if (insn->op != IR_ACCESS || insn->insn != at->insn || !same_direction(s->direction, insn->flags)) continue;
        if (wanted == IS_THREAD && insn->flags & IR_FS) return true;
        if (wanted == IS_THREAD || !(insn->flags & IR_PROMOTED)) continue;
        if (!ir_frame_offset(ir, insn->a, &start, &base)) continue;
        if (wanted == IS_SLOT ? base || start + insn->imm == offset : !base && start + insn->imm >= 8) return true;
    }
    return false;
}

enum { EXTERNAL_STACK = 3, EXTERNAL_THREAD = 4 }; /* in tests/dynamorio/accesses.h */

/* The thread control block has no object: nothing but fs-relative accesses, the stack canary, say, goes there. */
static bool check_thread(const checker *c, uint32_t first, uint32_t count, const seen *s)
{
    bool yes = false;
    for (uint32_t i = first; i < first + count && s->where == EXTERNAL_THREAD; i++)
        yes |= has_access(c, &c->code.data[i], s, 0, IS_THREAD);
    c->n->thread += yes;
    return yes;
}

static bool check_slots(const checker *c, const seen *s, int64_t offset, uint32_t first, uint32_t count)
{
    bool own = s->kind == SEEN_OWN;
    for (uint32_t i = first; i < first + count; i++) {
        const code_place *at = &c->code.data[i];
        const pta_func *func = &c->program->funcs.data[at->func];
        if (own && (func->module != s->in || func->lift->entry != s->where)) continue;
        if (!has_access(c, at, s, offset, own ? IS_SLOT : IS_ARGUMENT)) continue;
        *(own ? &c->n->promoted : &c->n->arguments) += 1;
        return true;
    }
    return false;
}

static verdict check_one(const checker *c, const seen *s, int64_t offset, uint32_t first, uint32_t count)
{
    if (c->wide) {
        c->n->wide++;
        return MISS_NOTHING;
    }
    bool on_stack = s->kind <= SEEN_FRAME || (s->kind == SEEN_EXTERNAL && s->where == EXTERNAL_STACK);
    if (on_stack && check_slots(c, s, offset, first, count)) return MISS_NOTHING;
    if (s->kind == SEEN_EXTERNAL && check_thread(c, first, count, s)) return MISS_NOTHING;
    verdict v = check_set(c, s, offset);
    if (v == MISS_NOTHING && s->kind == SEEN_OWN) c->n->own++;
    return v;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void print_code(const checker *c, uint32_t module, uint64_t addr)
{
    const image *img = c->program->modules[module]->img;
    const lift_func *f = lift_func_covering(c->program->modules[module], addr);
    const char *name = strrchr(img->path, '/');
    printf("%s:%" PRIx64, name ? name + 1 : img->path, addr);
    if (f) printf(" %s+0x%" PRIx64, f->name, addr - f->entry);
    image_line line;
    if (image_line_at(img, addr, &line) && line.file) {
        const char *base = strrchr(line.file, '/');
        printf(" %s:%u", base ? base + 1 : line.file, line.line);
    }
}

static void print_object(const checker *c, const seen *s, int64_t offset)
{
    printf("    %s ", seen_names[s->kind]);
    switch (s->kind) {
    case SEEN_OWN:
    case SEEN_FRAME: printf("%+" PRId64 " in the frame of ", offset); break;
    case SEEN_HEAP:
    case SEEN_LIBRARY: printf("+%" PRId64 " allocated by ", offset); break;
    case SEEN_STATIC: {
        const image *img = c->program->modules[s->in]->img;
        const image_symbol *symbol = image_symbol_covering(img, (uint64_t)offset);
        const image_section *section = image_section_at(img, (uint64_t)offset);
        if (symbol)
            printf("%s+%" PRId64 " ", symbol->name, offset - (int64_t)symbol->addr);
        else
            printf("%s:%" PRIx64 " ", section ? section->name : "?", (uint64_t)offset);
        printf("(%" PRIx64 ")\n", (uint64_t)offset);
        return;
    }
    case SEEN_TLS: printf("offset %" PRId64 "\n", offset); return;
    default: printf("(%" PRIu64 ")\n", s->where); return;
    }
    print_code(c, s->in, s->where);
    for (uint32_t i = 0; i < s->outer_count; i++) {
        printf(" in ");
        print_code(c, s->outer[i].module, s->outer[i].addr);
    }
    printf("\n");
}

static void print_set(const checker *c)
{
    enum { SHOWN = 10 };
    printf("      static:");
    if (!c->all.len) printf(c->reached ? " nothing" : " nothing, and the function is never called");
    for (uint32_t i = 0; i < c->all.len && i < SHOWN; i++) {
        char text[256];
        pta_describe(c->p, &c->all.data[i], text, sizeof text);
        printf(" %s", text);
    }
    if (c->all.len > SHOWN) printf(" and %u more", c->all.len - SHOWN);
    printf("\n");
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    bool header;          /* of the instruction is printed */
    uint32_t missed;
} instruction;

static void report(checker *c, const seen *s, int64_t offset, verdict v, instruction *now, bool last_of_object)
{
    if (!now->missed) c->n->missed_instructions++;
    now->missed++;
    *(v == MISS_OBJECT ? &c->n->objects_missed : &c->n->offsets_missed) += 1;
    if (!now->header) {
        if (!c->left) return;
        c->left--;
        printf("  ");
        print_code(c, s->module, s->addr);
        printf(" %c%u\n", s->direction, s->width);
        now->header = true;
    }
    if (!last_of_object) return;
    printf("    %s", v == MISS_OBJECT ? "no object:" : "no offset:");
    print_object(c, s, offset);
    print_set(c);
}

static void check_seen(checker *c, const seen *s, bool same, instruction *now)
{
    uint32_t first, count = find_code(c, s->module, s->addr, &first);
    if (!same) collect(c, s, first, count);
    bool shown = false;
    for (uint32_t i = 0; i < s->offset_count; i++) {
        c->n->checked++;
        verdict v = count ? check_one(c, s, s->offsets[i], first, count) : MISS_OBJECT;
        if (v == MISS_NOTHING) continue;
        report(c, s, s->offsets[i], v, now, !shown);
        if (count && !c->reached) c->n->never_called++;
        shown = true;
    }
    if (!count) c->n->unlifted++;
}

void check_all(const pta *p, const pta_program *program, const seen_list *list, uint32_t max_printed, check_counts *n)
{
    checker c = {.p = p, .program = program, .n = n, .left = max_printed};
    c.called = base_alloc_zero(program->funcs.len, sizeof *c.called);
    for (uint32_t i = 0; i < pta_instance_count(p); i++) {
        pta_instance instance;
        if (pta_instance_at(p, i, &instance) && instance.func < program->funcs.len) c.called[instance.func] = true;
    }
    pta_escaped(p, &c.escaped);
    index_code(&c);
    index_sites(&c);
    instruction now = {0};
    for (uint32_t i = 0; i < list->all.len; i++) {
        const seen *s = &list->all.data[i], *before = i ? s - 1 : NULL;
        bool same = before && before->module == s->module && before->addr == s->addr;
        if (!same) {
            n->instructions++;
            now = (instruction){0};
        }
        check_seen(&c, s, same && before->direction == s->direction, &now);
    }
    free(c.called);
    vec_free(&c.code);
    vec_free(&c.owners);
    vec_free(&c.all);
    vec_free(&c.one);
    vec_free(&c.escaped);
}
