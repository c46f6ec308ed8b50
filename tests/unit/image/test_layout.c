/* The address space of linked modules: sections, permissions, RELRO, TLS, and files without section headers. */
#include "builder.h"

void setUp(void) {}
void tearDown(void) {}

static const uint8_t CODE[16] = {0xc3};

static builder program(void)
{
    builder b = builder_new(ET_DYN);
    builder_section(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x4000, "12345678",
                    8); /* not in order of address */
    builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, CODE, sizeof CODE);
    builder_section(&b, ".rodata", SHT_PROGBITS, SHF_ALLOC, 0x2000, "constant", 9);
    builder_section(&b, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x3000, CODE, sizeof CODE);
    builder_section(&b, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x5000, NULL, 64);
    builder_section(&b, ".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, 0x3010, "abcd", 4);
    builder_section(&b, ".tbss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, 0x3014, NULL,
                    0x100); /* over the others */
    builder_section(&b, ".comment", SHT_PROGBITS, 0, 0, "gcc", 4);
    builder_segment(&b, PT_GNU_RELRO, PF_R, 0x3000, 0x20);
    builder_segment(&b, PT_TLS, PF_R, 0x3010, 0x101);
    return b;
}

static void sections_lie_by_address_and_have_the_permissions_of_their_segments(void)
{
    builder b = program();
    image *img = builder_open(&b);
    static const struct {
        const char *name;
        uint64_t addr;
        uint32_t flags;
    } wanted[] = {{".text", 0x1000, IMAGE_R | IMAGE_X},
                  {".rodata", 0x2000, IMAGE_R},
                  {".data.rel.ro", 0x3000, IMAGE_R | IMAGE_W | IMAGE_RELRO},
                  {".tdata", 0x3010, IMAGE_R | IMAGE_W | IMAGE_RELRO | IMAGE_TLS},
                  {".data", 0x4000, IMAGE_R | IMAGE_W},
                  {".bss", 0x5000, IMAGE_R | IMAGE_W}};
    TEST_ASSERT_EQUAL_UINT32(sizeof wanted / sizeof *wanted, img->section_count);
    for (uint32_t i = 0; i < img->section_count; i++) {
        TEST_ASSERT_EQUAL_STRING(wanted[i].name, img->sections[i].name);
        TEST_ASSERT_EQUAL_HEX64(wanted[i].addr, img->sections[i].addr);
        TEST_ASSERT_EQUAL_HEX32(wanted[i].flags, img->sections[i].flags);
    }
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    image_close(img);
    builder_free(&b);
}

static void bytes_are_found_by_address_and_never_beyond_their_section(void)
{
    builder b = program();
    image *img = builder_open(&b);
    uint64_t available;
    char text[9];
    TEST_ASSERT_EQUAL_STRING("constant", (const char *)image_bytes(img, 0x2000, &available));
    TEST_ASSERT_EQUAL_UINT64(9, available);
    TEST_ASSERT_NOT_NULL(image_bytes(img, 0x2008, &available));
    TEST_ASSERT_EQUAL_UINT64(1, available);
    TEST_ASSERT_NULL(image_bytes(img, 0x2009, &available));
    TEST_ASSERT_NULL(image_bytes(img, 0x1fff, &available));
    TEST_ASSERT_TRUE(image_read(img, 0x2000, text, 9));
    TEST_ASSERT_FALSE(image_read(img, 0x2001, text, 9));
    TEST_ASSERT_NULL(image_bytes(img, 0x5000, &available)); /* .bss has a place but no bytes */
    TEST_ASSERT_EQUAL_STRING(".bss", image_section_at(img, 0x503f)->name);
    TEST_ASSERT_NULL(image_section_at(img, 0x5040));
    TEST_ASSERT_NULL(image_section_at(img, UINT64_MAX));
    TEST_ASSERT_TRUE(image_is_code(img, 0x100f));
    TEST_ASSERT_FALSE(image_is_code(img, 0x1010));
    TEST_ASSERT_FALSE(image_is_code(img, 0x2000));
    image_close(img);
    builder_free(&b);
}

static void constant_is_what_cannot_be_written_after_start_up(void)
{
    builder b = program();
    image *img = builder_open(&b);
    TEST_ASSERT_TRUE(image_is_constant(img, 0x2000, 9));
    TEST_ASSERT_FALSE(image_is_constant(img, 0x2000, 10));
    TEST_ASSERT_TRUE(image_is_constant(img, 0x3000, 16)); /* RELRO */
    TEST_ASSERT_FALSE(image_is_constant(img, 0x4000, 1));
    TEST_ASSERT_FALSE(image_is_constant(img, 0x5000, 1));
    TEST_ASSERT_FALSE(image_is_constant(img, 0x9000, 1));
    image_close(img);
    builder_free(&b);
}

