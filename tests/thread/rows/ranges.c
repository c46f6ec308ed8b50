/* Functions that access memory they are given, and streams. */
/* clang-format off */
#include "rows.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* --- names that headers do not give, or give to another function ---------------------------------------------------- */

static volatile long used; /* or the compiler leaves a call out whose result nobody wants */

#define WEAK __attribute__((weak))
enum { ROOM = 500 };
WEAK int __asprintf_chk(char **, int, const char *, ...);
WEAK int __vasprintf_chk(char **, int, const char *, va_list);
WEAK int __fprintf_chk(FILE *, int, const char *, ...);
WEAK int __vfprintf_chk(FILE *, int, const char *, va_list);
WEAK int __printf_chk(int, const char *, ...);
WEAK int __vprintf_chk(int, const char *, va_list);
WEAK int __snprintf_chk(char *, size_t, int, size_t, const char *, ...);
WEAK int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list);
WEAK int __sprintf_chk(char *, int, size_t, const char *, ...);
WEAK int __vsprintf_chk(char *, int, size_t, const char *, va_list);
WEAK void __explicit_bzero_chk(void *, size_t, size_t);
WEAK void *explicit_memset(void *, int, size_t);
WEAK char *__fgets_chk(char *, size_t, int, FILE *);
WEAK size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
WEAK ssize_t __getdelim(char **, size_t *, int, FILE *);
WEAK ssize_t __getline(char **, size_t *, FILE *);
WEAK int __isoc23_fscanf(FILE *, const char *, ...);
WEAK int __isoc23_scanf(const char *, ...);
WEAK int __isoc23_sscanf(const char *, const char *, ...);
WEAK int __isoc23_vfscanf(FILE *, const char *, va_list);
WEAK int __isoc99_fscanf(FILE *, const char *, ...);
WEAK int __isoc99_scanf(const char *, ...);
WEAK int __isoc99_sscanf(const char *, const char *, ...);
WEAK int __isoc99_vfscanf(FILE *, const char *, va_list);
int old_fscanf(FILE *, const char *, ...) __asm__("fscanf");
int old_scanf(const char *, ...) __asm__("scanf");
int old_sscanf(const char *, const char *, ...) __asm__("sscanf");
int old_vfscanf(FILE *, const char *, va_list) __asm__("vfscanf");
WEAK void *__memcpy_chk(void *, const void *, size_t, size_t);
WEAK void *__memmove_chk(void *, const void *, size_t, size_t);
WEAK void *__mempcpy(void *, const void *, size_t);
WEAK void *__mempcpy_chk(void *, const void *, size_t, size_t);
WEAK void *__memset_chk(void *, int, size_t, size_t);
WEAK char *__stpcpy_chk(char *, const char *, size_t);
WEAK char *__stpncpy_chk(char *, const char *, size_t, size_t);
WEAK char *__strcat_chk(char *, const char *, size_t);
WEAK char *__strcpy_chk(char *, const char *, size_t);
WEAK char *__strncat_chk(char *, const char *, size_t, size_t);
WEAK char *__strncpy_chk(char *, const char *, size_t, size_t);
WEAK long __isoc23_strtol(const char *, char **, int);
WEAK long long __isoc23_strtoll(const char *, char **, int);
WEAK unsigned long __isoc23_strtoul(const char *, char **, int);
WEAK unsigned long long __isoc23_strtoull(const char *, char **, int);
WEAK char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
WEAK size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
WEAK char *__realpath_chk(const char *, char *, size_t);
WEAK char *__getcwd_chk(char *, size_t, size_t);
WEAK int __gethostname_chk(char *, size_t, size_t);
WEAK ssize_t __readlink_chk(const char *, char *, size_t, size_t);
WEAK ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
WEAK char *__strdup(const char *);
WEAK char *__strndup(const char *, size_t);

/* A va_list of these words, made without a call. */
#define LIST(list, ...)                                                                                                         \
    long words[] = {__VA_ARGS__};                                                                                               \
    va_list list = {{.gp_offset = 48, .fp_offset = 176, .overflow_arg_area = words}}

