/* packages.h - packages for boxes: what a request asks for, and /v1/packages.
 * A set is asked for by name and is not a team's: whoever asks for the same packages gets the same
 * layer. Who has asked for what is told to operators only. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "packages/packages.h"

extern const struct field packages_add_fields[], packages_list_query[];

/* The packages of one request, from its words to the layers that hold them. */
struct package_job {
	struct api *api;
	struct packages sets[WIRE_LAYERS];
	struct package_need {
		struct packages_wait wait;
		struct package_job *job;
		char layer[WIRE_LAYER_ID];
		uint64_t ms; /* it took to install; 0: it was there */
		int ready;
	} needs[WIRE_LAYERS];
	unsigned n, missing;
	json_t *warnings; /* names that may be mistaken, things that were not done */
	/* Set by the owner; done() is the last word, failure NULL: all are there. */
	void (*said)(struct package_job *j, const char *manager, unsigned stream, const char *bytes,
		     size_t n);
	void (*done)(struct package_job *j, const struct packages_failure *failure);
	void *user;
};

/* From the field `packages`: a list (for the language's manager) or {manager: list}. NULL: none. */
must_check int packages_read(struct package_job *j, const json_t *field, const char *language,
			     struct err *e);
/* From the code and the files of a run, as far as this daemon can install: `# /// script`,
 * requirements.txt, package.json. */
must_check int packages_detect(struct package_job *j, const json_t *body, const char *language,
			       struct err *e);
/* 1: all are there. 0: done() will be called. -1: why not. */
must_check int packages_begin(struct package_job *j, struct api *a, const char *team,
			      struct err *e);
/* Once all are there. Variables that programs need to find them lie under the request's own. */
void packages_want(const struct package_job *j, struct http_req *r, struct box_spec *out);
void packages_job_fini(struct package_job *j);        /* at any time; tells nobody */
json_t *packages_report(const struct package_job *j); /* NULL: there are none */

/* What went wrong, as a client is told; its status is 422. */
json_t *packages_failure_json(const struct packages_failure *f);
/* The same for what could not even begin; NULL: that is no failure of packages, tell it as any other. */
json_t *packages_refusal_json(const struct err *e);
json_t *packages_said_json(const char *manager, unsigned stream, const char *bytes, size_t n);
/* The keeper did not find a layer: 1: those of the job are forgotten, so that the next try installs. */
int packages_lost(struct package_job *j, const struct err *e);

void packages_list(struct call *c);
void packages_add_set(struct call *c);
void packages_show(struct call *c);
void packages_delete(struct call *c);
void packages_check(struct call *c);
