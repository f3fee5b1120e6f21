/* mcp.h - the Model Context Protocol: one message of a client, from its HTTP request to its answer.
 * Owns:         struct mcp_call for the life of its request.
 * Does not own: the tools; the rows of sessions (store/mcp_sessions.h).
 *
 *   POST /mcp -> key -> JSON -> era -> headers, session -> method -> result, or events and a result
 *
 * The protocol is chosen per message: since version 2026-07-28 (modern) every request has its
 * version and there is no session; earlier versions (old) have a handshake and a session. */
#pragma once
#include "store/mcp_sessions.h"
#include "tools/tool.h"

#define MCP_META "io.modelcontextprotocol/"
#define MCP_MODERN "2026-07-28"
#define MCP_NEWEST_OLD "2025-11-25"

enum { /* JSON-RPC's codes, and MCP's own */
       RPC_PARSE = -32700,
       RPC_REQUEST = -32600,
       RPC_METHOD = -32601,
       RPC_PARAMS = -32602,
       RPC_INTERNAL = -32603,
       MCP_OLD_NO_RESOURCE = -32002,
       MCP_HEADER = -32020,
       MCP_VERSION = -32022,
};

enum { MCP_ASK_TICK_MS = 1000 }; /* interval of the checks of pending questions */

struct mcp_call;
struct mcp {
	struct mcp_call *calls;
	uint64_t asked; /* questions to clients, all together */
	uint64_t nonce; /* in the ids of questions, so that answers to a killed server match none */
	uint8_t key[32]; /* authenticates state that clients keep */
};

struct mcp_call {
	struct tool_call base; /* first: it is c->surface */
	struct call *call;
	struct mcp *mcp;
	struct mcp_call *next, **at; /* in mcp->calls */
	int modern;
	char session_id[MCP_SESSION_ID + 1]; /* old era; "": not yet */
	json_t *message, *id, *params; /* id and params: borrowed of the message; NULL: none */
	const char *method;
	json_t *token; /* of its progress; borrowed */
	int level;     /* of log notices; -1: none */
	int streaming;
	int gone;                          /* cancelled: nothing more is sent */
	unsigned can;                      /* mcp_capabilities() of the client */
	json_t *answers, *waiting, *state; /* of questions to an old client: key: answer; id: key */
	uint64_t asked_ms;
	struct timer tick;
	struct buf said; /* output that is not sent yet */
	uint64_t told_ms;
	uint64_t progress;
	/* the tool */
	const struct tool *tool;
	json_t *args;
	const struct tool_surface *surface;
};

/* ---- answers ---- */
void mcp_result(struct mcp_call *m, json_t *take_result);
/* The same with a cache lifetime (modern). */
void mcp_cached(struct mcp_call *m, json_t *take_result, int ttl_ms);
/* http: its status in the modern protocol; the old one has 200 for all results of methods. */
void mcp_error(struct mcp_call *m, int http, int code, json_t *take_data, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
int mcp_notify(struct mcp_call *m, const char *method,
	       json_t *take_params); /* 1: wait for on_drain */
void mcp_stream(struct mcp_call *m); /* starts an event stream, if the client accepts it */
void mcp_input_required(struct mcp_call *m, json_t *take_result);
int mcp_send(struct mcp_call *m, json_t *take_message); /* on the stream; as mcp_notify() */
/* 1: the header equals the body. 0: not, and the error was sent. */
int mcp_mirrors(struct mcp_call *m, const char *header, const char *body);

/* ---- asking the client: mcp_ask.c ----
 * A method that lacks something calls mcp_need() and is called again when it is there: by the client, which
 * repeats its call (modern), or by us (old). So it is written as a function of what was answered. */
unsigned mcp_capabilities(const json_t *said);
int mcp_can(const struct mcp_call *m, const char *method);           /* "elicitation/create", ... */
const json_t *mcp_answer(const struct mcp_call *m, const char *key); /* an object; NULL: not yet */
/* requests: {key: {method, params}}. state: returned by mcp_state() unchanged; NULL: none. */
void mcp_need(struct mcp_call *m, json_t *take_requests, json_t *take_state);
/* -1: a forged state, and the error was sent. *out NULL: none. */
must_check int mcp_state(struct mcp_call *m, json_t **out);
void mcp_answered(struct mcp_call *m); /* a message that answers */
int mcp_waits(const struct mcp_call *m);
int mcp_waits_too_long(const struct mcp_call *m);
/* 1: no approval is needed, or the user approved. 0: approval was requested, or the user
 * declined. */
int mcp_may(struct mcp_call *m, const struct tool *t);

/* ---- sessions: rows of the store, for any server process that meets their ids ---- */
must_check int mcp_session_begin(struct mcp_call *m, const json_t *capabilities, struct err *e);

/* ---- methods: mcp_methods.c ---- */
void mcp_method(struct mcp_call *m);
int mcp_level(const char *name);               /* 0 debug ... 7 emergency; -1: there is none */
const char *mcp_old_version(const char *name); /* NULL: unsupported */

/* Runs a row in params' box, or the key's own; mcp_tools.c. */
void mcp_run(struct mcp_call *m, const struct tool *t, json_t *take_args, const char *box,
	     const struct tool_surface *on);
void mcp_own_session(const struct call *c, char out[STORE_SESSION + 1]);
void mcp_tools_call(struct mcp_call *m);
void mcp_tick(struct mcp_call *m);

/* Test builds: fixtures of the conformance suite. 1: it was one of those, and is answered. */
int mcp_fixture(struct mcp_call *m);
void mcp_list_fixtures(json_t *tools_array);

/* mcp_offers.c */
void mcp_resources_list(struct mcp_call *m);
void mcp_templates_list(struct mcp_call *m);
void mcp_resources_read(struct mcp_call *m);
void mcp_prompts_list(struct mcp_call *m);
void mcp_prompts_get(struct mcp_call *m);
void mcp_complete(struct mcp_call *m);
