/* Memory that is allocated and freed, and mappings.
 *
 * Options: -lstdc++ -lgomp */
/* clang-format off */
#include "rows.h"

#include <malloc.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { SMALL = 1200, SIZE = 2000, LARGE = 16000, BIG = 1 << 16, TRIES = 50 };
static const char nothrow;
#define WEAK __attribute__((weak))
WEAK void cfree(void *);
void *_Znwm(size_t), *_Znam(size_t), *_ZnwmRKSt9nothrow_t(size_t, const void *), *_ZnamRKSt9nothrow_t(size_t, const void *);
void *_ZnwmSt11align_val_t(size_t, size_t), *_ZnamSt11align_val_t(size_t, size_t);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t, size_t, const void *), *_ZnamSt11align_val_tRKSt9nothrow_t(size_t, size_t,
     const void *);
void _ZdlPv(void *), _ZdaPv(void *), _ZdlPvm(void *, size_t), _ZdaPvm(void *, size_t);
void _ZdlPvRKSt9nothrow_t(void *, const void *), _ZdaPvRKSt9nothrow_t(void *, const void *);
void _ZdlPvSt11align_val_t(void *, size_t), _ZdaPvSt11align_val_t(void *, size_t);
void _ZdlPvmSt11align_val_t(void *, size_t, size_t), _ZdaPvmSt11align_val_t(void *, size_t, size_t);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *, size_t, const void *), _ZdaPvSt11align_val_tRKSt9nothrow_t(void *, size_t,
     const void *);

/* The blocks of a case are too large for what threads keep to themselves, and there is one arena. */
__attribute__((constructor)) static void prepare(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 1 << 24);
    mallopt(M_TRIM_THRESHOLD, 1 << 24);
}

#define FILL(p) (((volatile char *)(p))[0] = ((volatile char *)(p))[SMALL - 1] = 1)

/* The last byte that is filled is not in it. */
#define IS_OTHER(size) (p + SMALL <= old || p + SMALL > old + (size))

