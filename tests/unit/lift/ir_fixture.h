/* Lifts a few bytes of machine code, for the tests of lowering, frames and SSA. */
#ifndef RACE_IR_FIXTURE_H
#define RACE_IR_FIXTURE_H

#include "static/lift/lift.h"
#include "tests/lib/tinyelf.h"

#include <unity.h>

typedef struct {
    void *file;
    image *img;
    lift_module *module;
    const lift_func *func; /* the one at the first byte */
    const ir_func *ir;
} fixture;

static fixture now;

static void lift_bytes(const uint8_t *code, size_t length)
{
    size_t size;
    race_error error;
    now.file = tinyelf(code, length, &size);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, image_open_memory("test", now.file, size, &now.img, &error), "image_open_memory");
    now.module = lift_open(now.img, &(lift_options){.jobs = 1});
    now.func = lift_func_at(now.module, TINYELF_TEXT);
    TEST_ASSERT_NOT_NULL(now.func);
    now.ir = now.func->ir;
    if (ir_verify(now.ir, &error) < 0) TEST_FAIL_MESSAGE(error.text);
}

#define LIFT(code) lift_bytes(code, sizeof(code))

void setUp(void)
{
}

void tearDown(void)
{
    if (now.module) lift_close(now.module);
    if (now.img) image_close(now.img);
    free(now.file);
    memset(&now, 0, sizeof now);
}

/* The n-th instruction with this operation, from 0. */
static inline ir_value nth(ir_op op, unsigned n)
{
    for (ir_value v = 1; v < now.ir->insn_count; v++)
        if (now.ir->insns[v].op == op && n-- == 0) return v;
    TEST_FAIL_MESSAGE(ir_op_name(op));
    return 0;
}

static inline const ir_insn *at(ir_value v)
{
    return &now.ir->insns[v];
}

static inline unsigned count_of(ir_op op)
{
    unsigned count = 0;
    for (ir_value v = 1; v < now.ir->insn_count; v++)
        count += now.ir->insns[v].op == op;
    return count;
}

static inline ir_value arg(ir_value v, unsigned n)
{
    TEST_ASSERT_LESS_THAN_UINT32(at(v)->b, n);
    return now.ir->args[at(v)->a + n];
}

/* What rax is at the first return, copies looked through. */
static inline const ir_insn *returned(void)
{
    return at(ir_origin(now.ir, arg(nth(IR_RET, 0), IR_RET_RAX)));
}

static inline void assert_entry(uint16_t var, ir_value v)
{
    v = ir_origin(now.ir, v);
    TEST_ASSERT_EQUAL_STRING("entry", ir_op_name((ir_op)at(v)->op));
    TEST_ASSERT_EQUAL_UINT16(var, at(v)->var);
}

static inline unsigned accesses_with(unsigned flags)
{
    unsigned count = 0;
    for (ir_value v = 1; v < now.ir->insn_count; v++)
        count += at(v)->op == IR_ACCESS && (at(v)->flags & flags) == flags;
    return count;
}

#endif
