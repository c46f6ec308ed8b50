/* JSON as it is printed, value by value: a program may have tens of thousands of warnings, and `race watch` prints them
 * while somebody waits. The bytes are those that jansson would write, with an indent of two or on one line. */
#ifndef RACE_TOOLS_OUT_H
#define RACE_TOOLS_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    bool line; /* all of it on one line */
    FILE *to;
    unsigned depth; /* of what is open */
    bool begun;     /* what is open has something in it */
    size_t len;
    char text[1 << 16];
} json_out;

/* Each gives what is open one more value: of an object by its key, of an array with NULL. */
void out_object(json_out *o, const char *key);
void out_array(json_out *o, const char *key);
void out_end(json_out *o, char with);                          /* '}' or ']' */
void out_text(json_out *o, const char *key, const char *text); /* NULL: null */
void out_number(json_out *o, const char *key, int64_t value);
void out_real(json_out *o, const char *key, double value); /* six digits */
void out_bool(json_out *o, const char *key, bool value);
void out_null(json_out *o, const char *key);
/* The end of the line, and of the buffer. */
void out_finish(json_out *o);

#endif
