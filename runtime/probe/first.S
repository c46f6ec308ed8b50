/* The first access of an epoch, where it is simple: the page is this thread's or nobody has it just now, one reader at most,
 * all that is known of the cells is ordered before, and the stack is the one that was seen here last. The same rules as
 * quick_apply_own of the core (runtime/core/quick.h), without a frame and without C's way of saving registers. A part of a cell
 * is simple when the cell is split already, and its bytes do not become alike.
 *
 * Called by trampolines, with flags and all registers that are overwritten here (probe.h, PROBE_FIRST) saved:
 *
 *   ecx site   rdx thread   rsi region   rdi offset of the address in it   r8 stack pointer of the program
 *   r9 where the return address of its function lies, or 0   r10 the memo that was found here last, or 0
 *   For a part of a cell: rdi the address itself, and no rsi.
 *
 * Returns with the zero flag set when the check is made and no signal waits, and with the carry flag set when it is made and
 * one does. Nothing is on the stack but the way back, so a signal that comes here is shown the trampoline's state at that place
 * (signal.c); while THREAD_INSIDE says so, it waits. */
#include "runtime/probe/first.h"

        /* Is epoch \epoch (which goes) ordered before? Uses rcx. */
        .macro ordered epoch, no
        mov     \epoch, %ecx
        shr     $22, %ecx
        and     $0x3fffff, \epoch
        cmp     \epoch, THREAD_CLOCK(%rdx,%rcx,4)
        jb      \no
        .endm

        /* A read of cells with a small read vector that nobody else has, and that the thread is in (readers_renew). */
        .macro vector size, no
        mov     (%rdi), %r10d
        ordered %r10d, \no
        mov     SITES+4(%rdi), %esi
        .if \size == 8
        mov     8(%rdi), %r10d
        ordered %r10d, \no
        cmp     %esi, SITES+12(%rdi)
        jne     \no
        .endif
        test    $0x70000000, %esi
        jne     \no
        and     $0x0fffffff, %esi
        mov     %esi, %ecx
        shr     $VECTOR_SHIFT, %ecx
        mov     THREAD_CORE(%rdx), %r10
        mov     CORE_VECTORS(%r10,%rcx,8), %r10
        and     $(1 << VECTOR_SHIFT) - 1, %esi
        lea     (%rsi,%rsi,4), %rsi
        lea     (%r10,%rsi,8), %rsi
        cmpl    $\size / 4, (%rsi)
        jne     \no
        mov     4(%rsi), %ecx
24:     mov     (%rsi,%rcx,8), %r10d
        xor     %r9d, %r10d
        shr     $22, %r10d
        je      25f
        dec     %ecx
        jg      24b
        jmp     \no
25:     mov     %r9d, (%rsi,%rcx,8)
        mov     %r8d, 4(%rsi,%rcx,8)
        mov     %r9d, 4(%rdi)
        .if \size == 8
        mov     %r9d, 12(%rdi)
        .endif
        .endm

        /* Sites mostly stay the same, and then their cache line need not be written. */
        .macro renew site, at
        cmp     \site, \at(%rdi)
        je      27f
        mov     \site, \at(%rdi)
27:
        .endm

        /* Cells that are neither merged nor used by atomics: of the page at r10 from PAGES of the region. Uses rcx and r10. */
        .macro plain no
        cmpw    $IS_FINE, PAGES+PAGE_FORM(%rsi,%r10)
        jne     \no
        mov     PAGES+PAGE_ATOMICS(%rsi,%r10), %rcx
        test    %rcx, %rcx
        je      1f
        mov     %edi, %r10d
        shr     $6, %r10d
        bt      %r10, %rcx
        jc      \no
1:
        .endm

        /* Requires the page (at r10 from PAGES of the region), the epoch in r9 and the site in r8. */
        .macro cells size, is_write, no
        plain   \no
        lea     (%rsi,%rdi,2), %rdi
        mov     (%rdi), %rsi
        cmpl    $0, SITES+4(%rdi)
        .if \is_write
        js      \no
        .else
        js      23f
        .endif
        .if \size == 8
        cmp     %rsi, 8(%rdi)
        jne     \no
        cmpl    $0, SITES+12(%rdi)
        js      \no
        .endif
        mov     %esi, %r10d
        ordered %r10d, \no
        shr     $32, %rsi
        je      2f
        ordered %esi, \no
2:
        .if \is_write
        mov     %r9, (%rdi)
        .if \size == 8
        mov     %r9, 8(%rdi)
        .endif
        renew   %r8, SITES
        .if \size == 8
        renew   %r8, SITES+8
        .endif
        .else
        mov     %r9d, 4(%rdi)
        .if \size == 8
        mov     %r9d, 12(%rdi)
        .endif
        renew   %r8d, SITES+4
        .if \size == 8
        renew   %r8d, SITES+12
        .endif
        jmp     26f
