/* The header tables of an ELF file, checked once: after elf_parse every section and segment lies inside the file.
 *
 * libelf trusts more than we can afford on hostile input and writes into the memory it is given, so the headers are
 * read here; libelf unpacks compressed sections and carries libdw (dwarf.c). */
#include "static/image/private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PADDING = 16, MAX_NAME = 1 << 16, LARGE = 4 << 20 };
static const uint64_t MAP_ABOVE = 1ull << 30;
static const uint64_t MAX_EXTENT = 1ull << 47; /* no section or segment can be larger than the address space */

/* --- files ------------------------------------------------------------------------------------------------------- */

/* Large files go to pages of their own, huge ones where the system has them: filling those is twice as fast. */
static void allocate(file_bytes *file)
{
    uint64_t size = file->size + PADDING;
    if (size >= LARGE) {
        void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) base_oom(size);
        madvise(room, size, MADV_HUGEPAGE);
        file->bytes = room;
        file->mapped = size;
    } else {
        file->bytes = base_alloc(size);
    }
}

static int read_all(file_bytes *file, int fd, const char *path, race_error *error)
{
    uint64_t got = 0;
    allocate(file);
    while (got < file->size) {
        ssize_t n = read(fd, file->bytes + got, file->size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int why = errno;
            file_free(file);
            return base_fail(error, "%s: cannot be read: %s", path, strerror(why));
        }
        if (n == 0) break; /* it shrank; what is missing is found by the checks */
        got += (uint64_t)n;
    }
    file->size = got;
    memset(file->bytes + got, 0, PADDING);
    return 0;
}

