/* Unwind tables written by hand: encodings, fragments, landing pads, rows, and all that can be wrong with them. */
#include "builder.h"
#include "stream.h"

void setUp(void) {}
void tearDown(void) {}

enum { CODE = 0x1000, CODE_SIZE = 0x400, FRAME = 0x3000, LSDA = 0x20000 };
enum { PCREL4 = 0x1b, ABS8 = 0x00, PCREL8 = 0x1c, UDATA4 = 0x03, ULEB = 0x01, OMIT = 0xff };

/* --- writing ----------------------------------------------------------------------------------------------------- */

static uint32_t begin(stream *s)
{
    uint32_t at = s->len;
    put(s, 0, 4);
    return at;
}

static void end(stream *s, uint32_t at)
{
    while (s->len % 8)
        put(s, 0, 1); /* DW_CFA_nop */
    put_at(s, at, s->len - at - 4, 4);
}

/* A CIE whose instructions say: CFA = rsp+8, return address at CFA-8. Returns its offset. */
static uint32_t cie(stream *s, const char *augmentation, const uint8_t *data, size_t size)
{
    uint32_t at = begin(s);
    put(s, 0, 4);
    put(s, 1, 1); /* version */
    put_text(s, augmentation);
    put_uleb(s, 1);
    put_sleb(s, -8);
    put(s, 16, 1);
    if (*augmentation == 'z') put_uleb(s, size);
    put_bytes(s, data, size);
    static const uint8_t program[] = {0x0c, 7, 8, 0x90, 1};
    put_bytes(s, program, sizeof program);
    end(s, at);
    return at;
}

static uint32_t fde_begin(stream *s, uint32_t cie_at)
{
    uint32_t at = begin(s);
    put(s, s->len - cie_at, 4);
    return at;
}

/* An FDE for [start, start+size) with pc-relative 4-byte addresses. `lsda` 0: none; -1: the CIE has no L. */
static void fde(stream *s, uint32_t cie_at, uint64_t start, uint64_t size, int64_t lsda, const uint8_t *program,
                size_t length)
{
    uint32_t at = fde_begin(s, cie_at);
    put(s, start - (FRAME + s->len), 4);
    put(s, size, 4);
    put_uleb(s, lsda >= 0 ? 4 : 0);
    if (lsda >= 0) put(s, lsda ? (uint64_t)lsda - (FRAME + s->len) : 0, 4);
    put_bytes(s, program, length);
    end(s, at);
}

typedef struct {
    builder b;
    stream frame, lsda;
    image *img;
} module;

