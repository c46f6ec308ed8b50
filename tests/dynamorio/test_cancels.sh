#!/bin/sh
# A thread that waits in a system call can be cancelled under the DynamoRIO client, also while other signals arrive (alone
# DynamoRIO loses about one in a hundred of these cancellations, and the program hangs).
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/cancels.c" -o cancels || fail "cancels.c does not compile"
expect 0 timeout 120 "$RACE" run ./cancels
[ "$(cat "$work/out")" = "300 of 300" ] || fail "printed $(cat "$work/out")"
finish