#define TO_NULL(...)                                                                                                            \
    FILE *f = fopen("/dev/null", "w");                                                                                          \
    __VA_ARGS__;                                                                                                                \
    fclose(f)
#define OF_TEXT(text, ...)                                                                                                      \
    FILE *f = row_text(text);                                                                                                   \
    __VA_ARGS__;                                                                                                                \
    fclose(f)
#define OF_STDIN(text, ...)                                                                                                     \
    FILE *f = stdin;                                                                                                            \
    stdin = row_text(text);                                                                                                     \
    __VA_ARGS__;                                                                                                                \
    fclose(stdin);                                                                                                              \
    stdin = f

/* --- blocks of bytes -------------------------------------------------------------------------------------------------- */

RANGE(memcpy, WRITES(8, 0), READS(8, "abcdefghij"), memcpy(p, q, 8))
RANGE(__memcpy_chk, WRITES(8, 0), READS(8, "abcdefghij"), __memcpy_chk(p, q, 8, ROOM))
RANGE(memmove, WRITES(8, 0), READS(8, "abcdefghij"), memmove(p, q, 8))
RANGE(__memmove_chk, WRITES(8, 0), READS(8, "abcdefghij"), __memmove_chk(p, q, 8, ROOM))
RANGE(mempcpy, WRITES(9, 0), READS(9, "abcdefghij"), mempcpy(p, q, 9))
RANGE(__mempcpy, WRITES(9, 0), READS(9, "abcdefghij"), __mempcpy(p, q, 9))
RANGE(__mempcpy_chk, WRITES(9, 0), READS(9, "abcdefghij"), __mempcpy_chk(p, q, 9, ROOM))
RANGE(memset, WRITES(13, 0), NOT, memset(p, 'x', 13))
RANGE(__memset_chk, WRITES(13, 0), NOT, __memset_chk(p, 'x', 13, ROOM))
RANGE(bzero, WRITES(13, "abcdefghijklmnop"), NOT, bzero(p, 13))
RANGE(explicit_bzero, WRITES(13, "abcdefghijklmnop"), NOT, explicit_bzero(p, 13))
RANGE(__explicit_bzero_chk, WRITES(13, "abcdefghijklmnop"), NOT, __explicit_bzero_chk(p, 13, ROOM))
RANGE(explicit_memset, WRITES(13, 0), NOT, explicit_memset(p, 'x', 13))
RANGE(bcopy, READS(8, "abcdefghij"), WRITES(8, 0), bcopy(p, q, 8))
RANGE(bcmp, READS(8, "abcdefghij"), READS(8, "abcdefghij"), used = (long)bcmp(p, q, 8))
RANGE(memcmp, READS(8, "abcdefghij"), READS(8, "abcdefghij"), used = (long)memcmp(p, q, 8))
RANGE(memchr, READS(4, "abcdefghij"), NOT, used = (long)memchr(p, 'd', 10))

__attribute__((noipa)) static int compare(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}
RANGE(qsort, WRITES(8, "hgfedcbazz"), NOT, qsort(p, 4, 2, compare))

/* --- strings ---------------------------------------------------------------------------------------------------------- */

