#!/bin/sh
# The rules that tell accesses apart and put them in order, one by one: programs in which a rule holds for every access that it is
# about are reported without a false alarm, and programs in which it seems to hold are reported.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
[ -f "$RACE_BUILD/samples/verdicts.tsv" ] || skip "the samples with verdicts are not built"

score() { # LIMIT SAMPLE...
    checks=$((checks + 1))
    limit=$1
    shift
    "$RACE_SOURCE/tools/score-check" --build "$RACE_BUILD" --race "$RACE" --details --limit "$limit" "$@" >"$work/out" 2>"$work/err" ||
        fail "$*: $(grep -E 'missed: [0-9]|false: [0-9]' "$work/out" | head -5)"
    [ ! -s "$work/err" ] || fail "$(head -1 "$work/err")"
}

score 0 pipe_ message_ mqueue_right sigwait_ connect_wrong socket_right # what is sent comes before what is received; a token goes round
score 0 barrier_wrong echo_wrong                            # narrow barriers; branches that tell the same
score 0 sem_right cpp_detach_wrong                          # a ring of slots; threads that are let go
score 25 socket_wrong ring_wrong mqueue_wrong               # what a message names (not where its loop is unrolled)
score 0 exit_ timedlock_ rwlock_right once_right            # whoever joins; locks that may not be had; what a once has passed
score 0 key_right c11_right process_fork_right              # keys and their destructors; the child of a fork
score 0 io_right ranges_right                               # numbers, through library functions
score 0 setup_ option_                                     # what is so when a thread begins and stays so as long as it lives
score 0 omp_depend_ omp_task_wrong omp_taskloop_wrong mmap_ # tasks; one file mapped twice
score 0 cond_right gather_wrong born_wrong detached_logger  # all have reported; born with the token
score 0 retry_right rank_wrong                              # what longjmp gives; what speaks for an order that is not there
score 0 join_right join_one_wrong strings_right free_right  # joined one by one; strings in their rows; published under the lock
score 0 nodeadlock_address cancel_ omp_tasks_sections       # both of two locks; setjmp; tasks and the function that made them
# Two messages for one, an object that stays where it was, numbers that are given out twice, a use behind the last reference, a task
# in front of the group.
score 15 token_wrong handover_wrong number_wrong count_wrong omp_group_wrong

# What may be in order in a way that was not followed is reported with less confidence, what is plainly not with high confidence.
confident() { # SAMPLE high|none
    "$RACE" check --no-state "$RACE_BUILD/samples/verdicts/verdict/$1/gcc-O2" >"$work/out" 2>&1
    checks=$((checks + 1))
    case $2 in
    none) grep -q ' races\{0,1\} (0 high, [1-9]' "$work/out" ;;
    high) grep -q ' races\{0,1\} ([1-9][0-9]* high' "$work/out" ;;
    esac || fail "$1: $(tail -1 "$work/out")"
}
# Shapes that compilers make of conditions on numbers, at levels that the samples are not built with: the lowest bit alone, and a loop
# that goes on while the number is one.
shaped() { # SAMPLE VARIABLE COMPILER LEVEL
    command -v "$3" >/dev/null || return
    "$3" -g "$4" -pthread "$RACE_SOURCE/samples/verdict/$1.c" -o "$work/shaped" || fail "$1 does not compile"
    "$RACE" check --no-state "$work/shaped" >"$work/out" 2>&1
    checks=$((checks + 1))
    grep -q "^race on $2 " "$work/out" || fail "$1, $3 $4: $(tail -1 "$work/out")"
}
for compiler in gcc clang; do
    for level in -O1 -O2; do
        shaped number_parity_wrong even $compiler $level
        shaped number_two_wrong last $compiler $level
    done
done

confident rank_wrong none
confident join_wrong high
finish
