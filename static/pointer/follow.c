/* A result for another program. */
#include <stdlib.h>

#include "static/pointer/graph.h"

int pta_follow(pta *p, pta_program *next, pta_changes *changes, race_error *error)
{
    *changes = (pta_changes){0};
    pta *fresh;
    if (pta_open(next, &p->options, &fresh, error)) return -1;
    pta old = *p;
    *p = *fresh;
    *fresh = old;
    pta_close(fresh);
    changes->anew = true;
    return 0;
}

void pta_changes_free(pta_changes *changes)
{
    free(changes->funcs);
    free(changes->sites);
    free(changes->calls);
    free(changes->contexts);
    free(changes->instances);
    free(changes->changed);
    free(changes->moved);
    free(changes->called);
    *changes = (pta_changes){0};
}