RANGE(strlen, READS(4, "abc"), NOT, used = (long)strlen(p))
RANGE(strnlen, READS(3, "abcdef"), NOT, used = (long)strnlen(p, 3))
RANGE(strcpy, WRITES(4, 0), READS(4, "abc"), strcpy(p, q))
RANGE(__strcpy_chk, WRITES(4, 0), READS(4, "abc"), __strcpy_chk(p, q, ROOM))
RANGE(stpcpy, WRITES(4, 0), READS(4, "abc"), stpcpy(p, q))
RANGE(__stpcpy_chk, WRITES(4, 0), READS(4, "abc"), __stpcpy_chk(p, q, ROOM))
RANGE(strncpy, WRITES(6, 0), READS(4, "abc"), strncpy(p, q, 6))
RANGE(__strncpy_chk, WRITES(6, 0), READS(4, "abc"), __strncpy_chk(p, q, 6, ROOM))
RANGE(stpncpy, WRITES(6, 0), READS(4, "abc"), stpncpy(p, q, 6))
RANGE(__stpncpy_chk, WRITES(6, 0), READS(4, "abc"), __stpncpy_chk(p, q, 6, ROOM))
RANGE(strcat, WRITES(6, "xy"), READS(4, "abc"), strcat(p, q))
RANGE(__strcat_chk, WRITES(6, "xy"), READS(4, "abc"), __strcat_chk(p, q, ROOM))
RANGE(strncat, WRITES(5, "xy"), READS(2, "abc"), strncat(p, q, 2))
RANGE(__strncat_chk, WRITES(5, "xy"), READS(2, "abc"), __strncat_chk(p, q, 2, ROOM))
RANGE(strdup, READS(4, "abc"), NOT, free(strdup(p)))
RANGE(__strdup, READS(4, "abc"), NOT, free(__strdup(p)))
RANGE(strndup, READS(2, "abc"), NOT, free(strndup(p, 2)))
RANGE(__strndup, READS(2, "abc"), NOT, free(__strndup(p, 2)))
RANGE(strcmp, READS(3, "abcdef"), READS(3, "abxdef"), used = (long)strcmp(p, q))
RANGE(strncmp, READS(3, "abcdef"), READS(3, "abcdef"), used = (long)strncmp(p, q, 3))
RANGE(strcasecmp, READS(3, "abcdef"), READS(3, "aBxdef"), used = (long)strcasecmp(p, q))
RANGE(strncasecmp, READS(3, "abcdef"), READS(3, "aBCdef"), used = (long)strncasecmp(p, q, 3))
RANGE(strcoll, READS(4, "abc"), READS(4, "abd"), used = (long)strcoll(p, q))
RANGE(strchr, READS(3, "abcdef"), NOT, used = (long)strchr(p, 'c'))
RANGE(index, READS(3, "abcdef"), NOT, used = (long)index(p, 'c'))
RANGE(strchrnul, READS(7, "abcdef"), NOT, used = (long)strchrnul(p, 'z'))
RANGE(strrchr, READS(7, "abcdef"), NOT, used = (long)strrchr(p, 'c'))
RANGE(rindex, READS(7, "abcdef"), NOT, used = (long)rindex(p, 'c'))
RANGE(strstr, READS(7, "abcdef"), READS(3, "cd"), used = (long)strstr(p, q))
RANGE(strcasestr, READS(7, "abcdef"), READS(3, "CD"), used = (long)strcasestr(p, q))
RANGE(strpbrk, READS(7, "abcdef"), READS(3, "xy"), used = (long)strpbrk(p, q))
RANGE(strspn, READS(3, "abcdef"), READS(3, "ba"), used = (long)strspn(p, q))
RANGE(strcspn, READS(3, "abcdef"), READS(3, "dc"), used = (long)strcspn(p, q))
RANGE(strtod, READS(5, "12.5 x"), WRITES(8, 0), strtod(p, (char **)q))
RANGE(strtol, READS(3, "12 x"), WRITES(8, 0), strtol(p, (char **)q, 10))
RANGE(strtoll, READS(5, "0x1f x"), WRITES(8, 0), strtoll(p, (char **)q, 0))
RANGE(strtoul, READS(4, " 17 x"), WRITES(8, 0), strtoul(p, (char **)q, 10))
RANGE(strtoull, READS(3, "1238"), WRITES(8, 0), strtoull(p, (char **)q, 3))
RANGE(__isoc23_strtol, READS(3, "12 x"), WRITES(8, 0), __isoc23_strtol(p, (char **)q, 10))
RANGE(__isoc23_strtoll, READS(5, "0x1f x"), WRITES(8, 0), __isoc23_strtoll(p, (char **)q, 0))
RANGE(__isoc23_strtoul, READS(4, " 17 x"), WRITES(8, 0), __isoc23_strtoul(p, (char **)q, 10))
RANGE(__isoc23_strtoull, READS(3, "1238"), WRITES(8, 0), __isoc23_strtoull(p, (char **)q, 3))
RANGE(atof, READS(5, "12.5 x"), NOT, used = (long)atof(p))
RANGE(atoi, READS(3, "12 x"), NOT, used = (long)atoi(p))
RANGE(atol, READS(3, "12 x"), NOT, used = (long)atol(p))
RANGE(atoll, READS(4, "-12 x"), NOT, used = (long)atoll(p))

