#!/bin/sh
# `race check` as a user meets it: what it says, exit codes, options, and that the same input gives the same bytes.
. "$RACE_SOURCE/tests/lib/check.sh"
json="$RACE_TOOLS/json_get"
racy=$RACE_BUILD/samples/racy_counter
[ -f "$racy" ] || skip "the samples are not built"
cd "$work" || exit 1

# --- what it says ---
expect 1 "$RACE" check "$racy"
has_line '^race on unprotected \(8 bytes\), high confidence'
has 'thread add, created in main'
has 'no locks held'
has_line '^1 race \(1 high, 0 medium, 0 low\), 0 deadlocks$'
[ -s "$work/err" ] && fail "prints on stderr when it is no terminal"
! grep -q "$(printf '\033')" "$work/out" || fail "colours when it is no terminal"

cat >"$work/clean.c" <<'END'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *f(void *u) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return u; }
int main(void)
{
    pthread_t a, b;
    if (pthread_create(&a, 0, f, 0)) return 1;
    if (pthread_create(&b, 0, f, 0)) return 1;
    pthread_join(a, 0);
    pthread_join(b, 0);
    return n != 2;
}
END
gcc -O1 -g -pthread -o "$work/clean" "$work/clean.c" || skip "no compiler"
expect 0 "$RACE" check "$work/clean"
has_line '^0 races'

# --- the same without the lock: a wrong result of the analysis above would not be seen otherwise ---
sed 's/pthread_mutex_lock(&m);//; s/pthread_mutex_unlock(&m);//' "$work/clean.c" >"$work/dirty.c"
gcc -O1 -g -pthread -o "$work/dirty" "$work/dirty.c"
expect 1 "$RACE" check "$work/dirty"
has_line '^race on n '
id=$(sed -n 's/^race on n .*\[\(R[0-9a-f]*\)\]$/\1/p' "$work/out" | head -1)

# An id survives lines that move and other functions.
{ echo; echo 'int other(int x) { return x * 3; }'; cat "$work/dirty.c"; } >"$work/moved.c"
mkdir "$work/again" && gcc -O1 -g -pthread -o "$work/again/dirty" "$work/moved.c"
expect 1 "$RACE" check "$work/again/dirty"
has "[$id]"

