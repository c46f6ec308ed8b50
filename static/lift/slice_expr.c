/* Expressions of the backward slice: construction with simplification, and what a condition says about a value. */
#include "static/lift/slice.h"

static uint64_t mask(uint32_t bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static uint64_t sign_extend(uint64_t k, uint32_t bits)
{
    return bits >= 64 ? k : (uint64_t)((int64_t)(k << (64 - bits)) >> (64 - bits));
}

void slice_pool_reset(slice_pool *pool)
{
    memset(pool->hash, 0, sizeof pool->hash);
    pool->nodes[0] = (slice_node){.op = X_ANY, .size = 1, .any = true};
    pool->count = 1;
}

/* The node, made or found; nothing known when the tree or the pool would be too large. */
static slice_expr make(slice_pool *pool, slice_node n)
{
    const slice_node *a = &pool->nodes[n.a], *b = &pool->nodes[n.b];
    bool unary = n.op >= X_MEM, binary = n.op == X_ADD || n.op == X_INSERT;
    uint32_t size = 1u + (unary ? a->size : 0) + (binary ? b->size : 0);
    if (size > SLICE_TREE) { /* forget what it is of, but not how large it can be */
        if (n.op != X_ZX && n.op != X_AND && n.op != X_SHR) return 0;
        n.a = 0;
        a = &pool->nodes[0];
        size = 2;
    }
    n.size = (uint8_t)size;
    n.regs = (uint16_t)((unary ? a->regs : 0) | (binary ? b->regs : 0));
    n.memory = n.op == X_MEM || (unary && a->memory) || (binary && b->memory);
    n.any = (unary && a->any) || (binary && b->any);
    if (n.op == X_REG) n.regs = (uint16_t)(1u << n.k);
    uint64_t h = n.k ^ (uint64_t)n.op << 40 ^ (uint64_t)n.bits << 32 ^ (uint64_t)n.a << 16 ^ n.b;
    h *= 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(h >> 40) % (2 * SLICE_NODES);; i = (i + 1) % (2 * SLICE_NODES)) {
        uint16_t at = pool->hash[i];
        if (!at) {
            if (pool->count == SLICE_NODES) return 0;
            pool->nodes[pool->count] = n;
            pool->hash[i] = (uint16_t)pool->count;
            return (slice_expr)pool->count++;
        }
        const slice_node *o = &pool->nodes[at];
        if (o->op == n.op && o->bits == n.bits && o->a == n.a && o->b == n.b && o->k == n.k) return at;
    }
}

slice_expr slice_const(slice_pool *pool, uint64_t k)
{
    return make(pool, (slice_node){.op = X_CONST, .k = k});
}

slice_expr slice_reg(slice_pool *pool, uint32_t reg)
{
    return make(pool, (slice_node){.op = X_REG, .k = reg});
}

slice_expr slice_mem(slice_pool *pool, slice_expr addr, uint32_t bits)
{
    if (!addr || bits > 64) return 0;
    return make(pool, (slice_node){.op = X_MEM, .bits = (uint8_t)bits, .a = addr});
}

slice_expr slice_split(const slice_pool *pool, slice_expr x, uint64_t *k)
{
    const slice_node *n = &pool->nodes[x];
    *k = 0;
    if (n->op == X_ADD && pool->nodes[n->b].op == X_CONST) {
        *k = pool->nodes[n->b].k;
        return n->a;
    }
    return x;
}

/* Both without constant part. */
static slice_expr add_terms(slice_pool *pool, slice_expr a, slice_expr b)
{
    const slice_node *na = &pool->nodes[a], *nb = &pool->nodes[b];
    slice_expr ta = na->op == X_MUL ? na->a : a, tb = nb->op == X_MUL ? nb->a : b;
    if (ta == tb && !pool->nodes[ta].any)
        return slice_mul(pool, ta, (na->op == X_MUL ? na->k : 1) + (nb->op == X_MUL ? nb->k : 1));
    return make(pool, (slice_node){.op = X_ADD, .a = a < b ? a : b, .b = a < b ? b : a});
}

