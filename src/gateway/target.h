/* target.h - where a gateway sends a request. A pure function of its head, with one table of paths.
 * Owns: nothing. */
#pragma once
#include "http/http.h"

enum target_kind {
	TARGET_LOCAL,  /* this gateway answers it */
	TARGET_NODE,   /* the node with this number */
	TARGET_NAME,   /* the node that has the object of this name */
	TARGET_CREATE, /* a node that placement chooses; the body is JSON */
	TARGET_STREAM, /* the same, but the body is a stream: no second attempt */
	TARGET_BODY,   /* the node of the box that the JSON body names */
	TARGET_ANY,    /* any node: all have the same answer */
	TARGET_SOCKET, /* socket.h */
	TARGET_LIST,   /* all nodes; the answers are merged */
	TARGET_MEMBER, /* the node that the path names by number or name */
	TARGET_ABSENT, /* not served by gateways yet */
};

enum target_shape {              /* of a list */
		    TARGET_PAGE, /* {"items": [...], "next": ...}, newest first */
		    TARGET_ARRAY, /* E2B: an array, newest first; further pages by the header x-next-token */
};

enum { TARGET_TEXT = 256 };

struct target {
	enum target_kind kind;
	unsigned node;  /* TARGET_NODE */
	int is_keyless; /* the node checks the token of the box; the request has no principal */
	int is_e2b;     /* errors have E2B's shape */
	char object[TARGET_TEXT]; /* TARGET_NAME: as in the path, not decoded */
	const char *collection;   /* TARGET_NAME: path of the list that has it, "/v1/boxes" */
	enum target_shape shape;  /* TARGET_LIST */
};

/* is_preview_host: boxes are reached below the name in the header Host. */
void target_find(struct target *out, const struct http_req *r, int is_preview_host);
/* The number in an id of 15 letters; -1: not such an id. */
int target_node_of(const char *text, size_t n);
/* 1: it can be a part of a path as it is. */
int target_is_plain_name(const char *text);
