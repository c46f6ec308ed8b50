/* Relocations of linked modules as facts, guesses in programs that have none, and PLT stubs. */
#include "builder.h"

void setUp(void) {}
void tearDown(void) {}

enum { TEXT = 0x1000, PLT = 0x1800, RODATA = 0x2000, DYNSYM = 0x2800, DYNSTR = 0x2900, RELA = 0x2a00, DATA = 0x4000 };

typedef struct {
    builder b;
    VEC(Elf64_Sym) symbols;
    VEC(uint8_t) strings;
    uint32_t text;
} module;

static module module_new(uint16_t type)
{
    static const uint8_t code[0x100] = {0xc3};
    module m = {.b = builder_new(type)};
    m.text = builder_section(&m.b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof code);
    vec_push(&m.symbols, (Elf64_Sym){0});
    vec_push(&m.strings, 0);
    return m;
}

static uint32_t dynamic_symbol(module *m, const char *name, uint64_t value, uint64_t size, unsigned type,
                               uint32_t section)
{
    vec_push(&m->symbols, (Elf64_Sym){.st_name = m->strings.len,
                                      .st_value = value,
                                      .st_size = size,
                                      .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
                                      .st_shndx = (uint16_t)section});
    for (;; name++) {
        vec_push(&m->strings, (uint8_t)*name);
        if (!*name) break;
    }
    return m->symbols.len - 1;
}

static image *module_open(module *m, const Elf64_Rela *relas, size_t count)
{
    uint32_t strings =
        builder_section(&m->b, ".dynstr", SHT_STRTAB, SHF_ALLOC, DYNSTR, m->strings.data, m->strings.len);
    uint32_t symbols = builder_section(&m->b, ".dynsym", SHT_DYNSYM, SHF_ALLOC, DYNSYM, m->symbols.data,
                                       m->symbols.len * sizeof(Elf64_Sym));
    m->b.sections.data[symbols].h.sh_link = strings;
    uint32_t rela = builder_relas(&m->b, ".rela.dyn", 0, RELA, relas, count);
    m->b.sections.data[rela].h.sh_link = symbols;
    return builder_open(&m->b);
}

static void module_close(module *m, image *img)
{
    image_close(img);
    vec_free(&m->symbols);
    vec_free(&m->strings);
    builder_free(&m->b);
}

static const image_reloc *fact(const image *img, uint64_t addr, image_reloc_kind kind)
{
    const image_reloc *r = image_reloc_at(img, addr);
    TEST_ASSERT_NOT_NULL(r);
    TEST_ASSERT_EQUAL_INT(kind, r->kind);
    TEST_ASSERT_EQUAL_HEX64(addr, r->addr);
    return r;
}

