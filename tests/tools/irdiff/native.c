/* One machine instruction at a time on the processor itself: a traced process whose address space is empty but for the
 * guest's memory and one page of our own code. What the instruction accesses is seen by debug registers: watchpoints of
 * one byte, which tell whether that byte was accessed. */
#include "irdiff.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#define STUB_ADDRESS 0x7e0000000000ull
#define STUB_TOP     0x7ffffffff000ull

enum { XSTATE_MAX = 16 * 1024, XSTATE_HEADER = 512, XSTATE_LEGACY_XMM = 160, XSTATE_MXCSR = 24 };
enum { XSTATE_AVX = 2, XSTATE_ZMM_HIGH = 6, XSTATE_ZMM_16 = 7 };

struct native {
    memory *mem;
    uint32_t generation;
    VEC(memory_region) mapped;
    pid_t child;
    uint64_t syscall_at; /* address of a syscall instruction in the child */
    struct user_regs_struct start;
    size_t xstate_size;
    uint32_t component[8]; /* offset of a state component, 0: this processor has none */
    _Alignas(64) uint8_t xstate[XSTATE_MAX], xstate_start[XSTATE_MAX];
};

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* Unmaps all of the address space around itself, then stops. Position-independent, no stack. */
__asm__(".section .text\n"
        ".balign 16\n"
        ".globl irdiff_stub, irdiff_stub_end, irdiff_stub_syscall\n"
        "irdiff_stub:\n"
        "  mov $11, %eax\n" /* munmap(0, stub) */
        "  xor %edi, %edi\n"
        "  mov %r12, %rsi\n"
        "irdiff_stub_syscall:\n"
        "  syscall\n"
        "  mov $11, %eax\n" /* munmap(stub + page, top - stub - page) */
        "  lea 4096(%r12), %rdi\n"
        "  mov %r13, %rsi\n"
        "  sub %rdi, %rsi\n"
        "  syscall\n"
        "  int3\n"
        "1: jmp 1b\n"
        "irdiff_stub_end:\n");
extern const uint8_t irdiff_stub[], irdiff_stub_end[], irdiff_stub_syscall[];