/* --- formats ---------------------------------------------------------------------------------------------------------- */

RANGE(sprintf, WRITES(6, 0), READS(4, "abc"), sprintf(p, "<%s>", q))
RANGE(__sprintf_chk, WRITES(6, 0), READS(4, "abc"), __sprintf_chk(p, 1, ROOM, "<%s>", q))
RANGE(snprintf, WRITES(4, 0), READS(4, "abc"), snprintf(p, 4, "<%s>", q))
RANGE(__snprintf_chk, WRITES(4, 0), READS(4, "abc"), __snprintf_chk(p, 4, 1, ROOM, "<%s>", q))
RANGE(vsprintf, WRITES(6, 0), READS(4, "abc"), LIST(list, (long)q); vsprintf(p, "<%s>", list))
RANGE(__vsprintf_chk, WRITES(6, 0), READS(4, "abc"), LIST(list, (long)q); __vsprintf_chk(p, 1, ROOM, "<%s>", list))
RANGE(vsnprintf, WRITES(4, 0), READS(4, "abc"), LIST(list, (long)q); vsnprintf(p, 4, "<%s>", list))
RANGE(__vsnprintf_chk, WRITES(4, 0), READS(4, "abc"), LIST(list, (long)q); __vsnprintf_chk(p, 4, 1, ROOM, "<%s>", list))
RANGE(asprintf, READS(5, "<%s>"), READS(4, "abc"), char *t; asprintf(&t, p, q); free(t))
RANGE(__asprintf_chk, READS(5, "<%s>"), READS(4, "abc"), char *t; __asprintf_chk(&t, 1, p, q); free(t))
RANGE(vasprintf, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); char *t; vasprintf(&t, p, list); free(t))
RANGE(__vasprintf_chk, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); char *t; __vasprintf_chk(&t, 1, p, list);
     free(t))
#define STORED(...) ({ __VA_ARGS__; free(*(char **)p); })
RANGE_MORE(asprintf, stored, WRITES(8, 0), NOT, STORED(asprintf((char **)p, "a")))
RANGE_MORE(__asprintf_chk, stored, WRITES(8, 0), NOT, STORED(__asprintf_chk((char **)p, 1, "a")))
RANGE_MORE(vasprintf, stored, WRITES(8, 0), NOT, LIST(list, 0); STORED(vasprintf((char **)p, "a", list)))
RANGE_MORE(__vasprintf_chk, stored, WRITES(8, 0), NOT, LIST(list, 0); STORED(__vasprintf_chk((char **)p, 1, "a", list)))
RANGE(printf, READS(5, "<%s>"), READS(4, "abc"), printf(p, q))
RANGE(__printf_chk, READS(5, "<%s>"), READS(4, "abc"), __printf_chk(1, p, q))
RANGE(vprintf, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); vprintf(p, list))
RANGE(__vprintf_chk, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); __vprintf_chk(1, p, list))
RANGE(fprintf, READS(5, "<%s>"), READS(4, "abc"), TO_NULL(fprintf(f, p, q)))
RANGE(__fprintf_chk, READS(5, "<%s>"), READS(4, "abc"), TO_NULL(__fprintf_chk(f, 1, p, q)))
RANGE(vfprintf, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); TO_NULL(vfprintf(f, p, list)))
RANGE(__vfprintf_chk, READS(5, "<%s>"), READS(4, "abc"), LIST(list, (long)q); TO_NULL(__vfprintf_chk(f, 1, p, list)))
RANGE(puts, READS(4, "abc"), NOT, puts(p))

