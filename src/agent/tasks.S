/* tasks.S - the files of the library's tasks, inside our executable. meson.build lists the folder. */
	.macro task name
	.section .rodata
1:	.incbin "\name\().toml"
2:	.byte 0
3:	.asciz "\name"
	.section .data.rel.ro.tasks, "aw"
	.quad 1b, 2b, 3b
	.endm

	.section .data.rel.ro.tasks, "aw"
	.balign 16
	.global task_images
task_images:
	TASKS
	.section .data.rel.ro.tasks, "aw"
	.global task_images_end
task_images_end:
	.section .note.GNU-stack,"",%progbits
