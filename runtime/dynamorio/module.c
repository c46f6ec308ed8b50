/* Modules: which plan belongs to which, and who is who when a race is reported.
 *
 * A plan is found by the build id in the module's notes as they are in memory, or by the hash of its file when it has
 * none. Every plan gets a range of site numbers of its own, which is never used again. */
#include "runtime/dynamorio/client.h"

#include <elf.h>
#include <string.h>

enum { MAX_NOTES = 4096, MAX_HEADERS = 64, MAX_ID = 32 };

typedef struct {
    plan plan;
    void *map;
    size_t map_size;
} loaded_plan;

/* --- the build id ------------------------------------------------------------------------------------------------- */

static bool read_memory(const void *from, void *to, size_t size)
{
    size_t done;
    return dr_safe_read(from, size, to, &done) && done == size;
}

static bool id_in_notes(const unsigned char *notes, size_t size, char id[2 * MAX_ID + 1])
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, name_size = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t desc_size = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name_size > size - name || desc_size > size - name - name_size) return false;
        const unsigned char *desc = notes + name + name_size;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + name, "GNU", 4) &&
            note.n_descsz >= 1 && note.n_descsz <= MAX_ID) {
            for (uint32_t i = 0; i < note.n_descsz; i++) {
                id[2 * i] = "0123456789abcdef"[desc[i] >> 4];
                id[2 * i + 1] = "0123456789abcdef"[desc[i] & 15];
            }
            id[2 * note.n_descsz] = 0;
            return true;
        }
        at = name + name_size + desc_size;
    }
    return false;
}

static bool is_inside(const client_module *m, uint64_t addr, uint64_t size)
{
    uint64_t start = (uint64_t)m->start, end = (uint64_t)m->end;
    return addr >= start && addr <= end && size <= end - addr;
}

/* The module's program headers, and from the lowest segment its bias. */
static unsigned read_headers(client_module *m, Elf64_Phdr headers[MAX_HEADERS])
{
    Elf64_Ehdr elf;
    if (!is_inside(m, (uint64_t)m->start, sizeof elf) || !read_memory(m->start, &elf, sizeof elf)) return 0;
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_phentsize != sizeof *headers || elf.e_phnum > MAX_HEADERS)
        return 0;
    uint64_t size = elf.e_phnum * sizeof *headers;
    if (!is_inside(m, (uint64_t)m->start + elf.e_phoff, size) || !read_memory(m->start + elf.e_phoff, headers, size))
        return 0;
    uint64_t lowest = UINT64_MAX;
    for (unsigned i = 0; i < elf.e_phnum; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < lowest) lowest = headers[i].p_vaddr;
    if (lowest == UINT64_MAX) return 0;
    m->bias = (ptr_int_t)((uint64_t)m->start - (lowest & ~(uint64_t)(dr_page_size() - 1)));
    return elf.e_phnum;
}

static bool find_build_id(client_module *m, char id[2 * MAX_ID + 1])
{
    Elf64_Phdr headers[MAX_HEADERS];
    unsigned char notes[MAX_NOTES];
    unsigned n = read_headers(m, headers);
    for (unsigned i = 0; i < n; i++) {
        const Elf64_Phdr *h = &headers[i];
        uint64_t at = h->p_vaddr + (uint64_t)m->bias;
        if (h->p_type != PT_NOTE || h->p_filesz > sizeof notes || !is_inside(m, at, h->p_filesz)) continue;
        if (read_memory((void *)at, notes, h->p_filesz) && id_in_notes(notes, h->p_filesz, id)) return true;
    }
    return false;
}

static void *map_file(const char *path, size_t *size)
{
    file_t file = dr_open_file(path, DR_FILE_READ);
    if (file == INVALID_FILE) return NULL;
    uint64 bytes = 0;
    void *map = NULL;
    if (dr_file_size(file, &bytes) && bytes) {
        *size = bytes;
        map = dr_map_file(file, size, 0, NULL, DR_MEMPROT_READ, DR_MAP_PRIVATE);
    }
    dr_close_file(file);
    if (map && *size < bytes) {
        dr_unmap_file(map, *size);
        return NULL;
    }
    if (map) *size = bytes; /* the mapping is of whole pages */
    return map;
}

