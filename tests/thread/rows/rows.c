/* Runs the cases of a file: rows.h. */
#include "rows.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = 2500 };

extern const row_case __start_row_cases[], __stop_row_cases[];
static row_place places[PLACES];
static unsigned place_count;
static int there[2], back[2], done[2];
static FILE *out;
static bool is_failed;
static const char *missing; /* why a case is skipped */

/* --- order that is not seen --------------------------------------------------------------------------------------- */

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void post(int fd)
{
    static const char byte = 'x';
    while (call(SYS_write, fd, (long)&byte, 1) != 1) {
    }
}

static void wait_for(int fd)
{
    char byte;
    while (call(SYS_read, fd, (long)&byte, 1) != 1) {
    }
}

void row_post(void)
{
    post(there[1]);
}
void row_wait(void)
{
    wait_for(there[0]);
}
void row_post_back(void)
{
    post(back[1]);
}
void row_wait_back(void)
{
    wait_for(back[0]);
}

void row_meet(bool is_first)
{
    if (is_first) {
        row_post();
        row_wait_back();
    } else {
        row_wait();
        row_post_back();
    }
}

void row_give(void *pointer)
{
    while (call(SYS_write, there[1], (long)&pointer, sizeof pointer) != sizeof pointer) {
    }
}

void *row_take(void)
{
    void *pointer;
    while (call(SYS_read, there[0], (long)&pointer, sizeof pointer) != sizeof pointer) {
    }
    return pointer;
}

void row_raise(int signal)
{
    call(SYS_tgkill, getpid(), gettid(), signal);
}

/* --- for the cases ------------------------------------------------------------------------------------------------ */

void row_failed(const char *what)
{
    fprintf(out, "failed %s\n", what);
    is_failed = true;
}

void row_missing(const char *reason)
{
    missing = reason;
}

void row_pipe(row_place *w)
{
    if (pipe(w->fd)) exit(3);
    w->in = fdopen(w->fd[0], "r");
    w->out = fdopen(w->fd[1], "w");
    setvbuf(w->out, NULL, _IONBF, 0);
    setvbuf(w->in, NULL, _IONBF, 0);
}

void row_file(row_place *w)
{
    strcpy(w->path, "/tmp/race-rows-XXXXXX");
    const int fd = mkstemp(w->path);
    if (fd < 0) exit(3);
    close(fd);
}

