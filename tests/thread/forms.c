/* One access in a form of your choice, and one byte that another thread writes: do they race?
 *
 *   forms LIST             prints, per form and interesting byte, `FORM BYTE race|none`
 *   forms FORM BYTE        does it
 *
 * Nothing orders the two threads, so there is a race if and only if the byte is one of those the form accesses. Built
 * without -pie: one form needs addresses below 4 GB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 256, BASE = 64 };
static _Alignas(64) unsigned char buffer[SIZE];
static unsigned char other[SIZE];
static volatile unsigned char *touched;
static const struct form *chosen;

#define AT (buffer + BASE)

static void nothing(void) {}

static void load_unaligned(void)
{
    long x;
    __asm__ volatile("movq 1(%1), %0" : "=r"(x) : "r"(AT) : "memory");
}
static void store_indexed(void)
{
    __asm__ volatile("movq %1, (%0,%2,8)" : : "r"(AT), "r"(7L), "r"(2L) : "memory");
}
static void vector_store(void)
{
    __asm__ volatile("movups %%xmm0, 3(%0)" : : "r"(AT) : "memory");
}
static void scalar_load(void)
{
    __asm__ volatile("movss 4(%0), %%xmm1" : : "r"(AT) : "xmm1");
}
static void x87_store(void)
{
    __asm__ volatile("fldz\n\tfstpt (%0)" : : "r"(AT) : "memory");
}
static void fill(void)
{
    void *to = AT;
    long count = 10;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
}
static void fill_nothing(void)
{
    void *to = AT;
    long count = 0;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
}
static void copy_from(void)
{
    const void *from = AT;
    void *to = other;
    long count = 5;
    __asm__ volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}
static void copy_down(void)
{
    const void *from = other + 64;
    void *to = AT + 16;
    long count = 3;
    __asm__ volatile("std\n\trep movsq\n\tcld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}
static void search(void)
{
    const void *in = AT;
    long count = 50;
    __asm__ volatile("repne scasb" : "+D"(in), "+c"(count) : "a"(0xee) : "memory", "cc");
}
static void compare(void)
{
    const void *one = AT, *two = other;
    long count = 50;
    __asm__ volatile("repe cmpsb" : "+S"(one), "+D"(two), "+c"(count) : : "memory", "cc");
}
static void move_one(void)
{
    const void *from = other;
    void *to = AT;
    __asm__ volatile("movsw" : "+D"(to), "+S"(from) : : "memory");
}
static void set_bit(void)
{
    __asm__ volatile("btsq %1, (%0)" : : "r"(AT), "r"(130L) : "memory", "cc");
}
static void set_bit_before(void)
{
    __asm__ volatile("btsl %1, (%0)" : : "r"(AT), "r"(-1) : "memory", "cc");
}
static void short_address(void)
{
    __asm__ volatile("movw $1, (%k0)" : : "r"(AT) : "memory");
}
static void by_segment(void)
{
    long base;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(base));
    __asm__ volatile("movl $1, %%fs:(%0)" : : "r"((long)AT - base) : "memory");
}
static void push_pop(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushq (%0)\n\tpopq 8(%0)\n\tleaq 128(%%rsp), %%rsp"
                     :
                     : "r"(AT)
                     : "memory");
}
static void exchange_that_fails(void)
{
    long wanted = 77;
    __asm__ volatile("cmpxchgq %1, (%2)" : "+a"(wanted) : "r"(5L), "r"(AT) : "memory", "cc");
}
static void call_through(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tcall *(%0)\n\tleaq 128(%%rsp), %%rsp"
                     :
                     : "b"(AT)
                     : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}

static const struct form {
    const char *name;
    void (*access)(void);
    int first, end; /* bytes, from BASE */
} forms[] = {
    {"load_unaligned", load_unaligned, 1, 9},
    {"store_indexed", store_indexed, 16, 24},
    {"vector_store", vector_store, 3, 19},
    {"scalar_load", scalar_load, 4, 8},
    {"x87_store", x87_store, 0, 10},
    {"fill", fill, 0, 10},
    {"fill_nothing", fill_nothing, 0, 0},
    {"copy_from", copy_from, 0, 20},
    {"copy_down", copy_down, 0, 24},
    {"search", search, 0, 6},
    {"compare", compare, 0, 8},
    {"move_one", move_one, 0, 2},
    {"set_bit", set_bit, 16, 24},
    {"set_bit_before", set_bit_before, -4, 0},
    {"short_address", short_address, 0, 2},
    {"by_segment", by_segment, 0, 4},
    {"push_pop", push_pop, 0, 16},
    {"exchange_that_fails", exchange_that_fails, 0, 8},
    {"call_through", call_through, 0, 8},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void *access_form(void *argument)
{
    (void)argument;
    chosen->access();
    return NULL;
}

static void *touch(void *argument)
{
    (void)argument;
    *touched = *touched; /* what is there stays */
    return NULL;
}

static void list(void)
{
    for (int i = 0; i < FORMS; i++) {
        const struct form *f = &forms[i];
        const int bytes[] = {f->first - 1, f->first, f->end - 1, f->end};
        for (int k = 0; k < 4; k++)
            printf("%s %d %s\n", f->name, bytes[k], bytes[k] >= f->first && bytes[k] < f->end ? "race" : "none");
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        list();
        return 0;
    }
    for (int i = 0; i < FORMS; i++)
        if (!strcmp(forms[i].name, argv[1])) chosen = &forms[i];
    if (!chosen) return 2;
    touched = AT + atoi(argv[2]);
    void (*function)(void) = nothing;
    memset(buffer, 0, sizeof buffer);
    if (chosen->access == call_through) memcpy(AT, &function, sizeof function);
    if (chosen->access == search) AT[5] = 0xee;
    other[7] = 1; /* where the comparison ends */
    pthread_t one, two;
    if (pthread_create(&one, NULL, access_form, NULL) || pthread_create(&two, NULL, touch, NULL)) return 2;
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