static void module_open(module *m)
{
    static const uint8_t code[CODE_SIZE] = {0xc3};
    m->b = builder_new(ET_DYN);
    builder_section(&m->b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
    if (m->frame.len) builder_section(&m->b, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, FRAME, m->frame.data, m->frame.len);
    if (m->lsda.len)
        builder_section(&m->b, ".gcc_except_table", SHT_PROGBITS, SHF_ALLOC, LSDA, m->lsda.data, m->lsda.len);
    m->img = builder_open(&m->b);
}

static void module_close(module *m)
{
    image_close(m->img);
    builder_free(&m->b);
    vec_free(&m->frame);
    vec_free(&m->lsda);
    *m = (module){0};
}

static const uint8_t R_PCREL4[] = {PCREL4};

/* --- FDEs -------------------------------------------------------------------------------------------------------- */

static void fdes_are_found_by_the_code_they_describe(void)
{
    module m = {0};
    uint32_t c = cie(&m.frame, "zR", R_PCREL4, 1);
    fde(&m.frame, c, CODE + 0x40, 0x20, -1, NULL, 0); /* not in order of address */
    fde(&m.frame, c, CODE, 0x10, -1, NULL, 0);
    fde(&m.frame, c, CODE + 0x80, 0, -1, NULL, 0); /* of no instructions */
    put(&m.frame, 0, 4);                           /* the end of one object's part */
    c = cie(&m.frame, "zR", R_PCREL4, 1);
    fde(&m.frame, c, CODE + 0x100, 0x300, -1, NULL, 0);
    module_open(&m);
    TEST_ASSERT_EQUAL_UINT32(3, m.img->fde_count);
    TEST_ASSERT_EQUAL_HEX64(CODE, m.img->fdes[0].start);
    TEST_ASSERT_EQUAL_HEX64(CODE + 0x10, m.img->fdes[0].end);
    TEST_ASSERT_EQUAL_PTR(&m.img->fdes[1], image_fde_at(m.img, CODE + 0x5f));
    TEST_ASSERT_NULL(image_fde_at(m.img, CODE + 0x60));
    TEST_ASSERT_NULL(image_fde_at(m.img, CODE + 0x10));
    TEST_ASSERT_EQUAL_PTR(&m.img->fdes[2], image_fde_at(m.img, CODE + 0x3ff));
    TEST_ASSERT_EQUAL_UINT32(0, m.img->unread);
    module_close(&m);
}

static void addresses_of_every_encoding_are_read(void)
{
    static const struct {
        uint8_t encoding;
        unsigned size; /* 0: LEB */
    } forms[] = {{ABS8, 8},   {PCREL4, 4}, {PCREL8, 8}, {0x10, 8}, {0x04, 8},
                 {UDATA4, 4}, {0x0b, 4},   {0x02, 2},   {ULEB, 0}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        module m = {0};
        uint32_t c = cie(&m.frame, "zR", &forms[i].encoding, 1);
        uint32_t at = fde_begin(&m.frame, c);
        uint64_t start = CODE + 0x20;
        if ((forms[i].encoding & 0x70) == 0x10) start -= FRAME + m.frame.len;
        if (forms[i].size) {
            put(&m.frame, start, forms[i].size);
            put(&m.frame, 0x30, forms[i].size);
        } else {
            put_uleb(&m.frame, start);
            put_uleb(&m.frame, 0x30);
        }
        put_uleb(&m.frame, 0);
        end(&m.frame, at);
        module_open(&m);
        TEST_ASSERT_EQUAL_UINT32(1, m.img->fde_count);
        TEST_ASSERT_EQUAL_HEX64(CODE + 0x20, m.img->fdes[0].start);
        TEST_ASSERT_EQUAL_HEX64(CODE + 0x50, m.img->fdes[0].end);
        module_close(&m);
    }
}

static void a_fragment_does_not_begin_with_the_frame_of_a_call(void)
{
    module m = {0};
    uint32_t c = cie(&m.frame, "zR", R_PCREL4, 1);
    static const uint8_t pushed[] = {0x0e, 16};      /* CFA = rsp+16 at once: the cold part of a function */
    static const uint8_t by_rbp[] = {0x0c, 6, 16};   /* CFA = rbp+16 */
    static const uint8_t usual[] = {0x41, 0x0e, 16}; /* after one byte: push */
    static const uint8_t same[] = {0x0e, 8, 0x41, 0x0e, 16};
    static const uint8_t expression[] = {0x0f, 2, 0x77, 8};
    fde(&m.frame, c, CODE, 0x10, -1, pushed, sizeof pushed);
    fde(&m.frame, c, CODE + 0x10, 0x10, -1, by_rbp, sizeof by_rbp);
    fde(&m.frame, c, CODE + 0x20, 0x10, -1, usual, sizeof usual);
    fde(&m.frame, c, CODE + 0x30, 0x10, -1, same, sizeof same);
    fde(&m.frame, c, CODE + 0x40, 0x10, -1, expression, sizeof expression);
    module_open(&m);
    static const bool fragment[] = {true, true, false, false, true};
    for (uint32_t i = 0; i < 5; i++)
        TEST_ASSERT_EQUAL(fragment[i], m.img->fdes[i].fragment);
    module_close(&m);
}

static void signal_frames_are_marked(void)
{
    module m = {0};
    uint32_t plain = cie(&m.frame, "zR", R_PCREL4, 1), signal = cie(&m.frame, "zRS", R_PCREL4, 1);
    fde(&m.frame, plain, CODE, 0x10, -1, NULL, 0);
    fde(&m.frame, signal, CODE + 0x10, 0x10, -1, NULL, 0);
    module_open(&m);
    TEST_ASSERT_FALSE(m.img->fdes[0].signal);
    TEST_ASSERT_TRUE(m.img->fdes[1].signal);
    module_close(&m);
}

static void damaged_entries_are_passed_over_and_counted(void)
{
    module m = {0};
    uint32_t good = cie(&m.frame, "zR", R_PCREL4, 1);
    uint32_t strange = cie(&m.frame, "q", NULL, 0); /* an augmentation that nobody knows */
    fde(&m.frame, strange, CODE, 0x10, -1, NULL, 0);
    fde(&m.frame, good + 4, CODE, 0x10, -1, NULL, 0);             /* points between CIEs */
    fde(&m.frame, good, 0x900000, 0x10, -1, NULL, 0);             /* no code there */
    fde(&m.frame, good, CODE + CODE_SIZE - 8, 0x10, -1, NULL, 0); /* over the end of the code */
    fde(&m.frame, good, CODE, UINT32_MAX, -1, NULL, 0);
    fde(&m.frame, good, CODE + 0x20, 0x10, -1, NULL, 0);
    fde(&m.frame, good, CODE + 0x20, 0x20, -1, NULL, 0); /* a second one for the same function */
    put(&m.frame, 0x1000, 4);                            /* longer than the section */
    put(&m.frame, 1, 4);
    module_open(&m);
    TEST_ASSERT_EQUAL_UINT32(1, m.img->fde_count);
    TEST_ASSERT_EQUAL_HEX64(CODE + 0x30, m.img->fdes[0].end);
    TEST_ASSERT_EQUAL_UINT32(8, m.img->unread);
    module_close(&m);
}

static void a_table_cut_anywhere_does_no_harm(void)
{
    stream whole = {0};
    static const uint8_t data[] = {0x9b, 1, 2, 3, 4, PCREL4, PCREL4};
    uint32_t c = cie(&whole, "zPLR", data, sizeof data);
    static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};
    fde(&whole, c, CODE, 0x10, LSDA, program, sizeof program);
    for (uint32_t length = 1; length <= whole.len; length++) {
        module m = {0};
        put_bytes(&m.frame, whole.data, length);
        module_open(&m);
        TEST_ASSERT_EQUAL_UINT32(length == whole.len, m.img->fde_count);
        module_close(&m);
    }
    vec_free(&whole);
}

