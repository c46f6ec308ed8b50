/* Modules as DynamoRIO loads and unloads them: their plans (runtime/report), and the functions of the sync table. */
#include "runtime/dynamorio/client.h"

#include "drsyms.h"

#include <string.h>

/* Why this engine cannot do what a sound plan asks for, or NULL. */
static const char *unable(const plan *p)
{
    for (uint32_t i = 0; i < p->action_count; i++)
        if (p->actions[i].kind == PLAN_CAPTURE) return "the plan captures values, which this engine cannot do";
    for (uint32_t i = 0; i < p->site_count; i++)
        for (uint32_t k = CLIENT_REP_ACTIONS; k < p->sites[i].action_count; k++)
            if (p->actions[p->sites[i].first_action + k].flags & PLAN_DOWN)
                return "the plan has more repetitions at one site than this engine can do";
    return NULL;
}

static bool is_program(const module_data_t *info)
{
    module_data_t *main = dr_get_main_module();
    bool same = main && main->start == info->start;
    if (main) dr_free_module_data(main);
    return same;
}

static void event_module_load(void *drcontext, const module_data_t *info, bool loaded)
{
    const char *path = info->full_path ? info->full_path : "";
    report_module *m = report_module_add(client.report, path, (uint64_t)info->start, (uint64_t)info->end);
    if (!m) return;
    if (m->plan && client.report->options.audit && !m->ran) m->ran = report_memory(client.report, m->plan->site_count);
    const char *cannot = m->plan ? unable(m->plan) : NULL;
    if (cannot) {
        m->plan = NULL;
        m->is_checked = false;
        m->refused = cannot;
        report_say(client.report, "%s: %s", m->plan_path, cannot);
    }
    if (m->refused && !client.report->options.unchecked) dr_abort_with_code(2);
    if (is_program(info) && !m->refused) {
        if (!m->has_interpreter) /* none of its synchronisation has a name that can be found */
            report_say(client.report, "%s: statically linked: only its atomic instructions are seen as synchronisation",
                       path);
        else if (!m->plan && !client.report->options.all && !client.report->options.ask_dir)
            report_say(client.report, "%s: no plan in %s: it runs unchecked", path, client.report->options.plan_dir);
    }
    wrap_module(info, m);
}

static void event_module_unload(void *drcontext, const module_data_t *info)
{
    report_module_remove(client.report, (uint64_t)info->start);
}

bool module_symbol(void *context, uint64_t addr, report_symbol *out)
{
    module_data_t *m = dr_lookup_module((app_pc)addr);
    if (!m) return false;
    drsym_info_t info = {.struct_size = sizeof info,
                         .name = out->name,
                         .name_size = sizeof out->name,
                         .file = out->file,
                         .file_size = sizeof out->file};
    out->name[0] = out->file[0] = 0;
    drsym_error_t error = drsym_lookup_address(m->full_path, (size_t)((app_pc)addr - m->start), &info, DRSYM_DEMANGLE);
    dr_free_module_data(m);
    if (error != DRSYM_SUCCESS && error != DRSYM_ERROR_LINE_NOT_AVAILABLE) return false;
    out->line = error == DRSYM_SUCCESS ? (uint32_t)info.line : 0;
    if (!out->line) out->file[0] = 0;
    return true;
}

void module_init(void)
{
    drsym_init(0);
    drmgr_register_module_load_event(event_module_load);
    drmgr_register_module_unload_event(event_module_unload);
}

void module_exit(void)
{
    drmgr_unregister_module_load_event(event_module_load);
    drmgr_unregister_module_unload_event(event_module_unload);
    drsym_exit();
}
