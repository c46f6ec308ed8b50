#!/bin/sh
# What the points-to sets must not contain: leavings in registers are no arguments, a member is not its neighbour, not in what an
# allocator was called for either, text that is copied in words holds no pointers, and what an allocator gives through a pointer is an object for each call. That they contain what they must is for test_oracle.sh.
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
    boxes=
    for box in touch_box touch_other_box; do
        expect 0 "$RACE" show --pts "$work/precise" $box
        boxes="$boxes $(grep -o 'malloc[^ ,]*' "$work/out" | tr '\n' ' ')"
    done
    [ "$(echo "$boxes" | tr ' ' '\n' | sed '/^$/d' | sort -u | wc -l)" = 2 ] || fail "$how: not two boxes: $boxes"
    [ "$(echo "$boxes" | wc -w)" = 2 ] || fail "$how: boxes are mixed up: $boxes"
    case $how in
    *-g*)
        misses touch_element owned
        has element
        misses touch_owner element
        has owned
        misses touch_sender hidden
        has '&sender'
        misses touch_keeper kept
        has '&keeper'
        ;;
    esac
done

finish
