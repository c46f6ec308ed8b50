/* Modules as the loader maps and unmaps them.
 *
 * At the start all of them are there, and none of their constructors has run. Later ones are patched when the loader
 * says that its list is consistent again: it calls an empty function then, whose address is in r_debug, for debuggers
 * to stop at (the ABI's only notification). That is between mapping and the constructors. The function is overwritten
 * with a jump to ours. An audit library would be told as well, but lives in a namespace with another libc and another
 * copy of us. When the function does not look empty, modules that come later are not checked, which is said. */
#include "runtime/probe/emit.h"
#include "runtime/probe/insn.h"
#include "runtime/probe/probe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static uint32_t generation; /* of the scan that is running; under module_lock */

typedef struct {
    char text[4096];
} path_text;

static const char *program_path(path_text *path)
{
    long len =
        sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path->text, sizeof path->text - 1, 0, 0);
    path->text[len > 0 ? len : 0] = 0;
    return path->text;
}

/* The name of a library as the loader has it: it may be relative to where the process is. */
static const char *library_path(const char *name, path_text *path)
{
    if (!*name || *name == '/' || !strchr(name, '/')) return name;
    const long len = sys_call(SYS_getcwd, (long)path->text, sizeof path->text, 0, 0, 0, 0); /* with the zero */
    const size_t size = strlen(name) + 1;
    if (len < 2 || path->text[0] != '/' || (size_t)len + size > sizeof path->text) return name;
    path->text[len - 1] = '/';
    memcpy(path->text + len, name, size);
    return path->text;
}

static void add_text(probe_module *m, uint64_t start, uint64_t end)
{
    if (m->text_count < PATCH_TEXTS) m->texts[m->text_count++] = (patch_text){start, end};
}

/* Why this engine cannot do what a sound plan asks for, or NULL. */
static const char *unable(const plan *p)
{
    for (uint32_t i = 0; i < p->action_count; i++)
        if (p->actions[i].kind == PLAN_CAPTURE) return "the plan captures values, which this engine cannot do";
    for (uint32_t i = 0; i < p->site_count; i++)
        for (uint32_t k = PROBE_REPS; k < p->sites[i].action_count; k++)
            if (p->actions[p->sites[i].first_action + k].flags & PLAN_DOWN)
                return "the plan has more repetitions at one site than this engine can do";
    return NULL;
}

/* Does the loader still write into its code? It says that its list is consistent before it relocates what is new. */
static bool will_be_relocated(const struct dl_phdr_info *info)
{
    if (!probe.ready) return false; /* the first modules are relocated */
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL)) return true;
    }
    return false;
}

static void use_plan(probe_module *m, const struct dl_phdr_info *info, const char *path)
{
    report_module *r = m->report;
    const char *why = r->plan ? unable(r->plan) : NULL;
    const bool has_sites = !why && r->plan && r->plan->site_count && !r->is_modelled && !probe.disabled;
    if (has_sites && will_be_relocated(info)) {
        if (!m->told)
            report_say(probe.report,
                       "%s: has relocations in its code: it runs unchecked (--engine dynamorio checks it)", path);
        m->told = true; /* not again when it comes back */
    } else if (has_sites) {
        m->code.plan = r->plan;
        m->code.bias = r->bias;
        m->code.first_site = r->first_site;
        if (probe.report->options.audit && !r->ran) r->ran = near_zero_map(r->plan->site_count);
        m->code.ran = r->ran;
        why = patch_module(m);
    }
    if (why) {
        report_say(probe.report, "%s: %s: use %s", path, why, patch_alternative());
        r->refused = why;
    }
    if (r->refused && !probe.report->options.unchecked) process_refuse(NULL);
}

/* A module that was unloaded and had the same plan: its records can be used again. */
static probe_module *take_module(const report_module *r)
{
    for (probe_module *m = probe.modules; m; m = m->next)
        if (!m->loaded && m->report == r) return m;
    probe_module *m = sys_map(NULL, (sizeof *m + PROBE_PAGE - 1) & ~(size_t)(PROBE_PAGE - 1), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!m) return NULL;
    m->next = probe.modules;
    __atomic_store_n(&probe.modules, m, __ATOMIC_RELEASE);
    return m;
}

