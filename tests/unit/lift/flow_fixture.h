/* Small ELF images for the tests of control flow: code at 0x1000, constants at 0x4000, data at 0x5000, with symbols and
 * frame descriptions as the test says. */
#ifndef RACE_TEST_FLOW_FIXTURE_H
#define RACE_TEST_FLOW_FIXTURE_H

#include "static/lift/lift.h"

#include <elf.h>
#include <stdlib.h>

enum { FIXTURE_TEXT = 0x1000, FIXTURE_RODATA = 0x4000, FIXTURE_DATA = 0x5000, FIXTURE_FRAMES = 0x6000 };

typedef struct {
    uint64_t addr, size;
    const char *name;
} fixture_symbol;

typedef struct {
    uint64_t start, end;
    uint8_t cfa; /* offset of the CFA from rsp at its first instruction: 8 for a function */
} fixture_frame;

typedef struct {
    const uint8_t *code;
    size_t code_size;
    uint8_t rodata[4096], data[4096];
    fixture_symbol symbols[16]; /* up to the first without name */
    fixture_frame frames[16];   /* up to the first with end 0 */
    bool fixed; /* linked at a fixed address: words of data may be pointers */
    uint8_t *file;
    image *img;
    lift_module *module;
} fixture;

static inline void fixture_word(uint8_t *at, uint64_t value, size_t size)
{
    memcpy(at, &value, size);
}

/* A table of distances from its own beginning, at an offset in .rodata. */
static inline void fixture_table32(fixture *f, size_t offset, const uint64_t *targets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fixture_word(f->rodata + offset + 4 * i, targets[i] - (FIXTURE_RODATA + offset), 4);
}

static inline void fixture_table64(fixture *f, size_t offset, const uint64_t *targets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fixture_word(f->rodata + offset + 8 * i, targets[i], 8);
}

