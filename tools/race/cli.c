/* What the subcommands share: one-line errors, walking a command line, output that is checked.
 *
 * The walk is our own rather than getopt's: getopt keeps global state, prints in its own words, and permutes arguments
 * that belong to the program that `race run` starts. */
#include "tools/race/race.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 1, 0))) static void one_line(const char *format, va_list args, const char *subcommand)
{
    char raw[2048], line[2048];
    vsnprintf(raw, sizeof raw, format, args);
    cli_plain(raw, line, sizeof line);
    if (subcommand)
        fprintf(stderr, "race: %s: %s (see race %s --help)\n", subcommand, line, subcommand);
    else
        fprintf(stderr, "race: %s\n", line);
}

int cli_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))) return fd;
    close(fd);
    errno = 0;
    return -1;
}

char *cli_text(const char *path)
{
    enum { MOST = 16 << 20 };
    int fd = cli_open(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file) return cli_error("%s: %s", path, errno ? strerror(errno) : "is not a regular file"), NULL;
    char *text = NULL;
    uint32_t cap = 0;
    size_t len = 0;
    for (size_t got = 1; got && len < MOST; len += got) {
        text = base_grow(text, &cap, (uint32_t)len + 4097, 1);
        got = fread(text + len, 1, 4096, file);
    }
    bool bad = ferror(file) || len >= MOST;
    fclose(file);
    if (bad) return free(text), cli_error("%s: cannot be read, or is too large", path), NULL;
    text[len] = 0;
    return text;
}

const char *cli_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int cli_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    one_line(format, args, NULL);
    va_end(args);
    return EXIT_USAGE;
}

int cli_usage(const char *subcommand, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    one_line(format, args, subcommand);
    va_end(args);
    return EXIT_USAGE;
}

int cli_finish(int code)
{
    bool failed = ferror(stdout);
    if (fflush(stdout)) failed = true;
    int reason = errno;
    /* Some file systems report a full disk only when the file is closed. */
    if (!failed && close(STDOUT_FILENO) && errno != EBADF) {
        failed = true;
        reason = errno;
    }
    if (!failed) return code;
    return cli_error("cannot write the output: %s", reason ? strerror(reason) : "write error");
}

int cli_help(const command *c)
{
    fputs(c->help, stdout);
    return cli_finish(EXIT_CLEAN);
}

static struct { /* as they were given to us */
    bool was_closed[3];
    void (*pipe)(int), (*file_size)(int);
} given;

void cli_prepare(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        /* The wrong way round on purpose: using it must fail as if it were still closed. */
        given.was_closed[fd] = true;
        int null = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        if (null >= 0 && null != fd) close(null);
    }
    given.pipe = signal(SIGPIPE, SIG_IGN);
    given.file_size = signal(SIGXFSZ, SIG_IGN); /* a file that must not grow is an error like a full disk */
}

void cli_restore(void)
{
    signal(SIGPIPE, given.pipe);
    signal(SIGXFSZ, given.file_size);
    for (int fd = 0; fd < 3; fd++)
        if (given.was_closed[fd]) close(fd);
}

/* --- the command line --------------------------------------------------------------------------------------------- */

static const cli_option *find_name(const cli_option *options, const char *name, size_t len)
{
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == len && !memcmp(o->name, name, len)) return o;
    return NULL;
}

static const cli_option *find_letter(const cli_option *options, char letter)
{
    for (const cli_option *o = options; o->name; o++)
        if (o->letter && o->letter == letter) return o;
    return NULL;
}

static int next_long(cli_walk *w, char *argument)
{
    char *name = argument + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *o = find_name(w->options, name, len);
    if (!o) {
        cli_usage(w->argv[0], "unknown option --%.*s", (int)(len < 100 ? len : 100), name);
        return CLI_BAD;
    }
    if (!o->takes_value && equals) {
        cli_usage(w->argv[0], "option --%s takes no value", o->name);
        return CLI_BAD;
    }
    if (o->takes_value && !equals && w->at == w->argc) {
        cli_usage(w->argv[0], "option --%s needs a value", o->name);
        return CLI_BAD;
    }
    w->value = !o->takes_value ? NULL : equals ? equals + 1 : w->argv[w->at++];
    return o->key;
}

static int next_letter(cli_walk *w)
{
    char letter = *w->letters++;
    const cli_option *o = find_letter(w->options, letter);
    if (!o) {
        cli_usage(w->argv[0], "unknown option -%c", letter);
        return CLI_BAD;
    }
    w->value = NULL;
    if (o->takes_value) {
        if (*w->letters) {
            w->value = (char *)w->letters;
        } else if (w->at < w->argc) {
            w->value = w->argv[w->at++];
        } else {
            cli_usage(w->argv[0], "option -%c needs a value", letter);
            return CLI_BAD;
        }
        w->letters = NULL;
    }
    return o->key;
}

int cli_next(cli_walk *w)
{
    if (w->at == 0) w->at = 1;
    if (w->letters && *w->letters) return next_letter(w);
    if (w->at >= w->argc) return CLI_END;
    char *argument = w->argv[w->at];
    bool is_option = !w->only_operands && argument[0] == '-' && argument[1];
    if (is_option && !strcmp(argument, "--")) {
        w->at++;
        w->only_operands = true;
        return w->stop_at_operand ? CLI_END : cli_next(w);
    }
    if (!is_option && w->stop_at_operand) return CLI_END;
    w->at++;
    if (!is_option) {
        w->value = argument;
        return CLI_OPERAND;
    }
    if (argument[1] == '-') return next_long(w, argument);
    w->letters = argument + 1;
    return next_letter(w);
}

bool cli_number(const char *text, long low, long high, long *out)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < low || number > high) return false;
    *out = number;
    return true;
}

/* --- text that others wrote --------------------------------------------------------------------------------------- */

const char *cli_plain(const char *text, char *buffer, size_t size)
{
    size_t len = 0;
    for (; text[len] && len + 1 < size; len++) {
        unsigned char c = (unsigned char)text[len];
        buffer[len] = c < ' ' || c == 0x7f ? '?' : (char)c;
    }
    buffer[len] = 0;
    return buffer;
}

size_t cli_utf8(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t len = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

json_t *cli_json(const char *text)
{
    json_t *string = json_string(text);
    if (string) return string;
    char *clean = base_alloc(3 * strlen(text) + 1), *to = clean;
    for (const unsigned char *from = (const unsigned char *)text; *from;) {
        size_t len = cli_utf8(from);
        memcpy(to, len ? (const char *)from : "\xef\xbf\xbd", len ? len : 3);
        to += len ? len : 3;
        from += len ? len : 1;
    }
    *to = 0;
    string = json_string(clean);
    free(clean);
    return string;
}
