/* Models of library functions: from a model's text to statements. The language is in program.h.
 *
 * The text is translated while it is read: an expression becomes the statements that compute it and an operand that
 * names the value. Variables stand for sets, so the order of statements means nothing, and `n = *n` is all that can be
 * reached. */
#include "static/pointer/generate.h"
#include "static/pointer/program.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

enum { MAX_LOCALS = 16, MAX_DEPTH = 16, MAX_ARGUMENT = 63, MAX_OFFSET = 1 << 20, STACK_ARGUMENTS = 6 };

typedef struct {
    const char *name;
    size_t len;
    uint32_t var;
    bool set;
} local;

typedef struct {
    pta_program *program;
    uint32_t func;
    const char *text, *at;
    race_error *error;
    bool failed;
    unsigned depth;
    local locals[MAX_LOCALS];
    unsigned local_count;
} reader;

/* A value: `at`, changed as `stride` says. Nothing: at.var is PTA_NO_VAR. */
typedef struct {
    pta_operand at;
    uint32_t stride;
} value;

static const value nothing = {{PTA_NO_VAR, 0}, PTA_SAME};

static void fail(reader *r, const char *what)
{
    if (!r->failed) base_fail(r->error, "model, column %zu: %s", (size_t)(r->at - r->text) + 1, what);
    r->failed = true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_blanks(reader *r)
{
    r->at += strspn(r->at, " \n");
}

static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static void expect(reader *r, char c, const char *what)
{
    if (!take(r, c)) fail(r, what);
}

/* Length of the word that comes next; a number is one too. */
static size_t peek_word(reader *r)
{
    size_t len = 0;
    skip_blanks(r);
    while (is_word(r->at[len]))
        len++;
    return len;
}

static bool take_word(reader *r, const char *word)
{
    size_t len = strlen(word);
    if (peek_word(r) != len || memcmp(r->at, word, len)) return false;
    r->at += len;
    return true;
}

/* A number without blanks in front; at most `limit`. */
static uint32_t take_number(reader *r, uint32_t limit)
{
    uint32_t n = 0;
    if (*r->at < '0' || *r->at > '9') return fail(r, "a number is missing"), 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        n = n * 10 + (uint32_t)(*r->at - '0');
        if (n > limit) return fail(r, "the number is too large"), 0;
    }
    return n;
}

static bool is_digit(const reader *r, size_t ahead)
{
    return r->at[ahead] >= '0' && r->at[ahead] <= '9';
}

/* --- statements -------------------------------------------------------------------------------------------------- */

static void emit(reader *r, pta_stmt stmt)
{
    if (!r->failed) program_add_stmt(r->program, r->func, stmt);
}

static uint32_t new_var(reader *r)
{
    return r->failed ? PTA_NO_VAR : program_new_var(r->program, r->func);
}

static bool has_offset(const reader *r)
{
    return *r->at == '+' || *r->at == '-' || *r->at == '%';
}

/* The variable for a value that takes a statement: `want`, unless an offset follows. */
static uint32_t var_for(reader *r, uint32_t want)
{
    return want != PTA_NO_VAR && !has_offset(r) ? want : new_var(r);
}

static value address(reader *r, uint32_t site, uint32_t stride, uint32_t want)
{
    uint32_t var = var_for(r, want);
    emit(r, (pta_stmt){.kind = PTA_ADDR, .dst = {var, 0}, .src = {PTA_NO_VAR, 0}, .stride = stride, .ref = site});
    return (value){{var, 0}, PTA_SAME};
}

static value load(reader *r, value from, uint32_t var)
{
    if (from.at.var == PTA_NO_VAR) return fail(r, "nothing cannot be followed"), nothing;
    emit(r, (pta_stmt){.kind = PTA_LOAD, .dst = {var, 0}, .src = from.at, .stride = from.stride});
    return (value){{var, 0}, PTA_SAME};
}

/* The value as an operand. */
static pta_operand plain(reader *r, value v)
{
    if (v.stride == PTA_SAME) return v.at;
    uint32_t var = new_var(r);
    emit(r, (pta_stmt){.kind = PTA_COPY, .dst = {var, 0}, .src = v.at, .stride = v.stride});
    return (pta_operand){var, 0};
}

