/* Code in the style of compilers that are not C's: no frame descriptions, tails that functions share, continuations whose
 * addresses are stored as numbers and jumped to later. Each place that something leads to lies right behind a short access
 * of code that knows nothing of it, so that five bytes written over the access would cover it.
 *
 * Prints what it computes. */
#include <stdio.h>

long run(long *cells, long rounds);
long cells[8] = {1, 2, 3, 4, 5, 6, 7, 8};
void *slot;

/* rdi: cells; rax: the sum; rsi: rounds; r8: where to go on */
__asm__(".text\n .p2align 4\n .globl run\n .type run, @function\nrun:\n"
        " xor %eax, %eax\n"
        "1: movq $4f, slot(%rip)\n" /* an immediate beside an address: the middle of `first` */
        " movq $run_back, %r8\n"
        " test $1, %sil\n je 2f\n"
        " jmp first\n"
        "2: test $2, %sil\n je 3f\n"
        " jmp *slot(%rip)\n"
        "3: jmp second\n"
        " .p2align 4\nrun_back:\n"
        " dec %rsi\n jne 1b\n ret\n"
        " .size run, . - run\n"
        /* Falls through the place that `slot` points to. */
        " .p2align 4\nfirst:\n"
        " add (%rdi), %eax\n"      /* two bytes */
        "4: add $5, %rax\n"
        " add 8(%rdi), %rax\n"
        " jmp *%r8\n"
        /* Shares a tail with `third`, which jumps into its middle. */
        " .p2align 4\nsecond:\n"
        " test $4, %sil\n jne third\n"
        " add 16(%rdi), %eax\n"    /* three bytes */
        "5: inc %eax\n"
        " add 24(%rdi), %rax\n"
        " jmp *%r8\n"
        " .p2align 4\n .globl third\n .type third, @function\nthird:\n"
        " add 32(%rdi), %rax\n"
        " add $7, %rax\n"
        " jmp 5b\n"
        " .size third, . - third\n");

int main(void)
{
    printf("%ld\n", run(cells, 1000));
    return 0;
}
