/* Threads with small stacks use nearly all of what they asked for, and find that much. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LIBC = 6000 }; /* what libc and its thread-local storage take of a stack */

static int touched[2]; /* checks are made here */

static size_t fill(size_t bytes)
{
    char part[512];
    memset(part, (int)bytes, sizeof part);
    __asm__ volatile("" : : "r"(part) : "memory");
    touched[bytes / sizeof part % 2]++;
    return bytes > sizeof part ? fill(bytes - sizeof part) + sizeof part : bytes;
}

static void *work(void *wanted)
{
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes)) return "no attributes";
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    if (size < *(const size_t *)wanted) return "too small";
    fill((*(const size_t *)wanted - LIBC) / 2); /* a frame is larger than what it fills */
    return "done";
}

int main(void)
{
    const size_t sizes[] = {PTHREAD_STACK_MIN, PTHREAD_STACK_MIN + 4096, 32768, 65536, 1 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        void *result;
        size_t after;
        pthread_attr_init(&attributes);
        int code = pthread_attr_setstacksize(&attributes, sizes[i]);
        if (!code) code = pthread_create(&thread, &attributes, work, (void *)&sizes[i]);
        if (!code) code = pthread_join(thread, &result);
        pthread_attr_getstacksize(&attributes, &after);
        printf("%zu: %s, %zu\n", sizes[i], code ? strerror(code) : (char *)result, after);
        pthread_attr_destroy(&attributes);
    }
    return 0;
}
