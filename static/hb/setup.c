/* What is set up before a thread begins and stays so as long as it lives:
 *
 *     if (!jobs) jobs = new_queue();     main, any number of times
 *     pthread_create(..., worker, ...);
 *
 * Once such a thread is alive, the set-up behind `if (!jobs)` does not run any more, so it comes before the thread. For a variable
 * that is tested against zero, and a thread that only main creates, this holds when
 *   - no way leads from the begin of main, or from where zero is stored, to the creation without a store of something else or a
 *     test that has found something else: the variable is set when the thread begins;
 *   - zero is stored by main only, and nowhere where the thread may be alive, as far as the code is concerned that is reached
 *     without the edges on which the variable is zero. Should it ever become zero while the thread is alive, then a first time, and
 *     all that ran before is in that code: so it never does.
 * Every store that may be to the variable must be one to it alone. What is stored counts as set when it is a constant or an address,
 * the result of an allocation too: that one which failed is stored and tested again is not taken into account.
 *
 * Requires the accesses (touch.c) and the origins. */
#include "static/hb/memo.h"
#include "static/hb/private.h"
#include "static/hb/value.h"

typedef struct {
    uint32_t func, block;
    uint32_t zero, other; /* edges */
} setup_test;

typedef struct {
    uint64_t address; /* in its module */
    uint32_t module;
    uint32_t width;
    uint32_t extent;  /* HB_NONE: not known as one variable */
    bool bad;         /* something else is stored to it, too */
    VEC(setup_test) tests;
    hb_points sets, resets;
} setup_word;

typedef struct {
    uint32_t word, zero; /* of a test */
    uint32_t next;       /* another use of the same block, or MAP_NONE */
} setup_use;

typedef struct hb_setups {
    VEC(setup_word) words;
    map64 by_address;   /* module and address */
    map64 by_object;    /* object: some word of it, + 1 */
    VEC(uint32_t) next; /* per word: another of its object, + 1 */
    uint64_t *accepted; /* per origin: bits of words */
    uint32_t stride;    /* words of 64 bits of a set */
    VEC(setup_use) uses; /* of all words, by their tests */
    map64 uses_of;      /* function and block: the first of its uses */
} hb_setups;

/* --- tests ------------------------------------------------------------------------------------------------------------------------ */

/* The variable at a fixed address that an access is to. */
static bool fixed_address(const ir_func *ir, const ir_insn *access, uint64_t *address)
{
    if (access->flags & (IR_WIDE | IR_REP | IR_FS | IR_GS | IR_FRAME) || access->b || !access->a) return false;
    const ir_insn *base = &ir->insns[value_plain(ir, access->a, 8)];
    if (base->op != IR_ADDRESS) return false;
    *address = (uint64_t)(base->imm + access->imm);
    return true;
}

static bool calls_between(const hb *h, uint32_t func, uint32_t from, uint32_t to)
{
    const hb_func *own = &h->funcs[func];
    for (uint32_t c = 0; c < own->call_count; c++)
        if (own->calls[c].insn >= from && own->calls[c].insn < to) return true;
    return false;
}

static setup_word *word_at(hb *h, uint32_t module, uint64_t address, uint32_t width)
{
    hb_setups *s = h->setups;
    uint32_t *at = map_at(&s->by_address, map_hash(address * 64 + module) & ~(1ull << 63));
    if (*at == MAP_NONE) {
        *at = s->words.len;
        vec_push(&s->words, (setup_word){.address = address, .module = module, .width = width, .extent = HB_NONE});
    }
    setup_word *w = &s->words.data[*at];
    return w->address == address && w->module == module && w->width == width ? w : NULL;
}

static uint32_t edge_of(const lift_func *f, uint32_t block, bool taken)
{
    const lift_block *b = &f->blocks[block];
    for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++)
        if (f->edges[e].kind == (taken ? EDGE_TAKEN : EDGE_FALL)) return e;
    return HB_NONE;
}

