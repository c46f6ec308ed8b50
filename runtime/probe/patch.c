/* Which bytes of a module are overwritten with what, so that control comes to the trampolines.
 *
 *   jump    five bytes. They displace all instructions they touch, and as long as sites follow closely, whatever is
 *           between them moves along: a block with many sites becomes one trampoline. The plan's window says how far
 *           this may go: no jump leads into it. A call can only be last, since it returns to its end.
 *   short   two bytes, where there is no room for five: a short jump to a gap, which is five bytes that another
 *           displaced block left behind its own jump.
 *   pun     where there is no gap in reach: a jump of five bytes that only overwrites the instruction itself; the rest
 *           of its target is whatever bytes follow, and memory is mapped where it leads to.
 *   trap    a byte that is no instruction, when that memory is taken. Not int3: a debugger keeps its signal for itself.
 *
 * A breakpoint in the middle of a jump makes it lead anywhere. So with the option -breakpoints each jump displaces one
 * instruction, and there are traps instead of puns.
 *
 * All bytes are read before any is written, but for puns, which come last and from the end to the start: their targets
 * are made of bytes that must be final. */
#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { CLOSE = 48, MOST_SITES = 16, MOST_BYTES = 200, MOST_PAGES = 1 << 13, PAGE_TRIES = 8 };

/* --- what is there ------------------------------------------------------------------------------------------------ */

static const patch_text *text_at(const probe_module *m, uint64_t addr)
{
    for (uint32_t i = 0; i < m->text_count; i++)
        if (addr >= m->texts[i].start && addr < m->texts[i].end) return &m->texts[i];
    return NULL;
}

static bool decode_at(const probe_module *m, uint64_t addr, insn *out)
{
    const patch_text *t = text_at(m, addr);
    return t && insn_decode((const uint8_t *)addr, t->end - addr, out);
}

static bool has_work(const probe_module *m, const plan_site *s)
{
    if (s->flags & PLAN_SYSTEM) return true;
    for (unsigned i = 0; i < s->action_count; i++) {
        const plan_action *a = &m->code.plan->actions[s->first_action + i];
        if (a->kind != PLAN_CAPTURE && (a->claim == PLAN_CLAIM_NONE || probe.report->options.audit)) return true;
    }
    return false;
}

