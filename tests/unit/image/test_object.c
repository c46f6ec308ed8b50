/* Relocatable objects: laid out, relocated, and seen like a linked module. */
#include "builder.h"

void setUp(void) {}
void tearDown(void) {}

/* An object with code, data, TLS and one of each kind of symbol; each test adds relocations of .text. */
typedef struct {
    builder b;
    uint32_t text, data, bss, tdata, tbss;
    uint32_t local, global, common, there, tls, tls_bss, tls_there, ifunc, section;
} object;

static object object_new(void)
{
    static const uint8_t zeros[0x100] = {0};
    object o = {.b = builder_new(ET_REL)};
    builder *b = &o.b;
    o.text = builder_section(b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, zeros, 0x81);
    o.data = builder_section(b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, zeros, 0x40);
    o.bss = builder_section(b, ".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, NULL, 0x100);
    o.tdata = builder_section(b, ".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, 0, zeros, 12);
    o.tbss = builder_section(b, ".tbss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, 0, NULL, 8);
    b->sections.data[o.data].h.sh_addralign = 0x40;
    o.section = builder_symbol(b, "", 0, 0, STT_SECTION, STB_LOCAL, (uint16_t)o.data);
    o.local = builder_symbol(b, "local", 0x10, 4, STT_FUNC, STB_LOCAL, (uint16_t)o.text);
    o.global = builder_symbol(b, "global", 8, 8, STT_OBJECT, STB_GLOBAL, (uint16_t)o.data);
    o.common = builder_symbol(b, "common", 16, 24, STT_OBJECT, STB_GLOBAL, SHN_COMMON);
    o.there = builder_symbol(b, "there", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF);
    o.tls = builder_symbol(b, "tls", 4, 4, STT_TLS, STB_GLOBAL, (uint16_t)o.tdata);
    o.tls_bss = builder_symbol(b, "tls_bss", 4, 4, STT_TLS, STB_GLOBAL, (uint16_t)o.tbss);
    o.tls_there = builder_symbol(b, "tls_there", 0, 0, STT_TLS, STB_GLOBAL, SHN_UNDEF);
    o.ifunc = builder_symbol(b, "ifunc", 0x20, 4, STT_GNU_IFUNC, STB_GLOBAL, (uint16_t)o.text);
    return o;
}

static const image_section *section_named(const image *img, const char *name)
{
    for (uint32_t i = 0; i < img->section_count; i++)
        if (strcmp(img->sections[i].name, name) == 0) return &img->sections[i];
    TEST_FAIL_MESSAGE(name);
    return NULL;
}

static uint64_t address_of(const image *img, const char *name)
{
    for (uint32_t i = 0; i < img->symbol_count; i++)
        if (strcmp(img->symbols[i].name, name) == 0) return img->symbols[i].addr;
    for (uint32_t i = 0; i < img->plt_count; i++)
        if (strcmp(img->plts[i].name, name) == 0) return img->plts[i].addr;
    TEST_FAIL_MESSAGE(name);
    return 0;
}

static uint64_t word(const image *img, uint64_t addr, size_t size)
{
    uint64_t value = 0;
    TEST_ASSERT_TRUE(image_read(img, addr, &value, size));
    return value;
}

static void sections_follow_each_other_aligned_from_a_base_that_is_not_zero(void)
{
    object o = object_new();
    image *img = builder_open(&o.b);
    TEST_ASSERT_EQUAL_HEX64(0x10000, section_named(img, ".text")->addr);
    TEST_ASSERT_EQUAL_HEX64(0x100c0, section_named(img, ".data")->addr); /* after 0x81 bytes, aligned to 0x40 */
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_X, section_named(img, ".text")->flags);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_W, section_named(img, ".bss")->flags);
    TEST_ASSERT_NULL(section_named(img, ".bss")->bytes);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_W | IMAGE_TLS, section_named(img, ".tdata")->flags);
    for (uint32_t i = 0; i < img->section_count; i++) {
        TEST_ASSERT_TRUE(strcmp(img->sections[i].name, ".tbss") != 0);
        TEST_ASSERT_TRUE(!i || img->sections[i - 1].addr + img->sections[i - 1].size <= img->sections[i].addr);
    }
    TEST_ASSERT_EQUAL_HEX64(0x10010, address_of(img, "local"));
    TEST_ASSERT_EQUAL_HEX64(section_named(img, ".data")->addr + 8, address_of(img, "global"));
    image_close(img);
    builder_free(&o.b);
}

