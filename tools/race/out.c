/* JSON as it is printed. */
#include "tools/race/out.h"

#include <string.h>

#include "tools/race/race.h"

static void flush(json_out *o)
{
    fwrite(o->text, 1, o->len, o->to);
    o->len = 0;
}

static void put(json_out *o, const char *text, size_t len)
{
    if (len > sizeof o->text - o->len) flush(o);
    if (len > sizeof o->text) {
        fwrite(text, 1, len, o->to);
        return;
    }
    memcpy(o->text + o->len, text, len);
    o->len += len;
}

static void put_byte(json_out *o, char c)
{
    if (o->len == sizeof o->text) flush(o);
    o->text[o->len++] = c;
}

static void new_line(json_out *o)
{
    if (o->line) return;
    put_byte(o, '\n');
    for (unsigned i = 0; i < o->depth; i++)
        put(o, "  ", 2);
}

/* What is as it is between quotes: all but quotes, backslashes and control characters, of texts that are UTF-8. */
static void put_text(json_out *o, const char *text)
{
    static const char shorts[] = "bfnrt", codes[] = "\b\f\n\r\t";
    put_byte(o, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const unsigned char *from = c;
        while (*c >= 0x20 && *c < 0x80 && *c != '"' && *c != '\\')
            c++;
        put(o, (const char *)from, (size_t)(c - from));
        if (!*c) break;
        const char *code = strchr(codes, *c);
        char hex[8];
        if (*c >= 0x80) {
            size_t len = cli_utf8(c);
            put(o, len ? (const char *)c : "\xef\xbf\xbd", len ? len : 3);
            c += len ? len : 1;
            continue;
        }
        put_byte(o, '\\');
        if (*c == '"' || *c == '\\')
            put_byte(o, (char)*c);
        else if (code)
            put_byte(o, shorts[code - codes]);
        else
            put(o, hex, (size_t)snprintf(hex, sizeof hex, "u%04X", *c));
        c++;
    }
    put_byte(o, '"');
}

/* In front of a value. */
static void begin(json_out *o, const char *key)
{
    if (o->depth) {
        if (o->begun) put_byte(o, ',');
        new_line(o);
    }
    o->begun = true;
    if (!key) return;
    put_text(o, key);
    put(o, ": ", o->line ? 1 : 2);
}

static void open_with(json_out *o, const char *key, char with)
{
    begin(o, key);
    put_byte(o, with);
    o->depth++;
    o->begun = false;
}

void out_object(json_out *o, const char *key)
{
    open_with(o, key, '{');
}

void out_array(json_out *o, const char *key)
{
    open_with(o, key, '[');
}

void out_end(json_out *o, char with)
{
    o->depth--;
    if (o->begun) new_line(o);
    put_byte(o, with);
    o->begun = true;
}

void out_text(json_out *o, const char *key, const char *text)
{
    if (!text) {
        out_null(o, key);
        return;
    }
    begin(o, key);
    put_text(o, text);
}

void out_number(json_out *o, const char *key, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
    } while (left /= 10);
    if (value < 0) *--at = '-';
    begin(o, key);
    put(o, at, (size_t)(digits + sizeof digits - at));
}

void out_real(json_out *o, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text - 2, "%.6g", value);
    if (!strpbrk(text, ".e")) strcat(text, ".0");
    begin(o, key);
    put(o, text, strlen(text));
}

void out_bool(json_out *o, const char *key, bool value)
{
    begin(o, key);
    put(o, value ? "true" : "false", value ? 4 : 5);
}

void out_null(json_out *o, const char *key)
{
    begin(o, key);
    put(o, "null", 4);
}

void out_finish(json_out *o)
{
    put_byte(o, '\n');
    flush(o);
}
