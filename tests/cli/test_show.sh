#!/bin/sh
# `race show` on a sample: the summary, the views of a function, the formats.
. "$RACE_SOURCE/tests/lib/check.sh"

sample=$RACE_BUILD/samples/racy_counter
[ -f "$sample" ] || skip "the samples are not built"
json="$RACE_TOOLS/json_get"
line_of() { grep -n -F "$1" "$RACE_SOURCE/samples/racy_counter.c" | head -1 | cut -d: -f1; }

expect 0 "$RACE" show "$sample"
for label in kind 'build id' functions blocks instructions 'indirect jumps' IR accesses seconds; do
    has_line "^  $label +[^ ]"
done
[ "$(head -1 "$work/out")" = "$sample" ] || fail "the first line is not the path"
id=$(readelf -n "$sample" 2>/dev/null | sed -n 's/ *Build ID: //p')
[ -z "$id" ] || has "$id"

# The IR of a function names the source line of the racy statement.
expect 0 "$RACE" show "$sample" add
has_line "racy_counter\.c:$(line_of 'unprotected++')"
cp "$work/out" "$work/ir"
expect 0 "$RACE" show --ir "$sample" add
cmp -s "$work/out" "$work/ir" || fail "--ir is not the default view of a function"
expect 0 "$RACE" show --ir "$sample" add main
[ "$(wc -l <"$work/out")" -gt "$(wc -l <"$work/ir")" ] || fail "two functions are not more than one"
expect_error "$RACE" show "$sample" no_such_function
error_has no_such_function
entry=$(nm "$sample" | sed -n 's/^0*\([0-9a-f]*\) [tT] add$/\1/p')
expect 0 "$RACE" show "$sample" "0x$entry"
cmp -s "$work/out" "$work/ir" || fail "a function by address is not the same as by name"

expect 0 "$RACE" show --cfg "$sample" add
has_line '^block 0, '
has_line 'pthread_mutex_lock|call'
expect 0 "$RACE" show --cfg --format dot "$sample" add
has_line '^digraph'
has '->'
if command -v dot >/dev/null; then
    checks=$((checks + 1))
    dot -Tsvg "$work/out" >/dev/null 2>"$work/err" || fail "dot does not accept it: $(head -1 "$work/err")"
fi

if [ -x "$json" ]; then
    expect 0 "$RACE" show --format json "$sample"
    cp "$work/out" "$work/json"
    get() { "$json" "$work/json" "$@"; }
    [ "$(get version)" = 1 ] || fail "JSON: version"
    [ "$(get modules.0.path)" = "$sample" ] || fail "JSON: path"
    [ -z "$id" ] || [ "$(get modules.0.build_id)" = "$id" ] || fail "JSON: build id"
    [ "$(get modules.0.functions)" -gt 2 ] || fail "JSON: functions"
    expect 0 "$RACE" show "$sample"
    has_line "^  instructions +$(get modules.0.instructions)$"
    expect 0 "$RACE" show --cfg --format json "$sample" add
    cp "$work/out" "$work/json"
    [ "$(get functions.0.name)" = add ] || fail "JSON: the function's name"
    [ "$(get functions.0.blocks.0.start)" = "$((0x$entry))" ] || fail "JSON: the first block is not the entry"
    cp "$sample" "$work/$(printf 'not\377utf8')"
    expect 0 "$RACE" show --format json "$work/$(printf 'not\377utf8')"
    "$json" "$work/out" modules.0.path >/dev/null || fail "JSON: a path that is not UTF-8"
fi

# Same input, same output, whatever the number of threads; only the seconds differ. The command itself is large enough
# for more than one.
for jobs in 1 2 7; do
    expect 0 "$RACE" show --all --jobs "$jobs" "$RACE"
    grep -v '^  seconds' "$work/out" >"$work/jobs.$jobs"
    cmp -s "$work/jobs.1" "$work/jobs.$jobs" || fail "--jobs $jobs changes the output"
done

# Several files, and a file named like a function.
expect 0 "$RACE" show "$sample" "$RACE_BUILD/samples/dispatch"
[ "$(grep -c '^  functions' "$work/out")" = 2 ] || fail "two files are not two modules"
(cd "$work" && cp "$sample" add && "$RACE" show "$sample" add >out && [ "$(grep -c '^  functions' out)" = 2 ]) ||
    fail "a second operand that is a file is not shown as one"
(cd "$work" && "$RACE" show --ir "$sample" add >out && cmp -s out ir) || fail "--ir does not force a function"

# Object files and archives.
if command -v ar >/dev/null && [ -f "$RACE_MATRIX" ]; then
    objects=$(awk -F '\t' '$5 == "object" && $3 == "gcc" { print $1 }' "$RACE_MATRIX" | head -3)
    mkdir "$work/members"
    n=0
    for object in $objects; do
        n=$((n + 1))
        cp "$object" "$work/members/m$n.o"
    done
    if [ "$n" -gt 0 ]; then
        ar rc "$work/all.a" "$work"/members/*.o
        expect 0 "$RACE" show "$work/all.a"
        shown=$(grep -c '^  functions' "$work/out")
        [ "$shown" = "$n" ] || fail "an archive of $n members: $shown modules"
        has "all.a(m1.o)"
    fi
fi

# The pointer analysis in words.
expect 0 "$RACE" show --pts "$sample" add
has "&unprotected"
expect 0 "$RACE" show --pts --context none "$sample" main
has "threads in main"
expect 0 "$RACE" show --callgraph "$sample"
has "pthread_create -> add"
has "main -> pthread_create"

# The happens-before graph: who creates whom and waits for whom, and what is held where.
expect 0 "$RACE" show --shb "$sample"
has_line '^  thread add'
has_line '^    created in main, racy_counter\.c:[0-9]+; by main$'
has_line "^    waited for in main, racy_counter\.c:$(line_of 'pthread_join'); by main\$"
expect 0 "$RACE" show --shb "$sample" add
has_line 'write &unprotected; no locks held; by add$'
has_line 'write &protected; lock held; by add$'
has_line 'takes lock; no locks held; by add$'
expect 0 "$RACE" show --shb --format dot "$sample"
has_line '^digraph'
has_line '-> .*style=dashed'
expect 2 "$RACE" show --shb --format dot "$sample" add
expect 2 "$RACE" show --shb "$sample" no_such_function

# The plan: the racy statement is checked, a damaged plan is refused.
expect 0 "$RACE" show --plan "$sample"
has_line "write.*, 8 bytes  add, racy_counter\.c:$(line_of 'unprotected++')\$"
cp "$work/out" "$work/plan.txt"
if [ -f "$RACE_BUILD/librace_probe.so" ]; then # not in a sanitized build
    expect 0 "$RACE" run --state "$work/state" "$RACE_BUILD/samples/racy_counter" 0
    plan=$(find "$work/state" -name '*.plan' | head -1)
    [ -n "$plan" ] || fail "race run has left no plan"
    expect 0 "$RACE" show --plan "$plan"
    cmp -s "$work/out" "$work/plan.txt" || fail "the plan that race run made is another"
    head -c 300 "$plan" >"$work/cut.plan"
    expect_error "$RACE" show --plan "$work/cut.plan"
fi
expect_error "$RACE" show --plan "$work/none"

expect 2 "$RACE" show --pts "$sample"
expect 2 "$RACE" show --pts "$sample" no_such_function
expect 2 "$RACE" show --pts --context cfa "$sample" main
expect 2 "$RACE" show --callgraph --format json "$sample"
finish
