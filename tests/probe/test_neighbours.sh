#!/bin/sh
# Checks of neighbouring accesses that are made in one go find the races of each of them, and no others.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
source=$RACE_SOURCE/tests/probe/neighbours.c
expected=$(grep -n '^ */\* RACY' "$source" | cut -d: -f1 | tr '\n' ' ')
for options in "-O0" "-O2"; do
    gcc $options -g -w -pthread "$source" -o neighbours 2>"$work/build" || fail "$(head -1 "$work/build")"
    for kind in 0 1 4 7; do
        for try in 1 2 3; do # the reader might be too early
            run "$RACE_BUILD/race" run --state "$work/state" ./neighbours $kind
            [ "$code" = 66 ] && break
        done
        found=$(sed -n 's/^ *#0 read_all .*neighbours\.c:\([0-9]*\).*/\1/p' "$work/err" | sort -nu | tr '\n' ' ')
        checks=$((checks + 1))
        [ "$found" = "$expected" ] || fail "$options, $kind: lines $found instead of $expected"
    done
done
finish
