/* What the files of `race check` share: an analysis, and its views. */
#ifndef RACE_TOOL_CHECK_H
#define RACE_TOOL_CHECK_H

#include "static/detect/detect.h"
#include "tools/race/race.h"

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
    double started, seconds, seconds_lift, seconds_pointer, seconds_order, seconds_detect;
} check;

/* check_text.c, check_json.c */
void check_text(const check *c, bool stats);
void check_json(const check *c, bool stats);

/* An access in the words of its function and source. */
typedef struct {
    const char *function;
    const char *file; /* or NULL */
    uint32_t line, column;
    const char *path; /* of the module */
} check_place;
check_place check_place_of(const check *c, uint32_t func, uint64_t addr);
/* The same in the user's own code, when the access is in a function of the C++ library. */
check_place check_place_at(const check *c, const detect_access *a);
/* Where an origin comes from, in words: "main", "thread worker, created in main at a.c:12". */
void check_origin(const check *c, uint32_t origin, char *to, size_t size);

#endif
