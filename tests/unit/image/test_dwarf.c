/* DWARF written by hand: old and new forms, and DWARF that leads in circles, overlaps, or claims the impossible. Every
 * test ends because the reader does; the alarm is there for the day it does not. */
#include "builder.h"
#include "stream.h"

#include <dwarf.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

void setUp(void)
{
    alarm(60);
}
void tearDown(void)
{
    alarm(0);
}

enum { CODE = 0x1000, CODE_SIZE = 0x1000, DATA = 0x4000 };
enum { UNIT_HEADER = 11 }; /* bytes of a unit header of version 4 */

typedef struct {
    builder b;
    stream info, abbrev, line, ranges, str;
    image *img;
} module;

/* abbrev(m, code, tag, children, name, form, ..., 0) */
static void abbrev(module *m, unsigned code, unsigned tag, bool children, ...)
{
    va_list args;
    put_uleb(&m->abbrev, code);
    put_uleb(&m->abbrev, tag);
    put(&m->abbrev, children, 1);
    va_start(args, children);
    for (unsigned name; (name = va_arg(args, unsigned));) {
        put_uleb(&m->abbrev, name);
        put_uleb(&m->abbrev, va_arg(args, unsigned));
    }
    va_end(args);
    put(&m->abbrev, 0, 2);
}

enum {
    UNIT = 1,
    FUNCTION,
    VARIABLE,
    TYPEDEF,
    POINTER,
    INT,
    STRUCT,
    MEMBER,
    ARRAY,
    SUBRANGE,
    CONST,
    BLOCK,
    ORIGIN,
    INLINED,
    LAST
};

/* The abbreviations that most tests need. References are 4 bytes, from the start of the unit. */
static void usual_abbrevs(module *m)
{
    abbrev(m, UNIT, DW_TAG_compile_unit, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
           DW_FORM_data8, 0);
    abbrev(m, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
           DW_FORM_data8, DW_AT_type, DW_FORM_ref4, 0);
    abbrev(m, VARIABLE, DW_TAG_variable, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4, DW_AT_location,
           DW_FORM_exprloc, 0);
    abbrev(m, TYPEDEF, DW_TAG_typedef, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4, 0);
    abbrev(m, POINTER, DW_TAG_pointer_type, false, DW_AT_type, DW_FORM_ref4, 0);
    abbrev(m, INT, DW_TAG_base_type, false, DW_AT_name, DW_FORM_string, DW_AT_byte_size, DW_FORM_data1, DW_AT_encoding,
           DW_FORM_data1, 0);
    abbrev(m, STRUCT, DW_TAG_structure_type, true, DW_AT_name, DW_FORM_string, DW_AT_byte_size, DW_FORM_udata, 0);
    abbrev(m, MEMBER, DW_TAG_member, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
           DW_AT_data_member_location, DW_FORM_udata, 0);
    abbrev(m, ARRAY, DW_TAG_array_type, true, DW_AT_type, DW_FORM_ref4, 0);
    abbrev(m, SUBRANGE, DW_TAG_subrange_type, false, DW_AT_upper_bound, DW_FORM_data8, 0);
    abbrev(m, CONST, DW_TAG_const_type, false, DW_AT_type, DW_FORM_ref4, 0);
    abbrev(m, BLOCK, DW_TAG_lexical_block, true, 0);
    abbrev(m, ORIGIN, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
           DW_AT_high_pc, DW_FORM_data8, 0);
    abbrev(m, INLINED, DW_TAG_inlined_subroutine, true, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
           DW_AT_high_pc, DW_FORM_data8, 0);
}

/* Begins a unit of version 4 whose first entry is a compile unit for all the code. */
static uint32_t unit_begin(module *m)
{
    uint32_t at = m->info.len;
    put(&m->info, 0, 4);
    put(&m->info, 4, 2);
    put(&m->info, 0, 4);
    put(&m->info, 8, 1);
    put_uleb(&m->info, UNIT);
    put_text(&m->info, "unit.c");
    put(&m->info, CODE, 8);
    put(&m->info, CODE_SIZE, 8);
    return at;
}

static void unit_end(module *m, uint32_t at)
{
    put(&m->info, 0, 1);
    put_at(&m->info, at, m->info.len - at - 4, 4);
}

static uint32_t put_int(module *m)
{
    uint32_t at = m->info.len;
    put_uleb(&m->info, INT);
    put_text(&m->info, "int");
    put(&m->info, 4, 1);
    put(&m->info, DW_ATE_signed, 1);
    return at;
}

