#!/bin/sh
# The house rules that a script can see: what lies at the top, what a file begins with, what may not be left in it.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$RACE_SOURCE" || exit 1

checks=$((checks + 1))
for entry in *; do
    case $entry in
    CMakeLists.txt | static | runtime | include | tests | samples | tools | README.md | LICENSE | build*) ;;
    *) fail "$entry does not belong at the top level" ;;
    esac
done

sources() { find static runtime include tests samples tools -name '*.[ch]' -o -name '*.cpp'; }
scripts() { find tests tools .ci -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -path .ci/run; }

for file in $(sources; scripts); do
    checks=$((checks + 1))
    ! grep -nE '[[:space:]]$' "$file" >"$work/out" || fail "$file:$(head -1 "$work/out" | cut -d: -f1) ends in blanks"
    ! grep -nE '\b(TO''DO|FIX''ME)\b' "$file" >"$work/out" || fail "$file:$(head -1 "$work/out") is not finished"
    [ -z "$(tail -c 1 "$file")" ] || fail "$file does not end with a newline"
done
for file in $(sources); do
    checks=$((checks + 1))
    head -1 "$file" | grep -q '^/[*/]' || fail "$file does not begin with what it is for"
    ! grep -q "$(printf '\t')" "$file" || fail "$file has tabs"
done
for file in $(find tests -name 'test_*.sh') tools/demo tools/test tools/lib/get-unity .ci/run; do
    checks=$((checks + 1))
    [ -x "$file" ] || fail "$file is not executable"
    sh -n "$file" 2>"$work/err" || head -1 "$file" | grep -q bash || fail "$file: $(head -1 "$work/err")"
done
finish
