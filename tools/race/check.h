/* What the files of `race check` share: an analysis, and its views. */
#ifndef RACE_TOOL_CHECK_H
#define RACE_TOOL_CHECK_H

#include "static/detect/detect.h"
#include "static/store/store.h"
#include "tools/race/names.h"
#include "tools/race/out.h"
#include "tools/race/race.h"

typedef struct { /* a module that was lifted, told from one that lies at the same address later */
    const lift_module *module;
    uint64_t generation;
} check_lifted;

typedef struct {
    image_list *lists;
    uint32_t list_count;
    lift_module **modules;
    uint32_t module_count;
    pta_program *program;
    pta *result;
    hb *order;
    detect *found;
    detect_suppressions *suppressions;
    detect_config *config;
    uint64_t how; /* hash of the texts of both */
    hb_memo *memo;    /* of earlier analyses, or NULL */
    pta_changes changes; /* since the last one */
    bool rechecks;    /* hb_options.recheck */
    bool follows;     /* others follow this analysis; it may follow one: `result` is that of */
    pta_program *before; /* this program, which is still there; NULL: it follows none */
    const store_record *last;      /* of an earlier analysis, or NULL: what it says of modules that are the same is taken over */
    const check_lifted *last_lifted; /* its modules */
    double started, seconds, seconds_lift, seconds_pointer, seconds_order, seconds_detect;
} check;

/* How a program is looked at. */
typedef struct {
    bool json, all; /* how it is printed */
    bool open;      /* a library */
    long jobs;
    show_pointer pointer;
    pta_algorithm algorithm; /* by which a result follows a changed program */
    const char *suppressions, *config; /* files, or NULL */
} check_how;

/* Options that `race check` and `race watch` have in common; the commands' own follow. */
enum { CHECK_FORMAT = 1, CHECK_CONTEXT, CHECK_INCREMENTAL, CHECK_JOBS, CHECK_SUPPRESSIONS, CHECK_CONFIG, CHECK_OPEN, CHECK_ALL, CHECK_OPTIONS };
/* Takes one of these; false after it has said what is wrong with it. */
bool check_option(const char *by, int key, char *value, check_how *how);

/* check.c; return EXIT_CLEAN, or EXIT_USAGE after they have said what is wrong. */
int check_texts(check *c, const check_how *how);   /* reads suppressions and configuration */
int check_analyse(check *c, const check_how *how); /* requires the modules and the texts */
void check_close_analysis(check *c);               /* all but the modules and the texts */
void check_close(check *c);

/* A program that is linked statically and has no names of a C library: what its threads and locks are cannot be told. */
static inline bool check_is_nameless(const image *img)
{
    return img->is_static && !img->libc;
}

/* check_record.c: all that is printed of an analysis. */
void check_record(const check *c, int jobs, store_record *out);

/* check_text.c, check_json.c; the analysis is asked only with `stats`. */
/* `all`: every pair of accesses, not one for each place, and those of low confidence too. */
void check_text(const check *c, const store_record *record, bool all, bool stats);
void check_text_warning(const store_warning *w, bool excerpts);
void check_json(const check *c, const store_record *record, bool stats);
/* One more value of the array that is open; of the object, under "modules". */
void check_json_warning(json_out *o, const store_warning *w, names *n);
void check_json_modules(json_out *o, const store_record *record);

#endif
