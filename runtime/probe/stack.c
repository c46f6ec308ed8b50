/* The stack of an access, for the core to keep with it. Walking it (runtime/report/stack.c) is the dearest part of an
 * access that is not settled inline, and the same access mostly comes with the same stack. So each thread remembers for
 * some accesses which words the walk has read: as long as they are the same, so is the stack. */
#include "runtime/probe/probe.h"

#include <sys/mman.h>

probe_stacks stack_none;

/* A new memo, in front of the one that was there. NULL: no memory. */
static stack_memo *memo_new(probe_thread *self, ft_site site, uint64_t sp, uint64_t back)
{
    if (self->stacks == &stack_none) {
        probe_stacks *own = sys_map(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
        if (!own) return NULL;
        self->stacks = own;
    }
    stack_memo *memos = stack_memos_of(self, site, sp, back);
    if (memos[0].result) {
        memos[1].result = 0; /* a handler may come in between */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        memos[1].site = memos[0].site;
        memos[1].sp = memos[0].sp;
        memos[1].count = memos[0].count;
        memcpy(memos[1].words, memos[0].words, memos[0].count * sizeof *memos[0].words);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        memos[1].result = memos[0].result;
        memos[0].result = 0;
    }
    memos[0].site = site;
    memos[0].sp = sp;
    memos[0].count = 0;
    memos[0].overflow = false;
    return memos;
}

bool stack_read(uint64_t from, void *to, size_t size)
{
    probe_thread *self = &probe_self;
    const uint64_t low = self->stack_is_fixed ? self->stack_low : self->stack_seen;
    stack_memo *memo = self->walking;
    if (size != sizeof(uint64_t) || !low || from < low || from >= self->stack_high - size) {
        if (memo) memo->overflow = true;
        return sys_copy(to, from, size);
    }
    const uint64_t value = *(const uint64_t *)from;
    *(uint64_t *)to = value;
    if (!memo) return true;
    if (memo->count < STACK_WORDS && from - memo->sp <= UINT32_MAX) {
        memo->words[memo->count].at = (uint32_t)(from - memo->sp);
        memo->words[memo->count++].value = (uint32_t)value;
    } else {
        memo->overflow = true;
    }
    return true;
}

ft_site stack_of_access(void *context, ft_thread *thread, ft_site site)
{
    (void)context;
    probe_thread *self = &probe_self;
    if (self->thread != thread || !self->stack_seen || !probe.report->options.stack_depth) return site;
    const stack_memo *known = stack_find(self, site, self->stack_seen, self->back_seen);
    if (known) return known->result;
    stack_memo *memo = memo_new(self, site, self->stack_seen, self->back_seen);
    stack_place place = {.pc = self->pc_seen, .sp = self->stack_seen, .bp = self->frame_seen};
    uint64_t frames[FT_FRAMES];
    self->walking = memo;
    uint32_t count = stack_walk(probe.report, place, frames, (uint32_t)probe.report->options.stack_depth);
    self->walking = NULL;
    ft_site result = ft_stack_put(probe.core, site, frames, count);
    if (memo && !memo->overflow) memo->result = result;
    return result;
}

void stack_forget(void)
{
    probe_stacks *own = probe_self.stacks;
    probe_self.stacks = &stack_none; /* first: a signal may come in between, and its handler makes checks */
    memset(probe_self.last, 0, sizeof probe_self.last);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (own != &stack_none) sys_unmap(own, sizeof *own);
}
