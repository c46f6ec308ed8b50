/* The instructions that make up most of compiled code, decoded from two tables.
 *
 * Discovery decodes every instruction of a program at least once and only wants its length, mnemonic, flow and the
 * address it names; Zydis, which answers everything, takes most of that time. Here are the one-byte opcodes and the
 * two-byte ones of integer code, with or without REX prefix. Anything else (other prefixes, vectors, rare or invalid
 * forms) is left to Zydis, which is also what the tests compare this with. */
#include "static/lift/flow.h"

enum { /* what follows the opcode */
    NONE = 0,
    MODRM = 1,
    IMM8 = 2,
    IMM32 = 4,
    IMMW = 8,    /* 4 bytes, 8 with REX.W */
    MEMORY = 16, /* the ModRM operand must be memory */
    GROUP = 32,  /* the mnemonic is in groups[form.mnemonic][ModRM.reg] */
    REL8 = 64,
    REL32 = 128
};

typedef struct {
    uint16_t mnemonic; /* 0: not here */
    uint8_t form;
} opcode;

#define M(name) ZYDIS_MNEMONIC_##name

enum { G_ALU = 1, G_SHIFT, G_UNARY, G_INC, G_INC_CALL, G_MOV };

/* clang-format off */
static const uint16_t groups[][8] = {
    [G_ALU] = {M(ADD), M(OR), M(ADC), M(SBB), M(AND), M(SUB), M(XOR), M(CMP)},
    [G_SHIFT] = {M(ROL), M(ROR), M(RCL), M(RCR), M(SHL), M(SHR), 0, M(SAR)},
    [G_UNARY] = {0, 0, M(NOT), M(NEG), M(MUL), M(IMUL), M(DIV), M(IDIV)}, /* test has an immediate, see below */
    [G_INC] = {M(INC), M(DEC)},
    [G_INC_CALL] = {M(INC), M(DEC), M(CALL), 0, M(JMP), 0, M(PUSH)},
    [G_MOV] = {M(MOV)},
};

#define ALU(base, name)                                                                                                \
    [base ... base + 3] = {M(name), MODRM}, [base + 4] = {M(name), IMM8}, [base + 5] = {M(name), IMM32}

static const opcode one[256] = {
    ALU(0x00, ADD), ALU(0x08, OR), ALU(0x10, ADC), ALU(0x18, SBB), ALU(0x20, AND), ALU(0x28, SUB), ALU(0x30, XOR),
    ALU(0x38, CMP),
    [0x50 ... 0x57] = {M(PUSH), NONE},     [0x58 ... 0x5f] = {M(POP), NONE},
    [0x63] = {M(MOVSXD), MODRM},           [0x68] = {M(PUSH), IMM32},
    [0x69] = {M(IMUL), MODRM | IMM32},     [0x6a] = {M(PUSH), IMM8},
    [0x6b] = {M(IMUL), MODRM | IMM8},
    [0x70] = {M(JO), REL8},  [0x71] = {M(JNO), REL8}, [0x72] = {M(JB), REL8},  [0x73] = {M(JNB), REL8},
    [0x74] = {M(JZ), REL8},  [0x75] = {M(JNZ), REL8}, [0x76] = {M(JBE), REL8}, [0x77] = {M(JNBE), REL8},
    [0x78] = {M(JS), REL8},  [0x79] = {M(JNS), REL8}, [0x7a] = {M(JP), REL8},  [0x7b] = {M(JNP), REL8},
    [0x7c] = {M(JL), REL8},  [0x7d] = {M(JNL), REL8}, [0x7e] = {M(JLE), REL8}, [0x7f] = {M(JNLE), REL8},
    [0x80] = {G_ALU, GROUP | MODRM | IMM8}, [0x81] = {G_ALU, GROUP | MODRM | IMM32},
    [0x83] = {G_ALU, GROUP | MODRM | IMM8},
    [0x84 ... 0x85] = {M(TEST), MODRM},    [0x86 ... 0x87] = {M(XCHG), MODRM},
    [0x88 ... 0x8b] = {M(MOV), MODRM},     [0x8d] = {M(LEA), MODRM | MEMORY},
    [0xa8] = {M(TEST), IMM8},              [0xa9] = {M(TEST), IMM32},
    [0xb0 ... 0xb7] = {M(MOV), IMM8},      [0xb8 ... 0xbf] = {M(MOV), IMMW},
    [0xc0 ... 0xc1] = {G_SHIFT, GROUP | MODRM | IMM8},
    [0xc3] = {M(RET), NONE},
    [0xc6] = {G_MOV, GROUP | MODRM | IMM8}, [0xc7] = {G_MOV, GROUP | MODRM | IMM32},
    [0xc9] = {M(LEAVE), NONE},
    [0xd0 ... 0xd3] = {G_SHIFT, GROUP | MODRM},
    [0xe8] = {M(CALL), REL32}, [0xe9] = {M(JMP), REL32}, [0xeb] = {M(JMP), REL8},
    [0xf6 ... 0xf7] = {G_UNARY, GROUP | MODRM},
    [0xfe] = {G_INC, GROUP | MODRM},       [0xff] = {G_INC_CALL, GROUP | MODRM},
};

