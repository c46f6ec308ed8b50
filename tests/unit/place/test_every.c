/* Placement on this very program: what is checked and how its address is written down, that a plan is sound and reads
 * back as it was made, and that the same input gives the same bytes. */
#include "static/place/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

/* Code that is looked at and never run. Each line is one instruction; `probe_calls` follows. */
__asm__(".text\n"
        ".globl probe_accesses\n"
        ".type probe_accesses, @function\n"
        "probe_accesses:\n"
        "   movq -16(%rdi,%rsi,8), %rax\n"             /* 0 */
        "   movb $1, (%r9)\n"                          /* 1 */
        "   addl $1, probe_data(%rip)\n"               /* 2 */
        "   rep stosq\n"                               /* 3 */
        "   repne scasb\n"                             /* 4 */
        "   movsl\n"                                   /* 5 */
        "   lock xaddl %eax, (%rdx)\n"                 /* 6 */
        "   xchgq %rax, 8(%rbx)\n"                     /* 7 */
        "   btsl %ecx, (%rdi)\n"                       /* 8 */
        "   movl %fs:probe_tls@tpoff, %eax\n"          /* 9 */
        "   movl (%esi), %eax\n"                       /* 10 */
        "   pushq (%rdi)\n"                            /* 11 */
        "   popq %rax\n"                               /* nothing */
        "   movq %rax, -8(%rsp)\n"                     /* nothing: its own frame */
        "   movq %fs:0x28, %rcx\n"                     /* nothing: the control block */
        "   movl probe_constant(%rip), %eax\n"         /* nothing: constant */
        "   nopw (%rdi)\n"                             /* nothing */
        "   leaq (%rdi,%rdi), %rax\n"                  /* nothing */
        "   vpgatherdd %xmm1, (%rdi,%xmm2,4), %xmm3\n" /* unplanned */
        "   maskmovdqu %xmm1, %xmm2\n"                 /* unplanned */
        "   movl probe_atomic(%rip), %eax\n"           /* 12 */
        "   movl %eax, probe_atomic(%rip)\n"           /* 13 */
        "   ret\n"
        ".size probe_accesses, . - probe_accesses\n"
        ".globl probe_calls\n"
        ".type probe_calls, @function\n"
        "probe_calls:\n"
        "   pushq %rax\n"
        "   call probe_accesses\n" /* 0: no action */
        "   call *16(%rdi)\n"      /* 1: a read */
        "   popq %rax\n"
        "   syscall\n"            /* 2: no action */
        "   ret\n"
        ".size probe_calls, . - probe_calls\n"
        ".globl probe_early\n"
        ".type probe_early, @function\n"
        "probe_early:\n"
        "   movq (%rdi), %rax\n"     /* 0: the first of its block */
        "   movq 8(%rdi), %rcx\n"    /* 1: from 0 on */
        "   movq (%rax), %rdx\n"     /* 2: 0 has changed its address */
        "   movq (%r9), %r8\n"       /* 3: from 0 on */
        "   pushq %rbx\n"
        "   movq 16(%rdi), %rbx\n"   /* 4: not before the push */
        "   popq %rbx\n"
        "   lock incl (%rsi)\n"      /* 5: an order, which never moves */
        "   movq 24(%rdi), %rax\n"   /* 6: not before the order */
        "   movb $1, (%rdi)\n"       /* 7: from 6 on */
        "   ret\n"
        ".size probe_early, . - probe_early\n"
        ".globl probe_shared\n"
        ".type probe_shared, @function\n"
        "probe_shared:\n"
        "   movl (%rdi), %eax\n"     /* 0: up to where probe_sharer jumps to */
        "1: movl (%rsi), %ecx\n"     /* 1: up to what a word of data points to */
        "2: movl 4(%rsi), %edx\n"    /* 2: all the rest */
        "   ret\n"
        ".size probe_shared, . - probe_shared\n"
        ".globl probe_sharer\n"
        ".type probe_sharer, @function\n"
        "probe_sharer:\n"
        "   xorl %eax, %eax\n"
        "   jmp 1b\n"
        ".size probe_sharer, . - probe_sharer\n"
        ".section .data.rel, \"aw\"\n"
        ".balign 8\n"
        ".quad 2b\n"
        ".text\n");
