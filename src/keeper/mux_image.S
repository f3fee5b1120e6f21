/* mux_image.S - the executable of mux and guest stub, inside ours. */
	.section .rodata
	.balign 16
	.global mux_image
	.global mux_image_end
mux_image:
	.incbin MUX_IMAGE
mux_image_end:
	.section .note.GNU-stack,"",%progbits
