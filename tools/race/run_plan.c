/* Plans of what runs: the program and the libraries it needs that are not the system's are analysed unless a current
 * plan is there; other programs and libraries when their engine asks. */
#include "tools/race/run.h"

#include "include/race/modelled.h"
#include "include/race/plan.h"
#include "static/place/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- files -------------------------------------------------------------------------------------------------------- */

static bool is_program_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The file that the shell would run; free() the result. NULL: there is none. */
char *run_find_program(const char *name)
{
    if (strchr(name, '/')) return is_program_file(name) ? base_format("%s", name) : NULL;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t len = strcspn(path, ":");
        char *candidate = len ? base_format("%.*s/%s", (int)len, path, name) : base_format("./%s", name);
        if (is_program_file(candidate)) return candidate;
        free(candidate);
        path += len + (path[len] == ':');
    }
    return NULL;
}

int run_make_directory(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return 0;
    return cli_error("%s: cannot be made: %s (--state, --log: folders that can)", path, strerror(errno));
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* A sound plan of this module is there, made with as much debug information as there is now. */
static bool is_current(const char *path, const image *img, bool only_atomics)
{
    struct stat st;
    int fd = cli_open(path);
    if (fd < 0) return false;
    bool current = false;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            plan p;
            current = plan_read(map, (size_t)st.st_size, &p) == PLAN_OK && !strcmp(p.header->build_id, img->build_id) &&
                      p.header->code == image_code(img) &&
                      !(p.header->flags & PLAN_FROM_DEBUG) == !img->has_debug &&
                      !(p.header->flags & PLAN_ONLY_ATOMICS) == !only_atomics;
            munmap(map, (size_t)st.st_size);
        }
    }
    close(fd);
    return current;
}

static void draft_plan(const run_request *r, const image *img, plan_draft *draft)
{
    race_error error;
    lift_module *module = lift_open(img, &(lift_options){.jobs = (int)r->jobs});
    place_opinions opinions = {0};
    bool only_warned = !strcmp(r->scope, "warned"), asked = only_warned || r->audit;
    if (asked && place_ask(module, (int)r->jobs, &opinions, &error) < 0) cli_error("%s: %s", img->path, error.text);
    place_every(module,
                &(place_options){.opinions = asked ? &opinions : NULL,
                                 .only_warned = only_warned,
                                 .claims = r->audit,
                                 .jobs = (int)r->jobs},
                draft);
    place_opinions_free(&opinions);
    lift_close(module);
}

static void draft_atomics(const run_request *r, const image *img, plan_draft *draft)
{
    lift_module *module = lift_open(img, &(lift_options){.jobs = (int)r->jobs, .flow_only = true});
    place_every(module, &(place_options){.only_atomics = true, .jobs = (int)r->jobs}, draft);
    lift_close(module);
}

/* `only_atomics`: the order that it makes is seen, but its accesses are not checked. */
static int plan_image(const run_request *r, const image *img, const char *plans, bool only_atomics)
{
    int code = EXIT_CLEAN;
    race_error error;
    char *path = base_format("%s/%s.plan", plans, img->build_id);
    const bool left_out = place_is_left_out(img);
    if (left_out && !only_atomics) cli_error("%s: written in Go, whose code is not checked (go build -race does)", img->path);
    if (!is_current(path, img, only_atomics)) {
        plan_draft draft;
        if (left_out)
            place_nothing(img, &draft);
        else if (only_atomics)
            draft_atomics(r, img, &draft);
        else
            draft_plan(r, img, &draft);
        if (plan_write(&draft, path, &error) < 0) code = cli_error("%s", error.text);
        draft_free(&draft);
    }
    free(path);
    return code;
}

static bool is_system_library(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/"};
    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(path, folders[i], strlen(folders[i]))) return true;
    return false;
}

/* What the dynamic loader says the program needs, one `name => path (address)` a line. It is asked as ldd asks it: only
 * it knows run paths, LD_LIBRARY_PATH and the cache together. NULL: it cannot be asked. */
