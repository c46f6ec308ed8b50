#!/bin/sh
# Signals whose handlers are checked come while threads end, when less and less of what a check needs is still there.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
gcc -O2 -g -pthread "$RACE_SOURCE/tests/probe/exits.c" -o exits || skip "exits.c cannot be compiled"
for i in 1 2 3; do
    expect 0 "$RACE" run --state state --exit-code 0 ./exits
    [ "$(cat "$work/out")" = "1000 threads" ] || fail "its output is another: $(head -3 "$work/out")"
done
finish