static void put_global(module *m, const char *name, uint32_t type, uint64_t addr)
{
    put_uleb(&m->info, VARIABLE);
    put_text(&m->info, name);
    put(&m->info, type, 4);
    put_uleb(&m->info, 9);
    put(&m->info, DW_OP_addr, 1);
    put(&m->info, addr, 8);
}

static void put_function(module *m, const char *name, uint64_t start, uint64_t size, uint32_t returns)
{
    put_uleb(&m->info, FUNCTION);
    put_text(&m->info, name);
    put(&m->info, start, 8);
    put(&m->info, size, 8);
    put(&m->info, returns, 4);
}

static void module_open(module *m)
{
    static const uint8_t code[CODE_SIZE] = {0xc3}, data[0x1000] = {0};
    put(&m->abbrev, 0, 1);
    m->b = builder_new(ET_EXEC);
    builder_section(&m->b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
    builder_section(&m->b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof data);
    builder_section(&m->b, ".debug_info", SHT_PROGBITS, 0, 0, m->info.data, m->info.len);
    builder_section(&m->b, ".debug_abbrev", SHT_PROGBITS, 0, 0, m->abbrev.data, m->abbrev.len);
    if (m->line.len) builder_section(&m->b, ".debug_line", SHT_PROGBITS, 0, 0, m->line.data, m->line.len);
    if (m->ranges.len) builder_section(&m->b, ".debug_ranges", SHT_PROGBITS, 0, 0, m->ranges.data, m->ranges.len);
    if (m->str.len) builder_section(&m->b, ".debug_str", SHT_PROGBITS, 0, 0, m->str.data, m->str.len);
    m->img = builder_open(&m->b);
    TEST_ASSERT_TRUE(m->img->has_debug);
}

static void module_close(module *m)
{
    image_close(m->img);
    builder_free(&m->b);
    vec_free(&m->info);
    vec_free(&m->abbrev);
    vec_free(&m->line);
    vec_free(&m->ranges);
    vec_free(&m->str);
    *m = (module){0};
}

static const image_type *type_of_global(const module *m, uint64_t addr)
{
    const image_variable *v = image_global_at(m->img, addr);
    TEST_ASSERT_NOT_NULL(v);
    return v->type;
}

/* --- circles ----------------------------------------------------------------------------------------------------- */

static void types_that_lead_back_to_themselves_end(void)
{
    module m = {0};
    usual_abbrevs(&m);
    uint32_t unit = unit_begin(&m);
    uint32_t typedef_self = m.info.len;
    put_uleb(&m.info, TYPEDEF);
    put_text(&m.info, "loop");
    put(&m.info, typedef_self - unit, 4);
    uint32_t const_one = m.info.len; /* const -> typedef -> const */
    put_uleb(&m.info, CONST);
    put(&m.info, const_one + 5 - unit, 4);
    put_uleb(&m.info, TYPEDEF);
    put_text(&m.info, "t");
    put(&m.info, const_one - unit, 4);
    uint32_t pointer_self = m.info.len;
    put_uleb(&m.info, POINTER);
    put(&m.info, pointer_self - unit, 4);
    uint32_t array_self = m.info.len;
    put_uleb(&m.info, ARRAY);
    put(&m.info, array_self - unit, 4);
    put(&m.info, 0, 1);
    uint32_t struct_self = m.info.len; /* contains itself by value */
    put_uleb(&m.info, STRUCT);
    put_text(&m.info, "s");
    put_uleb(&m.info, 16);
    put_uleb(&m.info, MEMBER);
    put_text(&m.info, "inner");
    put(&m.info, struct_self - unit, 4);
    put_uleb(&m.info, 0);
    put(&m.info, 0, 1);
    put_global(&m, "a", typedef_self - unit, DATA);
    put_global(&m, "b", const_one - unit, DATA + 0x10);
    put_global(&m, "c", pointer_self - unit, DATA + 0x20);
    put_global(&m, "d", array_self - unit, DATA + 0x30);
    put_global(&m, "e", struct_self - unit, DATA + 0x40);
    put_global(&m, "f", 0x7fffffff, DATA + 0x50); /* nowhere */
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_NULL(type_of_global(&m, DATA));
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x10));
    TEST_ASSERT_EQUAL_INT(IMAGE_TYPE_POINTER, type_of_global(&m, DATA + 0x20)->kind);
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x20)->target);
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x30));
    const image_type *s = type_of_global(&m, DATA + 0x40);
    TEST_ASSERT_EQUAL_PTR(s, s->members[0].type);
    TEST_ASSERT_NULL(image_type_at(s, 0, 4));
    char words[400];
    image_describe(s, "e", 0, words, sizeof words);
    TEST_ASSERT_EQUAL_STRING_LEN("e.inner.inner", words, 13);
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x50));
    TEST_ASSERT_TRUE(image_debug_unread(m.img) >= 4);
    module_close(&m);
}

