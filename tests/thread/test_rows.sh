#!/bin/sh
# Every row of the sync table names a category of samples, and each of these has a program that races (or could lock up)
# and one with lines that do not.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$RACE_SOURCE" || exit 1

categories=$(sed -n 's/^    ROW("[^"]*", "\([^"]*\)".*/\1/p' runtime/sync/table.c | sort -u)
[ -n "$categories" ] || fail "no rows are found in runtime/sync/table.c"
for category in $categories; do
    checks=$((checks + 1))
    sources=$(grep -lE "^ \* Category: $category\$" samples/*/*.c samples/*/*.cpp 2>/dev/null)
    # shellcheck disable=SC2086 # a list of files
    [ -n "$sources" ] && grep -qE '// (RACE|DEADLOCK)' $sources || fail "$category: no sample that races"
    # shellcheck disable=SC2086
    [ -n "$sources" ] && grep -qE '// NORACE' $sources || fail "$category: no sample that does not race"
    grep -q "^$category " samples/categories || fail "$category is not in samples/categories"
done
finish
