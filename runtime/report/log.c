/* The two logs of a process. Each piece of text and each event is one write to a file that is open for appending, so
 * nothing is lost when the process crashes or calls _exit. When the event log cannot be written any more, an empty file
 * race.<pid>.lost says that something was found after that. Text that stderr does not take any more (the program has closed it,
 * or has another file in its place) is kept in race.<pid>.unseen, for whoever started the run. */
#include "runtime/report/report.h"

#include <string.h>

static int open_file(report *r, const char *suffix)
{
    report_text t;
    text_start(&t, r->scratch, sizeof r->scratch);
    text_add(&t, "%s/race.%d.%s", r->options.log_dir, r->host.pid(r->host.context), suffix);
    return r->host.open(r->host.context, r->scratch);
}

/* Requires r->lock, or that nobody else runs. */
void log_open(report *r)
{
    r->text_log = r->event_log = r->unseen_log = -1;
    r->next_record = 0;
    r->event_log_failed = false;
    if (!r->options.log_dir) return;
    r->text_log = open_file(r, "log");
    r->event_log = open_file(r, "events");
    if (r->text_log < 0 || r->event_log < 0) {
        char line[640];
        report_text t;
        text_start(&t, line, sizeof line);
        text_add(&t, "race: %s: cannot be written; reports go to stderr only\n", r->options.log_dir);
        r->host.write(r->host.context, REPORT_STDERR, line, t.len);
        r->options.quiet = false;
        return;
    }
    event_begin(r, EVENT_PROCESS, sizeof(event_process));
    event_process *e = (event_process *)(void *)r->event.bytes;
    e->version = EVENT_VERSION;
    e->pid = r->host.pid(r->host.context);
    uint32_t engine = event_add_string(r, r->host.engine), program = event_add_string(r, r->program);
    e->engine = engine;
    e->program = program;
    event_write(r);
}

void log_text(report *r, const char *bytes, size_t size)
{
    bool logged = r->text_log >= 0 && r->host.write(r->host.context, r->text_log, bytes, size);
    if (r->options.quiet && logged) return;
    if (r->host.write(r->host.context, REPORT_STDERR, bytes, size) || !r->options.log_dir) return;
    if (r->unseen_log < 0) r->unseen_log = open_file(r, "unseen");
    if (r->unseen_log >= 0) r->host.write(r->host.context, r->unseen_log, bytes, size);
}

void event_begin(report *r, event_kind kind, size_t fixed)
{
    memset(r->event.bytes, 0, fixed);
    r->event.record.magic = EVENT_MAGIC;
    r->event.record.kind = (uint16_t)kind;
    r->event_len = (uint32_t)fixed;
}

uint32_t event_add_string(report *r, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size == 1 || size > REPORT_TEXT - 8 - r->event_len) return 0;
    memcpy(r->event.bytes + r->event_len, text, size);
    uint32_t offset = r->event_len;
    r->event_len += (uint32_t)size;
    return offset;
}

/* A finding that is not in the event log: an empty file says so, for which even a full disk mostly has room. */
static void mark_lost(report *r)
{
    const uint16_t kind = r->event.record.kind;
    const bool is_race = kind == EVENT_RACE || kind == EVENT_AUDIT;
    if (!is_race && kind != EVENT_DEADLOCK) return;
    if (is_race ? r->event.race.suppressed : r->event.deadlock.suppressed) return;
    int file = open_file(r, "lost");
    if (file >= 0) r->host.close(r->host.context, file);
}

void event_write(report *r)
{
    if (r->event_log_failed) mark_lost(r);
    if (r->event_log < 0 || r->event_log_failed) return;
    while (r->event_len % 8)
        r->event.bytes[r->event_len++] = 0;
    event_record *e = &r->event.record;
    e->size = r->event_len;
    e->number = r->next_record;
    e->time = r->host.now(r->host.context);
    e->check = event_checksum(e);
    if (r->host.write(r->host.context, r->event_log, r->event.bytes, e->size)) {
        r->next_record++;
        return;
    }
    /* A record that is written in part is the last one: what comes after it could not be read. */
    r->event_log_failed = true;
    mark_lost(r);
    static const char line[] = "race: the event log cannot be written any more (is the disk full?)\n";
    r->host.write(r->host.context, REPORT_STDERR, line, sizeof line - 1);
}
