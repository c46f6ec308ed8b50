#!/bin/sh
# With --breakpoints a debugger's breakpoints at every instruction of code that is checked are hit, and the program does what it
# always does.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
command -v objdump >/dev/null || skip "no objdump"
cd "$work" || exit 1

for level in O0 O2; do
    gcc -$level -g -pthread -no-pie -fno-pie "$RACE_SOURCE/tests/probe/breaks.c" -o breaks 2>build || fail "$(head -1 build)"
    mkdir -p plans
    "$RACE_TOOLS/makeplan" plans ./breaks >out || fail "no plan"
    native=$(./breaks run)
    addresses=$(objdump -dw --disassemble=kernel breaks | sed -n 's/^ *\([0-9a-f]*\):\t.*/\1/p')
    count=$(echo "$addresses" | wc -l)
    # shellcheck disable=SC2086 # they are several
    BREAKS_PRELOAD=$RACE_BUILD/librace_probe.so BREAKS_OPTIONS="-plan $work/plans -breakpoints" run ./breaks ./breaks $addresses
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "-$level: exit code $code: $(tail -2 "$work/err")"
    [ "$(cat "$work/out")" = "$native" ] || fail "-$level: $(cat "$work/out") instead of $native"
    hits=$(sed -n 's/^hits //p' "$work/err")
    [ "${hits:-0}" -ge $((count * 20)) ] || fail "-$level: $hits hits of $count breakpoints in a loop of 50"
done
finish
