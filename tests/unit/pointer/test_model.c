/* Models: every text of the table is right, each form of the language gives the statements that it should, and names
 * are found in all the ways in which libraries spell them. */
#include "static/pointer/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unity.h>

static pta_program *program;

void setUp(void)
{
    lift_module *none[1] = {NULL};
    program = pta_program_open(none, 0, 1);
}

void tearDown(void)
{
    pta_program_close(program);
}

/* --- statements as text ------------------------------------------------------------------------------------------ */

static FILE *out;
static uint32_t first_site; /* fresh sites are numbered from here */

static void print_var(uint32_t var)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "sp", "rax", "r10", "ret", "ret2"};
    if (var == PTA_NO_VAR)
        fprintf(out, "_");
    else if (var < PTA_FIRST_LOCAL)
        fprintf(out, "%s", names[var]);
    else
        fprintf(out, "%c", (char)('a' + (var - PTA_FIRST_LOCAL)));
}

static void print_place(pta_operand at, uint32_t stride)
{
    print_var(at.var);
    if (stride == PTA_ANY)
        fprintf(out, "+");
    else if (stride)
        fprintf(out, "%%%u", stride);
    if (at.delta) fprintf(out, "%+d", at.delta);
}

static void print_site(uint32_t id)
{
    static const char *const kinds[] = {"static", "tls", "frame", "new", "func", "lib", "ext"};
    const pta_site *site = &program->sites.data[id];
    if (site->kind == PTA_HEAP) {
        fprintf(out, "new%u", id - first_site);
        if (site->sized) fprintf(out, "(%u", site->sized - 1u);
        if (site->counted) fprintf(out, "*%u", site->counted - 1u);
        if (site->sized) fprintf(out, ")");
    } else if (site->kind == PTA_EXTERNAL) {
        fprintf(out, "ext");
    } else {
        fprintf(out, "%s %s", kinds[site->kind], site->name);
    }
}

static void print_call(const pta_call *call)
{
    static const char *const spawns[] = {"call", "thread", "event"};
    if (call->ret != PTA_NO_VAR) print_var(call->ret), fprintf(out, " = ");
    fprintf(out, "%s%s ", spawns[call->spawn], call->in_loop ? "s" : "");
    print_place(call->target, PTA_SAME);
    fprintf(out, " (");
    unsigned last = PTA_PARAMS;
    while (last && call->args[last - 1].var == PTA_NO_VAR)
        last--;
    for (unsigned i = 0; i < last; i++) {
        if (i) fprintf(out, ", ");
        print_place(call->args[i], PTA_SAME);
    }
    fprintf(out, ")");
}

static void print_stmt(const pta_stmt *stmt)
{
    switch (stmt->kind) {
    case PTA_ADDR:
        print_var(stmt->dst.var), fprintf(out, " = &"), print_site(stmt->ref);
        if (stmt->stride) fprintf(out, "+");
        break;
    case PTA_COPY: print_var(stmt->dst.var), fprintf(out, " = "), print_place(stmt->src, stmt->stride); break;
    case PTA_LOAD: print_var(stmt->dst.var), fprintf(out, " = *"), print_place(stmt->src, stmt->stride); break;
    case PTA_STORE:
        fprintf(out, "*"), print_place(stmt->dst, stmt->stride), fprintf(out, " = "), print_place(stmt->src, PTA_SAME);
        break;
    case PTA_CALL: print_call(&program->calls.data[stmt->ref]); break;
    default: fprintf(out, "?");
    }
}

static uint32_t fill(const char *text)
{
    race_error error;
    uint32_t func = program_add_func(program, "model", NULL, 0);
    first_site = program->sites.len;
    if (model_fill(program, func, text, &error)) TEST_FAIL_MESSAGE(error.text);
    return func;
}

/* `text` as statements, separated by `; `. */
static void gives(const char *text, const char *expected)
{
    char *got = NULL;
    size_t size;
    uint32_t func = fill(text);
    out = open_memstream(&got, &size);
    const pta_func *f = &program->funcs.data[func];
    for (uint32_t i = 0; i < f->stmts.len; i++) {
        if (i) fprintf(out, "; ");
        print_stmt(&f->stmts.data[i]);
    }
    fclose(out);
    TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, got, text);
    free(got);
}

