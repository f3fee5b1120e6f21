/* guest_init.h - init as a child of the guest stub: its descriptors, its namespaces, its ids. */
#pragma once
#include "mux/guest.h"

struct guest_init {
	int pid;
	int first; /* the other end of its descriptor 3, until it is taken */
	int feed;  /* the other end of its descriptor 4 */
};

int guest_init_start(struct guest_init *out, const struct guest *how); /* 0, or -errno */
uint64_t guest_init_features(const struct guest *how);                 /* enum packet_feature */
int guest_init_first(struct guest_init *i);   /* takes `first`; -1: it was taken before */
int guest_init_connect(struct guest_init *i); /* a new connection to init, or -errno */