void probe_accesses(void);
void probe_calls(void);
void probe_early(void);
int probe_data = 1;
const int probe_constant = 2;
_Atomic int probe_atomic;
_Thread_local int probe_tls;

static image *img;
static lift_module *module;
static plan_draft draft;
static void *bytes;
static size_t size;
static plan p;

void setUp(void) {}
void tearDown(void) {}

/* The sites of a function, in order. */
static unsigned sites_of(const char *name, const plan_site **sites)
{
    const lift_func *func = lift_func_named(module, name);
    TEST_ASSERT_NOT_NULL_MESSAGE(func, name);
    unsigned n = 0;
    for (uint32_t i = 0; i < p.site_count; i++)
        if (p.sites[i].addr >= func->entry && p.sites[i].addr < func->end) {
            if (!n) *sites = &p.sites[i];
            n++;
        }
    return n;
}

typedef struct {
    unsigned flags, kind, base, index, scale, segment;
    int disp;
    unsigned access;
} wanted;

static void same_action(const plan_action *a, wanted w, int line)
{
    UNITY_TEST_ASSERT_EQUAL_INT(w.kind, a->kind, line, "kind");
    UNITY_TEST_ASSERT_EQUAL_INT(w.flags, a->flags, line, "flags");
    UNITY_TEST_ASSERT_EQUAL_INT(w.base, a->base, line, "base");
    UNITY_TEST_ASSERT_EQUAL_INT(w.index, a->index, line, "index");
    UNITY_TEST_ASSERT_EQUAL_INT(w.scale, a->scale, line, "scale");
    UNITY_TEST_ASSERT_EQUAL_INT(w.segment, a->segment, line, "segment");
    UNITY_TEST_ASSERT_EQUAL_INT(w.access, a->size, line, "size");
    if (w.base != PLAN_MODULE && !w.segment) UNITY_TEST_ASSERT_EQUAL_INT(w.disp, a->disp, line, "disp");
}

static uint64_t symbol_address(const char *name)
{
    for (uint32_t i = 0; i < img->symbol_count; i++)
        if (!strcmp(img->symbols[i].name, name)) return img->symbols[i].addr;
    return 0;
}

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9 };

