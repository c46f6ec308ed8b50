/* A very small assembler: the instructions that trampolines are made of, by name.
 *
 * Registers are machine numbers. What does not fit sets `failed`; nothing is ever written behind `cap`. */
#ifndef RACE_PROBE_EMIT_H
#define RACE_PROBE_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REGISTER = 0xff };
enum { JB = 0x82, JE = 0x84, JNE = 0x85, JA = 0x87 };

typedef struct {
    uint8_t *out;
    size_t len, cap;
    uint64_t at; /* address that out[0] will have */
    bool failed;
} code;

static inline uint64_t code_here(const code *c)
{
    return c->at + c->len;
}

static inline void emit_bytes(code *c, const void *bytes, size_t size)
{
    if (size > c->cap - c->len) {
        c->failed = true;
        return;
    }
    memcpy(c->out + c->len, bytes, size);
    c->len += size;
}

static inline void emit_byte(code *c, unsigned byte)
{
    uint8_t b = (uint8_t)byte;
    emit_bytes(c, &b, 1);
}

static inline void emit_int(code *c, int64_t value)
{
    int32_t v = (int32_t)value;
    if (v != value) c->failed = true;
    emit_bytes(c, &v, sizeof v);
}

static inline void emit_push(code *c, unsigned reg)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0x50 | (reg & 7));
}

static inline void emit_pop(code *c, unsigned reg)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0x58 | (reg & 7));
}

static inline void emit_push_number(code *c, uint32_t number)
{
    emit_byte(c, 0x68);
    emit_int(c, (int32_t)number);
}

/* Changes no flags. */
static inline void emit_move_stack(code *c, int32_t by)
{
    bool small = by == (int8_t)by;
    emit_bytes(c, small ? "\x48\x8d\x64\x24" : "\x48\x8d\xa4\x24", 4);
    if (small)
        emit_byte(c, (uint8_t)by);
    else
        emit_int(c, by);
}

static inline void emit_jump(code *c, uint64_t target)
{
    emit_byte(c, 0xe9);
    emit_int(c, (int64_t)(target - (code_here(c) + 4)));
}

/* A conditional jump to be filled in; returns its place for emit_fill. */
static inline size_t emit_branch(code *c, unsigned condition)
{
    emit_byte(c, 0x0f);
    emit_byte(c, condition);
    emit_int(c, 0);
    return c->len;
}

static inline size_t emit_branch_short(code *c, unsigned condition)
{
    emit_byte(c, condition - 0x10);
    emit_byte(c, 0);
    return c->len;
}

static inline size_t emit_jump_short(code *c)
{
    emit_bytes(c, "\xeb\0", 2);
    return c->len;
}

static inline size_t emit_branch_if_zero(code *c) /* rcx; short */
{
    emit_bytes(c, "\xe3\0", 2);
    return c->len;
}

static inline void emit_fill(code *c, size_t place) /* it leads to here */
{
    int32_t offset = (int32_t)(c->len - place);
    if (!c->failed) memcpy(c->out + place - 4, &offset, sizeof offset);
}

static inline void emit_fill_short(code *c, size_t place)
{
    if (c->len - place > 127) c->failed = true;
    if (!c->failed) c->out[place - 1] = (uint8_t)(c->len - place);
}

typedef struct { /* base + index * scale + disp; no base: absolute (sign-extended) */
    uint8_t base, index, scale;
    int32_t disp;
} memory;

/* prefix? REX opcode ModRM SIB disp. `wide`: 64-bit operands. */
static inline void emit_memory(code *c, bool wide, unsigned opcode, unsigned reg, memory m)
{
    static const uint8_t log2_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
    const bool has_base = m.base != NO_REGISTER, has_index = m.index != NO_REGISTER;
    unsigned rex =
        (wide ? 8u : 0) | (reg >> 3) << 2 | (has_index ? m.index >> 3 : 0u) << 1 | (has_base ? m.base >> 3 : 0u);
    if (rex) emit_byte(c, 0x40 | rex);
    emit_byte(c, opcode);
    const unsigned index = has_index ? m.index & 7u : 4, base = has_base ? m.base & 7u : 5;
    const unsigned sib = (has_index ? log2_of[m.scale] : 0u) << 6 | index << 3 | base;
    if (has_index && m.index == RSP) c->failed = true;
    const bool small = m.disp == (int8_t)m.disp;
    const unsigned mod = !has_base ? 0 : small ? 1 : 2;
    const bool sib_needed = has_index || !has_base || base == 4;
    emit_byte(c, mod << 6 | (reg & 7) << 3 | (sib_needed ? 4 : base));
    if (sib_needed) emit_byte(c, sib);
    if (mod == 1)
        emit_byte(c, (uint8_t)m.disp);
    else
        emit_int(c, m.disp);
}

static inline memory absolute(uint64_t addr) /* below 2 GB */
{
    return (memory){NO_REGISTER, NO_REGISTER, 1, (int32_t)addr};
}

static inline void emit_set_byte(code *c, memory m, uint8_t value) /* changes no flags */
{
    emit_memory(c, false, 0xc6, 0, m);
    emit_byte(c, value);
}

static inline void emit_load(code *c, unsigned reg, memory m)
{
    emit_memory(c, true, 0x8b, reg, m);
}