static void the_tls_block_is_as_large_as_its_segment_aligned(void)
{
    builder b = program();
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT64(0x108, img->tls_size);
    image_close(img);
    builder_free(&b);
}

static void the_entry_point_is_kept_if_it_is_code(void)
{
    builder b = program();
    b.entry = 0x1004;
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_HEX64(0x1004, img->entry);
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    image_close(img);
    builder_free(&b);

    b = program();
    b.entry = 0x4000;
    img = builder_open(&b);
    TEST_ASSERT_EQUAL_HEX64(0, img->entry);
    TEST_ASSERT_EQUAL_UINT32(1, img->unread);
    image_close(img);
    builder_free(&b);
}

static void without_section_headers_segments_are_shown_cut_at_relro(void)
{
    builder b = builder_new(ET_DYN);
    b.no_sections = true;
    builder_section(&b, "", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, CODE, sizeof CODE);
    uint8_t data[0x40] = {1, 2, 3};
    builder_section(&b, "", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x3000, data, sizeof data);
    builder_segment(&b, PT_GNU_RELRO, PF_R, 0x3000, 0x20);
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(3, img->section_count);
    for (uint32_t i = 0; i < 3; i++)
        TEST_ASSERT_EQUAL_STRING("segment", img->sections[i].name);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_X, img->sections[0].flags);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_W | IMAGE_RELRO, img->sections[1].flags);
    TEST_ASSERT_EQUAL_UINT64(0x20, img->sections[1].size);
    TEST_ASSERT_EQUAL_UINT8(2, img->sections[1].bytes[1]);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_W, img->sections[2].flags);
    TEST_ASSERT_EQUAL_HEX64(0x3020, img->sections[2].addr);
    TEST_ASSERT_TRUE(image_is_constant(img, 0x3018, 8));
    TEST_ASSERT_FALSE(image_is_constant(img, 0x3020, 8));
    image_close(img);
    builder_free(&b);
}

