/* Stacks in words: the frames of a site with what was inlined there, and then the calls that led to it. */
#include "runtime/report/report.h"

#include <string.h>

void frames_of_side(const report *r, const ft_side *side, report_stack *out)
{
    out->site = side->site;
    out->count = side->stack ? ft_stack_get(r->core, side->stack, out->returns, FT_FRAMES) : 0;
}

/* The frames of one instruction: what is inlined, innermost first, and the function itself. */
static bool walk_site(report *r, const report_module *m, const plan_site *s, frames_each *each, void *context)
{
    (void)r;
    enum { MAX_INLINED = 32 };
    uint32_t at = s->source;
    for (int depth = 0; depth < MAX_INLINED && (at || !depth); depth++) {
        static const plan_source none;
        const plan_source *source = at ? &m->plan->sources[at - 1] : &none;
        report_frame frame = {
            .module = m,
            .addr = s->addr,
            .function = plan_string(m->plan, source->function),
            .file = plan_string(m->plan, source->file),
            .line = source->line,
            .column = source->column,
            .inlined = source->outer != 0,
            .site = s,
        };
        if (!each(context, &frame)) return false;
        at = source->outer;
    }
    return true;
}

/* Code that no plan has a site for. */
static bool walk_address(report *r, uint64_t addr, frames_each *each, void *context)
{
    const report_module *m = report_module_at(r, addr);
    report_frame frame = {.module = m, .addr = m ? addr - m->bias : addr, .function = "", .file = ""};
    if (r->host.symbol && r->host.symbol(r->host.context, addr, &r->symbol)) {
        frame.function = r->symbol.name;
        frame.file = r->symbol.file;
        frame.line = r->symbol.line;
    }
    return each(context, &frame);
}

static bool walk_return(report *r, uint64_t return_address, frames_each *each, void *context)
{
    const report_module *m = report_module_at(r, return_address - 1);
    const plan_site *s = m && m->plan ? plan_site_covering(m->plan, return_address - 1 - m->bias) : NULL;
    return s ? walk_site(r, m, s, each, context) : walk_address(r, return_address - 1, each, context);
}

void frames_walk(report *r, const report_stack *stack, frames_each *each, void *context)
{
    const report_module *m;
    const plan_site *s = report_site(r, stack->site, &m);
    uint64_t addr = s ? 0 : report_site_address(r, stack->site);
    bool more = true;
    if (s)
        more = walk_site(r, m, s, each, context);
    else if (addr)
        more = walk_address(r, addr, each, context);
    for (uint32_t i = 0; more && i < stack->count; i++)
        more = walk_return(r, stack->returns[i], each, context);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

typedef struct {
    report_text *t;
    unsigned number;
} text_walk;

static bool text_frame(void *context, const report_frame *f)
{
    text_walk *w = context;
    text_add(w->t, "    #%u %s ", w->number++, *f->function ? f->function : "<unknown>");
    if (*f->file && f->line && f->column)
        text_add(w->t, "%s:%u:%u", f->file, f->line, f->column);
    else if (*f->file && f->line)
        text_add(w->t, "%s:%u", f->file, f->line);
    else
        text_add(w->t, "<no source>");
    text_add(w->t, " (%s+0x%lx)\n", f->module ? f->module->name : "<no module>", f->addr);
    return true;
}

void frames_text(report *r, report_text *t, const report_stack *stack)
{
    text_walk w = {t, 0};
    frames_walk(r, stack, text_frame, &w);
    text_add(t, w.number ? "\n" : "    #0 <unknown>\n\n");
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* Frames come before strings in an event. So strings are gathered elsewhere while frames are added, in the second half
 * of r->text, and go behind the frames in the end. */
typedef struct {
    report *r;
    uint32_t count;
} event_walk;

static char *gathered(report *r)
{
    return r->text + REPORT_TEXT / 2;
}

/* Offset of the text among the gathered strings plus 1; 0: empty, or no room. The length of what is gathered so far is
 * in the first four bytes. */
static uint32_t gather(report *r, const char *text)
{
    size_t size = strlen(text) + 1;
    uint32_t used;
    memcpy(&used, gathered(r), sizeof used);
    if (size == 1 || size > REPORT_TEXT / 2 - sizeof used - used) return 0;
    memcpy(gathered(r) + sizeof used + used, text, size);
    uint32_t offset = used;
    used += (uint32_t)size;
    memcpy(gathered(r), &used, sizeof used);
    return offset + 1;
}

static bool event_add_frame(void *context, const report_frame *f)
{
    event_walk *w = context;
    report *r = w->r;
    if (r->event.record.frames >= EVENT_MAX_FRAMES || r->event_len + sizeof(event_frame) > REPORT_TEXT / 2)
        return false;
    event_frame frame = {
        .addr = f->addr,
        .module = f->module ? gather(r, f->module->name) : 0,
        .build_id = f->module ? gather(r, f->module->id) : 0,
        .function = gather(r, f->function),
        .file = gather(r, f->file),
        .line = f->line,
        .column = f->column,
        .inlined = f->inlined,
    };
    if (f->site) frame.warnings = gather(r, plan_string(f->module->plan, f->site->warnings));
    memcpy(r->event.bytes + r->event_len, &frame, sizeof frame);
    r->event_len += (uint32_t)sizeof frame;
    r->event.record.frames++;
    w->count++;
    return true;
}

uint32_t frames_event(report *r, const report_stack *stack)
{
    event_walk w = {r, 0};
    if (!r->event.record.frames) memset(gathered(r), 0, sizeof(uint32_t));
    frames_walk(r, stack, event_add_frame, &w);
    return w.count;
}

void frames_event_strings(report *r)
{
    uint32_t count = r->event.record.frames, used, base = r->event_len;
    if (!count) return;
    memcpy(&used, gathered(r), sizeof used);
    memcpy(r->event.bytes + base, gathered(r) + sizeof used, used); /* half and half: it fits */
    r->event_len += used;
    event_frame *frames = (event_frame *)(void *)(r->event.bytes + base - count * sizeof(event_frame));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *const fields[] = {&frames[i].module, &frames[i].build_id, &frames[i].function, &frames[i].file,
                                    &frames[i].warnings};
        for (unsigned k = 0; k < sizeof fields / sizeof *fields; k++)
            if (*fields[k]) *fields[k] += base - 1;
    }
}
