/* Wrong pointers in calls of libc, while there are several threads: who reads them by itself faults as it would without an
 * engine, and the program's handler is called for that fault alone; for the kernel it is an error.
 *
 *   pointers handler | once | deadly     once: a handler for one fault; deadly: none */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf place;
static volatile sig_atomic_t faults;

static void event_fault(int number)
{
    (void)number;
    faults++;
    siglongjmp(place, 1);
}

static void catch (int flags)
{
    struct sigaction action = {.sa_handler = event_fault, .sa_flags = flags};
    sigaction(SIGSEGV, &action, NULL);
}

static size_t (*volatile length)(const char *) = strlen;
static long (*volatile number)(const char *, char **, int) = strtol;

static void *other(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int main(int argc, char **argv)
{
    static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const char *how = argc > 1 ? argv[1] : "handler";
    const long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = pages + page;
    pthread_t thread;
    mprotect(end, (size_t)page, PROT_NONE);
    memset(pages, 'x', (size_t)page);
    strcpy(pages, "123");
    pthread_mutex_lock(&gate);
    pthread_create(&thread, NULL, other, &gate);
    long sum = 0;
    errno = 0;
    const int can = access(end, R_OK);
    printf("%d %d %zu\n", can, errno == EFAULT, length(pages));
    fflush(stdout);
    for (int i = 0; i < 10; i++) {
        if (strcmp(how, "deadly")) catch (strcmp(how, "once") ? 0 : (int)SA_RESETHAND);
        if (!sigsetjmp(place, 1)) sum += (long)length(i % 2 ? end - 5 : end); /* CRASH */
        if (!strcmp(how, "once")) catch ((int)SA_RESETHAND);
        if (!sigsetjmp(place, 1)) sum += number(end, NULL, 10);
        sum += number(pages, NULL, 10);
    }
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    printf("%ld %d\n", sum, (int)faults);
    return 0;
}
