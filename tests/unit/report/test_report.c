/* What the user reads and what the log holds: a race of two threads on a module with a made-up plan. */
#include "tests/unit/report/host.h"

#include <unity.h>

static report_test_host host;
static report_options options;
static report *r;

/* A module as it is in memory, with a build id; its plan lies in a file of the current folder. */
enum { MODULE_SIZE = 4096, CODE = 0x200, DATA = 0x800 };
static unsigned char module[MODULE_SIZE] __attribute__((aligned(4096)));
static const char id[] = "0a0b0c0d";

#include <elf.h>

static void make_module(void)
{
    memset(module, 0, sizeof module);
    Elf64_Ehdr *e = (Elf64_Ehdr *)(void *)module;
    memcpy(e->e_ident, ELFMAG, SELFMAG);
    e->e_phoff = sizeof *e;
    e->e_phentsize = sizeof(Elf64_Phdr);
    e->e_phnum = 3;
    Elf64_Phdr *p = (Elf64_Phdr *)(void *)(module + sizeof *e);
    p[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_memsz = MODULE_SIZE, .p_filesz = MODULE_SIZE};
    p[1] = (Elf64_Phdr){.p_type = PT_NOTE, .p_vaddr = 0x180, .p_filesz = 20, .p_memsz = 20};
    p[2] = (Elf64_Phdr){.p_type = PT_INTERP};
    Elf64_Nhdr *n = (Elf64_Nhdr *)(void *)(module + 0x180);
    *n = (Elf64_Nhdr){4, 4, NT_GNU_BUILD_ID};
    memcpy(n + 1, "GNU\0\x0a\x0b\x0c\x0d", 8);
}

typedef struct {
    plan_header header;
    plan_site sites[3];
    plan_action actions[2];
    plan_source sources[3];
    plan_object objects[1];
    char strings[64];
    plan_unwind unwind[1];
} test_plan;

static struct { /* what the plan says of put and get */
    uint8_t claim[2];
    bool decided[2];
} opinions;

static void write_plan(void)
{
    test_plan p;
    memset(&p, 0, sizeof p);
    memcpy(p.header.magic, PLAN_MAGIC, 8);
    p.header.version = PLAN_VERSION;
    p.header.header_size = sizeof p.header;
    p.header.file_size = sizeof p;
    strcpy(p.header.build_id, id);
    p.header.high = MODULE_SIZE;
    p.header.accesses_planned = 2;
    p.header.tables[PLAN_SITES] = (plan_table){offsetof(test_plan, sites), 3, sizeof(plan_site)};
    p.header.tables[PLAN_ACTIONS] = (plan_table){offsetof(test_plan, actions), 2, sizeof(plan_action)};
    p.header.tables[PLAN_SOURCES] = (plan_table){offsetof(test_plan, sources), 3, sizeof(plan_source)};
    p.header.tables[PLAN_OBJECTS] = (plan_table){offsetof(test_plan, objects), 1, sizeof(plan_object)};
    p.header.tables[PLAN_STRINGS] = (plan_table){offsetof(test_plan, strings), sizeof p.strings, 1};
    p.header.tables[PLAN_UNWIND] = (plan_table){offsetof(test_plan, unwind), 1, sizeof(plan_unwind)};
    for (int i = 0; i < 2; i++)
        p.actions[i] = (plan_action){.kind = PLAN_CHECK,
                                     .flags = i ? PLAN_READ : PLAN_WRITE,
                                     .base = PLAN_MODULE,
                                     .index = PLAN_NOTHING,
                                     .scale = 1,
                                     .bits = PLAN_NOTHING,
                                     .width = 8,
                                     .disp = DATA,
                                     .size = 8,
                                     .count = 1,
                                     .counter = PLAN_NOTHING,
                                     .claim = opinions.claim[i]};
    /* strings: 1 put, 5 get, 9 main, 14 dir/a.c, 22 total, 28 W1 */
    memcpy(p.strings, "\0put\0get\0main\0dir/a.c\0total\0W1", 31);
    p.sites[0] = (plan_site){.addr = CODE, .first_action = 0, .action_count = 1, .length = 4, .window = 4, .source = 2,
                             .warnings = 28};
    p.sites[1] = (plan_site){.addr = CODE + 4, .first_action = 1, .action_count = 1, .length = 4, .window = 4, .source = 3};
    p.sites[2] = (plan_site){.addr = CODE + 8, .first_action = 2, .length = 5, .window = 5, .flags = PLAN_CALL, .source = 1};
    for (int i = 0; i < 2; i++)
        p.sites[i].flags = opinions.decided[i] ? PLAN_DECIDED : 0;
    p.sources[0] = (plan_source){.function = 9, .file = 14, .line = 30};
    p.sources[1] = (plan_source){.function = 1, .file = 14, .line = 10, .outer = 1}; /* put, inlined into main */
    p.sources[2] = (plan_source){.function = 5, .file = 14, .line = 20, .column = 7};
    p.objects[0] = (plan_object){.addr = DATA, .size = 16, .name = 22};
    p.unwind[0] = (plan_unwind){.start = CODE, .cfa = 8, .base = PLAN_UNWIND_RSP};
    p.header.checksum = plan_checksum(&p, sizeof p);
    FILE *f = fopen("0a0b0c0d.plan", "w");
    TEST_ASSERT_NOT_NULL(f);
    fwrite(&p, sizeof p, 1, f);
    fclose(f);
}

