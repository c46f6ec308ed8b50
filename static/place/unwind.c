/* How an engine finds callers: the module's unwind tables, reduced to what walking a stack needs: the frame's address
 * from rsp or rbp, and where the caller's rbp is. Where the tables say it by an expression, walks end. */
#include "static/place/place.h"

#include <stdlib.h>

enum { DWARF_RBP = 6, DWARF_RSP = 7 };

static plan_unwind compact(const image_unwind_row *row, uint64_t low)
{
    plan_unwind u = {.start = (uint32_t)(row->addr - low), .base = PLAN_UNWIND_END};
    if (row->cfa_reg != DWARF_RBP && row->cfa_reg != DWARF_RSP) return u;
    int32_t rbp = row->saved[DWARF_RBP];
    if (rbp == IMAGE_UNWIND_COMPLEX || rbp == 0) return u;
    u.cfa = row->cfa_off;
    u.rbp = rbp == IMAGE_UNWIND_UNSAVED ? 0 : rbp;
    u.base = row->cfa_reg == DWARF_RSP ? PLAN_UNWIND_RSP : PLAN_UNWIND_RBP;
    return u;
}

static bool is_same_rule(const plan_unwind *a, const plan_unwind *b)
{
    return a->base == b->base && a->cfa == b->cfa && a->rbp == b->rbp;
}

/* Rows come in order of address; of two for one address (tables that overlap) the later one counts. */
static void add_row(plan_draft *draft, plan_unwind row)
{
    plan_unwind *last = draft->unwind.len ? &draft->unwind.data[draft->unwind.len - 1] : NULL;
    if (last && row.start < last->start) return;
    if (last && row.start == last->start)
        *last = row;
    else if (!last || !is_same_rule(last, &row))
        vec_push(&draft->unwind, row);
}

void draft_unwind(plan_draft *draft)
{
    const image *img = draft->img;
    if (!img->section_count) return;
    const uint64_t low = img->sections[0].addr;
    const image_section *last = &img->sections[img->section_count - 1];
    for (uint32_t i = 0; i < img->fde_count; i++) {
        const image_fde *fde = &img->fdes[i];
        image_unwind_row *rows;
        if (fde->signal || fde->start < low || fde->end > last->addr + last->size || fde->end - low > UINT32_MAX)
            continue;
        uint32_t count = image_unwind_rows(img, fde, &rows);
        for (uint32_t k = 0; k < count; k++)
            if (rows[k].addr >= fde->start && rows[k].addr < fde->end) add_row(draft, compact(&rows[k], low));
        if (count) free(rows);
        add_row(draft, (plan_unwind){.start = (uint32_t)(fde->end - low), .base = PLAN_UNWIND_END});
    }
}
