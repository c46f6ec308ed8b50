#!/bin/sh
# A thread has the stack that its creator asked for, however small: what the engine keeps for each thread comes on top of it.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
for options in -O0 -O2; do
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/stacks.c" -o stacks || fail "stacks.c does not compile"
    ./stacks >native || fail "$options: fails by itself"
    expect 0 "$RACE" run ./stacks
    cmp -s native "$work/out" || fail "$options: $(diff native "$work/out")"
    [ "$(grep -c ': done, ' native)" = 5 ] || fail "$options: by itself: $(cat native)"
done
finish
