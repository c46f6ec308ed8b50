/* Lines of source files, for excerpts: each file is read once. */
#ifndef RACE_TOOLS_SOURCE_H
#define RACE_TOOLS_SOURCE_H

#include "static/base/base.h"

typedef struct {
    char *path;
    char *text;                /* NULL: it cannot be read */
    VEC(uint32_t) lines;       /* where they begin, and the end */
} source_file;

typedef struct {
    VEC(source_file) files;
    uint64_t bytes;
} sources;

/* Copies a line, from 1, without its end; cut to fit. False: there is none. */
bool sources_line(sources *s, const char *path, uint32_t line, char *to, size_t size);
void sources_close(sources *s);

#endif