static void start(void)
{
    r = report_test_start(&host, &options, NULL);
    TEST_ASSERT_NOT_NULL(r);
}

void setUp(void)
{
    memset(&opinions, 0, sizeof opinions);
    options_default(&options);
    options.plan_dir = ".";
    make_module();
    write_plan();
}
void tearDown(void)
{
    remove("0a0b0c0d.plan");
    remove("suppressions");
}

static report_module *load(void)
{
    report_module *m =
        report_module_add(r, "/home/me/program", (uint64_t)(uintptr_t)module, (uint64_t)(uintptr_t)(module + MODULE_SIZE));
    TEST_ASSERT_NOT_NULL(m);
    TEST_ASSERT_NULL(m->refused);
    TEST_ASSERT_NOT_NULL(m->plan);
    return m;
}

/* put writes the object in one thread, get reads it in another. */
static void make_race(const report_module *m)
{
    ft_thread *first = ft_first_thread(r->core), *other = ft_fork(first, m->first_site + 2);
    uint64_t at = (uint64_t)(uintptr_t)module + DATA;
    ft_write(first, at, 8, m->first_site);
    uint64_t returns[] = {m->start + CODE + 13};
    ft_read(other, at, 8, ft_stack_put(r->core, m->first_site + 1, returns, 1));
    ft_read(other, at, 8, m->first_site + 1); /* told once */
}

static void test_a_module_gets_its_plan_and_its_sites_have_numbers(void)
{
    start();
    report_module *m = load();
    const report_module *found;
    TEST_ASSERT_EQUAL_STRING(id, m->id);
    TEST_ASSERT_EQUAL_STRING("program", m->name);
    TEST_ASSERT_TRUE(m->has_interpreter);
    TEST_ASSERT_FALSE(m->is_modelled);
    TEST_ASSERT_EQUAL_PTR(&m->plan->sites[1], report_site(r, m->first_site + 1, &found));
    TEST_ASSERT_EQUAL_PTR(m, found);
    TEST_ASSERT_EQUAL_UINT64(m->start + CODE + 4, report_site_address(r, m->first_site + 1));
    TEST_ASSERT_EQUAL_UINT(m->first_site + 2, report_call_site(r, m->start + CODE + 13));
    ft_site loose = report_call_site(r, m->start + 0x900);
    TEST_ASSERT_NOT_EQUAL(0, loose);
    TEST_ASSERT_EQUAL_UINT(loose, report_call_site(r, m->start + 0x900));
    TEST_ASSERT_EQUAL_UINT64(m->start + 0x8ff, report_site_address(r, loose));
    TEST_ASSERT_NULL(report_site(r, loose, &found));
    report_module_remove(r, m->start);
    TEST_ASSERT_NULL(report_module_at(r, m->start));
    TEST_ASSERT_EQUAL_PTR(&m->plan->sites[1], report_site(r, m->first_site + 1, &found)); /* for reports */
}

