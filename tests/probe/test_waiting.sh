#!/bin/sh
# A signal that comes while a check is made waits, and is delivered before the program goes on: also when neighbouring accesses
# are checked together.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
for options in "-O1" "-O2 -no-pie -fno-pie"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/waiting.c" -o waiting || fail "waiting.c does not compile"
    expect 0 "$RACE" run --engine probe ./waiting
    has "blocked 0"
done
finish
