/* mcp_sessions.h - sessions of MCP's older versions (the header Mcp-Session-Id): a row each, so that they
 * outlive the server process that began them. A session grants nothing: it is usable only together with the
 * key that began it, and that key is checked with each request. */
#pragma once
#include "store/store.h"

enum {
	MCP_SESSION_ID = 32,   /* hexadecimal digits */
	MCP_SESSIONS = 1024,   /* per team */
	MCP_SESSION_DAYS = 30, /* unused for that long: the history job removes it */
};
#define MCP_SESSION_KEEP_NS (MCP_SESSION_DAYS * INT64_C(86400) * 1000000000)

struct store_mcp_session {
	char id[MCP_SESSION_ID + 1];
	char team[STORE_NAME + 1];
	char key[STORE_NAME + 1]; /* id of the key; "uid:0" on the unix socket */
	int level;                /* of log notices; -1: none */
	unsigned can;             /* mcp_capabilities() of its client */
	int64_t used_ns;          /* to the minute */
};

/* The row; of the team's sessions above MCP_SESSIONS those unused for the longest are removed. */
must_check int store_mcp_session_insert(struct store *s, const struct store_mcp_session *x,
					struct err *e);
/* Also marks it as used at at_ns. A session of another key or team is ERR_NOT_FOUND, as is any
 * text that is no id. */
must_check int store_mcp_session_get(struct store *s, const char *id, const char *team,
				     const char *key, int64_t at_ns, struct store_mcp_session *out,
				     struct err *e);
must_check int store_mcp_session_set_level(struct store *s, const char *id, int level,
					   struct err *e);
must_check int store_mcp_session_delete(struct store *s, const char *id, struct err *e);
