#!/bin/sh
# -O0 is as good as -O2. For every C sample, both compilers: the sets of (object, field, read or write) that each thread
# reaches in the IR are equal at both levels, and at most 2 % of the accesses that remain at -O0 are to stack slots that
# never escape. tests/tools/reach computes them; what it calls `local` (on stacks that no other thread can see) is not
# compared, since an optimiser dissolves such objects. `indexed` are accesses to local arrays that are indexed by a
# variable: no slots, at any level.
#
# Where an optimiser removes an access for good (a value that was just stored is not loaded again), adds one (it writes
# neighbouring bit fields together) or lets variables share their place in the frame, the sample is to be written so
# that there is no occasion. What cannot be avoided is named in `exempt` with its reason; so far nothing is.
. "$RACE_SOURCE/tests/lib/check.sh"

reach="$RACE_TOOLS/reach"
[ -x "$reach" ] || skip "the test tools are not built"
tab=$(printf '\t')

# exempt SOURCE COMPILER: prints why the sets may differ.
exempt() {
    case $1,$2 in
    *) ;;
    esac
}

# count FILE NAME: a line `# NAME count` of reach's output.
count() { sed -n "s/^# $2$tab//p" "$1"; }

# reach_of PROGRAM NAME: leaves the output in $work/NAME.txt and the elements in $work/NAME.set. False: it did not work.
reach_of() {
    if ! timeout 60 "$reach" "$1" >"$work/$2.txt" 2>"$work/err" || [ -s "$work/err" ]; then
        fail "reach $1: $(head -c 400 "$work/err")"
        return 1
    fi
    grep -v '^#' "$work/$2.txt" >"$work/$2.set"
}

# --- the samples, from the matrix or built here ----------------------------------------------------------------------
# Lines: source compiler link debug program-O0 program-O2
pairs="$work/pairs"
if [ -s "$RACE_MATRIX" ]; then
    awk -F'\t' '$2 ~ /\.c$/ && $5 ~ /pie/ && $6 != "none" && $7 == "no" {
        key = $2 " " $3 " " $5 " " $6
        if ($4 == "O0") low[key] = $1
        if ($4 == "O2") high[key] = $1
    } END { for (key in low) if (key in high) print key, low[key], high[key] }' "$RACE_MATRIX" |
        sort -k1,1 -k2,2r >"$pairs"
else
    for source in "$RACE_SOURCE"/samples/*.c; do
        name=$(basename "$source")
        for compiler in gcc clang; do
            command -v "$compiler" >/dev/null || continue
            for level in O0 O2; do
                "$compiler" -$level -g -pthread "$source" -o "$work/$name-$compiler-$level" ||
                    fail "$name does not compile"
            done
            echo "$name $compiler pie default $work/$name-$compiler-O0 $work/$name-$compiler-O2" >>"$pairs"
        done
    done
fi

# --- the comparison --------------------------------------------------------------------------------------------------
all_accesses=0 all_slots=0 all_elements=0 rows=0 same=0 other=0
format='%-20s %-6s %-6s %-8s %-6s %8s %9s %9s %8s %6s %7s\n'
printf "$format" sample by link debug sets threads elements accesses indexed slots share
while read -r source compiler link debug low high; do
    rows=$((rows + 1))
    checks=$((checks + 1))
    reach_of "$low" low && reach_of "$high" high || continue
    equal=equal
    reason=$(exempt "$source" "$compiler")
    if ! diff "$work/low.set" "$work/high.set" >"$work/diff"; then
        equal=DIFFER
        threads=$(sed -n 's/^[<>] \([^\t]*\)\t.*/\1/p' "$work/diff" | sort -u | tr '\n' ' ')
        [ -n "$reason" ] && equal=EXEMPT && echo "$source, $compiler: differs in ${threads}: $reason" ||
            fail "$source, $compiler, $link, $debug: -O0 (<) and -O2 (>) differ in ${threads}:
$(head -40 "$work/diff")"
    fi
    case $compiler in
    gcc) cp "$work/low.set" "$work/$source-$link-$debug.set" ;;
    *) cmp -s "$work/low.set" "$work/$source-$link-$debug.set" && same=$((same + 1)) || other=$((other + 1)) ;;
    esac
    threads=$(count "$work/low.txt" threads)
    elements=$(wc -l <"$work/low.set")
    accesses=$(count "$work/low.txt" accesses)
    slots=$(count "$work/low.txt" slots)
    printf "$format" "$source" "$compiler" "$link" "$debug" "$equal" "$threads" "$elements" "$accesses" \
        "$(count "$work/low.txt" indexed)" "$slots" "$(awk "BEGIN { printf \"%.1f%%\", 100 * $slots / $accesses }")"
    [ $((slots * 50)) -le "$accesses" ] || fail "$source, $compiler: over 2 % of the accesses at -O0 are to quiet slots"
    [ "$threads" -ge 2 ] && [ "$elements" -ge 5 ] || fail "$source, $compiler: too little is reached to mean anything"
    for level in low high; do
        for what in unknown cut; do
            [ "$(count "$work/$level.txt" $what)" = 0 ] || fail "$source, $compiler, $level: $what is not 0"
        done
    done
    all_accesses=$((all_accesses + accesses)) all_slots=$((all_slots + slots)) all_elements=$((all_elements + elements))
done <"$pairs"
[ "$rows" -gt 0 ] || skip "no compiler to build the samples with"
echo "$rows pairs, $all_elements elements; $all_slots of $all_accesses accesses that remain at -O0 are to quiet slots"
echo "gcc -O0 and clang -O0 agree in $same of $((same + other)) samples"
[ $((all_slots * 50)) -le "$all_accesses" ] || fail "over 2 % in total"
for source in "$RACE_SOURCE"/samples/*.cpp; do
    [ -f "$source" ] && echo "not compared: $(basename "$source") (C++: threads are started inside the library)"
done

# --- the comparison can fail -----------------------------------------------------------------------------------------
compiler=$(command -v gcc || command -v clang) || finish
cat >"$work/twice.c" <<'END'
#include <pthread.h>
#include <setjmp.h>
struct { long a, b; } shared;
jmp_buf back;
static void *run(void *argument)
{
    struct { long a, b; } *s = argument;
    s->a++;
#ifdef MORE
    s->b = s->a;
#endif
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    int quiet = argc; /* stays in memory: setjmp returns twice */
    (void)argv;
    if (setjmp(back)) quiet++;
    pthread_create(&thread, NULL, run, &shared);
    pthread_join(thread, NULL);
    return quiet;
}
END
checks=$((checks + 1))
"$compiler" -O0 -g -pthread "$work/twice.c" -o "$work/one" &&
    "$compiler" -O0 -g -pthread -DMORE "$work/twice.c" -o "$work/two" &&
    reach_of "$work/one" low && reach_of "$work/two" high || fail "the self-check does not build"
[ "$(diff "$work/low.set" "$work/high.set" | grep '^[<>]')" = "> run${tab}shared.b${tab}W" ] ||
    fail "one more field written is not one more element: $(diff "$work/low.set" "$work/high.set")"
[ "$(count "$work/low.txt" slots)" -gt 0 ] || fail "slots that stay in memory are not counted"
finish
