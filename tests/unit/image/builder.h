/* Small ELF files made in memory, so that a test can say exactly what is in them, right or wrong.
 *
 *   builder b = builder_new(ET_DYN);
 *   uint32_t text = builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code);
 *   builder_symbol(&b, "f", 0, 4, STT_FUNC, STB_GLOBAL, text, 0x1000);
 *   image *img = builder_open(&b);                 the bytes live as long as the builder
 *   ...
 *   image_close(img);
 *   builder_free(&b);
 *
 * In a linked file each allocated section gets a segment of its own. */
#ifndef RACE_TEST_IMAGE_BUILDER_H
#define RACE_TEST_IMAGE_BUILDER_H

#include "static/image/image.h"

#include <elf.h>
#include <stdlib.h>

#include "unity.h"

typedef struct {
    Elf64_Shdr h;
    char name[64];
    uint8_t *bytes;
} builder_part;

typedef struct {
    uint16_t type;
    VEC(builder_part) sections;
    VEC(Elf64_Phdr) segments; /* besides those of the sections */
    VEC(uint8_t) strings, names;
    VEC(Elf64_Sym) symbols;
    uint32_t symtab, strtab; /* sections, made by builder_finish */
    bool no_sections;        /* leave the section headers out */
    bool no_symbols;         /* no .symtab, as if stripped */
    uint64_t entry;
    uint8_t *bytes;
    size_t size;
} builder;

static inline builder builder_new(uint16_t type)
{
    builder b = {.type = type};
    vec_push(&b.sections, (builder_part){.name = ""});
    vec_push(&b.strings, 0);
    vec_push(&b.symbols, (Elf64_Sym){0});
    return b;
}

static inline uint32_t builder_section(builder *b, const char *name, uint32_t type, uint64_t flags, uint64_t addr,
                                       const void *bytes, uint64_t size)
{
    builder_part part = {
        .h = {.sh_type = type, .sh_flags = flags, .sh_addr = addr, .sh_size = size, .sh_addralign = 8}};
    strncpy(part.name, name, sizeof part.name - 1);
    if (type != SHT_NOBITS) {
        part.bytes = base_alloc_zero(1, size);
        if (bytes && size) memcpy(part.bytes, bytes, size);
    }
    vec_push(&b->sections, part);
    return b->sections.len - 1;
}

static inline void builder_segment(builder *b, uint32_t type, uint32_t flags, uint64_t addr, uint64_t size)
{
    vec_push(&b->segments,
             (Elf64_Phdr){.p_type = type, .p_flags = flags, .p_vaddr = addr, .p_memsz = size, .p_align = 8});
}

static inline uint32_t builder_string(builder *b, const char *text)
{
    uint32_t at = b->strings.len;
    do
        vec_push(&b->strings, (uint8_t)*text);
    while (*text++);
    return at;
}

static inline uint32_t builder_symbol(builder *b, const char *name, uint64_t value, uint64_t size, unsigned type,
                                      unsigned bind, uint16_t section)
{
    vec_push(&b->symbols, (Elf64_Sym){.st_name = builder_string(b, name),
                                      .st_value = value,
                                      .st_size = size,
                                      .st_info = ELF64_ST_INFO(bind, type),
                                      .st_shndx = section});
    return b->symbols.len - 1;
}

/* Relocations of section `target` (0: of the whole module). */
static inline uint32_t builder_relas(builder *b, const char *name, uint32_t target, uint64_t addr,
                                     const Elf64_Rela *relas, size_t count)
{
    uint64_t flags = b->type == ET_REL ? SHF_INFO_LINK : SHF_ALLOC;
    uint32_t s = builder_section(b, name, SHT_RELA, flags, addr, relas, count * sizeof *relas);
    b->sections.data[s].h.sh_info = target;
    b->sections.data[s].h.sh_entsize = sizeof *relas;
    b->sections.data[s].h.sh_link = UINT32_MAX; /* the symbol table, when it is known */
    return s;
}

static inline void builder_write(builder *b, uint64_t at, const void *bytes, uint64_t size)
{
    if (at + size > b->size) {
        b->bytes = base_realloc(b->bytes, at + size);
        memset(b->bytes + b->size, 0, at + size - b->size);
        b->size = at + size;
    }
    if (size) memcpy(b->bytes + at, bytes, size);
}

