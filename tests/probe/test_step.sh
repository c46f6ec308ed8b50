#!/bin/sh
# A signal at every instruction of every trampoline of loops with all kinds of instructions, and of all that the trampolines
# call: its handler is shown the program's own registers and addresses, and the loops compute what they always do.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1

for options in "-O1 -no-pie -fno-pie" "-O2 -pie -fPIE"; do
    # shellcheck disable=SC2086 # they are several
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/step.c" -o step 2>"$work/build" || fail "$(head -1 "$work/build")"
    mkdir -p plans
    "$RACE_TOOLS/makeplan" plans ./step >"$work/out" || fail "no plan"
    for loop in kernel kinds; do
        native=$(./step $loop 2>/dev/null)
        STEP_PRELOAD=$RACE_BUILD/librace_probe.so STEP_OPTIONS="-plan $work/plans" run ./step ./step $loop 1000000 # all of what is called
        checks=$((checks + 1))
        [ "$code" = 0 ] || fail "$options, $loop: exit code $code: $(tail -3 "$work/err")"
        [ "$(cat "$work/out")" = "$native" ] || fail "$options, $loop: $(cat "$work/out") instead of $native"
        grep -q '^strange 0 of [1-9][0-9][0-9]' "$work/err" || fail "$options, $loop: $(tail -3 "$work/err")"
    done
done
finish