RANGE(sscanf, READS(4, "123"), WRITES(4, 0), old_sscanf(p, "%d", q))
RANGE(__isoc99_sscanf, READS(4, "123"), WRITES(4, 0), __isoc99_sscanf(p, "%d", q))
RANGE(__isoc23_sscanf, READS(4, "123"), WRITES(4, 0), __isoc23_sscanf(p, "%d", q))
RANGE(fscanf, READS(3, "%s"), WRITES(4, 0), OF_TEXT("abc ", old_fscanf(f, p, q)))
RANGE(__isoc99_fscanf, READS(3, "%s"), WRITES(4, 0), OF_TEXT("abc ", __isoc99_fscanf(f, p, q)))
RANGE(__isoc23_fscanf, READS(3, "%s"), WRITES(4, 0), OF_TEXT("abc ", __isoc23_fscanf(f, p, q)))
RANGE(scanf, READS(3, "%d"), WRITES(4, 0), OF_STDIN("123 ", old_scanf(p, q)))
RANGE(__isoc99_scanf, READS(3, "%d"), WRITES(4, 0), OF_STDIN("123 ", __isoc99_scanf(p, q)))
RANGE(__isoc23_scanf, READS(3, "%d"), WRITES(4, 0), OF_STDIN("123 ", __isoc23_scanf(p, q)))
RANGE(vfscanf, READS(3, "%d"), NOT, LIST(list, (long)q); OF_TEXT("123 ", old_vfscanf(f, p, list)))
RANGE(__isoc99_vfscanf, READS(3, "%d"), NOT, LIST(list, (long)q); OF_TEXT("123 ", __isoc99_vfscanf(f, p, list)))
RANGE(__isoc23_vfscanf, READS(3, "%d"), NOT, LIST(list, (long)q); OF_TEXT("123 ", __isoc23_vfscanf(f, p, list)))

/* --- streams, as ranges ----------------------------------------------------------------------------------------------- */

RANGE(fgets, WRITES(5, 0), NOT, OF_TEXT("abc\nd", fgets(p, ROOM, f)))
RANGE(fgets_unlocked, WRITES(5, 0), NOT, OF_TEXT("abc\nd", fgets_unlocked(p, ROOM, f)))
RANGE(__fgets_chk, WRITES(5, 0), NOT, OF_TEXT("abc\nd", __fgets_chk(p, ROOM, ROOM, f)))
RANGE(__fgets_unlocked_chk, WRITES(5, 0), NOT, OF_TEXT("abc\nd", __fgets_unlocked_chk(p, ROOM, ROOM, f)))
RANGE(fread, WRITES(6, 0), NOT, OF_TEXT("abcdefgh", fread(p, 2, 3, f)))
RANGE(fread_unlocked, WRITES(6, 0), NOT, OF_TEXT("abcdefgh", fread_unlocked(p, 2, 3, f)))
RANGE(__fread_chk, WRITES(6, 0), NOT, OF_TEXT("abcdefgh", __fread_chk(p, ROOM, 2, 3, f)))
RANGE(__fread_unlocked_chk, WRITES(6, 0), NOT, OF_TEXT("abcdefgh", __fread_unlocked_chk(p, ROOM, 2, 3, f)))
RANGE(getline, WRITES(5, 0), NOT, char *line = p; size_t room = ROOM; OF_TEXT("abc\nd", getline(&line, &room, f)))
RANGE(__getline, WRITES(5, 0), NOT, char *line = p; size_t room = ROOM; OF_TEXT("abc\nd", __getline(&line, &room, f)))
RANGE(getdelim, WRITES(4, 0), NOT, char *line = p; size_t room = ROOM; OF_TEXT("abcd", getdelim(&line, &room, 'c', f)))
RANGE(__getdelim, WRITES(4, 0), NOT, char *line = p; size_t room = ROOM; OF_TEXT("abcd", __getdelim(&line, &room, 'c', f)))
RANGE(fputs, READS(4, "abc"), NOT, TO_NULL(fputs(p, f)))
RANGE(fputs_unlocked, READS(4, "abc"), NOT, TO_NULL(fputs_unlocked(p, f)))
RANGE(fwrite, READS(6, "abcdefgh"), NOT, TO_NULL(fwrite(p, 2, 3, f)))
RANGE(fwrite_unlocked, READS(6, "abcdefgh"), NOT, TO_NULL(fwrite_unlocked(p, 2, 3, f)))

