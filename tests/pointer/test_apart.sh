#!/bin/sh
# What is apart stays apart, and what is accessed is there: an index of an array member is not in the members beside it, stack
# arguments of one call are not those of the next, small functions are as if inlined, and text is not pointers.
. "$RACE_SOURCE/tests/lib/check.sh"

command -v gcc >/dev/null || skip "no gcc"

# apart FUNCTION OBJECT OTHER: the function is said to access the object, and not the other.
apart() {
    expect 0 "$RACE" show --pts "$work/apart" "$1"
    grep -qF -- "&$2" "$work/out" || fail "$how: $1 is not said to access $2: $(head -c 600 "$work/out")"
    ! grep -qF -- "&$3" "$work/out" || fail "$how: $1 is said to access $3: $(head -c 600 "$work/out")"
}

for how in "-O0 -g" "-O1 -g" "-O2 -g"; do
    # shellcheck disable=SC2086 # options
    gcc -std=gnu17 $how "$RACE_SOURCE/tests/pointer/apart.c" -o "$work/apart" 2>/dev/null || fail "cannot be built with $how"
    apart touch_before before_value behind_value
    apart touch_behind behind_value before_value
    apart take_first first_object second_object
    apart take_second second_object first_object
    apart walk_one one_value other_value
    apart walk_other other_value one_value
    apart touch_target target never
done

finish
