/* embedded.S - data files inside our executable: LIST names them, IMAGES is the symbol in front of them.
 * meson.build assembles this once per folder. */
	.macro image name
	.section .rodata
1:	.incbin "\name\().toml"
2:	.byte 0
3:	.asciz "\name\().toml"
	.section .data.rel.ro.IMAGES, "aw"
	.quad 1b, 2b, 3b
	.endm

	.section .data.rel.ro.IMAGES, "aw"
	.balign 16
	.global IMAGES
IMAGES:
	LIST
	/* A row of zeros ends it. */
	.quad 0, 0, 0
	.section .note.GNU-stack,"",%progbits
