/* The stack of the access that a thread is making: walked (runtime/report/stack.c) from the registers of the program. rsp
 * and rbp are never used as scratch registers (insert.c), so they are the program's in every call from the code cache.
 * An access that a library function makes has the stack of its caller. */
#include "runtime/dynamorio/client.h"

ft_site stack_of_access(void *context, ft_thread *thread, ft_site site)
{
    (void)context;
    void *drcontext = dr_get_current_drcontext();
    client_thread *t = drcontext ? client_thread_of(drcontext) : NULL;
    if (!t || t->ft != thread) return site;
    dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
    if (!dr_get_mcontext(drcontext, &mc)) return site;
    stack_place place = t->caller;
    if (!place.pc) {
        place.pc = report_site_address(client.report, site);
        place.sp = reg_get_value(DR_REG_XSP, &mc);
    }
    place.bp = reg_get_value(DR_REG_XBP, &mc);
    uint64_t frames[FT_FRAMES];
    uint32_t count = stack_walk(client.report, place, frames, (uint32_t)client.report->options.stack_depth);
    return ft_stack_put(client.core, site, frames, count);
}