/* The next site with work from number `at` on; site_count: none. */
static uint32_t next_site(const probe_module *m, uint32_t at)
{
    while (at < m->code.plan->site_count && !has_work(m, &m->code.plan->sites[at]))
        at++;
    return at;
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

typedef struct { /* instructions from a site on, as far as they may be displaced together */
    const probe_module *m;
    uint64_t start, at, window;
    uint32_t site; /* the first one not before `at` */
    unsigned sites;
    bool closed; /* nothing may follow: it ends with a call, or the block ends */
    insn last;
} walk;

/* One more instruction, if that may be. */
static bool walk_on(walk *w)
{
    const plan *p = w->m->code.plan;
    insn i;
    if (w->closed || w->at >= w->window || !decode_at(w->m, w->at, &i) || i.length > w->window - w->at) return false;
    while (w->site < p->site_count && p->sites[w->site].addr + w->m->code.bias < w->at)
        w->site++;
    const plan_site *s = w->site < p->site_count ? &p->sites[w->site] : NULL;
    if (s && s->addr + w->m->code.bias == w->at && s->length == i.length) {
        w->sites += has_work(w->m, s);
        if (w->at + s->window > w->window) w->window = w->at + s->window;
    }
    w->at += i.length;
    w->last = i;
    w->closed = i.flow == INSN_CALL || i.flow == INSN_CALL_IND || i.flow == INSN_END || i.flow == INSN_JUMP;
    return true;
}

/* Is a site so close behind that it should move along? */
static bool is_site_close(const walk *w)
{
    const plan *p = w->m->code.plan;
    uint32_t n = next_site(w->m, w->site);
    while (n < p->site_count && p->sites[n].addr + w->m->code.bias < w->at)
        n = next_site(w->m, n + 1);
    if (n >= w->m->code.plan->site_count || w->sites >= MOST_SITES || w->at - w->start > MOST_BYTES) return false;
    const plan_site *s = &w->m->code.plan->sites[n];
    const uint64_t addr = s->addr + w->m->code.bias;
    return addr >= w->at && addr - w->at <= CLOSE && addr < w->window;
}

/* The group of the site, which becomes the next one of m->groups. */
static void add_group(probe_module *m, uint32_t number)
{
    const plan_site *s = &m->code.plan->sites[number];
    const uint64_t start = s->addr + m->code.bias;
    walk w = {.m = m, .start = start, .at = start, .window = start + s->window, .site = number};
    patch_group g = {.start = start, .way = WAY_NONE};
    insn i;
    if (!decode_at(m, start, &i) || i.length != s->length) {
        probe.sites_refused++;
        return;
    }
    walk_on(&w);
    g.size = (uint16_t)(w.at - start);
    g.sites = (uint8_t)w.sites;
    if (probe.report->options.breakpoints) {
        g.way = g.size >= PROBE_JUMP ? WAY_JUMP : WAY_NONE;
        g.limit = g.size;
        m->groups[m->group_count++] = g;
        return;
    }
    while (w.at - start < PROBE_JUMP || is_site_close(&w)) {
        const walk before = w;
        if (!walk_on(&w)) break;
        if (w.last.flow != INSN_CALL && w.last.flow != INSN_CALL_IND) continue;
        const plan_site *call = plan_site_at(m->code.plan, before.at - m->code.bias);
        if (call && has_work(m, call)) continue;
        if (before.at - start >= PROBE_JUMP)
            w = before; /* calls stay where they are if they can */
        else
            g.evades = before.sites == 1;
        break;
    }
    if (w.at - start >= PROBE_JUMP) {
        g.way = WAY_JUMP;
        g.size = (uint16_t)(w.at - start);
        g.sites = (uint8_t)w.sites;
    }
    while (w.at - start < MOST_BYTES && walk_on(&w) && w.last.flow != INSN_CALL && w.last.flow != INSN_CALL_IND) {
    }
    g.limit = (uint16_t)(w.at - start);
    m->groups[m->group_count++] = g;
}

/* Instructions overlap: a jump leads over a prefix. What follows each of them must stay as it is. */
static void add_alone(probe_module *m, uint32_t number)
{
    const plan_site *s = &m->code.plan->sites[number];
    const uint64_t start = s->addr + m->code.bias;
    insn i;
    if (!decode_at(m, start, &i) || i.length != s->length) {
        probe.sites_refused++;
        return;
    }
    m->groups[m->group_count++] =
        (patch_group){.start = start, .size = i.length, .limit = i.length, .sites = 1, .way = WAY_NONE, .alone = true};
}

/* Is the address where an instruction of the group begins? */
static bool is_in_step(const probe_module *m, const patch_group *g, uint64_t addr)
{
    insn i;
    uint64_t at = g->start;
    while (at < addr && decode_at(m, at, &i))
        at += i.length;
    return at == addr;
}

static void form_groups(probe_module *m)
{
    const plan *p = m->code.plan;
    uint32_t first = 0; /* site of the last group */
    for (uint32_t i = next_site(m, 0); i < p->site_count; i = next_site(m, i + 1)) {
        const patch_group *last = m->group_count ? &m->groups[m->group_count - 1] : NULL;
        const uint64_t addr = p->sites[i].addr + m->code.bias;
        const bool is_inside = last && addr < last->start + last->size;
        if (is_inside && is_in_step(m, last, addr)) continue;
        if (is_inside && last->alone) {
            add_alone(m, i);
        } else if (is_inside) {
            m->group_count--;
            for (uint32_t k = first; k <= i; k = next_site(m, k + 1))
                add_alone(m, k);
        } else {
            first = i;
            add_group(m, i);
        }
    }
}

/* --- gaps --------------------------------------------------------------------------------------------------------- */

/* The group may not grow into the next one. */
static uint64_t growth_limit(const probe_module *m, uint32_t number)
{
    const patch_group *g = &m->groups[number];
    uint64_t limit = g->start + g->limit;
    if (number + 1 < m->group_count && m->groups[number + 1].start < limit) limit = m->groups[number + 1].start;
    return limit;
}

/* The next gap of a group, if it has room for one or can get it; 0: it cannot. Grows only when `take` is set. */
static uint64_t gap_of(probe_module *m, uint32_t number, bool take)
{
    patch_group *g = &m->groups[number];
    if (g->way != WAY_JUMP || g->evades) return 0;
    const uint64_t gap = g->start + PROBE_JUMP * (1u + g->gaps), needed = gap + PROBE_JUMP;
    const uint64_t limit = growth_limit(m, number);
    uint64_t end = g->start + g->size;
    insn i;
    while (end < needed) { /* whole instructions */
        if (!decode_at(m, end, &i) || end + i.length > limit || i.flow == INSN_CALL || i.flow == INSN_CALL_IND)
            return 0;
        end += i.length;
    }
    if (take) {
        g->size = (uint16_t)(end - g->start);
        g->gaps++;
    }
    return gap;
}

static bool is_short_reach(uint64_t from, uint64_t to)
{
    int64_t offset = (int64_t)(to - (from + PROBE_SHORT_JUMP));
    return offset == (int8_t)offset;
}

static bool take_gap(probe_module *m, uint32_t number)
{
    patch_group *g = &m->groups[number];
    for (uint32_t step = 1; step < m->group_count; step++) {
        const bool has_before = number >= step, has_after = number + step < m->group_count;
        const uint64_t before = has_before ? m->groups[number - step].start : 0;
        const uint64_t after = has_after ? m->groups[number + step].start : UINT64_MAX;
        const bool before_near = has_before && g->start - before < 400,
                   after_near = has_after && after - g->start < 130;
        if (!before_near && !after_near) return false;
        const uint32_t candidates[] = {number - step, number + step};
        for (unsigned c = 0; c < 2; c++) {
            if (!(c ? after_near : before_near)) continue;
            uint64_t gap = gap_of(m, candidates[c], false);
            if (!gap || !is_short_reach(g->start, gap)) continue;
            g->gap = gap_of(m, candidates[c], true);
            return true;
        }
    }
    return false;
}

/* Groups without room for a jump, and those that would displace a call for it, get a gap if there is one. */
static void find_gaps(probe_module *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        patch_group *g = &m->groups[i];
        insn first;
        if ((g->way == WAY_JUMP && !g->evades) || g->alone || !decode_at(m, g->start, &first)) continue;
        if (first.length < PROBE_SHORT_JUMP || !take_gap(m, i)) continue;
        g->way = WAY_SHORT;
        g->size = first.length;
    }
}

