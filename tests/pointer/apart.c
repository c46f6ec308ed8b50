/* What is apart in the program and was one thing to the analysis: tests/pointer/test_apart.sh names the objects that each function
 * must and must not be said to access. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noipa))

/* --- an index of an array member, with the constant added last --------------------------------------------------------------- */

typedef struct {
    long hits, misses;
} counter;

typedef struct {
    int *before;
    counter counters[64];
    int *behind;
} worker;

worker *workers;
int before_value, behind_value;

APART void count(worker *w, int i)
{
    w->counters[i].hits++;
}

APART void touch_before(worker *w)
{
    *w->before = 1;
}

APART void touch_behind(worker *w)
{
    *w->behind = 1;
}

/* --- arguments on the stack ---------------------------------------------------------------------------------------------------- */

int first_object, second_object;

APART void take_first(long a, long b, long c, long d, long e, long f, int *on_stack)
{
    *on_stack = (int)(a + b + c + d + e + f);
}

APART void take_second(long a, long b, long c, long d, long e, long f, int *on_stack)
{
    *on_stack = (int)(a - b - c - d - e - f);
}

APART void pass_both(void)
{
    take_first(1, 2, 3, 4, 5, 6, &first_object);
    take_second(1, 2, 3, 4, 5, 6, &second_object);
}

/* --- small functions as if inlined ---------------------------------------------------------------------------------------------- */

typedef struct node {
    struct node *next;
    int *value;
} node;

typedef struct {
    node *head;
} list;

list one_list, other_list;
node one_node, other_node;
int one_value, other_value;

APART void list_add(list *l, node *n)
{
    n->next = l->head;
    l->head = n;
}

APART void walk_one(void)
{
    for (node *n = one_list.head; n; n = n->next)
        *n->value = 1;
}

APART void walk_other(void)
{
    for (node *n = other_list.head; n; n = n->next)
        *n->value = 1;
}

/* --- text that is looked at ------------------------------------------------------------------------------------------------------- */

char source[64], *cursor;
union {
    char text[64];
    int *pointer;
} target;
int never;

APART void copy_word(char *to, const char *from)
{
    while (*from != ' ' && *from)
        *to++ = *from++;
    *to = 0;
}

APART void touch_target(void)
{
    if (target.pointer) *target.pointer = 1;
}

int main(int argc, char **argv)
{
    (void)argv;
    workers = calloc((size_t)argc + 1, sizeof *workers);
    workers[argc].before = &before_value;
    workers[argc].behind = &behind_value;
    count(&workers[argc], argc % 64);
    touch_before(&workers[argc]);
    touch_behind(&workers[argc]);
    pass_both();
    one_node.value = &one_value;
    other_node.value = &other_value;
    list_add(&one_list, &one_node);
    list_add(&other_list, &other_node);
    walk_one();
    walk_other();
    memcpy(source, &(int *){&never}, sizeof(int *));
    source[0] = 0;
    copy_word(target.text, source);
    memset(&target, 0, sizeof target);
    touch_target();
    return 0;
}
