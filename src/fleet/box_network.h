/* box_network.h - the network rules of a box or a team as lines of text, and as JSON for clients.
 * The meaning of a line is that of egress (egress/net_policy.h); here lines are sorted by their first
 * word only. `lines` is a JSON array of texts, or NULL. */
#pragma once
#include "base/buf.h"
#include <jansson.h>
#include <stdint.h>

/* 1: a box with these lines reaches some destination, or may ask for one. Links do not count. */
int box_network_reaches(const char *lines);
/* {allow, allow_until: [{rule, until}], deny, ask, bandwidth, budgets, links}. Rules that have expired are left
 * out. */
json_t *box_network_json(const char *lines, int64_t now_s);
/* Of a team: {allow, deny}; allow is null if the team is not restricted. */
json_t *box_network_team_json(const char *lines);
/* Adds the lines as egress reads them, each after `prefix`. */
void box_network_text(const char *lines, const char *prefix, struct buf *out);
