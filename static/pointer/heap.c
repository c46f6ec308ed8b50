/* The shapes of heap objects, by the arguments of the calls that allocate them. What is allocated in multiples of pages is divided
 * by its owner. What is in an element is told by what the result of the calls is declared to point to, where that has its size; else
 * by the one struct of that size, if there is just one. */
#include "static/pointer/graph.h"

typedef struct {
    uint64_t multiple; /* the size is a multiple of this; 0: unknown */
    bool exact;
} known_size;

/* An argument of call `at` of the calls that lead to a model, followed outwards through wrappers that pass it on. */
static known_size size_argument(const pta *p, const graph_context *c, uint32_t at, uint32_t argument)
{
    if (argument >= PTA_SIZES) return (known_size){0};
    const pta_size *size = &p->program->calls.data[c->calls[at]].sizes[argument];
    if (size->multiple) return (known_size){size->multiple, size->exact};
    if (!size->param || !at) return (known_size){0};
    known_size outer = size_argument(p, c, at - 1, size->param - 1u);
    if (!size->delta || !outer.multiple) return outer;
    return outer.exact ? (known_size){outer.multiple + (uint64_t)size->delta, true} : (known_size){0};
}

const image_type *heap_type(const pta_program *program, uint64_t size)
{
    const image_type *type = NULL;
    for (uint32_t m = 0; m < program->module_count && !type; m++)
        type = image_struct_of_size(program->modules[m]->img, size);
    return type;
}

/* The call that says what a model is called for, + 1; 0: none does, or they do not say the same, or something of another size. */
static uint32_t telling_call(const pta_program *program, const graph_context *c, uint64_t size)
{
    uint32_t found = 0;
    const image_type *type = NULL;
    for (uint32_t i = 0; i < c->count; i++) {
        const image_type *makes = program->calls.data[c->calls[i]].makes;
        if (!makes || makes == type) continue;
        if (type) return 0;
        type = makes;
        found = c->calls[i] + 1;
    }
    return type && type->kind == IMAGE_TYPE_STRUCT && type->size == size ? found : 0;
}

const image_type *heap_asked(const pta_program *program, const heap_ask *ask)
{
    return ask->call ? program->calls.data[ask->call - 1].makes : heap_type(program, ask->size);
}

/* Types that a shape is made of already have a small number. */
static uint32_t type_number(pta *p, const image_type *type)
{
    if (!type) return 0;
    uint32_t *known = map_at(&p->type_map, (uint64_t)(uintptr_t)type), next = p->type_map.count;
    if (*known == MAP_NONE) *known = next;
    return *known;
}

const pta_shape *heap_shape(pta *p, const pta_site *site, uint32_t context)
{
    enum { PAGE = 4096, WORD = 8 };
    const graph_context *c = &p->contexts.data[context];
    if (!site->sized || !c->count) return NULL;
    known_size size = size_argument(p, c, c->count - 1, site->sized - 1u), count = {1, true};
    if (site->counted) count = size_argument(p, c, c->count - 1, site->counted - 1u);
    if (size.multiple <= WORD || size.multiple > OFFSET_MAX_ELEMENT || (!size.exact && size.multiple % PAGE == 0)) return NULL;
    uint64_t total = size.exact && count.exact && count.multiple < 1 << 10 ? size.multiple * count.multiple : 0;
    heap_ask ask = {.size = size.multiple, .call = telling_call(p->program, c, size.multiple), .shape = p->heap_shapes.len};
    const image_type *type = heap_asked(p->program, &ask);
    uint64_t number = type_number(p, ask.call ? type : NULL);
    uint32_t *at = map_at(&p->shape_map, total << 36 | number << 18 | size.multiple);
    if (*at != MAP_NONE) return p->heap_shapes.data[*at];
    *at = ask.shape;
    vec_push(&p->asked, ask);
    vec_push(&p->heap_shapes, shape_build(&p->shape_memory, type, (uint32_t)size.multiple, total));
    return p->heap_shapes.data[*at];
}
