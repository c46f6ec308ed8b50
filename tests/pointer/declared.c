/* Arguments, results and members that a declaration or the code around a call tells of, where it must not be believed too much:
 * each function accesses an object that the analysis has to find. Run by tests/pointer/test_oracle.sh. */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone, noipa))
#ifdef __clang__
#undef APART
#define APART __attribute__((noinline, optnone))
#endif

typedef struct {
    int *first, *second;
} pair;

/* --- registers ------------------------------------------------------------------------------------------------------------ */

static int objects[16];
void (*volatile hook)(int, int *, int *);
void (*volatile late_hook)(int, int, int, int *);
int *(*volatile finder)(int, ...);

APART static void touch_third(int n, int *a, int *b)
{
    *a = n;
    *b = n + 1;
}

/* The second result goes on in its register to a callee that only a pointer knows. */
APART static pair make_pair(int *a, int *b)
{
    return (pair){a, b};
}

__attribute__((noinline)) static void pass_pair(int n)
{
    pair both = make_pair(malloc(4), malloc(4));
    hook(n, both.first, both.second);
}

/* All arguments are handed on as they came. */
__attribute__((noinline)) static void hand_on(int n, int *a, int *b)
{
    hook(n, a, b);
}

APART static void touch_fourth(int a, int b, int c, int *p)
{
    *p = a + b + c;
}

__attribute__((noinline)) static void pass_fourth(int *p)
{
    late_hook(0, 0, 0, p);
}

APART static int *last_of(int n, ...)
{
    va_list list;
    int *p = NULL;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        p = va_arg(list, int *);
    va_end(list);
    *p = n;
    return p;
}

/* --- members -------------------------------------------------------------------------------------------------------------- */

typedef struct {
    long count;
    uintptr_t address; /* a number that holds one */
    union {
        uint64_t bits;
        int *pointer;
    };
    char raw[24];
    struct { int *p; long n; } few[3];
    int *last[1]; /* longer than declared */
} record;

APART static record *make_record(int more)
{
    return calloc(1, sizeof(record) + (size_t)more * sizeof(int *));
}

APART static void put_few(record *r, int i, int *p)
{
    r->few[i].p = p;
}

APART static void touch_few(record *r, int i)
{
    *r->few[i + 1].p = i;
}

APART static void put_last(record *r, int i, int *p)
{
    r->last[i] = p;
}

APART static void touch_last(record *r, int i)
{
    *r->last[i] = i;
}

APART static void put_others(record *r)
{
    int *p = malloc(8), *q = malloc(8), *s = malloc(8);
    r->address = (uintptr_t)p;
    r->bits = (uint64_t)(uintptr_t)q;
    memcpy(r->raw + 8, &s, sizeof s);
}

APART static void touch_others(record *r)
{
    int *s;
    *(int *)r->address = 1;
    *r->pointer = 2;
    memcpy(&s, r->raw + 8, sizeof s);
    *s = 3;
}

/* Bytes are copied one by one, whatever they are. */
APART static void copy_bytes(char *to, const char *from, long n)
{
    while (n--)
        *to++ = *from++;
}

/* A struct is reached through a pointer that is declared as another one. */
typedef struct {
    record *next;
    int *mine;
} other;

APART static void touch_other(record *r)
{
    *((other *)r)->mine = 4;
}

int main(int argc, char **argv)
{
    (void)argv;
    hook = touch_third;
    late_hook = touch_fourth;
    finder = last_of;
    pass_pair(argc);
    hand_on(argc, malloc(4), &objects[1]);
    hand_on(argc, &objects[2], malloc(4));
    pass_fourth(malloc(4));
    *finder(3, &objects[3], &objects[4], malloc(4)) = 1;
    *finder(7, &objects[3], &objects[4], &objects[5], &objects[6], &objects[7], &objects[8], malloc(4)) = 1;

    record *r = make_record(3), copy;
    for (int i = 0; i < 3; i++)
        put_few(r, i, malloc(4));
    touch_few(r, argc - 2);
    touch_few(r, argc);
    for (int i = 0; i < 4; i++)
        put_last(r, i, malloc(4));
    for (int i = 0; i < 4; i++)
        touch_last(r, i);
    put_others(r);
    touch_others(r);
    copy_bytes((char *)&copy, (char *)r, sizeof copy);
    touch_others(&copy);
    touch_few(&copy, argc);
    other *o = malloc(sizeof(record));
    o->mine = malloc(4);
    touch_other((record *)o);
    return 0;
}
