#!/bin/sh
# Blocks that would become too large with their checks are made of several: planned ones, and with -all those without a plan.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 -g -pthread "$RACE_SOURCE/tests/dynamorio/long.c" -o long || fail "long.c does not compile"
expect 0 "$RACE" run ./long
has 80000
mkdir none
expect 0 "$RACE_DYNAMORIO/bin64/drrun" -c "$RACE_BUILD/librace.so" -plan none -all -- ./long
has 80000
finish
