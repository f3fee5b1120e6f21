/* split.h - the C text of one module, as wasm2c 1.0.32 writes it, divided into files that a compiler
 * can translate one by one.
 * Owns: nothing; it writes into a folder of the caller.
 *
 * wasm2c writes one file: 130 MB for CPython, 52 MB of it initialisers of data segments. The result
 * of wasm_split() is
 *   common.h   macros, types and prototypes, included by every other file
 *   main.c     tables, globals, instantiation and exports
 *   part-N.c   the functions, each file with about chunk_bytes of them
 *   data       the initial linear memory, without trailing zeros */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
struct err;

struct wasm_split {
	unsigned parts;      /* how many part-N.c there are, from 0 */
	size_t functions;    /* in all parts */
	uint64_t data_bytes; /* size of the file data */
	char prefix[128];    /* of the module's exports: "Z_python" */
};

/* folder: a descriptor. The text is untrusted only as far as its size goes: it is compiled next. */
int wasm_split(FILE *in, int folder, size_t chunk_bytes, struct wasm_split *out, struct err *e);
