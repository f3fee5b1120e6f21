/* sources.S - the files that `atoll tier prepare wasm` compiles together with a module, inside our executable. */
	.macro source name, file
	.section .rodata
1:	.incbin "\file"
2:	.byte 0
3:	.asciz "\name"
	.section .data.rel.ro.wasm, "aw"
	.quad 1b, 2b, 3b
	.endm

	.section .data.rel.ro.wasm, "aw"
	.balign 16
	.global wasm_sources, wasm_sources_end
wasm_sources:
	source "wasm/host.h", "src/wasm/host.h"
	source "wasm/host_files.h", "src/wasm/host_files.h"
	source "wasm/host_wasi.h", "src/wasm/host_wasi.h"
	source "wasm/wasm_rt.h", "src/wasm/wasm_rt.h"
	source "wasm-rt.h", "src/wasm/wasm_rt.h"
	source "wasm/host.c", "src/wasm/host.c"
	source "wasm/host_main.c", "src/wasm/host_main.c"
	source "wasm/host_image.c", "src/wasm/host_image.c"
	source "wasm/host_wasi.c", "src/wasm/host_wasi.c"
	source "wasm/host_files.c", "src/wasm/host_files.c"
	source "wasm/host_paths.c", "src/wasm/host_paths.c"
	source "wasm/host_filter.c", "src/wasm/host_filter.c"
	source "wasm/host_unstable.c", "src/wasm/host_unstable.c"
	source "python.py", "share/wasm/python.py"
	source "javascript.c", "share/wasm/javascript.c"
	source "javascript.js", "share/wasm/javascript.js"
	.section .data.rel.ro.wasm, "aw"
wasm_sources_end:
	.section .note.GNU-stack,"",%progbits
