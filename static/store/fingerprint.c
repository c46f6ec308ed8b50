/* What a function does, as a hash that no linker can change: its IR, in which every address is replaced by what it means:
 * the name of a function or variable and a distance, the contents of a string, the bytes of a constant, or, where nothing has
 * a name, the section and the order of first use. */
#include "static/store/store.h"

#include <omp.h>
#include <stdlib.h>

#include "static/pointer/map.h"

enum { STRING_MOST = 4096 };

typedef struct {
    const lift_module *module;
    const image *img;
    const lift_func *func;
    VEC(uint8_t) out;
    VEC(uint64_t) callees;
    map64 functions; /* names, or entries, by order of first use */
    map64 seen;      /* addresses of data that has no name */
} printer;

static void put(printer *p, const void *bytes, uint32_t size)
{
    if (!size) return;
    vec_reserve(&p->out, p->out.len + size);
    memcpy(p->out.data + p->out.len, bytes, size);
    p->out.len += size;
}

static void put_number(printer *p, uint64_t n)
{
    put(p, &n, sizeof n);
}

static void put_byte(printer *p, uint8_t b)
{
    put(p, &b, 1);
}

/* The length of a part `.123` of a name: what tells apart the statics and clones of one name is not known to survive the next
 * compilation. */
static size_t number_at(const char *name, size_t i)
{
    if (!i || name[i] != '.') return 0;
    size_t digits = strspn(name + i + 1, "0123456789");
    char after = name[i + 1 + digits];
    return digits && (!after || after == '.') ? digits + 1 : 0;
}

/* `to` has room for the name. */
static char *plain_name(const char *name, char *to)
{
    size_t n = 0;
    for (size_t i = 0, skip; name[i]; i += skip ? skip : 1)
        if (!(skip = number_at(name, i))) to[n++] = name[i];
    to[n] = 0;
    return to;
}

static void put_plain(printer *p, const char *name)
{
    for (size_t i = 0, skip; name[i]; i += skip ? skip : 1)
        if (!(skip = number_at(name, i))) put_byte(p, (uint8_t)name[i]);
    put_byte(p, 0);
}

static uint32_t order_of_use(map64 *seen, uint64_t key)
{
    uint32_t next = seen->count, *at = map_at(seen, key & ~(1ull << 63));
    if (*at == MAP_NONE) *at = next;
    return *at;
}

static bool is_named(const lift_func *f)
{
    return f->found & FOUND_SYMBOL;
}

/* A function by the order of first use; who it is goes to the list of callees, so that one that is renamed can be told from
 * another one. */
static void put_callee(printer *p, const char *name, uint64_t entry)
{
    uint64_t who = 0;
    if (name) {
        char *plain = plain_name(name, base_alloc(strlen(name) + 1));
        who = store_name_hash(plain);
        free(plain);
    }
    uint32_t known = p->functions.count, order = order_of_use(&p->functions, name ? who : entry);
    put_byte(p, 'f');
    put_number(p, order);
    if (p->functions.count > known) vec_push(&p->callees, who);
}

static void put_function(printer *p, const lift_func *f)
{
    if (f == p->func)
        put_byte(p, 'r'); /* a recursive function may be renamed */
    else
        put_callee(p, is_named(f) ? f->name : NULL, f->entry);
}

/* The contents of a constant that has no name: the bytes that are read of it, or the text of a string whose address is used. */
static void put_constant(printer *p, uint64_t addr, uint16_t width)
{
    uint64_t available = 0;
    const uint8_t *bytes = image_bytes(p->img, addr, &available);
    uint32_t len = 0, most = width ? 0 : available < STRING_MOST ? (uint32_t)available : STRING_MOST;
    while (bytes && len < most && bytes[len] && (bytes[len] >= ' ' || (bytes[len] >= '\t' && bytes[len] <= '\r')))
        len++;
    if (bytes && len && len < most && !bytes[len]) {
        put_byte(p, 's');
        put(p, bytes, len + 1);
    } else {
        put_byte(p, 'k');
        if (bytes && width <= available && width <= 64) put(p, bytes, width);
    }
}