static void wrong(const char *text, const char *message)
{
    race_error error = {""};
    uint32_t func = program_add_func(program, "model", NULL, 0);
    TEST_ASSERT_EQUAL_INT_MESSAGE(-1, model_fill(program, func, text, &error), text);
    TEST_ASSERT_EQUAL_STRING_MESSAGE(message, error.text, text);
}

/* --- the language ------------------------------------------------------------------------------------------------ */

static void test_values_and_destinations(void)
{
    gives("", "");
    gives("ret = 0", "ret = 0");
    gives("ret2 = 5;", "ret2 = 5");
    gives("ret = 0+", "ret = 0+");
    gives("ret = 0+8; ret = 1-16", "ret = 0+8; ret = 1-16");
    gives("ret = 1%12; ret = 1%12+4", "ret = 1%12; ret = 1%12+4");
    gives("*0 = 1", "*0 = 1");
    gives("*0+ = 1+", "a = 1+; *0+ = a");
    gives("*0%16+8 = 1+8", "*0%16+8 = 1+8");
    gives("*ret = ret2", "*ret = ret2");
}

static void test_following_pointers(void)
{
    gives("ret = *0", "ret = *0");
    gives("ret = *0+", "ret = *0+");
    gives("ret = *0%8+4", "ret = *0%8+4");
    gives("ret = **0+16", "a = *0+16; ret = *a"); /* the offset belongs to the argument */
    gives("ret = *(*0)+16", "a = *0; ret = *a+16");
    gives("ret = (*0)+", "a = *0; ret = a+");
    gives("ret = ((0+8)+8)", "ret = 0+16");
    gives("ret = (0+)+8", "a = 0+; ret = a+8");
    gives("*(*1+8) = *0", "a = *1+8; b = *0; *a = b");
}

static void test_fresh_objects(void)
{
    gives("ret = new", "ret = &new0");
    gives("ret = new(1); *0 = new(1*0)", "ret = &new0(1); a = &new1(1*0); *0 = a");
    gives("ret = new+24", "a = &new0; ret = a+24");
    gives("*0 = new; *0 = new", "a = &new0; *0 = a; b = &new1; *0 = b");
    uint32_t func = fill("ret = new");
    const pta_site *site = &program->sites.data[program->funcs.data[func].stmts.data[0].ref];
    TEST_ASSERT_EQUAL_INT(PTA_HEAP, site->kind);
    TEST_ASSERT_EQUAL_UINT32(func, site->func);
    TEST_ASSERT_EQUAL_UINT32(program->funcs.data[func].stmts.data[0].ref, site->memory);
    TEST_ASSERT_EQUAL_UINT64(0, site->size);
    TEST_ASSERT_FALSE(site->any);
    gives("ret = bytes", "ret = &new0");
    TEST_ASSERT_TRUE(program->sites.data[first_site].any);
}

static void test_variables_of_a_library(void)
{
    gives("lib x = 0", "a = &lib x; *a = 0");
    gives("ret = lib x", "a = &lib x; ret = *a");
    gives("ret = lib x+", "a = &lib x; b = *a; ret = b+"); /* somewhere in what it points to */
    gives("ret = &lib x", "ret = &lib x");
    gives("ret = &lib x+", "a = &lib x; ret = a+");
    gives("*&lib x+8 = 0", "a = &lib x; *a+8 = 0");
    gives("ret = &tls y; tls y = 1", "ret = &tls y; a = &tls y; *a = 1");
    TEST_ASSERT_EQUAL_INT(PTA_TLS, program->sites.data[program_library_site(program, "y")].kind);
    TEST_ASSERT_EQUAL_INT(PTA_LIBRARY, program->sites.data[program_library_site(program, "x")].kind);
}

static void test_the_outside(void)
{
    gives("ret = ext", "ret = &ext+");
    gives("*0+8 = ext", "a = &ext+; *0+8 = a");
    gives("ext = 0", "a = &ext+; *a+ = 0");
}

static void test_variables_of_a_model(void)
{
    gives("x = 0; ret = *x", "a = 0; ret = *a");
    gives("n = 0; n = *n; n = *n+8; ret = n", "a = 0; a = *a; a = *a+8; ret = a");
    gives("x = new; y = new; *x = y", "a = &new0; b = &new1; *a = b");
    gives("item = 2%56; ret = *item+24", "a = 2%56; ret = *a+24");
    gives("x = 0; x = x", "a = 0");
}

