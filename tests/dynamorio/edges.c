/* libedges.so: records which instructions of a program ran, and which jumps went where.
 *
 *   drrun -c libedges.so PREFIX -- PROGRAM ARG...
 *
 * writes PREFIX.<pid> when a process ends (also when it calls exec or is killed by its own signal, as far as DynamoRIO
 * tells). Lines, with addresses relative to the module's preferred base as the file has it:
 *
 *   m NUMBER PATH              a module
 *   i NUMBER ADDRESS           an instruction that was about to run
 *   e NUMBER FROM TO KIND      a jump within the module: c conditional (taken or not), d direct, j indirect
 *
 * Calls and returns are not recorded, nor jumps from one module to another. Threads share one table under a lock; each
 * edge comes to it once per thread, as a rule, through a small cache. Not handled: code that is unmapped and mapped
 * again elsewhere, generated code. */
#include "dr_api.h"
#include "drmgr.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE = 4096, MAX_MODULES = 1024 };

typedef struct {
    uint64_t from, to; /* to: 0 for an instruction */
    uint16_t module;
    char kind;
} record;

typedef struct {
    app_pc start, end;
    uint64_t bias; /* subtract to get the file's address */
    char path[MAXIMUM_PATH];
} module;

typedef struct {
    uint64_t from[CACHE], to[CACHE];
} thread_cache;

static struct {
    char prefix[MAXIMUM_PATH];
    void *lock;
    module modules[MAX_MODULES];
    uint32_t module_count;
    record *table; /* open hash */
    uint64_t size, used;
    int tls;
} edges;

static int module_of(app_pc pc)
{
    for (uint32_t i = edges.module_count; i-- > 0;)
        if (pc >= edges.modules[i].start && pc < edges.modules[i].end) return (int)i;
    return -1;
}

static uint64_t hash(const record *r)
{
    uint64_t h = (r->from * 0x9e3779b97f4a7c15u) ^ (r->to * 0xc2b2ae3d27d4eb4fu) ^ r->module ^ (uint64_t)r->kind << 32;
    return h ^ h >> 29;
}

static record *find(record *table, uint64_t size, const record *r)
{
    uint64_t i = hash(r) & (size - 1);
    while (table[i].kind && (table[i].from != r->from || table[i].to != r->to || table[i].module != r->module ||
                             table[i].kind != r->kind))
        i = (i + 1) & (size - 1);
    return &table[i];
}

