/* Programs that forbid system calls to themselves.
 *
 * A filter may end the process at a call that the program never makes, but we do. So each filter is run for the calls
 * of ours before it is installed. What it answers with an error is dealt with where the call is made; if it does
 * anything else to one of them, or leaves no way to say what is found, or cannot be understood, the program runs as if
 * there were no engine from there on, and what was found is said before. */
#include "runtime/probe/probe.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* What the engine calls while the program runs, and in the end. */
static const int ours[] = {SYS_getpid,      SYS_gettid,    SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_tgsigqueueinfo,
                           SYS_sched_yield, SYS_mmap,      SYS_munmap,         SYS_madvise,      SYS_process_vm_readv,
                           SYS_membarrier,  SYS_write,     SYS_fstat,          SYS_openat,       SYS_fcntl,
                           SYS_close,       SYS_read,      SYS_readlinkat,     SYS_getrlimit,    SYS_prlimit64,
                           SYS_exit_group,  SYS_brk,       SYS_clock_gettime,  SYS_getcwd,       SYS_lseek,
                           SYS_mremap,      SYS_nanosleep, SYS_mprotect,       SYS_tgkill};
enum { WORDS = 16, UNKNOWN = 0x7fff0000 ^ 1 };

static bool is_taken(const struct sock_filter *i, uint32_t a, uint32_t x)
{
    const uint32_t with = BPF_SRC(i->code) == BPF_X ? x : i->k;
    switch (BPF_OP(i->code)) {
    case BPF_JEQ:
        return a == with;
    case BPF_JGT:
        return a > with;
    case BPF_JGE:
        return a >= with;
    default:
        return a & with; /* BPF_JSET */
    }
}

static bool compute(const struct sock_filter *i, uint32_t *a, uint32_t x)
{
    const uint32_t with = BPF_SRC(i->code) == BPF_X ? x : i->k;
    switch (BPF_OP(i->code)) {
    case BPF_ADD:
        *a += with;
        return true;
    case BPF_SUB:
        *a -= with;
        return true;
    case BPF_AND:
        *a &= with;
        return true;
    case BPF_OR:
        *a |= with;
        return true;
    default:
        return false;
    }
}

/* What the filter says of a call; UNKNOWN: it is not understood. */
static uint32_t run_filter(const struct sock_fprog *p, const struct seccomp_data *data)
{
    uint32_t a = 0, x = 0, memory[WORDS] = {0};
    for (uint32_t at = 0; at < p->len; at++) {
        struct sock_filter i;
        if (!probe_peek(&i, (uint64_t)&p->filter[at], sizeof i)) return UNKNOWN;
        switch (BPF_CLASS(i.code)) {
        case BPF_LD:
            if (BPF_MODE(i.code) == BPF_ABS && i.k <= sizeof *data - sizeof a)
                memcpy(&a, (const char *)data + i.k, sizeof a);
            else if (BPF_MODE(i.code) == BPF_IMM)
                a = i.k;
            else if (BPF_MODE(i.code) == BPF_MEM)
                a = memory[i.k % WORDS];
            else
                return UNKNOWN;
            break;
        case BPF_LDX:
            if (BPF_MODE(i.code) != BPF_IMM && BPF_MODE(i.code) != BPF_MEM) return UNKNOWN;
            x = BPF_MODE(i.code) == BPF_IMM ? i.k : memory[i.k % WORDS];
            break;
        case BPF_ST:
            memory[i.k % WORDS] = a;
            break;
        case BPF_STX:
            memory[i.k % WORDS] = x;
            break;
        case BPF_ALU:
            if (!compute(&i, &a, x)) return UNKNOWN;
            break;
        case BPF_JMP:
            at += BPF_OP(i.code) == BPF_JA ? i.k : is_taken(&i, a, x) ? i.jt : i.jf;
            break;
        case BPF_RET:
            return BPF_RVAL(i.code) == BPF_A ? a : i.k;
        default:
            if (BPF_MISCOP(i.code) == BPF_TXA) a = x;
            if (BPF_MISCOP(i.code) == BPF_TAX) x = a;
            break;
        }
    }
    return UNKNOWN;
}

/* The files that reports go to are recognised by fstat, or else opened anew. */
static bool leaves_us(const struct sock_fprog *p)
{
    bool can_report = false;
    for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++) {
        struct seccomp_data data = {.nr = ours[i], .arch = AUDIT_ARCH_X86_64};
        if (ours[i] == SYS_mmap) data.args[2] = 3, data.args[3] = 0x4022; /* to be read and written, reserved */
        if (ours[i] == SYS_write) data.args[0] = 2;
        const uint32_t action = run_filter(p, &data) & SECCOMP_RET_ACTION_FULL;
        if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != SECCOMP_RET_ERRNO) return false;
        if (action != SECCOMP_RET_ERRNO && (ours[i] == SYS_fstat || ours[i] == SYS_openat)) can_report = true;
    }
    return can_report;
}

/* Before a call that restricts: the program with it, or NULL if nothing but reading and writing is to be left. */
static void restrict_calls(bool is_strict, uint64_t filter)
{
    struct sock_fprog p;
    if (!process_is_own() || probe.disabled) return;             /* a child of vfork has its parent's memory */
    if (!is_strict && !probe_peek(&p, filter, sizeof p)) return; /* the kernel will say so */
    if (!is_strict && leaves_us(&p)) return;
    process_seal("it forbids system calls (seccomp) that checks may need");
}

void seccomp_start(void)
{
    uint64_t to, from = 0;
    struct stat st;
    struct iovec here = {&to, sizeof to}, there = {&from, sizeof from};
    const char *missing = NULL;
    if (sys_call(SYS_process_vm_readv, probe.pid, (long)&here, 1, (long)&there, 1, 0) < 0) missing = "process_vm_readv";
    const long result = sys_call(SYS_fstat, 0, (long)&st, 0, 0, 0, 0);
    if (result < 0 && result != -EBADF) missing = "fstat";
    if (probe.pid < 0) missing = "getpid";
    if (!missing) return;
    char line[100]; /* stderr is what it was given: nothing has run, and it may not be possible to ask */
    report_text t;
    text_start(&t, line, sizeof line);
    text_add(&t, "race: %s is forbidden (seccomp): the program runs unchecked\n", missing);
    sys_call(SYS_write, REPORT_STDERR, (long)line, (long)t.len, 0, 0, 0);
}

static void look_at(long number, long a, long b, long c)
{
    if (number == SYS_prctl && a == PR_SET_SECCOMP) restrict_calls(b == SECCOMP_MODE_STRICT, (uint64_t)c);
    if (number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT) restrict_calls(true, 0);
    if (number == SYS_seccomp && a == SECCOMP_SET_MODE_FILTER) restrict_calls(false, (uint64_t)c);
}

/* Either of them by libc's syscall(). */
long probe_restrict_by_system(long number, long a, long b, long c, long d, long e);
long probe_restrict_by_system(long number, long a, long b, long c, long d, long e)
{
    look_at(number, a, b, c);
    const long result = sys_call(number, a, b, c, d, e, 0);
    return result < 0 ? probe_syscall_error(result) : result;
}

EXPORT int prctl(int option, ...)
{
    va_list list; /* what the option does not have is not looked at */
    va_start(list, option);
    const long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long), d = va_arg(list, long);
    va_end(list);
    return (int)probe_restrict_by_system(SYS_prctl, option, a, b, c, d);
}