static void test_block_copies(void)
{
    gives("copy 0 1", "a = *1%8; *0%8 = a");
    gives("copy 0+ 1", "a = 0+; b = *1%8; *a%8 = b"); /* not 0+1: offsets have no blanks */
    gives("ret = new; copy ret 0", "ret = &new0; a = *0%8; *ret%8 = a");
    gives("copy (*0) *1+8", "a = *0; b = *1+8; c = *b%8; *a%8 = c");
}

static void test_calls(void)
{
    gives("call 1 ()", "call 1 ()");
    gives("calls 3 (0+, 1, _, 2)", "a = 0+; calls 3 (a, 1, _, 2)");
    gives("ret = call 0 (1+8)", "ret = call 0 (1+8)");
    gives("*0 = thread 2 (3)", "a = thread 2 (3); *0 = a");
    gives("x = calls 0 (_); *1 = x", "a = calls 0 (); *1 = a");
    gives("threads *1+16 (*1); event 0 (); events 1 (_)", "a = *1+16; b = *1; threads a (b); event 0 (); events 1 ()");
    gives("thread *((**1)+16) (*1)", "a = *1; b = *a; c = *b+16; d = *1; thread c (d)");
    gives("call ext ()", "a = &ext+; call a ()");
    uint32_t func = fill("call 0 ()");
    const pta_call *call = &program->calls.data[program->funcs.data[func].stmts.data[0].ref];
    TEST_ASSERT_EQUAL_UINT32(PTA_NO_FUNC, call->func);
    TEST_ASSERT_EQUAL_UINT32(func, call->caller);
    TEST_ASSERT_EQUAL_UINT32(PTA_NO_VAR, call->ret);
    TEST_ASSERT_EQUAL_UINT32(PTA_NO_VAR, call->ret2);
}

static void test_stack_arguments(void)
{
    gives("ret = 6", "ret = *sp+8");
    gives("*8 = 7+", "a = *sp+24; b = *sp+16; c = b+; *a = c");
    gives("call 2 (0, 1, 2, 3, 4, 5, 6...)", "call 2 (0, 1, 2, 3, 4, 5, sp)");
    gives("call 2 (0, 1, 3, 4, 5, 6, 7...)", "a = *sp+8; call 2 (0, 1, 3, 4, 5, a, sp+8)");
    TEST_ASSERT_GREATER_THAN_UINT32(0, program->funcs.data[fill("ret = 6")].stack);
    TEST_ASSERT_GREATER_THAN_UINT32(0, program->funcs.data[fill("call 2 (0, 1, 2, 3, 4, 5, 6...)")].stack);
    TEST_ASSERT_EQUAL_UINT32(0, program->funcs.data[fill("ret = 5")].stack);
}

static void test_functions_by_name(void)
{
    gives("ret = &func strlen", "ret = &func strlen");
    gives("*0+16 = &func strlen", "a = &func strlen; *0+16 = a");
}

static void test_mistakes_are_told(void)
{
    wrong("ret = ", "model, column 7: a value is missing");
    wrong("ret 0", "model, column 5: `=` is missing");
    wrong("ret = 0 ret = 1", "model, column 9: `;` is missing");
    wrong("ret = x", "model, column 8: this variable has no value yet");
    wrong("ret = *x; x = 0", "model, column 9: this variable has no value yet");
    wrong("ret = (0", "model, column 9: `)` is missing");
    wrong("ret = 0%1", "model, column 10: a stride is at least 2");
    wrong("ret = 0%", "model, column 9: a number is missing");
    wrong("ret = 64", "model, column 8: the number is too large");
    wrong("ret = 0+99999999999999999999", "model, column 15: the number is too large");
    wrong("0 = ret", "model, column 1: a value is missing");
    wrong("new = 0", "model, column 1: this word has no place here");
    wrong("ret = call", "model, column 11: a value is missing");
    wrong("call 0", "model, column 7: the arguments are missing");
    wrong("call 0 (1", "model, column 10: `,` or `)` is missing");
    wrong("call 0 (1 2)", "model, column 11: `,` or `)` is missing");
    wrong("call 0 (0, 1, 2, 3, 4, 5, 6)", "model, column 27: a seventh argument can only be the rest of the stack");
    wrong("call 0 (0, 1, 2, 3, 4, 5, 5...)", "model, column 28: this argument is not on the stack");
    wrong("copy 0", "model, column 7: a value is missing");
    wrong("ret = &x", "model, column 8: `&` is for lib, tls and func");
    wrong("ret = lib", "model, column 10: the name of a variable of the library is missing");
    wrong("ret = &func no_such_function", "model, column 13: nobody knows this function");
    wrong("ret = _", "model, column 8: this variable has no value yet");
    wrong("a=0;b=0;c=0;d=0;e=0;f=0;g=0;h=0;i=0;j=0;k=0;l=0;m=0;n=0;o=0;p=0;q=0",
          "model, column 66: too many variables");
    wrong("ret = ((((((((((((((((((0))))))))))))))))))", "model, column 23: nested too deeply");
}

