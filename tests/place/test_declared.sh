#!/bin/sh
# Plain moves of what is declared as atomic synchronise, whatever compiler and optimisation, through pointers that are
# declared as such, loaded from members, or made of a `void *`; what lies beside is checked.
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$work" || exit 1

# look NAME: the kinds of accesses at the lines of the source with a word, `WORD: KIND...`
look() {
    "$RACE" show --plan ./program >plan || fail "$1: no plan"
    for word in atomic_ 'sum += i' 'letter'; do
        grep -n "$word" "$RACE_SOURCE/samples/verdict/$1.c" | grep -v '^[0-9]*: \*\|long letter;' | cut -d: -f1 | while read -r line; do
            grep "$1.c:$line\$" plan | grep -v ' call ' | awk '{ print $2 }'
        done | sort -u | tr '\n' ' ' | sed "s/^/$word: /"
        echo
    done
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for options in "-O0 -g" "-O2 -g" "-O3 -g -gdwarf-4"; do
        for name in atomics_member_right atomics_member_wrong; do
            # shellcheck disable=SC2086 # they are several
            $compiler $options -pthread "$RACE_SOURCE/samples/verdict/$name.c" -o program 2>build || fail "$(head -1 build)"
            look $name >out
            checks=$((checks + 1))
            grep -q '^atomic_: synchronise $' out || fail "$compiler $options $name: $(cat out)"
            ! grep -v '^atomic_' out | grep -q synchronise || fail "$compiler $options $name: $(cat out)"
            grep -v '^atomic_' out | grep -q 'read\|write' || fail "$compiler $options $name: $(cat out)"
        done
    done
done
strip program
checks=$((checks + 1))
"$RACE" show --plan ./program >plan || fail "no plan"
! grep -q synchronise plan || fail "without debug information: $(grep synchronise plan | head -1)"
finish
