#!/bin/sh
# Threads that libc makes for a timer are seen: the race of samples/verdict/timer_thread.c, and nothing else of it, also of a timer
# that a child of fork has made.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

RACE_ENGINE=probe
needs_engine
cd "$work" || exit 1
gcc -g -O1 -pthread "$RACE_SOURCE/samples/verdict/timer_thread.c" -o timer || fail "timer_thread.c does not compile"
gcc -g -O1 -pthread "$RACE_SOURCE/tests/probe/timers.c" -o timers || fail "timers.c does not compile"
for try in 1 2 3 4 5 6 7 8; do # it is not said when the timer fires
    run "$RACE" run ./timer
    [ "$code" = 0 ] || break
done
[ "$code" = 66 ] || fail "the race is not seen: exit code $code"
lines=$(sed -n 's/.*timer_thread.c:\([0-9]*\).*/\1/p' "$work/err" | grep -v '^4[0-9]$' | sort -u | tr '\n' ' ')
[ "$lines" = "25 30 " ] || fail "lines $lines instead of 25 and 30"
for try in 1 2 3; do
    expect 0 "$RACE" run ./timers
    has_line '^200 200$'
done
finish