/* --- landing pads ------------------------------------------------------------------------------------------------ */

static void call_sites(stream *s, uint8_t encoding, const uint64_t (*sites)[3], size_t count)
{
    stream table = {0};
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++) {
            if (encoding == ULEB)
                put_uleb(&table, sites[i][k]);
            else
                put(&table, sites[i][k], 4);
        }
        put_uleb(&table, 0);
    }
    put(s, encoding, 1);
    put_uleb(s, table.len);
    put_bytes(s, table.data, table.len);
    vec_free(&table);
}

static void calls_have_the_landing_pads_of_their_call_sites(void)
{
    static const uint8_t encodings[] = {ULEB, UDATA4};
    for (size_t i = 0; i < sizeof encodings; i++) {
        module m = {0};
        put(&m.lsda, OMIT, 1); /* pads count from the start of the function */
        put(&m.lsda, 0x9b, 1); /* there are types */
        put_uleb(&m.lsda, 64);
        static const uint64_t sites[][3] = {{0x10, 8, 0x80}, {0x20, 4, 0}, {0x30, 0x10, 0x90}};
        call_sites(&m.lsda, encodings[i], sites, 3);
        static const uint8_t data[] = {PCREL4, PCREL4};
        uint32_t c = cie(&m.frame, "zLR", data, sizeof data);
        fde(&m.frame, c, CODE + 0x100, 0x100, LSDA, NULL, 0);
        fde(&m.frame, c, CODE + 0x300, 0x10, 0, NULL, 0);
        module_open(&m);
        const image_fde *f = image_fde_at(m.img, CODE + 0x100);
        TEST_ASSERT_EQUAL_HEX64(LSDA, f->lsda);
        TEST_ASSERT_EQUAL_UINT32(2, f->pad_count);
        TEST_ASSERT_EQUAL_HEX64(0, image_landing_pad(m.img, CODE + 0x10f));
        TEST_ASSERT_EQUAL_HEX64(CODE + 0x180, image_landing_pad(m.img, CODE + 0x110));
        TEST_ASSERT_EQUAL_HEX64(CODE + 0x180, image_landing_pad(m.img, CODE + 0x117));
        TEST_ASSERT_EQUAL_HEX64(0, image_landing_pad(m.img, CODE + 0x118));
        TEST_ASSERT_EQUAL_HEX64(0, image_landing_pad(m.img, CODE + 0x120)); /* a call site without a pad */
        TEST_ASSERT_EQUAL_HEX64(CODE + 0x190, image_landing_pad(m.img, CODE + 0x13f));
        TEST_ASSERT_EQUAL_HEX64(0, image_landing_pad(m.img, CODE + 0x300));
        TEST_ASSERT_EQUAL_HEX64(0, image_fde_at(m.img, CODE + 0x300)->lsda);
        TEST_ASSERT_EQUAL_UINT32(0, m.img->unread);
        module_close(&m);
    }
}

