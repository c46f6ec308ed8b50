/* The loaded modules, and site numbers. Every plan gets a range of numbers of its own, which is never used again; so do
 * the addresses that no plan has a site for, in pages of numbers.
 *
 * Who looks needs no lock: modules and ranges are only ever added, in front of a list, and stay. */
#include "include/race/modelled.h"
#include "runtime/report/report.h"

#include <string.h>

enum { LOOSE_PAGE = 4096 };

static const char *base_name(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/') name = c + 1;
    return name;
}

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

static bool is_system(const char *path)
{
    static const char *const folders[] = {"/lib/",     "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/",
                                          "/usr/bin/", "/bin/",   "/usr/sbin/", "/sbin/"};
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        if (starts_with(path, folders[i])) return true;
    return false;
}

/* Requires module_lock. */
static report_range *add_range(report *r, uint32_t count)
{
    if (r->next_site > FT_SITES - 1 - count || count > FT_SITES - 1) return NULL;
    report_range *range = report_memory(r, sizeof *range);
    if (!range) return NULL;
    range->first = r->next_site;
    range->count = count;
    r->next_site += count;
    return range;
}

static void publish_range(report *r, report_range *range)
{
    range->next = r->ranges;
    __atomic_store_n(&r->ranges, range, __ATOMIC_RELEASE);
}

/* Number of site 0 where the module was loaded first, maybe at another place. Requires module_lock. */
static ft_site first_site_of_all(const report *r, const report_module *m)
{
    ft_site first = m->first_site;
    for (const report_module *o = r->modules; o; o = o->next)
        if (o->plan && o->plan->site_count == m->plan->site_count && o->plan->header->code == m->plan->header->code &&
            !strcmp(o->id, m->id) && !strcmp(o->name, m->name))
            first = o->first_site;
    return first;
}

static void take_plan(report *r, report_module *m)
{
    report_lock(r, &r->module_lock);
    report_range *range = m->plan_data.site_count ? add_range(r, m->plan_data.site_count) : NULL;
    if (range || !m->plan_data.site_count) m->plan = &m->plan_data;
    m->is_checked = m->plan && !(m->plan->header->flags & PLAN_ONLY_ATOMICS);
    if (range) {
        range->module = m;
        m->first_site = range->first;
        m->first_same = first_site_of_all(r, m);
        publish_range(r, range);
    }
    r->sites += m->plan_data.site_count;
    r->accesses_planned += m->plan_data.header->accesses_planned;
    report_unlock(&r->module_lock);
}

/* Asks `race run`, which watches the directory, for the plan of a file: writes the path into a file of its own and waits
 * until that is gone. When nobody answers, it goes on without. */
static void ask_for_plan(report *r, const char *path)
{
    enum { STEP = 5, STEPS = 120000 / STEP }; /* milliseconds */
    char name[600];
    report_text t;
    text_start(&t, name, sizeof name);
    text_add(&t, "%s/%d.%lx", r->options.ask_dir, r->host.pid(r->host.context), (uint64_t)(uintptr_t)&name ^
                                                                                     (uint64_t)r->next_site << 32);
    int file = r->host.open(r->host.context, name);
    if (file < 0) return;
    r->host.write(r->host.context, file, path, strlen(path));
    r->host.close(r->host.context, file);
    for (unsigned i = 0; i < STEPS; i++) {
        size_t size;
        const void *map = r->host.map(r->host.context, name, &size);
        if (!map) return;
        r->host.unmap(r->host.context, map, size);
        r->host.sleep(r->host.context, STEP);
    }
}