/* --- what the kernel and the library know ------------------------------------------------------------------------------- */

RANGE(time, WRITES(8, 0), NOT, time((time_t *)p))
RANGE(gettimeofday, WRITES(16, 0), NOT, gettimeofday((struct timeval *)p, NULL))
RANGE(clock_gettime, WRITES(16, 0), NOT, clock_gettime(CLOCK_MONOTONIC, (struct timespec *)p))
RANGE(clock_getres, WRITES(16, 0), NOT, clock_getres(CLOCK_MONOTONIC, (struct timespec *)p))
RANGE(gmtime_r, READS(8, 0), WRITES(56, 0), gmtime_r((time_t *)p, (struct tm *)q))
RANGE(localtime_r, READS(8, 0), WRITES(56, 0), localtime_r((time_t *)p, (struct tm *)q))
RANGE(ctime_r, READS(8, 0), WRITES(26, 0), ctime_r((time_t *)p, q))
RANGE(asctime_r, READS(28, 0), WRITES(26, 0), asctime_r((struct tm *)p, q))
RANGE(strftime, WRITES(4, 0), READS(5, "%%%d"), const struct tm t = {.tm_mday = 1}; strftime(p, ROOM, q, &t))
RANGE(uname, WRITES_MORE(254), NOT, uname((struct utsname *)p))
RANGE(gethostname, WRITES_SOME, NOT, gethostname(p, ROOM))
RANGE(getcwd, WRITES_SOME, NOT, getcwd(p, ROOM))
RANGE(__gethostname_chk, WRITES_SOME, NOT, __gethostname_chk(p, ROOM, ROOM))
RANGE(__getcwd_chk, WRITES_SOME, NOT, __getcwd_chk(p, ROOM, ROOM))
RANGE(getrandom, WRITES(16, 0), NOT, getrandom(p, 16, 0))
RANGE(inet_ntop, NOT, WRITES(8, 0), const struct in_addr a = {htonl(0x01020304)}; inet_ntop(AF_INET, &a, q, ROOM))
RANGE(getenv, READS(5, "HOME"), NOT, getenv(p))
RANGE(setenv, READS(4, "ROW"), READS(2, "1"), setenv(p, q, 1))

#define NAMED(call)                                                                                                             \
    const int s = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);                                         \
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};                                 \
    socklen_t size = sizeof address;                                                                                            \
    if (bind(s, (void *)&address, size) || listen(s, 1) || getsockname(s, (void *)&address, &size) ||                           \
        connect(c, (void *)&address, size))                                                                                     \
        row_failed("getpeername");                                                                                              \
    *(socklen_t *)q = sizeof address;                                                                                           \
    call;                                                                                                                       \
    close(s);                                                                                                                   \
    close(c)
RANGE(getsockname, WRITES_SOME, NOT, NAMED(getsockname(s, (void *)p, (void *)q)))
RANGE(getpeername, WRITES_SOME, NOT, NAMED(getpeername(c, (void *)p, (void *)q)))

/* --- paths ------------------------------------------------------------------------------------------------------------ */

