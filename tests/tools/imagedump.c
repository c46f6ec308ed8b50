/* Prints facts of an image in the words of binutils, one per line, so that a script can compare them:
 *
 *   imagedump symbols FILE    address name            imagedump fdes FILE    start end
 *   imagedump plts FILE       address name            imagedump rows FILE    address cfa RULE, address register RULE
 *   imagedump relocs FILE     address value           imagedump pads FILE    start end pad
 *   imagedump lines FILE      reads addresses, prints file:line of each
 *   imagedump frames FILE     reads addresses, prints function and file:line of each frame as addr2line -afi does */
#include "static/image/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void symbols(const image *img)
{
    for (uint32_t i = 0; i < img->symbol_count; i++)
        printf("%016" PRIx64 " %s\n", img->symbols[i].addr, img->symbols[i].name);
}

static void plts(const image *img)
{
    for (uint32_t i = 0; i < img->plt_count; i++) {
        const image_plt *p = &img->plts[i];
        if (*p->name)
            printf("%016" PRIx64 " %s\n", p->addr, p->name);
        else
            printf("%016" PRIx64 " *ABS*+0x%" PRIx64 "\n", p->addr, p->target);
    }
}

/* What the loader puts into the word: the address in hex, or the symbol. */
static void relocs(const image *img)
{
    for (uint32_t i = 0; i < img->reloc_count; i++) {
        const image_reloc *r = &img->relocs[i];
        if (r->kind == IMAGE_REL_GUESS) continue;
        printf("%016" PRIx64 " ", r->addr);
        if (r->name)
            printf("%s\n", r->name);
        else
            printf("%" PRIx64 "\n", r->target);
    }
}

static void fdes(const image *img)
{
    for (uint32_t i = 0; i < img->fde_count; i++)
        printf("%016" PRIx64 " %016" PRIx64 "\n", img->fdes[i].start, img->fdes[i].end);
}

static void pads(const image *img)
{
    for (uint32_t i = 0; i < img->pad_count; i++)
        printf("%" PRIx64 " %" PRIx64 " %" PRIx64 "\n", img->pads[i].start, img->pads[i].end, img->pads[i].pad);
}

static const char *const REGISTERS[IMAGE_UNWIND_REGS] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                                         "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};

static void rows(const image *img)
{
    for (uint32_t i = 0; i < img->fde_count; i++) {
        image_unwind_row *all;
        uint32_t count = image_unwind_rows(img, &img->fdes[i], &all);
        if (!count) printf("%016" PRIx64 " unreadable\n", img->fdes[i].start);
        for (uint32_t k = 0; k < count; k++) {
            const image_unwind_row *row = &all[k];
            printf("%016" PRIx64 " cfa ", row->addr);
            if (row->cfa_reg < 0)
                puts("exp");
            else
                printf("%s%+d\n", REGISTERS[row->cfa_reg], row->cfa_off);
            for (int reg = 0; reg < IMAGE_UNWIND_REGS; reg++) {
                if (row->saved[reg] == IMAGE_UNWIND_UNSAVED) continue;
                printf("%016" PRIx64 " %s ", row->addr, REGISTERS[reg]);
                if (row->saved[reg] == IMAGE_UNWIND_COMPLEX)
                    puts("exp");
                else
                    printf("c%+d\n", row->saved[reg]);
            }
        }
        free(all);
    }
}

static void print_line(const image_line *line)
{
    if (!line->file)
        puts("??:0");
    else if (!line->line)
        printf("%s:?\n", line->file);
    else
        printf("%s:%u\n", line->file, line->line);
}

static void lines(const image *img)
{
    uint64_t addr;
    while (scanf("%" SCNx64, &addr) == 1) {
        image_line line;
        image_line_at(img, addr, &line);
        print_line(&line);
    }
}

static void frames(const image *img)
{
    uint64_t addr;
    while (scanf("%" SCNx64, &addr) == 1) {
        image_frame all[64];
        uint32_t count = image_frames_at(img, addr, all, 64);
        printf("0x%016" PRIx64 "\n", addr);
        for (uint32_t i = 0; i < count; i++) {
            puts(all[i].function);
            print_line(&all[i].at);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(const image *);
    } facts[] = {{"symbols", symbols}, {"plts", plts}, {"relocs", relocs}, {"fdes", fdes},
                 {"pads", pads},       {"rows", rows}, {"lines", lines},   {"frames", frames}};
    race_error error;
    image *img;
    if (argc != 3) return 2;
    if (image_open(argv[2], &img, &error)) {
        fprintf(stderr, "imagedump: %s\n", error.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(facts[i].name, argv[1]) == 0) facts[i].print(img);
    image_close(img);
    return 0;
}
