#!/bin/sh
# Functions found without symbols are those that symbols tell: the programs of the matrix that have both, the command
# itself, and libc where its debug package is installed. tools/eval-functions does the same for large programs.
. "$RACE_SOURCE/tests/lib/check.sh"

eval="$RACE_TOOLS/eval_functions"
[ -x "$eval" ] || skip "the test tools are not built"

# compare FILE: at least 0.99 of the starts found, 0.99 of the found ones right, and 0.97 of the ends.
compare() {
    checks=$((checks + 1))
    "$eval" -v "$1" >"$work/out" 2>"$work/err" || { fail "$1: $(cat "$work/err")"; return; }
    tail -1 "$work/out" | awk '{ exit !($4 >= 0.99 && $5 >= 0.99 && $6 >= 0.97) }' || fail "$1: $(cat "$work/out")"
}

compare "$RACE"
libc=/lib/x86_64-linux-gnu/libc.so.6
"$eval" $libc >/dev/null 2>&1 && compare $libc
if [ -f "$RACE_MATRIX" ]; then
    # One of each sample, compiler and level; all of them when nothing slows it down.
    grep -v '^#' "$RACE_MATRIX" | awk -F '\t' -v type="$RACE_BUILD_TYPE" '
        $7 == "no" && $5 != "static" && (type == "Release" || !seen[$2 $3 $4]++) { print $1 }' >"$work/programs"
    while read -r program; do
        compare "$program"
    done <"$work/programs"
fi
finish
