/* descriptor.h - descriptors that are attached to frames: what kind they are, and how the other end makes
 * one of the same kind. */
#pragma once
#include "mux/packet.h"

/* enum packet_kind of a descriptor, 0: none that a frame may carry. Pipes are named by what the
 * receiver gets. */
int descriptor_kind(int fd);
/* A pair of this kind: *ours stays here, *theirs is passed on. -errno. */
int descriptor_pair(unsigned kind, int *ours, int *theirs);

struct descriptor_address { /* of a listening socket that is open in another process */
	uint16_t family;
	char name[8];
	uint32_t bytes;
};
int descriptor_listen(struct descriptor_address *out);        /* the socket, or -errno */
int descriptor_connect(const struct descriptor_address *to);  /* a connection, or -errno */
int descriptor_abandoned(const struct descriptor_address *a); /* no process has it open */
