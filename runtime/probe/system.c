/* System calls and memory without libc: errno of the program stays as it is, and nothing here takes a lock that the
 * program could hold. */
#include "runtime/probe/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* The compiler calls these by itself. They are ours alone (hidden), and use general registers only; no string
 * instructions, since the direction flag may be the program's. */
typedef uint64_t __attribute__((may_alias, aligned(1))) any_word;

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    char *t = to;
    const char *f = from;
    for (; size >= sizeof(any_word); size -= sizeof(any_word), t += sizeof(any_word), f += sizeof(any_word))
        *(any_word *)t = *(const any_word *)f;
    while (size-- > 0)
        *t++ = *f++;
    return to;
}

void *memset(void *at, int byte, size_t size)
{
    const uint64_t word = (uint8_t)byte * (uint64_t)0x0101010101010101;
    char *t = at;
    for (; size >= sizeof word; size -= sizeof word, t += sizeof word)
        *(any_word *)t = word;
    while (size-- > 0)
        *t++ = (char)byte;
    return at;
}

void *memmove(void *to, const void *from, size_t size)
{
    char *t = to;
    const char *f = from;
    if (t <= f || t >= f + size) return memcpy(to, from, size);
    while (size-- > 0)
        t[size] = f[size];
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *l = left, *r = right;
    typedef uint64_t __attribute__((may_alias, aligned(1))) word;
    size_t i = 0;
    while (i + sizeof(word) <= size && *(const word *)(l + i) == *(const word *)(r + i))
        i += sizeof(word);
    for (; i < size; i++)
        if (l[i] != r[i]) return l[i] < r[i] ? -1 : 1;
    return 0;
}

size_t strlen(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    return len;
}

int strcmp(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return (unsigned char)*left - (unsigned char)*right;
}

int strncmp(const char *left, const char *right, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (left[i] != right[i] || !left[i]) return (unsigned char)left[i] - (unsigned char)right[i];
    return 0;
}

void *memchr(const void *at, int byte, size_t size)
{
    const unsigned char *bytes = at;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == (unsigned char)byte) return (void *)(bytes + i);
    return NULL;
}

char *strchr(const char *text, int c)
{
    for (; *text != (char)c; text++)
        if (!*text) return NULL;
    return (char *)text;
}

char *strrchr(const char *text, int c)
{
    const char *found = NULL;
    for (;; text++) {
        if (*text == (char)c) found = text;
        if (!*text) return (char *)found;
    }
}

long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static bool is_error(long result)
{
    return (unsigned long)result > -4096ul;
}

void *sys_map(void *hint, size_t size, int protection, int flags, int fd)
{
    long at = sys_call(SYS_mmap, (long)hint, (long)size, protection, flags, fd, 0);
    return is_error(at) ? NULL : (void *)at;
}

void sys_unmap(void *at, size_t size)
{
    if (size) sys_call(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0);
}

bool sys_protect(void *at, size_t size, int protection)
{
    return !sys_call(SYS_mprotect, (long)at, (long)size, protection, 0, 0, 0);
}

static int open_file(const char *path)
{
    return (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0, 0);
}

const void *sys_map_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open_file(path);
    *size = 0;
    if (fd < 0) return NULL;
    void *map = NULL;
    if (!sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) && S_ISREG(st.st_mode)) {
        map = st.st_size ? sys_map(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd) : &probe; /* any pointer */
        if (map) *size = (size_t)st.st_size;
    } else {
        *size = 1;
    }
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return map;
}

char *sys_read_file(const char *path, size_t *size, size_t *mapped)
{
    int fd = open_file(path);
    if (fd < 0) return NULL;
    size_t cap = 1 << 18, len = 0;
    char *text = sys_map(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    while (text) {
        long got = sys_call(SYS_read, fd, (long)text + (long)len, (long)(cap - len - 1), 0, 0, 0);
        if (got <= 0) break;
        len += (size_t)got;
        if (len < cap - 1) continue;
        long more = sys_call(SYS_mremap, (long)text, (long)cap, (long)(2 * cap), MREMAP_MAYMOVE, 0, 0);
        if (is_error(more)) break;
        text = (char *)more;
        cap *= 2;
    }
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    *size = len;
    *mapped = cap;
    return text;
}

bool sys_copy(void *to, uint64_t from, size_t size)
{
    const uint64_t high = probe_self.stack_high;
    const uint64_t low = probe_self.stack_is_fixed ? probe_self.stack_low : probe_self.stack_seen;
    if (low && from >= low && from < high && size <= high - from) { /* it is there */
        memcpy(to, (const void *)from, size);
        return true;
    }
    probe_thread *self = &probe_self;
    if (self->is_direct) return probe_peek(to, from, size);
    const uint64_t page = from & ~(uint64_t)(PROBE_PAGE - 1);
    const bool in_page = self->is_in_call && page && size <= page + PROBE_PAGE - from;
    if (in_page && (page == self->readable[0] || page == self->readable[1])) {
        memcpy(to, (const void *)from, size);
        return true;
    }
    struct iovec here = {to, size}, there = {(void *)from, size};
    if (sys_call(SYS_process_vm_readv, probe.pid, (long)&here, 1, (long)&there, 1, 0) != (long)size) return false;
    if (in_page) self->readable[self->readable_next++ % 2] = page;
    return true;
}

/* What a library is about to read is looked at in small steps, which are not worth a system call each. */
void sys_call_begins(bool directly)
{
    probe_thread *self = &probe_self;
    self->readable[0] = self->readable[1] = 0;
    self->is_in_call = true;
    self->is_direct = directly;
}

void sys_call_ends(void)
{
    probe_self.is_in_call = probe_self.is_direct = false;
}

void sys_lock(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void sys_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
