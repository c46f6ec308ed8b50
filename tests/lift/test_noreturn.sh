#!/bin/sh
# A function that returns as far as its code tells, but after which the code of its callers ends, does not return: nothing leads from
# such a call to what happens to lie behind it. One caller alone says nothing.
. "$RACE_SOURCE/tests/lib/check.sh"

functions() { # NAME CALLEE LAST...: functions that call CALLEE, as the last instruction or not
    name=$1 callee=$2 n=0
    shift 2
    for last; do
        n=$((n + 1))
        printf '.globl %s%d\n.type %s%d, @function\n%s%d:\n.cfi_startproc\npushq %%rax\n.cfi_adjust_cfa_offset 8\n' $name $n $name $n $name $n
        printf 'testl %%edi, %%edi\njne 1f\n'
        case $last in
        yes) printf 'popq %%rax\n.cfi_adjust_cfa_offset -8\nret\n1: .cfi_adjust_cfa_offset 8\ncall %s\n' $callee ;;
        *) printf 'call %s\n1: popq %%rax\n.cfi_adjust_cfa_offset -8\nret\n' $callee ;;
        esac
        printf '.cfi_endproc\n.size %s%d, .-%s%d\n.p2align 4\n' $name $n $name $n
    done
}
leaf() { printf '.globl %s\n.type %s, @function\n%s:\n.cfi_startproc\nxorl %%eax, %%eax\nret\n.cfi_endproc\n.size %s, .-%s\n.p2align 4\n' $1 $1 $1 $1 $1; }
{
    echo .text
    leaf gives_up
    leaf goes_on
    leaf is_left
    functions with_end gives_up yes yes no no
    functions with_one goes_on yes no no
    functions with_few is_left yes yes no no no no no no no
    echo '.section .note.GNU-stack,"",@progbits'
} >"$work/ends.s"
gcc -shared -o "$work/ends.so" "$work/ends.s" || skip "no compiler"
expect 0 "$RACE" show "$work/ends.so" gives_up
has 'does not return'
expect 0 "$RACE" show "$work/ends.so" goes_on
! grep -q 'does not return' "$work/out" || fail "it returns, says all but few of its callers"
expect 0 "$RACE" show "$work/ends.so" is_left
! grep -q 'does not return' "$work/out" || fail "it returns, says all but few of its callers"
finish
