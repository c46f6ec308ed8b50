#!/bin/sh
# A function that a thread enters twice, because DynamoRIO throws code away while it is about to, is one call: its lock is not held
# for ever after. What is looked at is what is reported: a client that does nothing but wrap these functions does not
# always survive the program either.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/flushes.c" -o flushes || fail "flushes.c does not compile"
for round in 1 2 3; do
    checks=$((checks + 1))
    timeout 20 "$RACE" run ./flushes >"$work/out" 2>"$work/err" </dev/null
    ! grep -q '^WARNING: race:' "$work/err" || fail "round $round: $(grep -A2 '^WARNING: race:' "$work/err" | head -3)"
done
finish