/* The entry that this module had before, if it comes back to its place, so that modules that come and go cost nothing. */
static report_module *take_known(report *r, const report_module *now, const char *path)
{
    for (report_module *m = __atomic_load_n(&r->modules, __ATOMIC_ACQUIRE); m; m = m->next) {
        uint32_t unloaded = 0;
        if (m->start == now->start && m->end == now->end && !strcmp(m->id, now->id) && !strcmp(m->name, now->name) &&
            !(m->plan && find_other_code(&r->host, m->plan->header, path)) &&
            __atomic_compare_exchange_n(&m->loaded, &unloaded, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return m;
    }
    return NULL;
}

/* Programs and libraries of the system are checked only when the user has named them. */
static bool is_worth_asking(const report *r, const report_module *m, const char *path)
{
    return r->options.ask_dir && r->host.sleep && !m->is_modelled && !m->is_system && path[0] == '/';
}

report_module *report_module_add(report *r, const char *path, uint64_t start, uint64_t end)
{
    report_module now = {.start = start, .end = end, .loaded = 1};
    report_text t;
    text_start(&t, now.name, sizeof now.name);
    text_add(&t, "%s", base_name(path));
    const bool has_identity = find_identity(&r->host, &now, path);
    report_module *m = has_identity ? take_known(r, &now, path) : NULL;
    if (m || !(m = report_memory(r, sizeof *m))) return m;
    *m = now;
    m->is_modelled = race_is_modelled(m->name);
    m->is_system = is_system(path);
    if (has_identity) {
        int found = find_plan(&r->host, r->options.plan_dir, m, path);
        if (found <= 0 && is_worth_asking(r, m, path)) { /* one of another version is made anew */
            ask_for_plan(r, path);
            found = find_plan(&r->host, r->options.plan_dir, m, path);
        }
        if (found < 0) report_say(r, "%s: %s", m->plan_path, m->refused);
        if (found > 0) take_plan(r, m);
    }
    report_lock(r, &r->module_lock);
    m->next = r->modules;
    __atomic_store_n(&r->modules, m, __ATOMIC_RELEASE);
    report_unlock(&r->module_lock);
    return m;
}

void report_module_remove(report *r, uint64_t start)
{
    for (report_module *m = __atomic_load_n(&r->modules, __ATOMIC_ACQUIRE); m; m = m->next)
        if (m->start == start) __atomic_store_n(&m->loaded, 0, __ATOMIC_RELEASE);
}

report_module *report_module_at(const report *r, uint64_t addr)
{
    for (report_module *m = __atomic_load_n(&r->modules, __ATOMIC_ACQUIRE); m; m = m->next)
        if (addr >= m->start && addr < m->end && __atomic_load_n(&m->loaded, __ATOMIC_ACQUIRE)) return m;
    return NULL;
}

static const report_range *range_of(const report *r, ft_site number)
{
    for (const report_range *range = __atomic_load_n(&r->ranges, __ATOMIC_ACQUIRE); range; range = range->next)
        if (number >= range->first && number - range->first < range->count) return range;
    return NULL;
}

const plan_site *report_site(const report *r, ft_site number, const report_module **module)
{
    const report_range *range = range_of(r, number);
    *module = range ? range->module : NULL;
    return *module ? &range->module->plan->sites[number - range->first] : NULL;
}

ft_site report_same_site(const report *r, ft_site number)
{
    const report_module *m;
    return report_site(r, number, &m) ? number - m->first_site + m->first_same : number;
}

bool report_is_pointer_call(const report *r, uint64_t return_address)
{
    uint8_t before[6]; /* call rel32, call *disp32(%rip): calls of the library's own */
    if (!r->host.read(r->host.context, return_address - sizeof before, before, sizeof before)) return false;
    return before[1] != 0xe8 && !(before[0] == 0xff && before[1] == 0x15);
}

uint64_t report_site_address(const report *r, ft_site number)
{
    const report_range *range = range_of(r, number);
    if (!range) return 0;
    if (range->module) return range->module->plan->sites[number - range->first].addr + range->module->bias;
    return range->addresses[number - range->first];
}

/* --- loose sites -------------------------------------------------------------------------------------------------- */

/* Requires module_lock. 0: no memory. */
static ft_site new_loose(report *r, uint64_t addr)
{
    report_range *range = r->ranges;
    while (range && range->module)
        range = range->next;
    if (!range || r->loose_count % LOOSE_PAGE == 0) {
        range = add_range(r, LOOSE_PAGE);
        if (range) range->addresses = report_memory(r, LOOSE_PAGE * sizeof *range->addresses);
        if (!range || !range->addresses) return 0;
        publish_range(r, range);
    }
    uint32_t at = r->loose_count++ % LOOSE_PAGE;
    range->addresses[at] = addr;
    return range->first + at;
}

ft_site report_loose_site(report *r, uint64_t addr)
{
    struct loose_site *table = __atomic_load_n(&r->loose, __ATOMIC_ACQUIRE);
    const uint32_t start = (uint32_t)((addr * 0x9e3779b97f4a7c15u) >> 43); /* 21 bits */
    uint32_t at = start;
    for (uint32_t tries = 0; table && tries < 64; tries++, at = (at + 1) % REPORT_LOOSE) {
        uint64_t there = __atomic_load_n(&table[at].addr, __ATOMIC_ACQUIRE);
        if (there == addr) return table[at].number;
        if (!there) break;
    }
    report_lock(r, &r->module_lock);
    if (!r->loose) __atomic_store_n(&r->loose, report_memory(r, REPORT_LOOSE * sizeof *r->loose), __ATOMIC_RELEASE);
    table = r->loose;
    ft_site number = 0;
    at = start;
    for (uint32_t tries = 0; table && tries < 64; tries++, at = (at + 1) % REPORT_LOOSE) {
        if (table[at].addr && table[at].addr != addr) continue;
        if (!table[at].addr) {
            table[at].number = new_loose(r, addr);
            if (table[at].number) __atomic_store_n(&table[at].addr, addr, __ATOMIC_RELEASE);
        }
        number = table[at].number;
        break;
    }
    report_unlock(&r->module_lock);
    return number;
}
_Static_assert(REPORT_LOOSE == 1 << 21, "the hash gives 21 bits");

ft_site report_call_site(report *r, uint64_t return_address)
{
    const report_module *m = report_module_at(r, return_address - 1);
    if (m && m->plan) {
        const plan_site *s = plan_site_covering(m->plan, return_address - 1 - m->bias);
        if (s) return m->first_site + (ft_site)(s - m->plan->sites);
    }
    return report_loose_site(r, return_address - 1);
}

const plan_object *report_object(const report *r, uint64_t addr, const report_module **module)
{
    const report_module *m = *module = report_module_at(r, addr);
    return m && m->plan ? plan_object_covering(m->plan, addr - m->bias) : NULL;
}
