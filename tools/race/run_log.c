/* The event logs of all processes of a run, put together: a summary, and JSON. */
#include "tools/race/run.h"

#include "include/race/event.h"
#include "include/race/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *hex(uint64_t value)
{
    return json_sprintf("0x%llx", (unsigned long long)value);
}

static json_t *frame_json(const event_record *r, const event_frame *f)
{
    json_t *o = json_object();
    json_object_set_new(o, "function", cli_json(event_string(r, f->function)));
    json_object_set_new(o, "file", cli_json(event_string(r, f->file)));
    json_object_set_new(o, "line", json_integer(f->line));
    json_object_set_new(o, "column", json_integer(f->column));
    json_object_set_new(o, "module", cli_json(event_string(r, f->module)));
    json_object_set_new(o, "build_id", cli_json(event_string(r, f->build_id)));
    json_object_set_new(o, "address", hex(f->addr));
    return o;
}

static json_t *frames_json(const event_record *r, uint32_t first, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, frame_json(r, &event_frames(r)[first + i]));
    return list;
}

/* The innermost frame's members, as `race check` has them, and the whole stack. */
static json_t *place_json(const event_record *r, uint32_t first, uint32_t count)
{
    static const event_frame none;
    const event_frame *f = count ? &event_frames(r)[first] : &none;
    json_t *o = frame_json(r, f);
    json_object_set_new(o, "stack", frames_json(r, first, count));
    return o;
}

static const char *warnings_of(const event_record *r, const event_side *s)
{
    return s->frame_count ? event_string(r, event_frames(r)[s->first_frame].warnings) : "";
}

/* Whether an id is one of a list that is separated by blanks. */
static bool has_id(const char *ids, const char *id, size_t len)
{
    for (const char *at = ids; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == len && !memcmp(at, id, len)) return true;
    return false;
}

static void add_ids(json_t *list, const char *ids, const char *also_in)
{
    for (const char *at = ids; *at; at += strcspn(at, " "), at += *at == ' ') {
        const size_t len = strcspn(at, " ");
        if (len && (!also_in || has_id(also_in, at, len))) json_array_append_new(list, json_stringn(at, len));
    }
}

/* The warnings that predict a race: those that both sides take part in; or, since an access that races with many is shown with
 * one of them, those of either if each has some. */
static json_t *warnings_json(const event_record *r, const event_side sides[2])
{
    json_t *list = json_array();
    const char *ids[2] = {warnings_of(r, &sides[0]), warnings_of(r, &sides[1])};
    add_ids(list, ids[0], ids[1]);
    if (json_array_size(list) || !*ids[0] || !*ids[1]) return list;
    add_ids(list, ids[0], NULL);
    add_ids(list, ids[1], NULL);
    return list;
}

static json_t *race_json(const event_record *r, int pid)
{
    const event_race *e = (const event_race *)r;
    json_t *o = json_object(), *location = json_object(), *accesses = json_array();
    json_object_set_new(location, "name", cli_json(event_string(r, e->location)));
    json_object_set_new(location, "size", json_integer((json_int_t)e->location_size));
    json_object_set_new(location, "address", hex(e->addr));
    if (e->location_frame_count)
        json_object_set_new(location, "allocated", frames_json(r, e->location_first_frame, e->location_frame_count));
    for (int i = 0; i < 2; i++) {
        const event_side *s = &e->sides[i];
        json_t *access = place_json(r, s->first_frame, s->frame_count);
        json_object_set_new(access, "op", json_string(s->op & EVENT_WRITE ? "write" : "read"));
        json_object_set_new(access, "free", json_boolean(s->op & EVENT_FREE));
        json_object_set_new(access, "size", json_integer(s->size));
        json_object_set_new(access, "thread", json_integer(s->thread));
        json_array_append_new(accesses, access);
    }
    json_object_set_new(o, "pid", json_integer(pid));
    json_object_set_new(o, "location", location);
    json_object_set_new(o, "accesses", accesses);
    json_object_set_new(o, "warnings", warnings_json(r, e->sides));
    if (e->claim) json_object_set_new(o, "claim", cli_json(event_string(r, e->claim)));
    return o;
}

