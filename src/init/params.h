/* params.h - the parameters that init was started with. Set once by main.c, read by all. */
#pragma once
#include <stdint.h>

#define HOME "/home/user" /* where relative paths and an empty cwd lead */

struct self {
	uint32_t uid, gid; /* our own: an id of the box that no user code gets */
	uint32_t user;     /* what programs run as; its group has the same number */
	int root_allowed;  /* may a client ask for the image's root? */
	int upper;         /* descriptor of the box's upper layer */
};
extern struct self self;
