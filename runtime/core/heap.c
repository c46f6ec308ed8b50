/* The blocks that the program has allocated: a free must know how much it frees, and a report names the block. */
#include "runtime/core/private.h"

static heap_bucket *bucket_of(core_state *core, uint64_t addr)
{
    return &core->heap[hash_address(addr) >> 48];
}

static heap_block *take_block(core_state *core)
{
    spin_lock(core, &core->heap_lock);
    heap_block *b = core->free_blocks;
    if (b) core->free_blocks = b->next;
    spin_unlock(&core->heap_lock);
    return b ? b : memory_take(core, sizeof *b);
}

static void give_block(core_state *core, heap_block *b)
{
    spin_lock(core, &core->heap_lock);
    b->next = core->free_blocks;
    core->free_blocks = b;
    spin_unlock(&core->heap_lock);
}

/* Takes the block that starts at addr out of the table, or NULL. */
static heap_block *remove_block(core_state *core, uint64_t addr)
{
    heap_bucket *bucket = bucket_of(core, addr);
    spin_lock(core, &bucket->lock);
    heap_block **link = &bucket->first;
    while (*link && (*link)->block.addr != addr)
        link = &(*link)->next;
    heap_block *b = *link;
    if (b) *link = b->next;
    spin_unlock(&bucket->lock);
    return b;
}

void ft_allocated(ft_thread *thread, uint64_t addr, uint64_t size, ft_site site)
{
    core_state *core = core_of_thread(thread);
    heap_block *b = remove_block(core, addr); /* one whose free was not seen */
    if (!b) b = take_block(core);
    if (b) {
        b->block = (ft_block){.addr = addr, .size = size, .thread = thread->number, .site = site};
        heap_bucket *bucket = bucket_of(core, addr);
        spin_lock(core, &bucket->lock);
        b->next = bucket->first;
        bucket->first = b;
        spin_unlock(&bucket->lock);
    }
    ft_clear(thread, addr, size);
}

void ft_freed(ft_thread *thread, uint64_t addr, ft_site site)
{
    core_state *core = core_of_thread(thread);
    heap_block *b = remove_block(core, addr);
    if (!b) return;
    ft_write(thread, addr, b->block.size, site | SITE_FREE);
    give_block(core, b);
}

void ft_discarded(ft_thread *thread, uint64_t addr)
{
    core_state *core = core_of_thread(thread);
    heap_block *b = remove_block(core, addr);
    if (!b) return;
    ft_clear(thread, addr, b->block.size);
    give_block(core, b);
}

uint64_t ft_block_size(ft_core *core, uint64_t addr)
{
    core_state *c = core_of(core);
    heap_bucket *bucket = bucket_of(c, addr);
    uint64_t size = 0;
    spin_lock(c, &bucket->lock);
    for (heap_block *b = bucket->first; b; b = b->next)
        if (b->block.addr == addr) size = b->block.size;
    spin_unlock(&bucket->lock);
    return size;
}

bool ft_block_covering(ft_core *core, uint64_t addr, ft_block *out)
{
    core_state *c = core_of(core);
    bool found = false;
    for (uint32_t i = 0; i < HEAP_BUCKETS && !found; i++) {
        spin_lock(c, &c->heap[i].lock);
        for (heap_block *b = c->heap[i].first; b && !found; b = b->next)
            if (addr - b->block.addr < b->block.size) {
                *out = b->block;
                found = true;
            }
        spin_unlock(&c->heap[i].lock);
    }
    return found;
}