static void origins_that_lead_back_to_themselves_end(void)
{
    module m = {0};
    usual_abbrevs(&m);
    uint32_t unit = unit_begin(&m), function = m.info.len;
    put_uleb(&m.info, ORIGIN);
    put(&m.info, function - unit, 4);
    put(&m.info, CODE, 8);
    put(&m.info, 0x10, 8);
    unit_end(&m, unit);
    module_open(&m);
    const image_function *f = image_function_at(m.img, CODE);
    TEST_ASSERT_NOT_NULL(f);
    TEST_ASSERT_EQUAL_STRING("", f->name);
    TEST_ASSERT_NULL(f->file);
    image_frame frames[4];
    TEST_ASSERT_EQUAL_UINT32(1, image_frames_at(m.img, CODE, frames, 4));
    module_close(&m);
}

static void a_unit_that_nests_without_end_is_not_used(void)
{
    module m = {0};
    usual_abbrevs(&m);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
    put_function(&m, "deep", CODE, 0x10, type);
    for (int i = 0; i < 100000; i++)
        put_uleb(&m.info, BLOCK);
    for (int i = 0; i < 100001; i++)
        put(&m.info, 0, 1);
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_NULL(image_function_at(m.img, CODE));
    image_frame frames[4];
    TEST_ASSERT_EQUAL_UINT32(0, image_frames_at(m.img, CODE, frames, 4));
    TEST_ASSERT_EQUAL_UINT32(1, image_debug_unread(m.img));
    module_close(&m);
}

/* Each entry's sibling is the entry after its first child, so that children are reached on more and more ways. */
static void a_unit_whose_siblings_overlap_children_is_not_used(void)
{
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_lexical_block, true, DW_AT_sibling, DW_FORM_ref4, 0);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
    put_function(&m, "wide", CODE, 0x10, type);
    for (int i = 0; i < 5000; i++) {
        put_uleb(&m.info, LAST);
        put(&m.info, m.info.len + 4 + 5 - unit, 4); /* the entry after the next */
    }
    for (int i = 0; i < 5003; i++)
        put(&m.info, 0, 1);
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_NULL(image_function_at(m.img, CODE));
    TEST_ASSERT_EQUAL_UINT32(1, image_debug_unread(m.img));
    module_close(&m);
}

/* With the siblings that it really has, the same unit is used. */
static void siblings_are_checked_against_where_children_end(void)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        module m = {0};
        usual_abbrevs(&m);
        abbrev(&m, LAST, DW_TAG_lexical_block, true, DW_AT_sibling, DW_FORM_ref4, 0);
        uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
        put_function(&m, "f", CODE, 0x10, type);
        put_uleb(&m.info, LAST);
        uint32_t sibling = m.info.len;
        put(&m.info, 0, 4);
        put_uleb(&m.info, BLOCK);
        put(&m.info, 0, 2); /* ends both blocks */
        put_at(&m.info, sibling, m.info.len - unit - (wrong ? 1 : 0), 4);
        put(&m.info, 0, 1);
        unit_end(&m, unit);
        module_open(&m);
        TEST_ASSERT_EQUAL(wrong, image_function_at(m.img, CODE) == NULL);
        TEST_ASSERT_EQUAL_UINT32(wrong, image_debug_unread(m.img));
        module_close(&m);
    }
}

static void references_to_where_no_entry_begins_are_not_followed(void)
{
    module m = {0};
    usual_abbrevs(&m);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
    put_global(&m, "good", type, DATA);
    put_global(&m, "inside", type + 1, DATA + 0x10); /* the name of int is no entry, whatever its bytes look like */
    put_global(&m, "header", 3, DATA + 0x20);
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_NOT_NULL(type_of_global(&m, DATA));
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x10));
    TEST_ASSERT_NULL(type_of_global(&m, DATA + 0x20));
    TEST_ASSERT_EQUAL_UINT32(2, image_debug_unread(m.img));
    module_close(&m);
}