static void test_a_module_that_comes_back_is_the_one_that_it_was(void)
{
    start();
    report_module *m = load();
    make_race(m);
    report_test_said(&host);
    const ft_site next = r->next_site;
    report_module_remove(r, m->start);
    TEST_ASSERT_EQUAL_PTR(m, load());
    TEST_ASSERT_EQUAL_PTR(m, report_module_at(r, m->start));
    TEST_ASSERT_EQUAL_UINT(next, r->next_site);
    TEST_ASSERT_TRUE_MESSAGE(load() != m, "one that is there is another one");

    /* at another place, its races are those that it had */
    report_module_remove(r, m->start);
    static char elsewhere[MODULE_SIZE] __attribute__((aligned(4096)));
    memcpy(elsewhere, module, sizeof elsewhere);
    report_module *other = report_module_add(r, "/home/me/program", (uint64_t)(uintptr_t)elsewhere,
                                             (uint64_t)(uintptr_t)(elsewhere + MODULE_SIZE));
    TEST_ASSERT_TRUE(other != m && other->first_site >= next);
    ft_thread *first = ft_fork(ft_first_thread(r->core), other->first_site), *second = ft_fork(ft_first_thread(r->core), other->first_site);
    ft_write(first, (uint64_t)(uintptr_t)elsewhere + DATA, 8, other->first_site);
    ft_read(second, (uint64_t)(uintptr_t)elsewhere + DATA, 8, other->first_site + 1);
    TEST_ASSERT_EQUAL_STRING("", report_test_said(&host));
    ft_write(second, (uint64_t)(uintptr_t)elsewhere + DATA, 8, other->first_site + 2);
    TEST_ASSERT_TRUE(strlen(report_test_said(&host)) > 0);
}

static void test_a_plan_of_another_build_is_refused_with_one_line(void)
{
    start();
    module[0x180 + 19] ^= 1;
    rename("0a0b0c0d.plan", "0a0b0c0c.plan");
    report_module *m =
        report_module_add(r, "/home/me/program", (uint64_t)(uintptr_t)module, (uint64_t)(uintptr_t)(module + MODULE_SIZE));
    remove("0a0b0c0c.plan");
    TEST_ASSERT_NOT_NULL(m->refused);
    TEST_ASSERT_NULL(m->plan);
    TEST_ASSERT_EQUAL_STRING("race: ./0a0b0c0c.plan: the plan is of another build\n", report_test_said(&host));
}

static void test_a_race_is_told_once_with_both_sides(void)
{
    start();
    make_race(load());
    const char *said = report_test_said(&host);
    const char *const parts[] = {
        "WARNING: race: data race (pid=7)\n",
        "  Read of size 8 at 0x",
        " by thread T1:\n    #0 get dir/a.c:20:7 (program+0x204)\n    #1 main dir/a.c:30 (program+0x208)\n",
        "  Previous write of size 8 at 0x",
        " by main thread:\n    #0 put dir/a.c:10 (program+0x200)\n    #1 main dir/a.c:30 (program+0x200)\n",
        "  Location is global 'total' of size 16 at 0x",
        "  Thread T1 (running) created by main thread at:\n    #0 main dir/a.c:30",
        "SUMMARY: race: data race a.c:20 in get\n",
    };
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, parts[i]), parts[i]);
    TEST_ASSERT_EQUAL_PTR(strstr(said, "WARNING"), strstr(said, "WARNING: race"));
    TEST_ASSERT_NULL(strstr(strstr(said, "WARNING") + 1, "WARNING"));
    TEST_ASSERT_EQUAL_INT(66, report_exit_code(r, 0));
    TEST_ASSERT_EQUAL_INT(3, report_exit_code(r, 3));
    TEST_ASSERT_EQUAL_INT(-1, host.halted);
}

static event_reader log_reader(void)
{
    TEST_ASSERT_EQUAL_STRING("logs/race.7.events", host.files[2].path);
    return (event_reader){.bytes = (const unsigned char *)host.files[2].bytes, .size = host.files[2].size};
}

