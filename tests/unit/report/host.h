/* A host for reports in tests: memory from the core's test host, files in memory, text collected. */
#ifndef RACE_TEST_REPORT_HOST_H
#define RACE_TEST_REPORT_HOST_H

#include "runtime/report/report.h"
#include "tests/unit/core/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEST_FILES = 8, TEST_FILE_SIZE = 1 << 16, TEST_FIRST_FILE = 10 };

typedef struct {
    test_host core;
    struct {
        char bytes[TEST_FILE_SIZE];
        size_t size;
        char path[256];
        bool closed;
    } files[TEST_FILES]; /* 0: stderr */
    unsigned file_count;
    size_t room; /* bytes that can still be written to files; 0: any */
    bool no_files;
    int pid, halted;
} report_test_host;

static inline void *report_test_reserve(void *context, size_t size)
{
    return test_reserve(&((report_test_host *)context)->core, size);
}
/* As the engines do, it reads on behind the end of a string, as far as the page goes. */
__attribute__((no_sanitize_address)) static inline bool report_test_read(void *context, uint64_t from, void *to, size_t size)
{
    (void)context;
    if (from < 1 << 24) return false; /* made-up addresses of tests */
    for (size_t i = 0; i < size; i++)
        ((volatile char *)to)[i] = ((const volatile char *)from)[i];
    return true;
}
static inline const void *report_test_map(void *context, const char *path, size_t *size)
{
    (void)context;
    struct stat st;
    *size = !stat(path, &st) && !S_ISREG(st.st_mode);
    int fd = *size ? -1 : open(path, O_RDONLY);
    if (fd < 0) return NULL;
    *size = fstat(fd, &st) ? 0 : (size_t)st.st_size;
    void *map = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0) : (void *)"";
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}
static inline void report_test_unmap(void *context, const void *map, size_t size)
{
    (void)context;
    if (size) munmap((void *)map, size);
}
static inline int report_test_open(void *context, const char *path)
{
    report_test_host *h = context;
    if (h->no_files || h->file_count + 1 >= TEST_FILES) return -1;
    unsigned i = ++h->file_count;
    h->files[i].size = 0;
    snprintf(h->files[i].path, sizeof h->files[i].path, "%s", path);
    return TEST_FIRST_FILE + (int)i;
}
static inline bool report_test_write(void *context, int file, const void *bytes, size_t size)
{
    report_test_host *h = context;
    unsigned i = file == REPORT_STDERR ? 0 : (unsigned)(file - TEST_FIRST_FILE);
    size_t n = size;
    if (i && h->room && n >= h->room) n = h->room - 1;
    if (n > TEST_FILE_SIZE - h->files[i].size) n = TEST_FILE_SIZE - h->files[i].size;
    memcpy(h->files[i].bytes + h->files[i].size, bytes, n);
    h->files[i].size += n;
    if (i && h->room) h->room -= n;
    return n == size;
}
static inline void report_test_close(void *context, int file)
{
    ((report_test_host *)context)->files[file - TEST_FIRST_FILE].closed = true;
}
static inline uint64_t report_test_now(void *context)
{
    (void)context;
    return 42;
}
static inline int report_test_pid(void *context)
{
    return ((report_test_host *)context)->pid;
}
static inline void report_test_halt(void *context, int code)
{
    ((report_test_host *)context)->halted = code;
}

/* What was printed so far, as a string; forgotten then. */
static inline const char *report_test_said(report_test_host *h)
{
    h->files[0].bytes[h->files[0].size] = 0;
    h->files[0].size = 0;
    return h->files[0].bytes;
}

/* A report with a core. */
static inline report *report_test_start(report_test_host *h, const report_options *options, const char **problem)
{
    for (unsigned i = 0; i < h->core.reservations; i++) { /* as test_core does */
        if (h->core.reserved[i].used && madvise(h->core.reserved[i].at, h->core.reserved[i].size, MADV_DONTNEED)) abort();
        h->core.reserved[i].used = false;
    }
    h->core.in_use = 0;
    h->file_count = 0;
    h->files[0].size = 0;
    h->halted = -1;
    h->pid = 7;
    pthread_mutex_init(&h->core.lock, NULL);
    report_host host = {
        .context = h,
        .engine = "test",
        .reserve = report_test_reserve,
        .read = report_test_read,
        .map = report_test_map,
        .unmap = report_test_unmap,
        .open = report_test_open,
        .write = report_test_write,
        .close = report_test_close,
        .now = report_test_now,
        .pid = report_test_pid,
        .halt = report_test_halt,
    };
    report *r = report_create(&host, options, "/usr/bin/program", problem);
    if (!r) return NULL;
    ft_host core_host = report_core_host(r);
    r->core = ft_create(&core_host);
    return r;
}

#endif
