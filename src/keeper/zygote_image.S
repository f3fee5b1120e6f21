/* zygote_image.S - the object that makes a zygote of an interpreter, inside our executable. */
	.section .rodata
	.balign 16
	.global zygote_image
	.global zygote_image_end
zygote_image:
	.incbin ZYGOTE_IMAGE
zygote_image_end:
	.section .note.GNU-stack,"",%progbits
