/* Objects and places in the user's words: `&table[*].next`, `malloc@conn_new:612`, `&buf in main`. */
#include <stdio.h>

#include "static/pointer/view.h"

static void heap_name(const pta *p, const pta_place *place, char *to, size_t size)
{
    const pta_site *site = &view_program(p)->sites.data[place->site];
    const char *allocator = view_program(p)->funcs.data[site->func].name;
    const graph_context *c = &p->contexts.data[view_context(p, place->context)];
    const pta_call *call = NULL; /* the outermost one: the caller of a wrapper is what the user wants to know */
    for (uint32_t i = 0; i < c->count && !call; i++)
        if (view_program(p)->calls.data[view_call_of(p, c->calls[i])].addr) call = &view_program(p)->calls.data[view_call_of(p, c->calls[i])];
    if (!call) {
        snprintf(to, size, "%s", allocator);
        return;
    }
    const pta_func *caller = &view_program(p)->funcs.data[call->caller];
    image_line line;
    if (image_line_at(view_program(p)->modules[caller->module]->img, call->addr, &line) && line.file)
        snprintf(to, size, "%s@%s:%u", allocator, caller->name, line.line);
    else
        snprintf(to, size, "%s@%s+0x%llx", allocator, caller->name,
                 (unsigned long long)(call->addr - (caller->lift ? caller->lift->entry : 0)));
}

static void site_name(const pta *p, const pta_place *place, char *to, size_t size)
{
    const pta_site *site = &view_program(p)->sites.data[place->site];
    switch (site->kind) {
    case PTA_HEAP: heap_name(p, place, to, size); break;
    case PTA_FRAME: snprintf(to, size, "%s", site->name ? site->name : "frame"); break;
    case PTA_STATIC:
    case PTA_TLS:
        if (site->name)
            snprintf(to, size, "%s", site->name);
        else
            snprintf(to, size, "%s0x%llx", site->kind == PTA_TLS ? "tls:" : "", (unsigned long long)site->start);
        break;
    case PTA_LIBRARY: snprintf(to, size, "library:%s", site->name); break;
    default: snprintf(to, size, "%s", site->name ? site->name : "?"); break;
    }
}

/* The member at `offset` of an element of an array, for a class whose stride is the element's size. */
static bool element_name(const image_type *type, const char *name, const pta_place *place, char *to, size_t size)
{
    if (!type || type->kind != IMAGE_TYPE_ARRAY || !type->target || !type->target->size ||
        place->stride % type->target->size)
        return false;
    char array[256];
    snprintf(array, sizeof array, "&%s[*]", name);
    image_describe(type->target, array, (uint64_t)place->offset % type->target->size, to, size);
    return true;
}

static void place_name(const pta *p, const pta_place *place, char *to, size_t size)
{
    const pta_site *site = &view_program(p)->sites.data[place->site];
    char name[192], address[200];
    site_name(p, place, name, sizeof name);
    if (site->kind == PTA_FUNCTION || site->kind == PTA_EXTERNAL || site->kind == PTA_WILD) {
        snprintf(to, size, "%s", name);
        return;
    }
    bool fresh = site->kind == PTA_HEAP;
    snprintf(address, sizeof address, "%s%s", fresh ? "" : "&", name);
    if (!place->exact) {
        if (element_name(site->type, name, place, to, size)) return;
        if (place->stride == 1)
            snprintf(to, size, "%s[*]", address);
        else
            snprintf(to, size, "%s[%d mod %u]", address, place->offset, place->stride);
    } else if (!place->offset) {
        snprintf(to, size, "%s", address);
    } else if (site->type && place->offset > 0 && (uint64_t)place->offset < site->type->size) {
        image_describe(site->type, address, (uint64_t)place->offset, to, size);
    } else {
        snprintf(to, size, "%s%+d", address, place->offset);
    }
}

void pta_describe(const pta *p, const pta_place *place, char *to, size_t size)
{
    const pta_site *site = &view_program(p)->sites.data[place->site];
    place_name(p, place, to, size);
    size_t used = strlen(to);
    if (site->kind == PTA_FRAME && used < size) snprintf(to + used, size - used, " in %s", view_program(p)->funcs.data[site->func].name);
}

bool pta_heap_outer_call(const pta *p, const pta_place *place, uint32_t level, uint32_t *module, uint64_t *addr)
{
    const graph_context *c = &p->contexts.data[view_context(p, place->context)];
    for (uint32_t i = c->count; i-- > 0;) {
        const pta_call *call = &view_program(p)->calls.data[view_call_of(p, c->calls[i])];
        if (!call->addr || level-- > 0) continue;
        *module = view_program(p)->funcs.data[call->caller].module;
        *addr = call->addr;
        return true;
    }
    return false;
}
