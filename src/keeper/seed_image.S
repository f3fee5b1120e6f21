/* seed_image.S - the object that makes a zygote of an interpreter, inside our executable. */
	.section .rodata
	.balign 16
	.global seed_image
	.global seed_image_end
seed_image:
	.incbin SEED_IMAGE
seed_image_end:
	.section .note.GNU-stack,"",%progbits