/* Another module, or this one, may have been there before. The loader maps and unmaps without being seen. */
static void clear_memory(void *module)
{
    const probe_module *m = module;
    ft_clear(probe_self.thread, m->start, m->end - m->start);
}

static void add_module(const struct dl_phdr_info *info, const char *path, uint64_t start, uint64_t end, bool is_program)
{
    report_module *r = report_module_add(probe.report, path, start, end);
    __atomic_add_fetch(&probe.module_changes, 1, __ATOMIC_SEQ_CST);
    probe_module *m = r ? take_module(r) : NULL;
    if (!m) return;
    m->report = r;
    m->start = start;
    m->end = end;
    m->text_count = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && h->p_flags & PF_X)
            add_text(m, info->dlpi_addr + h->p_vaddr, info->dlpi_addr + h->p_vaddr + h->p_filesz);
    }
    m->seen = generation;
    if (probe_sees()) probe_in_core(clear_memory, m);
    __atomic_store_n(&m->loaded, true, __ATOMIC_RELEASE);
    if (is_program && !r->plan && !r->refused && !probe.is_child && !probe.report->options.ask_dir)
        report_say(probe.report, "%s: no plan in %s: it runs unchecked", path, probe.report->options.plan_dir);
    use_plan(m, info, path);
}

static int event_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    uint64_t start = UINT64_MAX, end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD) continue;
        const uint64_t from = info->dlpi_addr + (h->p_vaddr & ~(uint64_t)(PROBE_PAGE - 1));
        if (from < start) start = from;
        if (info->dlpi_addr + h->p_vaddr + h->p_memsz > end) end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
    }
    if (start >= end) return 0;
    for (probe_module *m = probe.modules; m; m = m->next)
        if (m->loaded && m->start == start && m->end == end) {
            m->seen = generation;
            return 0;
        }
    path_text path;
    const bool is_program = !info->dlpi_name || !*info->dlpi_name;
    add_module(info, is_program ? program_path(&path) : library_path(info->dlpi_name, &path), start, end, is_program);
    return 0;
}

static void remove_module(probe_module *m)
{
    __atomic_store_n(&m->loaded, false, __ATOMIC_RELEASE);
    report_module_remove(probe.report, m->start);
    __atomic_add_fetch(&probe.module_changes, 1, __ATOMIC_SEQ_CST);
    wrap_forget(m->start, m->end);
    if (m->tables) patch_forget(m);
}

static void scan(void)
{
    sys_lock(&probe.module_lock);
    generation++;
    dl_iterate_phdr(event_module, NULL);
    for (probe_module *m = probe.modules; m; m = m->next)
        if (m->loaded && m->seen != generation) remove_module(m);
    sys_unlock(&probe.module_lock);
}

/* --- the loader's notification ------------------------------------------------------------------------------------ */

static void event_loader(void)
{
    if (probe.ready && _r_debug.r_state == RT_CONSISTENT) scan();
}

static bool is_padding(const uint8_t *at, const insn *i)
{
    return (i->map == 0 && (i->opcode == 0x90 || i->opcode == 0xcc)) || (i->map == 1 && i->opcode == 0x1f) ||
           (i->map == 0 && i->length == 1 && at[0] == 0x90);
}