static json_t *deadlock_json(const event_record *r, int pid)
{
    const event_deadlock *e = (const event_deadlock *)r;
    json_t *o = json_object(), *cycle = json_array();
    for (uint32_t i = 0; i < e->count; i++) {
        const event_edge *edge = &e->edges[i];
        json_t *lock = place_json(r, edge->first_frame, edge->frame_count);
        json_object_set_new(lock, "lock", cli_json(event_string(r, edge->wanted_name)));
        json_object_set_new(lock, "lock_address", hex(edge->wanted));
        json_object_set_new(lock, "thread", json_integer(edge->thread));
        json_t *holding = json_array();
        json_t *held = place_json(r, edge->held_first_frame, edge->held_frame_count);
        json_object_set_new(held, "lock", cli_json(event_string(r, edge->held_name)));
        json_object_set_new(held, "lock_address", hex(edge->held));
        json_array_append_new(holding, held);
        json_object_set_new(lock, "holding", holding);
        json_array_append_new(cycle, lock);
    }
    json_object_set_new(o, "pid", json_integer(pid));
    json_object_set_new(o, "cycle", cycle);
    return o;
}

static void add_number(json_t *stats, const char *name, uint64_t value)
{
    json_int_t before = json_integer_value(json_object_get(stats, name));
    json_object_set_new(stats, name, json_integer(before + (json_int_t)value));
}

static void add_exit(json_t *json, const event_exit *e)
{
    json_t *stats = json_object_get(json, "stats");
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"accesses_planned", e->accesses_planned}, {"checks_executed_slowly", e->checks_slow},
        {"sites", e->sites},                       {"sites_injected", e->sites_injected},
        {"sites_trapped", e->sites_trapped},       {"sites_refused", e->sites_refused},
        {"threads", e->threads},                   {"missed", e->missed},
        {"suppressed", e->suppressed},             {"shadow_bytes", e->shadow_bytes},
    };
    for (unsigned i = 0; i < sizeof members / sizeof *members; i++)
        add_number(stats, members[i].name, members[i].value);
    for (uint8_t i = 1; i < PLAN_CLAIMS; i++) {
        if (!e->claims[i]) continue;
        char *name = base_format("claims_%s", plan_claim_text(i)), *ran = base_format("claims_%s_ran", plan_claim_text(i));
        add_number(stats, name, e->claims[i]);
        add_number(stats, ran, e->claims_ran[i]);
        free(name);
        free(ran);
    }
}

typedef struct {
    run_totals *totals;
    json_t *json;
    int pid;
    const event_exit *exit; /* the last one */
    bool found;
} log_state;

static void take_record(log_state *s, const event_record *r)
{
    bool is_suppressed = false;
    switch (r->kind) {
    case EVENT_PROCESS: s->pid = ((const event_process *)r)->pid; return;
    case EVENT_RACE:
    case EVENT_AUDIT: is_suppressed = ((const event_race *)r)->suppressed; break;
    case EVENT_DEADLOCK: is_suppressed = ((const event_deadlock *)r)->suppressed; break;
    case EVENT_EXIT: s->exit = (const event_exit *)r; return;
    default: return;
    }
    if (is_suppressed) {
        s->totals->suppressed++;
        return;
    }
    s->found = true;
    *(r->kind == EVENT_RACE ? &s->totals->races : r->kind == EVENT_AUDIT ? &s->totals->audits : &s->totals->deadlocks) += 1;
    if (!s->json) return;
    const char *list = r->kind == EVENT_RACE ? "races" : r->kind == EVENT_AUDIT ? "audit" : "deadlocks";
    json_array_append_new(json_object_get(s->json, list),
                          r->kind == EVENT_DEADLOCK ? deadlock_json(r, s->pid) : race_json(r, s->pid));
}

