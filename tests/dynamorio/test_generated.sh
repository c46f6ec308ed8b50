#!/bin/sh
# Code that a program makes at run time: its atomic instructions are synchronisation, and with --all its accesses are checked.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/generated.c" -o generated || fail "generated.c does not compile"
expect 0 "$RACE" run ./generated atomic
expect 0 "$RACE" run --all ./generated atomic
expect 66 "$RACE" run --all ./generated plain
error_has "Location is global 'count'"
finish