static void common_and_undefined_symbols_get_places_of_their_own(void)
{
    object o = object_new();
    image *img = builder_open(&o.b);
    const image_section *common = image_section_at(img, address_of(img, "common"));
    TEST_ASSERT_EQUAL_STRING("*common*", common->name);
    TEST_ASSERT_EQUAL_UINT64(24, common->size);
    TEST_ASSERT_EQUAL_HEX32(IMAGE_R | IMAGE_W, common->flags);
    const image_section *outside = section_named(img, "*extern*");
    TEST_ASSERT_EQUAL_HEX32(0, outside->flags);
    TEST_ASSERT_EQUAL_UINT64(1 << 16, outside->size); /* room for one; TLS symbols are not there */
    const image_plt *p = image_plt_at(img, outside->addr);
    TEST_ASSERT_EQUAL_STRING("there", p->name);
    TEST_ASSERT_EQUAL_HEX64(0, p->got);
    TEST_ASSERT_FALSE(image_is_code(img, outside->addr));
    TEST_ASSERT_FALSE(image_is_constant(img, outside->addr, 1));
    image_close(img);
    builder_free(&o.b);
}

static void tls_symbols_lie_in_one_block(void)
{
    object o = object_new();
    image *img = builder_open(&o.b);
    TEST_ASSERT_EQUAL_UINT64(4, address_of(img, "tls"));
    TEST_ASSERT_EQUAL_UINT64(16 + 4, address_of(img, "tls_bss")); /* 12 bytes of .tdata, aligned to 8 */
    TEST_ASSERT_EQUAL_STRING("tls_bss", image_symbol_tls(img, 21)->name);
    TEST_ASSERT_TRUE(img->tls_size >= 24 + 16); /* the undefined one has a place too */
    image_close(img);
    builder_free(&o.b);
}

static void absolute_words_are_relocated_and_recorded(void)
{
    object o = object_new();
    const Elf64_Rela relas[] = {R(0, o.global, R_X86_64_64, 4), R(8, o.there, R_X86_64_64, 2),
                                R(16, o.section, R_X86_64_32, 0x20), R(20, o.local, R_X86_64_32S, 0),
                                R(24, o.ifunc, R_X86_64_64, 0)};
    builder_relas(&o.b, ".rela.data", o.data, 0, relas, sizeof relas / sizeof *relas);
    image *img = builder_open(&o.b);
    uint64_t data = section_named(img, ".data")->addr, global = address_of(img, "global");
    TEST_ASSERT_EQUAL_HEX64(global + 4, word(img, data, 8));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "there") + 2, word(img, data + 8, 8));
    TEST_ASSERT_EQUAL_HEX64(data + 0x20, word(img, data + 16, 4));
    const image_reloc *r = image_reloc_at(img, data);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_ADDR, r->kind);
    TEST_ASSERT_EQUAL_HEX64(global + 4, r->target);
    TEST_ASSERT_EQUAL_STRING("global", r->name);
    r = image_reloc_at(img, data + 8);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_SYMBOL, r->kind);
    TEST_ASSERT_EQUAL_STRING("there", r->name);
    TEST_ASSERT_EQUAL_INT64(2, r->addend);
    r = image_reloc_at(img, data + 16);
    TEST_ASSERT_EQUAL_UINT32(4, r->size);
    TEST_ASSERT_NULL(r->name);
    TEST_ASSERT_EQUAL_HEX64(data + 0x20, r->target);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_ADDR, image_reloc_at(img, data + 20)->kind);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_IFUNC, image_reloc_at(img, data + 24)->kind);
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    image_close(img);
    builder_free(&o.b);
}

static void relative_operands_reach_their_targets(void)
{
    object o = object_new();
    const Elf64_Rela relas[] = {R(0, o.there, R_X86_64_PLT32, -4), R(8, o.global, R_X86_64_PC32, -4),
                                R(16, o.common, R_X86_64_PC64, 0), R(24, o.local, R_X86_64_PC8, -1)};
    builder_relas(&o.b, ".rela.text", o.text, 0, relas, sizeof relas / sizeof *relas);
    image *img = builder_open(&o.b);
    uint64_t text = 0x10000;
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "there"), text + 4 + (uint64_t)(int32_t)word(img, text, 4));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "global"), text + 12 + (uint64_t)(int32_t)word(img, text + 8, 4));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "common"), text + 16 + word(img, text + 16, 8));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "local"), text + 25 + (uint64_t)(int8_t)word(img, text + 24, 1));
    TEST_ASSERT_EQUAL_UINT32(0, img->reloc_count); /* nothing about data words */
    image_close(img);
    builder_free(&o.b);
}