/* --- trampolines -------------------------------------------------------------------------------------------------- */

static void build(probe_module *m, patch_group *g)
{
    tramp_range range = {.start = g->start, .end = g->start + g->size, .bytes = (const uint8_t *)g->start};
    g->tramp = tramp_build(&m->code, &range);
}

static void build_all(probe_module *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        build(m, &m->groups[i]);
        if (!m->groups[i].tramp) m->groups[i].way = WAYS; /* not even a trap helps */
    }
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static bool write_jump(uint64_t at, uint64_t target)
{
    int64_t offset = (int64_t)(target - (at + PROBE_JUMP));
    int32_t narrow = (int32_t)offset;
    if (narrow != offset) return false;
    *(uint8_t *)at = 0xe9;
    memcpy((uint8_t *)at + 1, &narrow, sizeof narrow);
    return true;
}

static void write_jumps(probe_module *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        patch_group *g = &m->groups[i];
        if (g->way == WAY_JUMP && !write_jump(g->start, g->tramp)) g->way = WAYS;
        if (g->way != WAY_SHORT) continue;
        if (!write_jump(g->gap, g->tramp)) {
            g->way = WAYS;
            continue;
        }
        ((uint8_t *)g->start)[0] = 0xeb;
        ((uint8_t *)g->start)[1] = (uint8_t)(g->gap - (g->start + PROBE_SHORT_JUMP));
    }
}

/* --- puns --------------------------------------------------------------------------------------------------------- */

