/* A cycle of lock orders: two threads that each hold what the other wants would wait for ever. */
#include "runtime/report/report.h"

#include <string.h>

static const char *lock_name(const report *r, uint64_t addr)
{
    const report_module *m;
    const plan_object *o = report_object(r, addr, &m);
    return o ? plan_string(m->plan, o->name) : "";
}

static const char *suppressed_by(report *r, const report_edge *edges, uint32_t count)
{
    const char *found = NULL;
    for (uint32_t i = 0; i < count && !found; i++) {
        found = suppress_stack(r, SUPPRESS_DEADLOCK | SUPPRESS_LIBRARY, &(report_stack){.site = edges[i].site});
        if (!found) found = suppress_name(r, SUPPRESS_DEADLOCK, lock_name(r, edges[i].wanted));
    }
    return found;
}

static void add_lock(const report *r, report_text *t, uint32_t number, uint64_t addr)
{
    const char *name = lock_name(r, addr);
    text_add(t, "M%u (0x%lx", number, addr);
    if (*name) text_add(t, " '%s'", name);
    text_add(t, ")");
}

static bool add_summary_frame(void *context, const report_frame *f)
{
    report_text *t = context;
    const char *file = strrchr(f->file, '/');
    if (*f->file && f->line)
        text_add(t, "%s:%u in %s", file ? file + 1 : f->file, f->line, *f->function ? f->function : "<unknown>");
    else
        text_add(t, "(%s+0x%lx)", f->module ? f->module->name : "<no module>", f->addr);
    return false;
}

static void write_text(report *r, const report_edge *edges, uint32_t count)
{
    report_text t;
    text_start(&t, r->text, REPORT_TEXT / 2);
    text_add(&t, "==================\nWARNING: race: lock-order-inversion (potential deadlock) (pid=%d)\n",
             r->host.pid(r->host.context));
    text_add(&t, "  Cycle in lock order graph:");
    for (uint32_t i = 0; i < count; i++) {
        text_add(&t, " ");
        add_lock(r, &t, i, edges[i].held);
        text_add(&t, " =>");
    }
    text_add(&t, " M0\n\n");
    for (uint32_t i = 0; i < count; i++) {
        text_add(&t, "  Mutex M%u acquired here while holding mutex M%u in ", (i + 1) % count, i);
        if (edges[i].thread)
            text_add(&t, "thread T%u:\n", edges[i].thread);
        else
            text_add(&t, "main thread:\n");
        frames_text(r, &t, &(report_stack){.site = edges[i].site});
        text_add(&t, "  Mutex M%u previously acquired by the same thread here:\n", i);
        frames_text(r, &t, &(report_stack){.site = edges[i].held_site});
    }
    text_add(&t, "SUMMARY: race: lock-order-inversion (potential deadlock) ");
    frames_walk(r, &(report_stack){.site = edges[0].site}, add_summary_frame, &t);
    text_add(&t, "\n==================\n");
    log_text(r, t.at, t.len);
}

static void write_event(report *r, const report_edge *edges, uint32_t count, const char *suppression)
{
    event_begin(r, EVENT_DEADLOCK, sizeof(event_deadlock));
    event_deadlock *e = &r->event.deadlock;
    e->count = count;
    for (uint32_t i = 0; i < count; i++) {
        event_edge *edge = &e->edges[i];
        *edge = (event_edge){.held = edges[i].held, .wanted = edges[i].wanted, .thread = edges[i].thread};
        edge->first_frame = e->record.frames;
        edge->frame_count = frames_event(r, &(report_stack){.site = edges[i].site});
        edge->held_first_frame = e->record.frames;
        edge->held_frame_count = frames_event(r, &(report_stack){.site = edges[i].held_site});
    }
    frames_event_strings(r);
    for (uint32_t i = 0; i < count; i++) {
        e->edges[i].held_name = event_add_string(r, lock_name(r, edges[i].held));
        e->edges[i].wanted_name = event_add_string(r, lock_name(r, edges[i].wanted));
    }
    if (suppression) e->suppressed = event_add_string(r, suppression);
    event_write(r);
}

void report_deadlock(report *r, const report_edge *edges, uint32_t count)
{
    if (count < 2 || count > EVENT_MAX_CYCLE) return;
    report_lock(r, &r->lock);
    const char *suppression = suppressed_by(r, edges, count);
    if (suppression) {
        r->suppressed++;
    } else {
        __atomic_fetch_add(&r->deadlocks, 1, __ATOMIC_RELAXED);
        write_text(r, edges, count);
    }
    write_event(r, edges, count, suppression);
    report_unlock(&r->lock);
    if (!suppression && r->options.halt_on_error) r->host.halt(r->host.context, report_halt_code(r));
}
