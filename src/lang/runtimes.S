/* runtimes.S - the files of the languages, inside our executable. meson.build has the list. */
	.macro runtime name
	.section .rodata
1:	.incbin "\name\().toml"
2:	.byte 0
3:	.asciz "\name\().toml"
	.section .data.rel.ro.runtimes, "aw"
	.quad 1b, 2b, 3b
	.endm

	.section .data.rel.ro.runtimes, "aw"
	.balign 16
	.global runtime_images
runtime_images:
	RUNTIMES
	.section .data.rel.ro.runtimes, "aw"
	.global runtime_images_end
runtime_images_end:
	.section .note.GNU-stack,"",%progbits