static uint32_t fresh_site(reader *r, bool bytes)
{
    uint8_t sized = 0, counted = 0;
    if (!bytes && take(r, '(')) {
        sized = (uint8_t)(take_number(r, PTA_SIZES - 1) + 1);
        if (take(r, '*')) counted = (uint8_t)(take_number(r, PTA_SIZES - 1) + 1);
        expect(r, ')', "`)` is missing");
    }
    if (r->failed) return PTA_NO_SITE;
    return program_add_site(r->program, (pta_site){.kind = PTA_HEAP, .any = bytes, .sized = sized, .counted = counted, .func = r->func, .align = 16,
                                                   .memory = r->program->sites.len});
}

/* --- expressions ------------------------------------------------------------------------------------------------- */

static local *take_local(reader *r)
{
    static const char *const reserved[] = {"new", "bytes", "ext", "lib", "tls", "func", "ret", "ret2", "copy",
                                           "call", "calls", "thread", "threads", "event", "events"};
    size_t len = peek_word(r);
    if (!len || is_digit(r, 0)) return fail(r, "a value is missing"), NULL;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strlen(reserved[i]) == len && !memcmp(r->at, reserved[i], len))
            return fail(r, "this word has no place here"), NULL;
    const char *name = r->at;
    r->at += len;
    for (unsigned i = 0; i < r->local_count; i++)
        if (r->locals[i].len == len && !memcmp(r->locals[i].name, name, len)) return &r->locals[i];
    if (r->local_count == MAX_LOCALS) return fail(r, "too many variables"), NULL;
    r->locals[r->local_count] = (local){name, len, new_var(r), false};
    return &r->locals[r->local_count++];
}

/* Behind `lib` or `tls`: the site of that variable of the library. */
static uint32_t library_site(reader *r, bool per_thread)
{
    char name[64];
    size_t len = peek_word(r);
    if (!len || len >= sizeof name) return fail(r, "the name of a variable of the library is missing"), PTA_NO_SITE;
    memcpy(name, r->at, len);
    name[len] = 0;
    r->at += len;
    if (r->failed) return PTA_NO_SITE;
    uint32_t site = program_library_site(r->program, name);
    if (per_thread) r->program->sites.data[site].kind = PTA_TLS;
    return site;
}

static uint32_t function_site(reader *r)
{
    char name[256];
    size_t len = peek_word(r);
    if (!len || len >= sizeof name) return fail(r, "the name of a function is missing"), PTA_NO_SITE;
    memcpy(name, r->at, len);
    name[len] = 0;
    uint32_t func = r->failed ? PTA_NO_FUNC : program_import(r->program, name);
    if (func == PTA_NO_FUNC) return fail(r, "nobody knows this function"), PTA_NO_SITE;
    r->at += len;
    return program_function_site(r->program, func);
}

static value address_of(reader *r, uint32_t want)
{
    if (take_word(r, "func")) {
        uint32_t site = function_site(r);
        return address(r, site, PTA_SAME, want);
    }
    bool per_thread = take_word(r, "tls");
    if (!per_thread && !take_word(r, "lib")) return fail(r, "`&` is for lib, tls and func"), nothing;
    uint32_t site = library_site(r, per_thread);
    return address(r, site, PTA_SAME, want);
}

static value argument(reader *r, uint32_t want)
{
    uint32_t n = take_number(r, MAX_ARGUMENT);
    if (n < STACK_ARGUMENTS) return (value){{PTA_RDI + n, 0}, PTA_SAME};
    if (!r->failed) r->program->funcs.data[r->func].stack = GENERATE_STACK;
    return load(r, (value){{PTA_RSP, 8 + 8 * (int32_t)(n - STACK_ARGUMENTS)}, PTA_SAME}, var_for(r, want));
}

static value expression(reader *r, uint32_t want);