static void test_the_log_holds_what_was_said_and_survives_a_cut(void)
{
    options.log_dir = "logs";
    start();
    make_race(load());
    report_summary(r);
    event_reader reader = log_reader();
    const event_record *e;
    unsigned kinds[EVENT_KINDS] = {0};
    while (event_next(&reader, &e) == EVENT_OK) {
        kinds[e->kind]++;
        if (e->kind == EVENT_PROCESS)
            TEST_ASSERT_EQUAL_STRING("/usr/bin/program", event_string(e, ((const event_process *)e)->program));
        if (e->kind != EVENT_RACE) continue;
        const event_race *race = (const event_race *)e;
        TEST_ASSERT_EQUAL_STRING("total", event_string(e, race->location));
        TEST_ASSERT_EQUAL_UINT(EVENT_READ, race->sides[0].op);
        TEST_ASSERT_EQUAL_UINT(EVENT_WRITE, race->sides[1].op);
        TEST_ASSERT_EQUAL_UINT(2, race->sides[0].frame_count);
        const event_frame *f = &event_frames(e)[race->sides[0].first_frame];
        TEST_ASSERT_EQUAL_STRING("get", event_string(e, f->function));
        TEST_ASSERT_EQUAL_STRING(id, event_string(e, f->build_id));
        TEST_ASSERT_EQUAL_UINT(20, f->line);
        f = &event_frames(e)[race->sides[1].first_frame];
        TEST_ASSERT_EQUAL_UINT(1, f->inlined);
        TEST_ASSERT_EQUAL_STRING("W1", event_string(e, f->warnings));
    }
    TEST_ASSERT_EQUAL_UINT(reader.size, reader.at);
    TEST_ASSERT_FALSE(reader.cut);
    TEST_ASSERT_EQUAL_UINT(1, kinds[EVENT_RACE]);
    TEST_ASSERT_EQUAL_UINT(1, kinds[EVENT_EXIT]);
    /* cut anywhere: what is whole before it is read, and nothing else */
    for (size_t size = 0; size < reader.size; size++) {
        event_reader cut = log_reader();
        cut.size = size;
        while (event_next(&cut, &e) == EVENT_OK) {
        }
        TEST_ASSERT_TRUE(cut.at == size || cut.cut);
    }
}

/* A race, told by an audit of a plan with `opinions`: what the event is, and its claim in `claim`. */
static event_kind audit(char claim[32])
{
    write_plan();
    memset(&host, 0, sizeof host);
    options.audit = true;
    options.log_dir = "logs";
    start();
    report_module *m = load();
    uint8_t ran[3] = {1, 0, 1};
    m->ran = ran;
    make_race(m);
    report_summary(r);
    event_reader reader = log_reader();
    const event_record *e;
    event_kind kind = EVENT_KINDS;
    *claim = 0;
    while (event_next(&reader, &e) == EVENT_OK) {
        if (e->kind == EVENT_RACE || e->kind == EVENT_AUDIT) {
            kind = e->kind;
            snprintf(claim, 32, "%s", event_string(e, ((const event_race *)e)->claim));
        } else if (e->kind == EVENT_EXIT) {
            const event_exit *x = (const event_exit *)e;
            uint8_t of[2] = {opinions.claim[0], opinions.claim[1]};
            if (of[0]) TEST_ASSERT_EQUAL_UINT64(of[0] == of[1] ? 2 : 1, x->claims[of[0]]);
            if (of[0]) TEST_ASSERT_EQUAL_UINT64(1, x->claims_ran[of[0]]);
            if (of[1] && of[0] != of[1]) TEST_ASSERT_EQUAL_UINT64(0, x->claims_ran[of[1]]);
        }
    }
    return kind;
}

static void test_an_audit_tells_wrong_claims_from_what_was_not_decided(void)
{
    char claim[32];
    TEST_ASSERT_EQUAL(EVENT_RACE, audit(claim));
    TEST_ASSERT_EQUAL_STRING(EVENT_UNDECIDED, claim);
    opinions.decided[0] = opinions.decided[1] = true; /* a race that the analysis may have warned of */
    TEST_ASSERT_EQUAL(EVENT_RACE, audit(claim));
    TEST_ASSERT_EQUAL_STRING("", claim);
    opinions.claim[1] = PLAN_CLAIM_GUARDED;
    TEST_ASSERT_EQUAL(EVENT_AUDIT, audit(claim));
    TEST_ASSERT_EQUAL_STRING("guarded", claim);
    TEST_ASSERT_NOT_NULL(strstr(report_test_said(&host), "SUMMARY: race: audit: not guarded: read a.c:20 in get, write a.c:10 in put\n"));
    opinions.decided[0] = false; /* it was not compared with this one */
    TEST_ASSERT_EQUAL(EVENT_RACE, audit(claim));
    TEST_ASSERT_EQUAL_STRING(EVENT_UNDECIDED, claim);
    opinions.claim[0] = PLAN_CLAIM_LOCAL; /* of whoever comes */
    TEST_ASSERT_EQUAL(EVENT_AUDIT, audit(claim));
    opinions.claim[1] = PLAN_CLAIM_NONE;
    TEST_ASSERT_EQUAL(EVENT_AUDIT, audit(claim));
    TEST_ASSERT_EQUAL_STRING("local", claim);
}

