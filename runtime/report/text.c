/* Text in a fixed buffer. A formatter of our own: what libc's does inside (locales, memory) is not for a process that
 * is not ours. */
#include "runtime/report/report.h"

#include <string.h>

void text_start(report_text *t, char *at, size_t cap)
{
    *t = (report_text){at, 0, cap};
    if (cap) at[0] = 0;
}

static void put(report_text *t, const char *bytes, size_t size)
{
    if (!t->cap) return;
    size_t room = t->cap - 1 - t->len;
    if (size > room) size = room;
    memcpy(t->at + t->len, bytes, size);
    t->len += size;
    t->at[t->len] = 0;
}

static void put_number(report_text *t, uint64_t value, unsigned base, bool negative)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    if (negative) digits[--at] = '-';
    put(t, digits + at, sizeof digits - at);
}

/* Control characters of names that come from files must not reach a terminal. */
static void put_name(report_text *t, const char *text)
{
    for (const char *from = text; *from;) {
        const char *to = from;
        while ((unsigned char)*to >= ' ' && *to != 127)
            to++;
        put(t, from, (size_t)(to - from));
        if (*to) put(t, "?", 1), to++;
        from = to;
    }
}

void text_addv(report_text *t, const char *format, va_list args)
{
    while (*format) {
        const char *percent = format;
        while (*percent && *percent != '%')
            percent++;
        put(t, format, (size_t)(percent - format));
        if (!*percent) return;
        format = percent + 1;
        bool is_long = false;
        while (*format == 'l')
            is_long = true, format++;
        switch (*format) {
        case 's': put_name(t, va_arg(args, const char *)); break;
        case 'c': put(t, &(char){(char)va_arg(args, int)}, 1); break;
        case 'u': put_number(t, is_long ? va_arg(args, uint64_t) : va_arg(args, unsigned), 10, false); break;
        case 'x': put_number(t, is_long ? va_arg(args, uint64_t) : va_arg(args, unsigned), 16, false); break;
        case 'd': {
            int64_t value = is_long ? va_arg(args, int64_t) : va_arg(args, int);
            put_number(t, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, value < 0);
            break;
        }
        default: put(t, "%", 1); break;
        }
        if (*format) format++;
    }
}

void text_add(report_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_addv(t, format, args);
    va_end(args);
}