# --- one warning for each place, all pairs with --all, files of the current directory without it ---
cat >"$work/many.c" <<'END'
#include <pthread.h>
static long total, other;
static void *f(void *u) { total++; total += 2; other = total; return u; }
static void *g(void *u) { total = 7; return (char *)u + other; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, f, 0);
    pthread_create(&b, 0, g, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
END
gcc -O0 -g -pthread -o "$work/many" "$work/many.c"
expect 1 "$RACE" check --no-state "$work/many"
has_line '^2 races \(2 high, 0 medium, 0 low\), 0 deadlocks$'
[ "$(grep -c '^race on total ' "$work/out")" = 1 ] || fail "several warnings on one place"
has_line '^  and [0-9]+ more pairs? of accesses to it$'
has_line '^[0-9]+ pairs of accesses in all: --all shows them$'
shown=$(sed -n 's/^  and \([0-9]*\) more.*/\1/p' "$work/out" | awk '{ n += $1 } END { print n + 0 }')
expect 1 "$RACE" check --no-state --all "$work/many"
[ "$(grep -c '^race on ' "$work/out")" = $((shown + 2)) ] || fail "--all shows other pairs than were counted"
checks=$((checks + 1))
expect 1 "$RACE" check --no-state many
has_line '^  (write|read) in [fg], many.c:[34]$'
(cd / && "$RACE" check --no-state "$work/many" >"$work/out") && fail "no race when called from another folder"
has_line "^  (write|read) in [fg], $work/many.c:[34]\$"

# --- a source that is no file ---
sed 's|^static void \*f|#line 3 "/dev/zero"\n&|' "$work/many.c" >"$work/device.c"
gcc -O0 -g -pthread -o "$work/device" "$work/device.c"
expect 1 timeout 60 "$RACE" check --no-state "$work/device"
has_line '^  (write|read) in f, /dev/zero:3$'

# --- without debug information, and stripped ---
gcc -O1 -g0 -pthread -o "$work/bare" "$work/dirty.c"
expect 1 "$RACE" check "$work/bare"
has_line '^race on n '
strip -s "$work/bare"
expect 1 "$RACE" check "$work/bare"
has_line '^race on data at 0x'

# --- deadlock ---
cat >"$work/dead.c" <<'END'
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *f(void *u) { pthread_mutex_lock(&a); pthread_mutex_lock(&b); pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return u; }
static void *g(void *u) { pthread_mutex_lock(&b); pthread_mutex_lock(&a); pthread_mutex_unlock(&a); pthread_mutex_unlock(&b); return u; }
int main(void)
{
    pthread_t x, y;
    pthread_create(&x, 0, f, 0);
    pthread_create(&y, 0, g, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
END
gcc -O1 -g -pthread -o "$work/dead" "$work/dead.c"
expect 1 "$RACE" check "$work/dead"
has_line '^deadlock of '
has 'holding a since f'
echo 'deadlock:^f$' >"$work/supp"
expect 0 "$RACE" check --suppressions "$work/supp" "$work/dead"

# --- what the user does not want to see ---
printf '# meant\nrace:unprot*ed\n' >"$work/supp"
expect 0 "$RACE" check --suppressions "$work/supp" --stats "$racy"
has '1 suppressed'
printf 'race:^add$\n' >"$work/supp"
expect 0 "$RACE" check --suppressions "$work/supp" "$racy"
printf 'race:somebody_else\n' >"$work/supp"
expect 1 "$RACE" check --suppressions "$work/supp" "$racy"
printf 'rice:add\n' >"$work/supp"
expect_error "$RACE" check --suppressions "$work/supp" "$racy"
error_has 'supp:1'
{ echo '#include "race/annotations.h"'; cat "$work/dirty.c"; echo 'RACE_BENIGN(n);'; } >"$work/meant.c"
gcc -O1 -g -pthread -I "$RACE_SOURCE/include" -o "$work/meant" "$work/meant.c" || fail "annotations.h does not compile"
expect 0 "$RACE" check --stats "$work/meant"
has ' benign'

# --- locks of the user's own ---
cat >"$work/own.c" <<'END'
#include <pthread.h>
static int n;
int held;
__attribute__((noinline)) void big_enter(int *l) { while (*l) __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void big_leave(int *l) { __asm__ volatile("" ::"r"(l) : "memory"); }
static void *f(void *u) { big_enter(&held); n++; big_leave(&held); return u; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, f, 0);
    pthread_create(&b, 0, f, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return n;
}
END
gcc -O1 -g -pthread -o "$work/own" "$work/own.c"
expect 1 "$RACE" check "$work/own"
has_line '^race on n '
expect 0 "$RACE" check --config "$RACE_SOURCE/samples/check.conf" "$work/own"
echo 'lock' >"$work/conf"
expect_error "$RACE" check --config "$work/conf" "$work/own"
error_has 'conf:1'

# --- a library ---
cat >"$work/lib.c" <<'END'
static long calls;
long count(void) { return ++calls; }
END
gcc -O1 -g -shared -fPIC -o "$work/lib.so" "$work/lib.c"
expect 0 "$RACE" check "$work/lib.so"
expect 1 "$RACE" check --open "$work/lib.so"
has_line '^race on calls '

# --- a program that exports all it has: what nobody calls does not run, unless the user says that somebody may ---
cat >"$work/exports.c" <<'END'
#include <pthread.h>
static long limit;
void set_up(void) { limit = 10; }
static void *f(void *u) { for (volatile long i = 0; i < limit; i++); return u; }
int main(void)
{
    pthread_t a;
    set_up();
    pthread_create(&a, 0, f, 0);
    pthread_join(a, 0);
    return 0;
}
END
gcc -O0 -g -rdynamic -pthread -o "$work/exports" "$work/exports.c"
expect 0 "$RACE" check "$work/exports"
expect 1 "$RACE" check --open "$work/exports"
has_line '^race on limit '

# --- names of C++ ---
if command -v g++ >/dev/null; then
    sed 's/static void \*f(void \*u)/namespace of { struct own { static void *f(void *u); }; } void *of::own::f(void *u)/; s/, f,/, of::own::f,/g' \
        "$work/dirty.c" >"$work/dirty.cpp"
    g++ -O1 -g -pthread -o "$work/mangled" "$work/dirty.cpp" || fail "the program in C++ does not compile"
    expect 1 "$RACE" check "$work/mangled"
    has 'in of::own::f(void*), '
    has 'by thread of::own::f(void*), '
    expect 1 "$RACE" check --format json "$work/mangled"
    has '"function": "_ZN2of3own1fEPv"'
    has '"demangled": "of::own::f(void*)"'
fi

# --- JSON, and the same bytes each time ---
# Large enough for two threads to meet: the C++ library is in it.
future=$RACE_BUILD/samples/verdicts/verdict/cpp_future_wrong/clang-O0
if [ -f "$future" ]; then
    "$RACE" check --full --jobs 1 "$future" >"$work/alone" 2>&1
    for run in 1 2 3 4; do
        checks=$((checks + 1))
        "$RACE" check --full --jobs 2 "$future" >"$work/together" 2>&1
        cmp -s "$work/alone" "$work/together" || fail "with two threads other bytes than with one (run $run)"
    done
fi
expect 1 "$RACE" check --full --format json --jobs 1 "$racy"
cp "$work/out" "$work/one"
expect 1 "$RACE" check --full --format json --jobs 2 "$racy"
cmp -s "$work/out" "$work/one" || fail "the number of threads changes the output"
expect 1 "$RACE" check --format json "$racy"
cmp -s "$work/out" "$work/one" || fail "two runs differ"
if [ -x "$json" ]; then
    get() { "$json" "$work/out" "$@"; }
    [ "$(get version)" = 1 ] || fail "JSON: version"
    [ "$(get warnings.0.kind)" = race ] || fail "JSON: kind"
    [ "$(get warnings.0.location.name)" = unprotected ] || fail "JSON: location"
    [ "$(get warnings.0.accesses.1.function)" = add ] || fail "JSON: function"
fi

# --- wrong usage ---
expect_error "$RACE" check
expect_error "$RACE" check --format dot "$racy"
expect_error "$RACE" check --context deep "$racy"
expect_error "$RACE" check --incremental never "$racy"
expect_error "$RACE" check "$work/not-there"
expect_error "$RACE" check "$work/clean.c"
expect_error "$RACE" check --suppressions "$work/not-there" "$racy"
mkfifo "$work/fifo" # that nobody writes to
for file in "$work/fifo" "$work" /dev/zero; do
    for option in --suppressions --config; do
        expect_error "$RACE" check $option "$file" "$racy"
        error_has "$file: is not a regular file"
    done
done
expect 0 "$RACE" check --help
finish