static void read_log(const char *path, run_totals *totals, json_t *json)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            event_reader reader = {.bytes = map, .size = (size_t)st.st_size};
            log_state s = {.totals = totals, .json = json};
            const event_record *r;
            event_status status;
            while ((status = event_next(&reader, &r)) == EVENT_OK)
                take_record(&s, r);
            if (status != EVENT_END) cli_error("%s: %s", path, event_status_text(status));
            if (s.exit && json) add_exit(json, s.exit);
            totals->processes++;
            totals->found_in += s.found;
            munmap(map, (size_t)st.st_size);
        }
    }
    close(fd);
}

static bool has_end(const char *name, const char *end)
{
    size_t len = strlen(name), tail = strlen(end);
    return len > tail && !strncmp(name, "race.", 5) && !strcmp(name + len - tail, end);
}

static int is_ours(const struct dirent *entry)
{
    return has_end(entry->d_name, ".events") || has_end(entry->d_name, ".lost") || has_end(entry->d_name, ".unseen");
}

static bool describe(const char *folder, const char *name, struct stat *st)
{
    char *path = base_format("%s/%s", folder, name);
    bool good = lstat(path, st) == 0;
    free(path);
    return good;
}

void run_note_old_logs(run_paths *paths)
{
    struct dirent **names;
    int n = scandir(paths->log, &names, is_ours, versionsort);
    for (int i = 0; i < n; i++) {
        struct stat st;
        if (describe(paths->log, names[i]->d_name, &st))
            vec_push(&paths->old_logs, ((run_old_log){base_format("%s", names[i]->d_name), st.st_ino, st.st_size, st.st_mtim}));
        free(names[i]);
    }
    if (n >= 0) free(names);
}

void run_forget_old_logs(run_paths *paths)
{
    for (uint32_t i = 0; i < paths->old_logs.len; i++)
        free(paths->old_logs.data[i].name);
    vec_free(&paths->old_logs);
}

static bool is_old(const run_paths *paths, const char *name)
{
    struct stat st;
    for (uint32_t i = 0; i < paths->old_logs.len; i++) {
        const run_old_log *old = &paths->old_logs.data[i];
        if (!strcmp(old->name, name))
            return describe(paths->log, name, &st) && st.st_ino == old->inode && st.st_size == old->size &&
                   st.st_mtim.tv_sec == old->changed.tv_sec && st.st_mtim.tv_nsec == old->changed.tv_nsec;
    }
    return false;
}

/* What a process without a stderr of its own any more had to say. It is in the text log too, where there is one. */
static void print_unseen(const char *path, const char *name)
{
    int fd = cli_open(path);
    FILE *from = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!from) return;
    fprintf(stderr, "race: process %.*s could not show this, its stderr is closed or is another file now:\n",
            (int)(strlen(name) - strlen("race.") - strlen(".unseen")), name + strlen("race."));
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, from));)
        fwrite(piece, 1, n, stderr);
    fclose(from);
    unlink(path);
}

void run_read_logs(const run_paths *paths, run_totals *totals, json_t *json)
{
    memset(totals, 0, sizeof *totals);
    if (json) {
        json_object_set_new(json, "races", json_array());
        json_object_set_new(json, "deadlocks", json_array());
        json_object_set_new(json, "audit", json_array());
        json_object_set_new(json, "stats", json_object());
    }
    struct dirent **names;
    int n = scandir(paths->log, &names, is_ours, versionsort);
    for (int i = 0; i < n; i++) {
        char *path = base_format("%s/%s", paths->log, names[i]->d_name);
        if (!is_old(paths, names[i]->d_name)) {
            if (has_end(names[i]->d_name, ".lost")) totals->lost++;
            else if (has_end(names[i]->d_name, ".unseen")) print_unseen(path, names[i]->d_name);
            else read_log(path, totals, json);
        }
        free(path);
        free(names[i]);
    }
    if (n >= 0) free(names);
    if (json) add_number(json_object_get(json, "stats"), "processes", totals->processes);
}

void run_remove_logs(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *path = base_format("%s/%s", folder, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlink(path);
        free(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}
