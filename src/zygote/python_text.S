/* python_text.S - python.py inside the object that runs it. */
	.section .rodata
	.global seed_python_text
seed_python_text:
	.incbin PYTHON_TEXT
	.byte 0
	.section .note.GNU-stack,"",%progbits