static void find_tests(hb *h, uint32_t func)
{
    const lift_func *f = hb_code(h, func);
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        if (block->end_kind != END_BRANCH || block->succ_count != 2) continue;
        for (unsigned taken = 0; taken < 2; taken++) {
            value_condition c;
            uint64_t address;
            if (!value_test(f->ir, b, taken, &c) || c.code != VALUE_EQUAL || !c.a || c.b || c.imm) continue;
            const ir_insn *load = &f->ir->insns[c.a];
            const ir_insn *access = load->op == IR_LOAD && !load->imm ? &f->ir->insns[load->a] : NULL;
            /* Nothing may happen between what is looked at and the branch. */
            if (!access || access->insn < block->first_insn || access->insn >= block->first_insn + block->insn_count) continue;
            if ((load->width != 8 && load->width != 4) || access->flags & IR_WRITE || !fixed_address(f->ir, access, &address)) continue;
            if (calls_between(h, func, access->insn, block->first_insn + block->insn_count)) continue;
            setup_word *w = word_at(h, h->program->funcs.data[func].module, address, load->width);
            setup_test test = {func, b, edge_of(f, b, taken), edge_of(f, b, !taken)};
            if (w && test.zero != HB_NONE && test.other != HB_NONE) vec_push(&w->tests, test);
        }
    }
}

/* --- stores ----------------------------------------------------------------------------------------------------------------------- */

/* Whether a value that is stored to a variable is not zero; that it is an address the variable's content tells. */
static bool is_something(const ir_func *ir, ir_value v, bool addresses, unsigned depth)
{
    const ir_insn *insn = &ir->insns[value_plain(ir, v, 4)];
    switch (insn->op) {
    case IR_CONST: return insn->imm;
    case IR_ADDRESS: return true;
    case IR_RESULT: return addresses;
    case IR_PHI:
        for (uint32_t i = 0; i < insn->b; i++)
            if (depth > 3 || !is_something(ir, ir->args[insn->a + i], addresses, depth + 1)) return false;
        return insn->b;
    default: return false;
    }
}

static bool stores_something(hb *h, const hb_touch *t, const setup_word *w)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    pta_places held = {0};
    hb_holds(h, &h->places.data[t->first_place].place, &held);
    bool addresses = held.len && w->width == 8, found = false, all = true;
    vec_free(&held);
    for (ir_value v = t->ir + 1; v < ir->insn_count && ir->insns[v].insn == t->insn; v++) {
        if (ir->insns[v].op != IR_STORE || ir->insns[v].a != t->ir) continue;
        found = true;
        all &= ir->insns[v].width == w->width && !ir->insns[v].imm && is_something(ir, ir->insns[v].b, addresses, 0);
    }
    return found && all;
}

static void note_store(hb *h, const hb_touch *t, const hb_place *place, setup_word *w)
{
    const hb_extent *x = &h->extents.data[place->extent], *own = &h->extents.data[w->extent];
    uint64_t address;
    bool alone = t->place_count == 1 && place->extent == w->extent && x->width == own->width && !(t->flags & (HB_LIBRARY | IR_READ)) && t->ir &&
                 fixed_address(hb_code(h, t->func)->ir, &hb_code(h, t->func)->ir->insns[t->ir], &address);
    hb_point at = {t->instance, t->insn};
    if (!alone)
        w->bad = true;
    else if (stores_something(h, t, w))
        vec_push(&w->sets, at);
    else
        vec_push(&w->resets, at);
}

/* The variable as an object's bytes: what its tests read. */
static void find_extent(const hb *h, setup_word *w)
{
    for (uint32_t i = 0; i < w->tests.len && w->extent == HB_NONE; i++) {
        const setup_test *test = &w->tests.data[i];
        const ir_func *ir = hb_code(h, test->func)->ir;
        const lift_block *block = &ir->func->blocks[test->block];
        for (uint32_t t = hb_first_touch(h, test->func); t < h->touches.len && h->touches.data[t].func == test->func; t++) {
            const hb_touch *touch = &h->touches.data[t];
            uint64_t address;
            if (touch->insn < block->first_insn || touch->insn >= block->first_insn + block->insn_count || touch->flags & (HB_LIBRARY | IR_WRITE)) continue;
            if (touch->place_count != 1 || touch->width != w->width || !touch->ir || !fixed_address(ir, &ir->insns[touch->ir], &address)) continue;
            const hb_place *place = hb_places(h, touch);
            if (address != w->address || !place->place.exact || h->program->sites.data[place->place.site].kind != PTA_STATIC) continue;
            w->extent = place->extent;
            break;
        }
    }
}

