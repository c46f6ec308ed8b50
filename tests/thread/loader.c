/* A library that several threads load at once (built with LIBRARY), and the program that does (without).
 *
 *   loader LIBRARY right   each thread uses what the constructor has made, whoever's dlopen ran it
 *   loader LIBRARY again   what one has written to is unloaded by the other, and new where that loads it again
 *   loader LIBRARY wrong   both write to it */
#ifdef LIBRARY
static int table[16], count;

__attribute__((constructor)) static void start(void)
{
    for (int i = 0; i < 16; i++)
        table[i] = i * i;
}

int get(int i)
{
    return table[i & 15];
}

int add(int n)
{
    return count += n; /* RACE */
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int function(int);

static const char *library, *kind;

static void *load(void)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle) exit(2);
    return handle;
}

static function *find(void *handle, const char *name)
{
    return (function *)dlsym(handle, name);
}

/* Orders nothing, as far as anybody can tell. */
static void wait_for_folder(const char *name)
{
    while (access(name, F_OK))
        usleep(1000);
}

static void *use(void *number)
{
    long sum = 0;
    usleep((unsigned)(long)number * 5000);
    function *get = find(load(), "get");
    for (int i = 0; i < 16; i++)
        sum += get(i);
    return (void *)sum;
}

static void *write_to_it(void *unused)
{
    function *add = find(load(), "add");
    add(1);
    mkdir("written", 0700);
    return unused;
}

static void *load_again(void *unused)
{
    void *handle = load();
    wait_for_folder("written");
    dlclose(handle);
    dlclose(handle); /* the other's */
    find(load(), "add")(1);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    library = argv[1];
    kind = argv[2];
    void *(*first)(void *) = *kind == 'r' ? use : write_to_it;
    void *(*second)(void *) = *kind == 'r' ? use : *kind == 'a' ? load_again : write_to_it;
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, first, (void *)0L) || pthread_create(&threads[1], NULL, second, (void *)1L)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("loaded");
    return 0;
}
#endif
