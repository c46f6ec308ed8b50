/* The strings that functions like printf read because their format says so: what %s names, as far as its precision
 * goes.
 *
 * Arguments lie as the calling convention says: whole numbers and pointers in registers and then on the stack, others
 * in vector registers, which are only counted, and then on the same stack; a long double always there. A format with
 * anything that is not known, also with numbered arguments, is followed up to that place only. Wide strings are not
 * checked. */
#include "runtime/sync/sync.h"

#include <string.h>

enum { REGISTERS = 6, VECTORS = 8, WORD = 8, VECTOR = 16 };

typedef struct {
    const sync_engine *engine;
    const sync_call *call;
    uint32_t whole, vector; /* registers that are used up */
    uint64_t stack;         /* the next argument there */
    uint64_t saved;         /* of a va_list: where the registers were stored; 0: those of the call */
    uint64_t at, end;       /* of the format: what comes next, and its zero */
    char part[64];
    uint64_t part_at, part_size;
    bool has_failed;
} format_reader;

/* The next character; 0 at the end. */
static char peek(format_reader *f)
{
    if (f->has_failed || f->at >= f->end) return 0;
    if (f->at - f->part_at >= f->part_size) {
        f->part_at = f->at;
        f->part_size = f->end - f->at < sizeof f->part ? f->end - f->at : sizeof f->part;
        f->has_failed = !sync_read(f->engine, f->at, f->part, f->part_size);
        if (f->has_failed) return 0;
    }
    return f->part[f->at - f->part_at];
}

static bool take(format_reader *f, char c)
{
    const bool is_there = c && peek(f) == c;
    f->at += is_there;
    return is_there;
}

static uint64_t read_word(format_reader *f, uint64_t from)
{
    uint64_t word = 0;
    if (!sync_read(f->engine, from, &word, sizeof word)) f->has_failed = true;
    return word;
}

static uint64_t next_whole(format_reader *f)
{
    if (f->whole < REGISTERS) {
        const uint32_t number = f->whole++;
        return f->saved ? read_word(f, f->saved + number * WORD) : f->call->args[number];
    }
    f->stack += WORD;
    return read_word(f, f->stack - WORD);
}

static void skip_number(format_reader *f, bool is_long)
{
    if (is_long)
        f->stack = ((f->stack + VECTOR - 1) & ~(uint64_t)(VECTOR - 1)) + VECTOR;
    else if (f->vector < VECTORS)
        f->vector++;
    else
        f->stack += WORD;
}

/* Digits, or an argument. -1: there are none, or it is negative. */
static int64_t width(format_reader *f)
{
    if (take(f, '*')) {
        const int32_t value = (int32_t)next_whole(f);
        return value < 0 ? -1 : value;
    }
    int64_t value = -1;
    for (char c = peek(f); c >= '0' && c <= '9'; f->at++, c = peek(f))
        if (value < INT32_MAX) value = (value < 0 ? 0 : value) * 10 + (c - '0');
    return value;
}

/* What comes behind a %. */
static void conversion(format_reader *f, sync_thread *t)
{
    while (peek(f) && strchr("-+ #0'I", peek(f)))
        f->at++;
    width(f);
    int64_t precision = -1;
    if (take(f, '.')) {
        const bool is_argument = peek(f) == '*';
        precision = width(f);
        if (precision < 0 && !is_argument) precision = 0; /* nothing behind the point */
    }
    bool is_wide = false, is_long = false;
    for (char c = peek(f); c && strchr("hlqLjzt", c); f->at++, c = peek(f)) {
        is_wide |= c == 'l';
        is_long |= c == 'L';
    }
    const char c = peek(f);
    f->at++;
    if (!c || c == '%' || c == 'm') return;
    if (strchr("diouxXcCpnS", c)) {
        next_whole(f);
    } else if (strchr("eEfFgGaA", c)) {
        skip_number(f, is_long);
    } else if (c == 's') {
        const uint64_t string = next_whole(f);
        if (f->has_failed || !string || is_wide) return; /* of NULL it reads nothing */
        range_check(t, f->call, false, string,
                    range_string_size(f->engine, string, precision < 0 ? UINT64_MAX : (uint64_t)precision));
    } else {
        f->has_failed = true;
    }
}

