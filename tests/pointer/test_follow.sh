#!/bin/sh
# What has followed edits of object files is what an analysis from scratch finds: statements of samples are taken out and put back, and
# the whole relation is compared after each edit, with one thread and with two; what it says has not changed, has not.
. "$RACE_SOURCE/tests/lib/check.sh"

export OMP_WAIT_POLICY=passive # many short parallel parts; waiting threads would take the time of other tests

# law OPTION... FILE...: it holds, after all edits, and not because all was begun anew.
law() {
    checks=$((checks + 1))
    "$RACE_TOOLS/follow_law" --seed 5 "$@" >"$work/out" 2>&1 || fail "$*: $(head -c 1000 "$work/out")"
    has_line '^[0-9]+ edits, [0-9]+ compared, 0 different, [0-9]+ from scratch'
    awk '/ edits, / { if ($1 != edits || $3 != $1 || $7 * 4 > $1) exit 1 }' edits="$edits" "$work/out" || fail "$*: $(cat "$work/out")"
}

# Several objects of one program: calls, data and types of one concern the others.
for level in O0 O2; do
    for name in wild precise shapes; do
        gcc -std=gnu17 -g -$level -c "$RACE_SOURCE/tests/pointer/$name.c" -o "$work/$name-$level.o" || fail "$name.c cannot be built"
        edits=30
        for context in none origin cfa:1; do
            law --context $context --edits 30 --threads 1 --threads 2 "$work/$name-$level.o"
        done
    done
done

# Where most pointers are wild.
for level in O0 O2; do
    law --wild 1 --edits 30 --threads 1 --threads 2 "$work/wild-$level.o"
    law --wild 2 --edits 30 "$work/wild-$level.o"
done

# The numbers of what was shown before are right, and what is said to be the same is.
edits=40
law --check --edits 40 "$work/wild-O0.o"
has_line '^said to be the same: [1-9][0-9]+, wrong 0$'
law --check --edits 40 "$work/shapes-O2.o"
has_line '^said to be the same: [1-9][0-9]+, wrong 0$'
finish