/* The kernel writes to the restartable-sequence area that libc has registered, and kills who has unmapped it. */
static void child_drop_rseq(void)
{
#ifdef RSEQ_SIG
    uint8_t *area = (uint8_t *)__builtin_thread_pointer() + __rseq_offset;
    static const unsigned sizes[] = {32, 20, 28, 24, 48, 64};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (syscall(SYS_rseq, area, sizes[i], RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0) break;
#endif
}

static _Noreturn void child_main(void)
{
    child_drop_rseq();
    uint8_t *stub = mmap((void *)(uintptr_t)STUB_ADDRESS, MEMORY_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (stub != (void *)(uintptr_t)STUB_ADDRESS || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0) _exit(1);
    memcpy(stub, irdiff_stub, (size_t)(irdiff_stub_end - irdiff_stub));
    register uint64_t low __asm__("r12") = STUB_ADDRESS;
    register uint64_t high __asm__("r13") = STUB_TOP;
    __asm__ volatile("jmp *%0" ::"a"(stub), "r"(low), "r"(high) : "memory");
    __builtin_unreachable();
}

static bool native_wait(native *n, int *signal)
{
    int status;
    while (waitpid(n->child, &status, 0) < 0)
        if (errno != EINTR) return false;
    *signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    return WIFSTOPPED(status);
}

static bool native_go(native *n, int *signal)
{
    return ptrace(PTRACE_SINGLESTEP, n->child, NULL, NULL) == 0 && native_wait(n, signal);
}

static uint64_t native_syscall(native *n, uint64_t number, const uint64_t args[6])
{
    struct user_regs_struct r = n->start;
    int signal;
    r.rax = number, r.orig_rax = ~0ull, r.rip = n->syscall_at;
    r.rdi = args[0], r.rsi = args[1], r.rdx = args[2], r.r10 = args[3], r.r8 = args[4], r.r9 = args[5];
    if (ptrace(PTRACE_SETREGS, n->child, NULL, &r) < 0 || !native_go(n, &signal)) return ~0ull;
    return ptrace(PTRACE_GETREGS, n->child, NULL, &r) < 0 ? ~0ull : r.rax;
}

static bool native_sync(native *n)
{
    const memory_region *all;
    if (n->generation != memory_generation(n->mem)) {
        for (uint32_t i = 0; i < n->mapped.len; i++)
            native_syscall(n, SYS_munmap, (uint64_t[6]){n->mapped.data[i].base, n->mapped.data[i].size});
        vec_clear(&n->mapped);
        n->generation = memory_generation(n->mem);
    }
    uint32_t count = memory_regions(n->mem, &all);
    for (uint32_t i = 0; count != n->mapped.len && i < count; i++) {
        if (i < n->mapped.len && n->mapped.data[i].base == all[i].base) continue;
        uint64_t args[6] = {all[i].base,
                            all[i].size,
                            PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_SHARED | MAP_FIXED_NOREPLACE,
                            (uint64_t)memory_file(n->mem),
                            all[i].offset};
        if (native_syscall(n, SYS_mmap, args) != all[i].base) return false;
        vec_push(&n->mapped, all[i]);
        memmove(&n->mapped.data[i + 1], &n->mapped.data[i], (n->mapped.len - 1 - i) * sizeof *n->mapped.data);
        n->mapped.data[i] = all[i];
    }
    return true;
}

static bool native_xstate_layout(native *n)
{
    uint32_t a, b, c, d;
    struct iovec io = {n->xstate_start, sizeof n->xstate_start};
    if (ptrace(PTRACE_GETREGSET, n->child, (void *)NT_X86_XSTATE, &io) < 0) return false;
    n->xstate_size = io.iov_len;
    uint64_t enabled;
    memcpy(&enabled, n->xstate_start + 464, 8); /* XCR0, in the software-reserved bytes */
    for (uint32_t i = 2; i < 8; i++) {
        if (!((enabled >> i) & 1) || !__get_cpuid_count(0xd, i, &a, &b, &c, &d) || b + a > n->xstate_size) continue;
        n->component[i] = b;
    }
    memcpy(n->xstate_start + XSTATE_HEADER, &enabled, 8); /* every component is given explicitly */
    return true;
}

native *native_open(memory *mem)
{
    native *n = base_alloc_zero(1, sizeof *n);
    int signal = 0;
    n->mem = mem;
    n->generation = memory_generation(mem);
    n->child = fork();
    if (n->child == 0) child_main();
    n->syscall_at = STUB_ADDRESS + (uint64_t)(irdiff_stub_syscall - irdiff_stub);
    bool ok = n->child > 0 && native_wait(n, &signal) && signal == SIGTRAP &&
              ptrace(PTRACE_SETOPTIONS, n->child, NULL, (void *)PTRACE_O_EXITKILL) == 0 &&
              ptrace(PTRACE_GETREGS, n->child, NULL, &n->start) == 0 && native_xstate_layout(n);
    if (ok) return n;
    native_close(n);
    return NULL;
}

void native_close(native *n)
{
    if (!n) return;
    if (n->child > 0) {
        kill(n->child, SIGKILL);
        waitpid(n->child, NULL, 0);
    }
    vec_free(&n->mapped);
    free(n);
}

/* --- registers ---------------------------------------------------------------------------------------------------- */

/* Where lane `lane` of vector register `reg` lies in the saved state; NULL: this processor does not have it. */
static uint8_t *native_lane(native *n, unsigned reg, unsigned lane)
{
    if (reg >= 16)
        return n->component[XSTATE_ZMM_16] ? n->xstate + n->component[XSTATE_ZMM_16] + (reg - 16) * 64 + lane * 8
                                           : NULL;
    if (lane < 2) return n->xstate + XSTATE_LEGACY_XMM + reg * 16 + lane * 8;
    if (lane < 4)
        return n->component[XSTATE_AVX] ? n->xstate + n->component[XSTATE_AVX] + reg * 16 + (lane - 2) * 8 : NULL;
    return n->component[XSTATE_ZMM_HIGH] ? n->xstate + n->component[XSTATE_ZMM_HIGH] + reg * 32 + (lane - 4) * 8 : NULL;
}

static bool native_vectors(native *n, machine *m, bool put)
{
    struct iovec io = {n->xstate, n->xstate_size};
    if (put)
        memcpy(n->xstate, n->xstate_start, n->xstate_size);
    else if (ptrace(PTRACE_GETREGSET, n->child, (void *)NT_X86_XSTATE, &io) < 0)
        return false;
    uint64_t in_use; /* a component not in use is in its initial state: zero */
    memcpy(&in_use, n->xstate + XSTATE_HEADER, 8);
    for (unsigned reg = 0; reg < 32; reg++) {
        for (unsigned lane = 0; lane < 8; lane++) {
            uint8_t *at = native_lane(n, reg, lane);
            unsigned component = reg >= 16 ? XSTATE_ZMM_16 : lane < 2 ? 1 : lane < 4 ? XSTATE_AVX : XSTATE_ZMM_HIGH;
            if (at && put) memcpy(at, &m->vector[reg][lane], 8);
            if (!at || put) continue;
            if ((in_use >> component) & 1)
                memcpy(&m->vector[reg][lane], at, 8);
            else
                m->vector[reg][lane] = 0;
        }
    }
    return !put || ptrace(PTRACE_SETREGSET, n->child, (void *)NT_X86_XSTATE, &io) == 0;
}

static void native_registers(struct user_regs_struct *r, machine *m, bool put)
{
    unsigned long long *at[16] = {
        [IR_RAX] = (void *)&r->rax, [IR_RCX] = (void *)&r->rcx, [IR_RDX] = (void *)&r->rdx, [IR_RBX] = (void *)&r->rbx,
        [IR_RSP] = (void *)&r->rsp, [IR_RBP] = (void *)&r->rbp, [IR_RSI] = (void *)&r->rsi, [IR_RDI] = (void *)&r->rdi,
        [IR_R8] = (void *)&r->r8,   [IR_R9] = (void *)&r->r9,   [IR_R10] = (void *)&r->r10, [IR_R11] = (void *)&r->r11,
        [IR_R12] = (void *)&r->r12, [IR_R13] = (void *)&r->r13, [IR_R14] = (void *)&r->r14, [IR_R15] = (void *)&r->r15};
    for (int i = 0; i < 16; i++) {
        if (put)
            *at[i] = m->gpr[i];
        else
            m->gpr[i] = *at[i];
    }
    if (put) {
        r->orig_rax = ~0ull;
        r->rip = m->rip, r->fs_base = m->fs, r->gs_base = m->gs;
        r->eflags = (m->flags & (FLAG_STATUS | FLAG_DF)) | 0x202;
    } else {
        m->rip = r->rip, m->fs = r->fs_base, m->gs = r->gs_base;
        m->flags = r->eflags & (FLAG_STATUS | FLAG_DF);
    }
}

static bool native_watch(native *n, const native_probe *probes, unsigned count)
{
    uint64_t control = 0;
    if (ptrace(PTRACE_POKEUSER, n->child, offsetof(struct user, u_debugreg[7]), 0) < 0) return false;
    for (unsigned i = 0; i < count; i++) {
        if (ptrace(PTRACE_POKEUSER, n->child, offsetof(struct user, u_debugreg[i]), probes[i].addr) < 0) return false;
        control |= 1ull << (2 * i) | (probes[i].write_only ? 1ull : 3ull) << (16 + 4 * i); /* length 1 */
    }
    if (ptrace(PTRACE_POKEUSER, n->child, offsetof(struct user, u_debugreg[6]), 0) < 0) return false;
    return !count || ptrace(PTRACE_POKEUSER, n->child, offsetof(struct user, u_debugreg[7]), control) == 0;
}

/* A fault at an address that can be mapped is mapped, and the registers are as they were. */
static bool native_map_fault(native *n)
{
    siginfo_t info;
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETSIGINFO, n->child, NULL, &info) < 0 || ptrace(PTRACE_GETREGS, n->child, NULL, &r) < 0)
        return false;
    uint32_t before = n->mapped.len;
    if (!memory_map(n->mem, (uint64_t)(uintptr_t)info.si_addr, 1) || !native_sync(n) || n->mapped.len == before)
        return false;
    r.orig_rax = ~0ull;
    return ptrace(PTRACE_SETREGS, n->child, NULL, &r) == 0;
}

