/* Debug facts of this very program, which is built with -g: what DWARF says is compared with what the compiler and the
 * running program know. */
#include "static/image/image.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "unity.h"

static image *self;
static uint64_t bias; /* run-time address minus module address */

void setUp(void) {}
void tearDown(void) {}

static uint64_t module_address(const void *p)
{
    return (uint64_t)(uintptr_t)p - bias;
}

/* --- things to describe ------------------------------------------------------------------------------------------ */

enum colour { RED, GREEN };

typedef struct {
    int hits;
    unsigned low : 3, high : 7;
    _Atomic long total;
    volatile int flag;
    union {
        int as_int;
        float as_float;
    };
    char name[16];
    struct node *next;
} sample_stats;

struct node {
    sample_stats stats;
    struct node *next;
    short grid[3][5];
    enum colour colour;
    _Bool done;
    int (*call)(int);
    double ratio;
    long tail[];
};

static sample_stats stats_one;
static sample_stats stats_two;
struct node node_table[4];
static struct node *volatile node_pointer = &node_table[1];
static volatile sample_stats watched;
static _Atomic(struct node *) shared_head;
static atomic_int counter;
static _Thread_local int per_thread = 7;

/* Of sizes that no other struct has, but for the twins. */
struct only {
    char bytes[12345];
    struct node *next;
} only_one;
typedef struct {
    char bytes[23456];
} nameless;
nameless nameless_one;
struct twin {
    char bytes[3456];
} twin_one;
struct other_twin {
    char bytes[3456];
} twin_two;
union views {
    char bytes[4567];
} union_one;

#define NOINLINE __attribute__((noinline, noclone, no_sanitize_address))
static const int add_line = __LINE__ + 1;
NOINLINE static int add_numbers(int left, int right)
{
    static int calls;
    calls += left;
    return calls + right;
}

static int inner_line, outer_line;
static __attribute__((always_inline)) inline const void *here(void)
{
    const void *pc;
    inner_line = __LINE__ + 1;
    __asm__ volatile("lea 0(%%rip), %0\n\tnop" : "=r"(pc));
    return pc;
}

NOINLINE static const void *outer(void)
{
    outer_line = __LINE__ + 1;
    const void *pc = here();
    __asm__ volatile("" ::: "memory");
    return pc;
}

static const char *local_place;
NOINLINE static const image_function *local_in_memory(const char **cfa)
{
    char escaping[32] = "x";
    *cfa = __builtin_dwarf_cfa();
    local_place = escaping;
    __asm__ volatile("" : : "r"(escaping) : "memory");
    return image_function_at(self,
                             module_address(__builtin_return_address(0)) ? module_address((void *)local_in_memory) : 0);
}

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static const image_variable *global(const void *p, const char *name)
{
    const image_variable *v = image_global_at(self, module_address(p));
    TEST_ASSERT_NOT_NULL_MESSAGE(v, name);
    TEST_ASSERT_EQUAL_STRING(name, v->name);
    TEST_ASSERT_EQUAL_INT(IMAGE_PLACE_STATIC, v->place);
    TEST_ASSERT_EQUAL_HEX64(module_address(p), v->offset);
    TEST_ASSERT_NOT_NULL(v->type);
    return v;
}

static const image_member *member(const image_type *type, const char *name)
{
    for (uint32_t i = 0; i < type->member_count; i++)
        if (strcmp(type->members[i].name, name) == 0) return &type->members[i];
    TEST_FAIL_MESSAGE(name);
    return NULL;
}