static void pads_may_count_from_another_start(void)
{
    module m = {0};
    put(&m.lsda, PCREL4, 1); /* the function's other part */
    put(&m.lsda, (uint64_t)CODE + 0x200 - (LSDA + 1), 4);
    put(&m.lsda, OMIT, 1);
    static const uint64_t sites[][3] = {{0, 8, 0x10}};
    call_sites(&m.lsda, ULEB, sites, 1);
    static const uint8_t data[] = {PCREL4, PCREL4};
    fde(&m.frame, cie(&m.frame, "zLR", data, sizeof data), CODE, 0x100, LSDA, NULL, 0);
    module_open(&m);
    TEST_ASSERT_EQUAL_HEX64(CODE + 0x210, image_landing_pad(m.img, CODE + 4));
    module_close(&m);
}

static void many_functions_that_share_one_large_table_do_not_multiply_it(void)
{
    module m = {0};
    put(&m.lsda, OMIT, 1);
    put(&m.lsda, OMIT, 1);
    static uint64_t sites[200][3];
    for (uint64_t i = 0; i < 200; i++)
        memcpy(sites[i], (uint64_t[]){0, 1, 1}, sizeof sites[i]);
    call_sites(&m.lsda, ULEB, sites, 200);
    static const uint8_t data[] = {PCREL4, PCREL4};
    uint32_t c = cie(&m.frame, "zLR", data, sizeof data);
    for (uint64_t i = 0; i < CODE_SIZE / 2; i++)
        fde(&m.frame, c, CODE + 2 * i, 2, LSDA, NULL, 0);
    module_open(&m);
    TEST_ASSERT_EQUAL_UINT32(CODE_SIZE / 2, m.img->fde_count);
    TEST_ASSERT_TRUE(m.img->pad_count <= m.frame.len + m.lsda.len);
    TEST_ASSERT_TRUE(m.img->unread > 0);
    module_close(&m);
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static uint32_t rows_of(module *m, const uint8_t *program, size_t length, image_unwind_row **rows)
{
    uint32_t c = cie(&m->frame, "zR", R_PCREL4, 1);
    fde(&m->frame, c, CODE, 0x200, -1, program, length);
    module_open(m);
    TEST_ASSERT_EQUAL_UINT32(1, m->img->fde_count);
    return image_unwind_rows(m->img, &m->img->fdes[0], rows);
}

static void rows_follow_the_instructions(void)
{
    static const uint8_t program[] = {
        0x41,                   /* +1 */
        0x0e, 16,               /* CFA = rsp+16 */
        0x86, 2,                /* rbp at CFA-16 */
        0x43,                   /* +3 */
        0x0d, 6,                /* CFA = rbp+16 */
        0x02, 0x20,             /* +0x20 */
        0x0a,                   /* remember */
        0x83, 3,                /* rbx at CFA-24 */
        0x03, 0x10, 0x00,       /* +0x10 */
        0x0b,                   /* restore */
        0x04, 4,    0,    0, 0, /* +4 */
        0xc6,                   /* rbp as at the start */
        0x0c, 7,    8,          /* CFA = rsp+8 */
    };
    module m = {0};
    image_unwind_row *rows;
    uint32_t count = rows_of(&m, program, sizeof program, &rows);
    static const struct {
        uint64_t offset;
        int reg, cfa;
        int32_t rbp, rbx;
    } wanted[] = {{0, 7, 8, IMAGE_UNWIND_UNSAVED, IMAGE_UNWIND_UNSAVED},
                  {1, 7, 16, -16, IMAGE_UNWIND_UNSAVED},
                  {4, 6, 16, -16, IMAGE_UNWIND_UNSAVED},
                  {0x24, 6, 16, -16, -24},
                  {0x34, 6, 16, -16, IMAGE_UNWIND_UNSAVED},
                  {0x38, 7, 8, IMAGE_UNWIND_UNSAVED, IMAGE_UNWIND_UNSAVED}};
    TEST_ASSERT_EQUAL_UINT32(sizeof wanted / sizeof *wanted, count);
    for (uint32_t i = 0; i < count; i++) {
        TEST_ASSERT_EQUAL_HEX64(CODE + wanted[i].offset, rows[i].addr);
        TEST_ASSERT_EQUAL_INT(wanted[i].reg, rows[i].cfa_reg);
        TEST_ASSERT_EQUAL_INT(wanted[i].cfa, rows[i].cfa_off);
        TEST_ASSERT_EQUAL_INT32(wanted[i].rbp, rows[i].saved[6]);
        TEST_ASSERT_EQUAL_INT32(wanted[i].rbx, rows[i].saved[3]);
        TEST_ASSERT_EQUAL_INT32(-8, rows[i].saved[16]);
    }
    free(rows);
    module_close(&m);
}

static void what_is_not_a_place_in_the_frame_is_complex(void)
{
    static const uint8_t program[] = {
        0x10, 3,    2,    0x77, 8, /* expression: rbx */
        0x16, 12,   1,    0x9c,    /* val_expression: r12 */
        0x09, 13,   0,             /* register: r13 in rax */
        0x07, 16,                  /* undefined: return address */
        0x14, 14,   1,             /* val_offset: r14 */
        0x15, 15,   0x7f,          /* val_offset_sf: r15 */
        0x05, 60,   1,             /* a register that we do not follow */
        0x2e, 0x20,                /* GNU_args_size */
        0x11, 6,    0x02,          /* offset_extended_sf: rbp at CFA-16 */
        0x2f, 1,    3,             /* GNU_negative_offset_extended: rdx at CFA+24 */
        0x41, 0x08, 6,             /* same_value: rbp */
        0x12, 7,    0x7e,          /* def_cfa_sf: rsp+16 */
        0x41, 0x13, 0x7d,          /* def_cfa_offset_sf: +24 */
        0x41, 0x0f, 2,    0x77, 0, /* def_cfa_expression */
    };
    module m = {0};
    image_unwind_row *rows;
    uint32_t count = rows_of(&m, program, sizeof program, &rows);
    TEST_ASSERT_EQUAL_UINT32(4, count);
    static const int complex[] = {3, 12, 13, 16, 14, 15};
    for (size_t i = 0; i < sizeof complex / sizeof *complex; i++)
        TEST_ASSERT_EQUAL_INT32(IMAGE_UNWIND_COMPLEX, rows[0].saved[complex[i]]);
    TEST_ASSERT_EQUAL_INT32(-16, rows[0].saved[6]);
    TEST_ASSERT_EQUAL_INT32(24, rows[0].saved[1]);
    TEST_ASSERT_EQUAL_INT32(IMAGE_UNWIND_UNSAVED, rows[1].saved[6]);
    TEST_ASSERT_EQUAL_INT(16, rows[1].cfa_off);
    TEST_ASSERT_EQUAL_INT(24, rows[2].cfa_off);
    TEST_ASSERT_EQUAL_INT(-1, rows[3].cfa_reg);
    free(rows);
    module_close(&m);
}

static void rows_that_cannot_be_read_are_none(void)
{
    static const struct {
        uint8_t bytes[12];
        size_t size;
    } programs[] = {{{0x0b}, 1},                                 /* restore without remember */
                    {{0x3b}, 1},                                 /* unknown */
                    {{0x10, 3, 0xff, 0x7f}, 4},                  /* an expression beyond the end */
                    {{0x41, 0x01, 0, 0, 0, 0, 0, 0, 0, 0}, 10}}; /* set_loc relative to an unknown place */
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        module m = {0};
        image_unwind_row *rows = (image_unwind_row *)1;
        uint32_t count = rows_of(&m, programs[i].bytes, programs[i].size, &rows);
        TEST_ASSERT_EQUAL_UINT32(0, count);
        TEST_ASSERT_NULL(rows);
        module_close(&m);
    }
}

