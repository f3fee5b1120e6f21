/* repair_programs.S - see repair_programs.h. The folder is in the assembler's path. */
	.macro program name, file
	.global \name
\name:	.incbin "\file"
	.byte 0
	.endm

	.section .rodata
	program repair_python, "python.py"
	program repair_python_judge, "judge.py"
	program repair_node, "node.js"
	.section .note.GNU-stack,"",%progbits
