/* restorer_image.S - the code of checkpoint zygotes, as data. */
	.section .rodata
	.balign 16
	.global restorer_image
	.global restorer_image_end
restorer_image:
	.incbin RESTORER_IMAGE
restorer_image_end:
	.section .note.GNU-stack, "", %progbits
