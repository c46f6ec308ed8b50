/* The files that `race watch` follows. Events only say that it is time to look; what has changed is seen by looking, so that a
 * rename over a file, a folder that is made again and events that were lost need no thought. */
#include "tools/race/watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 64 };
static const double PATIENCE = 1.0; /* seconds without an event after which a file is not being written any more */
static const uint32_t MASK = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_MODIFY |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/* The number of the first file that is not before this path. */
static uint32_t place_of(const watch_set *set, const char *path)
{
    uint32_t low = 0, high = set->files.len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (strcmp(set->files.data[mid]->path, path) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static watch_file *find(const watch_set *set, const char *path)
{
    uint32_t at = place_of(set, path);
    return at < set->files.len && !strcmp(set->files.data[at]->path, path) ? set->files.data[at] : NULL;
}

static void add_file(watch_set *set, const char *path)
{
    watch_file *file = find(set, path);
    if (!file) {
        uint32_t at = place_of(set, path);
        file = base_alloc_zero(1, sizeof *file);
        file->path = base_format("%s", path);
        file->size = UINT64_MAX;
        vec_push(&set->files, file);
        memmove(&set->files.data[at + 1], &set->files.data[at], (set->files.len - 1 - at) * sizeof *set->files.data);
        set->files.data[at] = file;
    }
    file->there = true;
}

static void watch_folder(watch_set *set, const char *path)
{
    int wd = inotify_add_watch(set->inotify, path, MASK);
    if (wd < 0) return;
    while ((int)set->folders.len <= wd)
        vec_push(&set->folders, NULL);
    free(set->folders.data[wd]);
    set->folders.data[wd] = base_format("%s", path);
}

static bool is_object_name(const char *name)
{
    size_t len = strlen(name);
    return len > 2 && !strcmp(name + len - 2, ".o") && name[0] != '.';
}

/* The object files in a folder and in those below; hidden ones are the tools' own. */
static void look_into(watch_set *set, const char *path, unsigned depth)
{
    watch_folder(set, path);
    DIR *dir = depth < DEPTH ? opendir(path) : NULL;
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        struct stat st;
        char *inside = base_format("%s/%s", path, entry->d_name);
        if (lstat(inside, &st) == 0) {
            if (S_ISDIR(st.st_mode)) look_into(set, inside, depth + 1);
            if (S_ISREG(st.st_mode) && is_object_name(entry->d_name)) add_file(set, inside);
        }
        free(inside);
    }
    closedir(dir);
}

static void watch_parent(watch_set *set, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? base_format("%.*s", slash == path ? 1 : (int)(slash - path), path) : base_format(".");
    watch_folder(set, parent);
    free(parent);
}

static void list_files(watch_set *set)
{
    for (uint32_t i = 0; i < set->files.len; i++)
        set->files.data[i]->there = false;
    set->missing = false;
    for (int i = 0; i < set->operand_count; i++) {
        struct stat st;
        const char *path = set->operands[i];
        watch_parent(set, path);
        if (stat(path, &st))
            set->missing = true;
        else if (S_ISDIR(st.st_mode))
            look_into(set, path, 0);
        else if (S_ISREG(st.st_mode))
            add_file(set, path);
    }
}

int watch_open(watch_set *set, char **operands, int count)
{
    *set = (watch_set){.operands = operands, .operand_count = count};
    set->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (set->inotify < 0) return cli_error("files cannot be followed: %s", strerror(errno)), -1;
    for (int i = 0; i < count; i++) {
        struct stat st;
        size_t len = strlen(operands[i]);
        while (len > 1 && operands[i][len - 1] == '/')
            operands[i][--len] = 0;
        if (stat(operands[i], &st)) return cli_error("%s: %s", operands[i], strerror(errno)), -1;
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) return cli_error("%s: is neither a file nor a folder", operands[i]), -1;
    }
    list_files(set);
    return 0;
}

static void close_contents(watch_file *file)
{
    for (uint32_t i = 0; i < file->list.count; i++)
        lift_close(file->modules[i]);
    free(file->modules);
    file->modules = NULL;
    image_list_close(&file->list);
    file->list = (image_list){0};
}

