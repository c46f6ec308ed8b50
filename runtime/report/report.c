/* Start, notices, fork, and the summary at the end. */
#include "runtime/report/report.h"

#include <string.h>

void report_lock(report *r, uint32_t *lock)
{
    for (unsigned tries = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); tries++) {
        __builtin_ia32_pause();
        if (tries >= 64 && r->host.yield) r->host.yield(r->host.context);
    }
}

void report_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void *report_memory(report *r, size_t size)
{
    enum { PAGE = 4096 };
    return r->host.reserve(r->host.context, (size + PAGE - 1) & ~(size_t)(PAGE - 1));
}

report *report_create(const report_host *host, const report_options *options, const char *program,
                      const char **problem)
{
    enum { PAGE = 4096 };
    report *r = host->reserve(host->context, (sizeof *r + PAGE - 1) & ~(size_t)(PAGE - 1));
    if (!r) return NULL;
    r->host = *host;
    r->options = *options;
    r->next_site = 1;
    report_text t;
    text_start(&t, r->program, sizeof r->program);
    text_add(&t, "%s", program);
    const char *why = NULL;
    if (options->suppressions) suppress_load(r, options->suppressions, &why);
    log_open(r);
    if (problem) *problem = why;
    return r;
}

/* --- the core's host ---------------------------------------------------------------------------------------------- */

static void *core_reserve(void *context, size_t size)
{
    report *r = context;
    return r->host.reserve(r->host.context, size);
}
static void core_discard(void *context, void *pages, size_t size)
{
    report *r = context;
    r->host.discard(r->host.context, pages, size);
}
static void core_yield(void *context)
{
    report *r = context;
    r->host.yield(r->host.context);
}
static void core_race(void *context, const ft_race *race)
{
    report_race(context, race);
}
static void core_notice(void *context, const char *line)
{
    report_say(context, "%s", line);
}
static ft_site core_stack(void *context, ft_thread *thread, ft_site site)
{
    report *r = context;
    return r->host.stack(r->host.context, thread, site);
}

ft_host report_core_host(report *r)
{
    return (ft_host){
        .context = r,
        .reserve = core_reserve,
        .discard = r->host.discard ? core_discard : NULL,
        .yield = r->host.yield ? core_yield : NULL,
        .race = core_race,
        .notice = core_notice,
        .stack = r->host.stack && r->options.stack_depth ? core_stack : NULL,
    };
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void say_locked(report *r, const char *format, va_list args)
{
    report_text t;
    text_start(&t, r->text, REPORT_TEXT / 2);
    text_add(&t, "race: ");
    text_addv(&t, format, args);
    text_add(&t, "\n");
    log_text(r, t.at, t.len);
    event_begin(r, EVENT_NOTICE, sizeof(event_notice));
    r->text[t.len - 1] = 0;
    uint32_t text = event_add_string(r, r->text + strlen("race: "));
    ((event_notice *)(void *)r->event.bytes)->text = text;
    event_write(r);
}

void report_say(report *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_lock(r, &r->lock);
    say_locked(r, format, args);
    report_unlock(&r->lock);
    va_end(args);
}

void report_forked(report *r)
{
    /* Whoever held these locks is not in this process. */
    r->lock = r->module_lock = 0;
    r->reported = r->deadlocks = r->audits = r->suppressed = 0;
    report_close(r);
    log_open(r);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

_Static_assert((int)PLAN_CLAIMS <= (int)EVENT_CLAIMS, "each has its counter");

/* Modules that were loaded again count once. */
static void count_claims(const report *r, event_exit *e)
{
    for (const report_module *m = r->modules; m; m = m->next)
        for (uint32_t s = 0; m->ran && m->plan && s < m->plan->site_count; s++) {
            const plan_site *site = &m->plan->sites[s];
            for (uint32_t i = 0; i < site->action_count; i++) {
                const uint8_t claim = m->plan->actions[site->first_action + i].claim;
                e->claims[claim] += claim != PLAN_CLAIM_NONE;
                e->claims_ran[claim] += claim != PLAN_CLAIM_NONE && m->ran[s];
            }
        }
}

static void write_exit_event(report *r, const ft_stats *s, uint64_t missed)
{
    report_lock(r, &r->lock);
    event_begin(r, EVENT_EXIT, sizeof(event_exit));
    event_exit *e = &r->event.exit;
    e->races = r->reported;
    e->deadlocks = r->deadlocks;
    e->suppressed = r->suppressed;
    e->accesses_planned = r->accesses_planned;
    e->checks_slow = s->slow;
    e->sites = r->sites;
    e->sites_injected = r->counters.sites_injected;
    e->sites_trapped = r->counters.sites_trapped;
    e->sites_refused = r->counters.sites_refused;
    e->threads = s->threads;
    e->missed = missed;
    e->shadow_bytes = s->shadow_bytes;
    if (r->options.audit) count_claims(r, e);
    event_write(r);
    report_unlock(&r->lock);
}

void report_summary(report *r)
{
    ft_stats s;
    ft_statistics(r->core, &s);
    uint64_t resets = s.resets_clocks + s.resets_slots + s.resets_memory;
    uint64_t missed = resets + s.threads_unchecked + s.dropped;
    if (missed)
        report_say(r, "races may have been missed: %lu resets, %lu threads unchecked, %lu facts dropped", resets,
                   s.threads_unchecked, s.dropped);
    if (r->reported) report_say(r, "reported %lu race%s", r->reported, plural(r->reported));
    if (r->deadlocks) report_say(r, "reported %lu potential deadlock%s", r->deadlocks, plural(r->deadlocks));
    if (r->audits) report_say(r, "the analysis is wrong about %lu pair%s of accesses", r->audits, plural(r->audits));
    if (r->suppressed && r->options.stats) report_say(r, "%lu suppressed", r->suppressed);
    if (r->options.stats) {
        report_say(r, "%lu sites planned, %lu injected (counting copies), %lu trapped, %lu refused", r->sites,
                   r->counters.sites_injected, r->counters.sites_trapped, r->counters.sites_refused);
        report_say(r, "%lu threads, %lu synchronisation objects, %lu slow checks, %lu MB of shadow memory", s.threads,
                   s.objects, s.slow, s.shadow_bytes >> 20);
        report_say(r, "%lu split cells, %lu read vectors, %lu slot changes", s.splits, s.vectors, s.slots_changed);
    }
    write_exit_event(r, &s, missed);
}

int report_exit_code(const report *r, int code)
{
    bool found = r->reported || r->deadlocks || r->audits;
    return found && !(code & 0xff) ? r->options.exit_code : code;
}

int report_halt_code(const report *r)
{
    enum { USUAL = 66 };
    return r->options.exit_code ? r->options.exit_code : USUAL;
}

void report_close(report *r)
{
    if (r->text_log >= 0) r->host.close(r->host.context, r->text_log);
    if (r->event_log >= 0) r->host.close(r->host.context, r->event_log);
    if (r->unseen_log >= 0) r->host.close(r->host.context, r->unseen_log);
    r->text_log = r->event_log = r->unseen_log = -1;
}