/* One thread frees `size` bytes, and the other gets some of that memory again. */
#define REUSE(name, kind, heap, first, size, release, again, wrong_one, wrong_two)                                              \
    PAIR_MORE(name, kind, ,                                                                                                     \
              char *p = first; FILL(p); release; row_give(p); row_wait_back(),                                                  \
              char *old = row_take(); char *p = again;                                                                          \
              for (int i = 0; i < TRIES && IS_OTHER(size); i++) p = again;                                 \
              if IS_OTHER(size) row_failed(#name ": other memory"); FILL(p); row_post_back(),              \
              wrong_one, wrong_two, .together = true, .is_heap = heap)
#define ALLOCATES(name, ...)                                                                                                    \
    REUSE(name, heap, true, malloc(LARGE), LARGE, free(p), (__VA_ARGS__), char *p = (__VA_ARGS__); row_give(p); FILL(p),        \
          char *p = row_take(); FILL(p))
#define FREES(name, allocate, release)                                                                                          \
    REUSE(name, free, false, allocate, SIZE, release, malloc(SMALL), char *p = allocate; FILL(p); row_give(p); row_wait_back(), \
          char *p = row_take(); release; row_post_back())
/* There is something behind the block, so that it must move. */
#define ENCLOSED ({ char *block = malloc(SIZE); (void)!malloc(SIZE); block; })

ALLOCATES(malloc, malloc(SIZE))
ALLOCATES(calloc, calloc(SIZE / 100, 100))
ALLOCATES(realloc, realloc(NULL, SIZE))
ALLOCATES(reallocarray, reallocarray(NULL, SIZE / 100, 100))
ALLOCATES(aligned_alloc, aligned_alloc(64, SIZE))
ALLOCATES(memalign, memalign(64, SIZE))
ALLOCATES(posix_memalign, ({ void *new = NULL; if (posix_memalign(&new, 64, SIZE)) row_failed("posix_memalign"); new; }))
ALLOCATES(valloc, valloc(SIZE))
ALLOCATES(pvalloc, pvalloc(SIZE))
ALLOCATES(_Znwm, _Znwm(SIZE))
ALLOCATES(_Znam, _Znam(SIZE))
ALLOCATES(_ZnwmRKSt9nothrow_t, _ZnwmRKSt9nothrow_t(SIZE, &nothrow))
ALLOCATES(_ZnamRKSt9nothrow_t, _ZnamRKSt9nothrow_t(SIZE, &nothrow))
ALLOCATES(_ZnwmSt11align_val_t, _ZnwmSt11align_val_t(SIZE, 64))
ALLOCATES(_ZnamSt11align_val_t, _ZnamSt11align_val_t(SIZE, 64))
ALLOCATES(_ZnwmSt11align_val_tRKSt9nothrow_t, _ZnwmSt11align_val_tRKSt9nothrow_t(SIZE, 64, &nothrow))
ALLOCATES(_ZnamSt11align_val_tRKSt9nothrow_t, _ZnamSt11align_val_tRKSt9nothrow_t(SIZE, 64, &nothrow))
ALLOCATES(omp_alloc, omp_alloc(SIZE, omp_default_mem_alloc))

FREES(omp_free, omp_alloc(SIZE, omp_default_mem_alloc), omp_free(p, omp_default_mem_alloc))
FREES(free, malloc(SIZE), free(p))
FREES(cfree, malloc(SIZE), cfree(p))
FREES(realloc, ENCLOSED, (void)!realloc(p, 10 * SIZE))
FREES(reallocarray, ENCLOSED, (void)!reallocarray(p, 10, SIZE))
FREES(_ZdlPv, _Znwm(SIZE), _ZdlPv(p))
FREES(_ZdaPv, _Znam(SIZE), _ZdaPv(p))
FREES(_ZdlPvm, _Znwm(SIZE), _ZdlPvm(p, SIZE))
FREES(_ZdaPvm, _Znam(SIZE), _ZdaPvm(p, SIZE))
FREES(_ZdlPvRKSt9nothrow_t, _Znwm(SIZE), _ZdlPvRKSt9nothrow_t(p, &nothrow))
FREES(_ZdaPvRKSt9nothrow_t, _Znam(SIZE), _ZdaPvRKSt9nothrow_t(p, &nothrow))
FREES(_ZdlPvSt11align_val_t, _ZnwmSt11align_val_t(SIZE, 64), _ZdlPvSt11align_val_t(p, 64))
FREES(_ZdaPvSt11align_val_t, _ZnamSt11align_val_t(SIZE, 64), _ZdaPvSt11align_val_t(p, 64))
FREES(_ZdlPvmSt11align_val_t, _ZnwmSt11align_val_t(SIZE, 64), _ZdlPvmSt11align_val_t(p, SIZE, 64))
FREES(_ZdaPvmSt11align_val_t, _ZnamSt11align_val_t(SIZE, 64), _ZdaPvmSt11align_val_t(p, SIZE, 64))
FREES(_ZdlPvSt11align_val_tRKSt9nothrow_t, _ZnwmSt11align_val_t(SIZE, 64), _ZdlPvSt11align_val_tRKSt9nothrow_t(p, 64, &nothrow))
FREES(_ZdaPvSt11align_val_tRKSt9nothrow_t, _ZnamSt11align_val_t(SIZE, 64), _ZdaPvSt11align_val_tRKSt9nothrow_t(p, 64, &nothrow))

/* --- mappings --------------------------------------------------------------------------------------------------------- */

static void *raw_map(void *at)
{
    void *result;
    register long flags __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    register long fd __asm__("r8") = -1;
    register long offset __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_mmap), "D"(at), "S"((long)BIG), "d"((long)(PROT_READ | PROT_WRITE)), "r"(flags), "r"(fd),
     "r"(offset)
                     : "rcx", "r11", "memory");
    return result;
}
#define RW (PROT_READ | PROT_WRITE), MAP_PRIVATE | MAP_ANONYMOUS
#define MAPPED mmap(NULL, BIG, RW, -1, 0)
#define MOVED(p) mremap(MAPPED, BIG, BIG, MREMAP_MAYMOVE | MREMAP_FIXED, p)

/* Other memory takes the place of what another thread has written. */
PAIR(mmap, w->ptr = MAPPED, FILL(w->ptr), FILL(mmap(w->ptr, BIG, RW | MAP_FIXED, -1, 0)), FILL(mmap(w->ptr, BIG,
     RW | MAP_FIXED, -1, 0)),
     FILL(w->ptr))
PAIR(mmap64, w->ptr = MAPPED, FILL(w->ptr), FILL(mmap64(w->ptr, BIG, RW | MAP_FIXED, -1, 0)),
     FILL(mmap64(w->ptr, BIG, RW | MAP_FIXED, -1, 0)), FILL(w->ptr))
PAIR(mremap, w->ptr = MAPPED, FILL(w->ptr), FILL(MOVED(w->ptr)), FILL(MOVED(w->ptr)), FILL(w->ptr))
ONLY_RIGHT(munmap, w->ptr = MAPPED, FILL(w->ptr), munmap(w->ptr, BIG); FILL(raw_map(w->ptr)))