static void put_address(printer *p, uint64_t addr, uint16_t width)
{
    const image *img = p->img;
    const image_plt *plt = image_plt_at(img, addr);
    if (plt && *plt->name) {
        put_callee(p, plt->name, 0);
        return;
    }
    const image_reloc *reloc = image_reloc_at(img, addr);
    if (reloc && reloc->slot && reloc->name && *reloc->name) {
        put_byte(p, 'g');
        put_byte(p, reloc->kind);
        put_plain(p, reloc->name);
        put_number(p, (uint64_t)(reloc->kind == IMAGE_REL_ADDR ? 0 : reloc->addend));
        return;
    }
    const lift_func *f = image_is_code(img, addr) ? lift_func_at(p->module, addr) : NULL;
    if (f) {
        put_function(p, f);
        return;
    }
    for (uint32_t i = 0; i < p->func->table_count; i++)
        if (p->func->tables[i].table == addr || (p->func->tables[i].relative && p->func->tables[i].base == addr)) {
            put_byte(p, 't');
            return;
        }
    const image_symbol *symbol = image_symbol_covering(img, addr);
    if (symbol && symbol->type != IMAGE_SYM_TLS && *symbol->name && !image_is_code(img, addr)) {
        put_byte(p, 'd');
        put_plain(p, symbol->name);
        put_number(p, addr - symbol->addr);
        return;
    }
    const image_section *section = image_section_at(img, addr);
    if (section && !(section->flags & (IMAGE_X | IMAGE_W))) {
        put_constant(p, addr, width);
        return;
    }
    put_byte(p, 'u');
    put_plain(p, section ? section->name : "");
    put_number(p, order_of_use(&p->seen, addr));
}

/* Whether the constant of an instruction is an address. */
static bool is_address(const printer *p, const ir_insn *insn)
{
    switch (insn->op) {
    case IR_ADDRESS: return true;
    case IR_CALL:
    case IR_TAIL: return insn->imm != 0;
    case IR_CONST:
    case IR_LEA:
    case IR_ACCESS:
        return p->img->kind == IMAGE_EXEC && insn->imm >= 4096 && image_section_at(p->img, (uint64_t)insn->imm);
    default: return false;
    }
}

static bool has_args(uint8_t op)
{
    return op == IR_PHI || op == IR_OPAQUE || op == IR_CALL || op == IR_TAIL || op == IR_RET || op == IR_SYSCALL;
}

/* The bytes that an access with this value as its whole address is to. */
static uint16_t width_at(const ir_func *ir, ir_value v)
{
    for (ir_value u = v + 1; u < ir->insn_count && u < v + 8; u++)
        if (ir->insns[u].op == IR_ACCESS && ir->insns[u].a == v && !ir->insns[u].b && !ir->insns[u].imm) return ir->insns[u].width;
    return 0;
}

static void put_insn(printer *p, const ir_func *ir, ir_value v)
{
    const ir_insn *insn = &ir->insns[v];
    struct {
        uint8_t op, scale;
        uint16_t width, var, flags;
    } head = {insn->op, insn->scale, insn->width, insn->var, insn->flags};
    put(p, &head, sizeof head);
    if (has_args(insn->op)) {
        put_number(p, insn->b);
        if (insn->b) put(p, &ir->args[insn->a], insn->b * (uint32_t)sizeof *ir->args);
    } else {
        bool spared = insn->op == IR_RESULT || insn->op == IR_CLOBBER; /* what a callee spares is not the caller's doing */
        ir_value operands[2] = {insn->a, spared ? 0 : insn->b};
        put(p, operands, sizeof operands);
    }
    put(p, &insn->c, sizeof insn->c);
    if (is_address(p, insn)) {
        put_address(p, (uint64_t)insn->imm, insn->op == IR_ADDRESS ? width_at(ir, v) : insn->width);
        return;
    }
    if (insn->op == IR_ACCESS && insn->flags & IR_FS && insn->imm < 0 && p->img->tls_size) {
        uint64_t offset = p->img->tls_size + (uint64_t)insn->imm;
        const image_symbol *symbol = image_symbol_tls(p->img, offset);
        if (symbol && *symbol->name) {
            put_byte(p, 'l');
            put_plain(p, symbol->name);
            put_number(p, offset - symbol->addr);
            return;
        }
    }
    put_number(p, (uint64_t)insn->imm);
}

static void hash_body(printer *p, store_func *out)
{
    const lift_func *f = p->func;
    vec_clear(&p->out);
    vec_clear(&p->callees);
    map_free(&p->seen);
    map_free(&p->functions);
    if (!strcmp(out->file, "crtstuff.c")) { /* the compiler's own: refers to the ends of sections, where any variable may begin */
        out->shape = out->body = store_name_hash(out->name);
        out->callees = base_alloc(0);
        return;
    }
    put_number(p, f->block_count);
    put_byte(p, f->returns);
    put_byte(p, f->complete);
    for (uint32_t b = 0; b < f->block_count; b++) {
        put_byte(p, f->blocks[b].end_kind);
        put_byte(p, f->blocks[b].tail);
        put_number(p, f->blocks[b].insn_count);
        for (uint32_t i = 0; i < f->blocks[b].succ_count; i++) {
            put_number(p, f->edges[f->blocks[b].first_succ + i].to);
            put_byte(p, f->edges[f->blocks[b].first_succ + i].kind);
        }
    }
    if (f->ir)
        for (ir_value v = 1; v < f->ir->insn_count; v++)
            put_insn(p, f->ir, v);
    out->shape = store_hash(p->out.data, p->out.len, 0);
    out->body = store_hash(p->callees.data, p->callees.len * sizeof *p->callees.data, out->shape);
    out->callee_count = p->callees.len;
    out->callees = base_alloc(p->callees.len * sizeof *p->callees.data);
    if (p->callees.len) memcpy(out->callees, p->callees.data, p->callees.len * sizeof *p->callees.data);
}

