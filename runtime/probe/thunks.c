/* Makes the exported functions: run at build time, prints assembly, one function for each row of the sync table, or
 * with an argument the linker's list of what is exported.
 *
 * A function that only accesses memory goes straight to the real one as long as there is one thread. One that nothing
 * is to be done after ends in a jump to the real one. The number in r11 is the row's, and above it how many words of
 * arguments on the stack are to be copied for a call. */
#include "runtime/sync/sync.h"

#include <stdio.h>
#include <string.h>

/* Written in C, see signal.c, entry.S, mask.c, process.c, exec.c, clone.c, seccomp.c, module.c, cancel.c and timer.c. */
static const char *const own[] = {
    "_Exit",          "_Fork",           "bsd_signal", "clone",       "execl",         "execle",
    "execlp",         "execv",           "execve",     "execveat",    "execvp",        "execvpe",
    "_exit",          "fexecve",         "mprotect",   "pkey_mprotect", "posix_spawn", "posix_spawnp", "prctl",  "pthread_attr_setsigmask_np",
    "pthread_cancel", "pthread_sigmask", "quick_exit", "sigaction",   "__sigaction",   "sigblock",
    "sighold",        "sigignore",       "signal",     "sigprocmask", "sigrelse",      "sigset",
    "sigsetmask",     "sigsuspend",      "ssignal",    "syscall",     "__sysv_signal", "sysv_signal",
    "timer_create",   "timer_settime",
};

static int is_own(const char *name)
{
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name)) return 1;
    return 0;
}

/* Arguments beyond the sixth. */
static unsigned stack_words(const char *name)
{
    if (strstr(name, "printf") || strstr(name, "scanf") || !strncmp(name, "__kmpc_fork", 11)) return 64;
    if (!strcmp(name, "__recvfrom_chk")) return 1;
    return !strncmp(name, "GOMP_", 5) || !strncmp(name, "__kmpc_", 7) ? 8 : 0;
}

static void print_function(unsigned row)
{
    const sync_row *r = &sync_table[row];
    const char *wrapper = sync_has_second_half(r) || r->meaning == SYNC_CREATE ? "probe_wrapper" : "probe_wrapper_tail";
    printf("        .globl %s\n        .type %s, @function\n%s:\n        .cfi_startproc\n", r->name, r->name, r->name);
    if (sync_is_only_ranges(r))
        printf(
            "        mov probe_concurrent(%%rip), %%r11\n        cmpl $0, (%%r11)\n        jne 1f\n"
            "        mov probe_real+%u(%%rip), %%r11\n        test %%r11, %%r11\n        je 1f\n        jmp *%%r11\n1:",
            8 * row);
    printf("        mov $%u, %%r11d\n        jmp %s\n        .cfi_endproc\n        .size %s, . - %s\n",
           row | stack_words(r->name) << 16, wrapper, r->name, r->name);
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
    for (unsigned i = 0; i < sync_table_size; i++)
        if (!is_own(sync_table[i].name)) print_function(i);
    printf("        .section .note.GNU-stack, \"\", @progbits\n");
    return 0;
}
