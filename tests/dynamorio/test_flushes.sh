#!/bin/sh
# Functions of the table that are called through pointers, at ever new places: the program ends as it does alone, and no lock is
# held for ever after. A client that does nothing but wrap these functions hangs: for each place DynamoRIO throws code away
# while other threads are about to run it.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/flushes.c" -o flushes || fail "flushes.c does not compile"
for round in 1 2 3 4 5 6; do
    expect 0 timeout -k 5 60 "$RACE" run ./flushes
    has "done"
    ! grep -q '^WARNING: race:' "$work/err" || fail "round $round: $(grep -A2 '^WARNING: race:' "$work/err" | head -3)"
done
finish