/* With the bodies of those it calls, in order: what tells equal ones apart where nothing has a name. */
static uint64_t hash_around(const lift_module *module, const store_func *funcs, const lift_func *f)
{
    uint64_t hash = funcs[f->id].body;
    for (ir_value v = 1; f->ir && v < f->ir->insn_count; v++) {
        const ir_insn *insn = &f->ir->insns[v];
        const lift_func *callee = (insn->op == IR_CALL || insn->op == IR_TAIL) && insn->imm
                                      ? lift_func_at(module, (uint64_t)insn->imm)
                                      : NULL;
        if (callee) hash = store_hash(&funcs[callee->id].body, sizeof hash, hash);
    }
    return hash;
}

static void name_functions(const lift_module *module, arena *memory, store_func *funcs)
{
    map64 seen = {0};
    for (uint32_t i = 0; i < module->func_count; i++) {
        const lift_func *f = module->funcs[i];
        const image_symbol *symbol = is_named(f) ? image_symbol_at(module->img, f->entry) : NULL;
        funcs[i].entry = f->entry;
        funcs[i].name = is_named(f) ? plain_name(f->name, arena_alloc(memory, strlen(f->name) + 1)) : "";
        funcs[i].file = symbol && symbol->file ? arena_string(memory, symbol->file, strlen(symbol->file)) : "";
        uint64_t key = store_hash(funcs[i].name, strlen(funcs[i].name), store_hash(funcs[i].file, strlen(funcs[i].file), 1));
        uint32_t *count = map_at(&seen, key & ~(1ull << 63));
        *count = *count == MAP_NONE ? 0 : *count + 1;
        funcs[i].ordinal = *count;
    }
    map_free(&seen);
}

void store_fingerprint(const lift_module *module, int jobs, arena *memory, store_module *out)
{
    const image *img = module->img;
    uint32_t count = module->func_count;
    *out = (store_module){.path = arena_string(memory, img->path, strlen(img->path)),
                          .member = img->member ? arena_string(memory, img->member, strlen(img->member)) : "",
                          .build_id = arena_string(memory, img->build_id, strlen(img->build_id)),
                          .instructions = module->stats.instructions,
                          .func_count = count};
    out->funcs = arena_alloc(memory, count * sizeof *out->funcs);
    store_func *funcs = out->funcs;
    name_functions(module, memory, funcs);
#pragma omp parallel num_threads(jobs > 0 ? jobs : omp_get_max_threads())
    {
        printer p = {.module = module, .img = img};
#pragma omp for schedule(dynamic, 32)
        for (uint32_t i = 0; i < count; i++) {
            p.func = module->funcs[i];
            hash_body(&p, &funcs[i]);
        }
        vec_free(&p.out);
        vec_free(&p.callees);
        map_free(&p.seen);
        map_free(&p.functions);
    }
    for (uint32_t i = 0; i < count; i++) { /* arenas are not for several threads */
        uint64_t *callees = funcs[i].callees;
        funcs[i].callees = arena_copy(memory, callees, funcs[i].callee_count * sizeof *callees);
        free(callees);
    }
    for (uint32_t i = 0; i < count; i++)
        funcs[i].around = hash_around(module, funcs, module->funcs[i]);
}

static const char *copy_text(arena *memory, const char *text)
{
    return *text ? arena_string(memory, text, strlen(text)) : "";
}

void store_module_copy(const store_module *from, arena *memory, store_module *out)
{
    *out = *from;
    out->path = copy_text(memory, from->path);
    out->member = copy_text(memory, from->member);
    out->build_id = copy_text(memory, from->build_id);
    out->funcs = arena_copy(memory, from->funcs, from->func_count * sizeof *from->funcs);
    for (uint32_t i = 0; i < from->func_count; i++) {
        store_func *f = &out->funcs[i];
        f->name = copy_text(memory, f->name);
        f->file = copy_text(memory, f->file);
        f->callees = arena_copy(memory, f->callees, f->callee_count * sizeof *f->callees);
    }
}