/* Lays the file out: header, segments, sections, section headers. */
static inline void builder_finish(builder *b)
{
    if (!b->no_symbols) {
        b->strtab = builder_section(b, ".strtab", SHT_STRTAB, 0, 0, b->strings.data, b->strings.len);
        b->symtab =
            builder_section(b, ".symtab", SHT_SYMTAB, 0, 0, b->symbols.data, b->symbols.len * sizeof(Elf64_Sym));
        b->sections.data[b->symtab].h.sh_link = b->strtab;
        b->sections.data[b->symtab].h.sh_entsize = sizeof(Elf64_Sym);
    }
    uint32_t names = builder_section(b, ".shstrtab", SHT_STRTAB, 0, 0, NULL, 0);
    for (uint32_t i = 0; i < b->sections.len; i++) {
        builder_part *p = &b->sections.data[i];
        p->h.sh_name = b->names.len;
        for (const char *c = p->name;; c++) {
            vec_push(&b->names, (uint8_t)*c);
            if (!*c) break;
        }
        if (p->h.sh_link == UINT32_MAX) p->h.sh_link = b->symtab;
    }
    free(b->sections.data[names].bytes);
    b->sections.data[names].bytes = base_alloc(b->names.len);
    memcpy(b->sections.data[names].bytes, b->names.data, b->names.len);
    b->sections.data[names].h.sh_size = b->names.len;

    VEC(Elf64_Phdr) segments = {0};
    uint32_t loads = 0;
    for (uint32_t i = 1; i < b->sections.len && b->type != ET_REL; i++)
        loads += (b->sections.data[i].h.sh_flags & SHF_ALLOC) != 0;
    uint64_t at = sizeof(Elf64_Ehdr) + (loads + (uint64_t)b->segments.len) * sizeof(Elf64_Phdr);
    builder_write(b, 0, NULL, 0);
    for (uint32_t i = 1; i < b->sections.len; i++) {
        builder_part *p = &b->sections.data[i];
        at = (at + 15) & ~15ull;
        p->h.sh_offset = at;
        bool filled = p->h.sh_type != SHT_NOBITS;
        if (filled) {
            builder_write(b, at, p->bytes, p->h.sh_size);
            at += p->h.sh_size;
        }
        if (b->type == ET_REL || !(p->h.sh_flags & SHF_ALLOC)) continue;
        uint32_t flags = PF_R | (p->h.sh_flags & SHF_WRITE ? PF_W : 0) | (p->h.sh_flags & SHF_EXECINSTR ? PF_X : 0);
        vec_push(&segments, (Elf64_Phdr){.p_type = PT_LOAD,
                                         .p_flags = flags,
                                         .p_offset = p->h.sh_offset,
                                         .p_vaddr = p->h.sh_addr,
                                         .p_filesz = filled ? p->h.sh_size : 0,
                                         .p_memsz = p->h.sh_size,
                                         .p_align = 1});
    }
    for (uint32_t i = 0; i < b->segments.len; i++) { /* a special segment has the bytes of the section it begins with */
        Elf64_Phdr s = b->segments.data[i];
        for (uint32_t k = 0; k < segments.len; k++)
            if (segments.data[k].p_type == PT_LOAD && segments.data[k].p_vaddr == s.p_vaddr) {
                s.p_offset = segments.data[k].p_offset;
                s.p_filesz = s.p_memsz;
            }
        vec_push(&segments, s);
    }
    uint64_t headers = (at + 15) & ~15ull;
    for (uint32_t i = 0; i < b->sections.len && !b->no_sections; i++)
        builder_write(b, headers + i * sizeof(Elf64_Shdr), &b->sections.data[i].h, sizeof(Elf64_Shdr));
    Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_type = b->type,
                    .e_machine = EM_X86_64,
                    .e_version = EV_CURRENT,
                    .e_entry = b->entry,
                    .e_phoff = segments.len ? sizeof h : 0,
                    .e_shoff = b->no_sections ? 0 : headers,
                    .e_ehsize = sizeof h,
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = (uint16_t)segments.len,
                    .e_shentsize = b->no_sections ? 0 : sizeof(Elf64_Shdr),
                    .e_shnum = b->no_sections ? 0 : (uint16_t)b->sections.len,
                    .e_shstrndx = b->no_sections ? 0 : (uint16_t)names};
    builder_write(b, 0, &h, sizeof h);
    builder_write(b, sizeof h, segments.data, segments.len * sizeof(Elf64_Phdr));
    vec_free(&segments);
}

static inline image *builder_open(builder *b)
{
    image *img = NULL;
    race_error error = {""};
    if (!b->bytes) builder_finish(b);
    if (image_open_memory("built", b->bytes, b->size, &img, &error)) TEST_FAIL_MESSAGE(error.text);
    return img;
}

/* The file is refused, with one line that begins with its name and says `why`. */
static inline void builder_refused(const void *bytes, size_t size, const char *why)
{
    image *img = (image *)1;
    race_error error = {""};
    TEST_ASSERT_EQUAL_INT(-1, image_open_memory("the file", bytes, size, &img, &error));
    TEST_ASSERT_NULL(img);
    TEST_ASSERT_EQUAL_STRING_LEN("the file: ", error.text, 10);
    TEST_ASSERT_NULL(strchr(error.text, '\n'));
    if (!strstr(error.text, why)) TEST_FAIL_MESSAGE(error.text);
}

static inline void builder_free(builder *b)
{
    for (uint32_t i = 0; i < b->sections.len; i++)
        free(b->sections.data[i].bytes);
    vec_free(&b->sections);
    vec_free(&b->segments);
    vec_free(&b->strings);
    vec_free(&b->names);
    vec_free(&b->symbols);
    free(b->bytes);
    *b = (builder){0};
}

#define R(offset, symbol, type, addend)                                                                                \
    {                                                                                                                  \
        offset, ELF64_R_INFO((uint64_t)(symbol), type), addend                                                         \
    }

#endif
