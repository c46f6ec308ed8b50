/* Lengths of instructions. One letter per opcode:
 *
 *   .  no operand bytes    m  ModRM        b  imm8        w  imm16       z  imm32 (imm16 with prefix 66)
 *   B  ModRM, imm8         Z  ModRM, immz  v  imm64 with REX.W, else z   o  address of 8 bytes (4 with prefix 67)
 *   j  rel8                J  rel32        e  enter: imm16, imm8         t  test: ModRM, and imm8 if /0 or /1
 *   T  test: ModRM, and immz if /0 or /1   x  not in 64-bit mode         p  a prefix, handled before */
#include "runtime/probe/insn.h"

#include <string.h>

static const char one_byte[] = "mmmmbzxxmmmmbzxp"   /* 00 */
                               "mmmmbzxxmmmmbzxx"   /* 10 */
                               "mmmmbzpxmmmmbzpx"   /* 20 */
                               "mmmmbzpxmmmmbzpx"   /* 30 */
                               "pppppppppppppppp"   /* 40 */
                               "................"   /* 50 */
                               "xxpmppppzZbB...."   /* 60 */
                               "jjjjjjjjjjjjjjjj"   /* 70 */
                               "BZxBmmmmmmmmmmmm"   /* 80 */
                               "..........x....."   /* 90 */
                               "oooo....bz......"   /* a0 */
                               "bbbbbbbbvvvvvvvv"   /* b0 */
                               "BBw.ppBZe.w..bx."   /* c0 */
                               "mmmmxxx.mmmmmmmm"   /* d0 */
                               "jjjjbbbbJJxj...."   /* e0 */
                               "p.pp..tT......mm";  /* f0 */
static const char two_bytes[] = "mmmmx.....x.xm.B"  /* 00 */
                                "mmmmmmmmmmmmmmmm"  /* 10 */
                                "mmmmxxxxmmmmmmmm"  /* 20 */
                                "......x.pxpxxxxx"  /* 30 */
                                "mmmmmmmmmmmmmmmm"  /* 40 */
                                "mmmmmmmmmmmmmmmm"  /* 50 */
                                "mmmmmmmmmmmmmmmm"  /* 60 */
                                "BBBBmmm.mmxxmmmm"  /* 70 */
                                "JJJJJJJJJJJJJJJJ"  /* 80 */
                                "mmmmmmmmmmmmmmmm"  /* 90 */
                                "...mBmmm...mBmmm"  /* a0 */
                                "mmmmmmmmmmBmmmmm"  /* b0 */
                                "mmBmBBBm........"  /* c0 */
                                "mmmmmmmmmmmmmmmm"  /* d0 */
                                "mmmmmmmmmmmmmmmm"  /* e0 */
                                "mmmmmmmmmmmmmmmm"; /* f0 */

static bool is_legacy_prefix(uint8_t b)
{
    switch (b) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

typedef struct {
    const uint8_t *at;
    size_t size, pos;
    bool failed;
} reader;

static uint8_t next(reader *r)
{
    if (r->pos >= r->size) {
        r->failed = true;
        return 0;
    }
    return r->at[r->pos++];
}

/* VEX, EVEX and XOP: leaves the reader behind the opcode. Returns its letter. */
static char read_vector_opcode(reader *r, uint8_t first, insn *i)
{
    uint8_t map = 1;
    i->is_vex = true;
    if (first == 0xc5) {
        next(r);
    } else if (first == 0x62) {
        map = next(r) & 7;
        if (!(next(r) & 4)) return 'x';
        next(r);
    } else {
        map = next(r) & 31;
        next(r);
    }
    i->opcode_at = (uint8_t)r->pos;
    i->opcode = next(r);
    i->map = map;
    if (first == 0x8f) return map == 8 ? 'B' : map == 9 ? 'm' : map == 10 ? 'Z' : 'x';
    switch (map) {
    case 1:
        if (i->opcode == 0x77 && first != 0x62) return '.';
        if ((i->opcode & 0xf0) == 0x80) return 'x'; /* jumps of processors that are no more */
        return two_bytes[i->opcode] == 'B' && i->opcode != 0x0f && i->opcode != 0xa4 && i->opcode != 0xac &&
                       i->opcode != 0xba
                   ? 'B'
                   : 'm';
    case 2:
        return 'm';
    case 3:
        return 'B';
    case 5:
    case 6:
        return first == 0x62 ? 'm' : 'x';
    default:
        return 'x';
    }
}

static char read_opcode(reader *r, insn *i)
{
    uint8_t b = next(r);
    while (is_legacy_prefix(b)) {
        i->operand_16 |= b == 0x66;
        i->address_32 |= b == 0x67;
        i->prefixes++;
        b = next(r);
        if (r->failed) return 'x';
    }
    if ((b & 0xf0) == 0x40) {
        i->rex = b;
        b = next(r);
        if (is_legacy_prefix(b) || (b & 0xf0) == 0x40)
            return 'x'; /* the processor would ignore it: nobody writes this */
        if (b & 0x80 && (b == 0xc4 || b == 0xc5)) return 'x';
    }
    if (i->rex & 8) i->operand_16 = false;
    if (b == 0xc4 || b == 0xc5 || b == 0x62) return i->rex ? 'x' : read_vector_opcode(r, b, i);
    if (b == 0x8f && r->pos < r->size && (r->at[r->pos] & 31) >= 8) return read_vector_opcode(r, b, i);
    if (b != 0x0f) {
        i->opcode = b;
        i->opcode_at = (uint8_t)(r->pos - 1);
        return one_byte[b];
    }
    b = next(r);
    i->map = b == 0x38 ? 2 : b == 0x3a ? 3 : 1;
    if (i->map > 1) b = next(r);
    i->opcode = b;
    i->opcode_at = (uint8_t)(r->pos - 1);
    return i->map == 1 ? two_bytes[b] : i->map == 2 ? 'm' : 'B';
}

static void read_modrm(reader *r, insn *i)
{
    i->modrm_at = (uint8_t)r->pos;
    i->modrm = next(r);
    uint8_t mod = i->modrm >> 6, rm = i->modrm & 7, sib = 0;
    bool moves_control = i->map == 1 && !i->is_vex && i->opcode >= 0x20 && i->opcode <= 0x23; /* mod is ignored */
    if (mod == 3 || moves_control) return;
    if (rm == 4) sib = next(r);
    bool no_base = mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5));
    i->is_rip = mod == 0 && rm == 5;
    i->disp_at = (uint8_t)r->pos;
    i->disp_size = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    r->pos += i->disp_size;
}

