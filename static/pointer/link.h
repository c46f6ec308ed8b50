/* Object files as one program: which definition of a name everybody means, as the linker decides it. */
#ifndef RACE_POINTER_LINK_H
#define RACE_POINTER_LINK_H

#include "static/lift/lift.h"

typedef struct link_map link_map;

/* A definition of the program: a strong one before one of COMMON (the largest), before a weak one; else the first module's.
 * Local symbols are nobody's but their module's. */
link_map *link_open(lift_module **modules, uint32_t count);
void link_close(link_map *map);
/* Whether this symbol of an object is the definition. */
bool link_is_chosen(const link_map *map, uint32_t module, const image_symbol *symbol);
/* Some object defines this name. */
bool link_defines(const link_map *map, const char *name);

#endif
