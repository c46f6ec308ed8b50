/* The smallest ELF file around some machine code, for tests and fuzz targets: a shared object with .text at 0x1000 that
 * holds the code, entered at its first byte, and .data at 0x100000. */
#ifndef RACE_TINYELF_H
#define RACE_TINYELF_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TINYELF_TEXT = 0x1000, TINYELF_DATA = 0x100000, TINYELF_DATA_SIZE = 0x1000 };

/* Returns the file, to be freed; its size in *size. */
static inline void *tinyelf(const void *code, size_t length, size_t *size)
{
    static const char names[] = "\0.text\0.data\0.shstrtab";
    size_t text = 0x1000, strings = text + length, headers = (strings + sizeof names + 15) & ~(size_t)15;
    *size = headers + 4 * sizeof(Elf64_Shdr);
    uint8_t *file = calloc(1, *size);
    if (!file) abort();
    Elf64_Ehdr head = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = 1, .e_entry = TINYELF_TEXT,
                       .e_phoff = sizeof head, .e_shoff = headers, .e_ehsize = sizeof head,
                       .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 4,
                       .e_shstrndx = 3};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    Elf64_Phdr segments[2] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = text, .p_vaddr = TINYELF_TEXT, .p_filesz = length,
         .p_memsz = length, .p_align = 0x1000},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = TINYELF_DATA, .p_memsz = TINYELF_DATA_SIZE,
         .p_align = 0x1000},
    };
    Elf64_Shdr sections[4] = {
        [1] = {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = TINYELF_TEXT,
               .sh_offset = text, .sh_size = length, .sh_addralign = 16},
        [2] = {.sh_name = 7, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_addr = TINYELF_DATA,
               .sh_offset = strings, .sh_size = TINYELF_DATA_SIZE, .sh_addralign = 16},
        [3] = {.sh_name = 13, .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = sizeof names, .sh_addralign = 1},
    };
    memcpy(file, &head, sizeof head);
    memcpy(file + sizeof head, segments, sizeof segments);
    memcpy(file + text, code, length);
    memcpy(file + strings, names, sizeof names);
    memcpy(file + headers, sections, sizeof sections);
    return file;
}

#endif