static void find_stores(hb *h)
{
    hb_setups *s = h->setups;
    for (uint32_t i = 0; i < s->words.len; i++) {
        setup_word *w = &s->words.data[i];
        find_extent(h, w);
        vec_push(&s->next, 0);
        if (w->extent == HB_NONE) continue;
        uint32_t *first = map_at(&s->by_object, h->extents.data[w->extent].object);
        s->next.data[i] = *first == MAP_NONE ? 0 : *first;
        *first = i + 1;
    }
    for (uint32_t t = 0; t < h->touches.len; t++) {
        const hb_touch *touch = &h->touches.data[t];
        if (!(touch->flags & IR_WRITE)) continue;
        for (uint32_t p = 0; p < touch->place_count; p++) {
            const hb_place *place = &h->places.data[touch->first_place + p];
            uint32_t first = map_get(&s->by_object, h->extents.data[place->extent].object);
            for (uint32_t n = first == MAP_NONE ? 0 : first; n; n = s->next.data[n - 1])
                if (hb_overlap(&h->extents.data[place->extent], &h->extents.data[s->words.data[n - 1].extent]))
                    note_store(h, touch, place, &s->words.data[n - 1]);
        }
    }
}

/* --- what matters ----------------------------------------------------------------------------------------------------------------- */

static bool sets_in(const hb *h, const setup_word *w, uint32_t func)
{
    for (uint32_t i = 0; i < w->sets.len; i++)
        if (h->instances[w->sets.data[i].instance].func == func) return true;
    return false;
}

/* The variable is set where it was found to be zero: here, or in a function that is called from there. */
static bool is_set_up(const hb *h, const setup_word *w, const setup_test *test)
{
    const lift_func *f = hb_code(h, test->func);
    uint32_t to = f->edges[test->zero].to;
    if (f->blocks[to].pred_count != 1) return false;
    for (uint32_t i = 0; i < w->sets.len; i++)
        if (h->instances[w->sets.data[i].instance].func == test->func && ir_dominates(f->ir, to, hb_block_of(f, w->sets.data[i].insn))) return true;
    const hb_func *own = &h->funcs[test->func];
    for (uint32_t c = 0; c < own->call_count; c++) {
        uint32_t callee = h->program->calls.data[own->calls[c].call].func;
        if (callee != PTA_NO_FUNC && ir_dominates(f->ir, to, hb_block_of(f, own->calls[c].insn)) && sets_in(h, w, callee)) return true;
    }
    return false;
}

static bool only_main_resets(const hb *h, const setup_word *w)
{
    for (uint32_t i = 0; i < w->resets.len; i++)
        for (uint32_t o = 1; o < h->origins.len; o++)
            if (hb_bit(h->origins.data[o].self, w->resets.data[i].instance)) return false;
    return true;
}

static bool matters(const hb *h, const setup_word *w)
{
    if (w->extent == HB_NONE || w->bad || !w->sets.len || !only_main_resets(h, w)) return false;
    for (uint32_t i = 0; i < w->tests.len; i++)
        if (is_set_up(h, w, &w->tests.data[i])) return true;
    return false;
}

/* --- where it may be zero still --------------------------------------------------------------------------------------------------- */

typedef struct {
    const hb *h;
    const setup_word *word;
} unset_walk;

static bool is_set_edge(const hb_walk *walk, uint32_t instance, uint32_t from, uint32_t edge)
{
    const unset_walk *u = walk->with;
    uint32_t func = u->h->instances[instance].func;
    for (uint32_t i = 0; i < u->word->tests.len; i++)
        if (u->word->tests.data[i].func == func && u->word->tests.data[i].block == from && u->word->tests.data[i].other == edge) return true;
    return false;
}

static uint32_t first_set(const hb_walk *walk, uint32_t instance, uint32_t from, uint32_t until)
{
    const unset_walk *u = walk->with;
    uint32_t first = HB_NONE;
    for (uint32_t i = 0; i < u->word->sets.len; i++) {
        hb_point at = u->word->sets.data[i];
        if (at.instance == instance && at.insn >= from && at.insn < until && at.insn < first) first = at.insn;
    }
    return first;
}

