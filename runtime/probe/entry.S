/* The ways in.
 *
 * probe_enter_check: from a trampoline, with everything of the program alive. On the stack: the return address, the
 * number of the record, the red zone. The layout must be that of probe_registers, and the code before `busy` is set and
 * after it is cleared must be a straight line of pushes and pops: signal.c undoes it by reading it.
 *
 * probe_enter_quick: the same for a check whose address is in rax already; rax of the program lies between the return
 * address and the record. It saves only what C may overwrite, and goes on to probe_enter_check when C could not do it.
 * Either way rax is off the stack when it returns. While it is not busy, flags are in rax, and later in rbx.
 *
 * probe_in_core: from C, on the program's stack. */
#define BUSY 8
#define PENDING 12
#define STACK 16
#define SIGACTION 13   /* numbers of system calls */
#define SIGPROCMASK 14
#define MPROTECT 10
#define PKEY_MPROTECT 329
#define CLONE 56
#define FORK 57
#define CLONE3 435
#define PRCTL 157
#define SECCOMP 317
#define CLONE_VM 0x100

        .text
        .globl probe_enter_check
        .hidden probe_enter_check
        .type probe_enter_check, @function
        .globl probe_enter_check_busy
        .hidden probe_enter_check_busy
        .globl probe_enter_check_idle
        .hidden probe_enter_check_idle
        .globl probe_enter_check_popf
        .hidden probe_enter_check_popf
        .globl probe_enter_check_rest
        .hidden probe_enter_check_rest
        .globl probe_enter_check_end
        .hidden probe_enter_check_end
probe_enter_check:
        .cfi_startproc
        push %r15
        push %r14
        push %r13
        push %r12
        push %r11
        push %r10
        push %r9
        push %r8
        push %rdi
        push %rsi
        push %rbp
        push %rsp
        push %rbx
        push %rdx
        push %rcx
        push %rax
        pushfq
        mov     %rsp, %rbx
        mov     probe_self@gottpoff(%rip), %r12
        cmpl    $0, %fs:BUSY(%r12)
        jne     1f
        movl    $1, %fs:BUSY(%r12)
probe_enter_check_busy:
        cld
        mov     %fs:STACK(%r12), %rax
        test    %rax, %rax
        cmovnz  %rax, %rsp
        and     $-16, %rsp
        mov     %rbx, %rdi
        mov     144(%rbx), %esi
        call    probe_check
        mov     %rbx, %rsp
        movl    $0, %fs:BUSY(%r12)
        cmpl    $0, %fs:PENDING(%r12)
        jne     2f
probe_enter_check_idle:
        testl   $0x400, (%rsp)
        jne     3f
        mov     (%rsp), %rax
        mov     %eax, %ecx
        shr     $11, %ecx
        and     $1, %ecx
        mov     %al, %ah
        mov     %cl, %al
        add     $127, %al
        sahf
        lea     8(%rsp), %rsp
4:      pop     %rax
        pop     %rcx
        pop     %rdx
        pop     %rbx
        lea     8(%rsp), %rsp
        pop     %rbp
        pop     %rsi
        pop     %rdi
        pop     %r8
        pop     %r9
        pop     %r10
        pop     %r11
        pop     %r12
        pop     %r13
        pop     %r14
        pop     %r15
        ret
probe_enter_check_popf:
3:      popfq
        jmp     4b

        /* From here on rbx says where the registers are; rsp may not.
         * A handler that we did not get between: the core puts the check off. The stack is in use. */
probe_enter_check_rest:
1:      cld
        mov     %rbx, %rdi
        mov     144(%rbx), %esi
        and     $-16, %rsp
        call    probe_check
        mov     %rbx, %rsp
        jmp     probe_enter_check_idle

2:      mov     %rbx, %rdi
        and     $-16, %rsp
        call    probe_deliver
        mov     %rbx, %rsp
        jmp     probe_enter_check_idle
probe_enter_check_end:
        .cfi_endproc
        .size probe_enter_check, . - probe_enter_check

        .globl probe_enter_quick
        .hidden probe_enter_quick
        .type probe_enter_quick, @function
        .globl probe_enter_quick_left
        .hidden probe_enter_quick_left
        .globl probe_enter_quick_full
        .hidden probe_enter_quick_full
        .globl probe_enter_quick_end
        .hidden probe_enter_quick_end
        .macro leave_quick
        mov     %ebx, %eax
        add     $127, %al
        sahf
        pop     %rbx
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rdi
        pop     %rsi
        pop     %rdx
        pop     %rcx
        mov     8(%rsp), %rax
        popq    (%rsp)
        .endm
        .balign 64