static void each_type_of_relocation_is_a_fact_about_its_word(void)
{
    module m = module_new(ET_DYN);
    uint8_t data[0x200] = {0};
    builder_section(&m.b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof data);
    uint32_t here = dynamic_symbol(&m, "here", TEXT + 8, 4, STT_FUNC, m.text);
    uint32_t there = dynamic_symbol(&m, "there", 0, 0, STT_FUNC, SHN_UNDEF);
    uint32_t resolver = dynamic_symbol(&m, "resolver", TEXT + 16, 4, STT_GNU_IFUNC, m.text);
    uint32_t copied = dynamic_symbol(&m, "environ", DATA + 0x100, 24, STT_OBJECT, SHN_UNDEF);
    uint32_t tls = dynamic_symbol(&m, "tls", 0x20, 4, STT_TLS, m.text);
    uint32_t errno_ = dynamic_symbol(&m, "errno", 0, 0, STT_TLS, SHN_UNDEF);
    const Elf64_Rela relas[] = {
        R(DATA + 0x00, 0, R_X86_64_RELATIVE, TEXT + 4),
        R(DATA + 0x08, here, R_X86_64_64, 3),
        R(DATA + 0x10, there, R_X86_64_64, 5),
        R(DATA + 0x18, there, R_X86_64_GLOB_DAT, 0),
        R(DATA + 0x20, here, R_X86_64_JUMP_SLOT, 0),
        R(DATA + 0x28, resolver, R_X86_64_GLOB_DAT, 0),
        R(DATA + 0x30, 0, R_X86_64_IRELATIVE, TEXT + 16),
        R(DATA + 0x100, copied, R_X86_64_COPY, 0),
        R(DATA + 0x38, tls, R_X86_64_TPOFF64, 4),
        R(DATA + 0x40, errno_, R_X86_64_TPOFF64, 0),
        R(DATA + 0x48, 0, R_X86_64_TPOFF64, 0x30),
        R(DATA + 0x50, tls, R_X86_64_DTPMOD64, 0),
        R(DATA + 0x58, tls, R_X86_64_DTPOFF64, 0),
        R(DATA + 0x60, tls, R_X86_64_TLSDESC, 8),
        R(DATA + 0x70, there, R_X86_64_32, 0),
        R(DATA + 0x78, 0, R_X86_64_NONE, 0),
        R(0x900000, 0, R_X86_64_RELATIVE, TEXT),     /* nowhere */
        R(DATA + 0x80, here, 200, 0),                /* unknown type */
        R(DATA + 0x88, 99, R_X86_64_64, 0),          /* no such symbol */
        R(DATA + 0x1fc, 0, R_X86_64_RELATIVE, TEXT), /* over the end of the section */
    };
    image *img = module_open(&m, relas, sizeof relas / sizeof *relas);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 4, fact(img, DATA, IMAGE_REL_ADDR)->target);
    const image_reloc *r = fact(img, DATA + 8, IMAGE_REL_ADDR);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 11, r->target);
    TEST_ASSERT_EQUAL_STRING("here", r->name);
    TEST_ASSERT_EQUAL_UINT8(0, r->slot);
    r = fact(img, DATA + 0x10, IMAGE_REL_SYMBOL);
    TEST_ASSERT_EQUAL_STRING("there", r->name);
    TEST_ASSERT_EQUAL_INT64(5, r->addend);
    TEST_ASSERT_EQUAL_UINT8(1, fact(img, DATA + 0x18, IMAGE_REL_SYMBOL)->slot);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 8, fact(img, DATA + 0x20, IMAGE_REL_ADDR)->target);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 16, fact(img, DATA + 0x28, IMAGE_REL_IFUNC)->target);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 16, fact(img, DATA + 0x30, IMAGE_REL_IFUNC)->target);
    r = fact(img, DATA + 0x100, IMAGE_REL_COPY);
    TEST_ASSERT_EQUAL_STRING("environ", r->name);
    TEST_ASSERT_EQUAL_UINT32(24, r->size);
    TEST_ASSERT_EQUAL_HEX64(0x24, fact(img, DATA + 0x38, IMAGE_REL_TPOFF)->target);
    TEST_ASSERT_EQUAL_STRING("errno", fact(img, DATA + 0x40, IMAGE_REL_TPOFF)->name);
    r = fact(img, DATA + 0x48, IMAGE_REL_TPOFF);
    TEST_ASSERT_NULL(r->name);
    TEST_ASSERT_EQUAL_INT64(0x30, r->addend);
    fact(img, DATA + 0x50, IMAGE_REL_DTPMOD);
    TEST_ASSERT_EQUAL_HEX64(0x20, fact(img, DATA + 0x58, IMAGE_REL_DTPOFF)->target);
    fact(img, DATA + 0x60, IMAGE_REL_DTPMOD);
    TEST_ASSERT_EQUAL_HEX64(0x28, fact(img, DATA + 0x68, IMAGE_REL_DTPOFF)->target);
    TEST_ASSERT_EQUAL_UINT32(4, fact(img, DATA + 0x70, IMAGE_REL_SYMBOL)->size);
    TEST_ASSERT_NULL(image_reloc_at(img, DATA + 0x78));
    TEST_ASSERT_NULL(image_reloc_at(img, DATA + 0x80));
    TEST_ASSERT_EQUAL_UINT32(4, img->unread);
    TEST_ASSERT_EQUAL_UINT32(16, img->reloc_count);
    for (uint32_t i = 1; i < img->reloc_count; i++)
        TEST_ASSERT_TRUE(img->relocs[i - 1].addr < img->relocs[i].addr);
    uint32_t first;
    TEST_ASSERT_EQUAL_UINT32(3, image_relocs_in(img, DATA + 1, DATA + 0x19, &first));
    TEST_ASSERT_EQUAL_HEX64(DATA + 8, img->relocs[first].addr);
    TEST_ASSERT_EQUAL_UINT32(0, image_relocs_in(img, DATA + 0x19, DATA + 1, &first));
    module_close(&m, img);
}

