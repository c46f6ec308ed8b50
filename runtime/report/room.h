/* Whether a file may grow by so many bytes (`ulimit -f`). A write beyond the limit is a signal that ends the program,
 * which has not asked for our logs. System calls are made here, since neither engine may use libc's. */
#ifndef RACE_ROOM_H
#define RACE_ROOM_H

#include "runtime/report/barrier.h"

#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>

static inline bool room_for(int fd, size_t size)
{
    enum { FROM_HERE = 1 }; /* SEEK_CUR */
    struct rlimit limit;
    struct stat st;
    if (barrier_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0) || limit.rlim_cur == RLIM_INFINITY)
        return true;
    if (barrier_call(SYS_fstat, fd, (long)&st, 0, 0, 0) || !S_ISREG(st.st_mode)) return true;
    const long here = barrier_call(SYS_lseek, fd, 0, FROM_HERE, 0, 0);
    const uint64_t at = here > st.st_size ? (uint64_t)here : (uint64_t)st.st_size;
    return at <= limit.rlim_cur && size <= limit.rlim_cur - at;
}

#endif
