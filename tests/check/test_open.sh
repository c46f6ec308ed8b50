#!/bin/sh
# Libraries (--open): what callers bring along is theirs to guard, what the loader runs is no entry, frames are of one call; static
# variables, and whatever they lead to, are the library's, and so are its threads.
. "$RACE_SOURCE/tests/lib/check.sh"

command -v gcc >/dev/null || skip "no gcc"

# places CONFIDENCE: the names of what races with it
places() { sed -n "s/^race on \(.*\) ([0-9]* bytes), $1 confidence .*/\1/p" "$work/out" | sort -u | tr '\n' ','; }

# all_of CONFIDENCE NAMES WHAT: these and no others
all_of() {
    checks=$((checks + 1))
    [ "$(places "$1")" = "$2" ] || fail "$3: of $1 confidence: $(places "$1") instead of $2"
}

lacks() { ! grep -qF -- "$1" "$work/out" || fail "\"$1\" in: $(grep -F -- "$1" "$work/out" | head -3)"; }

kept="calls,counter.count,helped,kept,resets,"
for how in -O0 -O2; do
    gcc -std=gnu17 $how -g -pthread -shared -fPIC "$RACE_SOURCE/tests/check/library.c" -o "$work/right.so" || fail "right.so"
    gcc -std=gnu17 $how -g -pthread -shared -fPIC -DWRONG "$RACE_SOURCE/tests/check/library.c" -o "$work/wrong.so" || fail "wrong.so"
    run "$RACE" check --no-state --open --all "$work/right.so"
    all_of high "" "right, $how"
    has "two threads would have to call the library with one object at the same time"
    lacks "race on state"
    lacks "in thing_sum "
    run "$RACE" check --no-state --open --all "$work/wrong.so"
    all_of high "$kept" "wrong, $how"
    places medium | grep -q '^value in thing_both,\|,value in thing_both,' || fail "wrong, $how: a thread has a variable: $(places medium)"
    lacks "race on state"
    lacks "in thing_sum "
done

# the same of object files
gcc -std=gnu17 -O2 -g -DLISTED -c "$RACE_SOURCE/tests/check/library.c" -o "$work/right.o" || fail "right.o"
run "$RACE" check --no-state --open --all "$work/right.o"
all_of high "" "right.o"
lacks "race on state"
finish
