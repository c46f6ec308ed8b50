/* Strings that are printed while another thread writes them, behind other arguments of all kinds and through a va_list.
 *
 * Verdict: six races; a precision says how far a string is read, and what is behind that is not. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char first[8] = "first", far[8] = "far", listed[8] = "listed", start[8] = "abcdefg", given[8] = "abcdefg";
static const char *none;
static int status, nobody;
static pid_t child;
static pthread_barrier_t begin;

static void *write_all(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&begin);
    first[0] = 'F';                // RACE first
    far[1] = 'A';                  // RACE far
    listed[2] = 'S';               // RACE listed
    start[1] = 'B';                // RACE start
    start[3] = 'D';                // NORACE: behind the precision
    given[2] = 'C';                // RACE given
    given[4] = 'E';                // NORACE: behind the precision
    waitpid(child, &status, 0);    // RACE status
    waitpid(-1, &nobody, WNOHANG); // NORACE: there is none, nothing is stored
    return NULL;
}

static int print(char *to, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(to, size, format, list); // RACE listed
    va_end(list);
    return length;
}

/* More vector registers than there are, a long double, and strings on the stack. */
__attribute__((noinline)) static int many(char *to, size_t size)
{
    static const char format[] = "%g%g%g%g%g%g%g%g%g%d%-5Lf%lu%c%s";
    const double d = (double)size;
    return snprintf(to, size, format, d, d, d, d, d, d, d, d, d, 1, (long double)d, 3UL, 'c', far); // RACE far
}

int main(void)
{
    char text[400];
    pthread_t thread;
    const char open[3] = {'x', 'y', 'z'}; /* no zero */
    int sum = 0;
    child = fork();
    if (!child) _exit(3);
    pthread_barrier_init(&begin, NULL, 2);
    if (pthread_create(&thread, NULL, write_all, NULL)) return 2;
    pthread_barrier_wait(&begin);
    sum += printf("%s%%\n", first); // RACE first
    sum += many(text, sizeof text);
    sum += print(text, sizeof text, "%d %f %s %*d %d %d %s", 1, 2., "three", 4, 5, 6, 7, listed);
    sum += snprintf(text, sizeof text, "%.2s%.3s", start, open);      // RACE start
    sum += snprintf(text, sizeof text, "%.*s%5.0s", 3, given, given); // RACE given
    sum += snprintf(text, sizeof text, "%s", none ? none : "(null)"); // NORACE: nobody writes it
    if (status == 77) sum++;                                          // RACE status
    sum += nobody;                                                    // NORACE: nobody writes it
    pthread_join(thread, NULL);
    printf("%d\n", sum != 1);
    return 0;
}