static void described(const image_type *type, uint64_t offset, const char *words)
{
    char text[100];
    image_describe(type, "x", offset, text, sizeof text);
    TEST_ASSERT_EQUAL_STRING(words, text);
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void functions_have_names_files_lines_and_parameters(void)
{
    const image_function *f = image_function_at(self, module_address((void *)add_numbers));
    TEST_ASSERT_NOT_NULL(f);
    TEST_ASSERT_EQUAL_STRING("add_numbers", f->name);
    TEST_ASSERT_EQUAL_HEX64(module_address((void *)add_numbers), f->start);
    TEST_ASSERT_TRUE(f->end > f->start);
    TEST_ASSERT_EQUAL_UINT32(add_line, f->line);
    TEST_ASSERT_NOT_NULL(strstr(f->file, "/test_debug.c"));
    TEST_ASSERT_TRUE(f->file[0] == '/');
    TEST_ASSERT_EQUAL_UINT32(2, f->parameter_count);
    TEST_ASSERT_EQUAL_STRING("left", f->variables[0].name);
    TEST_ASSERT_EQUAL_STRING("right", f->variables[1].name);
    TEST_ASSERT_TRUE(f->variables[1].is_parameter);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_INT, f->variables[0].type->kind);
    TEST_ASSERT_EQUAL_PTR(f->variables[0].type, f->returns);
    TEST_ASSERT_EQUAL_UINT32(3, f->variable_count);
    TEST_ASSERT_EQUAL_STRING("calls", f->variables[2].name);
    TEST_ASSERT_EQUAL_INT(IMAGE_PLACE_STATIC, f->variables[2].place);
    TEST_ASSERT_EQUAL_PTR(f, image_function_at(self, f->end - 1)); /* the same answer each time */
    TEST_ASSERT_NULL(image_function_at(self, 1));
}

static void functions_of_unoptimised_code_are_known_as_such(void)
{
    const image_function *f = image_function_at(self, module_address((void *)add_numbers));
#ifdef __OPTIMIZE__
    TEST_ASSERT_TRUE(f->is_optimised);
#else
    TEST_ASSERT_FALSE(f->is_optimised);
    TEST_ASSERT_EQUAL_INT(IMAGE_PLACE_FRAME, f->variables[0].place);
    TEST_ASSERT_TRUE(image_function_at(self, module_address((void *)outer))->is_optimised); /* something is inlined */
#endif
}

static void a_local_in_memory_is_at_its_distance_from_the_cfa(void)
{
    const char *cfa;
    const image_function *f = local_in_memory(&cfa);
    TEST_ASSERT_NOT_NULL(f);
    for (uint32_t i = 0; i < f->variable_count; i++)
        if (strcmp(f->variables[i].name, "escaping") == 0) {
            TEST_ASSERT_EQUAL_INT(IMAGE_PLACE_FRAME, f->variables[i].place);
            TEST_ASSERT_EQUAL_INT64(local_place - cfa, f->variables[i].offset);
            TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_ARRAY, f->variables[i].type->kind);
            TEST_ASSERT_EQUAL_UINT64(32, f->variables[i].type->count);
            return;
        }
    TEST_FAIL_MESSAGE("no such variable");
}

static void lines_are_those_of_the_source(void)
{
    image_line line;
    TEST_ASSERT_TRUE(image_line_at(self, module_address((void *)add_numbers), &line));
    TEST_ASSERT_NOT_NULL(strstr(line.file, "test_debug.c"));
    TEST_ASSERT_TRUE(line.line >= (uint32_t)add_line && line.line <= (uint32_t)add_line + 5);
    TEST_ASSERT_FALSE(image_line_at(self, 0, &line));
    TEST_ASSERT_NULL(line.file);
    TEST_ASSERT_FALSE(image_line_at(self, module_address(&stats_one), &line));
}

static void inlined_functions_are_frames_of_their_own(void)
{
    uint64_t pc = module_address(outer()); /* of the nop after the lea */
    image_frame frames[8];
    uint32_t count = image_frames_at(self, pc, frames, 8);
    TEST_ASSERT_EQUAL_UINT32(2, count);
    TEST_ASSERT_EQUAL_STRING("here", frames[0].function);
    TEST_ASSERT_EQUAL_UINT32(inner_line, frames[0].at.line);
    TEST_ASSERT_EQUAL_STRING("outer", frames[1].function);
    TEST_ASSERT_EQUAL_UINT32(outer_line, frames[1].at.line);
    TEST_ASSERT_NOT_NULL(strstr(frames[1].at.file, "test_debug.c"));
    TEST_ASSERT_EQUAL_UINT32(1, image_frames_at(self, pc, frames, 1));
    TEST_ASSERT_EQUAL_STRING("here", frames[0].function);
    TEST_ASSERT_EQUAL_UINT32(0, image_frames_at(self, pc, frames, 0));
}

