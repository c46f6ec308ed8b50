/* Takes a statement out of an object file, for tests of incremental analysis:
 *
 *   objedit IN OUT SEED   one access to memory outside of the frame, or one call, chosen by the seed, becomes nops, and its
 *                         relocations nothing. Prints the function and the place of the instruction in it.
 *
 * Exit code 1: the object has no such instruction. */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "static/lift/lift.h"

typedef struct {
    const lift_func *func;
    uint64_t addr;
    uint8_t len;
} candidate;
typedef VEC(candidate) candidates;

static void collect(const lift_module *m, candidates *out)
{
    for (uint32_t f = 0; f < m->func_count; f++) {
        const lift_func *func = m->funcs[f];
        uint32_t last = UINT32_MAX;
        for (ir_value v = 1; func->ir && v < func->ir->insn_count; v++) {
            const ir_insn *insn = &func->ir->insns[v];
            bool call = insn->op == IR_CALL, access = insn->op == IR_ACCESS && !(insn->flags & (IR_FRAME | IR_IMPLICIT));
            const lift_insn *machine = &func->insns[insn->insn];
            if ((!call && !access) || insn->insn == last || (machine->flow != FLOW_PLAIN && machine->flow != FLOW_CALL)) continue;
            last = insn->insn;
            vec_push(out, (candidate){func, machine->addr, machine->len});
        }
    }
}

/* Sections with code are laid out in the order of the file. */
static bool find_section(const image *img, Elf *elf, uint64_t addr, size_t *number, uint64_t *offset)
{
    size_t n = 0;
    uint32_t at = 0;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        GElf_Shdr h;
        n++;
        if (!gelf_getshdr(s, &h) || !(h.sh_flags & SHF_ALLOC) || !(h.sh_flags & SHF_EXECINSTR) || !h.sh_size) continue;
        while (at < img->section_count && !(img->sections[at].flags & IMAGE_X))
            at++;
        if (at == img->section_count) return false;
        const image_section *section = &img->sections[at++];
        if (addr < section->addr || addr >= section->addr + section->size) continue;
        *number = n;
        *offset = addr - section->addr;
        return section->size == h.sh_size;
    }
    return false;
}

static void drop_relocations(Elf *elf, uint8_t *bytes, size_t section, uint64_t from, uint64_t to)
{
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        GElf_Shdr h;
        if (!gelf_getshdr(s, &h) || h.sh_type != SHT_RELA || h.sh_info != section) continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= h.sh_size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela *rela = (Elf64_Rela *)(void *)(bytes + h.sh_offset + at);
            if (rela->r_offset >= from && rela->r_offset < to) rela->r_info = ELF64_R_INFO(0, R_X86_64_NONE);
        }
    }
}

static int edit(const char *in, const char *out, uint64_t seed)
{
    race_error error;
    image *img;
    if (image_open(in, &img, &error)) return fprintf(stderr, "objedit: %s\n", error.text), 2;
    lift_module *m = lift_open(img, &(lift_options){.jobs = 1});
    candidates all = {0};
    collect(m, &all);
    if (!all.len) return 1;
    candidate chosen = all.data[(seed * 0x9e3779b97f4a7c15u >> 20) % all.len];
    printf("%s+%#llx\n", chosen.func->name, (unsigned long long)(chosen.addr - chosen.func->entry));

    FILE *file = fopen(in, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return perror(in), 2;
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = base_alloc(size);
    if (fread(bytes, 1, size, file) != size) return perror(in), 2;
    fclose(file);
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)bytes, size);
    size_t section;
    uint64_t offset;
    if (!elf || !find_section(img, elf, chosen.addr, &section, &offset)) return fprintf(stderr, "objedit: %s: no section\n", in), 2;
    GElf_Shdr h;
    gelf_getshdr(elf_getscn(elf, section), &h);
    memset(bytes + h.sh_offset + offset, 0x90, chosen.len);
    drop_relocations(elf, bytes, section, offset, offset + chosen.len);
    elf_end(elf);
    file = fopen(out, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) return perror(out), 2;
    free(bytes);
    vec_free(&all);
    lift_close(m);
    image_close(img);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: objedit IN OUT SEED\n"), 2;
    return edit(argv[1], argv[2], strtoull(argv[3], NULL, 10));
}
