/* init_image.S - the executable of every box's PID 1, inside ours. */
	.section .rodata
	.balign 16
	.global init_image
	.global init_image_end
init_image:
	.incbin INIT_IMAGE
init_image_end:
	.section .note.GNU-stack,"",%progbits