static void test_a_mistake_adds_nothing_behind_it(void)
{
    race_error error;
    uint32_t func = program_add_func(program, "model", NULL, 0);
    TEST_ASSERT_EQUAL_INT(-1, model_fill(program, func, "ret = 0; ret = ?; ret = 1", &error));
    TEST_ASSERT_EQUAL_UINT32(1, program->funcs.data[func].stmts.len);
}

/* --- the table --------------------------------------------------------------------------------------------------- */

static void test_every_text_of_the_table_is_right(void)
{
    race_error error;
    char message[700];
    for (uint32_t i = 0; i < model_count; i++) {
        if (!model_table[i].text) continue;
        uint32_t func = program_add_func(program, "model", NULL, 0);
        int failed = model_fill(program, func, model_table[i].text, &error);
        snprintf(message, sizeof message, "%.80s: %s", model_table[i].name, failed ? error.text : "");
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, failed, message);
        const pta_func *f = &program->funcs.data[func];
        for (uint32_t s = 0; s < f->stmts.len; s++) {
            const pta_stmt *stmt = &f->stmts.data[s];
            TEST_ASSERT_TRUE_MESSAGE(stmt->kind == PTA_CALL || stmt->dst.var < f->var_count, message);
            TEST_ASSERT_TRUE_MESSAGE(stmt->kind == PTA_CALL || stmt->kind == PTA_ADDR || stmt->src.var < f->var_count,
                                     message);
        }
    }
}

typedef struct {
    const char *at;
    size_t len;
} span;