static bool find_id(client_module *m, const char *path, char id[2 * MAX_ID + 1])
{
    if (find_build_id(m, id)) return true;
    size_t size;
    void *map = map_file(path, &size);
    if (!map) return false;
    plan_content_id(map, size, id);
    dr_unmap_file(map, size);
    return true;
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* Why this engine cannot do what a sound plan asks for, or NULL. */
static const char *unable(const plan *p)
{
    for (uint32_t i = 0; i < p->action_count; i++)
        if (p->actions[i].kind == PLAN_CAPTURE) return "the plan captures values, which this engine cannot do";
    for (uint32_t i = 0; i < p->site_count; i++)
        for (uint32_t k = CLIENT_REP_ACTIONS; k < p->sites[i].action_count; k++)
            if (p->actions[p->sites[i].first_action + k].flags & PLAN_DOWN)
                return "the plan has more repetitions at one site than this engine can do";
    return NULL;
}

static const char *refused(const loaded_plan *p, const client_module *m, const char *id)
{
    if (strcmp(p->plan.header->build_id, id)) return "the plan is of another build";
    if (!is_inside(m, p->plan.header->low + (uint64_t)m->bias, p->plan.header->high - p->plan.header->low))
        return "the plan is of another module (it does not fit into this one)";
    return unable(&p->plan);
}

/* NULL: there is none. A damaged one ends the process, unless the user said otherwise. */
static const plan *load_plan(client_module *m, const char *path)
{
    char id[2 * MAX_ID + 1], file[MAXIMUM_PATH];
    if (!find_id(m, path, id)) return NULL;
    dr_snprintf(file, sizeof file, "%s/%s.plan", client.plan_dir, id);
    file[sizeof file - 1] = 0;
    loaded_plan p;
    p.map = map_file(file, &p.map_size);
    if (!p.map) return NULL;
    plan_status status = plan_read(p.map, p.map_size, &p.plan);
    const char *why = status == PLAN_OK ? refused(&p, m, id) : plan_status_text(status);
    if (why) {
        client_say("%s: %s", file, why);
        if (!client.unchecked) dr_abort_with_code(2);
        dr_unmap_file(p.map, p.map_size);
        return NULL;
    }
    loaded_plan *kept = dr_global_alloc(sizeof *kept); /* for the rest of the process: reports may need it */
    *kept = p;
    return &kept->plan;
}

static void set_name(client_module *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    dr_snprintf(m->name, sizeof m->name, "%s", slash ? slash + 1 : path);
    m->name[sizeof m->name - 1] = 0;
}

static bool is_program(const module_data_t *info)
{
    module_data_t *main = dr_get_main_module();
    bool same = main && main->start == info->start;
    if (main) dr_free_module_data(main);
    return same;
}

static void event_module_load(void *drcontext, const module_data_t *info, bool loaded)
{
    const char *path = info->full_path ? info->full_path : "";
    client_module *m = dr_global_alloc(sizeof *m);
    memset(m, 0, sizeof *m);
    m->start = info->start;
    m->end = info->end;
    m->loaded = true;
    set_name(m, path);
    m->plan = load_plan(m, path);
    dr_rwlock_write_lock(client.modules_lock);
    if (m->plan) {
        m->first_site = client.next_site;
        client.next_site += m->plan->site_count;
        client.sites_planned += m->plan->site_count;
    }
    m->next = client.modules;
    client.modules = m;
    dr_rwlock_write_unlock(client.modules_lock);
    if (!m->plan && is_program(info)) client_say("%s: no plan in %s: it runs unchecked", path, client.plan_dir);
    wrap_module(info);
}

static void event_module_unload(void *drcontext, const module_data_t *info)
{
    dr_rwlock_write_lock(client.modules_lock);
    for (client_module *m = client.modules; m; m = m->next)
        if (m->start == info->start) m->loaded = false;
    dr_rwlock_write_unlock(client.modules_lock);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

client_module *module_at(app_pc pc)
{
    dr_rwlock_read_lock(client.modules_lock);
    client_module *m = client.modules;
    while (m && !(m->loaded && pc >= m->start && pc < m->end))
        m = m->next;
    dr_rwlock_read_unlock(client.modules_lock);
    return m;
}

const plan_site *module_site(ft_site number, client_module **module)
{
    dr_rwlock_read_lock(client.modules_lock);
    client_module *m = client.modules;
    while (m && !(m->plan && number >= m->first_site && number - m->first_site < m->plan->site_count))
        m = m->next;
    dr_rwlock_read_unlock(client.modules_lock);
    *module = m;
    return m ? &m->plan->sites[number - m->first_site] : NULL;
}

ft_site module_call_site(app_pc return_address)
{
    client_module *m = module_at(return_address);
    if (!m || !m->plan) return 0;
    const plan_site *s = plan_site_covering(m->plan, (uint64_t)(return_address - m->bias) - 1);
    return s ? m->first_site + (ft_site)(s - m->plan->sites) : 0;
}

const plan_object *module_object(uint64_t addr, client_module **module)
{
    client_module *m = *module = module_at((app_pc)addr);
    return m && m->plan ? plan_object_covering(m->plan, addr - (uint64_t)m->bias) : NULL;
}

void module_init(void)
{
    client.modules_lock = dr_rwlock_create();
    drmgr_register_module_load_event(event_module_load);
    drmgr_register_module_unload_event(event_module_unload);
}

void module_exit(void)
{
    drmgr_unregister_module_load_event(event_module_load);
    drmgr_unregister_module_unload_event(event_module_unload);
    while (client.modules) {
        client_module *m = client.modules;
        client.modules = m->next;
        if (m->plan) {
            loaded_plan *p = (loaded_plan *)(void *)((char *)m->plan - offsetof(loaded_plan, plan));
            dr_unmap_file(p->map, p->map_size);
            dr_global_free(p, sizeof *p);
        }
        dr_global_free(m, sizeof *m);
    }
    dr_rwlock_destroy(client.modules_lock);
}
