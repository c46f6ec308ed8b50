/* pta_follow from version to version of a program.
 *
 *   follow_steps [--context none|origin[:K]|cfa:K] [--threads N] FOLDER...
 *
 * Each FOLDER has the object files of one version. A file that has the bytes that it had in the version before is not
 * read again, as `race watch` does it. For each version behind the first, one line:
 *
 *   FOLDER: followed|anew, as from scratch|another result
 *
 * Exit 0: all are as from scratch; 1: one is not; 2: it could not be said. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include "tests/lib/pta_tool.h"

typedef struct {
    char name[NAME_MAX + 1];
    char *bytes;
    size_t size;
    image *img;
    lift_module *lifted;
} object;

typedef struct {
    object objects[TOOL_MODULES];
    uint32_t count;
    pta_program *program;
    uint64_t generation;
} version;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const object *)a)->name, ((const object *)b)->name);
}

static int read_bytes(const char *path, object *o, race_error *error)
{
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END)) return base_fail(error, "cannot read %s", path);
    o->size = (size_t)ftell(in);
    o->bytes = base_alloc(o->size + 1);
    rewind(in);
    size_t got = fread(o->bytes, 1, o->size, in);
    fclose(in);
    return got == o->size ? 0 : base_fail(error, "cannot read %s", path);
}

static int list_objects(const char *folder, version *v, race_error *error)
{
    DIR *dir = opendir(folder);
    if (!dir) return base_fail(error, "cannot open %s", folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 2, ".o") || v->count == TOOL_MODULES) continue;
        snprintf(v->objects[v->count++].name, sizeof v->objects->name, "%s", entry->d_name);
    }
    closedir(dir);
    qsort(v->objects, v->count, sizeof *v->objects, by_name);
    return v->count ? 0 : base_fail(error, "%s has no object files", folder);
}

/* The objects of a folder; what has not changed is taken over from the version before. */
static int read_version(const char *folder, version *before, version *v, race_error *error)
{
    char path[PATH_MAX];
    if (list_objects(folder, v, error)) return -1;
    for (uint32_t i = 0; i < v->count; i++) {
        object *o = &v->objects[i];
        snprintf(path, sizeof path, "%s/%s", folder, o->name);
        if (read_bytes(path, o, error)) return -1;
        for (uint32_t k = 0; k < before->count && !o->img; k++) {
            object *was = &before->objects[k];
            if (strcmp(was->name, o->name) || was->size != o->size || memcmp(was->bytes, o->bytes, o->size)) continue;
            o->img = was->img;
            o->lifted = was->lifted;
            was->img = NULL;
            was->lifted = NULL;
        }
        if (!o->img && image_open(path, &o->img, error)) return -1;
    }
    return 0;
}

static void lift_version(version *v, lift_module **modules)
{
    const image *images[TOOL_MODULES];
    for (uint32_t i = 0; i < v->count; i++) {
        images[i] = v->objects[i].img;
        modules[i] = v->objects[i].lifted;
    }
    lift_update_all(images, v->count, &(lift_options){.jobs = 1, .generation = ++v->generation}, modules);
    for (uint32_t i = 0; i < v->count; i++)
        v->objects[i].lifted = modules[i];
}

/* What was read again lies where its module lay before, as it may where that is closed first. */
static void take_places(version *before, version *v, lift_module **modules)
{
    for (uint32_t i = 0; i < v->count; i++)
        for (uint32_t k = 0; k < before->count; k++) {
            object *was = &before->objects[k], *is = &v->objects[i];
            if (strcmp(was->name, is->name) || !was->lifted) continue;
            lift_module *place = was->lifted, content = *place;
            *place = *is->lifted;
            *is->lifted = content;
            was->lifted = is->lifted;
            is->lifted = modules[i] = place;
        }
}

static void close_version(version *v)
{
    if (v->program) pta_program_close(v->program);
    for (uint32_t i = 0; i < v->count; i++) {
        lift_close(v->objects[i].lifted);
        image_close(v->objects[i].img);
        free(v->objects[i].bytes);
    }
    *v = (version){0};
}

static int hash_from_scratch(lift_module **modules, uint32_t count, pta_options options, uint64_t *hash,
                             race_error *error)
{
    pta_program *program = pta_program_open(modules, count, 1);
    pta *fresh;
    options.follow = false;
    options.once = true;
    int status = pta_open(program, &options, &fresh, error);
    if (!status) *hash = pta_relation_hash(fresh), pta_close(fresh);
    pta_program_close(program);
    return status;
}

/* 1: another result than from scratch. */
static int step(const char *folder, version *before, version *v, pta **p, const pta_options *options, race_error *error)
{
    lift_module *modules[TOOL_MODULES];
    uint64_t hash;
    if (read_version(folder, before, v, error)) return -1;
    v->generation = before->generation;
    lift_version(v, modules);
    take_places(before, v, modules);
    v->program = pta_program_open_for(modules, v->count, 1, &(pta_wishes){.keep = true, .before = before->program});
    if (!*p) return pta_open(v->program, options, p, error);
    pta_changes changes;
    if (pta_follow(*p, v->program, &changes, error)) return -1;
    bool anew = changes.anew;
    pta_changes_free(&changes);
    if (hash_from_scratch(modules, v->count, *options, &hash, error)) return -1;
    bool same = pta_relation_hash(*p) == hash;
    printf("%s: %s, %s\n", folder, anew ? "anew" : "followed", same ? "as from scratch" : "another result");
    return !same;
}

int main(int argc, char **argv)
{
    pta_options options = {.context = PTA_CONTEXT_ORIGIN, .k = 1, .jobs = 1, .follow = true};
    race_error error;
    uint32_t number;
    int at = 1, status = 0;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        if (!strcmp(argv[at], "--context") && tool_context(argv[at + 1], &options)) continue;
        if (strcmp(argv[at], "--threads") || !tool_number(argv[at + 1], &number)) break;
        options.jobs = (int)number;
    }
    if (at >= argc || !strncmp(argv[at], "--", 2)) {
        fprintf(stderr, "usage: follow_steps [--context C] [--threads N] FOLDER...\n");
        return 2;
    }
    version before = {0}, now = {0};
    pta *p = NULL;
    for (; at < argc && status >= 0; at++) {
        int code = step(argv[at], &before, &now, &p, &options, &error);
        status = code < 0 || status < code ? code : status;
        close_version(&before); /* not before what has followed it is done */
        before = now;
        now = (version){0};
    }
    if (status < 0) fprintf(stderr, "follow_steps: %s\n", error.text);
    if (p) pta_close(p);
    close_version(&before);
    return status < 0 ? 2 : status;
}
