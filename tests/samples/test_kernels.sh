#!/bin/sh
# The kernels (samples/kernels) compute the same whatever number of threads does it, with pthreads and with OpenMP, and
# find their result valid.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
folder=$(dirname "$RACE_MATRIX")/kernels
[ -d "$folder" ] || skip "no kernels are built (RACE_MATRIX is off)"
for source in "$RACE_SOURCE"/samples/kernels/*.c; do
    name=$(basename "$source" .c)
    [ -x "$folder/$name-pthreads" ] || fail "$name is not built"
    rm -f "$work/first"
    for program in "$folder/$name-pthreads" "$folder/$name-openmp"; do
        [ -x "$program" ] || continue
        for threads in 1 2 3 7; do
            expect 0 "$program" "$threads"
            has_line '^[a-z]+ .*: [-0-9a-f.]+ valid$'
            [ -f "$work/first" ] || cp "$work/out" "$work/first"
            cmp -s "$work/first" "$work/out" ||
                fail "$program $threads: $(cat "$work/out") instead of $(cat "$work/first")"
        done
        expect 2 "$program" 0
        expect 2 "$program" 2 10 3
    done
done
finish
