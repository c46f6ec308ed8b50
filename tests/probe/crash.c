/* Dies of a fault in an instruction that was displaced, or of a signal that is sent to it.
 *
 *   crash fault | sent | again     again: the default was set by the program itself */
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int numbers[8] = {1, 2, 3, 4};

__attribute__((noinline)) static int sum(int *p, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++) {
        s += p[i];
        p[i] = s; /* CRASH */
    }
    return s;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "fault";
    struct sigaction old;
    sigaction(SIGSEGV, NULL, &old);
    printf("%d %d %d\n", sum(numbers, 4), old.sa_handler == SIG_DFL, old.sa_flags);
    fflush(stdout);
    if (!strcmp(how, "again")) signal(SIGSEGV, SIG_DFL);
    if (!strcmp(how, "sent")) raise(SIGSEGV);
    static const int constant[4] = {1, 2, 3, 4}; /* reading works, writing does not */
    return sum((int *)constant, 4);
}
