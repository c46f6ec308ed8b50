/* Random code, for test_blocks.sh: prints assembler functions block_0, block_1, ... and a table of them.
 *
 *   blocks SEED COUNT
 *
 * Each is a straight line with a few short jumps forwards, of loads and stores of all sizes through a few registers
 * that point into the caller's buffer, between instructions that set and use flags and registers of all kinds, so that
 * at each access other registers are dead, and the flags are or are not. It takes all registers but rsp, and some of
 * the vector ones, from a block_state, and leaves all of them, and the flags, there (blocks_run.c). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { REGISTERS = 16, VECTORS = 4, RSP = 4, OFFSETS = 1024, SMALL = 16 };

static const char *const names[4][REGISTERS] = {
    {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"},
    {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w"},
    {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d",
     "r15d"},
    {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"},
};
static const char *const suffixes[] = {"b", "w", "l", "q"};
static const char *const conditions[] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
                                         "s", "ns", "p", "np", "l", "ge", "le", "g"};

static uint64_t state;
static unsigned pointers, indices; /* registers that still hold an address, or a small number */

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % below);
}

static unsigned draw_register(void)
{
    for (;;) {
        unsigned r = draw(REGISTERS);
        if (r != RSP) return r;
    }
}

static unsigned draw_of(unsigned set)
{
    for (;;) {
        unsigned r = draw(REGISTERS);
        if (set >> r & 1) return r;
    }
}

/* A register to be overwritten: one address stays. */
static unsigned draw_target(void)
{
    for (;;) {
        unsigned r = draw(4) ? draw_register() : 0;
        if (pointers == 1u << r) continue;
        pointers &= ~(1u << r);
        indices &= ~(1u << r);
        return r;
    }
}

static const char *memory(void)
{
    static char text[64];
    unsigned base = draw_of(pointers), at = draw(OFFSETS);
    if (draw(4)) at &= ~7u;
    if (indices && !draw(3))
        snprintf(text, sizeof text, "%u(%%%s,%%%s,%u)", at, names[3][base], names[3][draw_of(indices)], 1u << draw(4));
    else if (at || draw(2))
        snprintf(text, sizeof text, "%u(%%%s)", at, names[3][base]);
    else
        snprintf(text, sizeof text, "(%%%s)", names[3][base]);
    return text;
}

static void access_memory(void)
{
    const unsigned size = draw(4);
    const char *m = memory();
    switch (draw(9)) {
    case 0:
    case 1: /* what is overwritten only in part stays live */
        printf("        mov%s %s, %%%s\n", suffixes[size], m, names[size][draw_target()]);
        break;
    case 2:
        printf("        movz%sl %s, %%%s\n", suffixes[size & 1], m, names[2][draw_target()]);
        break;
    case 3:
        printf("        mov%s %%%s, %s\n", suffixes[size], names[size][draw_register()], m);
        break;
    case 4:
        printf("        mov%s $%u, %s\n", suffixes[size], draw(100), m);
        break;
    case 5:
        printf("        %s%s %%%s, %s\n", draw(2) ? "add" : "sbb", suffixes[size], names[size][draw_register()], m);
        break;
    case 6:
        printf("        cmp%s $%u, %s\n", suffixes[size], draw(100), m);
        break;
    case 7:
        printf("        movups %s, %%xmm%u\n", m, draw(VECTORS));
        break;
    default:
        printf("        movups %%xmm%u, %s\n", draw(VECTORS), m);
    }
}

