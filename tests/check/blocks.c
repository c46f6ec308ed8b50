/* Text and blocks of unknown length stay in the array that they begin in. WRONG: both threads write to the same one. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
    struct {
        char directory[64];
        long accounts;
    } users;
    char name[64];
    long verbose;
};

struct settings settings;
static volatile size_t length = 9;

static void *writes(void *argument)
{
    const char *text = argument;
    strncpy(settings.users.directory, text, length);
    snprintf(settings.name, length, "%s", text);
    return NULL;
}

static void *reads(void *argument)
{
#ifdef WRONG
    writes(argument);
#endif
    settings.verbose++;
    settings.users.accounts++;
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, writes, argv[0]) || pthread_create(&threads[1], NULL, reads, argv[0])) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d %ld %ld %s %s\n", argc, settings.verbose, settings.users.accounts, settings.users.directory, settings.name);
    return 0;
}