static void endless_remembering_is_given_up(void)
{
    static uint8_t program[5000];
    memset(program, 0x0a, sizeof program);
    module m = {0};
    image_unwind_row *rows;
    TEST_ASSERT_EQUAL_UINT32(0, rows_of(&m, program, sizeof program, &rows));
    module_close(&m);
}

/* --- other places ------------------------------------------------------------------------------------------------ */

static void debug_frame_serves_when_there_is_no_eh_frame(void)
{
    stream s = {0};
    uint32_t at = begin(&s);
    put(&s, UINT32_MAX, 4);
    put(&s, 4, 1);
    put_text(&s, "");
    put(&s, 8, 1); /* address size */
    put(&s, 0, 1); /* segment size */
    put_uleb(&s, 1);
    put_sleb(&s, -8);
    put_uleb(&s, 16);
    static const uint8_t initial[] = {0x0c, 7, 8, 0x90, 1};
    put_bytes(&s, initial, sizeof initial);
    end(&s, at);
    at = begin(&s);
    put(&s, 0, 4); /* the CIE's offset */
    put(&s, CODE + 0x10, 8);
    put(&s, 0x20, 8);
    static const uint8_t program[] = {0x41, 0x0e, 16};
    put_bytes(&s, program, sizeof program);
    end(&s, at);
    builder b = builder_new(ET_EXEC);
    static const uint8_t code[CODE_SIZE] = {0xc3};
    builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
    builder_section(&b, ".debug_frame", SHT_PROGBITS, 0, 0, s.data, s.len);
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(1, img->fde_count);
    TEST_ASSERT_EQUAL_HEX64(CODE + 0x10, img->fdes[0].start);
    image_unwind_row *rows;
    TEST_ASSERT_EQUAL_UINT32(2, image_unwind_rows(img, &img->fdes[0], &rows));
    TEST_ASSERT_EQUAL_INT(16, rows[1].cfa_off);
    free(rows);
    image_close(img);
    builder_free(&b);
    vec_free(&s);
}