/* Each entry is one byte, and finding anything in it means to look at all its attributes. */
static void an_abbreviation_of_very_many_attributes_is_not_used(void)
{
    module m = {0};
    usual_abbrevs(&m);
    put_uleb(&m.abbrev, LAST);
    put_uleb(&m.abbrev, DW_TAG_lexical_block);
    put(&m.abbrev, 0, 1);
    for (int i = 0; i < 100000; i++) {
        put_uleb(&m.abbrev, DW_AT_artificial);
        put_uleb(&m.abbrev, DW_FORM_flag_present);
    }
    put(&m.abbrev, 0, 2);
    uint32_t unit = unit_begin(&m);
    for (int i = 0; i < 100000; i++)
        put_uleb(&m.info, LAST);
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_NULL(image_function_at(m.img, CODE));
    TEST_ASSERT_EQUAL_UINT32(1, image_debug_unread(m.img));
    module_close(&m);
}

static void many_functions_that_share_one_long_list_of_ranges_do_not_multiply_it(void)
{
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_subprogram, false, DW_AT_ranges, DW_FORM_sec_offset, 0);
    for (int i = 0; i < 20000; i++) {
        put(&m.ranges, 1 + i % 0x100, 8);
        put(&m.ranges, 2 + i % 0x100, 8);
    }
    put(&m.ranges, 0, 16);
    uint32_t unit = unit_begin(&m);
    for (int i = 0; i < 20000; i++) {
        put_uleb(&m.info, LAST);
        put(&m.info, 0, 4);
    }
    unit_end(&m, unit);
    module_open(&m);
    clock_t before = clock();
    image_function_at(m.img, CODE + 0x80);
    TEST_ASSERT_TRUE(clock() - before < 20 * CLOCKS_PER_SEC);
    module_close(&m);
}

static void many_entries_that_share_one_long_name_do_not_multiply_it(void)
{
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_structure_type, false, DW_AT_name, DW_FORM_strp, 0);
    abbrev(&m, LAST + 1, DW_TAG_variable, false, DW_AT_name, DW_FORM_strp, DW_AT_type, DW_FORM_ref4, DW_AT_location,
           DW_FORM_exprloc, 0);
    for (int i = 0; i < 1 << 20; i++)
        put(&m.str, 'a', 1);
    put(&m.str, 0, 1);
    uint32_t unit = unit_begin(&m);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t type = m.info.len - unit;
        put_uleb(&m.info, LAST);
        put(&m.info, i, 4);
        put_uleb(&m.info, LAST + 1);
        put(&m.info, i, 4);
        put(&m.info, type, 4);
        put_uleb(&m.info, 9);
        put(&m.info, DW_OP_addr, 1);
        put(&m.info, DATA, 8);
    }
    unit_end(&m, unit);
    module_open(&m);
    clock_t before = clock();
    const image_variable *all;
    TEST_ASSERT_TRUE(image_globals(m.img, &all) > 0);
    TEST_ASSERT_TRUE(clock() - before < 20 * CLOCKS_PER_SEC);
    module_close(&m);
}

static void many_tiny_units_with_one_large_abbreviation_table_are_not_all_read(void)
{
    module m = {0};
    for (unsigned i = 1; i < 20000; i++)
        abbrev(&m, i, DW_TAG_compile_unit, false, 0);
    for (int i = 0; i < 20000; i++) { /* each uses the last abbreviation */
        put(&m.info, 7 + 3, 4);
        put(&m.info, 4, 2);
        put(&m.info, 0, 4);
        put(&m.info, 8, 1);
        put_uleb(&m.info, 19999);
    }
    module_open(&m);
    clock_t before = clock();
    TEST_ASSERT_NULL(image_function_at(m.img, CODE));
    TEST_ASSERT_TRUE(clock() - before < 20 * CLOCKS_PER_SEC);
    TEST_ASSERT_TRUE(image_debug_unread(m.img) > 0);
    module_close(&m);
}

/* --- impossible numbers ------------------------------------------------------------------------------------------ */

static void impossible_sizes_and_offsets_are_contained(void)
{
    module m = {0};
    usual_abbrevs(&m);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
    uint32_t array = m.info.len - unit;
    put_uleb(&m.info, ARRAY);
    put(&m.info, type, 4);
    put_uleb(&m.info, SUBRANGE);
    put(&m.info, INT64_MAX, 8);
    put(&m.info, 0, 1);
    uint32_t structure = m.info.len - unit;
    put_uleb(&m.info, STRUCT);
    put_text(&m.info, "s");
    put_uleb(&m.info, 8);
    for (int i = 0; i < 2; i++) {
        put_uleb(&m.info, MEMBER);
        put_text(&m.info, i ? "far" : "near");
        put(&m.info, type, 4);
        put_uleb(&m.info, i ? 1ull << 62 : 4);
    }
    put(&m.info, 0, 1);
    uint32_t huge = m.info.len - unit;
    put_uleb(&m.info, STRUCT);
    put_text(&m.info, "huge");
    put_uleb(&m.info, UINT64_MAX);
    put(&m.info, 0, 1);
    put_global(&m, "array", array, DATA);
    put_global(&m, "structure", structure, DATA + 0x100);
    put_global(&m, "beyond", type, 0x900000000);
    put_global(&m, "huge", huge, DATA + 0x200);
    unit_end(&m, unit);
    module_open(&m);
    TEST_ASSERT_EQUAL_UINT64(0, type_of_global(&m, DATA)->size);
    TEST_ASSERT_EQUAL_UINT32(1, type_of_global(&m, DATA + 0x100)->member_count);
    TEST_ASSERT_EQUAL_STRING("huge", image_global_at(m.img, DATA + 0xfff)->name);
    const image_variable *all;
    TEST_ASSERT_EQUAL_UINT32(3, image_globals(m.img, &all)); /* not the one that lies in no section */
    module_close(&m);
}

