/* Is a file the one that a plan was made from? A build id may be given by hand, and stays when somebody patches the file. */
#ifndef RACE_CODE_H
#define RACE_CODE_H

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* A hash of the bytes of its executable segments, but of the headers, which stripping changes; 0: it has none. `file` may be
 * anything. */
static inline uint32_t race_code_of(const void *file, size_t size)
{
    const char *bytes = (const char *)file;
    Elf64_Ehdr elf;
    if (size < sizeof elf) return 0;
    memcpy(&elf, bytes, sizeof elf);
    const uint64_t headers = (uint64_t)elf.e_phnum * sizeof(Elf64_Phdr);
    if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_phentsize != sizeof(Elf64_Phdr)) return 0;
    if (elf.e_phoff > size || headers > size - elf.e_phoff) return 0;
    uint64_t hash = 0;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr h;
        memcpy(&h, bytes + elf.e_phoff + i * sizeof h, sizeof h);
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_X) || h.p_offset > size || h.p_filesz > size - h.p_offset) continue;
        const uint64_t skipped = h.p_offset >= sizeof elf ? 0 : sizeof elf - h.p_offset;
        if (skipped < h.p_filesz) hash = XXH64(bytes + h.p_offset + skipped, h.p_filesz - skipped, hash + 1);
    }
    return hash && !(uint32_t)hash ? 1 : (uint32_t)hash;
}

#endif
