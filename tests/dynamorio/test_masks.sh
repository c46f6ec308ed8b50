#!/bin/sh
# What a program blocks is blocked under the DynamoRIO client too: sigwait, sigpending, signalfd, masks for the time of a call,
# masks that threads and programs inherit, and timers with a thread of their own do what they do alone.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/masks.c" -o masks -lrt || fail "masks.c does not compile"
./masks >native || fail "fails by itself"
for round in 1 2 3; do
    expect 0 timeout 120 "$RACE" run ./masks
    cmp -s native "$work/out" || fail "round $round: $(diff native "$work/out" | grep '^[<>]' | head -4 | tr '\n' ' ')"
done
finish
