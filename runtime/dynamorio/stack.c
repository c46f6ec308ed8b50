/* The stack of the access that a thread is making: walked (runtime/report/stack.c) from the registers of the program. rsp
 * and rbp are never used as scratch registers (insert.c), so they are the program's in every call from the code cache.
 * An access that a library function makes has the stack of its caller.
 *
 * A walk is dearer than the check itself, and the same access mostly comes with the same stack. So each thread remembers for
 * some accesses which words the walk has read: as long as they are the same, so is the stack. */
#include "runtime/dynamorio/client.h"

enum { STACK_MEMOS = 512, STACK_WORDS = 24 };

typedef struct {
    ft_site site, result; /* result 0: nothing is remembered */
    uint64_t sp;
    uint32_t count;
    bool overflow;
    struct {
        uint64_t at, value;
    } words[STACK_WORDS];
} stack_memo;

struct client_stacks {
    stack_memo memos[STACK_MEMOS];
    stack_memo *walking; /* of the walk that is going on */
};

static stack_memo *memo_of(client_thread *t, ft_site site, uint64_t sp)
{
    if (!t->stacks)
        t->stacks = dr_raw_mem_alloc(sizeof *t->stacks, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
    return t->stacks ? &t->stacks->memos[(site ^ sp >> 4) % STACK_MEMOS] : NULL;
}

/* The words may be gone: stacks of coroutines are given back. */
static bool is_remembered(void *drcontext, const stack_memo *memo, ft_site site, uint64_t sp)
{
    volatile bool same = memo->result && memo->site == site && memo->sp == sp;
    if (!same) return false;
    DR_TRY_EXCEPT(
        drcontext,
        {
            for (uint32_t i = 0; i < memo->count && same; i++)
                same = *(const volatile uint64_t *)memo->words[i].at == memo->words[i].value;
        },
        { same = false; });
    return same;
}

void stack_read(uint64_t at, uint64_t value)
{
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = drcontext ? client_thread_of(drcontext) : NULL;
    stack_memo *memo = t && t->stacks ? t->stacks->walking : NULL;
    if (!memo) return;
    if (memo->count == STACK_WORDS) {
        memo->overflow = true;
        return;
    }
    memo->words[memo->count].at = at;
    memo->words[memo->count++].value = value;
}

static ft_site walk(client_thread *t, stack_place place, stack_memo *memo, ft_site site)
{
    if (memo) {
        *memo = (stack_memo){.site = site, .sp = place.sp};
        t->stacks->walking = memo;
    }
    uint64_t frames[FT_FRAMES];
    uint32_t count = stack_walk(client.report, place, frames, (uint32_t)client.report->options.stack_depth);
    ft_site result = ft_stack_put(client.core, site, frames, count);
    if (memo) {
        t->stacks->walking = NULL;
        if (!memo->overflow) memo->result = result;
    }
    return result;
}

ft_site stack_of_access(void *context, ft_thread *thread, ft_site site)
{
    (void)context;
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = drcontext ? client_thread_of(drcontext) : NULL;
    if (!t || t->ft != thread || !client.report->options.stack_depth) return site;
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
    if (!dr_get_mcontext(drcontext, &mc)) return site;
    stack_place place = t->caller;
    if (!place.pc) {
        place.pc = report_site_address(client.report, site);
        place.sp = reg_get_value(DR_REG_XSP, &mc);
    }
    place.bp = reg_get_value(DR_REG_XBP, &mc);
    stack_memo *memo = memo_of(t, site, place.sp);
    if (memo && is_remembered(drcontext, memo, site, place.sp)) return memo->result;
    return walk(t, place, memo, site);
}

void stack_forget(client_thread *t)
{
    if (t->stacks) dr_raw_mem_free(t->stacks, sizeof *t->stacks);
    t->stacks = NULL;
}