RANGE(access, READS(8, "nowhere"), NOT, access(p, R_OK))
RANGE(chdir, READS(2, "."), NOT, chdir(p))
RANGE(fopen, READS(8, "nowhere"), READS(2, "r"), fopen(p, q))
RANGE(fopen64, READS(8, "nowhere"), READS(2, "r"), fopen64(p, q))
RANGE(mkdir, READS(10, "/dev/null"), NOT, mkdir(p, 0700))
RANGE(rmdir, READS(8, "nowhere"), NOT, rmdir(p))
RANGE(unlink, READS(8, "nowhere"), NOT, unlink(p))
RANGE(rename, READS(8, "nowhere"), READS(5, "here"), rename(p, q))
RANGE(realpath, READS(2, "/"), WRITES(2, 0), realpath(p, q))
#define LINK "/proc/self/fd/0"
RANGE(readlink, READS(16, LINK), WRITES(1, 0), readlink(p, q, 1))
RANGE(readlinkat, READS(16, LINK), WRITES(1, 0), readlinkat(AT_FDCWD, p, q, 1))
RANGE(__realpath_chk, READS(2, "/"), WRITES(2, 0), __realpath_chk(p, q, 4096))
RANGE(__readlink_chk, READS(16, LINK), WRITES(1, 0), __readlink_chk(p, q, 1, ROOM))
RANGE(__readlinkat_chk, READS(16, LINK), WRITES(1, 0), __readlinkat_chk(AT_FDCWD, p, q, 1, ROOM))
RANGE(stat, READS(2, "/"), WRITES(144, 0), stat(p, (void *)q))
RANGE(stat64, READS(2, "/"), WRITES(144, 0), stat64(p, (void *)q))
RANGE(lstat, READS(2, "/"), WRITES(144, 0), lstat(p, (void *)q))
RANGE(lstat64, READS(2, "/"), WRITES(144, 0), lstat64(p, (void *)q))
RANGE(fstat, WRITES(144, 0), NOT, fstat(0, (void *)p))
RANGE(fstat64, WRITES(144, 0), NOT, fstat64(0, (void *)p))
RANGE(fstatat, READS(2, "/"), WRITES(144, 0), fstatat(AT_FDCWD, p, (void *)q, 0))
RANGE(fstatat64, READS(2, "/"), WRITES(144, 0), fstatat64(AT_FDCWD, p, (void *)q, 0))

/* --- children --------------------------------------------------------------------------------------------------------- */

#define CHILD(...)                                                                                                              \
    const pid_t child = fork();                                                                                                 \
    if (!child) _exit(0);                                                                                                       \
    if ((__VA_ARGS__) < 0) row_failed("wait")
RANGE(wait, WRITES(4, 0), NOT, CHILD(wait((int *)p)))
RANGE(waitpid, WRITES(4, 0), NOT, CHILD(waitpid(child, (int *)p, 0)))
RANGE(wait3, WRITES(4, 0), WRITES(144, 0), CHILD(wait3((int *)p, 0, (void *)q)))
RANGE(wait4, WRITES(4, 0), WRITES(144, 0), CHILD(wait4(child, (int *)p, 0, (void *)q)))
RANGE(waitid, WRITES(28, 0), NOT, CHILD(waitid(P_PID, (id_t)child, (void *)p, WEXITED)))

/* --- streams, as order ------------------------------------------------------------------------------------------------ */

