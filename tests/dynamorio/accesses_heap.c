/* Allocations: who allocated the memory at an address.
 *
 * The allocation functions of all modules that are not analysed are wrapped; the outermost one decides for whom the
 * memory is (operator new calls malloc). Blocks of the heap are kept in a table with one word for 8 bytes of address
 * space, which never holds two blocks: reading needs no lock. Mappings are few and large: a list. */
#include "accesses.h"

#include "drmgr.h"
#include "drwrap.h"

enum { GRANULE = 8, LEAF = 1 << 20, LEAF_WORDS = LEAF / GRANULE, ADDRESS_BITS = 47, MAX_BLOCKS_LIVE = 1 << 24 };
enum { TOP_WORDS = 1 << (ADDRESS_BITS - 20), MAX_MAPPINGS = 1 << 16 };

typedef struct {
    object what;
    uint64_t start, size; /* start: the next free one when it is not in use */
} heap_block;

typedef struct {
    uint64_t start, end;
    object what;
} mapping;

static struct {
    void *lock;
    uint32_t **leaves; /* block numbers, 0: none */
    heap_block *blocks;
    uint32_t block_count, free;
    mapping *mappings; /* in no order, never overlapping */
    uint32_t mapping_count;
} heap;

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static uint32_t *word_of(uint64_t addr, bool create)
{
    if (addr >> ADDRESS_BITS) return NULL;
    uint32_t **leaf = &heap.leaves[addr / LEAF];
    if (!*leaf && create)
        *leaf = dr_raw_mem_alloc(LEAF_WORDS * sizeof **leaf, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
    return *leaf ? &(*leaf)[addr % LEAF / GRANULE] : NULL;
}

static void fill(uint64_t start, uint64_t size, uint32_t number)
{
    for (uint64_t at = start; at < start + size; at += GRANULE) {
        uint32_t *word = word_of(at, number != 0);
        if (word) *word = number;
    }
}

/* With the lock held. */
static void remove_block(uint64_t start)
{
    uint32_t *word = word_of(start, false);
    if (!word || !*word || heap.blocks[*word].start != start) return;
    uint32_t number = *word;
    fill(start, heap.blocks[number].size, 0);
    heap.blocks[number] = (heap_block){.start = heap.free};
    heap.free = number;
}

static void add_block(uint64_t start, uint64_t size, object what)
{
    if (!start || start % GRANULE || start >> ADDRESS_BITS || size >> ADDRESS_BITS) return;
    if (!size) size = 1;
    dr_mutex_lock(heap.lock);
    remove_block(start);
    uint32_t number = heap.free;
    if (number)
        heap.free = (uint32_t)heap.blocks[number].start;
    else if (heap.block_count + 1 < MAX_BLOCKS_LIVE)
        number = ++heap.block_count;
    if (number) {
        heap.blocks[number] = (heap_block){what, start, size};
        fill(start, size, number);
    }
    dr_mutex_unlock(heap.lock);
}

static void free_block(uint64_t start)
{
    dr_mutex_lock(heap.lock);
    remove_block(start);
    dr_mutex_unlock(heap.lock);
}

/* --- mappings ----------------------------------------------------------------------------------------------------- */

/* With the lock held. What is left of a mapping on both sides of the range stays. */
static void remove_mapping(uint64_t start, uint64_t end)
{
    for (uint32_t i = heap.mapping_count; i-- > 0;) {
        mapping old = heap.mappings[i];
        if (old.end <= start || old.start >= end) continue;
        heap.mappings[i] = heap.mappings[--heap.mapping_count];
        if (old.start < start) heap.mappings[heap.mapping_count++] = (mapping){old.start, start, old.what};
        if (old.end > end && heap.mapping_count < MAX_MAPPINGS)
            heap.mappings[heap.mapping_count++] = (mapping){end, old.end, old.what};
    }
}

static void add_mapping(uint64_t start, uint64_t size, object what)
{
    dr_mutex_lock(heap.lock);
    remove_mapping(start, start + size);
    if (what.kind != OBJECT_EXTERNAL && heap.mapping_count < MAX_MAPPINGS)
        heap.mappings[heap.mapping_count++] = (mapping){start, start + size, what};
    dr_mutex_unlock(heap.lock);
}

static void free_mapping(uint64_t start, uint64_t size)
{
    dr_mutex_lock(heap.lock);
    remove_mapping(start, start + size);
    dr_mutex_unlock(heap.lock);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

bool heap_find(uint64_t addr, object *found, int64_t *offset)
{
    uint32_t *word = word_of(addr, false), number = word ? *word : 0;
    if (number) {
        *found = heap.blocks[number].what;
        *offset = (int64_t)(addr - heap.blocks[number].start);
        return true;
    }
    bool yes = false;
    if (!heap.mapping_count) return false;
    dr_mutex_lock(heap.lock);
    for (uint32_t i = 0; i < heap.mapping_count && !yes; i++) {
        mapping *m = &heap.mappings[i];
        yes = addr >= m->start && addr < m->end;
        if (!yes) continue;
        *found = m->what;
        *offset = (int64_t)(addr - m->start);
    }
    dr_mutex_unlock(heap.lock);
    return yes;
}

bool heap_bounds(uint64_t addr, uint64_t *low, uint64_t *high)
{
    uint32_t *word = word_of(addr, false), number = word ? *word : 0;
    if (!number) return false;
    *low = heap.blocks[number].start;
    *high = *low + heap.blocks[number].size;
    return true;
}

/* --- the functions ------------------------------------------------------------------------------------------------ */

typedef enum { CALL_ALLOC, CALL_STORED, CALL_REALLOC, CALL_FREE, CALL_MAP, CALL_UNMAP, CALL_REMAP, CALL_TLS } call_kind;

enum { NO_ARG = 7 };

typedef struct {
    const char *name;
    uint8_t kind;        /* call_kind */
    uint8_t old;         /* argument: the block that ends, or where the result is stored */
    uint8_t size, count; /* arguments whose product is the size */
} call_row;

static const call_row calls[] = {
    {"malloc", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"calloc", CALL_ALLOC, NO_ARG, 0, 1},
    {"memalign", CALL_ALLOC, NO_ARG, 1, NO_ARG},
    {"aligned_alloc", CALL_ALLOC, NO_ARG, 1, NO_ARG},
    {"valloc", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"pvalloc", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"posix_memalign", CALL_STORED, 0, 2, NO_ARG},
    {"realloc", CALL_REALLOC, 0, 1, NO_ARG},
    {"reallocarray", CALL_REALLOC, 0, 1, 2},
    {"free", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"cfree", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"_Znwm", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_Znam", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnwmRKSt9nothrow_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnamRKSt9nothrow_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnwmSt11align_val_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnamSt11align_val_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", CALL_ALLOC, NO_ARG, 0, NO_ARG},
    {"_ZdlPv", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"_ZdaPv", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"_ZdlPvm", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"_ZdaPvm", CALL_FREE, 0, NO_ARG, NO_ARG},
    {"mmap", CALL_MAP, NO_ARG, 1, NO_ARG},
    {"mmap64", CALL_MAP, NO_ARG, 1, NO_ARG},
    {"munmap", CALL_UNMAP, 0, 1, NO_ARG},
    {"mremap", CALL_REMAP, 0, 2, 1},
    {"__tls_get_addr", CALL_TLS, 0, NO_ARG, NO_ARG},
};

static uint64_t read_word(uint64_t addr)
{
    uint64_t value = 0;
    size_t done;
    return dr_safe_read((void *)addr, sizeof value, &value, &done) && done == sizeof value ? value : 0;
}

typedef struct {
    const call_row *row;
    uint64_t old, size; /* values of the arguments */
    heap_block was;     /* the block that a realloc ends */
} pending_call;

static uint64_t argument(void *wrapcxt, uint8_t number, uint64_t none)
{
    return number == NO_ARG ? none : (uint64_t)drwrap_get_arg(wrapcxt, number);
}

static void before_free(void *wrapcxt, void **user_data)
{
    const call_row *row = *user_data;
    uint64_t old = argument(wrapcxt, row->old, 0);
    if (row->kind == CALL_UNMAP)
        free_mapping(old, argument(wrapcxt, row->size, 0));
    else
        free_block(old);
}

static void before_alloc(void *wrapcxt, void **user_data)
{
    thread *t = thread_current();
    pending_call *call = dr_thread_alloc(drwrap_get_drcontext(wrapcxt), sizeof *call);
    const call_row *row = *user_data;
    *call = (pending_call){.row = row, .old = argument(wrapcxt, row->old, 0)};
    call->size = argument(wrapcxt, row->size, 0);
    *user_data = call;
    if (row->kind == CALL_TLS) {
        call->size = read_word(call->old + 8); /* the offset in the block */
        call->old = read_word(call->old);
        return;
    }
    if (!t->allocating++) t->allocated = stack_caller(t, drwrap_get_mcontext_ex(wrapcxt, DR_MC_CONTROL)->xsp);
    if (row->kind == CALL_REMAP)
        free_mapping(call->old, argument(wrapcxt, row->count, 0));
    else
        call->size *= argument(wrapcxt, row->count, 1);
    if (row->kind != CALL_REALLOC) return;
    /* It is gone before the call, since another thread may get its memory before this one is back here. */
    uint32_t *word = word_of(call->old, false);
    if (word && *word) call->was = heap.blocks[*word];
    free_block(call->old);
}

static void note_tls_block(thread *t, uint64_t id, uint64_t start)
{
    uint32_t i = 0;
    while (i < t->block_count && t->block_module[i] != id)
        i++;
    if (i == MAX_BLOCKS) return;
    t->block_module[i] = id;
    t->block_start[i] = start;
    if (i == t->block_count) t->block_count++;
}

static void apply(thread *t, const pending_call *call, uint64_t result)
{
    switch (call->row->kind) {
    case CALL_TLS: note_tls_block(t, call->old, result - call->size); break;
    case CALL_MAP:
    case CALL_REMAP:
        if (result < -4095ull) add_mapping(result, call->size, t->allocated);
        break;
    case CALL_STORED:
        if (!result) add_block(read_word(call->old), call->size, t->allocated);
        break;
    case CALL_REALLOC:
        if (!result && call->size) add_block(call->was.start, call->was.size, call->was.what);
        __attribute__((fallthrough));
    default: add_block(result, call->size, t->allocated);
    }
}

/* wrapcxt is NULL when the call was left by an exception or by the end of the thread. */
static void after_alloc(void *wrapcxt, void *user_data)
{
    pending_call *call = user_data;
    thread *t = thread_current();
    if (wrapcxt) apply(t, call, (uint64_t)drwrap_get_retval(wrapcxt));
    if (call->row->kind != CALL_TLS) t->allocating--;
    dr_thread_free(dr_get_current_drcontext(), call, sizeof *call);
}

void heap_watch(const module_data_t *info)
{
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        app_pc at = (app_pc)dr_get_proc_address(info->handle, calls[i].name);
        if (!at) continue;
        bool frees = calls[i].kind == CALL_FREE || calls[i].kind == CALL_UNMAP;
        if (frees)
            drwrap_wrap_ex(at, before_free, NULL, (void *)&calls[i], DRWRAP_CALLCONV_DEFAULT);
        else if (!drwrap_is_wrapped(at, before_alloc, after_alloc)) /* one function may have two names */
            drwrap_wrap_ex(at, before_alloc, after_alloc, (void *)&calls[i], DRWRAP_CALLCONV_DEFAULT);
    }
}

void heap_init(void)
{
    uint prot = DR_MEMPROT_READ | DR_MEMPROT_WRITE;
    heap.lock = dr_mutex_create();
    heap.leaves = dr_raw_mem_alloc(TOP_WORDS * sizeof *heap.leaves, prot, NULL);
    heap.blocks = dr_raw_mem_alloc(MAX_BLOCKS_LIVE * sizeof *heap.blocks, prot, NULL);
    heap.mappings = dr_raw_mem_alloc(MAX_MAPPINGS * sizeof *heap.mappings, prot, NULL);
}
