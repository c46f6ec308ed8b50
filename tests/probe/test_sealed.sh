#!/bin/sh
# A program that forbids system calls to itself ends as it would alone, whatever the calls are that checks need; that it is not
# checked any more is said. What its children get does not depend on what it makes of its environment.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
for program in sealed title; do
    gcc -O1 -g -pthread "$RACE_SOURCE/tests/probe/$program.c" -o $program 2>"$work/build" || fail "$(head -1 "$work/build")"
    "$RACE_TOOLS/makeplan" plans ./$program >"$work/out" || fail "no plan"
done
timeout 60 ./sealed >native
for try in 1 2 3; do
    run env RACE_OPTIONS="-plan $work/plans -exit_code 0" LD_PRELOAD="$RACE_BUILD/librace_probe.so" timeout 60 ./sealed
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "$try: exit code $code: $(tail -3 "$work/err")"
    cmp -s native "$work/out" || fail "$try: $(cat "$work/out") instead of $(cat native)"
    grep -q 'seccomp.*--engine' "$work/err" && fail "DynamoRIO does not survive that either"
    [ "$(grep -c 'seccomp.* runs unchecked' "$work/err")" = 4 ] || fail "$try: not said: $(cat "$work/err")"
done
for call in 5 310; do # fstat and process_vm_readv, without which no plan is found
    run ./sealed $call env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./title
    checks=$((checks + 1))
    grep -q '^race: [a-z_]* is forbidden (seccomp): the program runs unchecked$' "$work/err" || fail "call $call: not said: $(cat "$work/err")"
done
run env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./title
checks=$((checks + 1))
[ "$(cat "$work/out")" = "-plan $work/plans -child" ] || fail "title: $(cat "$work/out" "$work/err")"
finish