static void test_a_damaged_log_is_never_believed(void)
{
    options.log_dir = "logs";
    start();
    make_race(load());
    report_summary(r);
    size_t size = host.files[2].size;
    for (size_t i = 0; i < size; i++) {
        host.files[2].bytes[i] ^= 0x55;
        event_reader reader = log_reader();
        const event_record *e;
        event_status status;
        size_t last = 0;
        while ((status = event_next(&reader, &e)) == EVENT_OK)
            last = reader.at;
        TEST_ASSERT_TRUE_MESSAGE(last <= i, "a damaged record was read");
        TEST_ASSERT_TRUE(status != EVENT_END || reader.cut);
        host.files[2].bytes[i] ^= 0x55;
    }
}

static void test_a_log_that_cannot_be_written_is_said_and_the_rest_goes_on(void)
{
    options.log_dir = "nowhere";
    host.no_files = true;
    start();
    host.no_files = false;
    TEST_ASSERT_EQUAL_STRING("race: nowhere: cannot be written; reports go to stderr only\n", report_test_said(&host));
    make_race(load());
    TEST_ASSERT_NOT_NULL(strstr(report_test_said(&host), "WARNING"));

    options.log_dir = "full";
    start();
    host.room = 300;
    make_race(load());
    host.room = 0;
    const char *said = report_test_said(&host);
    TEST_ASSERT_NOT_NULL(strstr(said, "WARNING"));
    TEST_ASSERT_NOT_NULL(strstr(said, "is the disk full?"));
}

static void test_a_fork_has_logs_of_its_own(void)
{
    options.log_dir = "logs";
    start();
    make_race(load());
    host.pid = 8;
    report_forked(r);
    TEST_ASSERT_EQUAL_INT(0, report_exit_code(r, 0));
    TEST_ASSERT_EQUAL_STRING("logs/race.8.events", host.files[4].path);
    TEST_ASSERT_TRUE(host.files[2].closed);
}

static void suppress(const char *text)
{
    FILE *f = fopen("suppressions", "w");
    fputs(text, f);
    fclose(f);
    options.suppressions = "suppressions";
}

static void test_suppressions_are_of_functions_files_modules_and_globals(void)
{
    static const struct {
        const char *text;
        bool hits;
    } cases[] = {
        {"race:get\n", true},        {"race:put\n", true},      {"race:main\n", true},      {"race:^main$\n", true},
        {"race:mai$\n", false},      {"race:^ain\n", false},    {"race:a.c\n", true},       {"race:dir/*.c\n", true},
        {"race:program", true},      {"race:total\n", true},    {"race_top:get\n", true},   {"race_top:main\n", true},
        {"race:other\n", false},     {"deadlock:get\n", false}, {"# race:get\n\n", false},  {"race:g*t\n", true},
        {"race:t*g\n", false},       {"thread:get\n", false},   {"called_from_lib:program\n", true}, {"race:*\n", true},
        {"race:^dir/a.c$ \r\n", true},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        suppress(cases[i].text);
        start();
        make_race(load());
        const char *said = report_test_said(&host);
        TEST_ASSERT_EQUAL_MESSAGE(!cases[i].hits, strstr(said, "WARNING") != NULL, cases[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].hits ? 0 : 66, report_exit_code(r, 0), cases[i].text);
    }
}

static void test_wrong_suppressions_are_a_problem(void)
{
    const char *problem = NULL;
    suppress("nonsense\n");
    report_test_start(&host, &options, &problem);
    TEST_ASSERT_NOT_NULL(problem);
    options.suppressions = "no/such/file";
    report_test_start(&host, &options, &problem);
    TEST_ASSERT_NOT_NULL(problem);
}

static void test_the_first_report_ends_the_process_if_wanted(void)
{
    options.halt_on_error = true;
    start();
    make_race(load());
    TEST_ASSERT_EQUAL_INT(66, host.halted);
}