/* Nothing but a return, with room for a jump. */
static bool is_empty_function(const uint8_t *at)
{
    insn i;
    unsigned size = 0;
    for (bool returned = false; size < PROBE_JUMP; size += i.length) {
        if (!insn_decode(at + size, INSN_MAX, &i)) return false;
        const bool marks = i.length == 4 && !memcmp(at + size, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
        const bool returns = i.map == 0 && i.opcode == 0xc3;
        if (!(returned ? is_padding(at + size, &i) : returns || marks || is_padding(at + size, &i))) return false;
        returned |= returns;
    }
    return true;
}

static struct {
    uint64_t at;   /* what the loader calls */
    uint64_t page; /* where it leads to */
} hook;

static bool hook_loader(void)
{
    const uint64_t at = _r_debug.r_brk;
    if (!at || !is_empty_function((const uint8_t *)at)) return false;
    uint8_t *page = near_map(at, at + PROBE_JUMP, PROBE_PAGE, false);
    if (!page) return false;
    const uint64_t target = (uint64_t)event_loader, first = at & ~(uint64_t)(PROBE_PAGE - 1);
    memcpy(page, "\xff\x25\0\0\0\0", 6);
    memcpy(page + 6, &target, sizeof target);
    const size_t size = at + PROBE_JUMP - first;
    code c = {.out = (uint8_t *)at, .cap = PROBE_JUMP, .at = at};
    if (!sys_protect(page, PROBE_PAGE, PROT_READ | PROT_EXEC)) return false;
    hook.at = at;
    hook.page = (uint64_t)page;
    if (!sys_protect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
    emit_jump(&c, (uint64_t)page);
    return sys_protect((void *)first, size, PROT_READ | PROT_EXEC) && !c.failed;
}

void module_start(void)
{
    scan();
    if (!hook_loader())
        report_say(probe.report, "the loader cannot be watched: modules that are loaded later run unchecked");
}

/* --- code that the program changes --------------------------------------------------------------------------------
 * Whoever makes code writable means the bytes that the linker has put there. */

static bool has_code(const probe_module *m, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < m->text_count; i++)
        if (start < m->texts[i].end && end > m->texts[i].start) return true;
    return false;
}

/* The lock is taken for modules that are concerned only: handlers of the program may protect data at any time. */
static void event_writable(uint64_t start, uint64_t end)
{
    probe_module *m = __atomic_load_n(&probe.modules, __ATOMIC_ACQUIRE);
    while (m && !(m->loaded && m->group_count && has_code(m, start, end)))
        m = m->next;
    if (!m) return;
    sys_lock(&probe.module_lock);
    for (; m; m = m->next)
        if (m->loaded && m->group_count && has_code(m, start, end) && patch_undo(m))
            report_say(probe.report,
                       "%s makes its own code writable: from here on it runs unchecked (--engine dynamorio checks it)",
                       m->report->name);
    sys_unlock(&probe.module_lock);
}

void module_disable(const char *why)
{
    sys_lock(&probe.module_lock);
    if (!__atomic_exchange_n(&probe.disabled, true, __ATOMIC_ACQ_REL)) {
        report_say(probe.report, "%s: from here on the program runs unchecked", why);
        for (probe_module *m = probe.modules; m; m = m->next)
            if (m->loaded && m->group_count) patch_undo(m);
    }
    probe_self.thread = &probe.nobody; /* it is another's, too */
    sys_unlock(&probe.module_lock);
}

/* mprotect or pkey_mprotect, by libc's syscall() too. */
long probe_protect_by_system(long number, long at, long size, long protection, long key);
long probe_protect_by_system(long number, long at, long size, long protection, long key)
{
    if (probe.ready && protection & PROT_WRITE) event_writable((uint64_t)at, (uint64_t)at + (uint64_t)size);
    const long result = sys_call(number, at, size, protection, key, 0, 0);
    return result < 0 ? probe_syscall_error(result) : result;
}

EXPORT int mprotect(void *at, size_t size, int protection)
{
    return (int)probe_protect_by_system(SYS_mprotect, (long)at, (long)size, protection, 0);
}

EXPORT int pkey_mprotect(void *at, size_t size, int protection, int key)
{
    return (int)probe_protect_by_system(SYS_pkey_mprotect, (long)at, (long)size, protection, key);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

uint64_t module_hooked(uint64_t pc)
{
    return hook.page && pc - hook.page < PROBE_PAGE ? hook.at : 0;
}

const probe_module *module_of_trampoline(uint64_t pc)
{
    for (const probe_module *m = __atomic_load_n(&probe.modules, __ATOMIC_ACQUIRE); m; m = m->next)
        if (m->loaded && pc - (uint64_t)m->code.arena < m->code.arena_size) return m;
    return NULL;
}

const probe_module *module_of_code(uint64_t pc)
{
    for (const probe_module *m = __atomic_load_n(&probe.modules, __ATOMIC_ACQUIRE); m; m = m->next)
        if (m->loaded && pc >= m->start && pc < m->end) return m;
    return NULL;
}

const patch_group *module_group_at(const probe_module *m, uint64_t pc)
{
    uint32_t from = 0, to = m->group_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (m->groups[middle].start <= pc)
            from = middle + 1;
        else
            to = middle;
    }
    if (!from) return NULL;
    const patch_group *g = &m->groups[from - 1];
    return pc - g->start < g->size ? g : NULL;
}