static void a_unit_cut_anywhere_does_no_harm(void)
{
    module whole = {0};
    usual_abbrevs(&whole);
    uint32_t unit = unit_begin(&whole), type = put_int(&whole) - unit;
    put_function(&whole, "f", CODE, 0x20, type);
    put_uleb(&whole.info, INLINED);
    put(&whole.info, type, 4);
    put(&whole.info, CODE + 4, 8);
    put(&whole.info, 4, 8);
    put(&whole.info, 0, 2);
    put_global(&whole, "g", type, DATA);
    unit_end(&whole, unit);
    for (uint32_t length = 1; length < whole.info.len; length++)
        for (int fix = 0; fix < 2; fix++) { /* with the length that it claims, and with the right one */
            module m = {0};
            put_bytes(&m.abbrev, whole.abbrev.data, whole.abbrev.len);
            put_bytes(&m.info, whole.info.data, length);
            if (fix && length >= 4) put_at(&m.info, 0, length - 4, 4);
            module_open(&m);
            image_frame frames[4];
            const image_variable *all;
            image_function_at(m.img, CODE);
            image_frames_at(m.img, CODE + 5, frames, 4);
            image_globals(m.img, &all);
            module_close(&m);
        }
    module_close(&whole);
}

/* --- old and other forms ----------------------------------------------------------------------------------------- */

static void members_have_places_in_the_forms_of_every_version(void)
{
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_member, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
           DW_AT_data_member_location, DW_FORM_block1, 0);
    abbrev(&m, LAST + 1, DW_TAG_member, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
           DW_AT_data_member_location, DW_FORM_data1, DW_AT_byte_size, DW_FORM_data1, DW_AT_bit_size, DW_FORM_data1,
           DW_AT_bit_offset, DW_FORM_data1, 0);
    abbrev(&m, LAST + 2, DW_TAG_member, false, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
           DW_AT_data_bit_offset, DW_FORM_udata, DW_AT_bit_size, DW_FORM_data1, 0);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit, structure = m.info.len - unit;
    put_uleb(&m.info, STRUCT);
    put_text(&m.info, "s");
    put_uleb(&m.info, 32);
    put_uleb(&m.info, LAST); /* version 2: an expression */
    put_text(&m.info, "old");
    put(&m.info, type, 4);
    put(&m.info, 3, 1);
    put(&m.info, DW_OP_plus_uconst, 1);
    put_uleb(&m.info, 0x90);
    m.info.data[m.info.len - 1] = 0; /* 0x10, in two bytes */
    put_uleb(&m.info, LAST + 1);     /* version 4: bits 5 to 7 of the word at 8, counted from its top */
    put_text(&m.info, "counted_down");
    put(&m.info, type, 4);
    put(&m.info, 8, 1);
    put(&m.info, 4, 1);
    put(&m.info, 3, 1);
    put(&m.info, 32 - 5 - 3, 1);
    put_uleb(&m.info, LAST + 2); /* version 5: the same by its bit */
    put_text(&m.info, "counted_up");
    put(&m.info, type, 4);
    put_uleb(&m.info, 8 * 8 + 5);
    put(&m.info, 3, 1);
    put(&m.info, 0, 1);
    put_global(&m, "g", structure, DATA);
    unit_end(&m, unit);
    module_open(&m);
    const image_type *s = type_of_global(&m, DATA);
    TEST_ASSERT_EQUAL_UINT32(3, s->member_count);
    TEST_ASSERT_EQUAL_UINT64(0x10, s->members[0].offset);
    for (uint32_t i = 1; i < 3; i++) {
        TEST_ASSERT_EQUAL_UINT64(8, s->members[i].offset);
        TEST_ASSERT_EQUAL_UINT16(5, s->members[i].bit_offset);
        TEST_ASSERT_EQUAL_UINT16(3, s->members[i].bit_size);
    }
    module_close(&m);
}