static inline void emit_load32(code *c, unsigned reg, memory m)
{
    emit_memory(c, false, 0x8b, reg, m);
}

static inline void emit_lea(code *c, unsigned reg, memory m)
{
    emit_memory(c, true, 0x8d, reg, m);
}

static inline void emit_lea32(code *c, unsigned reg, memory m)
{
    emit_memory(c, false, 0x8d, reg, m);
}

static inline void emit_compare32(code *c, unsigned reg, memory m) /* memory with register */
{
    emit_memory(c, false, 0x39, reg, m);
}

static inline void emit_compare(code *c, unsigned reg, memory m)
{
    emit_memory(c, true, 0x39, reg, m);
}

static inline memory memory_at(memory m, size_t offset)
{
    m.disp += (int32_t)offset;
    return m;
}

static inline void emit_fs(code *c) /* a prefix */
{
    emit_byte(c, 0x64);
}

static inline void emit_compare32_zero(code *c, memory m)
{
    emit_memory(c, false, 0x83, 7, m);
    emit_byte(c, 0);
}

static inline void emit_load_fs(code *c, unsigned reg, int32_t offset)
{
    emit_byte(c, 0x64);
    emit_load(c, reg, (memory){NO_REGISTER, NO_REGISTER, 1, offset});
}

static inline void emit_compare32_fs(code *c, unsigned reg, int32_t offset)
{
    emit_byte(c, 0x64);
    emit_compare32(c, reg, (memory){NO_REGISTER, NO_REGISTER, 1, offset});
}

static inline void emit_compare_fs(code *c, unsigned reg, int32_t offset)
{
    emit_byte(c, 0x64);
    emit_memory(c, true, 0x39, reg, (memory){NO_REGISTER, NO_REGISTER, 1, offset});
}

static inline void emit_lea_near(code *c, unsigned reg, uint64_t addr)
{
    emit_byte(c, 0x48 | (reg >> 3) << 2);
    emit_byte(c, 0x8d);
    emit_byte(c, (reg & 7) << 3 | 5);
    emit_int(c, (int64_t)(addr - (code_here(c) + 4)));
}

static inline void emit_move(code *c, unsigned to, unsigned from)
{
    emit_byte(c, 0x48 | (from >> 3) << 2 | to >> 3);
    emit_byte(c, 0x89);
    emit_byte(c, 0xc0 | (from & 7) << 3 | (to & 7));
}

static inline void emit_exchange(code *c, unsigned a, unsigned b)
{
    emit_byte(c, 0x48 | (b >> 3) << 2 | a >> 3);
    emit_byte(c, 0x87);
    emit_byte(c, 0xc0 | (b & 7) << 3 | (a & 7));
}

static inline void emit_shift_right(code *c, unsigned reg, unsigned by)
{
    emit_byte(c, 0x48 | reg >> 3);
    emit_byte(c, 0xc1);
    emit_byte(c, 0xe8 | (reg & 7));
    emit_byte(c, by);
}

static inline void emit_shift_left(code *c, unsigned reg, unsigned by)
{
    emit_byte(c, 0x48 | reg >> 3);
    emit_byte(c, 0xc1);
    emit_byte(c, 0xe0 | (reg & 7));
    emit_byte(c, by);
}

static inline void emit_and32(code *c, unsigned reg, uint32_t mask)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0x81);
    emit_byte(c, 0xe0 | (reg & 7));
    emit_int(c, (int32_t)mask);
}

static inline void emit_test(code *c, unsigned reg)
{
    emit_byte(c, 0x48 | (reg >> 3) << 2 | reg >> 3);
    emit_byte(c, 0x85);
    emit_byte(c, 0xc0 | (reg & 7) << 3 | (reg & 7));
}

static inline void emit_test32(code *c, unsigned reg, uint32_t mask)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0xf7);
    emit_byte(c, 0xc0 | (reg & 7));
    emit_int(c, (int32_t)mask);
}

static inline void emit_compare32_number(code *c, unsigned reg, uint32_t number)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0x81);
    emit_byte(c, 0xf8 | (reg & 7));
    emit_int(c, (int32_t)number);
}
static inline void emit_test8(code *c, unsigned reg, uint8_t mask) /* the lowest byte of the register */
{
    emit_byte(c, 0x40 | reg >> 3);
    emit_byte(c, 0xf6);
    emit_byte(c, 0xc0 | (reg & 7));
    emit_byte(c, mask);
}

static inline void emit_load_number(code *c, unsigned reg, uint64_t number)
{
    emit_byte(c, 0x48 | reg >> 3);
    emit_byte(c, 0xb8 | (reg & 7));
    emit_bytes(c, &number, sizeof number);
}

static inline void emit_load_number32(code *c, unsigned reg, uint32_t number)
{
    if (reg >= 8) emit_byte(c, 0x41);
    emit_byte(c, 0xb8 | (reg & 7));
    emit_int(c, (int32_t)number);
}

static inline void emit_call_absolute(code *c, uint64_t slot) /* through a pointer below 2 GB */
{
    emit_bytes(c, "\xff\x14\x25", 3);
    emit_int(c, (int64_t)slot);
}

#endif
