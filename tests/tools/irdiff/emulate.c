/* One machine instruction at a time in unicorn. Guest memory is mapped from the same host pages as everywhere else. */
#include "irdiff.h"

#include <stdlib.h>
#include <unicorn/unicorn.h>

struct emulator {
    uc_engine *uc;
    memory *mem;
    uint32_t generation;
    VEC(memory_region) mapped;
    uint32_t maps; /* regions ever mapped: unicorn 2.0 gives up at 4096, unmapped ones included */
    access_list *performed;
    bool lost; /* an access that could not be mapped */
    uint32_t step_maps;
    uint64_t rip; /* of the instruction to execute */
    bool jumps, begun;
};

static const int emulator_gprs[] = {UC_X86_REG_RAX, UC_X86_REG_RCX,    UC_X86_REG_RDX,     UC_X86_REG_RBX,
                                    UC_X86_REG_RSP, UC_X86_REG_RBP,    UC_X86_REG_RSI,     UC_X86_REG_RDI,
                                    UC_X86_REG_R8,  UC_X86_REG_R9,     UC_X86_REG_R10,     UC_X86_REG_R11,
                                    UC_X86_REG_R12, UC_X86_REG_R13,    UC_X86_REG_R14,     UC_X86_REG_R15,
                                    UC_X86_REG_RIP, UC_X86_REG_RFLAGS, UC_X86_REG_FS_BASE, UC_X86_REG_GS_BASE};
enum { GPRS = sizeof emulator_gprs / sizeof *emulator_gprs, XMMS = 16 };

/* Maps what memory has and the emulator has not yet. */
static void emulator_sync(emulator *e)
{
    const memory_region *all;
    if (e->generation != memory_generation(e->mem)) {
        for (uint32_t i = 0; i < e->mapped.len; i++)
            uc_mem_unmap(e->uc, e->mapped.data[i].base, e->mapped.data[i].size);
        vec_clear(&e->mapped);
        e->generation = memory_generation(e->mem);
    }
    uint32_t count = memory_regions(e->mem, &all);
    if (count == e->mapped.len) return;
    for (uint32_t i = 0; i < count; i++) { /* both are by base */
        if (i < e->mapped.len && e->mapped.data[i].base == all[i].base) continue;
        uc_mem_map_ptr(e->uc, all[i].base, all[i].size, UC_PROT_ALL, all[i].host);
        e->maps++;
        vec_push(&e->mapped, all[i]);
        memmove(&e->mapped.data[i + 1], &e->mapped.data[i], (e->mapped.len - 1 - i) * sizeof *e->mapped.data);
        e->mapped.data[i] = all[i];
    }
}

static void event_access(uc_engine *uc, uc_mem_type type, uint64_t addr, int size, int64_t v, void *context)
{
    (void)uc, (void)v;
    emulator *e = context;
    bool write = type == UC_MEM_WRITE;
    vec_push(e->performed, (mem_access){.addr = addr, .size = (uint64_t)size, .read = !write, .write = write});
    if (!memory_map(e->mem, addr, (uint64_t)size))
        e->lost = true;
    else if (write)
        memory_save(e->mem, addr, (uint64_t)size);
}

static void event_instruction(uc_engine *uc, uint64_t addr, uint32_t size, void *context)
{
    (void)size;
    emulator *e = context;
    if (addr != e->rip || (e->jumps && e->begun)) uc_emu_stop(uc); /* a rep begins once per element */
    e->begun = true;
}

static bool event_unmapped(uc_engine *uc, uc_mem_type type, uint64_t addr, int size, int64_t v, void *context)
{
    (void)uc, (void)v;
    emulator *e = context;
    if (type == UC_MEM_FETCH_UNMAPPED) return false;
    enum { MOST_PER_STEP = 64 };
    if (e->step_maps++ >= MOST_PER_STEP || !memory_map(e->mem, addr, (uint64_t)size)) {
        e->lost = true;
        return false;
    }
    emulator_sync(e);
    return true;
}

