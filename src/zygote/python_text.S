/* python_text.S - python.py inside the object that runs it. */
	.section .rodata
	.global zygote_python_text
zygote_python_text:
	.incbin PYTHON_TEXT
	.byte 0
	.section .note.GNU-stack,"",%progbits
