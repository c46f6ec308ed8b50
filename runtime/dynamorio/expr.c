/* Address expressions: as an operand of inserted code when one instruction can compute them, else evaluated in C from
 * the registers of the program. */
#include "runtime/dynamorio/client.h"

/* General registers by their machine numbers. */
static const reg_id_t registers[16] = {
    DR_REG_XAX, DR_REG_XCX, DR_REG_XDX, DR_REG_XBX, DR_REG_XSP, DR_REG_XBP, DR_REG_XSI, DR_REG_XDI,
    DR_REG_R8,  DR_REG_R9,  DR_REG_R10, DR_REG_R11, DR_REG_R12, DR_REG_R13, DR_REG_R14, DR_REG_R15,
};
static const reg_id_t segments[] = {
    [PLAN_SEGMENT_NONE] = DR_REG_NULL,
    [PLAN_SEGMENT_FS] = DR_SEG_FS,
    [PLAN_SEGMENT_GS] = DR_SEG_GS,
};

static reg_id_t register_of(uint8_t value)
{
    return value < 16 ? registers[value] : DR_REG_NULL;
}

opnd_t expr_operand(const plan_action *a, const report_module *module, bool *usable)
{
    int64_t disp = a->disp;
    if (a->base == PLAN_MODULE) disp += (int64_t)module->bias;
    *usable = a->width == 8 && a->bits == PLAN_NOTHING;
    bool plain = a->base == PLAN_MODULE && a->index == PLAN_NOTHING && a->segment == PLAN_SEGMENT_NONE;
    if (plain) return opnd_create_abs_addr((void *)disp, OPSZ_1);
    if (disp != (int32_t)disp) *usable = false;
    return opnd_create_far_base_disp(segments[a->segment], register_of(a->base), register_of(a->index),
                                     a->index == PLAN_NOTHING ? 0 : a->scale, (int)disp, OPSZ_1);
}

uint64_t expr_segment_base(reg_id_t segment)
{
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
    opnd_t start = opnd_create_far_base_disp(segment, DR_REG_NULL, DR_REG_NULL, 0, 0, OPSZ_1);
    return (uint64_t)opnd_compute_address(start, &mc);
}

uint64_t expr_value(uint8_t value, dr_mcontext_t *mc)
{
    return value < 16 ? reg_get_value(registers[value], mc) : 0;
}

static uint64_t bit_offset(const plan_action *a, dr_mcontext_t *mc)
{
    int64_t bits = (int64_t)expr_value(a->bits, mc);
    if (a->size == 4) bits = (int32_t)bits;
    if (a->size == 2) bits = (int16_t)bits;
    int64_t elements = bits >> __builtin_ctz(8 * a->size); /* towards minus infinity; the size is a power of two */
    return (uint64_t)elements * a->size;
}

uint64_t expr_address(const plan_action *a, const report_module *module, dr_mcontext_t *mc)
{
    uint64_t addr = (uint64_t)a->disp + expr_value(a->index, mc) * a->scale;
    addr += a->base == PLAN_MODULE ? (uint64_t)module->bias : expr_value(a->base, mc);
    if (a->bits != PLAN_NOTHING) addr += bit_offset(a, mc);
    if (a->width == 4) addr = (uint32_t)addr;
    if (a->segment != PLAN_SEGMENT_NONE) addr += expr_segment_base(segments[a->segment]);
    return addr;
}
