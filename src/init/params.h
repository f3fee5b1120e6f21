/* params.h - the parameters that init was started with. Set once by main.c, read by all. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define HOME "/home/user" /* base of relative paths, and the default working folder */
enum { HOME_LEN = sizeof(HOME) - 1 };

struct self {
	uint32_t uid, gid; /* of init: an id of the box that no user code gets */
	uint32_t user;     /* uid of programs; their gid is the same number */
	int root_allowed;  /* may a client start programs as the image's root? */
	int upper;         /* descriptor of the box's upper layer */
	/* HOME. In a box without a root of its own (tier process) another folder, with a name of the same length. */
	const char *home;
	int children; /* there: descriptor of the list of init's children; else -1 */
};
extern struct self self;

/* In a request of a client: HOME becomes self.home, in place. */
void params_place_home(char *text, size_t n);
