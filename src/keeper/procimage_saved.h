/* procimage_saved.h - the sections of the file of a process image, in this order. */
#pragma once
#include "procimage/machine.h"
#include "procimage/program_clock.h"
#include "wire/wire.h"

enum saved_section {
	SAVED_ABOUT = 1, /* struct saved_about */
	/* For each exec: */
	SAVED_EXEC,    /* struct wire_exec_state */
	SAVED_CONTENT, /* its logs and waiting input, as init has exported them */
	SAVED_PROGRAM, /* struct saved_program */
	SAVED_TABLES,  /* struct image of its first process */
	SAVED_PAGES,   /* of all runs */
	/* For each descendant, parents before their children; the index is that of its exec: */
	SAVED_CHILD_TABLES,
	SAVED_CHILD_PAGES,
	SAVED_KERNEL, /* after SAVED_ABOUT: its code, which is mapped in every process */
	/* At the end, for each mapped file of a portable image: */
	SAVED_FILE, /* struct mapped_file */
	SAVED_FILE_PAGES,
};

struct saved_about {
	struct machine machine;
	uint32_t programs, descendants, files, pad;
	uint64_t features; /* of the box: bits of enum jail_feature */
	struct wire_image_about about;
};

struct saved_program {
	struct wire_image_program about;
	struct program_clock clock; /* what it has more than saved_about.machine */
};