static bool is_unused(const uint8_t *at)
{
    for (unsigned i = 0; i < PROBE_FAR_JUMP; i++)
        if (at[i] != 0xcc) return false;
    return true;
}

static bool has_page(const probe_module *m, uint64_t page)
{
    for (uint32_t i = 0; i < m->page_count; i++)
        if (m->pages[i] == page) return true;
    return false;
}

/* The page of this address is there for puns, or can be made so. */
static bool take_page(probe_module *m, uint64_t page)
{
    if (has_page(m, page)) return true;
    if (m->page_count == m->page_cap || !near_map_at(page, PROBE_PAGE)) return false;
    memset((void *)page, 0xcc, PROBE_PAGE);
    m->pages[m->page_count++] = page;
    return true;
}

static bool try_target(probe_module *m, uint64_t target)
{
    const uint64_t page = target & ~(uint64_t)(PROBE_PAGE - 1);
    if (target < page || (target & (PROBE_PAGE - 1)) > PROBE_PAGE - PROBE_FAR_JUMP) return false;
    return take_page(m, page) && is_unused((const uint8_t *)target);
}

/* jmp *0(%rip), and behind it where to */
static void write_far_jump(uint64_t at, uint64_t target)
{
    memcpy((void *)at, "\xff\x25\0\0\0\0", 6);
    memcpy((uint8_t *)at + 6, &target, sizeof target);
}

/* `length` bytes are ours; the others of the jump are what follows. */
static bool write_pun(probe_module *m, const patch_group *g)
{
    const unsigned own = g->size < PROBE_JUMP ? g->size - 1u : 4; /* bytes of the offset that we choose */
    const patch_text *t = text_at(m, g->start);
    if (!t || t->end - g->start < PROBE_JUMP) return false;
    uint32_t fixed = 0;
    memcpy(&fixed, (const uint8_t *)g->start + 1, sizeof fixed);
    const uint32_t free_mask = own == 4 ? UINT32_MAX : (1u << 8 * own) - 1;
    fixed &= ~free_mask;
    const uint64_t first = g->start + PROBE_JUMP + (uint64_t)(int64_t)(int32_t)fixed, last = first + free_mask;
    uint64_t found = 0;
    for (uint32_t i = 0; i < m->page_count && !found; i++) { /* pages that are there */
        uint64_t from = m->pages[i] < first ? first : m->pages[i], to = m->pages[i] + PROBE_PAGE - PROBE_FAR_JUMP;
        for (uint64_t at = from; at <= to && at <= last && !found; at++)
            if (is_unused((const uint8_t *)at)) found = at;
    }
    const uint64_t step = free_mask / PAGE_TRIES > PROBE_PAGE ? free_mask / PAGE_TRIES : PROBE_PAGE;
    for (uint64_t at = first; at <= last && !found; at += step) {
        for (uint64_t k = at; k <= last && k < at + 32 && !found; k++)
            if (try_target(m, k)) found = k;
        if (step > free_mask) break;
    }
    if (!found) return false;
    write_far_jump(found, g->tramp);
    const uint32_t offset = (uint32_t)(found - (g->start + PROBE_JUMP));
    *(uint8_t *)g->start = 0xe9;
    memcpy((uint8_t *)g->start + 1, &offset, own);
    return true;
}

