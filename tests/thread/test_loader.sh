#!/bin/sh
# Threads that load a library at the same time: what its constructors have done is ordered before all that use it, by the loader's
# own lock, and memory where a library is loaded again is new. What they do to it then may race.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

command=$RACE
cd "$work" || exit 1
gcc -O1 -g -shared -fPIC -DLIBRARY "$RACE_SOURCE/tests/thread/loader.c" -o library.so || fail "loader.c does not compile"
gcc -O1 -g -pthread "$RACE_SOURCE/tests/thread/loader.c" -o loader || fail "loader.c does not compile"
line=$(grep -n 'RACE \*/' "$RACE_SOURCE/tests/thread/loader.c" | cut -d: -f1)
for engine in probe dynamorio; do
    RACE_ENGINE=$engine RACE=$command
    [ "$engine" = probe ] || [ -n "${RACE_DYNAMORIO-}" ] || continue
    needs_engine
    for round in 1 2 3; do
        expect 0 "$RACE" run --state state ./loader ./library.so right
        has_line '^loaded$'
        expect 66 "$RACE" run --state state ./loader ./library.so wrong
        error_has "loader.c:$line"
        rm -rf written
        expect 0 "$RACE" run --state state ./loader ./library.so again
        has_line '^loaded$'
        rm -rf written
    done
done
finish
