#!/bin/sh
# What a program accesses is in the points-to sets: samples of the matrix under DynamoRIO, each
# object that an instruction accessed looked up in its set. tools/pta-oracle does the same for large programs. First of
# all, the recorder itself: objects.c says what has to be recorded about it; then shapes.c and declared.c, code that
# was once misread or may well be.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

check="$RACE_TOOLS/pta_oracle" client="$RACE_BUILD/tests/libaccesses.so"
[ -n "${RACE_DYNAMORIO:-}" ] && [ -f "$client" ] || skip "no DynamoRIO"

# record PROGRAM ARG...: leaves the names of the records in $records; $libraries are analysed with it
libraries=
record() {
    rm -f "$work"/trace.*
    # shellcheck disable=SC2086 # names without blanks
    "$check" --list "$1" $libraries >"$work/list" || return
    timeout 120 "$RACE_DYNAMORIO/bin64/drrun" -quiet -c "$client" "$work/list" "$work/trace" -- "$@" \
        >/dev/null 2>"$work/err" </dev/null
    records=$(find "$work" -name 'trace.*')
    [ -n "$records" ] || fail "$1: nothing was recorded: $(head -c 400 "$work/err")"
}

if command -v gcc >/dev/null && command -v nm >/dev/null &&
    gcc -std=gnu17 -O0 -pthread "$RACE_SOURCE/tests/pointer/objects.c" -o "$work/objects" 2>/dev/null; then
    record "$work/objects"
    nm -S "$work/objects" | awk '$4 ~ /^see_/ { print "see", $1, $2, $4 }' >"$work/functions"
    # Each function writes one byte: only records of width 1 that lie in it.
    awk '
        function number(text, i, n) {
            for (i = 1; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
            return n
        }
        $1 == "see" { names[++count] = $4; start[count] = number($2); size[count] = number($3) }
        $1 == "a" && $4 == "w" && $5 == 1 {
            at = number($3)
            for (i = 1; i <= count; i++)
                if (at >= start[i] && at < start[i] + size[i]) {
                    split(names[i], part, "_")
                    seen[i]++
                    if ($6 != part[2]) print names[i] ": recorded as " $6
                    if (match(names[i], /_at[0-9]+$/) && ($9 != substr(names[i], RSTART + 3) || $10 != $9))
                        print names[i] ": offsets " $9 " to " $10
                }
        }
        END {
            for (i = 1; i <= count; i++) if (!seen[i]) print names[i] ": not recorded"
            if (count < 20) print count " functions"
        }' "$work/functions" $records >"$work/wrong"
    checks=$((checks + 1))
    [ ! -s "$work/wrong" ] || fail "$(cat "$work/wrong")"
fi

# looked_up PROGRAM ARG...: its record against its points-to sets, for each kind of context.
looked_up() {
    checks=$((checks + 1))
    record "$@"
    [ -n "$records" ] || return
    # shellcheck disable=SC2086 # names without blanks
    timeout 300 "$check" --context none --context origin --context cfa:1 --max 5 --record $records -- "$1" $libraries \
        >"$work/out" 2>&1 || fail "$*: $(head -c 2000 "$work/out")"
}

for how in "gcc -O2 -g" "gcc -O0 -g" "gcc -O2" "clang -O2 -g"; do
    command -v "${how%% *}" >/dev/null || continue
    for what in shapes declared; do
        if $how -std=gnu17 "$RACE_SOURCE/tests/pointer/$what.c" -o "$work/$what" 2>/dev/null; then
            looked_up "$work/$what"
        else
            fail "$what.c cannot be built by $how"
        fi
    done
done

copied="$RACE_SOURCE/tests/pointer/copied.c"
if command -v gcc >/dev/null && gcc -O1 -shared -fPIC -DLIBRARY "$copied" -o "$work/libcopied.so" 2>/dev/null &&
    gcc -O1 -no-pie -fno-pic "$copied" -o "$work/copied" -L"$work" -lcopied -Wl,-rpath,"$work" 2>/dev/null; then
    libraries="$work/libcopied.so"
    looked_up "$work/copied"
    libraries=
else
    fail "copied.c cannot be built"
fi

if [ -f "$RACE_MATRIX" ]; then
    grep -v '^#' "$RACE_MATRIX" | awk -F '\t' '
        $5 != "static" && $5 != "shared" && $5 != "object" && !seen[$2 $3 $4 $7]++ { print $1 }' >"$work/programs"
    while read -r program; do
        looked_up "$program"
    done <"$work/programs"
fi
finish
