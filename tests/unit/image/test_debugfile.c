/* Separate debug files: found where .gnu_debuglink says, refused when they belong to another module, and the file that
 * dwz puts the common parts in. */
#include "builder.h"
#include "stream.h"

#include <dwarf.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/race_debug_XXXXXX";

void setUp(void) {}
void tearDown(void) {}

enum { CODE = 0x1000, DATA = 0x2000 };

static uint32_t crc32_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static char *write_file(const char *name, const builder *b)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_UINT64(b->size, fwrite(b->bytes, 1, b->size, file));
    fclose(file);
    return path;
}

static void add_build_id(builder *b, uint8_t id)
{
    const uint8_t note[] = {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xfa, 0xce, id, id};
    builder_section(b, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x5000, note, sizeof note);
}

/* A stripped module that names its debug file; `id` 0: no build id. */
static builder stripped(const char *debug_name, uint32_t crc, uint8_t id)
{
    static const uint8_t code[16] = {0xc3};
    builder b = builder_new(ET_DYN);
    b.no_symbols = true;
    builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, code, sizeof code);
    builder_section(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, code, sizeof code);
    if (id) add_build_id(&b, id);
    stream link = {0};
    put_text(&link, debug_name);
    while (link.len % 4)
        put(&link, 0, 1);
    put(&link, crc, 4);
    builder_section(&b, ".gnu_debuglink", SHT_PROGBITS, 0, 0, link.data, link.len);
    vec_free(&link);
    builder_finish(&b);
    return b;
}

static builder debug_file(uint8_t id)
{
    builder b = builder_new(ET_DYN);
    uint32_t text = builder_section(&b, ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, NULL, 16);
    if (id) add_build_id(&b, id);
    builder_symbol(&b, "secret", CODE + 4, 4, STT_FUNC, STB_LOCAL, (uint16_t)text);
    builder_finish(&b);
    return b;
}

static void expect_symbols(const char *path, bool wanted)
{
    image *img;
    race_error error = {""};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, image_open(path, &img, &error), error.text);
    TEST_ASSERT_EQUAL(wanted, img->has_symtab);
    TEST_ASSERT_EQUAL_UINT32(wanted, img->symbol_count);
    if (wanted) TEST_ASSERT_EQUAL_STRING("secret", image_symbol_covering(img, CODE + 6)->name);
    image_close(img);
}

static void a_debug_file_is_found_beside_the_module_or_below_it(void)
{
    static const char *const places[] = {"m.debug", ".debug/m.debug"};
    char *below = base_format("%s/.debug", folder);
    mkdir(below, 0700);
    for (size_t i = 0; i < 2; i++)
        for (uint8_t id = 0; id < 2; id++) { /* by its build id, or by its checksum */
            builder d = debug_file(id);
            builder b = stripped("m.debug", id ? 0 : crc32_of(d.bytes, d.size), id);
            char *module = write_file("m", &b), *debug = write_file(places[i], &d);
            expect_symbols(module, true);
            unlink(debug);
            expect_symbols(module, false);
            unlink(module);
            free(module);
            free(debug);
            builder_free(&b);
            builder_free(&d);
        }
    rmdir(below);
    free(below);
}

static void a_debug_file_of_another_module_is_not_used(void)
{
    for (uint8_t id = 0; id < 2; id++) {
        builder d = debug_file(id ? 7 : 0);
        builder b = stripped("m.debug", crc32_of(d.bytes, d.size) + 1, id);
        char *module = write_file("m", &b), *debug = write_file("m.debug", &d);
        expect_symbols(module, false);
        unlink(module);
        unlink(debug);
        free(module);
        free(debug);
        builder_free(&b);
        builder_free(&d);
    }
}

static void a_debug_link_that_is_no_file_does_no_harm(void)
{
    static const char *const names[] = {"m", "../m", "fifo", ".", ""};
    char *fifo = base_format("%s/fifo", folder);
    mkfifo(fifo, 0600);
    alarm(20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        builder b = stripped(names[i], 0, 1); /* the first names the module itself, which has no symbols */
        char *module = write_file("m", &b);
        expect_symbols(module, false);
        unlink(module);
        free(module);
        builder_free(&b);
    }
    alarm(0);
    unlink(fifo);
    free(fifo);
}

