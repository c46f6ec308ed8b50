/* What has changed between two analyses of a program, for `race check --diff` and `race watch`. */
#ifndef RACE_TOOL_DIFF_H
#define RACE_TOOL_DIFF_H

#include "tools/race/check.h"

typedef struct {
    bool known;              /* there is an old one */
    const store_record *old;
    store_record *new;       /* may be `old` itself: nothing has changed */
    store_match match;
    uint32_t *twins;         /* per new warning: the old one, or STORE_NONE */
    bool *kept;              /* per old warning: it is still there */
    uint32_t came, gone, stayed;
} diff;

/* Requires `known`, `old` and `new`; gives new's warnings that are old ones their old ids. */
void diff_open(diff *d);
void diff_close(diff *d);
/* Print; return EXIT_FOUND when warnings are new, else EXIT_CLEAN. */
int diff_text(const diff *d);
int diff_json(const diff *d, bool line); /* on one line */

#endif