/* .eh_frame: one CIE (CFA = rsp + 8), and an FDE for each frame. */
static inline size_t fixture_eh_frame(const fixture *f, uint8_t *out)
{
    static const uint8_t cie[] = {20, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
                                  1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
    size_t at = sizeof cie;
    memcpy(out, cie, sizeof cie);
    for (uint32_t i = 0; f->frames[i].end; i++, at += 20) {
        uint8_t fde[20] = {16};
        fixture_word(fde + 4, at + 4, 4);
        fixture_word(fde + 8, f->frames[i].start - (FIXTURE_FRAMES + at + 8), 4);
        fixture_word(fde + 12, f->frames[i].end - f->frames[i].start, 4);
        fde[17] = 0x0e; /* def_cfa_offset */
        fde[18] = f->frames[i].cfa;
        memcpy(out + at, fde, sizeof fde);
    }
    memset(out + at, 0, 4);
    return at + 4;
}

/* Makes the image and lifts it. */
static inline lift_module *fixture_lift(fixture *f, const lift_options *options)
{
    enum { TEXT = 1, RODATA, DATA, FRAMES, SYMTAB, STRTAB, NAMES, COUNT };
    static const char names[] = "\0.text\0.rodata\0.data\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
    uint8_t *file = calloc(1, 0x10000);
    uint8_t eh_frame[1024];
    size_t frames = f->frames[0].end ? fixture_eh_frame(f, eh_frame) : 0, strings = 1;
    Elf64_Sym symbols[17] = {0};
    char strtab[1024] = {0};
    uint32_t symbol_count = 1;
    for (; f->symbols[symbol_count - 1].name; symbol_count++) {
        const fixture_symbol *s = &f->symbols[symbol_count - 1];
        symbols[symbol_count] = (Elf64_Sym){.st_name = (uint32_t)strings,
                                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                            .st_shndx = TEXT,
                                            .st_value = s->addr,
                                            .st_size = s->size};
        strcpy(strtab + strings, s->name);
        strings += strlen(s->name) + 1;
    }
    Elf64_Shdr sections[COUNT] = {
        [TEXT] = {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FIXTURE_TEXT, 0x1000, f->code_size, 0, 0, 16, 0},
        [RODATA] = {7, SHT_PROGBITS, SHF_ALLOC, FIXTURE_RODATA, 0x4000, 4096, 0, 0, 16, 0},
        [DATA] = {15, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, FIXTURE_DATA, 0x5000, 4096, 0, 0, 16, 0},
        [FRAMES] = {21, frames ? SHT_PROGBITS : SHT_NULL, SHF_ALLOC, FIXTURE_FRAMES, 0x6000, frames, 0, 0, 8, 0},
        [SYMTAB] = {31, SHT_SYMTAB, 0, 0, 0x7000, symbol_count * sizeof *symbols, STRTAB, 1, 8, sizeof *symbols},
        [STRTAB] = {39, SHT_STRTAB, 0, 0, 0x8000, strings, 0, 0, 1, 0},
        [NAMES] = {47, SHT_STRTAB, 0, 0, 0x8800, sizeof names, 0, 0, 1, 0},
    };
    Elf64_Phdr segments[4] = {
        {PT_LOAD, PF_R | PF_X, 0x1000, FIXTURE_TEXT, FIXTURE_TEXT, f->code_size, f->code_size, 0x1000},
        {PT_LOAD, PF_R, 0x4000, FIXTURE_RODATA, FIXTURE_RODATA, 0x1000, 0x1000, 0x1000},
        {PT_LOAD, PF_R | PF_W, 0x5000, FIXTURE_DATA, FIXTURE_DATA, 0x1000, 0x1000, 0x1000},
        {PT_LOAD, PF_R, 0x6000, FIXTURE_FRAMES, FIXTURE_FRAMES, 0x1000, 0x1000, 0x1000},
    };
    Elf64_Ehdr head = {.e_type = f->fixed ? ET_EXEC : ET_DYN, .e_machine = EM_X86_64, .e_version = 1,
                       .e_entry = FIXTURE_TEXT, .e_phoff = 64, .e_shoff = 0x9000, .e_ehsize = 64, .e_phentsize = 56,
                       .e_phnum = 4, .e_shentsize = 64, .e_shnum = COUNT, .e_shstrndx = NAMES};
    memcpy(head.e_ident, ELFMAG "\2\1\1", 7);
    memcpy(file, &head, sizeof head);
    memcpy(file + 64, segments, sizeof segments);
    memcpy(file + 0x1000, f->code, f->code_size);
    memcpy(file + 0x4000, f->rodata, sizeof f->rodata);
    memcpy(file + 0x5000, f->data, sizeof f->data);
    memcpy(file + 0x6000, eh_frame, frames);
    memcpy(file + 0x7000, symbols, sizeof symbols);
    memcpy(file + 0x8000, strtab, sizeof strtab);
    memcpy(file + 0x8800, names, sizeof names);
    memcpy(file + 0x9000, sections, sizeof sections);
    race_error error;
    f->file = file;
    if (image_open_memory("fixture", file, 0x10000, &f->img, &error) < 0) abort();
    lift_options flow = options ? *options : (lift_options){.jobs = 1};
    flow.flow_only = true;
    f->module = lift_open(f->img, &flow);
    return f->module;
}

static inline void fixture_free(fixture *f)
{
    lift_close(f->module);
    image_close(f->img);
    free(f->file);
}

static inline const lift_block *fixture_block(const lift_func *f, uint64_t start)
{
    for (uint32_t b = 0; b < f->block_count; b++)
        if (f->blocks[b].start == start) return &f->blocks[b];
    return NULL;
}

/* The block that starts at `from` has an edge to the one at `to`. */
static inline bool fixture_has_edge(const lift_func *f, uint64_t from, uint64_t to, lift_edge_kind kind)
{
    const lift_block *b = fixture_block(f, from);
    for (uint32_t e = b ? b->first_succ : 0; b && e < b->first_succ + b->succ_count; e++)
        if (f->blocks[f->edges[e].to].start == to && f->edges[e].kind == kind) return true;
    return false;
}

#endif
