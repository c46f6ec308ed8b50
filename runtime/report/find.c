/* Which plan belongs to a module: the one named by the build id in the module's notes as they are in memory, or by the
 * hash of its file when it has none. */
#define XXH_NO_STDLIB
#include "include/race/code.h"
#include "runtime/report/report.h"

#include <elf.h>
#include <string.h>

enum { MAX_NOTES = 4096, MAX_HEADERS = 64, MAX_ID = 32, IMAGE_PAGE = 4096 };

static bool id_in_notes(const unsigned char *notes, size_t size, char *id)
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, name_size = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t desc_size = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name_size > size - name || note.n_descsz > size - name - name_size) return false;
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
        if (desc_size > size - name - name_size) return false; /* the padding of the last one may be missing */
        at = name + name_size + desc_size;
    }
    return false;
}

static bool is_inside(const report_module *m, uint64_t addr, uint64_t size)
{
    return addr >= m->start && addr <= m->end && size <= m->end - addr;
}

/* The module's program headers, and from the lowest segment its bias. */
static unsigned read_headers(const report_host *host, report_module *m, Elf64_Phdr headers[MAX_HEADERS])
{
    Elf64_Ehdr elf;
    if (!is_inside(m, m->start, sizeof elf) || !host->read(host->context, m->start, &elf, sizeof elf)) return 0;
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_phentsize != sizeof *headers || elf.e_phnum > MAX_HEADERS)
        return 0;
    uint64_t size = elf.e_phnum * sizeof *headers;
    if (!is_inside(m, m->start + elf.e_phoff, size) ||
        !host->read(host->context, m->start + elf.e_phoff, headers, size))
        return 0;
    uint64_t lowest = UINT64_MAX;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < lowest) lowest = headers[i].p_vaddr;
        if (headers[i].p_type == PT_INTERP) m->has_interpreter = true;
    }
    if (lowest == UINT64_MAX) return 0;
    m->bias = m->start - (lowest & ~(uint64_t)(IMAGE_PAGE - 1));
    return elf.e_phnum;
}

bool find_identity(const report_host *host, report_module *m, const char *path)
{
    Elf64_Phdr headers[MAX_HEADERS];
    unsigned char notes[MAX_NOTES];
    unsigned n = read_headers(host, m, headers);
    for (unsigned i = 0; i < n; i++) {
        const Elf64_Phdr *h = &headers[i];
        uint64_t at = h->p_vaddr + m->bias;
        if (h->p_type != PT_NOTE || h->p_filesz > sizeof notes || !is_inside(m, at, h->p_filesz)) continue;
        if (host->read(host->context, at, notes, h->p_filesz) && id_in_notes(notes, h->p_filesz, m->id)) return true;
    }
    size_t size;
    const void *map = n ? host->map(host->context, path, &size) : NULL;
    if (!map) return false;
    plan_content_id(map, size, m->id);
    host->unmap(host->context, map, size);
    return true;
}

/* Two files may have one build id. A file that is not there any more has nothing to say. */
bool find_other_code(const report_host *host, const plan_header *h, const char *path)
{
    size_t size;
    const void *map = h->code ? host->map(host->context, path, &size) : NULL;
    if (!map) return false;
    const bool differs = race_code_of(map, size) != h->code;
    host->unmap(host->context, map, size);
    return differs;
}

int find_plan(const report_host *host, const char *directory, report_module *m, const char *path)
{
    report_text t;
    text_start(&t, m->plan_path, sizeof m->plan_path);
    text_add(&t, "%s/%s.plan", directory, m->id);
    size_t size = 0;
    const void *map = host->map(host->context, m->plan_path, &size);
    m->refused = map || !size ? NULL : "not a regular file";
    if (!map) return m->refused ? -1 : 0;
    plan_status status = plan_read(map, size, &m->plan_data);
    if (status != PLAN_OK) {
        m->refused = plan_status_text(status);
    } else {
        const plan_header *h = m->plan_data.header;
        if (strcmp(h->build_id, m->id))
            m->refused = "the plan is of another build";
        else if (find_other_code(host, h, path))
            m->refused = "the plan is of other code with the same build id";
        else if (!is_inside(m, h->low + m->bias, h->high - h->low))
            m->refused = "the plan is of another module (it does not fit into this one)";
    }
    if (!m->refused) return 1; /* stays mapped: reports may need it to the end */
    host->unmap(host->context, map, size);
    return -1;
}
