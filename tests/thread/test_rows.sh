#!/bin/sh
# Every row of the sync table has a case (rows/) that races, which is reported, and one that does not, of which nothing is; and it names
# a category of samples, each of which has a program that races (or could lock up) and one with lines that do not.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$RACE_SOURCE" || exit 1
cases=tests/thread/rows

# --- categories -------------------------------------------------------------------------------------------------------
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

# --- cases ------------------------------------------------------------------------------------------------------------
: >"$work/all"
word() { sed -n "s/^ \\* $1: \\([^*]*[^* ]\\).*/\\1/p" "$2"; }
rows=$(sed -n 's/^    ROW("\([^"]*\)", .*/\1/p' runtime/sync/table.c)
for source in "$cases"/*.c; do
    name=$(basename "$source" .c)
    [ "$name" != rows ] || continue
    compiler=$(word Compiler "$source")
    # shellcheck disable=SC2046 # several words
    "${compiler:-gcc}" -g -O1 -w -fno-builtin -fno-optimize-sibling-calls -D__NO_INLINE__ -U_FORTIFY_SOURCE -o "$work/$name" \
        "$source" "$cases/rows.c" -pthread $(word Options "$source") 2>"$work/err" && continue
    error=$(head -c 400 "$work/err")
    # clang and its OpenMP runtime may not be here.
    echo 'int main(void) { return 0; }' >"$work/empty.c"
    # shellcheck disable=SC2046 # several words
    if "${compiler:-gcc}" -o "$work/empty" "$work/empty.c" $(word Options "$source") 2>/dev/null; then
        fail "$name: $error"
        continue
    fi
    for row in $rows; do
        ! grep -qw "$row" "$source" || echo "skipped $row: $name is not built" >>"$work/all"
    done
done

command=$RACE
for engine in probe dynamorio; do
    RACE_ENGINE=$engine RACE=$command
    [ "$engine" = probe ] || [ -n "${RACE_DYNAMORIO-}" ] || continue
    needs_engine
    for source in "$cases"/*.c; do
        name=$(basename "$source" .c)
        [ -x "$work/$name" ] || continue
        expect 66 "$RACE" run --state "$work/state" "$work/$name"
        awk -v "engine=$engine" -f "$cases/compare.awk" "$cases/exceptions" "$work/out" "$work/err" >"$work/wrong"
        [ ! -s "$work/wrong" ] || fail "$engine, $name: $(cat "$work/wrong")"
        cat "$work/out" >>"$work/all"
    done
done
grep '^skipped ' "$work/all" | sort -u

# --- rows -------------------------------------------------------------------------------------------------------------
for row in $rows; do
    checks=$((checks + 1))
    grep -q "^skipped $row:" "$work/all" && continue
    for form in right wrong; do
        grep -qE "^$form $row( |\$)" "$work/all" || grep -q "^$row $form both " "$cases/exceptions" || fail "$row: no $form case"
    done
done
finish
