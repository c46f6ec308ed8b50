/* Inside of a program: where its names and addresses lead. names.c, program.c and surround.c share it. */
#ifndef RACE_POINTER_MAPS_H
#define RACE_POINTER_MAPS_H

#include "static/pointer/generate.h"
#include "static/pointer/link.h"

typedef struct {
    const char *name; /* NULL: free */
    uint32_t func, site;
} name_entry;

typedef struct {
    name_entry *entries;
    uint32_t count, capacity;
} name_map;

enum { PTA_NO_MODULE = UINT32_MAX };

typedef struct {
    uintptr_t at;        /* the lift_module */
    uint64_t generation; /* another may lie where it was */
    uint32_t was;        /* its number in the program before, or PTA_NO_MODULE: it was not there */
    address_space statics, tls;
    uint32_t first_func, first_function_site;
    uint32_t *slots, *plts;
    uint32_t *chosen; /* generate_module */
    /* What follows from the module alone; the next program takes it over. */
    uint32_t *stacks;    /* per function: generate_stack */
    uint64_t *addresses; /* the data addresses that it names itself, sorted */
    uint32_t address_count;
} module_map;

struct pta_maps {
    name_map names;     /* what modules define or models stand for; func PTA_NO_FUNC and site PTA_NO_SITE: nobody knows it */
    name_map libraries; /* data of modelled libraries */
    name_map foreign;   /* data that object files use and nobody defines */
    link_map *link;     /* while the program is opened */
    module_map *modules;
    uint32_t copied;
    uint32_t messages; /* site */
    uint32_t *function_sites; /* of models, by function */
    uint32_t function_site_count;
    struct passing_memo *passing; /* passing.c; NULL: as below */
    struct pta_reuse *reuse; /* reuse.c; NULL: no program comes after this one */
};

uint64_t names_hash(const char *name);
name_entry *names_find(const name_map *map, const char *name); /* or NULL */
name_entry *names_add(name_map *map, name_entry entry);        /* requires that it is not there */

#endif