static void test_a_deadlock_names_its_locks_and_places(void)
{
    start();
    report_module *m = load();
    report_edge edges[2] = {{m->start + DATA, 0x9000, 1, m->first_site, m->first_site + 2},
                            {0x9000, m->start + DATA, 2, m->first_site + 1, m->first_site + 2}};
    report_deadlock(r, edges, 2);
    const char *said = report_test_said(&host);
    TEST_ASSERT_NOT_NULL(strstr(said, "lock-order-inversion (potential deadlock)"));
    TEST_ASSERT_NOT_NULL(strstr(said, "'total'"));
    TEST_ASSERT_NOT_NULL(strstr(said, "Mutex M1 acquired here while holding mutex M0 in thread T1:\n    #0 put dir/a.c:10"));
    TEST_ASSERT_NOT_NULL(strstr(said, "Mutex M0 acquired here while holding mutex M1 in thread T2:\n    #0 get"));
    TEST_ASSERT_EQUAL_INT(66, report_exit_code(r, 0));
}

static void test_options_are_words(void)
{
    char problem[100], text[] = "  -plan  a\\ b\\\\c -stats\t-exit_code 9 -memory 2\n-log x";
    const char *words[16];
    int n = options_split(text, words, 16);
    TEST_ASSERT_EQUAL_INT(9, n);
    report_options o;
    options_default(&o);
    TEST_ASSERT_EQUAL(OPTIONS_OK, options_parse(&o, 0, n, words, problem, sizeof problem));
    TEST_ASSERT_EQUAL_STRING("a b\\c", o.plan_dir);
    TEST_ASSERT_TRUE(o.stats);
    TEST_ASSERT_EQUAL_INT(9, o.exit_code);
    TEST_ASSERT_EQUAL_UINT64(2 << 20, o.memory);
    static const char *const wrong[][2] = {{"-wishful", ""},   {"-exit_code", "256"}, {"-exit_code", ""},
                                           {"-exit_code", "x"}, {"-plan", NULL},       {"-stack_depth", "65"}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options_default(&o);
        TEST_ASSERT_EQUAL_MESSAGE(OPTIONS_BAD, options_parse(&o, 0, wrong[i][1] ? 2 : 1, wrong[i], problem, sizeof problem),
                                  wrong[i][0]);
        TEST_ASSERT_NOT_EQUAL(0, strlen(problem));
    }
    TEST_ASSERT_EQUAL(OPTIONS_HELP, options_parse(&o, 0, 1, &(const char *){"-help"}, problem, sizeof problem));
}

static void test_text_is_cut_at_its_end_and_clean(void)
{
    char at[8];
    report_text t;
    text_start(&t, at, sizeof at);
    text_add(&t, "%d%u%x", -12, 34u, 0xabu);
    TEST_ASSERT_EQUAL_STRING("-1234ab", at);
    text_add(&t, "more");
    TEST_ASSERT_EQUAL_STRING("-1234ab", at);
    text_start(&t, at, sizeof at);
    text_add(&t, "%s|%c", "a\x1b\nb", 'z');
    TEST_ASSERT_EQUAL_STRING("a??b|z", at);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_module_gets_its_plan_and_its_sites_have_numbers);
    RUN_TEST(test_a_module_that_comes_back_is_the_one_that_it_was);
    RUN_TEST(test_a_plan_of_another_build_is_refused_with_one_line);
    RUN_TEST(test_a_race_is_told_once_with_both_sides);
    RUN_TEST(test_the_log_holds_what_was_said_and_survives_a_cut);
    RUN_TEST(test_an_audit_tells_wrong_claims_from_what_was_not_decided);
    RUN_TEST(test_a_damaged_log_is_never_believed);
    RUN_TEST(test_a_log_that_cannot_be_written_is_said_and_the_rest_goes_on);
    RUN_TEST(test_a_fork_has_logs_of_its_own);
    RUN_TEST(test_suppressions_are_of_functions_files_modules_and_globals);
    RUN_TEST(test_wrong_suppressions_are_a_problem);
    RUN_TEST(test_the_first_report_ends_the_process_if_wanted);
    RUN_TEST(test_a_deadlock_names_its_locks_and_places);
    RUN_TEST(test_options_are_words);
    RUN_TEST(test_text_is_cut_at_its_end_and_clean);
    return UNITY_END();
}
