/* `race show --plan`: where checks go, and what each covers. Of a program or library: the plan that `race run` would make; of a
 * plan file: that one. */
#include "tools/race/race.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "static/place/place.h"

static void print_value(uint8_t value)
{
    static const char *const registers[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                            "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    if (value < 16)
        printf("%s", registers[value]);
    else if (value == PLAN_MODULE)
        printf("module");
    else
        printf("captured%u", value - PLAN_CAPTURED);
}

/* [base + index * scale + disp] */
static void print_address(const plan_action *action)
{
    static const char *const segments[] = {"", "fs:", "gs:"};
    bool first = true;
    printf("%s[", segments[action->segment]);
    if (action->base != PLAN_NOTHING) print_value(action->base), first = false;
    if (action->index != PLAN_NOTHING) {
        if (!first) printf(" + ");
        print_value(action->index);
        if (action->scale > 1) printf(" * %u", action->scale);
        first = false;
    }
    if (action->bits != PLAN_NOTHING) {
        printf("%sbit ", first ? "" : " + ");
        print_value(action->bits);
        first = false;
    }
    if (action->disp || first)
        printf("%s0x%llx", first ? "" : action->disp < 0 ? " - " : " + ",
               (unsigned long long)(action->disp < 0 && !first ? -(uint64_t)action->disp : (uint64_t)action->disp));
    printf("]");
}

static void print_action(const plan_action *action)
{
    if (action->kind == PLAN_CAPTURE)
        printf("  captured%u = ", action->slot);
    else if (action->kind == PLAN_SYNC)
        printf("  synchronise%s%s ", action->flags & PLAN_ACQUIRE ? " acquire" : "", action->flags & PLAN_RELEASE ? " release" : "");
    else
        printf("  %s ", action->flags & PLAN_WRITE ? action->flags & PLAN_READ ? "read, write" : "write" : "read");
    print_address(action);
    if (action->kind == PLAN_CAPTURE) return;
    printf(", %u byte%s", action->size, action->size == 1 ? "" : "s");
    if (action->counter != PLAN_NOTHING) {
        printf(", times ");
        print_value(action->counter);
    } else if (action->count > 1) {
        printf(", %u times, %d apart", action->count, action->stride);
    }
    if (action->claim) printf(" (%s)", plan_claim_text(action->claim));
}

static void print_plan(const plan *p)
{
    char plain[300];
    printf("plan of build %s: %u sites, %llu accesses checked, %llu need none, %llu cannot be\n", p->header->build_id,
           p->header->tables[PLAN_SITES].count, (unsigned long long)p->header->accesses_planned, (unsigned long long)p->header->accesses_local,
           (unsigned long long)p->header->accesses_unplanned);
    for (uint32_t i = 0; i < p->header->tables[PLAN_SITES].count; i++) {
        const plan_site *site = &p->sites[i];
        printf("0x%llx%s", (unsigned long long)site->addr, site->flags & PLAN_CALL ? "  call" : site->flags & PLAN_SYSTEM ? "  system call" : "");
        for (uint32_t k = 0; k < site->action_count; k++)
            print_action(&p->actions[site->first_action + k]);
        if (site->source) {
            const plan_source *source = &p->sources[site->source - 1];
            const char *file = plan_string(p, source->file), *slash = strrchr(file, '/');
            printf("  %s", cli_plain(plan_string(p, source->function), plain, sizeof plain));
            if (*file) printf(", %s:%u", cli_plain(slash ? slash + 1 : file, plain, sizeof plain), source->line);
        }
        if (site->warnings) printf("  %s", cli_plain(plan_string(p, site->warnings), plain, sizeof plain));
        printf("\n");
    }
}

static int show_bytes(const char *path, const void *bytes, size_t size)
{
    plan p;
    plan_status status = plan_read(bytes, size, &p);
    if (status != PLAN_OK) return cli_error("%s: %s", path, plan_status_text(status));
    print_plan(&p);
    return EXIT_CLEAN;
}

/* Whether it is a plan; then it was shown, or `*code` says that it could not be. */
static bool show_file(const char *path, int *code)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool is_plan = false;
    size_t length = sizeof PLAN_MAGIC - 1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size >= length) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            is_plan = !memcmp(map, PLAN_MAGIC, length);
            if (is_plan) *code = show_bytes(path, map, (size_t)st.st_size);
            munmap(map, (size_t)st.st_size);
        }
    }
    close(fd);
    return is_plan;
}

int show_plan(const char *path, int jobs)
{
    int code = EXIT_CLEAN;
    image_list list;
    race_error error;
    if (show_file(path, &code)) return code;
    if (image_open_all(path, &list, &error) < 0) return cli_error("%s", error.text);
    for (uint32_t i = 0; i < list.count && code == EXIT_CLEAN; i++) {
        plan_draft draft;
        size_t size;
        lift_module *module = lift_open(list.images[i], &(lift_options){.jobs = jobs});
        place_every(module, &(place_options){0}, &draft);
        void *bytes = plan_encode(&draft, &size);
        code = show_bytes(path, bytes, size);
        free(bytes);
        draft_free(&draft);
        lift_close(module);
    }
    image_list_close(&list);
    return code;
}
