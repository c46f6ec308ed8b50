#!/bin/sh
# The tables of tools/bench-pointer on small programs: each row is there and its numbers can be true; limits end in a row that
# says so.
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_MATRIX" ] || skip "no matrix of samples"
program() { # SOURCE: one build of it
    grep -v '^#' "$RACE_MATRIX" | awk -F '\t' -v s="$1" '$2 == s && $4 == "O2" && $5 == "pie" && $7 == "no" { print $1; exit }'
}
one=$(program racy_counter.c) two=$(program locked_list.c)
[ -f "$one" ] && [ -f "$two" ] || skip "no samples"
bench() {
    run bash "$RACE_SOURCE/tools/bench-pointer" --tools "$RACE_TOOLS" --memory 0 "$@"
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "bench-pointer $*: exit code $code: $(head -c 400 "$work/err")"
}
# row COUNT PATTERN CONDITION: that many rows begin so, and the awk condition holds for each of them.
row() {
    checks=$((checks + 1))
    awk -v pattern="$2" "\$0 ~ pattern { n++; if (!($3)) { print; bad = 1 } } END { exit bad || n != $1 }" "$work/out" >"$work/bad" ||
        fail "not $1 rows like $2 with $3: $(cat "$work/bad" "$work/out")"
}

# From scratch: instructions, functions, statements; seconds once and open, with 1 and 2 threads; memory.
bench --processor --edits 60 --reset-edits 20 --context none --context origin --context cfa:2 one="$one" two="$two"
row 6 '^(one|two) +(none|origin|cfa:2) +[0-9]+ +[0-9]+ +[0-9]+ .*[|].*[|]' \
    '$3 > 20 && $4 > 2 && $5 > 5 && $9 >= 0 && $9 < 30 && $10 < 30 && $11 > 1 && $13 < 30 && $14 < 30 && $15 > 1'
# Edits: each algorithm with 1 and 2 threads; median <= p99 <= worst, both is at least each, and no wrong relation. How many
# times faster than reset is a number, but of microseconds: one preemption makes it 0.0.
row 36 '^(one|two) +(none|origin|cfa:2) +(reset|reach|ipa) +[12] ' \
    '$5 > 0 && $5 <= 60 && $7 <= $9 + .01 && $9 <= $10 + .1 && $17 + .002 >= $7 && $18 + .002 >= $13 && !/WRONG|ended/'
row 12 '^(one|two) .* ipa +[12] ' '$22 ~ /^[0-9]+[.][0-9]$/ && / (ok|missed: .*)$/'
row 12 '^(one|two) .* reset +[12] ' '$5 <= 20 && $22 == "1.0"'

# Precision: what is shared is among what there is; with a write is among any; threads are more than one origin.
bench --precision --context none --context origin --context cfa:1 one="$one" two="$two"
row 6 '^(one|two) +(none|origin|cfa:1) ' \
    '$4 >= 2 && $5 > 0 && $7 >= 1 && $8 >= 1 && $11 >= $12 && $12 >= $13 && $15 >= $16 && $16 >= $17 && $15 >= $11'
row 2 '^one +(none|origin) ' '$13 > 0' # its counter is shared, and written
has_line '^one +none .* 1\.00$'

# What is shared, counted by hand: 6 access instructions in each of two threads. Without contexts both own the same object.
if command -v gcc >/dev/null; then
    gcc -O1 -o "$work/share" "$RACE_SOURCE/tests/pointer/share.c" -lpthread || fail "share.c cannot be compiled"
    bench --precision --context none --context origin --context cfa:2 share="$work/share"
    row 1 '^share +none ' '$4 == 3 && $12 == 6 && $13 == 5 && $16 == 12 && $17 == 10'
    row 1 '^share +origin ' '$4 == 3 && $12 == 3 && $13 == 2 && $16 == 6 && $17 == 4'
    row 1 '^share +cfa:2 ' '$4 == 3 && $12 == 6 && $13 == 5 && $16 == 12 && $17 == 10'
    gcc -O1 -o "$work/wild" "$RACE_SOURCE/tests/pointer/share_wild.c" -lpthread || fail "share_wild.c cannot be compiled"
    run "$RACE_TOOLS/pta_bench" --precision --context none --wild 2 wild="$work/wild"
    row 1 '^wild +none ' '$13 == 2'
    has_line '1 instructions by wild pointers; without these accesses 1 are shared with a write$'
fi

# Scale, with the law of growth over at least three programs.
bench --scale --context origin one="$one" two="$two" three="$two"
row 3 '^(one|two|three) +origin ' '$3 > 20 && $5 > 5 && $8 < 30 && $9 > 1 && $10 > 0'

# What cannot be had within the limits says so.
run "$RACE_TOOLS/pta_bench" --memory 8 --scale --context none one="$one"
has_line '^one +none .*(out of memory|failed)$'
run "$RACE_TOOLS/pta_bench" --scale --context none "none=$work/nothing"
has_line '^none +none .*failed$'
expect 2 "$RACE_TOOLS/pta_bench" --context full "one=$one"
finish