static void an_incomplete_struct_is_its_only_definition_elsewhere(void)
{
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_structure_type, false, DW_AT_name, DW_FORM_string, DW_AT_declaration, DW_FORM_flag_present,
           0);
    uint32_t unit = unit_begin(&m), declared = m.info.len - unit;
    put_uleb(&m.info, LAST);
    put_text(&m.info, "once");
    uint32_t declared_twice = m.info.len - unit;
    put_uleb(&m.info, LAST);
    put_text(&m.info, "twice");
    put_global(&m, "a", declared, DATA);
    put_global(&m, "b", declared_twice, DATA + 0x40);
    unit_end(&m, unit);
    for (uint64_t i = 0; i < 2; i++) {
        unit = unit_begin(&m);
        if (i == 0) {
            put_uleb(&m.info, STRUCT);
            put_text(&m.info, "once");
            put_uleb(&m.info, 24);
            put(&m.info, 0, 1);
        }
        put_uleb(&m.info, STRUCT);
        put_text(&m.info, "twice");
        put_uleb(&m.info, 8 + i); /* not the same */
        put(&m.info, 0, 1);
        unit_end(&m, unit);
    }
    module_open(&m);
    TEST_ASSERT_EQUAL_UINT64(24, type_of_global(&m, DATA)->size);
    TEST_ASSERT_FALSE(type_of_global(&m, DATA)->is_declaration);
    TEST_ASSERT_TRUE(type_of_global(&m, DATA + 0x40)->is_declaration);
    module_close(&m);
}

static void variables_are_where_their_expressions_say(void)
{
    static const struct {
        uint8_t bytes[12];
        size_t size;
        image_place place;
        int64_t offset;
    } expressions[] = {
        {{DW_OP_fbreg, 0x70}, 2, IMAGE_PLACE_FRAME, -16},
        {{DW_OP_fbreg, 0x70, DW_OP_deref}, 3, IMAGE_PLACE_VARYING, 0},
        {{DW_OP_reg3}, 1, IMAGE_PLACE_VARYING, 0},
        {{DW_OP_addr, 0x20, 0x40, 0, 0, 0, 0, 0, 0}, 9, IMAGE_PLACE_STATIC, DATA + 0x20},
        {{DW_OP_addr, 0x20, 0x40, 0, 0, 0, 0, 0, 0, DW_OP_plus_uconst, 4}, 11, IMAGE_PLACE_STATIC, DATA + 0x24},
        {{DW_OP_const8u, 8, 0, 0, 0, 0, 0, 0, 0, DW_OP_GNU_push_tls_address}, 10, IMAGE_PLACE_TLS, 8},
        {{DW_OP_const4u, 12, 0, 0, 0, DW_OP_form_tls_address}, 6, IMAGE_PLACE_TLS, 12},
        {{DW_OP_addr, 1, 2}, 3, IMAGE_PLACE_VARYING, 0},
        {{0}, 0, IMAGE_PLACE_NONE, 0}};
    module m = {0};
    usual_abbrevs(&m);
    abbrev(&m, LAST, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
           DW_FORM_data8, DW_AT_frame_base, DW_FORM_exprloc, 0);
    uint32_t unit = unit_begin(&m), type = put_int(&m) - unit;
    for (int base = 0; base < 3; base++) { /* the CFA, rbp, rsp */
        put_uleb(&m.info, LAST);
        put_text(&m.info, "f");
        put(&m.info, (uint64_t)CODE + 0x100 * (unsigned)base, 8);
        put(&m.info, 0x100, 8);
        put_uleb(&m.info, 1);
        put(&m.info, base == 0 ? DW_OP_call_frame_cfa : base == 1 ? DW_OP_reg6 : DW_OP_reg7, 1);
        for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
            put_uleb(&m.info, VARIABLE);
            put_text(&m.info, "v");
            put(&m.info, type, 4);
            put_uleb(&m.info, expressions[i].size);
            put_bytes(&m.info, expressions[i].bytes, expressions[i].size);
        }
        put(&m.info, 0, 1);
    }
    unit_end(&m, unit);
    module_open(&m);
    for (unsigned base = 0; base < 3; base++) {
        const image_function *f = image_function_at(m.img, CODE + 0x100 * base);
        TEST_ASSERT_EQUAL_UINT32(sizeof expressions / sizeof *expressions, f->variable_count);
        TEST_ASSERT_TRUE(f->is_optimised);
        for (uint32_t i = 0; i < f->variable_count; i++) {
            image_place place = i == 0 && base == 2 ? IMAGE_PLACE_VARYING : expressions[i].place;
            int64_t offset = i == 0 ? (base == 0 ? -16 : base == 1 ? -32 : 0) : expressions[i].offset;
            TEST_ASSERT_EQUAL_INT(place, f->variables[i].place);
            TEST_ASSERT_EQUAL_INT64(offset, f->variables[i].offset);
        }
    }
    module_close(&m);
}

