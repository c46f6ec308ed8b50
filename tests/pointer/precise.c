/* Where a declaration or the code around a call tells more than a register or a word does: tests/pointer/test_precise.sh names the
 * objects that each function must not be said to access. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noipa))

/* --- leavings in registers ------------------------------------------------------------------------------------------------- */

int left_second, left_argument, passed;
void (*volatile hook)(int *, int *, int *);
void leaver(void);
void asker(int *);
void relay(int *, int *);
void starter(void);

/* leaver ends with a pointer in rdx, which asker has in it at a call of another function. relay takes two arguments, as starter
 * shows, and hands on to a pointer whatever is in rdx. */
__asm__(".text\n"
        ".globl leaver\n"
        ".type leaver, @function\n"
        "leaver: lea left_second(%rip), %rdx\n"
        "movl $1, (%rdx)\n"
        "xor %eax, %eax\n"
        "ret\n"
        ".size leaver, . - leaver\n"
        ".globl asker\n"
        ".type asker, @function\n"
        "asker: push %rbx\n"
        "mov %rdi, %rbx\n"
        "call leaver\n"
        "mov %rbx, %rdi\n"
        "mov %rbx, %rsi\n"
        "call *hook(%rip)\n"
        "pop %rbx\n"
        "ret\n"
        ".size asker, . - asker\n"
        ".globl relay\n"
        ".type relay, @function\n"
        "relay: push %rbx\n"
        "call *hook(%rip)\n"
        "pop %rbx\n"
        "ret\n"
        ".size relay, . - relay\n"
        ".globl starter\n"
        ".type starter, @function\n"
        "starter: push %rbx\n"
        "call leaver\n"
        "lea passed(%rip), %rdi\n"
        "mov %rdi, %rsi\n"
        "call relay\n"
        "lea left_argument(%rip), %rdx\n"
        "movl $1, (%rdx)\n"
        "lea passed(%rip), %rdi\n"
        "mov %rdi, %rsi\n"
        "call relay\n"
        "pop %rbx\n"
        "ret\n"
        ".size starter, . - starter\n");

APART void third(int *a, int *b, int *c)
{
    if (a != b) *c = 1;
}

/* --- members --------------------------------------------------------------------------------------------------------------- */

typedef struct {
    unsigned char *text;
    size_t length;
    struct { int *p; long n; } few[4];
    int *owner;
} packet;

packet *packets[2];
int element, owned;

APART packet *new_packet(size_t size) /* of a size that tells nothing */
{
    packet *p = malloc(size);
    p->owner = &owned;
    return p;
}

APART void put_element(packet *p, long i)
{
    p->few[i].p = &element;
}

APART void touch_element(packet *p, long i)
{
    *p->few[i].p = 1;
}

APART void touch_owner(packet *p)
{
    *p->owner = 1;
}

/* --- an allocator behind a pointer ------------------------------------------------------------------------------------------- */

void *(*allocate)(size_t) = malloc;

APART int *new_box(void)
{
    int *box = allocate(64);
    if (!box) abort();
    return box;
}

APART void touch_box(int *box)
{
    *box = 1;
}

APART void touch_other_box(int *box)
{
    *box = 2;
}

/* --- an allocator that makes no object of size zero, called for one of two structs of the same size ----------------------------- */

typedef struct {
    long kind;
    int *slots[16];
    int *keeper;
} shelf;

typedef struct {
    int *keeper;
    int *slots[16];
    long kind;
} desk;

int kept, keeper, other_keeper;
shelf *shelves;
desk *desks;

APART void *make(size_t size)
{
    void *made = malloc(size ? size : sizeof(long));
    if (!made) abort();
    return made;
}

/* What the index leads through is known by what was made, not by how it is passed. */
APART void put(void *slots, int i)
{
    ((int **)slots)[i] = &kept;
}

APART void touch_keeper(shelf *s)
{
    *s->keeper = 1;
}

/* --- text that a compiler copies in words ---------------------------------------------------------------------------------------- */

typedef struct {
    unsigned char length;
    int *hidden; /* behind which the text begins, without being declared */
} packed;

typedef struct {
    long kind;
    char text[256];
    int *sender;
} message;

int hidden, sender;
packed *packs[2];
message *messages[2];

APART void unpack(message *m, packed *p)
{
    memcpy(m->text, &p->hidden, p->length);
}

APART void touch_sender(message *m)
{
    *m->sender = 1;
}

int main(int argc, char **argv)
{
    size_t size = (size_t)atoi(argv[0]) + sizeof(packet);
    hook = third;
    asker(&passed);
    starter();
    if (argc > 9) hook(&passed, &left_second, malloc(4));
    packet *p = packets[0] = new_packet(size);
    for (int i = 0; i < 4; i++)
        put_element(p, i);
    touch_element(p, argc & 3);
    touch_owner(p);
    touch_box(new_box());
    touch_other_box(new_box());
    shelves = make(sizeof *shelves);
    shelves->keeper = &keeper;
    desks = make(sizeof *desks);
    desks->keeper = &other_keeper;
    put(shelves->slots, argc);
    touch_keeper(shelves);
    packed *pack = packs[0] = malloc(size);
    message *m = messages[0] = malloc(size + 1);
    if (!pack || !m) abort();
    pack->hidden = &hidden;
    m->sender = &sender;
    unpack(m, pack);
    touch_sender(m);
    return 0;
}
