/* What guards accesses, by number: equal guards have one, and whether two have a lock in common is asked once. */
#include "static/detect/private.h"

static bool is_same(const hb_guards *a, const hb_guards *b)
{
    if (a->len != b->len) return false;
    for (uint32_t i = 0; i < a->len; i++) {
        const hb_guard *x = &a->data[i], *y = &b->data[i];
        if (x->kind != y->kind || x->shared != y->shared || x->lock != y->lock || x->at != y->at) return false;
    }
    return true;
}

uint32_t detect_guards_number(detect_guards *all, hb_guards *own)
{
    uint64_t hash = own->len;
    for (uint32_t i = 0; i < own->len; i++) {
        const hb_guard *g = &own->data[i];
        hash = map_hash(map_hash(hash * 31 + g->lock) + (uint64_t)g->at * 8 + g->kind * 2u + g->shared);
    }
    for (;; hash = map_hash(hash + 1)) {
        uint32_t *at = map_at(&all->numbers, hash & ~(1ull << 63));
        if (*at == MAP_NONE) {
            *at = all->guards.len;
            vec_push(&all->guards, *own);
            *own = (hb_guards){0};
            return *at;
        }
        if (!is_same(&all->guards.data[*at], own)) continue;
        vec_free(own);
        return *at;
    }
}

bool detect_guards_common(detect_guards *all, uint32_t a, uint32_t b)
{
    if (!all->guards.data[a].len || !all->guards.data[b].len) return false;
    uint32_t *known = map_at(&all->common, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a);
    if (*known == MAP_NONE) *known = hb_guarded(&all->guards.data[a], &all->guards.data[b]);
    return *known;
}

void detect_guards_close(detect_guards *all)
{
    for (uint32_t i = 0; i < all->guards.len; i++)
        vec_free(&all->guards.data[i]);
    vec_free(&all->guards);
    map_free(&all->numbers);
    map_free(&all->common);
}
