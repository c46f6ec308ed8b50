#!/bin/sh
# The programs with verdicts (samples/blind, samples/verdict) are fit to be judged by: each is in the manifest in all
# its builds, has a category of the list and at least one verdict, ends by itself with code 0, and every line marked RACE or
# DEADLOCK still has an access or a call of its own after optimisation.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
manifest=$(dirname "$RACE_MATRIX")/verdicts.tsv
[ -f "$manifest" ] || skip "no samples are built (RACE_MATRIX is off)"
grep -v '^#' "$manifest" >"$work/rows"

# --- sources ---------------------------------------------------------------------------------------------------------
count=0
for source in "$RACE_SOURCE"/samples/blind/*.c* "$RACE_SOURCE"/samples/verdict/*.c*; do
    sample=$(basename "$(dirname "$source")")/$(basename "$source" | sed 's/\.[a-z]*$//')
    checks=$((checks + 1))
    count=$((count + 1))
    category=$(sed -n 's/^ \* Category: //p' "$source")
    grep -q "^$category " "$RACE_SOURCE/samples/categories" && [ -n "$category" ] ||
        fail "$sample: category '$category' is not in samples/categories"
    grep -qE '// (RACE|NORACE|DEADLOCK)\b' "$source" || fail "$sample carries no verdict"
    grep -q '^ \* Verdict: ' "$source" || fail "$sample: the head does not say what the verdict is"
    [ "$(wc -l <"$source")" -le 130 ] || fail "$sample is long for a sample"
    rows=$(grep -c "^$sample	$category	" "$work/rows")
    if [ "$rows" != 4 ]; then
        # A compiler or a library may not be here; then the configuration has said so.
        grep -qE '^ \* Build: .*(-fopenmp|-levent|-luv)' "$source" || ! command -v clang >/dev/null ||
            fail "$sample: $rows builds in the manifest instead of 4"
        echo "$sample: $rows builds here"
    fi
done
[ "$count" -ge 60 ] || fail "only $count programs"
built=$(cut -f1 "$work/rows" | sort -u | wc -l)
[ "$built" -ge 60 ] || fail "only $built are built"
sed -n 's/^\([a-z0-9-]*\) .*/\1/p' "$RACE_SOURCE/samples/categories" | sort -u >"$work/categories"
cut -f2 "$work/rows" | sort -u >"$work/used"
unused=$(comm -23 "$work/categories" "$work/used" | tr '\n' ' ')
[ -z "$unused" ] || fail "categories without a program: $unused"

# --- each build runs to its end --------------------------------------------------------------------------------------
cat >"$work/one" <<'END'
code=0
timeout 20 "$1" >/dev/null 2>"$2/err.$$" </dev/null || code=$?
[ "$code" = 0 ] && [ ! -s "$2/err.$$" ] || echo "$1: exit code $code: $(head -c 200 "$2/err.$$")"
rm -f "$2/err.$$"
END
cut -f5 "$work/rows" | xargs -P 2 -I {} sh "$work/one" {} "$work" >"$work/ends"
checks=$((checks + $(wc -l <"$work/rows")))
while read -r line; do fail "$line"; done <"$work/ends"

# --- the marked lines are in the code --------------------------------------------------------------------------------
while IFS='	' read -r sample _ compiler options binary source; do
    checks=$((checks + 1))
    objdump -d -l --inlines --no-show-raw-insn "$binary" | awk -v source="$source" '
        BEGIN {
            while ((getline text <source) > 0) {
                n++
                if (text ~ /\/\/ (RACE|DEADLOCK)/) marked[n] = 1
            }
        }
        # The innermost frame of the source; a header that is inlined there does not hide it.
        /^(inlined by )?\/.*:[0-9]+( \(.*\))?$/ {
            if (code || !/^inlined by /) line = 0
            code = 0
            sub(/^inlined by /, "")
            file = $1
            sub(/:[0-9]+$/, "", file)
            if (!line && file == source) line = substr($1, length(file) + 2)
        }
        /^ +[0-9a-f]+:/ {
            code = 1
            if (line && ((/\(|%fs:/ && !/\t(lea|nop)/) || /call|jmp +[0-9a-f]+ </)) found[line] = 1
        }
        END { for (line in marked) if (!(line in found)) print line }' >"$work/lost"
    [ ! -s "$work/lost" ] ||
        fail "$sample, $compiler $options: no access on the marked line $(tr '\n' ' ' <"$work/lost")"
done <"$work/rows"
finish