slice_expr slice_add(slice_pool *pool, slice_expr a, slice_expr b)
{
    uint64_t ka, kb;
    if (!a || !b) return 0;
    if (pool->nodes[a].op == X_CONST && pool->nodes[b].op == X_CONST)
        return slice_const(pool, pool->nodes[a].k + pool->nodes[b].k);
    a = slice_split(pool, a, &ka);
    b = slice_split(pool, b, &kb);
    slice_expr x;
    if (pool->nodes[a].op == X_CONST) {
        x = b;
        ka += pool->nodes[a].k;
    } else if (pool->nodes[b].op == X_CONST) {
        x = a;
        kb += pool->nodes[b].k;
    } else {
        x = add_terms(pool, a, b);
        uint64_t kx;
        x = slice_split(pool, x, &kx);
        ka += kx;
    }
    if (!x || ka + kb == 0) return x;
    if (pool->nodes[x].op == X_CONST) return slice_const(pool, pool->nodes[x].k + ka + kb);
    slice_expr k = slice_const(pool, ka + kb);
    return k ? make(pool, (slice_node){.op = X_ADD, .a = x, .b = k}) : 0;
}

slice_expr slice_mul(slice_pool *pool, slice_expr a, uint64_t k)
{
    const slice_node *n = &pool->nodes[a];
    if (k == 0) return slice_const(pool, 0);
    if (k == 1 || !a) return a;
    if (n->op == X_CONST) return slice_const(pool, n->k * k);
    if (n->op == X_MUL) return slice_mul(pool, n->a, n->k * k);
    uint64_t plus;
    slice_expr term = slice_split(pool, a, &plus);
    if (term != a) return slice_add(pool, slice_mul(pool, term, k), slice_const(pool, plus * k));
    return make(pool, (slice_node){.op = X_MUL, .a = a, .k = k});
}

/* Something of the same low bits, without what only changes the higher ones. */
static slice_expr low_bits(slice_pool *pool, slice_expr x, uint32_t bits)
{
    slice_node n = pool->nodes[x];
    switch (n.op) {
    case X_CONST: return slice_const(pool, sign_extend(n.k, bits));
    case X_ZX:
    case X_SX: return n.bits >= bits ? low_bits(pool, n.a, bits) : x;
    case X_INSERT: return n.bits >= bits ? low_bits(pool, n.b, bits) : x;
    case X_AND: return (n.k & mask(bits)) == mask(bits) ? low_bits(pool, n.a, bits) : x;
    case X_ADD: return slice_add(pool, low_bits(pool, n.a, bits), low_bits(pool, n.b, bits));
    case X_MUL: return slice_mul(pool, low_bits(pool, n.a, bits), n.k);
    default: return x;
    }
}

slice_expr slice_zx(slice_pool *pool, slice_expr a, uint32_t bits)
{
    if (bits >= 64) return a;
    if (pool->nodes[a].op == X_CONST) return slice_const(pool, pool->nodes[a].k & mask(bits));
    if (slice_limit(pool, a) <= mask(bits)) return a;
    slice_expr low = low_bits(pool, a, bits);
    if (pool->nodes[low].op == X_CONST) return slice_const(pool, pool->nodes[low].k & mask(bits));
    return make(pool, (slice_node){.op = X_ZX, .bits = (uint8_t)bits, .a = low});
}

slice_expr slice_sx(slice_pool *pool, slice_expr a, uint32_t bits)
{
    if (bits >= 64 || !a) return a;
    if (pool->nodes[a].op == X_CONST) return slice_const(pool, sign_extend(pool->nodes[a].k, bits));
    if (slice_limit(pool, a) <= mask(bits - 1)) return a;
    if (pool->nodes[a].op == X_SX && pool->nodes[a].bits <= bits) return a;
    slice_expr low = low_bits(pool, a, bits);
    if (!low) return 0;
    if (pool->nodes[low].op == X_CONST) return slice_const(pool, sign_extend(pool->nodes[low].k, bits));
    return make(pool, (slice_node){.op = X_SX, .bits = (uint8_t)bits, .a = low});
}

slice_expr slice_and(slice_pool *pool, slice_expr a, uint64_t k)
{
    slice_node n = pool->nodes[a];
    if (n.op == X_CONST) return slice_const(pool, n.k & k);
    if (k == UINT64_MAX) return a;
    if ((k & (k + 1)) == 0) return slice_zx(pool, a, k ? 64u - (uint32_t)__builtin_clzll(k) : 0);
    if (n.op == X_AND) return slice_and(pool, n.a, n.k & k);
    if (n.op == X_ZX) {
        if ((k & mask(n.bits)) == mask(n.bits)) return a;
        return slice_and(pool, n.a, k & mask(n.bits));
    }
    return make(pool, (slice_node){.op = X_AND, .a = a, .k = k});
}