static void globals_are_found_by_any_address_inside_them(void)
{
    const image_variable *v = global(&stats_one, "stats_one");
    TEST_ASSERT_EQUAL_PTR(v, image_global_at(self, module_address(&stats_one.name[3])));
    TEST_ASSERT_EQUAL_STRING("node_table",
                             image_global_at(self, module_address((char *)node_table + sizeof node_table - 1))->name);
    TEST_ASSERT_NULL(image_global_at(self, module_address((void *)add_numbers)));
    const image_variable *all;
    uint32_t count = image_globals(self, &all);
    TEST_ASSERT_TRUE(count > 10);
    for (uint32_t i = 1; i < count; i++)
        TEST_ASSERT_TRUE(all[i - 1].place < all[i].place || (uint64_t)all[i - 1].offset <= (uint64_t)all[i].offset);
}

static void thread_local_variables_are_found_by_their_offset_in_the_block(void)
{
    uint64_t fs;
    __asm__("mov %%fs:0, %0" : "=r"(fs));
    uint64_t offset = (uint64_t)(uintptr_t)&per_thread - fs + self->tls_size;
    const image_variable *v = image_global_tls(self, offset);
    TEST_ASSERT_NOT_NULL(v);
    TEST_ASSERT_EQUAL_STRING("per_thread", v->name);
    TEST_ASSERT_EQUAL_INT(IMAGE_PLACE_TLS, v->place);
    TEST_ASSERT_EQUAL_STRING("per_thread", image_symbol_tls(self, offset)->name);
}

static void structs_have_their_members_where_the_compiler_puts_them(void)
{
    const image_type *t = global(&stats_one, "stats_one")->type;
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_STRUCT, t->kind);
    TEST_ASSERT_EQUAL_STRING("sample_stats", t->name); /* the typedef's name, since the struct has none */
    TEST_ASSERT_EQUAL_UINT64(sizeof(sample_stats), t->size);
    TEST_ASSERT_EQUAL_UINT32(8, t->member_count);
    TEST_ASSERT_EQUAL_UINT64(offsetof(sample_stats, name), member(t, "name")->offset);
    TEST_ASSERT_EQUAL_UINT64(16, member(t, "name")->type->count);
    const image_member *low = member(t, "low"), *high = member(t, "high");
    TEST_ASSERT_EQUAL_UINT64(4, low->offset);
    TEST_ASSERT_EQUAL_UINT16(3, low->bit_size);
    TEST_ASSERT_EQUAL_UINT16(0, low->bit_offset);
    TEST_ASSERT_EQUAL_UINT16(7, high->bit_size);
    TEST_ASSERT_EQUAL_UINT64(4 * 8 + 3, high->offset * 8 + high->bit_offset);
    TEST_ASSERT_EQUAL_UINT16(0, member(t, "hits")->bit_size);
    const image_type *anonymous = member(t, "")->type;
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_UNION, anonymous->kind);
    TEST_ASSERT_EQUAL_STRING("", anonymous->name);
    TEST_ASSERT_EQUAL_UINT32(2, anonymous->member_count);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_FLOAT, member(anonymous, "as_float")->type->kind);

    const image_type *node = global(node_table, "node_table")->type;
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_ARRAY, node->kind);
    TEST_ASSERT_EQUAL_UINT64(4, node->count);
    TEST_ASSERT_EQUAL_UINT64(sizeof node_table, node->size);
    node = node->target;
    TEST_ASSERT_EQUAL_STRING("node", node->name);
    const image_type *grid = member(node, "grid")->type;
    TEST_ASSERT_EQUAL_UINT64(3, grid->count);
    TEST_ASSERT_EQUAL_UINT64(5, grid->target->count);
    TEST_ASSERT_EQUAL_UINT64(2, grid->target->target->size);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_ENUM, member(node, "colour")->type->kind);
    TEST_ASSERT_EQUAL_STRING("colour", member(node, "colour")->type->name);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_BOOL, member(node, "done")->type->kind);
    const image_type *call = member(node, "call")->type;
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_POINTER, call->kind);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_FUNCTION, call->target->kind);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_INT, call->target->target->kind);
    const image_member *tail = member(node, "tail");
    TEST_ASSERT_EQUAL_UINT64(sizeof(struct node), tail->offset);
    TEST_ASSERT_EQUAL_UINT64(0, tail->type->count);
}

static void the_same_type_is_the_same_pointer(void)
{
    const image_type *t = global(&stats_one, "stats_one")->type;
    TEST_ASSERT_EQUAL_PTR(t, global(&stats_two, "stats_two")->type);
    const image_type *node = global(node_table, "node_table")->type->target;
    TEST_ASSERT_EQUAL_PTR(t, member(node, "stats")->type);
    TEST_ASSERT_EQUAL_PTR(node, member(node, "next")->type->target);
    TEST_ASSERT_EQUAL_PTR(member(node, "next")->type, member(t, "next")->type);
}

