/* A data race, in ThreadSanitizer's shape: both accesses with their stacks, the location, where the threads were
 * created, and a summary line. */
#include "runtime/report/report.h"

#include <string.h>

enum { TEXT = REPORT_TEXT / 2 };

typedef struct { /* one race, with everything looked up once */
    const ft_race *race;
    report_stack stacks[2], block_stack;
    uint32_t size[2], op[2];
    const plan_object *object;
    const report_module *object_module;
    bool has_block;
    ft_block block;
    bool is_undecided; /* an audit, and the analysis does not know what one of the sides may access */
} finding;

static const ft_side *side_of(const finding *f, int which)
{
    return which ? &f->race->before : &f->race->now;
}

/* The access at the site: its size, since the core only knows the bytes that raced, and whether it is a free: a write
 * at a call. */
static void look_at_site(const report *r, finding *f, int which)
{
    const ft_side *side = side_of(f, which);
    const report_module *m;
    const plan_site *s = report_site(r, side->site, &m);
    f->size[which] = f->race->size;
    f->op[which] = side->is_write ? EVENT_WRITE : EVENT_READ;
    if (!s) return;
    if (side->is_free) f->op[which] |= EVENT_FREE;
    for (uint32_t i = 0; i < s->action_count; i++) {
        const plan_action *a = &m->plan->actions[s->first_action + i];
        bool fits = a->kind == PLAN_CHECK && a->count == 1 && !!(a->flags & PLAN_WRITE) == side->is_write;
        if (fits && a->size > f->size[which]) f->size[which] = a->size;
    }
}

static const char *thread_name(uint32_t number, char name[32])
{
    report_text t;
    text_start(&t, name, 32);
    if (number)
        text_add(&t, "thread T%u", number);
    else
        text_add(&t, "main thread");
    return name;
}

static void look(report *r, finding *f)
{
    for (int i = 0; i < 2; i++) {
        frames_of_side(r, side_of(f, i), &f->stacks[i]);
        look_at_site(r, f, i);
    }
    f->object = report_object(r, f->race->addr, &f->object_module);
    f->has_block = !f->object && ft_block_covering(r->core, f->race->addr, &f->block);
    if (f->has_block) f->block_stack = (report_stack){.site = f->block.site};
}