static unsigned immediate_size(const insn *i, char letter)
{
    const unsigned z = i->operand_16 ? 2 : 4;
    const uint8_t digit = i->modrm >> 3 & 7;
    switch (letter) {
    case 'b':
    case 'B':
    case 'j':
        return 1;
    case 'w':
        return 2;
    case 'e':
        return 3;
    case 'J':
        return 4;
    case 'z':
        return z;
    case 'Z':
        return i->is_vex ? 4 : z;
    case 'v':
        return i->rex & 8 ? 8 : z;
    case 'o':
        return i->address_32 ? 4 : 8;
    case 't':
        return digit < 2 ? 1 : 0;
    case 'T':
        return digit < 2 ? z : 0;
    default:
        return 0;
    }
}

static insn_flow flow_of(const insn *i)
{
    const uint8_t digit = i->modrm >> 3 & 7;
    if (i->is_vex) return INSN_PLAIN;
    if (i->map == 1) {
        if ((i->opcode & 0xf0) == 0x80) return INSN_BRANCH;
        if (i->opcode == 0x0b || i->opcode == 0xb9 || i->opcode == 0xff) return INSN_END;
        return i->opcode == 0x05 || i->opcode == 0x07 || i->opcode == 0x34 || i->opcode == 0x35 ? INSN_STRANGE
                                                                                                : INSN_PLAIN;
    }
    if (i->map) return INSN_PLAIN;
    if ((i->opcode & 0xf0) == 0x70) return INSN_BRANCH;
    switch (i->opcode) {
    case 0xc2:
    case 0xc3:
    case 0xf4:
        return INSN_END;
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcd:
    case 0xcf:
    case 0xf1:
        return INSN_STRANGE;
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
        return INSN_LOOP;
    case 0xe8:
        return INSN_CALL;
    case 0xe9:
    case 0xeb:
        return INSN_JUMP;
    case 0xc7:
        return i->modrm == 0xf8 ? INSN_BEGIN : INSN_PLAIN;
    case 0xff:
        return digit == 2                 ? INSN_CALL_IND
               : digit == 4               ? INSN_END
               : digit == 3 || digit == 5 ? INSN_STRANGE
                                          : INSN_PLAIN;
    default:
        return INSN_PLAIN;
    }
}

bool insn_decode(const uint8_t *bytes, size_t size, insn *out)
{
    reader r = {.at = bytes, .size = size < INSN_MAX ? size : INSN_MAX};
    memset(out, 0, sizeof *out);
    char letter = read_opcode(&r, out);
    if (r.failed || letter == 'x' || letter == 'p') return false;
    if (letter == 'm' || letter == 'B' || letter == 'Z' || letter == 't' || letter == 'T') read_modrm(&r, out);
    if (r.failed) return false;
    out->imm_at = (uint8_t)r.pos;
    out->imm_size = (uint8_t)immediate_size(out, letter);
    r.pos += out->imm_size;
    if (r.pos > r.size) return false;
    out->length = (uint8_t)r.pos;
    out->flow = flow_of(out);
    return true;
}

uint64_t insn_target(const insn *i, const uint8_t *bytes, uint64_t addr)
{
    int32_t wide = 0;
    if (i->imm_size == 4) memcpy(&wide, bytes + i->imm_at, sizeof wide);
    int64_t relative = i->imm_size == 1 ? (int8_t)bytes[i->imm_at] : wide;
    return addr + i->length + (uint64_t)relative;
}
