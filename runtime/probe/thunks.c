/* Makes the exported functions: run at build time, prints assembly, one function for each row of the sync table, or with
 * an argument the linker's list of what is exported. */
#include "runtime/sync/sync.h"

#include <stdio.h>
#include <string.h>

/* Written in C, see signal.c and process.c. */
static const char *const own[] = {
    "_exit",  "_Exit",  "execl", "execle", "execlp",      "execv",        "execve",      "execveat",  "execvp",
    "execvpe", "fexecve", "posix_spawn", "posix_spawnp", "pthread_detach", "pthread_sigmask", "quick_exit", "sigaction",
    "signal", "sigprocmask",
};

static int is_own(const char *name)
{
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name)) return 1;
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        printf("{\n    global:\n");
        for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
            printf("        %s;\n", own[i]);
        for (unsigned i = 0; i < sync_table_size; i++)
            if (!is_own(sync_table[i].name)) printf("        %s;\n", sync_table[i].name);
        printf("    local: *;\n};\n");
        return 0;
    }
    printf("        .text\n");
    for (unsigned i = 0; i < sync_table_size; i++) {
        const char *name = sync_table[i].name;
        if (is_own(name)) continue;
        printf("        .globl %s\n        .type %s, @function\n%s:\n        .cfi_startproc\n        mov $%u, %%r11d\n"
               "        jmp probe_wrapper\n        .cfi_endproc\n        .size %s, . - %s\n",
               name, name, name, i, name, name);
    }
    printf("        .section .note.GNU-stack, \"\", @progbits\n");
    return 0;
}
