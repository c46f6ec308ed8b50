/* A program that starts itself anew, writes a title over its arguments and its environment, as servers do, and executes
 * printenv with an environment of its own. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv, char **environment)
{
    char *again[] = {argv[0], "again", NULL}, *print[] = {"printenv", "RACE_OPTIONS", NULL}, *none[] = {NULL};
    if (argc < 2) return execve("/proc/self/exe", again, environment);
    for (char **entry = environment; *entry; entry++)
        memset(*entry, 't', strlen(*entry));
    execve("/usr/bin/printenv", print, none);
    return 9;
}
