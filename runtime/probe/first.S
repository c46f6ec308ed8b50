/* The first access of an epoch, where it is simple: the page is this thread's or nobody has it just now, one reader at most,
 * all that is known of the cells is ordered before, and the stack is the one that was seen here last. The same rules as
 * quick_apply_own of the core (runtime/core/quick.h), without a frame and without C's way of saving registers.
 *
 * Called by trampolines, with flags and all registers that are overwritten here (probe.h, PROBE_FIRST) saved:
 *
 *   ecx site   rdx thread   rsi region   rdi offset of the address in it   r8 stack pointer of the program
 *
 * Returns with the zero flag set when the check is made and no signal waits. Nothing is on the stack but the way back,
 * so a signal that comes here is shown the trampoline's state at that place (signal.c); while THREAD_INSIDE says so, it
 * waits. */
#include "runtime/probe/first.h"

        /* Is epoch \epoch (which goes) ordered before? Uses rcx. */
        .macro ordered epoch, no
        mov     \epoch, %ecx
        shr     $22, %ecx
        and     $0x3fffff, \epoch
        cmp     \epoch, THREAD_CLOCK(%rdx,%rcx,4)
        jb      \no
        .endm

        /* Requires the page (at r10 from PAGES of the region), the epoch in r9 and the site in r8. */
        .macro cells size, is_write, no
        cmpw    $IS_FINE, PAGES+PAGE_FORM(%rsi,%r10)
        jne     \no
        mov     PAGES+PAGE_OBJECTS(%rsi,%r10), %rcx
        test    %rcx, %rcx
        je      1f
        mov     %edi, %r10d
        shr     $6, %r10d
        bt      %r10, %rcx
        jc      \no
1:      lea     (%rsi,%rdi,4), %rdi
        mov     (%rdi), %rsi
        .if \size == 8
        cmp     %rsi, 16(%rdi)
        jne     \no
        cmpl    $0, 28(%rdi)
        js      \no
        .endif
        cmpl    $0, 12(%rdi)
        js      \no
        mov     %esi, %r10d
        ordered %r10d, \no
        shr     $32, %rsi
        je      2f
        ordered %esi, \no
2:
        .if \is_write
        mov     %r9, (%rdi)
        mov     %r8, 8(%rdi)
        .if \size == 8
        mov     %r9, 16(%rdi)
        mov     %r8, 24(%rdi)
        .endif
        .else
        mov     %r9d, 4(%rdi)
        mov     %r8d, 12(%rdi)
        .if \size == 8
        mov     %r9d, 20(%rdi)
        mov     %r8d, 28(%rdi)
        .endif
        .endif
        .endm

        .macro first name, size, is_write
        .globl \name
        .hidden \name
        .type \name, @function
        .balign 64
\name:
        .cfi_startproc
        mov     probe_self@gottpoff(%rip), %r10
        mov     %r8, %r9
        shr     $4, %r9
        xor     %ecx, %r9d
        and     $MEMO_MASK, %r9d
        imul    $MEMO_PAIR, %r9, %r9
        add     %fs:SELF_STACKS(%r10), %r9
        cmp     %ecx, MEMO_SITE(%r9)
        jne     8f
        cmp     %r8, MEMO_SP(%r9)
        jne     8f
        cmpq    $0, %fs:SELF_BUSY(%r10)
        jne     8f
        cmpb    $0, %fs:SELF_WAITING(%r10)
        jne     8f
        mov     MEMO_COUNT(%r9), %ecx
        shl     $4, %ecx
        je      4f
3:      mov     MEMO_WORDS-16(%r9,%rcx), %r8
        mov     MEMO_WORDS-8(%r9,%rcx), %r10
        cmp     %r10, (%r8)
        jne     8f
        sub     $16, %ecx
        jne     3b
4:      mov     MEMO_RESULT(%r9), %r8d
        and     $0x7fffffff, %r8d
        je      8f
        cmpl    $0, THREAD_EPOCH(%rdx)
        je      8f
        cmpq    $0, THREAD_PENDING(%rdx)
        jne     8f
        cmpl    $0, THREAD_INSIDE(%rdx)
        jne     8f
        movl    $IS_QUICK, THREAD_INSIDE(%rdx)
        mov     THREAD_CORE(%rdx), %r10
        cmpl    $0, CORE_RESETTING(%r10)
        jne     7f
        mov     THREAD_EPOCH(%rdx), %r9d
        mov     %edi, %r10d
        shr     $6, %r10d
        and     $-64, %r10d
        cmp     %rdx, PAGES+PAGE_OWNER(%rsi,%r10)
        jne     6f
        cells   \size, \is_write, 7f
5:      movl    $0, THREAD_INSIDE(%rdx)
        incq    THREAD_SLOW(%rdx)
        mov     THREAD_HEAD(%rdx), %ecx
        cmp     %ecx, THREAD_TAIL(%rdx)
        jne     9f
        mov     probe_self@gottpoff(%rip), %r10
        cmpl    $0, %fs:SELF_PENDING(%r10)
9:      ret
        /* A page that several threads use is locked for real: its number becomes odd. */
6:      cmpq    $IS_SHARED, PAGES+PAGE_OWNER(%rsi,%r10)
        jne     7f
        lock btsl $0, PAGES+PAGE_SEQ(%rsi,%r10)
        jc      7f
        lea     PAGES+PAGE_SEQ(%rsi,%r10), %rcx
        push    %rcx
        cells   \size, \is_write, 10f
        pop     %rcx
        incl    (%rcx)
        jmp     5b
10:     pop     %rcx
        incl    (%rcx)
7:      movl    $0, THREAD_INSIDE(%rdx)
8:      test    %rsp, %rsp
        ret
        .cfi_endproc
        .size \name, . - \name
        .endm

        .text
        .globl probe_first
        .hidden probe_first
        .globl probe_first_end
        .hidden probe_first_end
        .balign 64
probe_first:
        first   probe_first_read_4, 4, 0
        first   probe_first_write_4, 4, 1
        first   probe_first_read_8, 8, 0
        first   probe_first_write_8, 8, 1
probe_first_end:
        .section .note.GNU-stack, "", @progbits
