/* params.h - the parameters that init was started with. Set once by main.c, read by all. */
#pragma once
#include <stdint.h>

#define HOME "/home/user" /* base of relative paths, and the default working folder */

struct self {
	uint32_t uid, gid; /* of init: an id of the box that no user code gets */
	uint32_t user;     /* uid of programs; their gid is the same number */
	int root_allowed;  /* may a client start programs as the image's root? */
	int upper;         /* descriptor of the box's upper layer */
};
extern struct self self;
