/* shipped.S - an archive of each folder of share/templates, inside our executable. meson.build has the list. */
	.macro shipped name
	.section .rodata
1:	.incbin "\name\().tar"
2:	.asciz "\name"
	.section .data.rel.ro.shipped, "aw"
	.quad 1b, 2b, 2b
	.endm

	.section .data.rel.ro.shipped, "aw"
	.balign 16
	.global shipped_templates
shipped_templates:
	SHIPPED
	.section .data.rel.ro.shipped, "aw"
	.global shipped_templates_end
shipped_templates_end:
	.section .note.GNU-stack,"",%progbits
