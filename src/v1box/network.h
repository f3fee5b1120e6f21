/* network.h - the network rules of a box in requests: read, change, and approve destinations that wait.
 * Owns: nothing. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

extern const struct field box_network_fields[], network_decide_fields[];

/* Reads {allow, deny, ask, bandwidth}; members that are not given keep what `had` (lines of
 * box_network.h, or NULL) has. ERR_DENIED: the operator or the team does not permit a rule.
 * *out: the lines as a JSON array, to free(); NULL: there are none. */
must_check int network_read_lines(struct call *c, const json_t *doc, const char *had, char **out,
				  struct err *e);
/* The same for the rules of a team: {allow, deny}; allow null or not given does not restrict it. */
must_check int network_read_team_lines(const json_t *doc, char **out, struct err *e);

void network_show(struct call *c);
void network_requests(struct call *c);
void network_decide(struct call *c);