static value primary(reader *r, uint32_t want)
{
    skip_blanks(r);
    if (is_digit(r, 0)) return argument(r, want);
    if (take(r, '(')) {
        value inner = expression(r, PTA_NO_VAR);
        expect(r, ')', "`)` is missing");
        return inner;
    }
    if (take(r, '&')) return address_of(r, want);
    if (take_word(r, "new")) return address(r, fresh_site(r, false), PTA_SAME, want);
    if (take_word(r, "bytes")) return address(r, fresh_site(r, true), PTA_SAME, want);
    if (take_word(r, "ext")) return address(r, program_external_site(r->program), PTA_ANY, want);
    if (take_word(r, "ret")) return (value){{PTA_RET, 0}, PTA_SAME};
    if (take_word(r, "ret2")) return (value){{PTA_RET2, 0}, PTA_SAME};
    bool per_thread = take_word(r, "tls");
    if (per_thread || take_word(r, "lib")) {
        uint32_t site = library_site(r, per_thread);
        value at = address(r, site, PTA_SAME, PTA_NO_VAR);
        return load(r, at, var_for(r, want));
    }
    local *l = take_local(r);
    if (!l) return nothing;
    if (!l->set) fail(r, "this variable has no value yet");
    return (value){{l->var, 0}, PTA_SAME};
}

/* Behind a value, without blanks: `%N`, then `+N` or `-N`; or `+` alone. */
static value offset(reader *r, value v)
{
    if (!has_offset(r)) return v;
    if (v.at.var == PTA_NO_VAR) return fail(r, "nothing has no places"), nothing;
    v.at = plain(r, v);
    v.stride = PTA_SAME;
    if (*r->at == '+' && !is_digit(r, 1)) {
        r->at++;
        v.stride = PTA_ANY;
        return v;
    }
    if (*r->at == '%') {
        r->at++;
        v.stride = take_number(r, MAX_OFFSET);
        if (v.stride < 2) fail(r, "a stride is at least 2");
    }
    if (*r->at == '+' || *r->at == '-') {
        bool back = *r->at++ == '-';
        int32_t bytes = (int32_t)take_number(r, MAX_OFFSET);
        v.at.delta += back ? -bytes : bytes;
    }
    return v;
}