static void without_section_headers_the_table_is_found_through_its_header(void)
{
    stream s = {0};
    uint32_t c = cie(&s, "zR", R_PCREL4, 1);
    fde(&s, c, CODE, 0x10, -1, NULL, 0);
    put(&s, 0, 4);
    put(&s, 0x12345678, 4); /* whatever follows */
    stream header = {0};
    put(&header, 1, 1);
    put(&header, PCREL4, 1);
    put(&header, UDATA4, 1);
    put(&header, 0x3b, 1);
    put(&header, (uint64_t)FRAME - (0x4000 + 4), 4);
    put(&header, 0, 4);
    builder b = builder_new(ET_DYN);
    b.no_sections = true;
    static const uint8_t code[CODE_SIZE] = {0xc3};
    builder_section(&b, "", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
    builder_section(&b, "", SHT_PROGBITS, SHF_ALLOC, FRAME, s.data, s.len);
    builder_section(&b, "", SHT_PROGBITS, SHF_ALLOC, 0x4000, header.data, header.len);
    builder_segment(&b, PT_GNU_EH_FRAME, PF_R, 0x4000, header.len);
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(1, img->fde_count);
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    image_close(img);
    builder_free(&b);
    vec_free(&s);
    vec_free(&header);
}

static void in_an_object_the_table_is_relocated_first(void)
{
    stream s = {0};
    uint32_t c = cie(&s, "zR", R_PCREL4, 1), at = fde_begin(&s, c), start = s.len;
    put(&s, 0, 4);
    put(&s, 0x20, 4);
    put_uleb(&s, 0);
    end(&s, at);
    builder b = builder_new(ET_REL);
    static const uint8_t code[CODE_SIZE] = {0xc3};
    uint32_t text = builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, code, sizeof code);
    uint32_t frame = builder_section(&b, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0, s.data, s.len);
    uint32_t symbol = builder_symbol(&b, "", 0, 0, STT_SECTION, STB_LOCAL, (uint16_t)text);
    const Elf64_Rela relas[] = {R(start, symbol, R_X86_64_PC32, 0x40)};
    builder_relas(&b, ".rela.eh_frame", frame, 0, relas, 1);
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(1, img->fde_count);
    TEST_ASSERT_EQUAL_HEX64(0x10040, img->fdes[0].start);
    image_close(img);
    builder_free(&b);
    vec_free(&s);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(fdes_are_found_by_the_code_they_describe);
    RUN_TEST(addresses_of_every_encoding_are_read);
    RUN_TEST(a_fragment_does_not_begin_with_the_frame_of_a_call);
    RUN_TEST(signal_frames_are_marked);
    RUN_TEST(damaged_entries_are_passed_over_and_counted);
    RUN_TEST(a_table_cut_anywhere_does_no_harm);
    RUN_TEST(calls_have_the_landing_pads_of_their_call_sites);
    RUN_TEST(pads_may_count_from_another_start);
    RUN_TEST(many_functions_that_share_one_large_table_do_not_multiply_it);
    RUN_TEST(rows_follow_the_instructions);
    RUN_TEST(what_is_not_a_place_in_the_frame_is_complex);
    RUN_TEST(rows_that_cannot_be_read_are_none);
    RUN_TEST(endless_remembering_is_given_up);
    RUN_TEST(debug_frame_serves_when_there_is_no_eh_frame);
    RUN_TEST(without_section_headers_the_table_is_found_through_its_header);
    RUN_TEST(in_an_object_the_table_is_relocated_first);
    return UNITY_END();
}