int file_read(file_bytes *file, const char *path, race_error *error)
{
    *file = (file_bytes){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* a FIFO must not block */
    if (fd < 0) return base_fail(error, "%s: %s", path, strerror(errno));
    struct stat st;
    int result = 0;
    if (fstat(fd, &st) < 0)
        result = base_fail(error, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        result = base_fail(error, "%s: is a directory", path);
    else if (!S_ISREG(st.st_mode))
        result = base_fail(error, "%s: is not a regular file", path);
    else if (st.st_size == 0)
        result = base_fail(error, "%s: is empty", path);
    else if ((uint64_t)st.st_size < MAP_ABOVE) {
        file->size = (uint64_t)st.st_size;
        result = read_all(file, fd, path, error);
    } else {
        /* One page more than the file, anonymous, so that the padding exists for any size. */
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = align_up((uint64_t)st.st_size, page);
        uint8_t *room = mmap(NULL, whole + page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) {
            result = base_fail(error, "%s: cannot be mapped: %s", path, strerror(errno));
        } else if (mmap(room, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
            result = base_fail(error, "%s: cannot be mapped: %s", path, strerror(errno));
            munmap(room, whole + page);
        } else {
            *file = (file_bytes){.bytes = room, .size = (uint64_t)st.st_size, .mapped = whole + page};
        }
    }
    close(fd);
    return result;
}

void file_free(file_bytes *file)
{
    if (file->mapped)
        munmap(file->bytes, file->mapped);
    else
        free(file->bytes);
    *file = (file_bytes){0};
}

/* --- header tables ----------------------------------------------------------------------------------------------- */

static int check_kind(const elf_file *file, const char *name, race_error *error)
{
    const uint8_t *ident = file->bytes;
    if (file->size < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return base_fail(error, "%s: is not an ELF file", name);
    if (file->size < EI_NIDENT) return base_fail(error, "%s: is truncated: the ELF header is incomplete", name);
    if (ident[EI_CLASS] == ELFCLASS32)
        return base_fail(error, "%s: is a 32-bit ELF file; only 64-bit x86-64 is supported", name);
    if (ident[EI_CLASS] != ELFCLASS64) return base_fail(error, "%s: is an ELF file of unknown class", name);
    if (ident[EI_DATA] == ELFDATA2MSB)
        return base_fail(error, "%s: is a big-endian ELF file; only x86-64 is supported", name);
    if (ident[EI_DATA] != ELFDATA2LSB) return base_fail(error, "%s: is an ELF file of unknown byte order", name);
    if (file->size < sizeof file->h) return base_fail(error, "%s: is truncated: the ELF header is incomplete", name);
    return 0;
}

static int check_header(const elf_file *file, const char *name, race_error *error)
{
    const Elf64_Ehdr *h = &file->h;
    if (h->e_machine != EM_X86_64)
        return base_fail(error, "%s: is for another architecture (ELF machine %u); only x86-64 is supported", name,
                         h->e_machine);
    if (h->e_type == ET_CORE) return base_fail(error, "%s: is a core file, not a program", name);
    if (h->e_type != ET_EXEC && h->e_type != ET_DYN && h->e_type != ET_REL)
        return base_fail(error, "%s: is an ELF file of unknown type %u", name, h->e_type);
    if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
        return base_fail(error, "%s: is an ELF file of unknown version", name);
    return 0;
}

/* Numbers that do not fit the header are in section 0. */
static int read_tables(elf_file *file, const char *name, arena *memory, race_error *error)
{
    const Elf64_Ehdr *h = &file->h;
    uint64_t shnum = h->e_shnum, phnum = h->e_phnum;
    Elf64_Shdr first = {0};
    if (h->e_shoff) {
        if (!fits(h->e_shoff, sizeof first, file->size))
            return base_fail(error, "%s: is truncated: its section headers lie beyond its end", name);
        memcpy(&first, file->bytes + h->e_shoff, sizeof first);
        if (h->e_shentsize != sizeof first)
            return base_fail(error, "%s: is damaged: section headers of %u bytes", name, h->e_shentsize);
        if (shnum == 0) shnum = first.sh_size;
        if (shnum > file->size / sizeof first || !fits(h->e_shoff, shnum * sizeof first, file->size))
            return base_fail(error, "%s: is truncated: its section headers lie beyond its end", name);
    } else {
        shnum = 0;
    }
    if (phnum == PN_XNUM && shnum) phnum = first.sh_info;
    if (h->e_phoff && phnum) {
        if (h->e_phentsize != sizeof(Elf64_Phdr))
            return base_fail(error, "%s: is damaged: program headers of %u bytes", name, h->e_phentsize);
        if (phnum > file->size / sizeof(Elf64_Phdr) || !fits(h->e_phoff, phnum * sizeof(Elf64_Phdr), file->size))
            return base_fail(error, "%s: is truncated: its program headers lie beyond its end", name);
        file->segment_count = (uint32_t)phnum;
        file->segments = arena_copy(memory, file->bytes + h->e_phoff, phnum * sizeof(Elf64_Phdr));
    }
    file->section_count = (uint32_t)shnum;
    file->sections = arena_alloc(memory, shnum * sizeof *file->sections);
    for (uint32_t i = 0; i < shnum; i++)
        memcpy(&file->sections[i].h, file->bytes + h->e_shoff + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
    return 0;
}

static void name_sections(elf_file *file)
{
    uint64_t names =
        file->h.e_shstrndx == SHN_XINDEX && file->section_count ? file->sections[0].h.sh_link : file->h.e_shstrndx;
    const elf_section *strings = names && names < file->section_count ? &file->sections[names] : NULL;
    for (uint32_t i = 0; i < file->section_count; i++)
        file->sections[i].name = strings ? elf_string(strings, file->sections[i].h.sh_name) : "";
}

/* No two sections share bytes of the file. It also keeps the work done per section proportional to the file. */
static int check_overlap(const elf_file *file, const char *name, race_error *error)
{
    range *ranges = base_alloc(file->section_count * sizeof *ranges);
    uint32_t count = 0;
    for (uint32_t i = 1; i < file->section_count; i++) {
        const elf_section *s = &file->sections[i];
        if (s->bytes && s->h.sh_size) ranges[count++] = (range){s->h.sh_offset, s->h.sh_offset + s->h.sh_size, i};
    }
    sort_ranges(ranges, count);
    int result = 0;
    for (uint32_t i = 1; i < count && !result; i++)
        if (ranges[i].start < ranges[i - 1].end)
            result = base_fail(error, "%s: is damaged: sections %u and %u overlap in the file", name, ranges[i - 1].id,
                               ranges[i].id);
    free(ranges);
    return result;
}

static int check_sections(elf_file *file, const char *name, race_error *error)
{
    for (uint32_t i = 1; i < file->section_count; i++) {
        elf_section *s = &file->sections[i];
        if (s->h.sh_type == SHT_NULL) continue;
        if (s->h.sh_size > MAX_EXTENT || s->h.sh_addr + s->h.sh_size < s->h.sh_addr)
            return base_fail(error, "%s: is damaged: section %u claims %#lx bytes", name, i, s->h.sh_size);
        if (s->h.sh_type == SHT_NOBITS) continue;
        if (!fits(s->h.sh_offset, s->h.sh_size, file->size))
            return base_fail(error, "%s: is truncated: section %u claims bytes beyond the end of the file", name, i);
        s->bytes = file->bytes + s->h.sh_offset;
    }
    name_sections(file);
    return check_overlap(file, name, error);
}

static int check_segments(const elf_file *file, const char *name, race_error *error)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type != PT_LOAD) continue;
        if (p->p_memsz > MAX_EXTENT || p->p_vaddr + p->p_memsz < p->p_vaddr || p->p_filesz > p->p_memsz)
            return base_fail(error, "%s: is damaged: segment %u claims %#lx bytes", name, i, p->p_memsz);
        if (!fits(p->p_offset, p->p_filesz, file->size))
            return base_fail(error, "%s: is truncated: segment %u claims bytes beyond the end of the file", name, i);
    }
    return 0;
}

int elf_parse(elf_file *file, const char *name, const void *bytes, uint64_t size, arena *memory, race_error *error)
{
    *file = (elf_file){.bytes = bytes, .size = size};
    if (check_kind(file, name, error)) return -1;
    memcpy(&file->h, bytes, sizeof file->h);
    if (check_header(file, name, error) || read_tables(file, name, memory, error) ||
        check_sections(file, name, error) || check_segments(file, name, error))
        return -1;
    return 0;
}

/* --- looking things up ------------------------------------------------------------------------------------------- */

const char *elf_string_in(const uint8_t *bytes, uint64_t size, uint64_t index)
{
    if (!bytes || index >= size) return "";
    uint64_t left = size - index; /* bounded, or a million symbols with one endless name would take for ever */
    return memchr(bytes + index, 0, left < MAX_NAME ? left : MAX_NAME) ? (const char *)bytes + index : "";
}

const char *elf_string(const elf_section *strings, uint64_t index)
{
    if (!strings || strings->h.sh_type != SHT_STRTAB) return "";
    return elf_string_in(strings->bytes, strings->h.sh_size, index);
}

const elf_section *elf_section_named(const elf_file *file, const char *name)
{
    for (uint32_t i = 1; i < file->section_count; i++)
        if (file->sections[i].h.sh_type != SHT_NULL && strcmp(file->sections[i].name, name) == 0)
            return &file->sections[i];
    return NULL;
}

const elf_section *elf_linked(const elf_file *file, const elf_section *section, uint32_t type)
{
    uint32_t link = section->h.sh_link;
    return link && link < file->section_count && file->sections[link].h.sh_type == type ? &file->sections[link] : NULL;
}

const uint8_t *elf_loaded(const elf_file *file, uint64_t addr, uint64_t size, uint64_t *available)
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type != PT_LOAD || addr < p->p_vaddr || !fits(addr - p->p_vaddr, size, p->p_filesz)) continue;
        if (available) *available = p->p_filesz - (addr - p->p_vaddr);
        return file->bytes + p->p_offset + (addr - p->p_vaddr);
    }
    return NULL;
}

