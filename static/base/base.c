/* Errors, memory and arenas: see base.h. */
#include "static/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int base_fail(race_error *error, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        for (char *c = error->text; *c; c++) /* file names may hold anything; an error stays one line */
            if ((unsigned char)*c < ' ') *c = '?';
    }
    return -1;
}

_Noreturn void base_oom(size_t wanted)
{
    char line[80];
    int len = snprintf(line, sizeof line, "race: out of memory (%zu bytes wanted)\n", wanted);
    if (write(STDERR_FILENO, line, (size_t)len) < 0) { /* nothing left to say it with */
    }
    _exit(2);
}

void *base_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p) base_oom(size);
    return p;
}

void *base_alloc_zero(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (!p) base_oom(count * size);
    return p;
}

void *base_realloc(void *old, size_t size)
{
    void *p = realloc(old, size ? size : 1);
    if (!p) base_oom(size);
    return p;
}

void *base_grow(void *data, uint32_t *capacity, uint32_t needed, size_t item)
{
    uint64_t cap = *capacity ? *capacity : 8;
    while (cap < needed)
        cap *= 2;
    if (cap > UINT32_MAX) base_oom(SIZE_MAX);
    *capacity = (uint32_t)cap;
    return base_realloc(data, (size_t)cap * item);
}

char *base_format(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) base_oom(0);
    return text;
}

struct arena_chunk {
    arena_chunk *before;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

enum { ARENA_FIRST = 512, ARENA_CHUNK = 64 * 1024 };

void *arena_alloc(arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) base_oom(size);
    size = (size + 15) & ~(size_t)15;
    if (!a->chunk || a->chunk->size - a->chunk->used < size) {
        size_t wanted = a->chunk ? a->chunk->size * 2 : ARENA_FIRST; /* small arenas stay small: there is one a function */
        if (wanted > ARENA_CHUNK) wanted = ARENA_CHUNK;
        size_t room = size > wanted / 4 ? size : wanted;
        arena_chunk *chunk = base_alloc_zero(1, sizeof *chunk + room);
        chunk->size = room;
        if (a->chunk && room == size) { /* a large block goes behind the chunk that still has room */
            chunk->before = a->chunk->before;
            a->chunk->before = chunk;
            chunk->used = size;
            a->used += size;
            return chunk->bytes;
        }
        chunk->before = a->chunk;
        a->chunk = chunk;
    }
    void *p = a->chunk->bytes + a->chunk->used;
    a->chunk->used += size;
    a->used += size;
    return p;
}

void *arena_copy(arena *a, const void *from, size_t size)
{
    void *p = arena_alloc(a, size);
    if (size) memcpy(p, from, size);
    return p;
}

char *arena_string(arena *a, const char *text, size_t len)
{
    char *p = arena_alloc(a, len + 1);
    memcpy(p, text, len);
    return p;
}

bool arena_has(const arena *a, const void *at)
{
    uintptr_t address = (uintptr_t)at;
    for (const arena_chunk *chunk = a->chunk; chunk; chunk = chunk->before)
        if (address >= (uintptr_t)chunk->bytes && address < (uintptr_t)chunk->bytes + chunk->size) return true;
    return false;
}

void arena_free(arena *a)
{
    while (a->chunk) {
        arena_chunk *before = a->chunk->before;
        free(a->chunk);
        a->chunk = before;
    }
    a->used = 0;
}
