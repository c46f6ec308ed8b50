/* The heavy barrier of ft_host, by the kernel: membarrier interrupts every processor that runs a thread of the process.
 * System calls are made here, since neither engine may use libc's. */
#ifndef RACE_BARRIER_H
#define RACE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { BARRIER_EXPEDITED = 8, BARRIER_REGISTER = 16 };

static inline long barrier_call(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline bool barrier_is_possible(void)
{
    return !barrier_call(SYS_membarrier, BARRIER_REGISTER, 0, 0, 0, 0) &&
           !barrier_call(SYS_membarrier, BARRIER_EXPEDITED, 0, 0, 0, 0);
}

static inline void barrier_by_kernel(void *context)
{
    enum { SIZE = 4096 };
    (void)context;
    if (!barrier_call(SYS_membarrier, BARRIER_EXPEDITED, 0, 0, 0, 0)) return;
    if (barrier_is_possible()) return;
    /* The program has forbidden it since. Taking memory away interrupts the others as well. */
    const long flags = MAP_PRIVATE | MAP_ANONYMOUS;
    volatile char *page = (volatile char *)barrier_call(SYS_mmap, 0, SIZE, PROT_READ | PROT_WRITE, flags, -1);
    if ((unsigned long)page >= -(unsigned long)SIZE) return;
    *page = 1;
    barrier_call(SYS_munmap, (long)page, SIZE, 0, 0, 0);
}

#endif