static void a_packed_table_of_relative_relocations_is_unpacked(void)
{
    module m = module_new(ET_DYN);
    uint64_t words[128];
    for (uint64_t i = 0; i < 128; i++)
        words[i] = TEXT + i;
    builder_section(&m.b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, words, sizeof words);
    /* word 0; of the 63 after it the 1st and the last; of the next 63 the 2nd; then word 127 */
    const uint64_t relr[] = {DATA, 1 | 1ull << 1 | 1ull << 63, 1 | 1ull << 2, DATA + 127 * 8};
    builder_section(&m.b, ".relr.dyn", SHT_RELR, SHF_ALLOC, 0x3000, relr, sizeof relr);
    image *img = module_open(&m, NULL, 0);
    static const uint64_t places[] = {0, 1, 63, 65, 127};
    TEST_ASSERT_EQUAL_UINT32(sizeof places / sizeof *places, img->reloc_count);
    for (uint32_t i = 0; i < img->reloc_count; i++)
        TEST_ASSERT_EQUAL_HEX64(TEXT + places[i], fact(img, DATA + 8 * places[i], IMAGE_REL_ADDR)->target);
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    module_close(&m, img);
}

static void a_packed_table_that_goes_back_is_read_no_further(void)
{
    module m = module_new(ET_DYN);
    uint64_t words[8] = {TEXT};
    builder_section(&m.b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, words, sizeof words);
    const uint64_t relr[] = {DATA, DATA, DATA};
    builder_section(&m.b, ".relr.dyn", SHT_RELR, SHF_ALLOC, 0x3000, relr, sizeof relr);
    image *img = module_open(&m, NULL, 0);
    TEST_ASSERT_EQUAL_UINT32(1, img->reloc_count);
    TEST_ASSERT_EQUAL_UINT32(1, img->unread);
    module_close(&m, img);
}

static void in_a_fixed_program_words_that_are_addresses_are_guesses(void)
{
    for (int fixed = 0; fixed < 2; fixed++) {
        module m = module_new(fixed ? ET_EXEC : ET_DYN);
        const uint64_t words[] = {TEXT, 7, DATA + 8, 0x9999, TEXT + 0xff, TEXT + 0x100, DATA + 0x30};
        builder_section(&m.b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, words, sizeof words);
        builder_section(&m.b, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0x3000, words, sizeof words);
        const Elf64_Rela relas[] = {R(DATA, 0, R_X86_64_RELATIVE, TEXT + 2)};
        image *img = module_open(&m, relas, 1);
        TEST_ASSERT_EQUAL_HEX64(TEXT + 2, fact(img, DATA, IMAGE_REL_ADDR)->target);
        if (!fixed) {
            TEST_ASSERT_EQUAL_UINT32(1, img->reloc_count);
        } else {
            TEST_ASSERT_EQUAL_HEX64(DATA + 8, fact(img, DATA + 0x10, IMAGE_REL_GUESS)->target);
            TEST_ASSERT_EQUAL_HEX64(TEXT + 0xff, fact(img, DATA + 0x20, IMAGE_REL_GUESS)->target);
            TEST_ASSERT_EQUAL_HEX64(DATA + 0x30, fact(img, DATA + 0x30, IMAGE_REL_GUESS)->target);
            TEST_ASSERT_EQUAL_UINT32(4, img->reloc_count);
        }
        module_close(&m, img);
    }
}

