/* Reads the input as a plan, as it is and with a checksum that fits, and then does with it what an engine does: every
 * site, action, source chain, object, string and unwind row is looked at, as far as the reader's promise goes that they may be. */
#include "include/race/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* what is read must not be optimised away */

static void demand(bool holds)
{
    if (!holds) abort();
}

static void use_action(const plan_action *a)
{
    demand(a->kind >= PLAN_CHECK && a->kind <= PLAN_CAPTURE);
    demand(a->base < 16 || a->base == PLAN_MODULE || a->base == PLAN_NOTHING ||
           (a->base >= PLAN_CAPTURED && a->base < PLAN_CAPTURED + PLAN_CAPTURES));
    demand(a->scale == 1 || a->scale == 2 || a->scale == 4 || a->scale == 8);
    demand(a->segment <= PLAN_SEGMENT_GS && a->size <= PLAN_MAX_ELEMENT && a->count <= PLAN_MAX_COUNT);
    sink += (uint64_t)a->disp + a->size;
}

static void use_source(const plan *p, uint32_t number)
{
    for (uint32_t steps = 0; number; steps++) {
        demand(steps <= p->source_count);
        const plan_source *s = &p->sources[number - 1];
        sink += strlen(plan_string(p, s->function)) + strlen(plan_string(p, s->file)) + s->line;
        number = s->outer;
    }
}

static void use(const plan *p)
{
    for (uint32_t i = 0; i < p->site_count; i++) {
        const plan_site *s = &p->sites[i];
        demand(plan_site_at(p, s->addr) == s);
        demand(plan_site_covering(p, s->addr + s->length - 1) != NULL);
        for (uint32_t k = 0; k < s->action_count; k++)
            use_action(&p->actions[s->first_action + k]);
        if (i < 1000) use_source(p, s->source);
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        const plan_object *o = &p->objects[i];
        const plan_object *found = plan_object_covering(p, o->addr);
        demand(found == (o->size ? o : NULL));
        if (i < 1000) sink += strlen(plan_string(p, o->name));
    }
    for (uint32_t i = 0; i < p->unwind_count; i++) {
        const plan_unwind *u = &p->unwind[i];
        demand(u->base == PLAN_UNWIND_END || u->base == PLAN_UNWIND_RSP || u->base == PLAN_UNWIND_RBP);
        const plan_unwind *found = plan_unwind_at(p, p->header->low + u->start); /* none at the end */
        demand(found == (u->start < p->header->high - p->header->low ? u : NULL));
    }
    sink += strlen(p->header->build_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plan p;
    char *copy = aligned_alloc(8, (size + 8) & ~(size_t)7);
    if (!copy) return 0;
    memcpy(copy, data, size);
    if (plan_read(copy, size, &p) == PLAN_OK) use(&p);
    if (size >= sizeof(plan_header)) { /* nothing behind the checksum would ever be reached otherwise */
        plan_header *h = (plan_header *)(void *)copy;
        memcpy(h->magic, PLAN_MAGIC, sizeof h->magic);
        h->version = PLAN_VERSION;
        h->header_size = sizeof *h;
        h->file_size = size;
        h->checksum = plan_checksum(copy, size);
        if (plan_read(copy, size, &p) == PLAN_OK) use(&p);
    }
    free(copy);
    return 0;
}