static void got_relocations_share_a_slot_per_symbol(void)
{
    object o = object_new();
    const Elf64_Rela relas[] = {R(0, o.there, R_X86_64_GOTPCREL, -4), R(8, o.there, R_X86_64_GOTPCRELX, -4),
                                R(16, o.global, R_X86_64_REX_GOTPCRELX, -4), R(24, o.global, R_X86_64_GOT64, 0)};
    builder_relas(&o.b, ".rela.text", o.text, 0, relas, sizeof relas / sizeof *relas);
    image *img = builder_open(&o.b);
    const image_section *got = section_named(img, "*got*");
    TEST_ASSERT_EQUAL_UINT64(16, got->size);
    TEST_ASSERT_TRUE(image_is_constant(img, got->addr, 16));
    uint64_t first = 0x10004 + (uint64_t)(int32_t)word(img, 0x10000, 4);
    TEST_ASSERT_EQUAL_HEX64(got->addr, first);
    TEST_ASSERT_EQUAL_HEX64(first, 0x1000c + (uint64_t)(int32_t)word(img, 0x10008, 4));
    uint64_t second = 0x10014 + (uint64_t)(int32_t)word(img, 0x10010, 4);
    TEST_ASSERT_EQUAL_HEX64(got->addr + 8, second);
    TEST_ASSERT_EQUAL_HEX64(8, word(img, 0x10018, 8));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "there"), word(img, first, 8));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "global"), word(img, second, 8));
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_SYMBOL, image_reloc_at(img, first)->kind);
    TEST_ASSERT_EQUAL_INT(1, image_reloc_at(img, first)->slot);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_ADDR, image_reloc_at(img, second)->kind);
    image_close(img);
    builder_free(&o.b);
}

static void tls_relocations_of_all_models_are_facts(void)
{
    object o = object_new();
    const Elf64_Rela relas[] = {R(0, o.tls, R_X86_64_TPOFF32, 0),       R(8, o.tls_there, R_X86_64_GOTTPOFF, -4),
                                R(16, o.tls, R_X86_64_TLSGD, -4),       R(24, 0, R_X86_64_TLSLD, -4),
                                R(32, o.tls_bss, R_X86_64_DTPOFF32, 0), R(40, o.tls, R_X86_64_GOTPC32_TLSDESC, -4),
                                R(48, o.tls, R_X86_64_TLSDESC_CALL, 0)};
    builder_relas(&o.b, ".rela.text", o.text, 0, relas, sizeof relas / sizeof *relas);
    image *img = builder_open(&o.b);
    TEST_ASSERT_EQUAL_UINT32(0, img->unread);
    TEST_ASSERT_EQUAL_INT64(4 - (int64_t)img->tls_size, (int32_t)word(img, 0x10000, 4));
    const image_reloc *r = image_reloc_at(img, 0x10000);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_TPOFF, r->kind);
    TEST_ASSERT_EQUAL_STRING("tls", r->name);
    TEST_ASSERT_EQUAL_UINT64(4, r->target);
    r = image_reloc_at(img, 0x1000c + (uint64_t)(int32_t)word(img, 0x10008, 4));
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_TPOFF, r->kind);
    TEST_ASSERT_EQUAL_STRING("tls_there", r->name);
    uint64_t pair = 0x10014 + (uint64_t)(int32_t)word(img, 0x10010, 4);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_DTPMOD, image_reloc_at(img, pair)->kind);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_DTPOFF, image_reloc_at(img, pair + 8)->kind);
    TEST_ASSERT_EQUAL_UINT64(4, word(img, pair + 8, 8));
    TEST_ASSERT_EQUAL_HEX64(pair, 0x1002c + (uint64_t)(int32_t)word(img, 0x10028, 4));
    uint64_t module = 0x1001c + (uint64_t)(int32_t)word(img, 0x10018, 4);
    TEST_ASSERT_EQUAL_INT(IMAGE_REL_DTPMOD, image_reloc_at(img, module)->kind);
    TEST_ASSERT_NULL(image_reloc_at(img, module)->name);
    TEST_ASSERT_EQUAL_UINT64(20, word(img, 0x10020, 4));
    image_close(img);
    builder_free(&o.b);
}