static bool emulator_start(emulator *e)
{
    uc_hook hook;
    if (uc_open(UC_ARCH_X86, UC_MODE_64, &e->uc) != UC_ERR_OK) return false;
    uc_ctl_set_cpu_model(e->uc, UC_CPU_X86_SKYLAKE_CLIENT);
    uc_hook_add(e->uc, &hook, UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, (void *)(uintptr_t)event_access, e, 1, 0);
    uc_hook_add(e->uc, &hook, UC_HOOK_MEM_UNMAPPED, (void *)(uintptr_t)event_unmapped, e, 1, 0);
    uc_hook_add(e->uc, &hook, UC_HOOK_CODE, (void *)(uintptr_t)event_instruction, e, 1, 0);
    e->generation = memory_generation(e->mem);
    e->maps = 0;
    vec_clear(&e->mapped);
    return true;
}

emulator *emulator_open(memory *mem)
{
    emulator *e = base_alloc_zero(1, sizeof *e);
    e->mem = mem;
    if (emulator_start(e)) return e;
    free(e);
    return NULL;
}

void emulator_close(emulator *e)
{
    if (!e) return;
    uc_close(e->uc);
    vec_free(&e->mapped);
    free(e);
}

void emulator_begin(emulator *e)
{
    enum { MOST_MAPS = 3000 };
    if (e->maps > MOST_MAPS) {
        uc_close(e->uc);
        if (!emulator_start(e)) base_oom(0);
    }
    uint64_t mxcsr = 0x1f80, control = 0x37f, status = 0, tags = 0xffff;
    uc_reg_write(e->uc, UC_X86_REG_MXCSR, &mxcsr);
    uc_reg_write(e->uc, UC_X86_REG_FPCW, &control);
    uc_reg_write(e->uc, UC_X86_REG_FPSW, &status);
    uc_reg_write(e->uc, UC_X86_REG_FPTAG, &tags);
    for (int i = 0; i < 8; i++) {
        uint8_t zero[16] = {0};
        uc_reg_write(e->uc, UC_X86_REG_FP0 + i, zero);
    }
}

static void emulator_registers(emulator *e, machine *m, bool vectors, bool put)
{
    uint64_t flags = (m->flags & (FLAG_STATUS | FLAG_DF)) | 0x202;
    void *at[GPRS];
    for (int i = 0; i < 16; i++)
        at[i] = &m->gpr[i];
    at[16] = &m->rip, at[17] = &flags, at[18] = &m->fs, at[19] = &m->gs;
    if (put)
        uc_reg_write_batch(e->uc, (int *)(uintptr_t)emulator_gprs, at, GPRS);
    else
        uc_reg_read_batch(e->uc, (int *)(uintptr_t)emulator_gprs, at, GPRS);
    m->flags = flags & (FLAG_STATUS | FLAG_DF);
    if (!vectors) return;
    int regs[XMMS];
    void *xmms[XMMS];
    for (int i = 0; i < XMMS; i++) {
        regs[i] = UC_X86_REG_XMM0 + i;
        xmms[i] = m->vector[i];
    }
    if (put)
        uc_reg_write_batch(e->uc, regs, xmms, XMMS);
    else
        uc_reg_read_batch(e->uc, regs, xmms, XMMS);
}

step_status emulator_step(emulator *e, machine *m, const step_kind *kind, access_list *performed)
{
    uint64_t rip = m->rip;
    vec_clear(performed);
    e->performed = performed;
    e->lost = false;
    e->step_maps = 0;
    emulator_sync(e);
    emulator_registers(e, m, kind->vectors, true);
    e->rip = rip;
    e->jumps = kind->jumps;
    e->begun = false;
    /* Up to where it goes: the translated code is then mostly just this one instruction, and code that is none, behind
     * a return address made up, is not translated (unicorn does not survive that). Where translated code is longer,
     * event_instruction stops it. (Unicorn's own counter would do that too, but it throws all translated code away when
     * it is switched on or off.) */
    uc_err error = uc_emu_start(e->uc, rip, kind->until, 0, 0);
    if (error == UC_ERR_FETCH_UNMAPPED && kind->jumps) error = UC_ERR_OK; /* has jumped, to where nothing is */
    emulator_registers(e, m, kind->vectors, false);
    if (e->lost) return STEP_FAULT;
    if (error == UC_ERR_INSN_INVALID) return STEP_UNSUPPORTED;
    if (!kind->jumps && m->rip == rip) return STEP_FAULT; /* an exception */
    return error == UC_ERR_OK ? STEP_OK : STEP_FAULT;
}
