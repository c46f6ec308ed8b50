/* Calls of the functions of the sync table, in whatever module exports them. */
#include "runtime/dynamorio/client.h"

#include "drwrap.h"

#include <string.h>

/* The function that a pthread_once runs has returned. */
static void after_once(void *wrapcxt, void *user_data)
{
    client_thread *t = client_thread_of(dr_get_current_drcontext());
    if (wrapcxt && t->ft && t->once_depth && t->once_depth <= CLIENT_ONCE_DEPTH)
        sync_once_ran(t->ft, t->once[t->once_depth - 1]);
}

/* Which routine this once runs is known only now. Wrapping one twice does nothing. */
static void begin_once(client_thread *t, sync_call *call)
{
    app_pc routine = (app_pc)call->args[call->row->other];
    if (t->once_depth < CLIENT_ONCE_DEPTH) t->once[t->once_depth] = call;
    t->once_depth++;
    if (!drwrap_is_wrapped(routine, NULL, after_once)) drwrap_wrap(routine, NULL, after_once);
}

static void before_call(void *wrapcxt, void **user_data)
{
    void *drcontext = drwrap_get_drcontext(wrapcxt);
    client_thread *t = client_thread_of(drcontext);
    sync_call *call = dr_thread_alloc(drcontext, sizeof *call);
    memset(call, 0, sizeof *call);
    call->row = *user_data;
    const uint8_t used[] = {call->row->object, call->row->other, call->row->third};
    for (unsigned i = 0; i < sizeof used; i++)
        if (used[i] < SYNC_ARGS) call->args[used[i]] = (uint64_t)drwrap_get_arg(wrapcxt, used[i]);
    if (sync_wants_site(call->row)) call->site = report_call_site(client.report, (uint64_t)drwrap_get_retaddr(wrapcxt));
    if (call->row->meaning == SYNC_CREATE) t->create_site = call->site;
    if (call->row->meaning == SYNC_ONCE) begin_once(t, call);
    if (t->ft) sync_before(&thread_engine, t->ft, call);
    *user_data = call;
}

/* wrapcxt is NULL when the call was left by longjmp, or by the end of the thread: then there is no second half. */
static void after_call(void *wrapcxt, void *user_data)
{
    void *drcontext = wrapcxt ? drwrap_get_drcontext(wrapcxt) : dr_get_current_drcontext();
    client_thread *t = client_thread_of(drcontext);
    sync_call *call = user_data;
    if (call->row->meaning == SYNC_ONCE) t->once_depth--;
    if (wrapcxt && t->ft) sync_after(&thread_engine, t->ft, call, (uint64_t)drwrap_get_retval(wrapcxt));
    dr_thread_free(drcontext, call, sizeof *call);
}

void wrap_module(const module_data_t *module, const report_module *m)
{
    dr_symbol_export_iterator_t *it = dr_symbol_export_iterator_start(module->handle);
    if (!it) return;
    while (dr_symbol_export_iterator_hasnext(it)) {
        dr_symbol_export_t *symbol = dr_symbol_export_iterator_next(it);
        /* all versions of a symbol; those that are one function are wrapped once */
        const sync_row *row = symbol->is_code ? sync_find(symbol->name) : NULL;
        if (row && !drwrap_is_wrapped(symbol->addr, before_call, after_call))
            drwrap_wrap_ex(symbol->addr, before_call, after_call, (void *)row, DRWRAP_CALLCONV_DEFAULT);
    }
    dr_symbol_export_iterator_stop(it);
}
