#!/bin/sh
# Programs whose order comes from functions that are rarer than those of the samples: what is right on each engine has no race, what
# is wrong has all of them. They are no samples since `race check` does not know all of these functions.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

command=$RACE
for engine in probe dynamorio; do
    RACE_ENGINE=$engine RACE=$command
    [ "$engine" = probe ] || [ -n "${RACE_DYNAMORIO-}" ] || continue
    needs_engine
    for source in "$RACE_SOURCE"/tests/thread/orders/*; do
        name=$(basename "$source") options='-O2 -pthread'
        case $name in
        *.cpp) compilers='g++ clang++' ;;
        *) compilers='gcc clang' ;;
        esac
        case $name in
        omp_*) options="$options -fopenmp" ;;
        atomics_*) options="$options -latomic" ;;
        esac
        built=
        for compiler in $compilers; do
            # shellcheck disable=SC2086 # several words
            "$compiler" -g -o "$work/program" "$source" $options 2>/dev/null || continue
            built=yes
            case $name in
            *_wrong.*)
                expect 66 "$RACE" run --state "$work/state" "$work/program"
                for line in $(grep -n '// RACE' "$source" | cut -d: -f1); do
                    error_has "$name:$line"
                done
                ;;
            *)
                for round in 1 2 3; do
                    expect 0 "$RACE" run --state "$work/state" "$work/program"
                done
                ;;
            esac
        done
        [ -n "$built" ] || fail "$name: none of $compilers builds it"
    done
done
finish
