#!/bin/sh
# What a thread knows about data that it reads together with others, or about a block that it has freed, settles nothing
# that it accesses for the first time.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
for options in -O0 -O2; do
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/fresh.c" -o fresh 2>"$work/build" || fail "$(head -1 "$work/build")"
    for try in 1 2 3; do # the reader might be too early
        run "$RACE_BUILD/race" run --state "$work/state" ./fresh
        [ "$code" = 66 ] && break
    done
    checks=$((checks + 1))
    [ "$code" = 66 ] || fail "$options: exit code $code: the race was not seen"
    for mark in 'the second' 'of the byte'; do
        line=$(grep -n "$mark" "$RACE_SOURCE/tests/probe/fresh.c" | cut -d: -f1)
        checks=$((checks + 1))
        grep -q "fresh.c:$line" "$work/err" || fail "$options, line $line: $(head -5 "$work/err")"
    done
    grep -q 'Read of size 1' "$work/err" || fail "$options: only the pointer to the byte is reported"
done
finish
