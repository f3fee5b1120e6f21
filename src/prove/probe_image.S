/* probe_image.S - the probe program, inside ours. */
	.section .rodata
	.balign 16
	.global prove_probe_image
	.global prove_probe_image_end
prove_probe_image:
	.incbin PROBE_IMAGE
prove_probe_image_end:
	.section .note.GNU-stack,"",%progbits
