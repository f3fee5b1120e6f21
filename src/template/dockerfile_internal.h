/* dockerfile_internal.h - what the parts of the parser share: dockerfile.c has the stages and the settings,
 * dockerfile_vars.c the variables, dockerfile_steps.c the instructions that change files. */
#pragma once
#include "template/dockerfile.h"
#include "template/dockerfile_reader.h"
#include "template/expand.h"

struct dockerfile_stage {
	char name[64]; /* of AS, in lower case; else its number */
	json_t *from;  /* a string */
	int parent;    /* the stage that `from` names; -1: none */
	json_t *steps;
	json_t *shell;     /* words of SHELL; NULL: /bin/sh -c */
	json_t *env, *arg; /* values that this file has set, as far as they are known */
	/* what becomes a setting of the template; NULL: not set */
	json_t *entrypoint, *cmd; /* {"words": [...], "shell": bool} */
	json_t *labels, *port, *ready;
	unsigned char uses[DEFINITION_STAGES]; /* by COPY --from */
};

struct dockerfile {
	const struct dockerfile_options *o;
	struct dockerfile_reader r;
	struct dockerfile_instruction in;
	const char *arch;
	struct dockerfile_stage stages[DEFINITION_STAGES];
	unsigned nstages, nsteps;
	size_t expanded;  /* bytes of values so far */
	json_t *globals;  /* args before the first FROM */
	json_t *consumed; /* build args that an ARG has named */
	json_t *notes;
	struct err *e;
};

/* A flag of an instruction: --NAME=VALUE. */
struct dockerfile_flag {
	char name[24];
	json_t *value; /* text of a definition, or NULL without a = */
};
enum { DOCKERFILE_FLAGS = 32 };
struct dockerfile_flags {
	struct dockerfile_flag v[DOCKERFILE_FLAGS];
	unsigned n;
	const char *rest; /* of the instruction, after them */
};
void dockerfile_flags_fini(struct dockerfile_flags *f);
/* known: names, NULL-terminated. */
must_check int dockerfile_flags_read(struct dockerfile *d, struct dockerfile_flags *f,
				     const char *const *known);

#define dockerfile_error(d, ...) dockerfile_fail(&(d)->r, &(d)->in, (d)->e, __VA_ARGS__)

struct dockerfile_stage *dockerfile_stage_now(struct dockerfile *d);
void dockerfile_note(struct dockerfile *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A word of the file as text of a definition; NULL: the error is set. */
json_t *dockerfile_text_of(struct dockerfile *d, const char *word);
/* The text with its variables replaced; NULL: the error is set. */
json_t *dockerfile_expanded(struct dockerfile *d, const char *text, expand_lookup *look, void *ctx);
/* For it, with a stage as ctx: what the file has set so far. The environment of the image is not known. */
expand_lookup dockerfile_known;
/* The list in brackets at p, or NULL. */
json_t *dockerfile_list(const char *p);
/* {"words": [...], "shell": bool} of the shell form or the exec form. */
json_t *dockerfile_command(struct dockerfile *d, const char *p);
/* Takes over args and further. */
must_check int dockerfile_add_step(struct dockerfile *d, const char *type, json_t *take_args,
				   json_t *take_further);

/* The values of ARG before the first FROM, and of the platform; as ctx of dockerfile_global(). */
struct dockerfile_scope {
	struct dockerfile *d;
	char platform[64];
};

expand_lookup dockerfile_global;
json_t *dockerfile_quoted(const char *literal); /* text that expands to it */

int dockerfile_env(struct dockerfile *d);
int dockerfile_arg(struct dockerfile *d);
int dockerfile_label(struct dockerfile *d);
int dockerfile_maintainer(struct dockerfile *d);
int dockerfile_run(struct dockerfile *d);
int dockerfile_copy(struct dockerfile *d); /* ADD as well */