static void the_got_symbol_is_the_start_of_the_got(void)
{
    object o = object_new();
    uint32_t got_symbol = builder_symbol(&o.b, "_GLOBAL_OFFSET_TABLE_", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF);
    const Elf64_Rela relas[] = {R(0, got_symbol, R_X86_64_GOTPC32, 0), R(8, o.global, R_X86_64_GOTOFF64, 0),
                                R(16, o.there, R_X86_64_GOTPCREL, -4), R(24, o.global, R_X86_64_SIZE32, 1)};
    builder_relas(&o.b, ".rela.text", o.text, 0, relas, sizeof relas / sizeof *relas);
    image *img = builder_open(&o.b);
    uint64_t got = section_named(img, "*got*")->addr;
    TEST_ASSERT_EQUAL_HEX64(got, 0x10000 + (uint64_t)(int32_t)word(img, 0x10000, 4));
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "global"), got + word(img, 0x10008, 8));
    TEST_ASSERT_EQUAL_UINT64(9, word(img, 0x10018, 4));
    for (uint32_t i = 0; i < img->plt_count; i++)
        TEST_ASSERT_TRUE(strcmp(img->plts[i].name, "_GLOBAL_OFFSET_TABLE_") != 0);
    image_close(img);
    builder_free(&o.b);
}

static void damaged_relocations_are_counted_and_the_file_stays_as_it_is(void)
{
    object o = object_new();
    const Elf64_Rela relas[] = {R(0x7f, o.global, R_X86_64_64, 0),       /* over the end of .text */
                                R(UINT64_MAX, o.global, R_X86_64_32, 0), /* far beyond */
                                R(0, 9999, R_X86_64_64, 0),              /* no such symbol */
                                R(0, o.global, 250, 0),                  /* no such type */
                                R(8, o.global, R_X86_64_32, 1ll << 40),  /* does not fit */
                                R(16, o.global, R_X86_64_64, 0)};
    builder_relas(&o.b, ".rela.text", o.text, 0, relas, sizeof relas / sizeof *relas);
    builder_relas(&o.b, ".rela.nothing", 777, 0, relas, 1);
    builder_relas(&o.b, ".rela.bss", o.bss, 0, relas, 1);
    builder_finish(&o.b);
    uint8_t *before = base_alloc(o.b.size);
    memcpy(before, o.b.bytes, o.b.size);
    image *img = builder_open(&o.b);
    TEST_ASSERT_EQUAL_UINT32(7, img->unread);
    TEST_ASSERT_EQUAL_HEX64(address_of(img, "global"), word(img, 0x10010, 8));
    TEST_ASSERT_EQUAL_MEMORY(before, o.b.bytes, o.b.size);
    free(before);
    image_close(img);
    builder_free(&o.b);
}

static void impossible_alignments_and_sizes_are_refused(void)
{
    object o = object_new();
    o.b.sections.data[o.data].h.sh_addralign = 24;
    builder_finish(&o.b);
    builder_refused(o.b.bytes, o.b.size, "alignment 0x18");
    builder_free(&o.b);
    o = object_new();
    o.b.sections.data[o.bss].h.sh_size = (1ull << 47) - 1;
    builder_finish(&o.b);
    builder_refused(o.b.bytes, o.b.size, "more than an address space");
    builder_free(&o.b);
    o = object_new();
    o.b.symbols.data[o.common].st_size = 1ull << 50;
    builder_finish(&o.b);
    builder_refused(o.b.bytes, o.b.size, "more than an address space");
    builder_free(&o.b);
}

static void constructors_are_listed(void)
{
    object o = object_new();
    uint32_t array = builder_section(&o.b, ".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE, 0, "12345678", 8);
    const Elf64_Rela relas[] = {R(0, o.local, R_X86_64_64, 0)};
    builder_relas(&o.b, ".rela.init_array", array, 0, relas, 1);
    image *img = builder_open(&o.b);
    TEST_ASSERT_EQUAL_UINT32(1, img->init_count);
    TEST_ASSERT_EQUAL_HEX64(0x10010, img->init[0]);
    image_close(img);
    builder_free(&o.b);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(sections_follow_each_other_aligned_from_a_base_that_is_not_zero);
    RUN_TEST(common_and_undefined_symbols_get_places_of_their_own);
    RUN_TEST(tls_symbols_lie_in_one_block);
    RUN_TEST(absolute_words_are_relocated_and_recorded);
    RUN_TEST(relative_operands_reach_their_targets);
    RUN_TEST(got_relocations_share_a_slot_per_symbol);
    RUN_TEST(tls_relocations_of_all_models_are_facts);
    RUN_TEST(the_got_symbol_is_the_start_of_the_got);
    RUN_TEST(damaged_relocations_are_counted_and_the_file_stays_as_it_is);
    RUN_TEST(impossible_alignments_and_sizes_are_refused);
    RUN_TEST(constructors_are_listed);
    return UNITY_END();
}