23:     vector  \size, \no
26:
        .endif
        .endm

        /* Is the stack the remembered one (stack_find)? Then its number is in r8, and else it goes to \no. Uses rcx, r9, r10.
         * First the memo that was found here last: which of them to look at need not be worked out then. */
        .macro remembered no
        test    %r10, %r10
        je      7f
        cmp     %ecx, MEMO_SITE(%r10)
        jne     7f
        cmp     %r8, MEMO_SP(%r10)
        jne     7f
        mov     MEMO_COUNT(%r10), %ecx
        test    %ecx, %ecx
        je      9f
2:      mov     MEMO_WORDS-8(%r10,%rcx,8), %edx
        mov     (%r8,%rdx), %edx
        cmp     %edx, MEMO_WORDS-4(%r10,%rcx,8)
        jne     8f
        dec     %ecx
        jne     2b
9:      mov     %r10, %r9
        mov     probe_self@gottpoff(%rip), %r10
        mov     %fs:SELF_THREAD(%r10), %rdx
        cmpq    $0, %fs:SELF_BUSY(%r10)
        jne     \no
        cmpb    $0, %fs:SELF_WAITING(%r10)
        je      4f
        jmp     \no
8:      mov     MEMO_SITE(%r10), %ecx
        mov     probe_self@gottpoff(%rip), %r10
        mov     %fs:SELF_THREAD(%r10), %rdx
7:      mov     probe_self@gottpoff(%rip), %r10
        cmp     %r8, %r9
        jb      3f
        add     $8, %r9
        cmp     %fs:SELF_HIGH(%r10), %r9
        ja      3f
        mov     -8(%r9), %r9
1:      mov     %r8, %r10
        shr     $4, %r10
        xor     %ecx, %r9d
        xor     %r10d, %r9d
        and     $MEMO_MASK, %r9d
        imul    $MEMO_PAIR, %r9, %r9
        mov     probe_self@gottpoff(%rip), %r10
        add     %fs:SELF_STACKS(%r10), %r9
        cmp     %ecx, MEMO_SITE(%r9)
        jne     5f
        cmp     %r8, MEMO_SP(%r9)
        jne     5f
6:      movzbl  %cl, %ecx
        lea     (%r10,%rcx,8), %rcx
        mov     %r9, %fs:SELF_LAST(%rcx)
        cmpq    $0, %fs:SELF_BUSY(%r10)
        jne     \no
        cmpb    $0, %fs:SELF_WAITING(%r10)
        jne     \no
        mov     MEMO_COUNT(%r9), %ecx
        test    %ecx, %ecx
        je      4f
2:      mov     MEMO_WORDS-8(%r9,%rcx,8), %r10d
        mov     (%r8,%r10), %r10d
        cmp     %r10d, MEMO_WORDS-4(%r9,%rcx,8)
        jne     \no
        dec     %ecx
        jne     2b
        jmp     4f
3:      xor     %r9d, %r9d
        jmp     1b
5:      add     $MEMO_PAIR / 2, %r9
        cmp     %ecx, MEMO_SITE(%r9)
        jne     \no
        cmp     %r8, MEMO_SP(%r9)
        je      6b
        jmp     \no
4:      mov     MEMO_RESULT(%r9), %r8d
        and     $0x7fffffff, %r8d
        je      \no
        .endm

        /* Inside of the core from now on, with the epoch in r9 and the core in r10. */
        .macro enter no, later
        cmpl    $0, THREAD_EPOCH(%rdx)
        je      \no
        cmpq    $0, THREAD_PENDING(%rdx)
        jne     \no
        cmpl    $0, THREAD_INSIDE(%rdx)
        jne     \no
        movl    $IS_QUICK, THREAD_INSIDE(%rdx)
        mov     THREAD_CORE(%rdx), %r10
        cmpl    $0, CORE_RESETTING(%r10)
        jne     \later
        mov     THREAD_EPOCH(%rdx), %r9d
        .endm

        /* Outside again, with the check made. */
        .macro leave_core
        movl    $0, THREAD_INSIDE(%rdx)
        incq    THREAD_SLOW(%rdx)
        mov     THREAD_HEAD(%rdx), %ecx
        cmp     %ecx, THREAD_TAIL(%rdx)
        jne     1f
        mov     probe_self@gottpoff(%rip), %r10
        cmpl    $0, %fs:SELF_PENDING(%r10)
        je      2f
1:      stc
2:      ret
        .endm

        .macro function name
        .globl \name
        .hidden \name
        .type \name, @function
        .balign 64
\name:
        .cfi_startproc
        .endm

        .macro first name, size, is_write
        function \name
        remembered 28f
        enter   28f, 7f
        mov     %edi, %r10d
        shr     $6, %r10d
        and     $-64, %r10d
        cmp     %rdx, PAGES+PAGE_OWNER(%rsi,%r10)
        jne     6f
        cells   \size, \is_write, 7f