static void use_registers(void)
{
    static const char *const two[] = {"add", "sub", "xor", "cmp", "test", "adc", "mov"};
    const unsigned kind = draw(7), size = 2 + draw(2);
    switch (draw(5)) {
    case 0:
    case 1: { /* the last of them overwrites all of it */
        const unsigned from = draw_register(), to = kind == 3 || kind == 4 ? draw_register() : draw_target();
        printf("        %s%s %%%s, %%%s\n", two[kind], suffixes[size], names[size][from], names[size][to]);
        break;
    }
    case 2:
        printf("        set%s %%%s\n", conditions[draw(16)], names[0][draw_target()]);
        break;
    case 3: {
        const unsigned from = draw_register();
        printf("        cmov%s %%%s, %%%s\n", conditions[draw(16)], names[3][from], names[3][draw_target()]);
        break;
    }
    default: {
        const unsigned base = draw_of(pointers), to = draw_target();
        printf("        lea %u(%%%s), %%%s\n", draw(SMALL), names[3][base], names[3][to]);
    }
    }
}

static void print_block(unsigned number)
{
    pointers = indices = 0;
    while (__builtin_popcount(pointers) < 4)
        pointers |= 1u << draw_register();
    while (__builtin_popcount(indices) < 2)
        indices |= 1u << draw_register();
    indices &= ~pointers;
    printf("        .type block_%u, @function\nblock_%u:\n        .cfi_startproc\n", number, number);
    printf("        .section .data.rel.ro\n        .quad block_%u, %u, %u\n        .text\n", number, pointers, indices);
    static const unsigned spared[] = {3, 5, 12, 13, 14, 15, 7}; /* rbx, rbp, r12 to r15; and the state */
    for (unsigned i = 0; i < 7; i++)
        printf("        push %%%s\n        .cfi_adjust_cfa_offset 8\n", names[3][spared[i]]);
    for (unsigned r = 0; r < REGISTERS; r++)
        if (r != RSP && r != 7) printf("        mov %u(%%rdi), %%%s\n", 8 * r, names[3][r]);
    for (unsigned x = 0; x < VECTORS; x++)
        printf("        movups %u(%%rdi), %%xmm%u\n", 8 * REGISTERS + 16 * x, x);
    printf("        mov 56(%%rdi), %%rdi\n");
    const unsigned length = 8 + draw(24);
    for (unsigned i = 0, label = 0; i < length; i++) {
        if (!draw(9) && i + 4 < length) {
            /* What is written on the way that is not taken is not lost: targets are counted as written. */
            printf("        j%s .L%u_%u\n", conditions[draw(16)], number, label);
            for (unsigned k = draw(3); k-- > 0;)
                access_memory();
            printf(".L%u_%u:\n", number, label++);
        } else if (draw(2)) {
            access_memory();
        } else {
            use_registers();
        }
    }
    printf("        pushfq\n        .cfi_adjust_cfa_offset 8\n        push %%rdi\n        .cfi_adjust_cfa_offset 8\n");
    printf("        mov 16(%%rsp), %%rdi\n");
    for (unsigned r = 0; r < REGISTERS; r++)
        if (r != RSP && r != 7) printf("        mov %%%s, %u(%%rdi)\n", names[3][r], 8 * r);
    for (unsigned x = 0; x < VECTORS; x++)
        printf("        movups %%xmm%u, %u(%%rdi)\n", x, 8 * REGISTERS + 16 * x);
    printf("        pop %%rax\n        .cfi_adjust_cfa_offset -8\n        mov %%rax, 56(%%rdi)\n");
    printf("        pop %%rax\n        .cfi_adjust_cfa_offset -8\n        mov %%rax, 32(%%rdi)\n");
    for (unsigned i = 7; i-- > 0;)
        printf("        pop %%%s\n        .cfi_adjust_cfa_offset -8\n", names[3][spared[i]]);
    printf("        ret\n        .cfi_endproc\n        .size block_%u, . - block_%u\n", number, number);
}

int main(int argc, char **argv)
{
    const unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    state = argc > 1 ? (uint64_t)atoll(argv[1]) : 1;
    draw(2);
    printf("        .section .data.rel.ro, \"aw\"\n        .globl blocks\nblocks:\n        .text\n");
    for (unsigned i = 0; i < count; i++)
        print_block(i);
    printf("        .section .data.rel.ro\n        .quad 0, 0, 0\n        .section .note.GNU-stack, \"\", @progbits\n");
    return 0;
}