static void a_writable_segment_makes_its_sections_writable(void)
{
    builder b = builder_new(ET_EXEC);
    uint32_t s = builder_section(&b, ".rodata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x2000, CODE, sizeof CODE);
    builder_finish(&b);
    Elf64_Shdr *header = (Elf64_Shdr *)(b.bytes + ((Elf64_Ehdr *)b.bytes)->e_shoff) + s;
    header->sh_flags = SHF_ALLOC; /* the segment keeps its W */
    image *img = builder_open(&b);
    TEST_ASSERT_FALSE(image_is_constant(img, 0x2000, 1));
    image_close(img);
    builder_free(&b);
}

/* --- symbols ----------------------------------------------------------------------------------------------------- */

static void symbols_are_found_by_start_and_by_range(void)
{
    builder b = builder_new(ET_DYN);
    uint8_t code[0x100] = {0};
    uint16_t text =
        (uint16_t)builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code);
    builder_symbol(&b, "file.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS);
    builder_symbol(&b, "label", 0x1010, 0, STT_NOTYPE, STB_LOCAL, text);
    builder_symbol(&b, "table", 0x1010, 4, STT_OBJECT, STB_LOCAL, text);
    builder_symbol(&b, "weak_f", 0x1010, 16, STT_FUNC, STB_WEAK, text);
    builder_symbol(&b, "f@@VERS_1", 0x1010, 16, STT_FUNC, STB_GLOBAL, text);
    builder_symbol(&b, "outer", 0x1040, 64, STT_FUNC, STB_GLOBAL, text);
    builder_symbol(&b, "inner", 0x1050, 8, STT_FUNC, STB_LOCAL, text);
    builder_symbol(&b, "undefined", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF);
    builder_symbol(&b, "number", 0x77777, 0, STT_NOTYPE, STB_GLOBAL, SHN_ABS);
    builder_symbol(&b, "", 0x1000, 0, STT_SECTION, STB_LOCAL, text);
    builder_symbol(&b, "resolver", 0x10f0, 4, STT_GNU_IFUNC, STB_GLOBAL, text);
    builder_symbol(&b, "t1", 0, 4, STT_TLS, STB_GLOBAL, text);
    builder_symbol(&b, "t2", 8, 16, STT_TLS, STB_GLOBAL, text);
    image *img = builder_open(&b);
    TEST_ASSERT_TRUE(img->has_symtab);
    TEST_ASSERT_EQUAL_UINT32(9, img->symbol_count);
    for (uint32_t i = 1; i + 2 < img->symbol_count; i++)
        TEST_ASSERT_TRUE(img->symbols[i - 1].addr <= img->symbols[i].addr);
    TEST_ASSERT_EQUAL_STRING("t2", img->symbols[8].name); /* TLS last */
    TEST_ASSERT_EQUAL_STRING("f", image_symbol_at(img, 0x1010)->name);
    TEST_ASSERT_EQUAL_STRING("f", image_symbol_covering(img, 0x1013)->name);
    TEST_ASSERT_NULL(image_symbol_at(img, 0x1011));
    TEST_ASSERT_NULL(image_symbol_covering(img, 0x1020));
    TEST_ASSERT_EQUAL_STRING("outer", image_symbol_covering(img, 0x104f)->name);
    TEST_ASSERT_EQUAL_STRING("inner", image_symbol_covering(img, 0x1057)->name);
    TEST_ASSERT_EQUAL_STRING("outer", image_symbol_covering(img, 0x1058)->name);
    TEST_ASSERT_EQUAL_STRING("file.c", image_symbol_at(img, 0x1050)->file);
    TEST_ASSERT_NULL(image_symbol_at(img, 0x1040)->file);
    TEST_ASSERT_EQUAL_INT(IMAGE_SYM_IFUNC, image_symbol_at(img, 0x10f0)->type);
    TEST_ASSERT_EQUAL_STRING("t1", image_symbol_tls(img, 3)->name);
    TEST_ASSERT_NULL(image_symbol_tls(img, 4));
    TEST_ASSERT_EQUAL_STRING("t2", image_symbol_tls(img, 23)->name);
    TEST_ASSERT_NULL(image_symbol_tls(img, 24));
    image_close(img);
    builder_free(&b);
}

static void a_symbol_of_both_tables_is_there_once_and_exported(void)
{
    builder b = builder_new(ET_DYN);
    uint16_t text =
        (uint16_t)builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, CODE, sizeof CODE);
    builder_symbol(&b, "f", 0x1000, 4, STT_FUNC, STB_GLOBAL, text);
    builder_symbol(&b, "hidden", 0x1004, 4, STT_FUNC, STB_LOCAL, text);
    Elf64_Sym dynamic[2] = {{0},
                            {.st_name = 1,
                             .st_value = 0x1000,
                             .st_size = 4,
                             .st_shndx = text,
                             .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}};
    uint32_t strings = builder_section(&b, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0x2000, "\0f", 3);
    uint32_t table = builder_section(&b, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0x3000, dynamic, sizeof dynamic);
    b.sections.data[table].h.sh_link = strings;
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(2, img->symbol_count);
    TEST_ASSERT_TRUE(image_symbol_at(img, 0x1000)->exported);
    TEST_ASSERT_FALSE(image_symbol_at(img, 0x1004)->exported);
    image_close(img);
    builder_free(&b);
}

static void names_beyond_the_string_table_are_no_names(void)
{
    builder b = builder_new(ET_DYN);
    uint16_t text =
        (uint16_t)builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, CODE, sizeof CODE);
    uint32_t f = builder_symbol(&b, "f", 0x1000, 4, STT_FUNC, STB_GLOBAL, text);
    builder_symbol(&b, "unterminated", 0x1004, 4, STT_FUNC, STB_GLOBAL, text);
    b.symbols.data[f].st_name = 0x7fffffff;
    b.strings.len--; /* the last NUL */
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_UINT32(0, img->symbol_count);
    image_close(img);
    builder_free(&b);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(sections_lie_by_address_and_have_the_permissions_of_their_segments);
    RUN_TEST(bytes_are_found_by_address_and_never_beyond_their_section);
    RUN_TEST(constant_is_what_cannot_be_written_after_start_up);
    RUN_TEST(the_tls_block_is_as_large_as_its_segment_aligned);
    RUN_TEST(the_entry_point_is_kept_if_it_is_code);
    RUN_TEST(without_section_headers_segments_are_shown_cut_at_relro);
    RUN_TEST(a_writable_segment_makes_its_sections_writable);
    RUN_TEST(symbols_are_found_by_start_and_by_range);
    RUN_TEST(a_symbol_of_both_tables_is_there_once_and_exported);
    RUN_TEST(names_beyond_the_string_table_are_no_names);
    return UNITY_END();
}
