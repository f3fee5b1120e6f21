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
	TARGET_BODY,   /* the node of the object that the JSON body names */
	TARGET_HOME,   /* the own node of the team, where its templates are built */
	TARGET_TEMPLATE, /* a build of a template: where the template is, else the own node of the team */
	TARGET_ANY,    /* any node: all have the same answer */
	TARGET_SOCKET, /* socket.h */
	TARGET_LIST,   /* all nodes; the answers are merged */
	TARGET_GATHER, /* all nodes; their whole answers become one: gather.c */
	TARGET_EVERY,  /* all nodes; done if all have done it: every.c */
	TARGET_CHAIN,  /* the node that the query names: each has its own receipts */
	TARGET_SHARED, /* a link to a run, without a key: the node that knows its token */
	TARGET_FILE, /* a link to a file of a box, without a key: the node of the box that signed it */
	TARGET_SIGNED, /* a link without a key that names its node */
	TARGET_MEMBER, /* the node that the path names by number or name */
	TARGET_ABSENT, /* not served by gateways */
};

enum target_shape {              /* of a list */
		    TARGET_PAGE, /* {"items": [...], "next": ...}, newest first */
		    TARGET_ARRAY, /* E2B: an array, newest first; further pages by the header x-next-token */
		    TARGET_ITEMS,  /* all items, in {"items": [...]} or an array */
		    TARGET_OBJECT, /* {"sandboxes": {id: ...}} */
		    TARGET_EVENTS, /* an array with the newest first, by offset and limit */
		    TARGET_SUM,    /* numbers, which are added */
		    TARGET_SETS,   /* package sets, each once */
		    TARGET_RATIOS, /* figures of pipelines */
		    TARGET_VOLUME, /* of one object: the answer has the key of the caller */
};

#define TARGET_TEMPLATES "/v1/templates"
enum { TARGET_TEXT = 256 };

struct target {
	enum target_kind kind;
	unsigned node;  /* TARGET_NODE */
	int is_keyless; /* the node checks the token of the box; the request has no principal */
	int is_e2b;     /* errors have E2B's shape */
	char object[TARGET_TEXT]; /* TARGET_NAME, TARGET_NODE: as in the path, not decoded */
	const char *
		collection; /* where names of these objects are found, "/v1/boxes"; NULL: they have none */
	enum target_shape shape; /* of the answer */
};

/* is_preview_host: boxes are reached below the name in the header Host. */
void target_find(struct target *out, const struct http_req *r, int is_preview_host);
/* The number in an id of 15 letters; -1: not such an id. */
int target_node_of(const char *text, size_t n);
/* 1: it can be a part of a path as it is. */
int target_is_plain_name(const char *text);