/* --- line tables ------------------------------------------------------------------------------------------------- */

static void put_line_header(stream *s, uint32_t *length, uint32_t *header)
{
    *length = s->len;
    put(s, 0, 4);
    put(s, 4, 2);
    *header = s->len;
    put(s, 0, 4);
    put(s, 1, 1); /* bytes of the smallest instruction */
    put(s, 1, 1); /* operations per instruction */
    put(s, 1, 1);
    put(s, 0xff, 1); /* line base -1 */
    put(s, 4, 1);    /* line range */
    put(s, 10, 1);   /* opcode base */
    static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
    put_bytes(s, lengths, sizeof lengths);
}

static void abbrev_with_lines(module *m)
{
    abbrev(m, UNIT, DW_TAG_compile_unit, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
           DW_FORM_data8, DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_comp_dir, DW_FORM_string, 0);
    uint32_t unit = unit_begin(m);
    put(&m->info, 0, 4);
    put_text(&m->info, "/build");
    unit_end(m, unit);
}

static void line_is(const module *m, uint64_t addr, const char *file, uint32_t line)
{
    image_line at;
    TEST_ASSERT_EQUAL(file != NULL, image_line_at(m->img, addr, &at));
    if (file) {
        TEST_ASSERT_EQUAL_STRING(file, at.file);
        TEST_ASSERT_EQUAL_UINT32(line, at.line);
    }
}

static void a_line_program_is_executed(void)
{
    module m = {0};
    abbrev_with_lines(&m);
    stream *s = &m.line;
    uint32_t length, header;
    put_line_header(s, &length, &header);
    put_text(s, "include");
    put_text(s, "/absolute");
    put(s, 0, 1);
    static const char *const names[] = {"a.c", "b.h", "c.h"};
    for (unsigned i = 0; i < 3; i++) {
        put_text(s, names[i]);
        put_uleb(s, i);
        put_uleb(s, 0);
        put_uleb(s, 0);
    }
    put(s, 0, 1);
    put_at(s, header, s->len - header - 4, 4);
    static const uint8_t set_address[] = {0, 9, DW_LNE_set_address};
    put_bytes(s, set_address, 3);
    put(s, CODE + 0x100, 8);
    put(s, DW_LNS_advance_line, 1);
    put_sleb(s, 41);
    put(s, DW_LNS_copy, 1);          /* 0x100: 42 */
    put(s, 10 + (2 + 1) + 4 * 3, 1); /* special: +2 lines, +3 bytes; 0x103: 44 */
    put(s, DW_LNS_set_file, 1);
    put_uleb(s, 2);
    put(s, DW_LNS_const_add_pc, 1); /* +(255-10)/4 = 61; */
    put(s, DW_LNS_copy, 1);         /* 0x140: b.h 44 */
    put(s, DW_LNS_set_file, 1);
    put_uleb(s, 3);
    put(s, DW_LNS_fixed_advance_pc, 1);
    put(s, 0x10, 2);
    put(s, DW_LNS_copy, 1); /* 0x150: c.h 44 */
    put(s, DW_LNS_set_file, 1);
    put_uleb(s, 99);
    put(s, DW_LNS_advance_pc, 1);
    put_uleb(s, 0x10);
    put(s, DW_LNS_copy, 1); /* 0x160: a file that is not there */
    put(s, DW_LNS_advance_pc, 1);
    put_uleb(s, 0x10);
    static const uint8_t end_sequence[] = {0, 1, DW_LNE_end_sequence};
    put_bytes(s, end_sequence, 3); /* 0x170 */
    put_bytes(s, set_address, 3);  /* a sequence before the first one */
    put(s, CODE, 8);
    put(s, DW_LNS_copy, 1);
    put(s, DW_LNS_advance_pc, 1);
    put_uleb(s, 4);
    put_bytes(s, end_sequence, 3);
    put_at(s, length, s->len - length - 4, 4);
    module_open(&m);
    line_is(&m, CODE, "/build/a.c", 1);
    line_is(&m, CODE + 4, NULL, 0);
    line_is(&m, CODE + 0xff, NULL, 0);
    line_is(&m, CODE + 0x102, "/build/a.c", 42);
    line_is(&m, CODE + 0x103, "/build/a.c", 44);
    line_is(&m, CODE + 0x140, "/build/include/b.h", 44);
    line_is(&m, CODE + 0x150, "/absolute/c.h", 44);
    line_is(&m, CODE + 0x160, NULL, 0);
    line_is(&m, CODE + 0x170, NULL, 0);
    TEST_ASSERT_EQUAL_UINT32(0, image_debug_unread(m.img));
    module_close(&m);
}

