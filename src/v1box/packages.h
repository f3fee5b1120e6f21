/* packages.h - packages for boxes: the packages of a request, and /v1/packages. A set is identified
 * by its packages and belongs to no team: requests for the same packages get the same layer. Only
 * operators see which team requested what. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"
#include "packages/packages.h"

extern const struct field packages_add_fields[], packages_list_query[];

/* The packages of one request, from its fields to the layers that contain them. */
struct package_job {
	struct api *api;
	struct packages sets[WIRE_LAYERS];
	struct package_need {
		struct packages_wait wait;
		struct package_job *job;
		char layer[WIRE_LAYER_ID];
		uint64_t ms; /* time that the installation took; 0: already installed */
		int ready;
	} needs[WIRE_LAYERS];
	unsigned n, missing;
	json_t *warnings; /* names that may be misspelled, packages that were not installed */
	/* Set by the owner; done() is called last; failure NULL: all are installed. */
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
/* 1: all are installed. 0: done() will be called. -1: e is the error. */
must_check int packages_begin(struct package_job *j, struct api *a, const char *team,
			      struct err *e);
/* Called when all are installed. Adds the variables that programs need to find them; variables of
 * the request override these. */
void packages_want(const struct package_job *j, struct http_req *r, struct box_spec *out);
void packages_job_fini(struct package_job *j);        /* at any time; done() is not called */
json_t *packages_report(const struct package_job *j); /* NULL: no packages */

/* The failure as a client receives it; the status is 422. */
json_t *packages_failure_json(const struct packages_failure *f);
/* The same for an installation that could not start; NULL: not a failure of packages, so the caller
 * reports it as any other error. */
json_t *packages_refusal_json(const struct err *e);
json_t *packages_said_json(const char *manager, unsigned stream, const char *bytes, size_t n);
/* Called when the keeper did not find a layer. 1: the layers of the job are forgotten, so that the
 * next attempt installs again. */
int packages_lost(struct package_job *j, const struct err *e);

void packages_list(struct call *c);
void packages_add_set(struct call *c);
void packages_show(struct call *c);
void packages_delete(struct call *c);
void packages_check(struct call *c);
