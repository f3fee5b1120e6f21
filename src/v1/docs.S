/* docs.S - the pages of docs/ inside our executable, for GET /docs/{page}. meson.build has the list, as DOCS. */
	.macro doc name
	.section .rodata.doc_names, "aMS", %progbits, 1
1:	.asciz "\name\().md"
	.section .rodata
2:	.incbin "\name\().md"
3:	.byte 0
	.section .data.rel.ro.docs, "aw"
	.balign 8
	.quad 1b, 2b, 3b
	.endm

	.section .data.rel.ro.docs, "aw"
	.balign 8
	.global v1_docs, v1_docs_end
v1_docs:
	DOCS
	.section .data.rel.ro.docs, "aw"
v1_docs_end:
	.section .note.GNU-stack,"",%progbits