static void atomic_and_volatile_belong_to_the_type(void)
{
    const image_type *t = global(&stats_one, "stats_one")->type;
    TEST_ASSERT_FALSE(t->is_volatile || t->is_atomic);
    TEST_ASSERT_TRUE(member(t, "total")->type->is_atomic);
    TEST_ASSERT_TRUE(member(t, "flag")->type->is_volatile);
    TEST_ASSERT_FALSE(member(t, "hits")->type->is_volatile);
    TEST_ASSERT_TRUE(global((void *)&counter, "counter")->type->is_atomic);
    const image_type *head = global((void *)&shared_head, "shared_head")->type;
    TEST_ASSERT_TRUE(head->is_atomic);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_POINTER, head->kind);
    TEST_ASSERT_FALSE(head->target->is_atomic);
    const image_type *pointer = global((void *)&node_pointer, "node_pointer")->type;
    TEST_ASSERT_TRUE(pointer->is_volatile);
    TEST_ASSERT_FALSE(pointer->target->is_volatile);
    const image_type *w = global((void *)&watched, "watched")->type; /* volatile all the way down */
    TEST_ASSERT_TRUE(w->is_volatile);
    TEST_ASSERT_TRUE(w != t);
    TEST_ASSERT_TRUE(member(w, "hits")->type->is_volatile);
    TEST_ASSERT_TRUE(member(w, "name")->type->target->is_volatile);
    TEST_ASSERT_TRUE(member(w, "total")->type->is_volatile && member(w, "total")->type->is_atomic);
    TEST_ASSERT_TRUE(member(member(w, "")->type, "as_int")->type->is_volatile);
    TEST_ASSERT_FALSE(member(w, "next")->type->target->is_volatile); /* what it points to is something else */
}

static void places_are_described_in_the_words_of_the_source(void)
{
    const image_type *t = global(&stats_one, "stats_one")->type, *table = global(node_table, "node_table")->type;
    described(t, 0, "x.hits");
    described(t, 4, "x.low");
    described(t, offsetof(sample_stats, total), "x.total");
    described(t, offsetof(sample_stats, total) + 2, "x.total+2");
    described(t, offsetof(sample_stats, as_int), "x.as_int");
    described(t, offsetof(sample_stats, name) + 5, "x.name[5]");
    described(t, sizeof(sample_stats) + 9, "x+57");
    described(table, 2 * sizeof(struct node) + offsetof(struct node, stats.flag), "x[2].stats.flag");
    described(table, offsetof(struct node, grid) + 2 * 10 + 3 * 2, "x[0].grid[2][3]");
    described(table->target, sizeof(struct node) + 24, "x.tail[3]");
    described(NULL, 5, "x+5");
    char tiny[8];
    image_describe(table, "node_table", 100, tiny, sizeof tiny);
    TEST_ASSERT_EQUAL_STRING("node_ta", tiny);
    image_describe(table, "x", 0, tiny, 0);
}

static void an_access_touches_the_innermost_scalar(void)
{
    const image_type *t = global(&stats_one, "stats_one")->type;
    TEST_ASSERT_EQUAL_PTR(member(t, "hits")->type, image_type_at(t, 0, 4));
    TEST_ASSERT_EQUAL_PTR(member(t, "hits")->type, image_type_at(t, 2, 1));
    TEST_ASSERT_NULL(image_type_at(t, 2, 4));
    TEST_ASSERT_NULL(image_type_at(t, 0, 16));
    TEST_ASSERT_EQUAL_PTR(member(t, "low")->type, image_type_at(t, 4, 4));
    TEST_ASSERT_TRUE(image_type_at(t, offsetof(sample_stats, total), 8)->is_atomic);
    TEST_ASSERT_EQUAL_UINT64(1, image_type_at(t, offsetof(sample_stats, name) + 3, 1)->size);
    const image_type *table = global(node_table, "node_table")->type;
    TEST_ASSERT_TRUE(image_type_at(table, sizeof(struct node) + offsetof(struct node, stats.flag), 4)->is_volatile);
    TEST_ASSERT_EQUAL_UINT64(8, image_type_at(table->target, sizeof(struct node) + 16, 8)->size);
    TEST_ASSERT_NULL(image_type_at(NULL, 0, 4));
}