static FILE *ask_loader(const char *program, pid_t *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return NULL;
    *child = fork();
    if (*child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        int null = open("/dev/null", O_RDWR);
        if (null >= 0) dup2(null, STDIN_FILENO), dup2(null, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = *child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!from) close(ends[0]);
    return from;
}

/* A library that cannot be read is left out. Of the system's only the atomic instructions are planned: what they order (GLib has
 * locks of its own) is ordered for the program. */
static int plan_libraries(const run_request *r, const char *program, const char *plans)
{
    pid_t child;
    FILE *from = ask_loader(program, &child);
    if (!from) return cli_error("%s: its libraries cannot be found: %s", program, strerror(errno));
    int code = EXIT_CLEAN;
    char *line = NULL;
    size_t size = 0;
    while (code == EXIT_CLEAN && getline(&line, &size, from) > 0) {
        char *arrow = strstr(line, "=> "), *path = arrow ? arrow + strlen("=> ") : line + strspn(line, "\t"), *end = strstr(path, " (0x");
        if (!end || !memchr(path, '/', (size_t)(end - path))) continue;
        *end = 0;
        image *img;
        const char *slash = strrchr(path, '/');
        if (race_is_modelled(slash ? slash + 1 : path) || image_open(path, &img, NULL) < 0) continue;
        code = plan_image(r, img, plans, is_system_library(path));
        image_close(img);
    }
    free(line);
    fclose(from);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return code;
}

/* Their runtimes insist on coming before all other libraries. */
static const char *sanitizer_of(const image *img)
{
    static const char *const starts[] = {"libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so"};
    for (uint32_t i = 0; i < img->needed_count; i++)
        for (unsigned k = 0; k < sizeof starts / sizeof *starts; k++)
            if (!strncmp(img->needed[i], starts[k], strlen(starts[k]))) return img->needed[i];
    return NULL;
}

/* musl has not all that the embedded engine takes from glibc, and its loader would end the program. */
static bool needs_musl(const image *img)
{
    for (uint32_t i = 0; i < img->needed_count; i++)
        if (!strcmp(img->needed[i], "libc.so") || !strncmp(img->needed[i], "libc.musl", strlen("libc.musl"))) return true;
    return false;
}

/* Programs of which nothing would be seen, or that would not start. */
static int check_form(const run_request *r, const char *program, const image *img)
{
    const bool probe = !strcmp(r->engine, "probe");
    if (img->kind != IMAGE_EXEC && img->kind != IMAGE_PIE) return cli_error("%s: not a program", program);
    if (!img->needed_count)
        return cli_error("%s: statically linked: its synchronisation cannot be seen: link it dynamically, or use race check",
                         program);
    if (probe && needs_musl(img))
        return cli_error("%s: linked with musl: link it with glibc, or use --engine dynamorio", program);
    if (probe && sanitizer_of(img))
        return cli_error("%s: needs %s, which must be loaded before anything else: build it without sanitizers", program,
                         sanitizer_of(img));
    return EXIT_CLEAN;
}

int run_plan_program(const run_request *r, const char *program, const char *plans)
{
    image *img;
    race_error error;
    if (image_open(program, &img, &error) < 0) return cli_error("%s", error.text);
    int code = check_form(r, program, img);
    if (code == EXIT_CLEAN && !r->plans) code = plan_image(r, img, plans, false);
    if (code == EXIT_CLEAN && !r->plans) code = plan_libraries(r, program, plans);
    image_close(img);
    return code;
}

void run_plan_asked(const run_request *r, const char *path, const char *plans)
{
    image *img;
    if (image_open(path, &img, NULL) < 0) return;
    bool is_program = img->kind == IMAGE_EXEC || img->kind == IMAGE_PIE;
    int code = plan_image(r, img, plans, false);
    if (code == EXIT_CLEAN && is_program && img->needed_count) plan_libraries(r, path, plans);
    image_close(img);
}
