#!/bin/sh
# What a thread knows about data that it reads together with others settles nothing that it reads for the first time.
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
    grep -q 'fresh.c:35' "$work/err" || fail "$options: $(head -5 "$work/err")"
done
finish
