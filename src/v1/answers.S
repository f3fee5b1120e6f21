/* answers.S - answers.json inside our executable: what the routes answer, for /openapi.json. */
	.section .rodata
	.global api_answers, api_answers_end
api_answers:
	.incbin "answers.json"
api_answers_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
