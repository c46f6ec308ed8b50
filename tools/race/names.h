/* Names of C++ as the source has them. */
#ifndef RACE_TOOLS_NAMES_H
#define RACE_TOOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct { /* zero: nothing was asked yet */
    bool tried;
    void *library;
    char *(*demangle)(const char *mangled, char *buffer, size_t *length, int *status);
} names;

/* Copies a text with every mangled name in it demangled; cut to fit. True: there was one. */
bool names_show(names *n, const char *text, char *to, size_t size);
void names_close(names *n);

#endif