static void a_line_table_cut_or_changed_anywhere_does_no_harm(void)
{
    stream whole = {0};
    uint32_t length, header;
    put_line_header(&whole, &length, &header);
    put_text(&whole, "d");
    put(&whole, 0, 1);
    put_text(&whole, "a.c");
    put(&whole, 0, 4);
    put_at(&whole, header, whole.len - header - 4, 4);
    static const uint8_t program[] = {0, 9, DW_LNE_set_address, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 20, 21, 2, 9,
                                      0, 1, DW_LNE_end_sequence};
    put_bytes(&whole, program, sizeof program);
    put_at(&whole, length, whole.len - length - 4, 4);
    for (uint32_t at = 1; at < whole.len; at++)
        for (int kind = 0; kind < 4; kind++) {
            module m = {0};
            abbrev_with_lines(&m);
            put_bytes(&m.line, whole.data, kind ? whole.len : at);
            if (kind) m.line.data[at] = kind == 1 ? 0 : kind == 2 ? 0xff : 0x80;
            module_open(&m);
            image_line line;
            for (uint64_t addr = CODE; addr < CODE + 0x30; addr++)
                image_line_at(m.img, addr, &line);
            module_close(&m);
        }
    vec_free(&whole);
}

/* --- compressed sections ----------------------------------------------------------------------------------------- */

static void compressed_sections_that_claim_too_much_are_not_unpacked(void)
{
    static const uint64_t sizes[] = {0, 100, 1ull << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct {
            Elf64_Chdr h;
            uint8_t bytes[32];
        } packed = {{.ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizes[i], .ch_addralign = 1}, {0x78, 0x9c, 1, 2, 3}};
        builder b = builder_new(ET_EXEC);
        static const uint8_t code[16] = {0xc3};
        builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
        builder_section(&b, ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, 0, &packed, sizeof packed);
        builder_section(&b, ".debug_abbrev", SHT_PROGBITS, SHF_COMPRESSED, 0, &packed, 10);
        builder_section(&b, ".zdebug_line", SHT_PROGBITS, 0, 0, "ZLIB\xff\xff\xff\xff\xff\xff\xff\xff x", 14);
        image *img = builder_open(&b);
        image_line line;
        TEST_ASSERT_FALSE(image_line_at(img, CODE, &line));
        TEST_ASSERT_NULL(image_function_at(img, CODE));
        TEST_ASSERT_TRUE(image_debug_unread(img) > 0);
        image_close(img);
        builder_free(&b);
    }
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(types_that_lead_back_to_themselves_end);
    RUN_TEST(origins_that_lead_back_to_themselves_end);
    RUN_TEST(a_unit_that_nests_without_end_is_not_used);
    RUN_TEST(a_unit_whose_siblings_overlap_children_is_not_used);
    RUN_TEST(siblings_are_checked_against_where_children_end);
    RUN_TEST(references_to_where_no_entry_begins_are_not_followed);
    RUN_TEST(an_abbreviation_of_very_many_attributes_is_not_used);
    RUN_TEST(many_functions_that_share_one_long_list_of_ranges_do_not_multiply_it);
    RUN_TEST(many_entries_that_share_one_long_name_do_not_multiply_it);
    RUN_TEST(many_tiny_units_with_one_large_abbreviation_table_are_not_all_read);
    RUN_TEST(impossible_sizes_and_offsets_are_contained);
    RUN_TEST(a_unit_cut_anywhere_does_no_harm);
    RUN_TEST(members_have_places_in_the_forms_of_every_version);
    RUN_TEST(an_incomplete_struct_is_its_only_definition_elsewhere);
    RUN_TEST(variables_are_where_their_expressions_say);
    RUN_TEST(a_line_program_is_executed);
    RUN_TEST(a_line_table_cut_or_changed_anywhere_does_no_harm);
    RUN_TEST(compressed_sections_that_claim_too_much_are_not_unpacked);
    return UNITY_END();
}
