/* Loads and unloads libraries in turn, and has two threads call `work` of each, which races once.
 *
 *   reload ROUNDS LIBRARY... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *call(void *function)
{
    ((void (*)(void))function)();
    return NULL;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[1]) : 0;
    for (int i = 0; i < rounds; i++) {
        void *library = dlopen(argv[2 + i % (argc - 2)], RTLD_NOW), *work = library ? dlsym(library, "work") : NULL;
        pthread_t threads[2];
        if (!work) return 3;
        for (int k = 0; k < 2; k++)
            pthread_create(&threads[k], NULL, call, work);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
        dlclose(library);
        void *page = (void *)((unsigned long)work & ~4095ul); /* now and then it has to go somewhere else */
        if (i % 16 == 15 && mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page) return 4;
    }
    return puts("done") < 0;
}