FILE *row_text(const char *text)
{
    return fmemopen((void *)text, strlen(text), "r");
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

typedef struct {
    volatile char *at, *behind;
    bool is_write, is_first, is_second; /* of the touch; it comes before the call; for the second range */
} touch;

#define TOUCHES(name)                                                                                                  \
    __attribute__((noipa)) static void name(const touch *t, char value)                                                \
    {                                                                                                                  \
        if (t->is_write)                                                                                               \
            *t->at = value;                                                                                            \
        else                                                                                                           \
            (void)*t->at;                                                                                              \
    }
TOUCHES(touch_p_before)
TOUCHES(touch_p_after)
TOUCHES(touch_q_before)
TOUCHES(touch_q_after)

/* The values are those that are there: no call may end differently. */
static char value_before, value_behind;

static void *touch_wrong(void *argument)
{
    const touch *t = argument;
    if (!t->is_first) row_wait();
    if (t->is_second)
        (t->is_first ? touch_q_before : touch_q_after)(t, value_before);
    else
        (t->is_first ? touch_p_before : touch_p_after)(t, value_before);
    if (t->is_first) row_post();
    return NULL;
}

__attribute__((noipa)) static void touch_right(const touch *t)
{
    if (!t->is_write) (void)*t->at;
    *t->behind = value_behind;
}

static void *touch_behind(void *argument)
{
    const touch *t = argument;
    if (!t->is_first) row_wait();
    touch_right(t);
    if (t->is_first) row_post();
    return NULL;
}

static row_place *new_place(void)
{
    if (place_count == PLACES) {
        row_failed("there are more cases than places");
        fflush(out);
        _exit(3);
    }
    row_place *w = &places[place_count++];
    for (int i = 0; i < 4; i++)
        w->fd[i] = -1;
    return w;
}

static void run_range(const row_case *c, bool is_wrong, bool is_second, bool is_first)
{
    const row_range *r = &c->range[is_second];
    row_place *w = new_place();
    for (int i = 0; i < 2; i++)
        if (c->range[i].text) strcpy(i ? w->b : w->a, c->range[i].text);
    char *start = is_second ? w->b : w->a;
    touch t = {.at = start + r->size - 1,
               .behind = start + (r->is_some ? ROW_BEHIND : r->size),
               .is_write = is_wrong != r->is_write,
               .is_first = is_first,
               .is_second = is_second};
    value_before = *t.at;
    value_behind = *t.behind;
    pthread_t thread;
    if (pthread_create(&thread, NULL, is_wrong ? touch_wrong : touch_behind, &t)) exit(3);
    if (is_first) row_wait();
    c->call[is_wrong](w->a, w->b);
    if (!is_first) row_post();
    pthread_join(thread, NULL);
    if (is_wrong)
        fprintf(out, "wrong %s %s touch_%c_%s\n", c->row, c->wrong, is_second ? 'q' : 'p',
                is_first ? "before" : "after");
    else
        fprintf(out, "right %s\n", c->row);
}

static void run_ranges(const row_case *c)
{
    for (unsigned i = 0; i < 8; i++)
        if (c->range[i & 1].size) run_range(c, i & 4, i & 1, i & 2);
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

typedef struct {
    void (*work)(row_place *w);
    row_place *place;
    bool together;
} job;

static void *work(void *argument)
{
    const job *j = argument;
    j->work(j->place);
    if (j->together) return NULL;
    row_post();
    wait_for(done[0]); /* the end of a thread may give away what it has */
    return NULL;
}

static void run_pair(const row_case *c, bool is_wrong)
{
    row_place *w = new_place();
    missing = NULL;
    c->setup(w, is_wrong);
    if (missing) {
        fprintf(out, "skipped %s: %s\n", c->row, missing);
        return;
    }
    pthread_t thread;
    job j = {c->one[is_wrong], w, c->together};
    if (pthread_create(&thread, NULL, work, &j)) exit(3);
    if (!c->together) row_wait();
    c->two[is_wrong](w);
    if (!c->together) post(done[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++)
        if (w->fd[i] >= 0 && !(w->in && i < 2)) close(w->fd[i]);
    if (w->in) fclose(w->in);
    if (w->out) fclose(w->out);
    if (*w->path) unlink(w->path);
    if (is_wrong)
        fprintf(out, "wrong %s %s %s%s\n", c->row, c->wrong, c->wrong_other, c->is_heap ? " block" : "");
    else
        fprintf(out, "right %s\n", c->row);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* In the library that has it: the embedded engine has a function of every row. */
static bool is_known(const char *row)
{
    static const char *const libraries[] = {"libc.so.6", "libatomic.so.1", "libgomp.so.1", "libomp.so.5",
                                            "libstdc++.so.6"};
    for (unsigned i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library && (dlsym(library, row) || dlvsym(library, row, "GLIBC_2.2.5"))) return true;
    }
    return false;
}

int main(int count, char **arguments)
{
    out = fdopen(dup(1), "w");
    stdout = fopen("/dev/null", "w");
    if (!out || !stdout || pipe(there) || pipe(back) || pipe(done)) return 3;
    for (const row_case *c = __start_row_cases; c < __stop_row_cases; c++) {
        if (count > 1 && strcmp(arguments[1], c->row)) continue;
        if (!is_known(c->row)) {
            fprintf(out, "skipped %s: no library has it\n", c->row);
            continue;
        }
        if (count > 1) fprintf(stderr, "case %s\n", c->row);
        if (c->range[0].size || c->range[1].size)
            run_ranges(c);
        else
            for (int is_wrong = 0; is_wrong < 2; is_wrong++)
                if (c->one[is_wrong]) run_pair(c, is_wrong);
        fflush(out);
    }
    return is_failed ? 3 : 0;
}