static void functions_that_the_loader_calls_are_listed(void)
{
    module m = module_new(ET_DYN);
    const uint64_t zeros[2] = {0};
    builder_section(&m.b, ".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE, DATA, zeros, sizeof zeros);
    const Elf64_Dyn dynamic[] = {{DT_INIT, {TEXT}},
                                 {DT_FINI, {TEXT + 1}},
                                 {DT_INIT_ARRAY, {DATA}},
                                 {DT_INIT_ARRAYSZ, {16}},
                                 {DT_FINI_ARRAY, {0x888}},
                                 {DT_FINI_ARRAYSZ, {1ull << 50}},
                                 {DT_NEEDED, {1}},
                                 {DT_NEEDED, {0x4444}},
                                 {DT_STRTAB, {DYNSTR}},
                                 {DT_STRSZ, {9}},
                                 {DT_NULL, {0}}};
    builder_section(&m.b, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 0x5000, dynamic, sizeof dynamic);
    builder_segment(&m.b, PT_DYNAMIC, PF_R, 0x5000, sizeof dynamic);
    dynamic_symbol(&m, "libx.so", 0, 0, STT_FUNC, SHN_UNDEF);
    const Elf64_Rela relas[] = {R(DATA, 0, R_X86_64_RELATIVE, TEXT + 2), R(DATA + 8, 0, R_X86_64_RELATIVE, TEXT + 3)};
    image *img = module_open(&m, relas, 2);
    TEST_ASSERT_EQUAL_UINT32(4, img->init_count);
    for (uint32_t i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL_HEX64(TEXT + i, img->init[i]);
    TEST_ASSERT_EQUAL_UINT32(1, img->needed_count);
    TEST_ASSERT_EQUAL_STRING("libx.so", img->needed[0]);
    module_close(&m, img);
}

/* --- PLT stubs --------------------------------------------------------------------------------------------------- */

/* Puts the distance from the end of the operand to `to` into the four bytes at `at` of code that lies at `base`. */
static void aim(uint8_t *code, size_t at, uint64_t base, uint64_t to)
{
    uint32_t distance = (uint32_t)(to - (base + at + 4));
    memcpy(code + at, &distance, 4);
}

static void stubs_of_every_form_are_named(void)
{
    static const struct {
        const char *section;
        uint8_t bytes[16];
        size_t operand; /* of the slot */
        uint64_t size;
        bool lazy; /* named by the number of a relocation */
    } forms[] = {
        {".plt", {0xff, 0x25, 0, 0, 0, 0, 0x68, 9, 9, 9, 9, 0xe9}, 2, 16, false},
        {".plt.got", {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90}, 2, 8, false},
        {".plt.sec", {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}, 7, 16, false},
        {".plt.sec", {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25}, 6, 16, false},
        {".plt.sec", {0xf2, 0xff, 0x25, 0, 0, 0, 0, 0x90}, 3, 8, false},
        {".iplt", {0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9}, 2, 16, false},
        {".plt", {0x4c, 0x8b, 0x1d, 0, 0, 0, 0, 0xe8}, 3, 16, false},
        {".plt", {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xf2, 0xe9, 1, 2, 3, 4, 0x90}, 0, 16, true},
        {".plt", {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xe9, 1, 2, 3, 4, 0x66, 0x90}, 0, 16, true},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        module m = module_new(ET_DYN);
        uint8_t plt[32] = {0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25}; /* the header jumps through a slot that has no name */
        memcpy(plt + 16, forms[i].bytes, 16);
        if (forms[i].operand) aim(plt, 16 + forms[i].operand, PLT, DATA + 0x18);
        aim(plt, 8, PLT, DATA + 0x10);
        builder_section(&m.b, forms[i].section, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PLT, plt, sizeof plt);
        uint8_t got[0x20] = {0};
        builder_section(&m.b, ".got.plt", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, got, sizeof got);
        uint32_t there = dynamic_symbol(&m, "pthread_create", 0, 0, STT_FUNC, SHN_UNDEF);
        const Elf64_Rela relas[] = {R(DATA + 0x18, there, R_X86_64_JUMP_SLOT, 0)};
        const Elf64_Dyn dynamic[] = {{DT_JMPREL, {RELA}},   {DT_PLTRELSZ, {sizeof relas}},
                                     {DT_SYMTAB, {DYNSYM}}, {DT_STRTAB, {DYNSTR}},
                                     {DT_STRSZ, {16}},      {DT_NULL, {0}}};
        builder_section(&m.b, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 0x5000, dynamic, sizeof dynamic);
        builder_segment(&m.b, PT_DYNAMIC, PF_R, 0x5000, sizeof dynamic);
        image *img = module_open(&m, relas, 1);
        TEST_ASSERT_EQUAL_UINT32(1, img->reloc_count); /* both PT_DYNAMIC and the sections name the table */
        TEST_ASSERT_EQUAL_UINT32(1, img->plt_count);
        const image_plt *p = image_plt_at(img, PLT + 16);
        TEST_ASSERT_NOT_NULL(p);
        TEST_ASSERT_EQUAL_STRING("pthread_create", p->name);
        TEST_ASSERT_EQUAL_HEX64(DATA + 0x18, p->got);
        TEST_ASSERT_EQUAL_HEX64(0, p->target);
        TEST_ASSERT_EQUAL_UINT64(forms[i].size, p->size);
        TEST_ASSERT_NULL(image_plt_at(img, PLT));
        module_close(&m, img);
    }
}

static void a_stub_of_an_ifunc_has_no_name_but_its_resolver(void)
{
    module m = module_new(ET_EXEC);
    uint8_t plt[16] = {0xff, 0x25};
    aim(plt, 2, PLT, DATA);
    builder_section(&m.b, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PLT, plt, sizeof plt);
    builder_section(&m.b, ".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, "12345678", 8);
    const Elf64_Rela relas[] = {R(DATA, 0, R_X86_64_IRELATIVE, TEXT + 16)};
    image *img = module_open(&m, relas, 1);
    TEST_ASSERT_EQUAL_STRING("", image_plt_at(img, PLT)->name);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 16, image_plt_at(img, PLT)->target);
    module_close(&m, img);
}

static void a_stub_of_a_function_of_the_module_knows_where_it_is(void)
{
    module m = module_new(ET_DYN);
    uint8_t plt[16] = {0xff, 0x25};
    aim(plt, 2, PLT, DATA);
    builder_section(&m.b, ".plt.got", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PLT, plt, sizeof plt);
    builder_section(&m.b, ".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, "12345678", 8);
    uint32_t here = dynamic_symbol(&m, "here", TEXT + 8, 4, STT_FUNC, m.text);
    const Elf64_Rela relas[] = {R(DATA, here, R_X86_64_GLOB_DAT, 0)};
    image *img = module_open(&m, relas, 1);
    TEST_ASSERT_EQUAL_STRING("here", image_plt_at(img, PLT)->name);
    TEST_ASSERT_EQUAL_HEX64(TEXT + 8, image_plt_at(img, PLT)->target);
    module_close(&m, img);
}

static void without_section_headers_everything_comes_from_the_dynamic_segment(void)
{
    module m = module_new(ET_DYN);
    m.b.no_sections = true;
    uint8_t plt[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0};
    aim(plt, 7, PLT, DATA);
    builder_section(&m.b, "", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PLT, plt, sizeof plt);
    builder_section(&m.b, "", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, "12345678", 8);
    uint32_t there = dynamic_symbol(&m, "there", 0, 0, STT_FUNC, SHN_UNDEF);
    dynamic_symbol(&m, "here", TEXT + 8, 4, STT_FUNC, m.text);
    const Elf64_Rela relas[] = {R(DATA, there, R_X86_64_JUMP_SLOT, 0)};
    const uint32_t hash[] = {1, 3, 0, 0, 0, 0}; /* one bucket, three symbols */
    builder_section(&m.b, "", SHT_HASH, SHF_ALLOC, 0x6000, hash, sizeof hash);
    const Elf64_Dyn dynamic[] = {{DT_JMPREL, {RELA}},   {DT_PLTRELSZ, {sizeof relas}}, {DT_SYMTAB, {DYNSYM}},
                                 {DT_STRTAB, {DYNSTR}}, {DT_STRSZ, {m.strings.len}},   {DT_HASH, {0x6000}},
                                 {DT_NULL, {0}}};
    builder_section(&m.b, "", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 0x5000, dynamic, sizeof dynamic);
    builder_segment(&m.b, PT_DYNAMIC, PF_R, 0x5000, sizeof dynamic);
    image *img = module_open(&m, relas, 1);
    TEST_ASSERT_EQUAL_STRING("there", fact(img, DATA, IMAGE_REL_SYMBOL)->name);
    TEST_ASSERT_EQUAL_STRING("there", image_plt_at(img, PLT)->name);
    TEST_ASSERT_EQUAL_STRING("here", image_symbol_at(img, TEXT + 8)->name);
    TEST_ASSERT_TRUE(image_symbol_at(img, TEXT + 8)->exported);
    TEST_ASSERT_FALSE(img->has_symtab);
    module_close(&m, img);
}

static void sizes_that_the_dynamic_segment_makes_up_are_passed_over(void)
{
    module m = module_new(ET_DYN);
    m.b.no_sections = true;
    dynamic_symbol(&m, "here", TEXT + 8, 4, STT_FUNC, m.text);
    const uint32_t hash[] = {1, 0x7fffffff, 0, 0};
    builder_section(&m.b, "", SHT_HASH, SHF_ALLOC, 0x6000, hash, sizeof hash);
    const Elf64_Dyn dynamic[] = {{DT_RELA, {RELA}},       {DT_RELASZ, {UINT64_MAX}}, {DT_SYMTAB, {DYNSYM}},
                                 {DT_STRTAB, {DYNSTR}},   {DT_STRSZ, {1ull << 40}},  {DT_HASH, {0x6000}},
                                 {DT_RELR, {UINT64_MAX}}, {DT_RELRSZ, {16}},         {DT_NULL, {0}}};
    builder_section(&m.b, "", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 0x5000, dynamic, sizeof dynamic);
    builder_segment(&m.b, PT_DYNAMIC, PF_R, 0x5000, sizeof dynamic);
    image *img = module_open(&m, NULL, 0);
    TEST_ASSERT_EQUAL_UINT32(0, img->reloc_count);
    TEST_ASSERT_EQUAL_UINT32(0, img->symbol_count);
    TEST_ASSERT_EQUAL_UINT32(3, img->unread); /* symbols, RELA, RELR */
    module_close(&m, img);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(each_type_of_relocation_is_a_fact_about_its_word);
    RUN_TEST(a_packed_table_of_relative_relocations_is_unpacked);
    RUN_TEST(a_packed_table_that_goes_back_is_read_no_further);
    RUN_TEST(in_a_fixed_program_words_that_are_addresses_are_guesses);
    RUN_TEST(functions_that_the_loader_calls_are_listed);
    RUN_TEST(stubs_of_every_form_are_named);
    RUN_TEST(a_stub_of_an_ifunc_has_no_name_but_its_resolver);
    RUN_TEST(a_stub_of_a_function_of_the_module_knows_where_it_is);
    RUN_TEST(without_section_headers_everything_comes_from_the_dynamic_segment);
    RUN_TEST(sizes_that_the_dynamic_segment_makes_up_are_passed_over);
    return UNITY_END();
}
