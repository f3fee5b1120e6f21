/* capture_descriptors.h - one open descriptor of a stopped program, as /proc shows it. */
#pragma once
#include "base/buf.h"
#include "procimage/capture.h"
#include <sys/stat.h>

struct open_descriptor {
	int number;
	uint32_t flags;
	struct stat st;
	char target[4096];
	struct buf info;
};

int capture_add_socket(struct capture *c, struct image_descriptor *d,
		       const struct open_descriptor *o, struct err *e);
/* The watches of an inotify; their names are found in the files of the box. */
int capture_add_notify(struct capture *c, const struct open_descriptor *o, struct err *e);
/* A terminal; once for each. */
int capture_add_terminal(struct capture *c, const struct open_descriptor *o, uint32_t number,
			 struct err *e);
/* Inode of the other end of a unix socket; 0: unknown or none. */
uint64_t capture_unix_peer(struct capture *c, uint64_t inode);
int capture_is_connected_unix(struct capture *c, int number);
/* The bytes that wait in a socket whose other end is outside. */
int capture_add_waiting(struct capture *c, struct image_descriptor *d,
			const struct open_descriptor *o, struct err *e);
