/* The plan while it is being made. Strings and sources are shared: a module has far fewer of them than sites. */
#include "static/place/place.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --- a table from contents to numbers ----------------------------------------------------------------------------- */

struct place_table {
    uint32_t *numbers;       /* plus 1; 0: empty */
    uint32_t capacity, used; /* capacity: a power of two */
};

typedef bool same_fn(const plan_draft *draft, uint32_t number, const void *key);

static place_table *table_new(void)
{
    place_table *t = base_alloc_zero(1, sizeof *t);
    t->capacity = 1024;
    t->numbers = base_alloc_zero(t->capacity, sizeof *t->numbers);
    return t;
}

static void table_free(place_table *t)
{
    if (!t) return;
    free(t->numbers);
    free(t);
}

typedef uint64_t hash_fn(const plan_draft *draft, uint32_t number);

static void table_grow(const plan_draft *draft, place_table *t, hash_fn *hash)
{
    place_table larger = {.capacity = t->capacity * 2, .used = t->used};
    larger.numbers = base_alloc_zero(larger.capacity, sizeof *larger.numbers);
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (!t->numbers[i]) continue;
        uint32_t at = (uint32_t)hash(draft, t->numbers[i] - 1) & (larger.capacity - 1);
        while (larger.numbers[at])
            at = (at + 1) & (larger.capacity - 1);
        larger.numbers[at] = t->numbers[i];
    }
    free(t->numbers);
    *t = larger;
}

/* The place of the key: its number plus 1, or 0 for the caller to set. */
static uint32_t *table_find(const plan_draft *draft, place_table *t, uint64_t hash, same_fn *same, hash_fn *hash_of,
                            const void *key)
{
    if (t->used * 2 >= t->capacity) table_grow(draft, t, hash_of);
    uint32_t at = (uint32_t)hash & (t->capacity - 1);
    while (t->numbers[at] && !same(draft, t->numbers[at] - 1, key))
        at = (at + 1) & (t->capacity - 1);
    if (!t->numbers[at]) t->used++;
    return &t->numbers[at];
}

/* --- strings and sources ------------------------------------------------------------------------------------------ */

static bool same_string(const plan_draft *draft, uint32_t offset, const void *key)
{
    return !strcmp(draft->strings.data + offset, key);
}

static uint64_t string_hash(const plan_draft *draft, uint32_t offset)
{
    const char *text = draft->strings.data + offset;
    return XXH3_64bits(text, strlen(text));
}

uint32_t draft_string(plan_draft *draft, const char *text)
{
    if (!text || !*text) return 0;
    size_t len = strlen(text);
    uint32_t *place = table_find(draft, draft->known_strings, XXH3_64bits(text, len), same_string, string_hash, text);
    if (*place) return *place - 1;
    uint32_t offset = draft->strings.len;
    vec_reserve(&draft->strings, offset + len + 1);
    memcpy(draft->strings.data + offset, text, len + 1);
    draft->strings.len += (uint32_t)len + 1;
    *place = offset + 1;
    return offset;
}

static bool same_source(const plan_draft *draft, uint32_t number, const void *key)
{
    return !memcmp(&draft->sources.data[number], key, sizeof(plan_source));
}

static uint64_t source_hash(const plan_draft *draft, uint32_t number)
{
    return XXH3_64bits(&draft->sources.data[number], sizeof(plan_source));
}

static uint32_t add_source(plan_draft *draft, const plan_source *source)
{
    uint32_t *place =
        table_find(draft, draft->known_sources, XXH3_64bits(source, sizeof *source), same_source, source_hash, source);
    if (!*place) {
        *place = draft->sources.len + 1;
        vec_push(&draft->sources, *source);
    }
    return *place;
}

uint32_t draft_source(plan_draft *draft, const lift_func *func, uint64_t addr)
{
    enum { FRAMES = 16 };
    image_frame frames[FRAMES];
    uint32_t n = image_frames_at(draft->img, addr, frames, FRAMES);
    if (!n) {
        frames[0] = (image_frame){.function = func->name};
        n = 1;
    }
    uint32_t outer = 0;
    while (n-- > 0) { /* outermost first: a source comes after the one it is inlined into */
        const char *name = frames[n].function;
        plan_source source = {
            .function = draft_string(draft, name && *name ? name : func->name),
            .file = draft_string(draft, frames[n].at.file),
            .line = frames[n].at.line,
            .column = frames[n].at.column,
            .outer = outer,
        };
        outer = add_source(draft, &source);
    }
    return outer;
}

/* --- sites -------------------------------------------------------------------------------------------------------- */

static int by_address(const void *left, const void *right)
{
    const plan_site *l = left, *r = right;
    if (l->addr != r->addr) return l->addr < r->addr ? -1 : 1;
    if (l->action_count != r->action_count) return l->action_count > r->action_count ? -1 : 1;
    return l->first_action < r->first_action ? -1 : l->first_action > r->first_action;
}

static void merge_sites(plan_draft *draft)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < draft->sites.len; i++) {
        plan_site *site = &draft->sites.data[i], *last = kept ? &draft->sites.data[kept - 1] : NULL;
        if (!last || last->addr != site->addr) {
            draft->sites.data[kept++] = *site;
            continue;
        }
        /* The first has the most actions: an access that needs a check in one function needs it in both. */
        last->dead &= site->dead;
        if (site->window < last->window) last->window = site->window;
        if (site->early < last->early) last->early = site->early;
    }
    draft->sites.len = kept;
}

static int by_object(const void *left, const void *right)
{
    const plan_object *l = left, *r = right;
    if (l->addr != r->addr) return l->addr < r->addr ? -1 : 1;
    if (l->size != r->size) return l->size > r->size ? -1 : 1;
    return l->name < r->name ? -1 : l->name > r->name;
}

static void add_objects(plan_draft *draft)
{
    const image *img = draft->img;
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        const image_symbol *s = &img->symbols[i];
        const image_section *section = image_section_at(img, s->addr);
        if (s->type != IMAGE_SYM_OBJECT || !s->size || !section || !(section->flags & IMAGE_W)) continue;
        uint64_t room = section->addr + section->size - s->addr;
        plan_object object = {.addr = s->addr, .size = s->size < room ? s->size : room};
        object.name = draft_string(draft, s->name);
        vec_push(&draft->objects, object);
    }
    if (draft->objects.len) qsort(draft->objects.data, draft->objects.len, sizeof *draft->objects.data, by_object);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < draft->objects.len; i++)
        if (!kept || draft->objects.data[kept - 1].addr != draft->objects.data[i].addr)
            draft->objects.data[kept++] = draft->objects.data[i];
    draft->objects.len = kept;
}

void draft_start(plan_draft *draft, const image *img)
{
    memset(draft, 0, sizeof *draft);
    draft->img = img;
    draft->known_sources = table_new();
    draft->known_strings = table_new();
    vec_push(&draft->strings, 0); /* offset 0 is the empty string */
}

void draft_finish(plan_draft *draft)
{
    if (draft->sites.len) qsort(draft->sites.data, draft->sites.len, sizeof *draft->sites.data, by_address);
    merge_sites(draft);
    add_objects(draft);
    draft_unwind(draft);
}

void draft_free(plan_draft *draft)
{
    vec_free(&draft->sites);
    vec_free(&draft->actions);
    vec_free(&draft->sources);
    vec_free(&draft->objects);
    vec_free(&draft->strings);
    vec_free(&draft->unwind);
    table_free(draft->known_sources);
    table_free(draft->known_strings);
    draft->known_sources = draft->known_strings = NULL;
}
