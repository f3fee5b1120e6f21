/* start.S - the two places where C cannot say it: the first instruction, and a child that shares
 * our memory but needs a stack of its own.
 *
 * Init leaves the kernel's stack at once for one inside its image (slim.c says why). Linked first,
 * this file's part of .bss is the lowest memory that can be written; below are text and constants,
 * so that an overflow faults. The deepest chain of calls takes 3 KiB, and nothing recurses. */
#define DEEP 32768
#define SHALLOW 960 /* an idle init goes no deeper; in one page with its variables and small frames */

	.bss
	.balign	4096
	.globl	init_stack
init_stack:
	.skip	DEEP + SHALLOW
init_stack_top:

#if defined(__aarch64__)
	.text
	.globl	_start
	.type	_start, %function
_start:				/* sp points at argc */
	mov	x29, #0
	mov	x30, #0
	mov	x0, sp
	adrp	x1, init_stack_top
	add	x1, x1, :lo12:init_stack_top
	mov	sp, x1
	b	init_main
	.size	_start, .-_start

/* long start_clone(unsigned long flags, void *stack_top, void (*run)(void *), void *arg) */
	.globl	start_clone
	.type	start_clone, %function
start_clone:
	stp	x2, x3, [x1, #-16]!
	mov	x2, #0
	mov	x3, #0
	mov	x4, #0
	mov	x8, #220	/* clone */
	svc	#0
	cbz	x0, 1f
	ret
1:	mov	x29, #0
	mov	x30, #0
	ldp	x1, x0, [sp], #16
	blr	x1
	brk	#0		/* run() does not return */
	.size	start_clone, .-start_clone
#elif defined(__x86_64__)
	.text
	.globl	_start
	.type	_start, @function
_start:				/* rsp points at argc */
	xorl	%ebp, %ebp
	movq	%rsp, %rdi
	leaq	init_stack_top(%rip), %rsp
	call	init_main
	ud2
	.size	_start, .-_start

/* long start_clone(unsigned long flags, void *stack_top, void (*run)(void *), void *arg) */
	.globl	start_clone
	.type	start_clone, @function
start_clone:
	subq	$16, %rsi
	movq	%rdx, (%rsi)
	movq	%rcx, 8(%rsi)
	xorl	%edx, %edx
	xorl	%r10d, %r10d
	xorl	%r8d, %r8d
	movl	$56, %eax	/* clone */
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	xorl	%ebp, %ebp
	popq	%rax
	popq	%rdi
	call	*%rax
	ud2			/* run() does not return */
	.size	start_clone, .-start_clone
#endif
	.section .note.GNU-stack,"",%progbits