static void add_instances(const hb *h, uint32_t func, hb_numbers *out)
{
    for (uint32_t i = 0; i < h->instance_count; i++)
        if (h->instances[i].func == func) vec_push(out, i);
}

static void find_unset(const hb *h, const setup_word *w, hb_region *out)
{
    unset_walk with = {h, w};
    hb_numbers cutters = {0};
    hb_points starts = {0};
    for (uint32_t i = 0; i < w->sets.len; i++)
        vec_push(&cutters, w->sets.data[i].instance);
    for (uint32_t i = 0; i < w->tests.len; i++)
        add_instances(h, w->tests.data[i].func, &cutters);
    vec_push(&starts, (hb_point){h->origins.data[0].instance, HB_NONE});
    for (uint32_t i = 0; i < w->resets.len; i++)
        vec_push(&starts, w->resets.data[i]);
    hb_walk walk = {.closes = is_set_edge, .stops = first_set, .with = &with, .cutters = cutters.data, .cutter_count = cutters.len, .origin = HB_NONE};
    hb_region_walk(h, &walk, starts.data, starts.len, out);
    vec_free(&cutters);
    vec_free(&starts);
}

static bool only_main_creates(const hb_origin *o)
{
    return o->kind == HB_THREAD && o->parents.len == 1 && !o->parents.data[0] && o->sites.len;
}

typedef struct {
    hb_point at;
    bool sets;
} store_order;

static int by_point(const void *a, const void *b)
{
    const store_order *x = a, *y = b;
    if (x->at.instance != y->at.instance) return x->at.instance < y->at.instance ? -1 : 1;
    if (x->at.insn != y->at.insn) return x->at.insn < y->at.insn ? -1 : 1;
    return x->sets - y->sets;
}

/* All that find_unset, and whoever asks what it has found about origins, reads: besides blocks and calls, where among them, and one
 * behind the other, stores lie. 0: it is not kept. */
static uint64_t unset_key(const hb *h, const setup_word *w)
{
    if (!h->options.memo || !h->memo_program) return 0;
    uint64_t hash = hb_memo_mix(h->memo_program, (uint64_t)w->tests.len << 32 | h->origins.len);
    hash = hb_memo_mix(hash, h->origins.data[0].instance);
    for (uint32_t i = 0; i < w->tests.len; i++) {
        const setup_test *test = &w->tests.data[i];
        hash = hb_memo_mix(hash, (uint64_t)test->func << 32 | test->block);
        hash = hb_memo_mix(hash, test->other - hb_code(h, test->func)->blocks[test->block].first_succ);
    }
    VEC(store_order) stores = {0};
    for (uint32_t i = 0; i < w->sets.len; i++)
        vec_push(&stores, ((store_order){w->sets.data[i], true}));
    for (uint32_t i = 0; i < w->resets.len; i++)
        vec_push(&stores, ((store_order){w->resets.data[i], false}));
    if (stores.len) qsort(stores.data, stores.len, sizeof *stores.data, by_point);
    for (uint32_t i = 0; i < stores.len; i++)
        hash = hb_memo_mix(hb_memo_point(h, stores.data[i].at, hash), stores.data[i].sets);
    vec_free(&stores);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        hash = hb_memo_mix(hash, only_main_creates(origin) ? origin->sites.len : HB_NONE);
        for (uint32_t i = 0; only_main_creates(origin) && i < origin->sites.len; i++) {
            if (!hb_call_at(h, h->instances[origin->sites.data[i].instance].func, origin->sites.data[i].insn)) return 0;
            hash = hb_memo_point(h, origin->sites.data[i], hash);
        }
    }
    return (hash & ~(1ull << 63)) | 1;
}

/* The origins that begin when a variable is set, as bits. */
static void find_set(const hb *h, const setup_word *w, uint64_t *out)
{
    hb_region unset;
    find_unset(h, w, &unset);
    for (uint32_t o = 1; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        bool set = only_main_creates(origin);
        for (uint32_t i = 0; i < origin->sites.len && set; i++)
            set = !hb_region_has(&unset, origin->sites.data[i]);
        if (set) hb_set(out, o);
    }
    hb_region_free(&unset);
}

