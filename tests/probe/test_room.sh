#!/bin/sh
# A program at a fixed address that leaves less than the usual room for its heap: it is checked all the same, and its heap
# grows elsewhere.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

RACE_ENGINE=probe
needs_engine
cd "$work" || exit 1
gcc -g -O1 -fno-pie -no-pie -pthread "$RACE_SOURCE/tests/probe/room.c" -o room || fail "room.c does not compile"
setarch -R true 2>/dev/null || skip "addresses cannot be kept from being random here"
./room >native || fail "room.c does not run alone"
for how in "" "setarch -R"; do # the heap begins somewhere behind the program, or right there
    expect 66 $how "$RACE" run ./room
    has "there is room"
    [ "$(grep -c '^WARNING: race: data race' "$work/err")" -gt 0 ] || fail "the race is not reported"
done
finish