probe_enter_quick:
        .cfi_startproc
        push    %rcx
        push    %rdx
        push    %rsi
        push    %rdi
        push    %r8
        push    %r9
        push    %r10
        push    %r11
        push    %rbx
        mov     %rax, %rdi
        lahf
        seto    %al
        mov     %eax, %ebx
        mov     probe_self@gottpoff(%rip), %rcx
        mov     %fs:STACK(%rcx), %r9
        cmpl    $0, %fs:BUSY(%rcx)
        jne     probe_enter_quick_full
        test    %r9, %r9
        je      probe_enter_quick_full
        movl    $1, %fs:BUSY(%rcx)
        mov     88(%rsp), %esi
        lea     224(%rsp), %rdx
        mov     %rbp, %rcx
        mov     %rsp, %rax
        lea     -16(%r9), %rsp
        mov     %rax, (%rsp)
        call    probe_quick
        mov     (%rsp), %rsp
        mov     probe_self@gottpoff(%rip), %rcx
        movl    $0, %fs:BUSY(%rcx)
probe_enter_quick_left:
        cmpl    $0, %fs:PENDING(%rcx)
        jne     probe_enter_quick_full
        test    %al, %al
        je      probe_enter_quick_full
        leave_quick
        ret
probe_enter_quick_full:
        leave_quick
        jmp     probe_enter_check
probe_enter_quick_end:
        .cfi_endproc
        .size probe_enter_quick, . - probe_enter_quick

        /* probe_in_core(function, argument) */
        .globl probe_in_core
        .hidden probe_in_core
        .type probe_in_core, @function
probe_in_core:
        .cfi_startproc
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset %rbx, -16
        push    %r12
        .cfi_def_cfa_offset 24
        .cfi_offset %r12, -24
        mov     %rsp, %rbx
        .cfi_def_cfa_register %rbx
        mov     probe_self@gottpoff(%rip), %r12
        mov     %rdi, %rax
        mov     %rsi, %rdi
        cmpl    $0, %fs:BUSY(%r12)
        jne     5f
        movl    $1, %fs:BUSY(%r12)
        mov     %fs:STACK(%r12), %rcx
        test    %rcx, %rcx
        cmovnz  %rcx, %rsp
        and     $-16, %rsp
        call    *%rax
        mov     %rbx, %rsp
        movl    $0, %fs:BUSY(%r12)
        cmpl    $0, %fs:PENDING(%r12)
        je      6f
        xor     %edi, %edi
        and     $-16, %rsp
        call    probe_deliver
        mov     %rbx, %rsp
        jmp     6f
5:      and     $-16, %rsp
        call    *%rax
        mov     %rbx, %rsp
6:      pop     %r12
        .cfi_def_cfa %rsp, 16
        pop     %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size probe_in_core, . - probe_in_core

        /* A function between the program and what it calls. `before` gets the probe_call and returns the real function;
         * what the program passed goes on as it is, arguments on the stack included; `after` gets the result. */
#define FRAME 640 /* probe_call */
#define ARGS   -FRAME
#define NUMBER -(FRAME - 56)
#define BACK   -(FRAME - 64)
#define RESULT -(FRAME - 72)
        .macro save_arguments
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $FRAME, %rsp
        mov     %rdi, ARGS(%rbp)
        mov     %rsi, ARGS+8(%rbp)
        mov     %rdx, ARGS+16(%rbp)
        mov     %rcx, ARGS+24(%rbp)
        mov     %r8, ARGS+32(%rbp)
        mov     %r9, ARGS+40(%rbp)
        mov     %rax, ARGS+48(%rbp)
        mov     %r11, NUMBER(%rbp)
        mov     8(%rbp), %rax
        mov     %rax, BACK(%rbp)
        lea     ARGS(%rbp), %rdi
        .endm
        .macro load_arguments
        mov     ARGS(%rbp), %rdi
        mov     ARGS+8(%rbp), %rsi
        mov     ARGS+16(%rbp), %rdx
        mov     ARGS+24(%rbp), %rcx
        mov     ARGS+32(%rbp), %r8
        mov     ARGS+40(%rbp), %r9
        mov     ARGS+48(%rbp), %rax
        .endm

        .macro wrapper name, before, after
        .globl \name
        .hidden \name
        .type \name, @function