static void test_each_form_of_operand_becomes_its_action(void)
{
    const plan_site *s = NULL;
    TEST_ASSERT_EQUAL_UINT(14, sites_of("probe_accesses", &s));
    const plan_action *a = p.actions;
    const unsigned none = PLAN_NOTHING, all = PLAN_READ | PLAN_WRITE | PLAN_ACQUIRE | PLAN_RELEASE;
    same_action(&a[s[0].first_action], (wanted){PLAN_READ, PLAN_CHECK, RDI, RSI, 8, 0, -16, 8}, __LINE__);
    same_action(&a[s[1].first_action], (wanted){PLAN_WRITE, PLAN_CHECK, R9, none, 1, 0, 0, 1}, __LINE__);
    same_action(&a[s[2].first_action], (wanted){PLAN_READ | PLAN_WRITE, PLAN_CHECK, PLAN_MODULE, none, 1, 0, 0, 4},
                __LINE__);
    TEST_ASSERT_EQUAL_HEX64(symbol_address("probe_data"), a[s[2].first_action].disp);
    same_action(&a[s[3].first_action], (wanted){PLAN_WRITE | PLAN_DOWN, PLAN_CHECK, RDI, none, 1, 0, 0, 8}, __LINE__);
    TEST_ASSERT_EQUAL_INT(RCX, a[s[3].first_action].counter);
    TEST_ASSERT_EQUAL_INT(8, a[s[3].first_action].stride);
    same_action(&a[s[4].first_action], (wanted){PLAN_READ | PLAN_DOWN | PLAN_UNTIL, PLAN_CHECK, RDI, none, 1, 0, 0, 1},
                __LINE__);
    TEST_ASSERT_EQUAL_INT(2, s[5].action_count);
    same_action(&a[s[5].first_action], (wanted){PLAN_WRITE, PLAN_CHECK, RDI, none, 1, 0, 0, 4}, __LINE__);
    same_action(&a[s[5].first_action + 1], (wanted){PLAN_READ, PLAN_CHECK, RSI, none, 1, 0, 0, 4}, __LINE__);
    same_action(&a[s[6].first_action], (wanted){all, PLAN_SYNC, RDX, none, 1, 0, 0, 4}, __LINE__);
    same_action(&a[s[7].first_action], (wanted){all, PLAN_SYNC, RBX, none, 1, 0, 8, 8}, __LINE__);
    same_action(&a[s[8].first_action], (wanted){PLAN_READ | PLAN_WRITE, PLAN_CHECK, RDI, none, 1, 0, 0, 4}, __LINE__);
    TEST_ASSERT_EQUAL_INT(RCX, a[s[8].first_action].bits);
    same_action(&a[s[9].first_action], (wanted){PLAN_READ, PLAN_CHECK, none, none, 1, PLAN_SEGMENT_FS, 0, 4}, __LINE__);
    TEST_ASSERT_TRUE(a[s[9].first_action].disp < 0);
    same_action(&a[s[10].first_action], (wanted){PLAN_READ, PLAN_CHECK, RSI, none, 1, 0, 0, 4}, __LINE__);
    TEST_ASSERT_EQUAL_INT(4, a[s[10].first_action].width);
    same_action(&a[s[11].first_action], (wanted){PLAN_READ, PLAN_CHECK, RDI, none, 1, 0, 0, 8}, __LINE__);
    same_action(&a[s[12].first_action], (wanted){PLAN_READ | PLAN_ACQUIRE, PLAN_SYNC, PLAN_MODULE, none, 1, 0, 0, 4},
                __LINE__);
    same_action(&a[s[13].first_action], (wanted){PLAN_WRITE | PLAN_RELEASE, PLAN_SYNC, PLAN_MODULE, none, 1, 0, 0, 4},
                __LINE__);
}

static void test_what_cannot_be_expressed_is_counted(void)
{
    TEST_ASSERT_TRUE(p.header->accesses_unplanned >= 2);
    TEST_ASSERT_TRUE(p.header->accesses_local > 0);
    TEST_ASSERT_TRUE(p.header->accesses_planned >= p.site_count / 4);
}

static void test_calls_have_sites_for_their_lines(void)
{
    const plan_site *s = NULL;
    TEST_ASSERT_EQUAL_UINT(3, sites_of("probe_calls", &s));
    TEST_ASSERT_EQUAL_INT(PLAN_CALL, s[0].flags);
    TEST_ASSERT_EQUAL_INT(0, s[0].action_count);
    TEST_ASSERT_EQUAL_INT(PLAN_CALL, s[1].flags);
    TEST_ASSERT_EQUAL_INT(1, s[1].action_count);
    TEST_ASSERT_EQUAL_INT(PLAN_SYSTEM, s[2].flags);
    TEST_ASSERT_EQUAL_INT(0, s[2].action_count);
}

static void test_dead_registers_are_those_that_are_written_before_they_are_read(void)
{
    const plan_site *s = NULL;
    sites_of("probe_accesses", &s);
    TEST_ASSERT_TRUE_MESSAGE(s[0].dead & 1 << RAX, "rax is loaded there");
    TEST_ASSERT_FALSE_MESSAGE(s[0].dead & 1 << RDI, "rdi is the base");
    TEST_ASSERT_FALSE_MESSAGE(s[0].dead & 1 << R9, "r9 is used by the next one");
    TEST_ASSERT_TRUE_MESSAGE(s[1].dead & PLAN_DEAD_CF, "the addition after it sets the flags");
    for (uint32_t i = 0; i < p.site_count; i++)
        TEST_ASSERT_FALSE(p.sites[i].dead & 1 << RSP);
}

