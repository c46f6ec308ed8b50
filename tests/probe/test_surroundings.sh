#!/bin/sh
# A program starts with what `race run` was started with: closed descriptors, ignored signals, low limits. Where it cannot be
# checked, one line says so before it runs, and nothing is lost in silence.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
gcc -O1 -g -pthread -rdynamic "$RACE_SOURCE/tests/probe/surroundings.c" -o surroundings || fail "it does not compile"
gcc -O1 -fno-pic -mcmodel=large -shared -Wl,-z,notext "$RACE_SOURCE/tests/probe/late_text.c" -o late_text.so 2>/dev/null ||
    fail "the library does not compile"
"$RACE" run ./surroundings first >"$work/out" 2>"$work/err" # the plan is made

# same CODE WAY ARGUMENT...: WAY is shell code that ends with running "$@".
same() {
    wanted=$1 way=$2
    shift 2
    sh -c "$way" sh ./surroundings native "$@" >/dev/null 2>&1 || fail "$way: it fails alone"
    run sh -c "$way" sh "$RACE" run ./surroundings checked "$@"
    checks=$((checks + 1))
    [ "$code" = "$wanted" ] || fail "$way: exit code $code: $(tail -2 "$work/err")"
    cmp -s native checked || fail "$way: $(cat checked) instead of $(cat native)"
}
same 66 '"$@"'
for closed in '0<&-' '1>&-' '2>&-' '0<&- 1>&- 2>&-'; do
    same 66 "\"\$@\" $closed"
done
same 66 'trap "" PIPE; exec "$@"'
same 66 'ulimit -n 64; exec "$@"'
same 0 'exec "$@"' clock
grep -q 'seccomp' "$work/err" || fail "seccomp: not said"
same 66 'exec "$@"' ./late_text.so
grep -q 'late_text.so: has relocations in its code: it runs unchecked' "$work/err" || fail "late_text: not said"

# refused: WHAT COMMAND...: with one line.
refused() {
    what=$1
    shift
    expect_error "$@"
    error_has "$what"
}
refused 'ulimit -d' sh -c 'ulimit -d 1000000; exec "$@"' sh "$RACE" run ./surroundings x
mkdir plain "with blank" "with
newline"
cp "$RACE_BUILD/race" "$RACE_BUILD/librace_probe.so" "with blank" && cp "$RACE_BUILD/race" "$RACE_BUILD/librace_probe.so" plain
expect 66 plain/race run ./surroundings x
refused 'cannot be preloaded' "with blank/race" run ./surroundings x
refused 'control characters' "$RACE" run --log "with
newline" ./surroundings x
(cd "with
newline" && expect_error "$RACE" run ../surroundings x && [ "$failures" = 0 ]) || fail "run in a folder with a newline"
gcc -O1 -pthread -static "$RACE_SOURCE/tests/probe/surroundings.c" -o static 2>/dev/null || fail "no static program"
refused 'statically linked' "$RACE" run ./static x
refused 'statically linked' "$RACE" run --plan .race/plans ./static x
gcc -shared -nostdlib -Wl,-soname,libc.so -x c /dev/null -o libc.so && # as a program that musl-gcc has linked needs it
    gcc -O1 -pthread -Wl,--no-as-needed "$RACE_SOURCE/tests/probe/surroundings.c" ./libc.so -o musl || fail "nothing like musl"
refused 'musl' "$RACE" run ./musl x
finish
