/* What every folder of the static phase stands on: errors, memory, growing arrays.
 *
 * Errors are returned, never thrown: a function that can fail takes a `race_error *`, writes one line into it and
 * returns a negative number. Running out of memory is the exception, since no caller can do anything useful: it calls
 * `base_oom`, which prints one line and ends the process with code 2 (nothing is lost: files are written beside and
 * renamed). */
#ifndef RACE_BASE_H
#define RACE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    char text[512]; /* one line, without "race: " in front and without a newline */
} race_error;

/* Formats into `error` (which may be NULL) and returns -1. */
int base_fail(race_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

_Noreturn void base_oom(size_t wanted);

/* Never return NULL; a size of 0 is allowed. `base_grow` doubles `*capacity` until `needed` items of `item` bytes fit. */
void *base_alloc(size_t size);
void *base_alloc_zero(size_t count, size_t size);
void *base_realloc(void *old, size_t size);
void *base_grow(void *data, uint32_t *capacity, uint32_t needed, size_t item);
char *base_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* free() the result */

/* --- growing arrays: VEC(int) v = {0}; vec_push(&v, 3); v.data[0]; vec_free(&v); --------------------------------- */

#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *data;                                                                                                    \
        uint32_t len, cap;                                                                                             \
    }

#define vec_reserve(v, n)                                                                                              \
    ((uint32_t)(n) > (v)->cap ? (void)((v)->data = base_grow((v)->data, &(v)->cap, (uint32_t)(n), sizeof *(v)->data))   \
                              : (void)0)
#define vec_push(v, ...) (vec_reserve((v), (v)->len + 1), (void)((v)->data[(v)->len++] = (__VA_ARGS__)))
#define vec_clear(v)     ((void)((v)->len = 0))
#define vec_free(v)      (free((v)->data), (void)((v)->data = NULL, (v)->len = (v)->cap = 0))

/* --- arenas: memory that is freed all at once ---------------------------------------------------------------------- */

typedef struct arena_chunk arena_chunk;
typedef struct {
    arena_chunk *chunk; /* newest chunk; each points to the one before */
    size_t used;        /* bytes handed out, for statistics */
} arena;

void *arena_alloc(arena *a, size_t size); /* zeroed, aligned to 16 */
void *arena_copy(arena *a, const void *from, size_t size);
char *arena_string(arena *a, const char *text, size_t len); /* NUL added */
bool arena_has(const arena *a, const void *at); /* it was handed out by this one */
void arena_free(arena *a);

#endif
