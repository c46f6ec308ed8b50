/* A program that treats its own code as data, checked at every access: the argument says how. What it prints does not
 * depend on who watches, but for `scan`, which says whether its code is what the linker has made.
 *
 *   write    overwrites constants in code that has run, and in code that a thread is running
 *   system   the same, asking for it by syscall()
 *   key      the same, by pkey_mprotect
 *   remap    puts a copy of its code at the place of its code
 *   file     puts the code of its file there, as an updater would
 *   scan     compares its code with its file
 *   closes   loads and unloads a library (second argument) two thousand times, and calls it each time
 *   cancel   cancels threads in the middle of everything they do */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CONSTANT = 0x12345678, PAGE = 4096 };
static long counted[4];
static _Atomic int stop;

/* Its sites are around the constant, so that the constant moves when they are displaced. */
__attribute__((noinline, noclone)) static int constant(long *counter)
{
    counter[0]++;
    int value = CONSTANT;
    __asm__("" : "+r"(value));
    counter[1]++;
    return value;
}

static struct {
    uintptr_t start, end, bias;
    size_t offset; /* in the file */
} code;

static int find_code(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            code.bias = info->dlpi_addr;
            code.start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            code.end = code.start + info->dlpi_phdr[i].p_filesz;
            code.offset = info->dlpi_phdr[i].p_offset;
        }
    return 1; /* the first one is the program */
}

static uintptr_t first_page(void) { return code.start & ~(uintptr_t)(PAGE - 1); }
static size_t page_bytes(void) { return ((code.end + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) - first_page(); }

static void *keep_running(void *unused)
{
    long counters[2] = {0};
    for (; !stop;)
        constant(counters);
    return unused;
}

static void must(int good, const char *what)
{
    if (good) return;
    perror(what);
    exit(3);
}

static int by_system(void *at, size_t size, int protection)
{
    return (int)syscall(SYS_mprotect, at, size, protection);
}

static int by_key(void *at, size_t size, int protection)
{
    return pkey_mprotect(at, size, protection, -1);
}

static void write_constants(int (*protect)(void *, size_t, int))
{
    pthread_t thread;
    printf("%x\n", constant(counted));
    must(!pthread_create(&thread, NULL, keep_running, NULL), "thread");
    for (int round = 1; round <= 3; round++) {
        must(!protect((void *)first_page(), page_bytes(), PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
        int old = CONSTANT + round - 1, new = CONSTANT + round, found = 0;
        for (uint8_t *at = (uint8_t *)(uintptr_t)constant; at < (uint8_t *)(uintptr_t)constant + 64; at++)
            if (!memcmp(at, &old, sizeof old)) {
                memcpy(at, &new, sizeof new);
                found++;
            }
        must(!protect((void *)first_page(), page_bytes(), PROT_READ | PROT_EXEC), "mprotect");
        printf("%d found, now %x\n", found, constant(counted));
    }
    stop = 1;
    pthread_join(thread, NULL);
}

/* From here on nothing of the program may be called until the code is back: all of it lies in what is moved. */
static void put_back(int file)
{
    void *copy = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(copy != MAP_FAILED, "mmap");
    memcpy(copy, (void *)first_page(), page_bytes());
    if (file < 0) {
        must(!mprotect(copy, page_bytes(), PROT_READ | PROT_EXEC), "mprotect");
        must(mremap(copy, page_bytes(), page_bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, (void *)first_page()) != MAP_FAILED, "mremap");
    } else {
        off_t offset = (off_t)(code.offset & ~(size_t)(PAGE - 1));
        must(mmap((void *)first_page(), page_bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset) != MAP_FAILED, "mmap");
    }
    for (int i = 0; i < 1000; i++)
        constant(counted);
    printf("%x %ld\n", constant(counted), counted[0]);
}

static void scan(int file)
{
    uint8_t *bytes = malloc(code.end - code.start);
    must(bytes && pread(file, bytes, code.end - code.start, (off_t)code.offset) == (ssize_t)(code.end - code.start), "read");
    unsigned sum = 0;
    for (uintptr_t at = code.start; at < code.end; at++)
        sum = sum * 31 + *(const uint8_t *)at;
    puts(memcmp(bytes, (void *)code.start, code.end - code.start) ? "changed" : "as it was");
    printf("%d\n", sum != 0);
    free(bytes);
}

static void load_and_unload(const char *path)
{
    long sum = 0;
    for (int i = 0; i < 2000; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        must(library != NULL, "dlopen");
        long (*function)(long) = (long (*)(long))dlsym(library, "plugin_work");
        must(function != NULL, "dlsym");
        sum += function(i);
        dlclose(library);
    }
    printf("%ld\n", sum);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long under_lock, outside;

static void *be_cancelled(void *unused)
{
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (long private[8] = {0}, i = 0;; i++) { /* no lock, no heap: what may be cancelled at any instruction */
        private[i % 8] += i;
        __atomic_fetch_add(&outside, private[(i + 1) % 8] & 1, __ATOMIC_SEQ_CST);
    }
    return unused;
}

static void cancel_many(void)
{
    int cancelled = 0;
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        void *result;
        must(!pthread_create(&thread, NULL, be_cancelled, NULL), "thread");
        if (i % 3) usleep((useconds_t)(i % 7 * 50));
        pthread_cancel(thread);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
        pthread_mutex_lock(&lock);
        under_lock++;
        pthread_mutex_unlock(&lock);
    }
    printf("%d cancelled, %ld\n", cancelled, under_lock);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int file = open(argv[0], O_RDONLY | O_CLOEXEC);
    dl_iterate_phdr(find_code, NULL);
    if (!strcmp(how, "write")) write_constants(mprotect);
    if (!strcmp(how, "system")) write_constants(by_system);
    if (!strcmp(how, "key")) write_constants(by_key);
    if (!strcmp(how, "remap")) put_back(-1);
    if (!strcmp(how, "file")) put_back(file);
    if (!strcmp(how, "scan")) scan(file);
    if (!strcmp(how, "closes") && argc > 2) load_and_unload(argv[2]);
    if (!strcmp(how, "cancel")) cancel_many();
    return 0;
}
