#!/bin/sh
# What real programs do that looks like a race or a deadlock, each in a right and in a wrong variant (-DWRONG): the wrong one is reported
# with high confidence, the right one is not, or not at all.
. "$RACE_SOURCE/tests/lib/check.sh"

command -v gcc >/dev/null || skip "no gcc"

# says RIGHT WRONG PROGRAM [OPTION...]: the numbers that the last line of the reports on both variants begins with.
says() {
    right=$1 wrong=$2 program=$3
    shift 3
    for how in "-O0 -g" "-O2 -g"; do
        for variant in right wrong; do
            # shellcheck disable=SC2086 # options
            gcc -std=gnu17 $how -pthread $([ $variant = right ] || echo -DWRONG) "$RACE_SOURCE/tests/check/$program.c" "$@" \
                -o "$work/$program" 2>"$work/err" || fail "$program: cannot be built with $how: $(head -1 "$work/err")"
            wanted=$right
            [ $variant = right ] || wanted=$wrong
            checks=$((checks + 1))
            run "$RACE" check --no-state "$work/$program"
            grep -Eq "^$wanted" "$work/out" || fail "$program, $variant, $how: $(grep -E '^[0-9]+ races?' "$work/out"), expected $wanted"
        done
    done
}

says '0 races .*, 0 deadlocks' '0 races .*, 1 deadlock' failed         # a lock that could not be taken is not held
says '0 races' '2 races \(2 high' blocks                               # text stays in its array
says '3 races \(0 high, 3 medium' '3 races \(3 high, 0 medium' optional # locks that are taken on a condition
says '0 races' '1 race \(0 high, 1 medium' frames                      # each activation has its own variables
says '3 races \(0 high, 3 medium' '3 races \(3 high' modes             # a thread does what it has tested, and was called with
if echo '#include <event2/event.h>' | gcc -fsyntax-only -xc - 2>/dev/null; then
    says '1 race \(0 high, 1 medium' '5 races \(5 high' loops -levent  # whose loop runs an event
fi
finish