static const opcode two[256] = { /* behind 0f */
    [0x1f] = {M(NOP), MODRM},
    [0x40] = {M(CMOVO), MODRM}, [0x41] = {M(CMOVNO), MODRM}, [0x42] = {M(CMOVB), MODRM},  [0x43] = {M(CMOVNB), MODRM},
    [0x44] = {M(CMOVZ), MODRM}, [0x45] = {M(CMOVNZ), MODRM}, [0x46] = {M(CMOVBE), MODRM}, [0x47] = {M(CMOVNBE), MODRM},
    [0x48] = {M(CMOVS), MODRM}, [0x49] = {M(CMOVNS), MODRM}, [0x4a] = {M(CMOVP), MODRM},  [0x4b] = {M(CMOVNP), MODRM},
    [0x4c] = {M(CMOVL), MODRM}, [0x4d] = {M(CMOVNL), MODRM}, [0x4e] = {M(CMOVLE), MODRM}, [0x4f] = {M(CMOVNLE), MODRM},
    [0x80] = {M(JO), REL32}, [0x81] = {M(JNO), REL32}, [0x82] = {M(JB), REL32},  [0x83] = {M(JNB), REL32},
    [0x84] = {M(JZ), REL32}, [0x85] = {M(JNZ), REL32}, [0x86] = {M(JBE), REL32}, [0x87] = {M(JNBE), REL32},
    [0x88] = {M(JS), REL32}, [0x89] = {M(JNS), REL32}, [0x8a] = {M(JP), REL32},  [0x8b] = {M(JNP), REL32},
    [0x8c] = {M(JL), REL32}, [0x8d] = {M(JNL), REL32}, [0x8e] = {M(JLE), REL32}, [0x8f] = {M(JNLE), REL32},
    [0x90] = {M(SETO), MODRM}, [0x91] = {M(SETNO), MODRM}, [0x92] = {M(SETB), MODRM},  [0x93] = {M(SETNB), MODRM},
    [0x94] = {M(SETZ), MODRM}, [0x95] = {M(SETNZ), MODRM}, [0x96] = {M(SETBE), MODRM}, [0x97] = {M(SETNBE), MODRM},
    [0x98] = {M(SETS), MODRM}, [0x99] = {M(SETNS), MODRM}, [0x9a] = {M(SETP), MODRM},  [0x9b] = {M(SETNP), MODRM},
    [0x9c] = {M(SETL), MODRM}, [0x9d] = {M(SETNL), MODRM}, [0x9e] = {M(SETLE), MODRM}, [0x9f] = {M(SETNLE), MODRM},
    [0xaf] = {M(IMUL), MODRM},
    [0xb6 ... 0xb7] = {M(MOVZX), MODRM}, [0xbe ... 0xbf] = {M(MOVSX), MODRM},
};
/* clang-format on */

static int32_t read32(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

bool flow_decode_fast(const uint8_t *bytes, uint64_t available, flow_raw *raw)
{
    if (available < 15) return false; /* so that nothing below looks beyond the end */
    const uint8_t *at = bytes;
    uint8_t rex = (*at & 0xf0) == 0x40 ? *at++ : 0;
    const opcode *op = &one[*at];
    if (*at == 0x0f) op = &two[*++at];
    uint8_t form = op->form, length = 0;
    *raw = (flow_raw){.mnemonic = op->mnemonic};
    at++;
    if (!op->mnemonic) return false;
    if (form & MODRM) {
        uint8_t mod = *at >> 6, reg = *at >> 3 & 7, rm = *at & 7;
        at++;
        if ((form & MEMORY) && mod == 3) return false;
        if (form & GROUP) raw->mnemonic = groups[op->mnemonic][reg];
        if (!raw->mnemonic) return false;
        raw->indirect = mod != 3 || raw->mnemonic == ZYDIS_MNEMONIC_JMP || raw->mnemonic == ZYDIS_MNEMONIC_CALL;
        if (mod != 3) {
            uint8_t base = rm;
            if (rm == 4) base = *at++ & 7; /* SIB */
            length = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
            if (length == 4) {
                raw->has_disp32 = true;
                raw->disp = read32(at);
            }
            raw->rip = mod == 0 && rm == 5;
            at += length;
        }
    }
    if (form & IMM8) at++;
    if ((form & IMM32) || ((form & IMMW) && !(rex & 8))) {
        bool wide = (rex & 8) || raw->mnemonic == ZYDIS_MNEMONIC_PUSH; /* else the operation has 32 bits */
        raw->has_imm = true;
        raw->imm = wide ? (uint64_t)(int64_t)read32(at) : (uint32_t)read32(at);
        at += 4;
    } else if (form & IMMW) {
        raw->has_imm = true;
        memcpy(&raw->imm, at, 8);
        at += 8;
    }
    if (form & REL8) {
        raw->relative = (int8_t)*at++;
    } else if (form & REL32) {
        raw->relative = read32(at);
        at += 4;
    }
    raw->len = (uint8_t)(at - bytes);
    return true;
}