static void accept(hb *h, uint32_t word)
{
    hb_setups *s = h->setups;
    uint32_t words = h->origins.len / 64 + 1;
    uint64_t *set = base_alloc_zero(words, sizeof *set), key = unset_key(h, &s->words.data[word]);
    if (!key || !hb_memo_told(h, key, set, words)) {
        find_set(h, &s->words.data[word], set);
        if (key) hb_memo_tell(h, key, set, words);
    }
    for (uint32_t o = 1; o < h->origins.len; o++)
        if (hb_bit(set, o)) hb_set(s->accepted + (size_t)o * s->stride, word);
    free(set);
}

static void index_tests(hb_setups *s)
{
    for (uint32_t i = 0; i < s->words.len; i++)
        for (uint32_t t = 0; t < s->words.data[i].tests.len; t++) {
            const setup_test *test = &s->words.data[i].tests.data[t];
            uint32_t *first = map_at(&s->uses_of, (uint64_t)test->func << 32 | test->block);
            vec_push(&s->uses, ((setup_use){i, test->zero, *first}));
            *first = s->uses.len - 1;
        }
}

enum { MOST_WORDS = 64 }; /* a walk over the program for each */

void hb_setups_open(hb *h)
{
    hb_setups *s = h->setups = base_alloc_zero(1, sizeof *s);
    bool threads = false;
    for (uint32_t o = 1; o < h->origins.len; o++)
        threads |= only_main_creates(&h->origins.data[o]);
    for (uint32_t f = 0; threads && f < h->program->funcs.len; f++)
        if (hb_code(h, f)) find_tests(h, f);
    find_stores(h);
    s->stride = s->words.len / 64 + 1;
    s->accepted = base_alloc_zero((size_t)h->origins.len * s->stride, sizeof *s->accepted);
    for (uint32_t i = 0, n = 0; i < s->words.len && n < MOST_WORDS; i++)
        if (matters(h, &s->words.data[i])) {
            accept(h, i);
            n++;
        }
    index_tests(s);
}

void hb_setups_close(hb *h)
{
    hb_setups *s = h->setups;
    if (!s) return;
    for (uint32_t i = 0; i < s->words.len; i++) {
        vec_free(&s->words.data[i].tests);
        vec_free(&s->words.data[i].sets);
        vec_free(&s->words.data[i].resets);
    }
    vec_free(&s->words);
    vec_free(&s->next);
    map_free(&s->by_address);
    map_free(&s->by_object);
    map_free(&s->uses_of);
    vec_free(&s->uses);
    free(s->accepted);
    free(s);
}

/* --- lives ------------------------------------------------------------------------------------------------------------------------ */

void hb_setup_cutters(const hb *h, uint32_t origin, hb_numbers *out)
{
    const hb_setups *s = h->setups;
    for (uint32_t i = 0; i < s->words.len; i++)
        for (uint32_t t = 0; hb_bit(s->accepted + (size_t)origin * s->stride, i) && t < s->words.data[i].tests.len; t++)
            add_instances(h, s->words.data[i].tests.data[t].func, out);
}

bool hb_setup_closes(const hb *h, uint32_t origin, uint32_t instance, uint32_t from, uint32_t edge)
{
    const hb_setups *s = h->setups;
    const uint64_t *accepted = s->accepted + (size_t)origin * s->stride;
    uint32_t u = map_get(&s->uses_of, (uint64_t)h->instances[instance].func << 32 | from);
    while (u != MAP_NONE && !(s->uses.data[u].zero == edge && hb_bit(accepted, s->uses.data[u].word)))
        u = s->uses.data[u].next;
    return u != MAP_NONE;
}

bool hb_setup_fails(hb *h, uint32_t origin, const hb_region *live)
{
    hb_setups *s = h->setups;
    bool fails = false;
    for (uint32_t i = 0; i < s->words.len; i++) {
        uint64_t *accepted = s->accepted + (size_t)origin * s->stride;
        bool lost = false;
        for (uint32_t r = 0; hb_bit(accepted, i) && r < s->words.data[i].resets.len && !lost; r++)
            lost = hb_region_has(live, s->words.data[i].resets.data[r]);
        if (lost) accepted[i / 64] &= ~(1ull << i % 64);
        fails |= lost;
    }
    return fails;
}