/* A value. When it takes a statement to make it, its variable is `want`, if that is one. */
static value expression(reader *r, uint32_t want)
{
    if (r->failed) return nothing;
    if (r->depth == MAX_DEPTH) return fail(r, "nested too deeply"), nothing;
    r->depth++;
    value v;
    if (take(r, '*')) {
        v = expression(r, PTA_NO_VAR);
        v = load(r, v, want != PTA_NO_VAR ? want : new_var(r));
    } else {
        v = offset(r, primary(r, want));
    }
    r->depth--;
    return r->failed ? nothing : v;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static const struct { const char *word; uint8_t spawn; bool repeated; } call_words[] = {
    {"call", PTA_SPAWN_NONE, false},     {"calls", PTA_SPAWN_NONE, true},   {"thread", PTA_SPAWN_THREAD, false},
    {"threads", PTA_SPAWN_THREAD, true}, {"event", PTA_SPAWN_EVENT, false}, {"events", PTA_SPAWN_EVENT, true},
};
enum { CALL_WORDS = sizeof call_words / sizeof *call_words };

/* Which of the words comes next, or CALL_WORDS. */
static unsigned take_call_word(reader *r)
{
    unsigned i = 0;
    while (i < CALL_WORDS && !take_word(r, call_words[i].word))
        i++;
    return i;
}

/* `7...`: the stack as it is from argument 7 on. The callee finds its own return address below it. */
static bool take_rest(reader *r, pta_operand *stack)
{
    skip_blanks(r);
    size_t digits = strspn(r->at, "0123456789");
    if (!digits || strncmp(r->at + digits, "...", 3)) return false;
    uint32_t n = take_number(r, MAX_ARGUMENT);
    if (n < STACK_ARGUMENTS) return fail(r, "this argument is not on the stack"), true;
    if (!r->failed) r->program->funcs.data[r->func].stack = GENERATE_STACK;
    r->at += 3;
    *stack = (pta_operand){PTA_RSP, 8 * (int32_t)(n - STACK_ARGUMENTS)};
    return true;
}

static void arguments(reader *r, pta_call *call)
{
    expect(r, '(', "the arguments are missing");
    for (unsigned i = 0; !r->failed && !take(r, ')'); i++) {
        if (i) expect(r, ',', "`,` or `)` is missing");
        if (i == STACK_ARGUMENTS) {
            if (!take_rest(r, &call->args[PTA_RSP])) fail(r, "a seventh argument can only be the rest of the stack");
        } else if (i > STACK_ARGUMENTS) {
            fail(r, "too many arguments");
        } else if (!take_word(r, "_")) {
            call->args[PTA_RDI + i] = plain(r, expression(r, PTA_NO_VAR));
        }
    }
}

/* Behind the word. The result goes to variable `ret`, which may be none. */
static void call_statement(reader *r, unsigned word, uint32_t ret)
{
    pta_call call = {.func = PTA_NO_FUNC, .ret = ret, .ret2 = PTA_NO_VAR, .caller = r->func,
                     .spawn = call_words[word].spawn, .in_loop = call_words[word].repeated};
    for (unsigned i = 0; i < PTA_PARAMS; i++)
        call.args[i] = nothing.at;
    call.target = plain(r, expression(r, PTA_NO_VAR));
    arguments(r, &call);
    if (r->failed) return;
    emit(r, (pta_stmt){.kind = PTA_CALL, .ref = program_add_call(r->program, call)});
}

/* --- statements of the language ---------------------------------------------------------------------------------- */

static void copy_statement(reader *r)
{
    pta_operand to = plain(r, expression(r, PTA_NO_VAR));
    pta_operand from = plain(r, expression(r, PTA_NO_VAR));
    uint32_t word = new_var(r);
    emit(r, (pta_stmt){.kind = PTA_LOAD, .dst = {word, 0}, .src = from, .stride = 8});
    emit(r, (pta_stmt){.kind = PTA_STORE, .dst = to, .src = {word, 0}, .stride = 8});
}

typedef struct {
    uint32_t var; /* or PTA_NO_VAR: the memory at `place` */
    value place;
    local *name;  /* gets its value here */
} destination;

static destination take_destination(reader *r)
{
    if (take(r, '*')) return (destination){PTA_NO_VAR, expression(r, PTA_NO_VAR), NULL};
    if (take_word(r, "ret")) return (destination){PTA_RET, nothing, NULL};
    if (take_word(r, "ret2")) return (destination){PTA_RET2, nothing, NULL};
    if (take_word(r, "ext")) {
        value at = address(r, program_external_site(r->program), PTA_ANY, PTA_NO_VAR);
        return (destination){PTA_NO_VAR, {at.at, PTA_ANY}, NULL};
    }
    bool per_thread = take_word(r, "tls");
    if (per_thread || take_word(r, "lib")) {
        uint32_t site = library_site(r, per_thread);
        return (destination){PTA_NO_VAR, address(r, site, PTA_SAME, PTA_NO_VAR), NULL};
    }
    local *name = take_local(r);
    return (destination){name ? name->var : PTA_NO_VAR, nothing, name};
}

static void assignment(reader *r)
{
    destination to = take_destination(r);
    expect(r, '=', "`=` is missing");
    if (r->failed) return;
    pta_operand result = {to.var, 0};
    unsigned word = take_call_word(r);
    if (word < CALL_WORDS) {
        if (to.var == PTA_NO_VAR) result.var = new_var(r);
        call_statement(r, word, result.var);
    } else {
        value v = expression(r, to.var);
        if (to.var == PTA_NO_VAR)
            result = plain(r, v);
        else if (v.at.var != to.var || v.at.delta || v.stride != PTA_SAME)
            emit(r, (pta_stmt){.kind = PTA_COPY, .dst = {to.var, 0}, .src = v.at, .stride = v.stride});
    }
    if (to.var == PTA_NO_VAR)
        emit(r, (pta_stmt){.kind = PTA_STORE, .dst = to.place.at, .src = result, .stride = to.place.stride});
    if (to.name) to.name->set = true;
}

int model_fill(pta_program *program, uint32_t func, const char *text, race_error *error)
{
    reader r = {.program = program, .func = func, .text = text, .at = text, .error = error};
    for (skip_blanks(&r); *r.at && !r.failed; skip_blanks(&r)) {
        unsigned word = take_call_word(&r);
        if (word < CALL_WORDS)
            call_statement(&r, word, PTA_NO_VAR);
        else if (take_word(&r, "copy"))
            copy_statement(&r);
        else
            assignment(&r);
        if (!r.failed && !take(&r, ';') && *r.at) fail(&r, "`;` is missing");
    }
    return r.failed ? -1 : 0;
}
