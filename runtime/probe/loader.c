/* The loader's locks. A library is loaded once for all threads that ask for it: whoever finds it there already relies on what its
 * constructors have done in another thread, and is ordered behind them by the lock that the loader holds meanwhile. The loader takes
 * its locks through pointers to libc's functions, which it finds for itself; these lead to ours instead. Nothing wrapped around
 * dlopen would do: it looks at where it is called from. */
#include "runtime/probe/probe.h"

#include <link.h>
#include <sys/mman.h>

typedef int lock_function(pthread_mutex_t *);

static struct {
    lock_function *lock, *unlock;
} real;

static void acquire(void *lock)
{
    ft_acquire(probe_self.thread, (uint64_t)lock);
}

static void release(void *lock)
{
    ft_release(probe_self.thread, (uint64_t)lock);
}

static int loader_lock(pthread_mutex_t *lock)
{
    const int error = real.lock(lock);
    if (!error && probe_sees()) probe_in_core(acquire, lock);
    return error;
}

static int loader_unlock(pthread_mutex_t *lock)
{
    if (probe_sees()) probe_in_core(release, lock);
    return real.unlock(lock);
}

static bool is_constant(const struct dl_phdr_info *info, uint64_t at)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO &&
            at - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

static void replace(const struct dl_phdr_info *info, lock_function **at, lock_function *by)
{
    void *page = (void *)((uint64_t)at & ~(uint64_t)(PROBE_PAGE - 1));
    const bool constant = is_constant(info, (uint64_t)at);
    if (constant && !sys_protect(page, PROBE_PAGE, PROT_READ | PROT_WRITE)) return;
    *at = by;
    if (constant) sys_protect(page, PROBE_PAGE, PROT_READ);
}

static int event_module(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (info->dlpi_addr != _r_debug.r_ldbase) return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_W)) continue;
        lock_function **word = (lock_function **)(info->dlpi_addr + ((h->p_vaddr + 7) & ~(uint64_t)7));
        lock_function **end = (lock_function **)(info->dlpi_addr + h->p_vaddr + h->p_memsz);
        for (; word + 1 <= end; word++) {
            if (*word == real.lock) replace(info, word, loader_lock);
            if (*word == real.unlock) replace(info, word, loader_unlock);
        }
    }
    return 1;
}

void loader_start(void)
{
    real.lock = (lock_function *)symbol_next("pthread_mutex_lock");
    real.unlock = (lock_function *)symbol_next("pthread_mutex_unlock");
    if (real.lock && real.unlock) dl_iterate_phdr(event_module, NULL);
}
