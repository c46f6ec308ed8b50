#!/bin/sh
# What runs is in the graphs: samples of the matrix under DynamoRIO, every instruction and jump of them looked up.
# tools/eval-jumptables does the same for large programs.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

check="$RACE_TOOLS/check_edges" client="$RACE_BUILD/tests/libedges.so"
[ -n "${RACE_DYNAMORIO:-}" ] && [ -f "$client" ] || skip "no DynamoRIO"
[ -f "$RACE_MATRIX" ] || skip "the sample matrix is not built"

# The two samples with switches, exceptions and calls through pointers, from both compilers at three levels, stripped
# and not.
grep -v '^#' "$RACE_MATRIX" | awk -F '\t' '
    $2 ~ /^(switch_table|exception|dispatch)/ && $5 != "static" && $4 ~ /^O[023]$/ && !seen[$2 $3 $4 $7]++ {
        print $1 }' >"$work/programs"
while read -r program; do
    checks=$((checks + 1))
    rm -f "$work"/trace.*
    timeout 60 "$RACE_DYNAMORIO/bin64/drrun" -quiet -c "$client" "$work/trace" -- "$program" \
        >/dev/null 2>"$work/err" </dev/null
    trace=$(find "$work" -name 'trace.*' | head -1)
    [ -n "$trace" ] || { fail "$program: no trace: $(head -c 400 "$work/err")"; continue; }
    "$check" -v "$trace" "$program" >"$work/out" 2>&1 || fail "$program: $(head -c 1000 "$work/out")"
done <"$work/programs"
finish
