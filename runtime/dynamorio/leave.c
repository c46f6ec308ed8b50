/* Signals that arrive while a thread is in a call from the code cache.
 *
 * DynamoRIO gives a signal to the program when the thread leaves the code cache, which it makes it do at the next branch
 * if the signal arrives there. One that arrives in a call from there, such as a check, only waits, and a loop may never
 * leave the cache: a thread that is to be cancelled, or whose loop ends when a handler says so, would run for ever. So
 * a call that ends looks whether a signal has come, and if so goes on outside of the cache. There the call is made
 * again; a check looks before it begins, too, so that those that have come earlier do not have it made twice.
 *
 * DynamoRIO does not say so, but the kernel leaves a trace: it puts the frame of every signal at the top of the thread's
 * alternate stack, which is DynamoRIO's. The frame ends in the state of the vector registers and a magic number behind
 * it, so the topmost words, once cleared, stay zero until a signal comes. (What comes while DynamoRIO itself restores
 * registers after the call is seen by the next call.) */
#include "runtime/dynamorio/client.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum { MARK_WORDS = 16 };

void leave_init(client_thread *t)
{
    stack_t stack = {0};
    const long error = client_system_call(SYS_sigaltstack, 0, (long)&stack, 0, 0);
    if (error || stack.ss_flags & SS_DISABLE || stack.ss_size < MARK_WORDS * sizeof(uint64_t)) return;
    t->signal_mark = (uint64_t *)(void *)((byte *)stack.ss_sp + stack.ss_size) - MARK_WORDS;
    memset(t->signal_mark, 0, MARK_WORDS * sizeof(uint64_t));
}

/* At the end of a call that was inserted with the program's registers in place (DR_CLEANCALL_READS_APP_CONTEXT); `next`
 * is the instruction of the program that comes after the call. Does not return if a signal has come. */
void leave_if_signalled(void *drcontext, client_thread *t, app_pc next)
{
    const volatile uint64_t *mark = t->signal_mark;
    uint64_t seen = 0;
    for (int i = 0; mark && i < MARK_WORDS; i++)
        seen |= mark[i];
    if (!seen) return;
    memset(t->signal_mark, 0, MARK_WORDS * sizeof(uint64_t));
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_ALL};
    if (!dr_get_mcontext(drcontext, &mc)) return;
    mc.pc = next;
    dr_redirect_execution(&mc);
}