static void write_rest(probe_module *m)
{
    for (uint32_t i = m->group_count; i-- > 0;) {
        patch_group *g = &m->groups[i];
        if (g->way != WAY_NONE) continue;
        if (!g->alone && !probe.report->options.breakpoints && write_pun(m, g)) {
            g->way = WAY_PUN;
        } else if (signal_own_trap()) {
            *(uint8_t *)g->start = PROBE_TRAP;
            g->way = WAY_TRAP;
        }
    }
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static bool protect_texts(const probe_module *m, int protection)
{
    for (uint32_t i = 0; i < m->text_count; i++) {
        const uint64_t from = m->texts[i].start & ~(uint64_t)(PROBE_PAGE - 1);
        if (!sys_protect((void *)from, m->texts[i].end - from, protection)) return false;
    }
    return true;
}

static size_t page_size(size_t size)
{
    return (size + PROBE_PAGE - 1) & ~(size_t)(PROBE_PAGE - 1);
}

static const char *const no_room = "no memory near enough for its trampolines";
static const char *const not_executable = "its code cannot be made executable again";

const char *patch_alternative(void)
{
    void *page = sys_map(NULL, PROBE_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (page) sys_unmap(page, PROBE_PAGE);
    return page ? "--engine dynamorio" : "race check, which does not run it";
}

static const char *make_tables(probe_module *m)
{
    const plan *p = m->code.plan;
    uint32_t system_calls = 0;
    for (uint32_t i = 0; i < p->site_count; i++)
        system_calls += !!(p->sites[i].flags & PLAN_SYSTEM);
    const size_t groups = page_size((size_t)p->site_count * sizeof *m->groups);
    m->code.span_cap = 16 * p->action_count + 80 * p->site_count + 64;
    const size_t spans = page_size((size_t)m->code.span_cap * sizeof *m->code.spans);
    const size_t pages = page_size(MOST_PAGES * sizeof *m->pages);
    m->tables_size = groups + spans + pages;
    m->tables = sys_map(NULL, m->tables_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!m->tables) return "not enough memory to patch it";
    m->groups = m->tables;
    m->group_cap = p->site_count;
    m->code.spans = (probe_span *)((char *)m->tables + groups);
    m->pages = (uint64_t *)((char *)m->tables + groups + spans);
    m->page_cap = MOST_PAGES;
    if (!m->code.record_cap) {
        m->code.record_cap = 3 * p->action_count + 2 * system_calls + 1;
        if (m->code.record_cap > PROBE_RECORDS - probe.record_count) return "too many sites";
        m->code.first_record = probe.record_count;
        probe.record_count += m->code.record_cap;
    }
    /* The worst case is never met: a fourth of it holds everything. If what is there does not (is_full), the module is refused. */
    const size_t bound = tramp_bound(p->action_count * 3 + system_calls, p->site_count * 16, p->site_count);
    for (unsigned beside_heap = 0; beside_heap < 2; beside_heap++)
        for (size_t size = bound; size > bound / (beside_heap ? 32 : 3) && !m->code.arena; size -= size / 8) {
            m->code.arena_size = page_size(size);
            m->code.arena = near_map(m->start, m->end, m->code.arena_size, beside_heap);
        }
    return m->code.arena ? NULL : no_room;
}

static bool save_originals(probe_module *m)
{
    size_t size = 0;
    for (uint32_t i = 0; i < m->group_count; i++) {
        m->groups[i].saved = (uint32_t)size;
        size += m->groups[i].size;
    }
    if (!size) return true;
    m->originals_size = page_size(size);
    m->originals = sys_map(NULL, m->originals_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!m->originals) return false;
    for (uint32_t i = 0; i < m->group_count; i++)
        memcpy(m->originals + m->groups[i].saved, (const void *)m->groups[i].start, m->groups[i].size);
    return true;
}

void patch_restore(const probe_module *m, const patch_group *g)
{
    const uint64_t first = g->start & ~(uint64_t)(PROBE_PAGE - 1);
    const size_t size = g->start + g->size - first;
    if (!m->originals || !sys_protect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
    memcpy((void *)g->start, m->originals + g->saved, g->size);
    sys_protect((void *)first, size, PROT_READ | PROT_EXEC);
}

/* A byte at a time would leave half a jump for a thread that comes by: the jump goes last, and in one piece. */
static void write_original(const probe_module *m, const patch_group *g)
{
    const uint8_t *bytes = m->originals + g->saved;
    const unsigned head = g->size < PROBE_JUMP ? g->size : PROBE_JUMP;
    uint64_t whole;
    memcpy((uint8_t *)g->start + head, bytes + head, g->size - head);
    memcpy(&whole, (const void *)g->start, sizeof whole);
    memcpy(&whole, bytes, head);
    if (text_at(m, g->start + sizeof whole - 1))
        *(volatile uint64_t *)g->start = whole;
    else
        memcpy((void *)g->start, bytes, head);
}

/* What jumps to a gap in it goes first. */
static void give_back(probe_module *m, patch_group *g)
{
    for (uint32_t i = 0; g->gaps && i < m->group_count; i++)
        if (m->groups[i].way == WAY_SHORT && m->groups[i].gap - g->start < g->size) give_back(m, &m->groups[i]);
    write_original(m, g);
    __atomic_fetch_sub(&probe.ways[g->way], g->sites, __ATOMIC_RELAXED);
    __atomic_fetch_add(&probe.ways[WAY_NONE], g->sites, __ATOMIC_RELAXED);
    __atomic_fetch_add(&probe.sites_given_back, g->sites, __ATOMIC_RELAXED);
    g->way = WAY_NONE;
    g->tramp = 0; /* who is in it comes out of it */
}

void patch_give_back(probe_module *m, uint64_t pc)
{
    static uint32_t lock;
    uint64_t all = ~(uint64_t)0, mask;
    patch_group *g = (patch_group *)module_group_at(m, pc);
    if (!g || !g->tramp || pc == g->start || !m->originals) return;
    const uint64_t skipped = pc - g->start;
    if (!memcmp((const void *)pc, m->originals + g->saved + skipped, g->size - skipped)) return; /* only what is in front of it */
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, sizeof mask, 0, 0);
    sys_lock(&lock);
    if (g->tramp && protect_texts(m, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        give_back(m, g);
        protect_texts(m, PROT_READ | PROT_EXEC);
    }
    sys_unlock(&lock);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

bool patch_undo(probe_module *m)
{
    if (!m->originals || !protect_texts(m, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
    for (int has_gaps = 0; has_gaps < 2; has_gaps++) /* first who jumps to a gap */
        for (uint32_t i = 0; i < m->group_count; i++)
            if ((m->groups[i].gaps > 0) == has_gaps && m->groups[i].way < WAY_NONE) write_original(m, &m->groups[i]);
    __atomic_store_n(&m->group_count, 0, __ATOMIC_RELEASE);
    protect_texts(m, PROT_READ | PROT_EXEC);
    return true;
}

static void count_ways(const probe_module *m)
{
    for (uint32_t i = 0; i < m->group_count; i++)
        probe.ways[m->groups[i].way < WAY_NONE ? m->groups[i].way : WAY_NONE] += m->groups[i].sites;
}

const char *patch_module(probe_module *m)
{
    const char *why = make_tables(m);
    if (why) return why;
    form_groups(m);
    find_gaps(m);
    build_all(m);
    if (m->code.is_full) return no_room;
    if (!save_originals(m)) return "not enough memory to patch it";
    const size_t used = page_size(m->code.arena_used);
    sys_unmap(m->code.arena + used, m->code.arena_size - used);
    m->code.arena_size = used;
    /* before the program's code is touched, which could not be made executable either */
    bool executable = !used || sys_protect(m->code.arena, used, PROT_READ | PROT_EXEC);
    if (!executable) return not_executable;
    if (!protect_texts(m, PROT_READ | PROT_WRITE)) return "its code cannot be changed (mprotect is refused)";
    write_jumps(m);
    write_rest(m);
    for (uint32_t i = 0; i < m->page_count; i++)
        executable &= sys_protect((void *)m->pages[i], PROBE_PAGE, PROT_READ | PROT_EXEC);
    if (!executable || !protect_texts(m, PROT_READ | PROT_EXEC)) return not_executable;
    if (!m->counted) count_ways(m); /* not again when it comes back */
    m->counted = true;
    return NULL;
}

void patch_forget(probe_module *m)
{
    sys_unmap(m->code.arena, m->code.arena_size);
    for (uint32_t i = 0; i < m->page_count; i++)
        sys_unmap((void *)m->pages[i], PROBE_PAGE);
    sys_unmap(m->tables, m->tables_size);
    sys_unmap(m->originals, m->originals_size);
    m->tables = NULL;
    m->originals = NULL;
    m->originals_size = 0;
    m->code.arena = NULL;
    m->tables_size = m->code.arena_size = m->code.arena_used = 0;
    m->code.is_full = false;
    m->group_count = m->page_count = m->code.span_count = m->code.record_count = 0;
}
