/* What must hold inside the core when nobody is in it: a compact block has nothing below it, every read vector is
 * counted by exactly those who have it, and no block of a pool has two owners. Traces that end well could still have
 * lost count of something that only a later access would have met. */
#ifndef RACE_TEST_AUDIT_H
#define RACE_TEST_AUDIT_H

#include "runtime/core/private.h"

#include <stdlib.h>

typedef struct {
    core_state *core;
    uint32_t *owners[POOLS]; /* by number: cells and memos that have it */
    const char *wrong;       /* NULL: nothing */
} audit;

static inline void audit_own(audit *a, unsigned which, uint32_t number)
{
    if (number >= a->core->pools[which].fresh)
        a->wrong = "a number that was never given out";
    else
        a->owners[which][number]++;
}

static inline void audit_readers(audit *a, ft_site site)
{
    if (site & WHERE_READERS) audit_own(a, POOL_READERS + (site >> 28 & 7), site & 0xfffffff);
}

static inline void audit_cell(audit *a, const ft_cell *c)
{
    if (c->write != CELL_SPLIT) {
        audit_readers(a, c->read_site);
        if (cell_is_empty(*c) && (c->write_site || c->read_site)) a->wrong = "an empty cell with a site";
        return;
    }
    audit_own(a, POOL_SPLIT, c->write_site);
    const split_block *split = pool_at(&a->core->pools[POOL_SPLIT], c->write_site);
    for (int i = 0; i < FT_GRANULE; i++)
        audit_readers(a, split->byte[i].read_site);
}

static inline bool audit_is_zero(const void *data, size_t size)
{
    const char *bytes = data;
    return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

static inline void audit_page(audit *a, region *r, uint32_t number, bool below_fine)
{
    const block *page = &r->pages[number];
    const ft_epochs *cells = &r->cells[number * PAGE_CELLS];
    if (page->seq & 1) a->wrong = "a page is locked";
    if (!below_fine && (page->form != FORM_COMPACT || !cell_is_empty(page->cell))) a->wrong = "below a compact chunk";
    audit_cell(a, &page->cell);
    if (page->form == FORM_FINE) {
        for (uint32_t i = 0; i < PAGE_CELLS; i++) {
            const ft_cell cell = shadow_load(&cells[i]);
            audit_cell(a, &cell);
        }
        if (!cell_is_empty(page->cell)) a->wrong = "a fine page has a cell";
    } else if (page->committed && (!audit_is_zero(cells, PAGE_CELLS * sizeof *cells) ||
                                  !audit_is_zero(sites_of(cells), PAGE_CELLS * sizeof(ft_sites)))) {
        a->wrong = "below a compact page";
    }
}

static inline void audit_count(audit *a, unsigned which)
{
    const pool *p = &a->core->pools[which];
    for (uint32_t number = p->free; number; number = *(uint32_t *)pool_at(p, number - 1)) {
        if (a->owners[which][number - 1]) a->wrong = "somebody has a block that is free";
        a->owners[which][number - 1] = UINT32_MAX;
    }
    for (thread_state *t = a->core->all_threads; t; t = t->next)
        for (uint32_t i = 0; i < t->magazines[which].count; i++) {
            if (a->owners[which][t->magazines[which].number[i]]) a->wrong = "somebody has a block that is at hand";
            a->owners[which][t->magazines[which].number[i]] = UINT32_MAX;
        }
    for (uint32_t i = 0; i < p->fresh; i++) {
        uint32_t owners = a->owners[which][i], expected = which == POOL_SPLIT ? 1 : *(uint32_t *)pool_at(p, i);
        if (owners == 0) a->wrong = "a block that nobody has is not free";
        if (owners != UINT32_MAX && owners != expected)
            a->wrong = "a block has another number of owners than it counts";
    }
}

/* The memory [base, base + size), which must be all that the program has used. NULL: all is well. */
static inline const char *audit_core(ft_core *core, uint64_t base, uint64_t size)
{
    audit a = {.core = core_of(core)};
    for (unsigned i = 0; i < POOLS; i++)
        a.owners[i] = calloc(a.core->pools[i].fresh + 1, sizeof **a.owners);
    for (uint64_t addr = base & ~(uint64_t)(CHUNK_SIZE - 1); addr < base + size; addr += CHUNK_SIZE) {
        region *r = region_at(a.core, addr);
        if (!r) continue;
        uint32_t number = (uint32_t)((addr & (REGION_SIZE - 1)) >> CHUNK_BITS);
        const block *chunk = &r->chunks[number];
        if (chunk->form == FORM_FINE && !cell_is_empty(chunk->cell)) a.wrong = "a fine chunk has a cell";
        audit_cell(&a, &chunk->cell);
        for (uint32_t i = 0; i < CHUNK_PAGES; i++)
            audit_page(&a, r, number * CHUNK_PAGES + i, chunk->form == FORM_FINE);
    }
    for (thread_state *t = a.core->all_threads; t; t = t->next)
        for (unsigned i = 0; i < MEMOS; i++) {
            if (!t->memos[i].result) continue;
            audit_readers(&a, t->memos[i].result);
            audit_readers(&a, t->memos[i].read_site);
        }
    for (unsigned i = 0; i < POOLS && !a.wrong; i++)
        audit_count(&a, i);
    for (unsigned i = 0; i < POOLS; i++)
        free(a.owners[i]);
    return a.wrong;
}

#endif
