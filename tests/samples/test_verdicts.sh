#!/bin/sh
# The verdicts in the samples' comments are right: ThreadSanitizer, which has nothing to do with us, reports races on
# lines marked `// RACE` only, and in nearly every sample it sees one (a race may need threads to meet just so).
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

# Its shadow memory does not fit every layout of the address space.
run_tsan() { timeout 60 setarch -R "$@" >/dev/null 2>"$work/report"; }
echo 'int main(void) { return 0; }' >"$work/empty.c"
gcc -fsanitize=thread "$work/empty.c" -o "$work/empty" 2>/dev/null && run_tsan "$work/empty" ||
    skip "ThreadSanitizer does not work here"

seen_in=0
unseen=
for source in "$RACE_SOURCE"/samples/*.c "$RACE_SOURCE"/samples/*.cpp; do
    name=$(basename "$source")
    compiler=gcc
    case $name in *.cpp) command -v g++ >/dev/null || continue; compiler=g++ ;; esac
    if ! "$compiler" -g -O1 -fsanitize=thread -pthread "$source" -o "$work/program"; then
        fail "$name does not compile"
        continue
    fi
    marked=$(grep -n '// RACE' "$source" | cut -d: -f1)
    seen=
    for _ in 1 2 3; do
        run_tsan "$work/program"
        [ $? -lt 124 ] || fail "$name: does not end"
        # The innermost frame of our file, of each access.
        lines=$(awk -v name="$name" '
            /^  (Previous )?(atomic )?([Rr]ead|[Ww]rite) of size/ { wanted = 1; next }
            wanted && index($0, name ":") { sub(".*" name ":", ""); sub("[^0-9].*", ""); print; wanted = 0 }
            /^$/ { wanted = 0 }' "$work/report" | sort -un)
        for line in $lines; do
            checks=$((checks + 1))
            echo "$marked" | grep -qx "$line" || fail "$name:$line races but is not marked"
            seen="$seen $line"
        done
    done
    if [ -n "$seen" ]; then seen_in=$((seen_in + 1)); elif [ -n "$marked" ]; then unseen="$unseen $name"; fi
done
echo "races seen in $seen_in samples; none in:${unseen:- (no other)}"
[ "$seen_in" -gt $((4 * $(echo $unseen | wc -w))) ] || fail "ThreadSanitizer sees too little to judge the verdicts"
finish
