/* preload_image.S - the library that programs in gVisor load first (src/mux/preload.c), inside ours. */
	.section .rodata
	.balign 16
	.global preload_image
	.global preload_image_end
preload_image:
	.incbin PRELOAD_IMAGE
preload_image_end:
	.section .note.GNU-stack,"",%progbits