step_status native_step(native *n, machine *m, const step_kind *kind, native_probe *probes, unsigned count)
{
    struct user_regs_struct r = n->start;
    enum { MOST_STEPS = 70000 };
    uint64_t rip = m->rip, hits = 0;
    int signal;
    if (!native_sync(n)) return STEP_UNSUPPORTED;
    native_registers(&r, m, true);
    if (ptrace(PTRACE_SETREGS, n->child, NULL, &r) < 0 || !native_vectors(n, m, true)) return STEP_FAULT;
    if (!native_watch(n, probes, count)) return STEP_UNSUPPORTED;
    for (int steps = 0;; steps++) { /* a rep stops after each element */
        if (steps > MOST_STEPS || !native_go(n, &signal)) return STEP_FAULT;
        if (signal == SIGSEGV && native_map_fault(n)) continue;
        if (signal == SIGILL) return STEP_UNSUPPORTED;
        if (signal != SIGTRAP) return STEP_FAULT;
        hits |= (uint64_t)ptrace(PTRACE_PEEKUSER, n->child, offsetof(struct user, u_debugreg[6]), NULL);
        if (ptrace(PTRACE_GETREGS, n->child, NULL, &r) < 0) return STEP_FAULT;
        if (r.rip != rip || !kind->repeats) break;
    }
    native_registers(&r, m, false);
    if (!native_vectors(n, m, false)) return STEP_FAULT;
    for (unsigned i = 0; i < count; i++)
        probes[i].hit = (hits >> i) & 1;
    return STEP_OK;
}