static const char *suppressed_by(report *r, const finding *f)
{
    const unsigned kinds = SUPPRESS_RACE | SUPPRESS_RACE_TOP | SUPPRESS_LIBRARY;
    for (int i = 0; i < 2; i++) {
        const char *pattern = suppress_stack(r, kinds, &f->stacks[i]);
        if (pattern) return pattern;
    }
    return f->object ? suppress_name(r, SUPPRESS_RACE, plan_string(f->object_module->plan, f->object->name)) : NULL;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void add_side(report *r, report_text *t, const finding *f, int which)
{
    static const char *const words[2][3] = {{"Read", "Write", "Free"},
                                            {"Previous read", "Previous write", "Previous free"}};
    char name[32];
    int word = f->op[which] & EVENT_FREE ? 2 : f->op[which] & EVENT_WRITE ? 1 : 0;
    text_add(t, "  %s of size %u at 0x%lx by %s:\n", words[which][word], f->size[which], f->race->addr,
             thread_name(side_of(f, which)->thread, name));
    frames_text(r, t, &f->stacks[which]);
}

static void add_location(report *r, report_text *t, const finding *f)
{
    char name[32];
    if (f->object) {
        const report_module *m = f->object_module;
        text_add(t, "  Location is global '%s' of size %lu at 0x%lx (%s+0x%lx)\n\n", plan_string(m->plan, f->object->name),
                 f->object->size, f->object->addr + m->bias, m->name, f->object->addr);
    } else if (f->has_block) {
        text_add(t, "  Location is heap block of size %lu at 0x%lx allocated by %s:\n", f->block.size, f->block.addr,
                 thread_name(f->block.thread, name));
        frames_text(r, t, &f->block_stack);
    }
}

static void add_thread(report *r, report_text *t, uint32_t number)
{
    ft_thread_info info;
    char name[32];
    if (!number || !ft_describe_thread(r->core, number, &info)) return;
    text_add(t, "  Thread T%u (%s) created by %s at:\n", number, info.ended ? "finished" : "running",
             thread_name(info.creator, name));
    report_stack stack;
    frames_of_side(r, &(ft_side){.site = info.site, .stack = info.stack}, &stack);
    frames_text(r, t, &stack);
}

static bool add_summary_frame(void *context, const report_frame *f)
{
    report_text *t = context;
    const char *file = strrchr(f->file, '/');
    if (*f->file && f->line)
        text_add(t, "%s:%u", file ? file + 1 : f->file, f->line);
    else
        text_add(t, "(%s+0x%lx)", f->module ? f->module->name : "<no module>", f->addr);
    text_add(t, " in %s", *f->function ? f->function : "<unknown>");
    return false; /* the innermost one */
}

static void add_summary(report *r, report_text *t, const report_stack *stack, const char *what)
{
    text_add(t, "SUMMARY: race: %s ", what);
    size_t before = t->len;
    frames_walk(r, stack, add_summary_frame, t);
    text_add(t, t->len == before ? "<unknown>\n" : "\n");
}

/* The claim and both sides, in a line. */
static void add_audit_summary(report *r, report_text *t, const finding *f, const char *claim)
{
    text_add(t, "SUMMARY: race: audit: not %s:", claim);
    for (int i = 0; i < 2; i++) {
        text_add(t, "%s %s ", i ? "," : "", f->op[i] & EVENT_FREE ? "free" : f->op[i] & EVENT_WRITE ? "write" : "read");
        size_t before = t->len;
        frames_walk(r, &f->stacks[i], add_summary_frame, t);
        if (t->len == before) text_add(t, "<unknown>");
    }
    text_add(t, "\n");
}

static void write_text(report *r, const finding *f, const char *claim)
{
    report_text t;
    text_start(&t, r->text, TEXT);
    if (claim)
        text_add(&t, "==================\nWARNING: race: the analysis is wrong: it calls an access %s (pid=%d)\n", claim,
                 r->host.pid(r->host.context));
    else
        text_add(&t, "==================\nWARNING: race: data race (pid=%d)\n", r->host.pid(r->host.context));
    add_side(r, &t, f, 0);
    add_side(r, &t, f, 1);
    add_location(r, &t, f);
    add_thread(r, &t, f->race->now.thread);
    if (f->race->before.thread != f->race->now.thread) add_thread(r, &t, f->race->before.thread);
    if (claim)
        add_audit_summary(r, &t, f, claim);
    else
        add_summary(r, &t, &f->stacks[0], "data race");
    text_add(&t, "==================\n");
    log_text(r, t.at, t.len);
}

/* --- event -------------------------------------------------------------------------------------------------------- */

static void write_event(report *r, const finding *f, const char *claim, const char *suppression)
{
    event_begin(r, claim ? EVENT_AUDIT : EVENT_RACE, sizeof(event_race));
    event_race *e = &r->event.race;
    e->addr = f->race->addr;
    e->size = f->race->size;
    for (int i = 0; i < 2; i++) {
        event_side *s = &e->sides[i];
        *s = (event_side){.thread = side_of(f, i)->thread, .op = f->op[i], .size = f->size[i]};
        s->first_frame = e->record.frames;
        s->frame_count = frames_event(r, &f->stacks[i]);
    }
    e->location_first_frame = e->record.frames;
    if (f->has_block) e->location_frame_count = frames_event(r, &f->block_stack);
    frames_event_strings(r);
    if (f->object) {
        e->location_addr = f->object->addr + f->object_module->bias;
        e->location_size = f->object->size;
        e->location = event_add_string(r, plan_string(f->object_module->plan, f->object->name));
    } else if (f->has_block) {
        e->location_addr = f->block.addr;
        e->location_size = f->block.size;
        e->location = event_add_string(r, "heap block");
    }
    if (claim || f->is_undecided) e->claim = event_add_string(r, claim ? claim : EVENT_UNDECIDED);
    if (suppression) e->suppressed = event_add_string(r, suppression);
    event_write(r);
}

/* --- what to do with it ------------------------------------------------------------------------------------------- */

typedef struct { /* what the plan says about the access of one side */
    uint8_t claim;
    bool decided;
} opinion;

static opinion opinion_of(const report *r, const ft_side *side)
{
    const report_module *m;
    const plan_site *s = report_site(r, side->site, &m);
    if (!s) return (opinion){0};
    opinion o = {.decided = s->flags & PLAN_DECIDED};
    for (uint32_t i = 0; i < s->action_count; i++) {
        const plan_action *a = &m->plan->actions[s->first_action + i];
        if (a->claim && a->kind == PLAN_CHECK && !!(a->flags & PLAN_WRITE) == side->is_write) o.claim = a->claim;
    }
    return o;
}

/* What the analysis knows that has been contradicted: of nobody else, or of each other only if it has decided about both. The first
 * of them that is wrong; PLAN_CLAIM_NONE: none. */
static uint8_t contradicted(const opinion o[2])
{
    for (int i = 0; i < 2; i++) {
        const bool of_all = o[i].claim == PLAN_CLAIM_LOCAL || o[i].claim == PLAN_CLAIM_READ_ONLY;
        if (o[i].claim && (of_all || o[!i].decided || o[!i].claim)) return o[i].claim;
    }
    return PLAN_CLAIM_NONE;
}

/* No place that the modules were loaded to before had this race. */
static bool is_first_place(const report *r, const ft_race *race)
{
    const ft_site now = report_same_site(r, race->now.site), before = report_same_site(r, race->before.site);
    if (now == race->now.site && before == race->before.site) return true;
    return ft_report_first(r->core, now, before);
}

void report_race(report *r, const ft_race *race)
{
    finding f = {.race = race};
    if (!ft_report_first(r->core, race->now.site, race->before.site)) return;
    if (!is_first_place(r, race)) return;
    report_lock(r, &r->lock);
    look(r, &f);
    const char *claim = NULL;
    if (r->options.audit) {
        const opinion opinions[2] = {opinion_of(r, &race->now), opinion_of(r, &race->before)};
        const uint8_t wrong = contradicted(opinions);
        if (wrong) claim = plan_claim_text(wrong);
        f.is_undecided = !wrong && !(opinions[0].decided && opinions[1].decided);
    }
    const char *suppression = suppressed_by(r, &f);
    if (suppression) {
        r->suppressed++;
    } else {
        __atomic_fetch_add(claim ? &r->audits : &r->reported, 1, __ATOMIC_RELAXED);
        write_text(r, &f, claim);
    }
    write_event(r, &f, claim, suppression);
    report_unlock(&r->lock);
    if (!suppression && r->options.halt_on_error) r->host.halt(r->host.context, report_halt_code(r));
}