/* With the lock held. */
static void add(record r)
{
    if (edges.used * 2 >= edges.size) {
        uint64_t size = edges.size ? edges.size * 2 : 1 << 16;
        record *table = dr_raw_mem_alloc(size * sizeof *table, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
        for (uint64_t i = 0; i < edges.size; i++)
            if (edges.table[i].kind) *find(table, size, &edges.table[i]) = edges.table[i];
        if (edges.table) dr_raw_mem_free(edges.table, edges.size * sizeof *table);
        edges.table = table;
        edges.size = size;
    }
    record *slot = find(edges.table, edges.size, &r);
    edges.used += !slot->kind;
    *slot = r;
}

static void add_edge(app_pc from, app_pc to, char kind)
{
    thread_cache *cache = drmgr_get_tls_field(dr_get_current_drcontext(), edges.tls);
    uint64_t i = ((uint64_t)from * 31 ^ (uint64_t)to) % CACHE;
    if (cache->from[i] == (uint64_t)from && cache->to[i] == (uint64_t)to) return;
    cache->from[i] = (uint64_t)from;
    cache->to[i] = (uint64_t)to;
    dr_mutex_lock(edges.lock);
    int m = module_of(from);
    if (m >= 0 && module_of(to) == m) {
        uint64_t bias = edges.modules[m].bias;
        add((record){(uint64_t)from - bias, (uint64_t)to - bias, (uint16_t)m, kind});
    }
    dr_mutex_unlock(edges.lock);
}

static void at_indirect(app_pc from, app_pc to)
{
    add_edge(from, to, 'j');
}

static void at_branch(app_pc from, app_pc target, app_pc fall, int taken, void *unused)
{
    add_edge(from, taken ? target : fall, 'c');
}

static dr_emit_flags_t event_block(void *drcontext, void *tag, instrlist_t *bb, instr_t *instr, bool for_trace,
                                   bool translating, void *user_data)
{
    if (!instr_is_app(instr)) return DR_EMIT_DEFAULT;
    app_pc pc = instr_get_app_pc(instr);
    dr_mutex_lock(edges.lock);
    int m = module_of(pc);
    if (m >= 0 && !translating) add((record){(uint64_t)pc - edges.modules[m].bias, 0, (uint16_t)m, 'i'});
    dr_mutex_unlock(edges.lock);
    if (m < 0) return DR_EMIT_DEFAULT;
    if (instr_is_cbr(instr))
        dr_insert_cbr_instrumentation_ex(drcontext, bb, instr, at_branch, OPND_CREATE_INT32(0));
    else if (instr_is_mbr(instr) && !instr_is_call(instr) && !instr_is_return(instr))
        dr_insert_mbr_instrumentation(drcontext, bb, instr, at_indirect, SPILL_SLOT_1);
    else if (instr_is_ubr(instr) && !translating)
        add_edge(pc, opnd_get_pc(instr_get_target(instr)), 'd');
    return DR_EMIT_DEFAULT;
}

static void event_module_load(void *drcontext, const module_data_t *info, bool loaded)
{
    dr_mutex_lock(edges.lock);
    if (edges.module_count < MAX_MODULES && info->full_path) {
        module *m = &edges.modules[edges.module_count++];
        m->start = info->start;
        m->end = info->end;
        m->bias = (uint64_t)info->start - (uint64_t)info->preferred_base;
        strncpy(m->path, info->full_path, sizeof m->path - 1);
    }
    dr_mutex_unlock(edges.lock);
}

static void event_thread_init(void *drcontext)
{
    thread_cache *cache = dr_thread_alloc(drcontext, sizeof *cache);
    memset(cache, 0, sizeof *cache);
    drmgr_set_tls_field(drcontext, edges.tls, cache);
}

static void event_thread_exit(void *drcontext)
{
    dr_thread_free(drcontext, drmgr_get_tls_field(drcontext, edges.tls), sizeof(thread_cache));
}

static void event_exit(void)
{
    char path[MAXIMUM_PATH + 16];
    dr_snprintf(path, sizeof path, "%s.%d", edges.prefix, dr_get_process_id());
    path[sizeof path - 1] = 0;
    file_t out = dr_open_file(path, DR_FILE_WRITE_OVERWRITE);
    for (uint32_t i = 0; i < edges.module_count; i++)
        dr_fprintf(out, "m %u %s\n", i, edges.modules[i].path);
    for (uint64_t i = 0; i < edges.size; i++) {
        const record *r = &edges.table[i];
        if (r->kind == 'i')
            dr_fprintf(out, "i %u %llx\n", r->module, (unsigned long long)r->from);
        else if (r->kind)
            dr_fprintf(out, "e %u %llx %llx %c\n", r->module, (unsigned long long)r->from, (unsigned long long)r->to,
                       r->kind);
    }
    dr_close_file(out);
    dr_mutex_destroy(edges.lock);
    drmgr_exit();
}

DR_EXPORT void dr_client_main(client_id_t id, int argc, const char *argv[])
{
    dr_set_client_name("edges", "");
    strncpy(edges.prefix, argc > 1 ? argv[1] : "edges", sizeof edges.prefix - 1);
    edges.lock = dr_mutex_create();
    drmgr_init();
    edges.tls = drmgr_register_tls_field();
    drmgr_register_module_load_event(event_module_load);
    drmgr_register_thread_init_event(event_thread_init);
    drmgr_register_thread_exit_event(event_thread_exit);
    drmgr_register_bb_instrumentation_event(NULL, event_block, NULL);
    drmgr_register_exit_event(event_exit);
}