static void test_checks_may_move_up_to_what_changes_their_address_or_orders(void)
{
    const plan_site *s = NULL;
    TEST_ASSERT_EQUAL_UINT(8, sites_of("probe_early", &s));
    static const unsigned from[8] = {0, 0, 1, 0, 4, 5, 6, 6};
    for (unsigned i = 0; i < 8; i++)
        TEST_ASSERT_EQUAL_UINT64(s[i].addr - s[from[i]].addr, s[i].early);
}

static void test_nothing_is_displaced_with_what_others_jump_to_or_point_to(void)
{
    const plan_site *s = NULL;
    TEST_ASSERT_EQUAL_UINT(3, sites_of("probe_shared", &s));
    TEST_ASSERT_EQUAL_UINT(2, s[0].window);
    TEST_ASSERT_EQUAL_UINT(2, s[1].window);
    TEST_ASSERT_EQUAL_UINT(4, s[2].window);
    for (unsigned i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_UINT(0, s[i].early);
}

static void test_sources_name_function_and_line(void)
{
    const lift_func *func = lift_func_named(module, "main");
    const plan_site *s = NULL;
    TEST_ASSERT_TRUE(sites_of("main", &s) > 0 && func);
    TEST_ASSERT_TRUE(s->source);
    const plan_source *source = &p.sources[s->source - 1];
    while (source->outer)
        source = &p.sources[source->outer - 1];
    TEST_ASSERT_EQUAL_STRING("main", plan_string(&p, source->function));
    if (!img->has_debug) return;
    TEST_ASSERT_NOT_NULL(strstr(plan_string(&p, source->file), "test_every.c"));
    TEST_ASSERT_TRUE(source->line > 0);
}

static void test_data_objects_are_named(void)
{
    uint64_t addr = symbol_address("probe_data");
    const plan_object *o = plan_object_covering(&p, addr + 3);
    TEST_ASSERT_NOT_NULL(o);
    TEST_ASSERT_EQUAL_STRING("probe_data", plan_string(&p, o->name));
    TEST_ASSERT_NULL_MESSAGE(plan_object_covering(&p, symbol_address("probe_constant")), "nobody can write it");
}

static void test_a_library_that_is_not_checked_has_its_atomic_instructions_only(void)
{
    lift_module *again = lift_open(img, &(lift_options){.jobs = 1, .flow_only = true});
    plan_draft other;
    plan few;
    size_t other_size;
    uint32_t atomics = 0;
    place_every(again, &(place_options){.only_atomics = true}, &other);
    void *other_bytes = plan_encode(&other, &other_size);
    TEST_ASSERT_EQUAL(PLAN_OK, plan_read(other_bytes, other_size, &few));
    TEST_ASSERT_TRUE(few.header->flags & PLAN_ONLY_ATOMICS);
    for (uint32_t i = 0; i < p.site_count; i++) {
        const lift_func *f = lift_func_covering(module, p.sites[i].addr);
        uint64_t there;
        const uint8_t *code = image_bytes(img, p.sites[i].addr, &there);
        if (!f || *code != 0xf0) continue; /* lock */
        const plan_site *s = plan_site_at(&few, p.sites[i].addr);
        TEST_ASSERT_NOT_NULL(s);
        TEST_ASSERT_EQUAL(PLAN_SYNC, few.actions[s->first_action].kind);
        TEST_ASSERT_EQUAL(0, s->dead);
        atomics++;
    }
    TEST_ASSERT_GREATER_THAN_UINT(0, atomics);
    TEST_ASSERT_LESS_THAN_UINT(p.site_count / 4, few.site_count);
    free(other_bytes);
    draft_free(&other);
    lift_close(again);
}

static void test_the_same_module_gives_the_same_bytes(void)
{
    lift_module *again = lift_open(img, &(lift_options){.jobs = 1});
    plan_draft other;
    size_t other_size;
    place_every(again, &(place_options){0}, &other);
    void *other_bytes = plan_encode(&other, &other_size);
    TEST_ASSERT_EQUAL_UINT64(size, other_size);
    TEST_ASSERT_EQUAL_MEMORY(bytes, other_bytes, size);
    free(other_bytes);
    draft_free(&other);
    lift_close(again);
}

static void test_a_plan_is_written_whole_or_not_at_all(void)
{
    char folder[] = "/tmp/race-place-XXXXXX", path[64], back[64];
    race_error error;
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.plan", folder);
    TEST_ASSERT_EQUAL_INT(0, plan_write(&draft, path, &error));
    FILE *f = fopen(path, "rb");
    void *read = malloc(size + 1);
    TEST_ASSERT_EQUAL_UINT64(size, fread(read, 1, size + 1, f));
    TEST_ASSERT_EQUAL_MEMORY(bytes, read, size);
    fclose(f);
    free(read);
    snprintf(back, sizeof back, "%s/none/a.plan", folder);
    TEST_ASSERT_EQUAL_INT(-1, plan_write(&draft, back, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "cannot be written"));
    unlink(path);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rmdir(folder), "nothing is left beside it");
}