5:      leave_core
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
28:     test    %rsp, %rsp
        ret
        .cfi_endproc
        .size \name, . - \name
        .endm

        /* One byte cell, at \at(%rsi). Uses rcx and r10. */
        .macro byte at, is_write, no
        cmp     %r9d, \at(%rsi)
        je      2f
        .if !\is_write
        cmp     %r9d, \at+4(%rsi)
        je      2f
        .endif
        cmpl    $0, \at+12(%rsi)
        js      \no
        mov     \at(%rsi), %r10d
        ordered %r10d, \no
        mov     \at+4(%rsi), %r10d
        ordered %r10d, \no
        .if \is_write
        mov     %r9, \at(%rsi)
        mov     %r8, \at+8(%rsi)
        .else
        mov     %r9d, \at+4(%rsi)
        mov     %r8d, \at+12(%rsi)
        .endif
2:
        .endm

        /* Requires the page (at r10 from PAGES of the region). */
        .macro bytes size, is_write, no
        plain   \no
        mov     %edi, %ecx
        and     $0x3fffffc, %ecx
        lea     (%rsi,%rcx,2), %rsi
        cmpl    $-1, (%rsi)
        jne     \no
        mov     SITES(%rsi), %ecx
        mov     THREAD_CORE(%rdx), %r10
        mov     %ecx, %esi
        shr     $SPLIT_SHIFT, %esi
        mov     CORE_SPLITS(%r10,%rsi,8), %r10
        and     $(1 << SPLIT_SHIFT) - 1, %ecx
        shl     $6, %rcx
        lea     (%r10,%rcx), %rsi
        mov     %edi, %ecx
        and     $3, %ecx
        shl     $4, %ecx
        add     %rcx, %rsi
        byte    0, \is_write, \no
        .if \size == 2
        byte    16, \is_write, \no
        .endif
        /* The first and the last byte are alike: all may be, and are to be merged then. */
        and     $-64, %rsi
        mov     (%rsi), %rcx
        cmp     %rcx, 48(%rsi)
        jne     1f
        mov     8(%rsi), %rcx
        cmp     %rcx, 56(%rsi)
        je      \no
1:
        .endm

        .macro part name, size, is_write
        function \name
        remembered 28f
        enter   28f, 7f
        mov     %rdi, %rsi
        shr     $26, %rsi
        and     $0x1fffff, %esi
        mov     CORE_CLEARED(%r10), %ecx
        mov     CORE_REGIONS(%r10,%rsi,8), %rsi
        test    %rsi, %rsi
        je      7f
        push    %rcx
        mov     %edi, %r10d
        shr     $6, %r10d
        and     $0xfffc0, %r10d
        cmp     %rdx, PAGES+PAGE_OWNER(%rsi,%r10)
        jne     6f
        bytes   \size, \is_write, 9f
        /* It need not be looked for again (remember_part of quick.c). */
5:      pop     %rsi
        mov     probe_self@gottpoff(%rip), %r10
        mov     %edi, %ecx
        and     $PART_MASK, %ecx
        shl     $4, %ecx
        add     %r10, %rcx
        movq    $0, %fs:SELF_PARTS + PART_KIND * (2 * \is_write + \size - 1)(%rcx)
        mov     %r9d, %fs:SELF_PARTS + PART_KIND * (2 * \is_write + \size - 1) + 8(%rcx)
        mov     %esi, %fs:SELF_PARTS + PART_KIND * (2 * \is_write + \size - 1) + 12(%rcx)
        mov     %rdi, %fs:SELF_PARTS + PART_KIND * (2 * \is_write + \size - 1)(%rcx)
        leave_core
6:      cmpq    $IS_SHARED, PAGES+PAGE_OWNER(%rsi,%r10)
        jne     9f
        lock btsl $0, PAGES+PAGE_SEQ(%rsi,%r10)
        jc      9f
        lea     PAGES+PAGE_SEQ(%rsi,%r10), %rcx
        push    %rcx
        bytes   \size, \is_write, 10f
        pop     %rcx
        incl    (%rcx)
        jmp     5b
10:     pop     %rcx
        incl    (%rcx)
9:      pop     %rcx
7:      movl    $0, THREAD_INSIDE(%rdx)
28:     test    %rsp, %rsp
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
        part    probe_first_read_1, 1, 0
        part    probe_first_write_1, 1, 1
        part    probe_first_read_2, 2, 0
        part    probe_first_write_2, 2, 1
        first   probe_first_read_4, 4, 0
        first   probe_first_write_4, 4, 1
        first   probe_first_read_8, 8, 0
        first   probe_first_write_8, 8, 1
probe_first_end:
        .section .note.GNU-stack, "", @progbits
