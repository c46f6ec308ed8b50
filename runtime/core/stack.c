/* Call stacks, each kept once, so that the earlier side of a race can be told with its stack although a cell has room
 * for one number only. */
#include "runtime/core/private.h"

static stack_entry *find(stack_entry *from, uint64_t hash, ft_site site, const uint64_t *frames, uint32_t n)
{
    for (stack_entry *e = from; e; e = e->next)
        if (e->hash == hash && e->site == site && e->count == n && !memcmp(e->frames, frames, n * sizeof *frames))
            return e;
    return NULL;
}

/* Gives e a number. Requires the depot's lock. */
static bool enlist(core_state *core, stack_entry *e)
{
    stack_depot *d = &core->stacks;
    uint32_t number = d->count + 1; /* 0 is none */
    if (number / STACK_PAGE >= STACK_PAGES) return false;
    stack_entry ***page = &d->pages[number / STACK_PAGE];
    if (!*page) {
        stack_entry **fresh = memory_take(core, STACK_PAGE * sizeof *fresh);
        if (!fresh) return false;
        __atomic_store_n(page, fresh, __ATOMIC_RELEASE);
    }
    e->number = number;
    __atomic_store_n(&(*page)[number % STACK_PAGE], e, __ATOMIC_RELEASE);
    __atomic_store_n(&d->count, number, __ATOMIC_RELEASE);
    return true;
}

ft_site ft_stack_put(ft_core *core, ft_site site, const uint64_t *frames, uint32_t n)
{
    core_state *c = core_of(core);
    if (n > FT_FRAMES) n = FT_FRAMES;
    if (!n) return site;
    uint64_t hash = site;
    for (uint32_t i = 0; i < n; i++)
        hash = hash_address(hash ^ frames[i]) ^ hash >> 29;
    stack_entry **bucket = &c->stacks.buckets[hash_address(hash) >> 48];
    stack_entry *e = find(__atomic_load_n(bucket, __ATOMIC_ACQUIRE), hash, site, frames, n);
    if (e) return e->number | WHERE_STACK;
    spin_lock(c, &c->stacks.lock);
    e = find(*bucket, hash, site, frames, n); /* by another thread meanwhile */
    if (!e) {
        e = memory_take(c, sizeof *e + n * sizeof *frames);
        if (e) {
            e->hash = hash;
            e->site = site;
            e->count = n;
            memcpy(e->frames, frames, n * sizeof *frames);
            e->next = *bucket;
            if (enlist(c, e))
                __atomic_store_n(bucket, e, __ATOMIC_RELEASE);
            else
                e = NULL;
        }
    }
    spin_unlock(&c->stacks.lock);
    return e ? e->number | WHERE_STACK : site;
}

static const stack_entry *stack_at(core_state *core, uint32_t number)
{
    if (!number || number > __atomic_load_n(&core->stacks.count, __ATOMIC_ACQUIRE)) return NULL;
    stack_entry **page = __atomic_load_n(&core->stacks.pages[number / STACK_PAGE], __ATOMIC_ACQUIRE);
    return __atomic_load_n(&page[number % STACK_PAGE], __ATOMIC_ACQUIRE);
}

uint32_t ft_stack_get(ft_core *core, uint32_t stack, uint64_t *frames, uint32_t cap)
{
    const stack_entry *e = stack_at(core_of(core), stack);
    if (!e) return 0;
    uint32_t n = e->count < cap ? e->count : cap;
    memcpy(frames, e->frames, n * sizeof *frames);
    return n;
}

uint32_t where_stack(ft_site where)
{
    return where & WHERE_STACK ? where & ~WHERE_STACK : 0;
}

ft_site where_site(core_state *core, ft_site where)
{
    const stack_entry *e = stack_at(core, where_stack(where));
    return e ? e->site : where;
}