static int by_name(const void *a, const void *b)
{
    const span *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* All names of the table, sorted; free() it. */
static span *all_names(uint32_t *count)
{
    VEC(span) all = {0};
    for (uint32_t i = 0; i < model_count; i++)
        for (const char *at = model_table[i].name + strspn(model_table[i].name, " "); *at; at += strspn(at, " ")) {
            size_t len = strcspn(at, " ");
            vec_push(&all, (span){at, len});
            at += len;
        }
    qsort(all.data, all.len, sizeof *all.data, by_name);
    *count = all.len;
    return all.data;
}

static void test_no_name_is_in_the_table_twice(void)
{
    uint32_t count;
    span *names = all_names(&count);
    TEST_ASSERT_GREATER_THAN_UINT32(4000, count);
    for (uint32_t i = 1; i < count; i++)
        if (!by_name(&names[i - 1], &names[i])) {
            char name[200];
            snprintf(name, sizeof name, "%.*s", (int)names[i].len, names[i].at);
            TEST_FAIL_MESSAGE(name);
        }
    free(names);
}

static void test_every_name_finds_its_own_entry(void)
{
    for (uint32_t i = 0; i < model_count; i++) {
        char name[300];
        for (const char *at = model_table[i].name + strspn(model_table[i].name, " "); *at; at += strspn(at, " ")) {
            int len = (int)strcspn(at, " ");
            bool prefix = at[len - 1] == '*';
            snprintf(name, sizeof name, "%.*s%s", len - prefix, at, prefix ? "~" : "");
            TEST_ASSERT_TRUE_MESSAGE(model_find(name) == model_table[i].text, name);
            at += len;
        }
    }
}

/* Objects of a library are either one per thread or not, whoever names them. */
static void test_no_variable_is_both_shared_and_per_thread(void)
{
    for (uint32_t i = 0; i < model_count; i++)
        for (const char *at = model_table[i].text; at && (at = strstr(at, "tls ")); at++) {
            char name[80];
            int len = (int)strspn(at + 4, "abcdefghijklmnopqrstuvwxyz_");
            snprintf(name, sizeof name, "lib %.*s", len, at + 4);
            for (uint32_t k = 0; k < model_count; k++) {
                const char *other = model_table[k].text ? strstr(model_table[k].text, name) : NULL;
                TEST_ASSERT_FALSE_MESSAGE(other && !strspn(other + len + 4, "abcdefghijklmnopqrstuvwxyz_"), name);
            }
        }
}

static void same(const char *variant, const char *name)
{
    const char *text = model_find(name);
    TEST_ASSERT_NOT_NULL_MESSAGE(text, name);
    TEST_ASSERT_TRUE_MESSAGE(model_find(variant) == text, variant);
}

static void test_variants_of_names(void)
{
    same("__isoc99_sscanf", "sscanf");
    same("__isoc23_strtol", "strtol");
    same("__memcpy_chk", "memcpy");
    same("__sprintf_chk", "sprintf");
    same("__fgets_unlocked_chk", "fgets");
    same("__vasprintf_chk", "asprintf");
    same("fopen64", "fopen");
    same("__fxstat64", "__fxstat");
    same("fgets_unlocked", "fgets");
    same("strtod_l", "strtod");
    same("__strtol_internal", "strtol");
    same("__libc_malloc", "malloc");
    same("_IO_getc", "getc");
    same("__strdup", "strdup");
    same("__strtok_r", "strtok_r");
    same("__sigaction", "sigaction");
    same("__exp_finite", "exp");
    same("sinf128", "sin");
    same("sinf32x", "sin");
    same("sinf64", "sinf");
    same("mmap64", "mmap");
    same("__pthread_mutex_lock", "pthread_mutex_lock");
    same("GOMP_parallel_loop_nonmonotonic_dynamic", "GOMP_parallel");
    TEST_ASSERT_EQUAL_STRING("", model_find("pthread_cond_timedwait"));
    TEST_ASSERT_NOT_EQUAL(model_find("GOMP_parallel_loop_static_start"), model_find("GOMP_parallel_loop_static"));
    TEST_ASSERT_TRUE(strstr(model_find("__libc_start_main"), "call 0") != NULL);
}

static void test_names_that_nobody_knows(void)
{
    static const char *const unknown[] = {
        "", "_", "__", "64", "_l", "_chk", "___chk", "*", "no_such_function", "mallo", "mallocate", "malloc free",
        "GOMP_",
        "stdin", "environ", "optarg", "_ZSt4cout", "_ZTVSt13runtime_error", "sqlite3_version", /* data */
        "_ZNSs4_Rep20_S_empty_rep_storageE",
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        TEST_ASSERT_NULL_MESSAGE(model_find(unknown[i]), unknown[i]);
}

static void test_long_names_are_no_trouble(void)
{
    size_t len = 200000;
    char *name = malloc(len + 1);
    memset(name, '_', len);
    name[len] = 0;
    TEST_ASSERT_NULL(model_find(name));
    memcpy(name + len - 10, "64_l64_chk", 10);
    TEST_ASSERT_NULL(model_find(name));
    free(name);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_values_and_destinations);
    RUN_TEST(test_following_pointers);
    RUN_TEST(test_fresh_objects);
    RUN_TEST(test_variables_of_a_library);
    RUN_TEST(test_the_outside);
    RUN_TEST(test_variables_of_a_model);
    RUN_TEST(test_block_copies);
    RUN_TEST(test_calls);
    RUN_TEST(test_stack_arguments);
    RUN_TEST(test_functions_by_name);
    RUN_TEST(test_mistakes_are_told);
    RUN_TEST(test_a_mistake_adds_nothing_behind_it);
    RUN_TEST(test_every_text_of_the_table_is_right);
    RUN_TEST(test_no_name_is_in_the_table_twice);
    RUN_TEST(test_every_name_finds_its_own_entry);
    RUN_TEST(test_no_variable_is_both_shared_and_per_thread);
    RUN_TEST(test_variants_of_names);
    RUN_TEST(test_names_that_nobody_knows);
    RUN_TEST(test_long_names_are_no_trouble);
    return UNITY_END();
}
