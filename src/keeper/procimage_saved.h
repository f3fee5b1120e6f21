/* procimage_saved.h - the sections of the file of a process image, in this order. */
#pragma once
#include "procimage/machine.h"
#include "wire/wire.h"

enum saved_section {
	SAVED_ABOUT = 1, /* struct saved_about */
	/* For each exec: */
	SAVED_EXEC,    /* struct wire_exec_state */
	SAVED_CONTENT, /* its logs and waiting input, as init has exported them */
	SAVED_PROGRAM, /* struct wire_image_program */
	SAVED_TABLES,  /* struct image of its first process */
	SAVED_PAGES,   /* of all runs */
	/* For each descendant, parents before their children; the index is that of its exec: */
	SAVED_CHILD_TABLES,
	SAVED_CHILD_PAGES,
};

struct saved_about {
	struct machine machine;
	uint32_t programs, descendants;
	uint64_t features; /* of the box: bits of enum jail_feature */
	struct wire_image_about about;
};