\name:
        .cfi_startproc
        save_arguments
        call    \before
        mov     %rax, %r11
        movzwl  NUMBER+2(%rbp), %ecx     /* words on the stack, an even number */
        test    %ecx, %ecx
        je      1f
        mov     %ecx, %edx
        shl     $3, %rdx
        sub     %rdx, %rsp
        lea     16(%rbp), %rsi
        mov     %rsp, %rdi
        rep movsq
1:      load_arguments
        call    *%r11
        mov     %rax, RESULT(%rbp)
        mov     %rdx, RESULT+8(%rbp)
        lea     ARGS(%rbp), %rdi
        call    \after
        mov     RESULT(%rbp), %rax
        mov     RESULT+8(%rbp), %rdx
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size \name, . - \name
        .endm

        wrapper probe_wrapper, probe_before, probe_after
        wrapper probe_callback, probe_entered, probe_returned

        .globl probe_wrapper_tail
        .hidden probe_wrapper_tail
        .type probe_wrapper_tail, @function
probe_wrapper_tail:
        .cfi_startproc
        save_arguments
        call    probe_before
        mov     %rax, %r11
        load_arguments
        leave
        .cfi_def_cfa %rsp, 8
        jmp     *%r11
        .cfi_endproc
        .size probe_wrapper_tail, . - probe_wrapper_tail

        /* probe_peek(to, from, size): copies what may not be there. A fault in it goes on at probe_peek_fault (signal.c). */
        .globl probe_peek
        .hidden probe_peek
        .type probe_peek, @function
        .globl probe_peek_fault
        .hidden probe_peek_fault
probe_peek:
        .cfi_startproc
        sub     $8, %rdx
        jb      2f
1:      mov     (%rsi), %rax
        mov     %rax, (%rdi)
        add     $8, %rsi
        add     $8, %rdi
        sub     $8, %rdx
        jae     1b
2:      add     $8, %rdx
        je      4f
3:      mov     (%rsi), %al
        mov     %al, (%rdi)
        inc     %rsi
        inc     %rdi
        dec     %rdx
        jne     3b
4:      mov     $1, %eax
        ret
probe_peek_fault:
        xor     %eax, %eax
        ret
        .cfi_endproc
        .size probe_peek, . - probe_peek

        /* libc's syscall(number, arguments...). It must not have a frame: a child of vfork returns from it, too. What changes
         * handlers or masks is C's (signal.c), what makes code writable is (module.c), and what makes a process with memory and
         * stack of its own is, too (clone.c). */
        .globl syscall
        .type syscall, @function
syscall:
        .cfi_startproc
        lea     -SIGACTION(%rdi), %rax
        cmp     $SIGPROCMASK - SIGACTION, %rax
        jbe     probe_syscall
        cmp     $FORK, %rdi
        je      probe_fork_by_system
        cmp     $CLONE, %rdi
        je      2f
        cmp     $CLONE3, %rdi
        je      3f
        cmp     $PRCTL, %rdi
        je      probe_restrict_by_system
        cmp     $SECCOMP, %rdi
        je      probe_restrict_by_system
        cmp     $MPROTECT, %rdi
        je      probe_protect_by_system
        cmp     $PKEY_MPROTECT, %rdi
        je      probe_protect_by_system
4:      mov     %rdi, %rax
        mov     %rsi, %rdi
        mov     %rdx, %rsi
        mov     %rcx, %rdx
        mov     %r8, %r10
        mov     %r9, %r8
        mov     8(%rsp), %r9
        syscall
        cmp     $-4096, %rax
        ja      1f
        ret
1:      mov     %rax, %rdi
        jmp     probe_syscall_error
2:      test    %rdx, %rdx               /* a stack of its own */
        jne     4b
        test    $CLONE_VM, %esi
        jne     4b
        jmp     probe_fork_by_system
3:      cmp     $4096, %rsi              /* no pointer */
        jb      4b
        testl   $CLONE_VM, (%rsi)
        jne     4b
        cmpq    $0, 40(%rsi)
        jne     4b
        jmp     probe_fork_by_system
        .cfi_endproc
        .size syscall, . - syscall

        /* What stands for functions that libraries call back; callback.c gives them out. */
        .globl probe_stubs
        .hidden probe_stubs
        .balign 16
probe_stubs:
        .cfi_startproc
        .set    number, 0
        .rept   1024
        .balign 16
        mov     $number, %r11d
        jmp     probe_callback
        .set    number, number + 1
        .endr
        .balign 16
        .cfi_endproc

        .section .note.GNU-stack, "", @progbits