static bool build_id_in(const uint8_t *notes, uint64_t size, uint64_t align, char hex[65])
{
    uint64_t at = 0;
    if (align != 8) align = 4;
    while (fits(at, sizeof(Elf64_Nhdr), size)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        uint64_t name = at + sizeof note;
        uint64_t desc = align_up(name + note.n_namesz, align), next = align_up(desc + note.n_descsz, align);
        if (!fits(name, note.n_namesz, size) || !fits(desc, note.n_descsz, size)) return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= 32) {
            for (uint32_t i = 0; i < note.n_descsz; i++) {
                hex[2 * i] = "0123456789abcdef"[notes[desc + i] >> 4];
                hex[2 * i + 1] = "0123456789abcdef"[notes[desc + i] & 15];
            }
            hex[2 * note.n_descsz] = 0;
            return true;
        }
        at = next;
    }
    return false;
}

bool elf_build_id(const elf_file *file, char hex[65])
{
    for (uint32_t i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *p = &file->segments[i];
        if (p->p_type == PT_NOTE && fits(p->p_offset, p->p_filesz, file->size) &&
            build_id_in(file->bytes + p->p_offset, p->p_filesz, p->p_align, hex))
            return true;
    }
    for (uint32_t i = 1; i < file->section_count; i++) {
        const elf_section *s = &file->sections[i];
        if (s->h.sh_type == SHT_NOTE && s->bytes && build_id_in(s->bytes, s->h.sh_size, s->h.sh_addralign, hex))
            return true;
    }
    return false;
}
