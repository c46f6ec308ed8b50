/* Moving an instruction: what depends on its place is written anew, all else is copied.
 *
 * A call becomes a push of the original return address and a jump, so that no return address ever points into a
 * trampoline: unwinders, backtraces and code that looks at its caller see the program as it was. */
#include "runtime/probe/insn.h"

#include <string.h>

typedef struct {
    uint8_t *out;
    size_t len;
    uint64_t to;
    bool failed;
} writer;

static void put(writer *w, const void *bytes, size_t size)
{
    memcpy(w->out + w->len, bytes, size);
    w->len += size;
}

static void put_byte(writer *w, uint8_t b)
{
    w->out[w->len++] = b;
}

/* A 32-bit offset from the end of these four bytes (and `behind` more) to the target. */
static void put_relative(writer *w, uint64_t target, unsigned behind)
{
    int64_t offset = (int64_t)(target - (w->to + w->len + 4 + behind));
    int32_t narrow = (int32_t)offset;
    if (narrow != offset) w->failed = true;
    put(w, &narrow, sizeof narrow);
}

static void put_jump(writer *w, uint64_t target)
{
    put_byte(w, 0xe9);
    put_relative(w, target, 0);
}

/* push $low; movl $high, 4(%rsp): no register and no flag changes. */
static void put_return_address(writer *w, uint64_t address)
{
    const uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);
    put_byte(w, 0x68);
    put(w, &low, sizeof low);
    if (high == (low >> 31 ? UINT32_MAX : 0)) return; /* sign extension did it */
    put(w, "\xc7\x44\x24\x04", 4);
    put(w, &high, sizeof high);
}

/* The instruction with its displacement relative to the new place. */
static void put_rip(writer *w, const insn *i, const uint8_t *bytes, uint64_t from)
{
    int32_t disp;
    memcpy(&disp, bytes + i->disp_at, sizeof disp);
    const uint64_t target = from + i->length + (uint64_t)(int64_t)disp;
    put(w, bytes, i->disp_at);
    put_relative(w, target, i->length - i->disp_at - 4u);
    put(w, bytes + i->disp_at + 4, i->length - i->disp_at - 4u);
}

/* jmp with the operand of a call; the stack pointer is 8 lower than it was there. */
static void put_indirect_jump(writer *w, const insn *i, const uint8_t *bytes, uint64_t from)
{
    const uint8_t jump_modrm = (uint8_t)((i->modrm & 0xc7) | 4 << 3);
    const bool has_sib = i->modrm >> 6 != 3 && (i->modrm & 7) == 4;
    const bool from_stack = has_sib && (bytes[i->modrm_at + 1] & 7) == 4 && !(i->rex & 1);
    const bool is_stack_pointer = i->modrm >> 6 == 3 && (i->modrm & 7) == 4 && !(i->rex & 1);
    uint8_t copy[INSN_MAX];
    if (is_stack_pointer) {
        w->failed = true;
        return;
    }
    memcpy(copy, bytes, i->length);
    copy[i->modrm_at] = jump_modrm;
    if (i->is_rip) {
        put_rip(w, i, copy, from);
        return;
    }
    if (!from_stack) {
        put(w, copy, i->length);
        return;
    }
    int32_t disp = 0;
    if (i->disp_size == 1) disp = (int8_t)bytes[i->disp_at];
    if (i->disp_size == 4) memcpy(&disp, bytes + i->disp_at, sizeof disp);
    if (disp > INT32_MAX - 8)
        w->failed = true;
    else
        disp += 8;
    copy[i->modrm_at] = (uint8_t)((jump_modrm & 0x3f) | 0x80);
    put(w, copy, i->modrm_at + 2u);
    put(w, &disp, sizeof disp);
}

size_t insn_move(const insn *i, const uint8_t *bytes, uint64_t from, uint64_t to, uint8_t *out)
{
    writer w = {.out = out, .to = to};
    const bool is_relative = i->flow == INSN_JUMP || i->flow == INSN_BRANCH || i->flow == INSN_LOOP ||
                             i->flow == INSN_CALL || i->flow == INSN_BEGIN;
    if (is_relative && (i->operand_16 || (i->flow == INSN_LOOP && i->address_32))) return 0;
    if (i->is_rip && i->address_32) return 0;
    const uint64_t target = is_relative ? insn_target(i, bytes, from) : 0;
    switch (i->flow) {
    case INSN_JUMP:
        put_jump(&w, target);
        break;
    case INSN_BRANCH:
        put_byte(&w, 0x0f);
        put_byte(&w, (uint8_t)(0x80 | (i->opcode & 15)));
        put_relative(&w, target, 0);
        break;
    case INSN_LOOP: /* loop 1f; jmp short 2f; 1: jmp target; 2: */
        put_byte(&w, i->opcode);
        put_byte(&w, 2);
        put(&w, "\xeb\x05", 2);
        put_jump(&w, target);
        break;
    case INSN_BEGIN:
        put(&w, bytes, i->imm_at);
        put_relative(&w, target, 0);
        break;
    case INSN_CALL:
        put_return_address(&w, from + i->length);
        put_jump(&w, target);
        break;
    case INSN_CALL_IND:
        put_return_address(&w, from + i->length);
        put_indirect_jump(&w, i, bytes, from);
        break;
    default:
        if (i->is_rip)
            put_rip(&w, i, bytes, from);
        else
            put(&w, bytes, i->length);
    }
    return w.failed ? 0 : w.len;
}