#define STREAM(name, give, take) HAND(name, row_pipe(w), give, take)
#define GIVES(name, ...) STREAM(name, ({ __VA_ARGS__; }), ({ char c; if (read(w->fd[0], &c, 1) != 1) row_failed(#name); }))
#define TAKES(name, ...) STREAM(name, ({ if (write(w->fd[1], "1\n", 2) != 2) row_failed(#name); }), ({ __VA_ARGS__; }))
GIVES(fputc, fputc('a', w->out))
GIVES(fputc_unlocked, (fputc_unlocked)('a', w->out))
GIVES(putc, (putc)('a', w->out))
GIVES(putc_unlocked, (putc_unlocked)('a', w->out))
GIVES(fputwc, fputwc(L'a', w->out))
GIVES(putwc, (putwc)(L'a', w->out))
GIVES(fputws, fputws(L"a", w->out))
GIVES(fwprintf, fwprintf(w->out, L"a"))
GIVES(fputs, fputs("a", w->out))
GIVES(fputs_unlocked, fputs_unlocked("a", w->out))
GIVES(fwrite, fwrite("a", 1, 1, w->out))
GIVES(fwrite_unlocked, fwrite_unlocked("a", 1, 1, w->out))
GIVES(fprintf, fprintf(w->out, "a"))
GIVES(__fprintf_chk, __fprintf_chk(w->out, 1, "a"))
GIVES(vfprintf, LIST(list, 0); vfprintf(w->out, "a", list))
GIVES(__vfprintf_chk, LIST(list, 0); __vfprintf_chk(w->out, 1, "a", list))
TAKES(fgetc, fgetc(w->in))
TAKES(fgetc_unlocked, (fgetc_unlocked)(w->in))
TAKES(getc, (getc)(w->in))
TAKES(getc_unlocked, (getc_unlocked)(w->in))
TAKES(fgetwc, fgetwc(w->in))
TAKES(getwc, (getwc)(w->in))
TAKES(fgetws, wchar_t t[9]; fgetws(t, 9, w->in))
TAKES(fgets, char t[9]; fgets(t, 9, w->in))
TAKES(fgets_unlocked, char t[9]; fgets_unlocked(t, 9, w->in))
TAKES(__fgets_chk, char t[9]; __fgets_chk(t, 9, 9, w->in))
TAKES(fread, char t[2]; fread(t, 1, 2, w->in))
TAKES(fread_unlocked, char t[2]; fread_unlocked(t, 1, 2, w->in))
TAKES(__fread_chk, char t[2]; __fread_chk(t, 2, 1, 2, w->in))
TAKES(__fgets_unlocked_chk, char t[9]; __fgets_unlocked_chk(t, 9, 9, w->in))
TAKES(__fread_unlocked_chk, char t[2]; __fread_unlocked_chk(t, 2, 1, 2, w->in))
TAKES(getline, char *t = NULL; size_t n = 0; getline(&t, &n, w->in))
TAKES(__getline, char *t = NULL; size_t n = 0; __getline(&t, &n, w->in))
TAKES(getdelim, char *t = NULL; size_t n = 0; getdelim(&t, &n, '\n', w->in))
TAKES(__getdelim, char *t = NULL; size_t n = 0; __getdelim(&t, &n, '\n', w->in))
TAKES(fscanf, int n; old_fscanf(w->in, "%d", &n))
TAKES(__isoc99_fscanf, int n; __isoc99_fscanf(w->in, "%d", &n))
TAKES(__isoc23_fscanf, int n; __isoc23_fscanf(w->in, "%d", &n))
TAKES(vfscanf, int n; LIST(list, (long)&n); old_vfscanf(w->in, "%d", list))
TAKES(__isoc99_vfscanf, int n; LIST(list, (long)&n); __isoc99_vfscanf(w->in, "%d", list))
TAKES(__isoc23_vfscanf, int n; LIST(list, (long)&n); __isoc23_vfscanf(w->in, "%d", list))

/* What is in the buffer is given by what empties it. */
#define BUFFERED(name, give)                                                                                                    \
    HAND(name, row_pipe(w); setvbuf(w->out, w->a, _IOFBF, 100); fputc('a', w->out), give,                                       \
         char c; if (read(w->fd[0], &c, 1) != 1) row_failed(#name))
BUFFERED(fflush, fflush(w->out))
BUFFERED(fclose, fclose(w->out); w->out = NULL)
ONLY_WRONG(pclose, , pclose(popen(":", "w")); TOUCH, TOUCH)

/* What is in a file is there for whoever opens it, too. */
#define FILED(name, ...)                                                                                                        \
    HAND(name, row_file(w), w->out = (__VA_ARGS__); fputc('a', w->out); fflush(w->out), w->in = (__VA_ARGS__); fgetc(w->in))
FILED(fopen, fopen(w->path, "r+"))
FILED(fopen64, fopen64(w->path, "r+"))
#define WITHOUT_NAME(name)                                                                                                      \
    HAND(name, w->out = name(); w->fd[2] = open("/dev/null", O_RDWR), fputc('a', w->out); fflush(w->out),                       \
         char c; if (pread(w->fd[2], &c, 1, 0) != 0) row_failed(#name))
WITHOUT_NAME(tmpfile)
WITHOUT_NAME(tmpfile64)

#define STREAMS w->in = row_text("a"); w->out = row_text("b")
#define ITS (o == w->a ? w->in : w->out)
LOCKED(flockfile, STREAMS, flockfile(ITS), funlockfile(ITS))
LOCKED(ftrylockfile, STREAMS, if (ftrylockfile(ITS)) row_failed("ftrylockfile"), funlockfile(ITS))
LOCKED(funlockfile, STREAMS, flockfile(ITS), funlockfile(ITS))
