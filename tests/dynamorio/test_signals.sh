#!/bin/sh
# Signals reach the program under the DynamoRIO client too: also those that arrive while a thread is in a check, in a loop that
# never leaves the code cache (threads are cancelled there), and those that arrive while another is delivered. A program that
# treats its own code as data does what it does alone.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
for options in "-O0" "-O2 -no-pie -fno-pie"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/selfmod.c" -o selfmod 2>"$work/build" || fail "$(head -1 "$work/build")"
    for how in remap file scan cancel; do
        ./selfmod $how >native || fail "$how: fails by itself"
        expect 0 "$RACE" run ./selfmod $how
        cmp -s native "$work/out" || fail "$options: $how: $(cat "$work/out") instead of $(cat native)"
    done
done
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/alarm.c" -o alarm || fail "alarm.c does not compile"
for round in 1 2 3; do
    expect 0 timeout 60 "$RACE" run ./alarm
    has "200 of 200"
done
finish
