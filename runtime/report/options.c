/* The words that every engine understands: after `-c librace.so`, or in RACE_OPTIONS. */
#include "runtime/report/report.h"

#include <string.h>

typedef enum { KIND_FLAG, KIND_TEXT, KIND_NUMBER, KIND_MEGABYTES } option_kind;

typedef struct {
    const char *name;
    option_kind kind;
    size_t offset; /* in report_options */
    int limit;     /* largest number */
} option;

#define AT(member) offsetof(report_options, member)
static const option table[] = {
    {"-all", KIND_FLAG, AT(all), 0},
    {"-ask", KIND_TEXT, AT(ask_dir), 0},
    {"-audit", KIND_FLAG, AT(audit), 0},
    {"-breakpoints", KIND_FLAG, AT(breakpoints), 0},
    {"-exit_code", KIND_NUMBER, AT(exit_code), 255},
    {"-halt_on_error", KIND_FLAG, AT(halt_on_error), 0},
    {"-log", KIND_TEXT, AT(log_dir), 0},
    {"-memory", KIND_MEGABYTES, AT(memory), 1 << 24},
    {"-no_deadlocks", KIND_FLAG, AT(no_deadlocks), 0},
    {"-plan", KIND_TEXT, AT(plan_dir), 0},
    {"-quiet", KIND_FLAG, AT(quiet), 0},
    {"-stack_depth", KIND_NUMBER, AT(stack_depth), FT_FRAMES},
    {"-stats", KIND_FLAG, AT(stats), 0},
    {"-suppressions", KIND_TEXT, AT(suppressions), 0},
    {"-unchecked", KIND_FLAG, AT(unchecked), 0},
};

const char options_help[] =
    "  -plan DIR            where the plans are, one <build id>.plan per module (.race/plans)\n"
    "  -log DIR             also write reports to DIR/race.<pid>.log, events to DIR/race.<pid>.events\n"
    "  -suppressions FILE   what not to report, in ThreadSanitizer's syntax (race:, race_top:, deadlock:,\n"
    "                       called_from_lib:)\n"
    "  -ask DIR             ask for missing plans there; for `race run`\n"
    "  -exit_code N         exit code when the program ended with 0 but raced (66)\n"
    "  -halt_on_error       the first report ends the program\n"
    "  -all                 modules without a plan are checked at every access\n"
    "  -audit               report what contradicts the analysis: plans made with their claims are needed\n"
    "  -breakpoints         a debugger may set breakpoints anywhere: instructions are displaced one by one, which\n"
    "                       is slower (the embedded engine)\n"
    "  -stack_depth N       frames kept for each access, 0 to 64 (16)\n"
    "  -memory MB           limit of shadow memory (none)\n"
    "  -no_deadlocks        do not watch the order of locks\n"
    "  -quiet               reports go to the log only\n"
    "  -stats               print counters at exit\n"
    "  -unchecked           run modules whose plan is damaged without checks instead of refusing\n"
    "  -help                this text\n";

void options_default(report_options *options)
{
    *options = (report_options){.plan_dir = ".race/plans", .exit_code = 66, .stack_depth = 16};
}

static bool number_of(const char *text, int limit, int *value)
{
    int sum = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || sum > (limit - (*c - '0')) / 10) return false;
        sum = sum * 10 + (*c - '0');
    }
    *value = sum;
    return *text != 0;
}

static bool set(report_options *options, const option *o, const char *value)
{
    char *to = (char *)options + o->offset;
    int number;
    switch (o->kind) {
    case KIND_FLAG: *(bool *)to = true; return true;
    case KIND_TEXT: *(const char **)(void *)to = value; return true;
    case KIND_NUMBER: return number_of(value, o->limit, (int *)(void *)to);
    case KIND_MEGABYTES:
        if (!number_of(value, o->limit, &number)) return false;
        *(uint64_t *)(void *)to = (uint64_t)number << 20;
        return true;
    }
    return false;
}

options_status options_parse(report_options *options, int first, int argc, const char *const *argv, char *problem,
                             size_t size)
{
    report_text t;
    text_start(&t, problem, size);
    for (int i = first; i < argc; i++) {
        if (!strcmp(argv[i], "-help")) return OPTIONS_HELP;
        const option *o = NULL;
        for (unsigned k = 0; k < sizeof table / sizeof *table && !o; k++)
            if (!strcmp(argv[i], table[k].name)) o = &table[k];
        if (!o) {
            text_add(&t, "unknown option %s", argv[i]);
            return OPTIONS_BAD;
        }
        const char *value = o->kind == KIND_FLAG ? "" : i + 1 < argc ? argv[++i] : NULL;
        if (!value || !set(options, o, value)) {
            if (value)
                text_add(&t, "option %s does not take %s", o->name, value);
            else
                text_add(&t, "option %s wants a value", o->name);
            return OPTIONS_BAD;
        }
    }
    if (options->audit) options->all = true;
    return OPTIONS_OK;
}

int options_split(char *text, const char **words, int cap)
{
    int count = 0;
    char *from = text;
    for (;;) {
        while (*from == ' ' || *from == '\t' || *from == '\n')
            from++;
        if (!*from || count == cap) return count;
        char *to = from;
        words[count++] = to;
        while (*from && *from != ' ' && *from != '\t' && *from != '\n') {
            if (*from == '\\' && from[1]) from++;
            *to++ = *from++;
        }
        bool last = !*from;
        from++;
        *to = 0;
        if (last) return count;
    }
}