/* --- dwz ----------------------------------------------------------------------------------------------------------- */

static void put_unit_header(stream *s, size_t length)
{
    put(s, length, 4);
    put(s, 4, 2);
    put(s, 0, 4);
    put(s, 8, 1);
}

static void types_of_a_common_file_are_read(void)
{
    stream abbrev = {0}, info = {0}, link = {0};
    static const uint8_t common_abbrev[] = {1,
                                            DW_TAG_partial_unit,
                                            1,
                                            0,
                                            0,
                                            2,
                                            DW_TAG_base_type,
                                            0,
                                            DW_AT_name,
                                            DW_FORM_string,
                                            DW_AT_byte_size,
                                            DW_FORM_data1,
                                            DW_AT_encoding,
                                            DW_FORM_data1,
                                            0,
                                            0,
                                            0};
    static const uint8_t common_info[] = {1, 2, 's', 'h', 'a', 'r', 'e', 'd', 0, 4, DW_ATE_signed, 0};
    put_unit_header(&info, 7 + sizeof common_info);
    put_bytes(&info, common_info, sizeof common_info);
    builder common = builder_new(ET_DYN);
    common.no_symbols = true;
    add_build_id(&common, 9);
    builder_section(&common, ".debug_abbrev", SHT_PROGBITS, 0, 0, common_abbrev, sizeof common_abbrev);
    builder_section(&common, ".debug_info", SHT_PROGBITS, 0, 0, info.data, info.len);
    builder_finish(&common);

    put_bytes(
        &abbrev,
        (uint8_t[]){1, DW_TAG_compile_unit, 1, 0, 0, 2, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_type},
        11);
    put_uleb(&abbrev, DW_FORM_GNU_ref_alt);
    put_bytes(&abbrev, (uint8_t[]){DW_AT_location, DW_FORM_exprloc, 0, 0, 0}, 5);
    vec_clear(&info);
    put_unit_header(&info, 7 + 20);
    put_bytes(&info, (uint8_t[]){1, 2, 'g', 0, 12, 0, 0, 0, 9, DW_OP_addr},
              10); /* the entry after the partial unit's */
    put(&info, DATA, 8);
    put(&info, 0, 2);
    put_text(&link, "common.debug");
    put_bytes(&link, (uint8_t[]){0xfa, 0xce, 9, 9}, 4);
    builder b = builder_new(ET_DYN);
    static const uint8_t data[16] = {0};
    builder_section(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof data);
    builder_section(&b, ".debug_abbrev", SHT_PROGBITS, 0, 0, abbrev.data, abbrev.len);
    builder_section(&b, ".debug_info", SHT_PROGBITS, 0, 0, info.data, info.len);
    builder_section(&b, ".gnu_debugaltlink", SHT_PROGBITS, 0, 0, link.data, link.len);
    builder_finish(&b);

    char *module = write_file("m", &b), *beside = write_file("common.debug", &common);
    for (int there = 1; there >= 0; there--) {
        image *img;
        race_error error = {""};
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, image_open(module, &img, &error), error.text);
        const image_variable *v = image_global_at(img, DATA);
        TEST_ASSERT_NOT_NULL(v);
        TEST_ASSERT_EQUAL_STRING("g", v->name);
        TEST_ASSERT_EQUAL(there, v->type != NULL);
        if (there) TEST_ASSERT_EQUAL_STRING("shared", v->type->name);
        image_close(img);
        unlink(beside);
    }
    unlink(module);
    free(module);
    free(beside);
    builder_free(&b);
    builder_free(&common);
    vec_free(&abbrev);
    vec_free(&info);
    vec_free(&link);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    UNITY_BEGIN();
    RUN_TEST(a_debug_file_is_found_beside_the_module_or_below_it);
    RUN_TEST(a_debug_file_of_another_module_is_not_used);
    RUN_TEST(a_debug_link_that_is_no_file_does_no_harm);
    RUN_TEST(types_of_a_common_file_are_read);
    int failed = UNITY_END();
    rmdir(folder);
    return failed;
}
