/* The quick decoder against Zydis: what it accepts, it must understand in the same way. */
#include "static/lift/flow.h"

#include "unity.h"

void setUp(void) {}
void tearDown(void) {}

static void check(const uint8_t *bytes, uint64_t available)
{
    flow_raw fast, any;
    if (!flow_decode_fast(bytes, available, &fast)) return;
    TEST_ASSERT_TRUE(flow_decode_any(bytes, available, &any));
    TEST_ASSERT_EQUAL_UINT32(any.mnemonic, fast.mnemonic);
    TEST_ASSERT_EQUAL_UINT32(any.len, fast.len);
    TEST_ASSERT_EQUAL(any.rip, fast.rip);
    TEST_ASSERT_EQUAL(any.has_disp32, fast.has_disp32);
    TEST_ASSERT_EQUAL(any.has_imm, fast.has_imm);
    TEST_ASSERT_EQUAL_INT32(any.relative, fast.relative);
    TEST_ASSERT_TRUE(!fast.has_disp32 || any.disp == fast.disp);
    TEST_ASSERT_TRUE(!fast.has_imm || any.imm == fast.imm);
    bool jumps = fast.mnemonic == ZYDIS_MNEMONIC_JMP || fast.mnemonic == ZYDIS_MNEMONIC_CALL;
    TEST_ASSERT_TRUE(!jumps || any.indirect == fast.indirect);
}

static void random_bytes(void)
{
    uint64_t state = 1;
    uint8_t bytes[16];
    for (uint32_t n = 0; n < 1000000; n++) {
        for (uint32_t i = 0; i < sizeof bytes; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(state >> 56);
        }
        check(bytes, sizeof bytes);
    }
}

static void every_opcode_with_every_operand_form(void)
{
    uint8_t bytes[16];
    for (uint32_t rex = 0x3f; rex < 0x50; rex++) /* 0x3f stands for none */
        for (uint32_t opcode = 0; opcode < 512; opcode++)
            for (uint32_t modrm = 0; modrm < 256; modrm++)
                for (uint32_t sib = 0x24; sib <= 0x25; sib++) {
                    uint32_t n = 0;
                    memset(bytes, 0x81, sizeof bytes);
                    if (rex > 0x3f) bytes[n++] = (uint8_t)rex;
                    if (opcode > 255) bytes[n++] = 0x0f;
                    bytes[n++] = (uint8_t)opcode;
                    bytes[n++] = (uint8_t)modrm;
                    bytes[n] = (uint8_t)sib;
                    check(bytes, sizeof bytes);
                }
}

static void this_program(void)
{
    image *img;
    race_error error;
    TEST_ASSERT_EQUAL(0, image_open("/proc/self/exe", &img, &error));
    uint64_t count = 0;
    for (uint32_t i = 0; i < img->section_count; i++) {
        const image_section *s = &img->sections[i];
        if (!(s->flags & IMAGE_X)) continue;
        for (uint64_t at = 0; at < s->filled;) {
            flow_raw raw;
            check(s->bytes + at, s->filled - at);
            at += flow_decode_any(s->bytes + at, s->filled - at, &raw) ? raw.len : 1;
            count++;
        }
    }
    TEST_ASSERT_TRUE(count > 10000);
    image_close(img);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(random_bytes);
    RUN_TEST(every_opcode_with_every_operand_form);
    RUN_TEST(this_program);
    return UNITY_END();
}
