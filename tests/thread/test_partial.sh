#!/bin/sh
# Library functions are taken to read what they need, not the rest of a string; and what calloc does inside is not the
# program's.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
for options in -O0 "-O2 -fno-builtin"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -g -pthread "$RACE_SOURCE/tests/thread/partial.c" -o partial || exit 1
    for round in 1 2 3 4 5; do
        expect 0 "$RACE" run ./partial
    done
    expect 66 "$RACE" run ./partial overlapping
    error_has "partial.c"
done
finish
