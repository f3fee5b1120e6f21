/* ui_bundle.S - the files of the web UI inside our executable, as ui/bundle.mjs has packed them (format: ui.c). */
	.section .rodata
	.global ui_bundle, ui_bundle_end
	.balign 16
ui_bundle:
	.incbin UI_BUNDLE
ui_bundle_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
