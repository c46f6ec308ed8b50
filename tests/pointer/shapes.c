/* Shapes of code that compilers make of real programs and that were once misread, as the machine sees them: each function
 * accesses an object that the analysis has to find. Run by tests/pointer/test_oracle.sh. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void *kept;           /* through memory, so that the value is seen in one function only where it is computed */

long twice(long n);
void after_loop(char *base, long index, char *last);
void balanced(char *p, long k);
void fenced(void);
long cleared(void);
void rounded(char *p);
void leftover(char *to, const char *from, long n);

/* gcc: a pointer ends its life in rax, which in the loop behind it has numbers; rax goes into the call as it is. */
__asm__(".text\n"
        ".globl twice\n"
        ".type twice, @function\n"
        "twice: lea (%rdi, %rdi), %rax\n"
        "ret\n"
        ".size twice, . - twice\n"
        ".globl after_loop\n"
        ".type after_loop, @function\n"
        "after_loop: push %rbx\n"
        "xor %ebx, %ebx\n"
        "lea (%rdi, %rsi), %rax\n"
        "cmp %rax, %rdx\n"
        "jb 2f\n"
        "mov %rdx, kept(%rip)\n"
        "1: mov $3, %edi\n"
        "call twice\n"
        "add %ebx, %eax\n"
        "mov %eax, %ebx\n"
        "cmp $20, %ebx\n"
        "jb 1b\n"
        "2: pop %rbx\n"
        "ret\n"
        ".size after_loop, . - after_loop\n");

/* gcc -O2, liblzma: 2 * (p + 4 * k) - p - 8 * k */
__asm__(".globl balanced\n"
        ".type balanced, @function\n"
        "balanced: lea (, %rsi, 4), %rdx\n"
        "neg %rsi\n"
        "shl $3, %rsi\n"
        "lea (%rdi, %rdx), %rax\n"
        "lea 64(%rax), %rdx\n"
        "sub %rdi, %rsi\n"
        "1: mov 4(%rax), %r8d\n"
        "lea (%rsi, %rax, 2), %rcx\n"
        "add $16, %rax\n"
        "mov %r8d, 8(%rcx)\n"
        "cmp %rax, %rdx\n"
        "jne 1b\n"
        "ret\n"
        ".size balanced, . - balanced\n");

/* sqlite3MemoryBarrier: a locked access to the return address. */
__asm__(".globl fenced\n"
        ".type fenced, @function\n"
        "fenced: lock orq $0, (%rsp)\n"
        "ret\n"
        ".size fenced, . - fenced\n");

/* gcc -O2, memcached: a buffer in the frame is cleared from its first whole word on. */
__asm__(".globl cleared\n"
        ".type cleared, @function\n"
        "cleared: push %rbp\n"
        "mov %rsp, %rbp\n"
        "sub $256, %rsp\n"
        "lea 8(%rsp), %rdi\n"
        "and $-8, %rdi\n"
        "xor %eax, %eax\n"
        "mov $16, %ecx\n"
        "rep stosq\n"
        "mov 16(%rsp), %rax\n"
        "leave\n"
        "ret\n"
        ".size cleared, . - cleared\n");

/* What is stored at an aligned place of the frame is read relative to the stack pointer. */
__asm__(".globl rounded\n"
        ".type rounded, @function\n"
        "rounded: sub $120, %rsp\n"
        "lea 31(%rsp), %rax\n"
        "and $-16, %rax\n"
        "mov %rdi, (%rax)\n"
        "mov 16(%rsp), %rdx\n"
        "movb $1, (%rdx)\n"
        "add $120, %rsp\n"
        "ret\n"
        ".size rounded, . - rounded\n");

/* gcc -O2, redis: `setz %sil` keeps the upper bytes of what was a pointer on one way and a number on the other; the pointer
 * itself has moved to r8. */
__asm__(".globl leftover\n"
        ".type leftover, @function\n"
        "leftover: mov %rsi, %r8\n"
        "xor %ecx, %ecx\n"
        "test %rdx, %rdx\n"
        "je 2f\n"
        "1: mov %edx, %esi\n"
        "shr $3, %esi\n"
        "movzbl (%r8, %rcx), %eax\n"
        "add $1, %rcx\n"
        "cmp %rdx, %rcx\n"
        "jb 1b\n"
        "2: cmp %rcx, %rdx\n"
        "setz %sil\n"
        "mov %sil, (%rdi)\n"
        "ret\n"
        ".size leftover, . - leftover\n");

__attribute__((noinline)) static void write_kept(void)
{
    *(char *)kept = 1;
}

/* The constant part of `pairs[n - 2]` lies in one of the variables before it. */
struct pair {
    long first, second;
};

__attribute__((noipa)) static void fill(struct pair *pairs, long *a, long *b, long *c, long *d)
{
    for (int i = 0; i < 24; i++)
        pairs[i] = (struct pair){i, i};
    *a = *b = *c = *d = 1;
}

__attribute__((noinline)) static long before_start(long n)
{
    long a, b, c, d;
    struct pair pairs[24];
    fill(pairs, &a, &b, &c, &d);
    return pairs[n - 2].first + a + b + c + d;
}

/* sqlite3: the rest of a struct from one of its members on, cleared and copied as one. */
struct parts {
    long head;
    struct pair first[8];
    long middle[10];
    char *last[90];
};

__attribute__((noinline)) static void clear_rest(struct parts *to)
{
    memset(&to->first, 0, sizeof *to - offsetof(struct parts, first));
}

__attribute__((noinline)) static void copy_rest(struct parts *to, const struct parts *from)
{
    memcpy(&to->first, &from->first, sizeof *to - offsetof(struct parts, first));
}

__attribute__((noinline)) static void write_last(struct parts *p, int at)
{
    *p->last[at] = 1;
}

static struct parts parts[2];

__attribute__((noinline)) static void rest(char *object, int at)
{
    struct parts local;
    parts[0].last[at] = object;
    clear_rest(&local);
    copy_rest(&local, &parts[0]);
    write_last(&local, at);
    clear_rest(&parts[1]);
}

/* flac: a struct on the stack that is larger than what arguments as a rule are, read by the callee and by one that gets its
 * address. */
struct options {
    char *places[150];
};

__attribute__((noipa)) static void write_option(const struct options *o, int at)
{
    *o->places[at] = 1;
}

__attribute__((noipa)) static void by_value(struct options o, int at)
{
    *o.places[120] = 1;
    write_option(&o, at);
}

__attribute__((noipa)) static void only_address(struct options o, int at)
{
    write_option(&o, at);
}

__attribute__((noinline)) static void options(char *object, int at)
{
    struct options o;
    for (int i = 0; i < 150; i++)
        o.places[i] = object + i;
    by_value(o, at);
    o.places[149] = object;
    only_address(o, at);
}

int main(int argc, char **argv)
{
    (void)argv;
    char *object = calloc(1, 1000);
    if (!object) return 1;
    after_loop(object, argc, object + 100);
    write_kept();
    balanced(object, argc);
    fenced();
    if (cleared()) return 2;
    rounded(object);
    leftover(object, object + 10, argc + 3);
    rest(object, argc + 70);
    options(object, argc + 140);
    return before_start(argc + 5) != 8;
}