static void test_a_module_without_a_build_id_is_named_by_its_contents(void)
{
    /* A file that begins like this program and has no build id: the note's type is changed. */
    FILE *f = fopen("/proc/self/exe", "rb");
    TEST_ASSERT_NOT_NULL(f);
    TEST_ASSERT_EQUAL_INT(0, fseek(f, 0, SEEK_END));
    size_t len = (size_t)ftell(f);
    unsigned char *copy = malloc(len);
    rewind(f);
    TEST_ASSERT_EQUAL_UINT64(len, fread(copy, 1, len, f));
    fclose(f);
    for (size_t i = 0; i + 16 < len; i++)
        if (!memcmp(copy + i, "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU", 16)) copy[i + 8] = 99;
    image *other;
    race_error error;
    char id[33];
    TEST_ASSERT_EQUAL_INT(0, image_open_memory("copy", copy, len, &other, &error));
    plan_content_id(copy, len, id);
    TEST_ASSERT_FALSE(other->has_build_id);
    TEST_ASSERT_EQUAL_STRING(id, other->build_id);
    image_close(other);
    free(copy);
}

int main(void)
{
    race_error error;
    if (image_open("/proc/self/exe", &img, &error) < 0) {
        puts(error.text);
        return 1;
    }
    module = lift_open(img, &(lift_options){0});
    place_every(module, &(place_options){0}, &draft);
    bytes = plan_encode(&draft, &size);
    UNITY_BEGIN();
    plan_status status = plan_read(bytes, size, &p);
    if (status != PLAN_OK) {
        puts(plan_status_text(status));
        return 1;
    }
    RUN_TEST(test_each_form_of_operand_becomes_its_action);
    RUN_TEST(test_what_cannot_be_expressed_is_counted);
    RUN_TEST(test_calls_have_sites_for_their_lines);
    RUN_TEST(test_dead_registers_are_those_that_are_written_before_they_are_read);
    RUN_TEST(test_checks_may_move_up_to_what_changes_their_address_or_orders);
    RUN_TEST(test_nothing_is_displaced_with_what_others_jump_to_or_point_to);
    RUN_TEST(test_sources_name_function_and_line);
    RUN_TEST(test_data_objects_are_named);
    RUN_TEST(test_a_library_that_is_not_checked_has_its_atomic_instructions_only);
    RUN_TEST(test_the_same_module_gives_the_same_bytes);
    RUN_TEST(test_a_plan_is_written_whole_or_not_at_all);
    RUN_TEST(test_a_module_without_a_build_id_is_named_by_its_contents);
    free(bytes);
    draft_free(&draft);
    lift_close(module);
    image_close(img);
    return UNITY_END();
}
