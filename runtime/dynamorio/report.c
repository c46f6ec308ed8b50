/* What the user reads, in ThreadSanitizer's shape: both accesses with function, file and line, the location, where the
 * threads were created, and a summary line. */
#include "runtime/dynamorio/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REPORT_SIZE = 8192, MAX_FRAMES = 32 };

typedef struct {
    char text[REPORT_SIZE];
    size_t len;
} buffer;

static void add(buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(b->text + b->len, sizeof b->text - b->len, format, args);
    va_end(args);
    if (len > 0) b->len += (size_t)len;
    if (b->len >= sizeof b->text) b->len = sizeof b->text - 1;
}

static void emit(const buffer *b)
{
    dr_write_file(STDERR, b->text, b->len);
    if (client.log == INVALID_FILE) return;
    dr_write_file(client.log, b->text, b->len);
    dr_flush_file(client.log);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The frames of a site: what was inlined, innermost first, and the function itself. */
static void add_frames(buffer *b, ft_site number)
{
    client_module *m;
    const plan_site *s = module_site(number, &m);
    if (!s) {
        add(b, "    #0 <unknown>\n\n");
        return;
    }
    uint32_t at = s->source;
    for (int frame = 0; frame < MAX_FRAMES && (at || !frame); frame++) {
        const plan_source none = {0}, *source = at ? &m->plan->sources[at - 1] : &none;
        const char *function = plan_string(m->plan, source->function), *file = plan_string(m->plan, source->file);
        add(b, "    #%d %s ", frame, *function ? function : "<unknown>");
        if (*file && source->line)
            add(b, "%s:%u", file, source->line);
        else
            add(b, "<no source>");
        add(b, " (%s+0x%llx)\n", m->name, (unsigned long long)s->addr);
        at = source->outer;
    }
    add(b, "\n");
}

static const char *thread_name(uint32_t number, char text[32])
{
    if (number)
        snprintf(text, 32, "thread T%u", number);
    else
        snprintf(text, 32, "main thread");
    return text;
}

/* Bytes of the access at the site: the core only knows the bytes that raced. */
static uint32_t access_size(const ft_side *side, uint32_t raced)
{
    client_module *m;
    const plan_site *s = module_site(side->site, &m);
    if (!s) return raced;
    for (uint32_t i = 0; i < s->action_count; i++) {
        const plan_action *a = &m->plan->actions[s->first_action + i];
        bool is_write = a->flags & PLAN_WRITE;
        if (a->kind == PLAN_CHECK && is_write == side->is_write) return a->size;
    }
    return raced;
}

/* A call instruction itself only reads: a write at its site is the free that it calls. */
static bool is_free(const ft_side *side)
{
    client_module *m;
    const plan_site *s = module_site(side->site, &m);
    return s && s->flags & PLAN_CALL && side->is_write;
}

static void add_side(buffer *b, const ft_race *race, const ft_side *side, const char *read, const char *write,
                     const char *freed)
{
    char name[32];
    add(b, "  %s of size %u at 0x%llx by %s:\n",
        is_free(side)    ? freed
        : side->is_write ? write
                         : read,
        access_size(side, race->size), (unsigned long long)race->addr, thread_name(side->thread, name));
    add_frames(b, side->site);
}

static void add_location(buffer *b, uint64_t addr)
{
    client_module *m;
    ft_block block;
    char name[32];
    const plan_object *o = module_object(addr, &m);
    if (o) {
        add(b, "  Location is global '%s' of size %llu at 0x%llx (%s+0x%llx)\n\n", plan_string(m->plan, o->name),
            (unsigned long long)o->size, (unsigned long long)(o->addr + (uint64_t)m->bias), m->name,
            (unsigned long long)o->addr);
    } else if (ft_block_covering(client.core, addr, &block)) {
        add(b, "  Location is heap block of size %llu at 0x%llx allocated by %s:\n", (unsigned long long)block.size,
            (unsigned long long)block.addr, thread_name(block.thread, name));
        add_frames(b, block.site);
    }
}

static void add_thread(buffer *b, uint32_t number)
{
    ft_thread_info info;
    char name[32];
    if (!number || !ft_describe_thread(client.core, number, &info)) return;
    add(b, "  Thread T%u (%s) created by %s at:\n", number, info.ended ? "finished" : "running",
        thread_name(info.creator, name));
    add_frames(b, info.site);
}

static void add_summary(buffer *b, ft_site number)
{
    client_module *m;
    const plan_site *s = module_site(number, &m);
    add(b, "SUMMARY: race: data race ");
    if (s && s->source) {
        const plan_source *source = &m->plan->sources[s->source - 1];
        const char *function = plan_string(m->plan, source->function), *file = plan_string(m->plan, source->file);
        if (*file && source->line)
            add(b, "%s:%u in ", base_name(file), source->line);
        else
            add(b, "(%s+0x%llx) in ", m->name, (unsigned long long)s->addr);
        add(b, "%s\n", *function ? function : "<unknown>");
    } else if (s) {
        add(b, "(%s+0x%llx)\n", m->name, (unsigned long long)s->addr);
    } else {
        add(b, "<unknown>\n");
    }
}

void report_race(void *context, const ft_race *race)
{
    if (!ft_report_first(client.core, race->now.site, race->before.site)) return;
    static const char line[] = "==================\n";
    buffer *b = dr_global_alloc(sizeof *b);
    b->len = 0;
    add(b, "%sWARNING: race: data race (pid=%d)\n", line, dr_get_process_id());
    add_side(b, race, &race->now, "Read", "Write", "Free");
    add_side(b, race, &race->before, "Previous read", "Previous write", "Previous free");
    add_location(b, race->addr);
    add_thread(b, race->now.thread);
    if (race->before.thread != race->now.thread) add_thread(b, race->before.thread);
    add_summary(b, race->now.site);
    add(b, "%s", line);
    dr_mutex_lock(client.report_lock);
    client.reported++;
    emit(b);
    dr_mutex_unlock(client.report_lock);
    dr_global_free(b, sizeof *b);
}

void report_summary(void)
{
    ft_stats s;
    ft_statistics(client.core, &s);
    uint64_t resets = s.resets_clocks + s.resets_slots + s.resets_memory;
    if (resets || s.threads_unchecked || s.dropped)
        client_say("races may have been missed: %llu resets, %llu threads unchecked, %llu facts dropped",
                   (unsigned long long)resets, (unsigned long long)s.threads_unchecked, (unsigned long long)s.dropped);
    if (client.reported)
        client_say("reported %llu %s", (unsigned long long)client.reported, client.reported == 1 ? "race" : "races");
    if (!client.stats) return;
    client_say("%llu sites planned, %llu instrumented (counting copies), %llu refused",
               (unsigned long long)client.sites_planned, (unsigned long long)client.sites_instrumented,
               (unsigned long long)client.sites_refused);
    client_say("%llu threads, %llu synchronisation objects, %llu split cells, %llu read vectors, %llu slot changes",
               (unsigned long long)s.threads, (unsigned long long)s.objects, (unsigned long long)s.splits,
               (unsigned long long)s.vectors, (unsigned long long)s.slots_changed);
}
