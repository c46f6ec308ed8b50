/* Mangled names in texts, as the C++ runtime reads them. It is loaded when the first one is met: a program in C needs none of it, and
 * without it names stay as they are. */
#include "tools/race/names.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void open_library(names *n)
{
    n->tried = true;
    n->library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *found = n->library ? dlsym(n->library, "__cxa_demangle") : NULL;
    memcpy(&n->demangle, &found, sizeof found);
}

void names_close(names *n)
{
    if (n->library) dlclose(n->library);
    *n = (names){0};
}

static bool is_part(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/* The name of `length` characters, or NULL; free() it. */
static char *demangled(names *n, const char *name, size_t length)
{
    enum { LONGEST = 4096 }; /* a longer one is hardly meant to be read */
    char mangled[LONGEST];
    int status = 0;
    if (length >= sizeof mangled) return NULL;
    if (!n->tried) open_library(n);
    if (!n->demangle) return NULL;
    memcpy(mangled, name, length);
    mangled[length] = 0;
    return n->demangle(mangled, NULL, NULL, &status);
}

static size_t add(char *to, size_t size, size_t at, const char *text, size_t length)
{
    if (length > size - 1 - at) length = size - 1 - at;
    memcpy(to + at, text, length);
    return at + length;
}

bool names_show(names *n, const char *text, char *to, size_t size)
{
    size_t at = 0;
    bool any = false;
    for (const char *c = text; *c;) {
        size_t length = 0;
        while (is_part(c[length]))
            length++;
        char *name = length > 2 && c[0] == '_' && c[1] == 'Z' ? demangled(n, c, length) : NULL;
        if (name) at = add(to, size, at, name, strlen(name)), any = true;
        if (!name) at = add(to, size, at, c, length ? length : 1);
        c += length ? length : 1;
        free(name);
    }
    to[at] = 0;
    return any;
}
