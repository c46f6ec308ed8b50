/* Pointers into the middle of many buffers, which hold pointers to each other and to functions: what test_law.sh edits with a
 * low threshold for wild pointers, so that loads, stores and calls go through them. */
#include <stdlib.h>
#include <string.h>

typedef struct node {
    struct node *next;
    int (*run)(struct node *);
    char *text;
} node;

static char first[256], second[256], third[256], fourth[256];
static node *shelf[8];
static volatile int sum;

static int quiet(node *n)
{
    return n->text[0];
}

static int loud(node *n)
{
    n->text[1]++;
    return n->next ? n->next->run(n->next) : 0;
}

static char *somewhere(char *in, int at)
{
    return in + at * at;
}

static node *make(char *in, int at, int (*run)(node *))
{
    node *n = (node *)somewhere(in, at);
    n->run = run;
    n->text = somewhere(in, at + 1);
    n->next = shelf[at & 7];
    return n;
}

int main(int argc, char **argv)
{
    char *heap = malloc((size_t)argc * 100 + 200), *more = calloc((size_t)argc + 7, 33);
    char *all[] = {first, second, third, fourth, heap, more, argv[0]};
    for (int i = 0; i < 6; i++) {
        node *n = make(all[(i * argc) % 6], argc, i & 1 ? loud : quiet);
        shelf[i & 7] = n;
        if (n->next) memcpy(all[i], n->next->text, (size_t)argc);
    }
    for (int i = 0; i < 8; i++)
        if (shelf[i]) sum += shelf[i]->run(shelf[i]);
    free(heap);
    free(more);
    return 0;
}