static void *ask_everything(void *unused)
{
    (void)unused;
    image_line line;
    image_frame frames[8];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < self->fde_count; i++) {
        const image_function *f = image_function_at(self, self->fdes[i].start);
        sum = sum * 31 + (f ? f->variable_count + f->line : 0);
        sum = sum * 31 + (image_line_at(self, self->fdes[i].start + 3, &line) ? line.line : 0);
        sum = sum * 31 + image_frames_at(self, self->fdes[i].start + 5, frames, 8);
    }
    const image_variable *all;
    sum = sum * 31 + image_globals(self, &all);
    return (void *)(uintptr_t)sum;
}

static void several_threads_may_ask_at_once(void)
{
    race_error error;
    image *before = self;
    TEST_ASSERT_EQUAL_INT(0, image_open("/proc/self/exe", &self, &error)); /* nothing is read yet */
    pthread_t threads[4];
    void *sums[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask_everything, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], &sums[i]);
    for (int i = 1; i < 4; i++)
        TEST_ASSERT_EQUAL_PTR(sums[0], sums[i]);
    TEST_ASSERT_NOT_NULL(sums[0]);
    image_close(self);
    self = before;
}

static int find_bias(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    bias = info->dlpi_addr;
    return 1; /* the program is the first */
}

static void a_struct_is_known_by_its_size_if_no_other_has_it(void)
{
    const image_type *type = image_struct_of_size(self, sizeof(struct only));
    TEST_ASSERT_NOT_NULL(type);
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_STRUCT, type->kind);
    TEST_ASSERT_EQUAL_STRING("only", type->name);
    TEST_ASSERT_EQUAL_UINT64(sizeof(struct only), type->size);
    TEST_ASSERT_EQUAL_UINT64(offsetof(struct only, next), member(type, "next")->offset);
    TEST_ASSERT_EQUAL_PTR(global(&only_one, "only_one")->type, type);
    TEST_ASSERT_EQUAL_PTR(global(&nameless_one, "nameless_one")->type, image_struct_of_size(self, sizeof(nameless)));
    TEST_ASSERT_NOT_NULL(global(&twin_one, "twin_one"));
    TEST_ASSERT_NOT_NULL(global(&twin_two, "twin_two"));
    TEST_ASSERT_NULL(image_struct_of_size(self, sizeof(struct twin)));
    TEST_ASSERT_NOT_NULL(global(&union_one, "union_one"));
    TEST_ASSERT_NULL(image_struct_of_size(self, sizeof(union views)));
    TEST_ASSERT_NULL(image_struct_of_size(self, sizeof(struct only) + 1));
    TEST_ASSERT_NULL(image_struct_of_size(self, 0));
    TEST_ASSERT_NULL(image_struct_of_size(self, UINT64_MAX));
}

int main(void)
{
    race_error error;
    dl_iterate_phdr(find_bias, NULL);
    if (image_open("/proc/self/exe", &self, &error)) return 1;
    atomic_fetch_add(&counter, add_numbers(1, 2));
    stats_one.hits = stats_two.hits = watched.hits = per_thread;
    atomic_store(&shared_head, node_pointer);
    UNITY_BEGIN();
    RUN_TEST(functions_have_names_files_lines_and_parameters);
    RUN_TEST(functions_of_unoptimised_code_are_known_as_such);
    RUN_TEST(a_local_in_memory_is_at_its_distance_from_the_cfa);
    RUN_TEST(lines_are_those_of_the_source);
    RUN_TEST(inlined_functions_are_frames_of_their_own);
    RUN_TEST(globals_are_found_by_any_address_inside_them);
    RUN_TEST(thread_local_variables_are_found_by_their_offset_in_the_block);
    RUN_TEST(structs_have_their_members_where_the_compiler_puts_them);
    RUN_TEST(the_same_type_is_the_same_pointer);
    RUN_TEST(a_struct_is_known_by_its_size_if_no_other_has_it);
    RUN_TEST(atomic_and_volatile_belong_to_the_type);
    RUN_TEST(places_are_described_in_the_words_of_the_source);
    RUN_TEST(an_access_touches_the_innermost_scalar);
    RUN_TEST(several_threads_may_ask_at_once);
    int failed = UNITY_END();
    image_close(self);
    return failed;
}