static void drop_file(watch_set *set, uint32_t i)
{
    close_contents(set->files.data[i]);
    free(set->files.data[i]->path);
    free(set->files.data[i]);
    memmove(&set->files.data[i], &set->files.data[i + 1], (set->files.len - i - 1) * sizeof *set->files.data);
    set->files.len--;
}

void watch_close(watch_set *set)
{
    while (set->files.len)
        drop_file(set, set->files.len - 1);
    vec_free(&set->files);
    for (uint32_t i = 0; i < set->folders.len; i++)
        free(set->folders.data[i]);
    vec_free(&set->folders);
    if (set->inotify >= 0) close(set->inotify);
}

static void note(watch_set *set, const struct inotify_event *event, double now)
{
    const char *folder = event->wd >= 0 && (uint32_t)event->wd < set->folders.len ? set->folders.data[event->wd] : NULL;
    if (!folder || !event->len) return;
    char *path = !strcmp(folder, ".") && find(set, event->name) ? base_format("%s", event->name)
                                                                : base_format("%s/%s", folder, event->name);
    watch_file *file = find(set, path);
    free(path);
    if (!file) return;
    file->writing = event->mask & (IN_CREATE | IN_MODIFY);
    file->since = now;
}

bool watch_events(watch_set *set, double now)
{
    _Alignas(struct inotify_event) char buffer[16384];
    bool any = false;
    for (ssize_t got; (got = read(set->inotify, buffer, sizeof buffer)) > 0;)
        for (char *at = buffer; at < buffer + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
            note(set, event, now);
            any = true;
            at += sizeof *event + event->len;
        }
    return any;
}

/* --- looking ------------------------------------------------------------------------------------------------------------ */

static bool differs(const watch_file *file, const struct stat *st)
{
    return file->inode != st->st_ino || file->size != (uint64_t)st->st_size || file->mtime != (uint64_t)st->st_mtim.tv_sec ||
           file->mtime_nsec != (uint64_t)st->st_mtim.tv_nsec;
}

static bool is_busy(const watch_file *file, double now)
{
    return file->writing && now - file->since < PATIENCE;
}

bool watch_is_changed(watch_set *set, double now, bool *soon)
{
    list_files(set);
    bool changed = false;
    *soon = set->missing;
    for (uint32_t i = 0; i < set->files.len; i++) {
        const watch_file *file = set->files.data[i];
        struct stat st;
        bool there = file->there && stat(file->path, &st) == 0;
        bool busy = there && is_busy(file, now);
        *soon |= busy;
        changed |= !busy && (!there || differs(file, &st));
    }
    return changed;
}

static void read_one(watch_file *file, const struct stat *st, watch_changes *out)
{
    race_error error;
    uint64_t content = 0;
    bool had = file->size != UINT64_MAX;
    file->inode = st->st_ino;
    file->size = (uint64_t)st->st_size;
    file->mtime = (uint64_t)st->st_mtim.tv_sec;
    file->mtime_nsec = (uint64_t)st->st_mtim.tv_nsec;
    if (!store_hash_file(file->path, &content)) {
        cli_error("%s: cannot be read: it stays as it was", file->path);
        out->bad++;
        return;
    }
    if (had && content == file->content && file->list.count) {
        out->same++;
        return;
    }
    image_list list = {0};
    if (image_open_all(file->path, &list, &error) < 0) {
        cli_error("%s%s", error.text, file->list.count ? ": it stays as it was" : "");
        out->bad++;
        return;
    }
    close_contents(file);
    file->content = content;
    file->list = list;
    file->modules = base_alloc_zero(list.count, sizeof(lift_module *));
    out->read++;
}

void watch_look(watch_set *set, double now, watch_changes *out, bool *soon)
{
    list_files(set);
    *out = (watch_changes){0};
    *soon = set->missing;
    for (uint32_t i = set->files.len; i-- > 0;) {
        watch_file *file = set->files.data[i];
        struct stat st;
        if (!file->there || stat(file->path, &st)) {
            out->gone += file->list.count > 0;
            drop_file(set, i);
        } else if (is_busy(file, now)) {
            *soon = true;
        } else if (differs(file, &st)) {
            file->writing = false;
            read_one(file, &st, out);
        }
    }
}
