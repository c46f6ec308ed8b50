#!/bin/sh
# What the points-to sets must not contain: leavings in registers are no arguments, and a member is not its neighbour. That they
# contain what they must is for test_oracle.sh.
. "$RACE_SOURCE/tests/lib/check.sh"

command -v gcc >/dev/null || skip "no gcc"

# misses FUNCTION OBJECT: no access of the function is said to be to it.
misses() {
    expect 0 "$RACE" show --pts "$work/precise" "$1"
    ! grep -qF -- "$2" "$work/out" || fail "$how: $1 is said to access $2: $(head -c 600 "$work/out")"
}

for how in "-O2 -g" "-O2"; do
    # shellcheck disable=SC2086 # options
    gcc -std=gnu17 $how "$RACE_SOURCE/tests/pointer/precise.c" -o "$work/precise" 2>/dev/null || fail "cannot be built with $how"
    misses third left_second
    misses third left_argument
    has malloc
    case $how in
    *-g*)
        misses touch_element owned
        has element
        misses touch_owner element
        has owned
        ;;
    esac
done

finish
