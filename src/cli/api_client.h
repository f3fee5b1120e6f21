/* api_client.h - a client of the daemon: the public HTTP API and nothing else.
 * Owns:         one connection, and the last error, as text for people.
 * Does not own: the settings; main() has read them.
 *
 * 	static int show(struct api_client *r, const struct args *a)
 * 	{
 * 		json_t *box = api_client_get(r, "/v1/boxes/%s", a->words[0]);
 *
 * 		if (!box)
 * 			return r->status;
 * 		...
 *
 * A function that returns a status other than 0 has filled in the error of r, or has nothing to
 * print; the wrapper of the command prints it. */
#pragma once
#include "base/buf.h"
#include "cli/args.h"
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

struct http_client;

struct api_client {
	const struct cli *cli;
	struct endpoint reach;
	struct http_client *client;
	struct cli_error error;
	char code[32];     /* of the error, when it came from the daemon */
	int status;        /* the exit status for it */
	int http;          /* status of the last answer; 0: there was none */
	int lost;          /* the last failure was one of the connection: another try may succeed */
	int never;         /* and no daemon has received the request */
	int runs;          /* the command runs a program: failures of atoll itself are 125 */
	int warned;        /* a warning of the daemon was printed */
	char etag[80];     /* of the last answer; "": it had none */
	const char *match; /* the next call's If-Match, or NULL */
	const char *once;  /* the next call's Idempotency-Key, or NULL */
};

/* Each returns 0, or the exit status that belongs to the error in r. */
must_check int api_client_open(struct api_client *r, const struct cli *cli);
/* For a command that reads stdin before it opens a connection: the small client starts atolld in
 * its place now, if the daemon's address needs that. */
void api_client_prepare(const struct cli *cli);
must_check int api_client_again(struct api_client *r,
				const struct api_client *other); /* same daemon */
void api_client_close(struct api_client *r);
/* Connects, runs the command, prints the error if there is one, disconnects. */
int api_client_command(const struct cli *cli, const struct args *a,
		       int (*run)(struct api_client *r, const struct args *a));
/* For a command with its own message: "usage" and r->status 2. */
int api_client_usage(struct api_client *r, const char *fmt, ...) CLI_ERROR_FORMAT(2, 3);

/* A path: every %s is escaped, %u is a uint64_t. The caller frees it. */
char *api_client_path(const char *fmt, ...);
void api_client_escape(struct buf *out, const char *text);

/* NULL: r->status. An answer without a body is null. */
json_t *api_client_json(struct api_client *r, const char *method, const char *path,
			json_t *take_body);
json_t *api_client_get(struct api_client *r, const char *fmt, ...); /* as api_client_path() */
/* Every item of a list, page by page; a result of each() other than 0 ends it. path may have a
 * query. */
must_check int api_client_list(struct api_client *r, const char *path,
			       int (*each)(void *ctx, json_t *item), void *ctx);

/* An answer in lines of JSON. A result of each() other than 0 ends it, and this returns 0. */
must_check int api_client_lines(struct api_client *r, const char *method, const char *path,
				json_t *take_body, int (*each)(void *ctx, json_t *line), void *ctx);
/* The same for a POST whose body is read from a descriptor to its end. */
must_check int api_client_lines_of(struct api_client *r, const char *path, int from,
				   const char *type, int (*each)(void *ctx, json_t *line),
				   void *ctx);
/* Sends a body and receives one. A descriptor of -1: none. */
struct api_client_bytes {
	const char *method, *path, *type, *accept;
	const void *body; /* or: */
	size_t len;
	int from; /* read to its end and sent; or: */
	ssize_t (*more)(void *ctx, void *out, size_t room, struct err *e); /* 0: the end; -1 */
	int to;               /* the answer is written there */
	const uint64_t *most; /* bytes that may be written; NULL: any number */
	int (*sink)(void *ctx, const char *bytes, size_t n, struct err *e); /* or goes here */
	void *ctx;
	json_t *answer; /* else it is parsed; owned by the caller */
	/* of the answer, if the header is present */
	char etag[64];
	uint64_t written;
};
must_check int api_client_bytes(struct api_client *r, struct api_client_bytes *x);

/* "no box named ..." with the most similar name, if the box is the reason for the 404. */
void api_client_explain_box(struct api_client *r, const char *box);

/* ---- for people ---- */
void api_client_print(const json_t *doc);                        /* one line */
const char *api_client_text(const json_t *doc, const char *key); /* never NULL */
const char *api_client_state(const json_t *doc); /* never NULL; also of a daemon of version 0.1 */
int64_t api_client_int(const json_t *doc, const char *key, int64_t otherwise);
int64_t api_client_when_ms(const char *rfc3339); /* -1: is none */
/* "3 m 5 s" since, or until, that time; "-" if there is none. */
const char *api_client_since(char out[24], const json_t *doc, const char *key);
const char *api_client_until(char out[24], const json_t *doc, const char *key);
int api_client_write(int fd, const void *bytes, size_t n); /* all of it; -1: errno */