/* Where the arguments of a va_list are. */
static bool open_list(format_reader *f, uint64_t list)
{
    struct {
        uint32_t whole, vector; /* in bytes from the stored registers on */
        uint64_t stack, saved;
    } l;
    if (!sync_read(f->engine, list, &l, sizeof l)) return false;
    f->whole = l.whole / WORD;
    f->vector = l.vector < REGISTERS * WORD ? 0 : (l.vector - REGISTERS * WORD) / VECTOR;
    f->stack = l.stack;
    f->saved = l.saved;
    return f->saved || f->whole >= REGISTERS;
}

static void open_format(format_reader *f)
{
    const uint64_t size = range_string_size(f->engine, f->at, UINT64_MAX);
    f->end = size ? f->at + size - 1 : f->at;
}

void format_check(sync_engine *engine, sync_thread *t, const sync_call *call, uint8_t format, uint8_t arg, bool is_list)
{
    format_reader f = {
        .engine = engine, .call = call, .whole = arg, .stack = call->stack, .at = call_argument(call, format)};
    if (is_list && !open_list(&f, call_argument(call, arg))) return;
    open_format(&f);
    while (peek(&f))
        if (peek(&f) != '%') {
            f.at++;
        } else {
            f.at++;
            conversion(&f, t);
        }
}

/* --- scanf -------------------------------------------------------------------------------------------------------- */

/* Behind the [ of a set of characters. */
static void skip_set(format_reader *f)
{
    take(f, '^');
    take(f, ']');
    while (peek(f) && peek(f) != ']')
        f->at++;
    take(f, ']');
}

/* What comes behind a %. True: one of those that the call counts. A string may have been changed since, and a number of
 * characters may have ended early: of these the first one is sure. */
static bool store(format_reader *f, sync_thread *t)
{
    bool is_skipped = false, is_long = false, is_longest = false, is_block = false;
    uint64_t whole = 4, size = 0;
    while (peek(f) && strchr("*'I", peek(f))) {
        is_skipped |= peek(f) == '*';
        f->at++;
    }
    width(f);
    for (char c = peek(f); c && strchr("hlqLjztm", c); f->at++, c = peek(f)) {
        whole = c != 'h' ? 8 : whole == 2 ? 1 : 2;
        is_long |= c == 'l';
        is_longest |= c == 'L';
        is_block |= c == 'm';
    }
    const char c = peek(f);
    f->at++;
    if (c == '%') return false;
    const char next = peek(f);
    const bool is_old_block = c == 'a' && (next == 's' || next == 'S' || next == '[');
    if (!c || !strchr("diouxXpneEfFgGaAscCS[", c) || is_old_block) {
        f->has_failed = true;
        return false;
    }
    if (c == '[') skip_set(f);
    if (is_skipped) return false;
    const uint64_t to = next_whole(f);
    const bool is_text = c == 's' || c == '[' || c == 'c';
    if (is_block)
        size = 8;
    else if (is_text)
        size = is_long ? 0 : c == 'c' ? 1 : range_string_size(f->engine, to, UINT64_MAX);
    else if (strchr("diouxX", c))
        size = whole;
    else if (c == 'p')
        size = 8;
    else if (strchr("eEfFgGaA", c))
        size = is_longest ? 10 : is_long ? 8 : 4;
    if (c == 'n') return false; /* it is not said whether the call came as far */
    if (!f->has_failed) range_check(t, f->call, true, to, size);
    return true;
}

void format_check_stores(sync_engine *engine, sync_thread *t, const sync_call *call, uint8_t format, uint8_t arg,
                         int32_t count)
{
    format_reader f = {
        .engine = engine, .call = call, .whole = arg, .stack = call->stack, .at = call_argument(call, format)};
    if (count <= 0) return;
    open_format(&f);
    while (count && peek(&f))
        if (peek(&f) != '%') {
            f.at++;
        } else {
            f.at++;
            count -= store(&f, t);
        }
}
