/* download.h - the content of one file, or a part of it, as the answer to a GET or HEAD: ranges, versions,
 * and files that have no size before they are read. */
#pragma once
#include "v1box/file_request.h"

struct download_want {
	const char *path; /* absolute; lives as long as the call */
	struct box *box;
	uint16_t worker; /* WIRE_FILES_* */
	int shown;       /* a browser may show it; else the browser saves it */
	/* NULL: the error format of /v1. */
	void (*fail)(struct file_request *d, const struct err *e);
};
void download_begin(struct call *c, const struct download_want *want);
