#!/bin/sh
# Signals of a program that is checked at every access: of two that come at once neither is lost, and a handler that makes the
# interrupted code call something, as Go's runtime does, can go back into the middle of displaced code; that is said. A child of
# vfork does not change its parent's handlers. What is delivered late is delivered as it was meant to be, and whatever makes processes
# and threads without telling libc's own functions (clone, _Fork, system calls) goes on as it would alone.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
for program in preempt pairs vforked late clones; do
    for options in "-O0" "-O2 -no-pie -fno-pie" "-O2 -fPIE -pie"; do
        # shellcheck disable=SC2086 # several words
        gcc $options -g -mno-red-zone -pthread "$RACE_SOURCE/tests/probe/$program.c" -o $program 2>"$work/build" || fail "$(head -1 "$work/build")"
        "$RACE_TOOLS/makeplan" plans ./$program >"$work/out" || fail "no plan"
        native=$(./$program)
        for try in 1 2 3 4 5; do # where a signal comes is not said, and on a busy machine few do
            run env RACE_OPTIONS="-plan $work/plans -exit_code 0" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./$program
            checks=$((checks + 1))
            [ "$code" = 0 ] || fail "$options: $program: exit code $code: $(tail -3 "$work/out" "$work/err")"
            [ "$(cat "$work/out")" = "$native" ] || fail "$options: $program: $(cat "$work/out") instead of $native"
            [ $program = preempt ] || break
            ! grep -q 'sites ran unchecked after a handler' "$work/err" || break
        done
        [ $program != preempt ] || grep -q 'sites ran unchecked after a handler' "$work/err" || fail "$options: $program, try $try: no handler came in between"
    done
done
finish