slice_expr slice_shr(slice_pool *pool, slice_expr a, uint32_t k)
{
    const slice_node *n = &pool->nodes[a];
    if (k == 0) return a;
    if (k >= 64) return 0;
    if (n->op == X_CONST) return slice_const(pool, n->k >> k);
    return make(pool, (slice_node){.op = X_SHR, .a = a, .k = k});
}

slice_expr slice_insert(slice_pool *pool, slice_expr a, slice_expr b, uint32_t bits)
{
    return make(pool, (slice_node){.op = X_INSERT, .a = a, .b = b, .bits = (uint8_t)bits});
}

slice_expr slice_replace(slice_pool *pool, slice_expr x, slice_expr leaf, slice_expr by)
{
    slice_node n = pool->nodes[x];
    if (x == leaf) return by;
    if (n.size < 2) return x;
    slice_expr a = slice_replace(pool, n.a, leaf, by);
    switch (n.op) {
    case X_MEM: return slice_mem(pool, a, n.bits);
    case X_ADD: return slice_add(pool, a, slice_replace(pool, n.b, leaf, by));
    case X_MUL: return slice_mul(pool, a, n.k);
    case X_ZX: return slice_zx(pool, a, n.bits);
    case X_SX: return slice_sx(pool, a, n.bits);
    case X_AND: return slice_and(pool, a, n.k);
    case X_SHR: return slice_shr(pool, a, (uint32_t)n.k);
    case X_INSERT: return slice_insert(pool, a, slice_replace(pool, n.b, leaf, by), n.bits);
    default: return x;
    }
}

uint64_t slice_limit(const slice_pool *pool, slice_expr x)
{
    const slice_node *n = &pool->nodes[x];
    uint64_t a, b, r;
    switch (n->op) {
    case X_CONST: return n->k;
    case X_MEM: return mask(n->bits);
    case X_ZX: a = slice_limit(pool, n->a); return a < mask(n->bits) ? a : mask(n->bits);
    case X_AND: a = slice_limit(pool, n->a); return a < n->k ? a : n->k;
    case X_SHR: return slice_limit(pool, n->a) >> n->k;
    case X_ADD:
        a = slice_limit(pool, n->a);
        b = slice_limit(pool, n->b);
        return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
    case X_MUL: return __builtin_mul_overflow(slice_limit(pool, n->a), n->k, &r) ? UINT64_MAX : r;
    default: return UINT64_MAX;
    }
}

/* --- what a condition says --------------------------------------------------------------------------------------- */

static const uint8_t swapped[] = { /* cc of (b - a) from cc of (a - b) */
    [CC_O] = CC_NONE, [CC_NO] = CC_NONE, [CC_B] = CC_NBE, [CC_NB] = CC_BE, [CC_Z] = CC_Z,   [CC_NZ] = CC_NZ,
    [CC_BE] = CC_NB,  [CC_NBE] = CC_B,   [CC_S] = CC_NONE, [CC_NS] = CC_NONE, [CC_P] = CC_NONE, [CC_NP] = CC_NONE,
    [CC_L] = CC_NLE,  [CC_NL] = CC_LE,   [CC_LE] = CC_NL,  [CC_NLE] = CC_L,
};

/* The values that `a` may have, from *low up to *high, modulo 2^bits; false: nothing is known. */
static bool range_of(const slice_fact *fact, uint64_t c, uint64_t *low, uint64_t *high)
{
    uint64_t m = mask(fact->bits), sign = (m >> 1) + 1, cc = fact->cc;
    c &= m;
    if (fact->test == TEST_SHR) {
        *low = 0;
        *high = mask((uint32_t)c);
        return cc == CC_Z && c < fact->bits;
    }
    if (fact->test == TEST_AND) { /* only masks of all bits from some bit up, of which none was set */
        uint64_t rest = ~c & m;
        *low = 0;
        *high = rest;
        return cc == CC_Z && (rest & (rest + 1)) == 0;
    }
    if (fact->test == TEST_ADD) { /* a carry comes out when a >= 2^bits - c */
        if (!c) return false;
        c = -c & m;
        if (cc == CC_NB || cc == CC_NBE) return *low = 0, *high = c - 1, true;
        if (cc == CC_B || cc == CC_BE) return *low = c, *high = m, true;
        if (cc == CC_Z) return *low = *high = c, true;
        return false;
    }
    switch (cc) {
    case CC_B: *low = 0, *high = c - 1; return c != 0;
    case CC_NB: *low = c, *high = m; return true;
    case CC_BE: *low = 0, *high = c; return true;
    case CC_NBE: *low = c + 1, *high = m; return c != m;
    case CC_Z: *low = *high = c; return true;
    case CC_NZ: *low = (c + 1) & m, *high = (c - 1) & m; return true;
    case CC_S:
        if (c) return false;
        __attribute__((fallthrough));
    case CC_L: *low = sign, *high = (c - 1) & m; return c != sign;
    case CC_NS:
        if (c) return false;
        __attribute__((fallthrough));
    case CC_NL: *low = c, *high = sign - 1; return true;
    case CC_LE: *low = sign, *high = c; return true;
    case CC_NLE: *low = (c + 1) & m, *high = sign - 1; return c != sign - 1;
    default: return false;
    }
}

bool slice_holds(const slice_pool *pool, const slice_fact *fact)
{
    uint64_t low, high, a = pool->nodes[fact->a].k & mask(fact->bits);
    if (pool->nodes[fact->a].op != X_CONST || pool->nodes[fact->b].op != X_CONST) return true;
    if (!range_of(fact, pool->nodes[fact->b].k, &low, &high)) return true;
    return low <= high ? a >= low && a <= high : a >= low || a <= high;
}

/* The form ext(core + k) of x, where ext takes the low `bits` bits. */
typedef struct {
    slice_expr core;
    uint64_t k;
    uint32_t bits;
    bool is_signed;
} linear;

static linear linear_of(const slice_pool *pool, slice_expr x)
{
    linear l = {.core = x, .bits = 64};
    const slice_node *n = &pool->nodes[x];
    if (n->op == X_ZX || n->op == X_SX) {
        l.bits = n->bits;
        l.is_signed = n->op == X_SX;
        l.core = n->a;
    }
    l.core = slice_split(pool, l.core, &l.k);
    return l;
}

/* Range of x from a fact about `a`: circular, modulo 2^*bits. */
static bool transfer(slice_pool *pool, const slice_fact *fact, slice_expr a, slice_expr x, uint64_t *low,
                     uint64_t *high, uint32_t *bits)
{
    slice_expr subject = slice_zx(pool, a, fact->bits);
    linear s = linear_of(pool, subject), l = linear_of(pool, x);
    if (pool->nodes[s.core].any || pool->nodes[l.core].any) return false;
    *bits = fact->bits;
    if (l.core == subject && l.bits == 64) { /* x is the compared value and a constant */
        *bits = 64;
        if (*low > *high) return false;
        *low += l.k;
        *high += l.k;
        return *low <= *high;
    }
    if (l.core != s.core) return false;
    uint64_t m = mask(fact->bits), move = l.k - s.k;
    *low = (*low + move) & m;
    *high = (*high + move) & m;
    if (l.bits > fact->bits) return slice_limit(pool, x) <= m;
    uint64_t top = l.is_signed ? mask(l.bits - 1) : mask(l.bits);
    if (l.bits == fact->bits && !l.is_signed) return true;
    return *low <= *high && *high <= top;
}

bool slice_bound(slice_pool *pool, const slice_state *state, slice_expr x, uint64_t *low, uint64_t *high)
{
    bool bounded = false;
    *low = 0;
    *high = slice_limit(pool, x);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < state->fact_count; i++) {
            slice_fact fact = state->facts[i];
            slice_expr a = fact.a, b = fact.b;
            if (pool->nodes[b].op != X_CONST) {
                if (pool->nodes[a].op != X_CONST || fact.test != TEST_CMP || swapped[fact.cc] == CC_NONE) continue;
                fact.cc = swapped[fact.cc];
                a = fact.b;
                b = fact.a;
            }
            uint64_t l, h;
            uint32_t bits;
            if (!range_of(&fact, pool->nodes[b].k, &l, &h)) continue;
            bool limits = h != mask(fact.bits); /* else the range ends where the type does */
            if (!transfer(pool, &fact, a, x, &l, &h, &bits)) continue;
            if (l > h) { /* [0, h] and [l, max] */
                if (*low > h && *low < l) *low = l;
                if (*high < l && *high > h) {
                    *high = h;
                    bounded |= limits;
                }
                continue;
            }
            if (l > *low) *low = l;
            if (h < *high) {
                *high = h;
                bounded |= limits;
            }
        }
    }
    return bounded && *low <= *high;
}
