/* identity.c - see identity.h. */
#include "api/identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *identity_or_dash(const char *text)
{
	return *text ? text : "-";
}

void identity_text(const struct identity *x, char out[IDENTITY_TEXT])
{
	const struct principal *w = &x->principal;

	snprintf(out, IDENTITY_TEXT, "%s %s %s %s %lld %s %s", w->team, store_role_name(w->role),
		 w->id, identity_or_dash(w->box), (long long)w->until_ns,
		 identity_or_dash(w->isolation), identity_or_dash(x->team_isolation));
}

/* The next word into out, "-" as "". -1: there is none, it is too long, or has other bytes than names. */
static int identity_word(const char **rest, char *out, size_t room)
{
	size_t n = strcspn(*rest, " ");

	if (n == 0 || n >= room)
		return -1;
	for (size_t i = 0; i < n; i++)
		if ((*rest)[i] <= ' ' || (*rest)[i] >= 127)
			return -1;
	memcpy(out, *rest, n);
	out[n] = 0;
	*rest += n + ((*rest)[n] == ' ');
	if (strcmp(out, "-") == 0)
		out[0] = 0;
	return 0;
}

int identity_parse(const char *text, struct identity *out, struct err *e)
{
	struct identity x = { 0 };
	struct principal *w = &x.principal;
	char role[16], until[24], *end;
	const char *rest = text;

	if (identity_word(&rest, w->team, sizeof(w->team)) < 0 || !w->team[0] ||
	    identity_word(&rest, role, sizeof(role)) < 0 ||
	    identity_word(&rest, w->id, sizeof(w->id)) < 0 || !w->id[0] ||
	    identity_word(&rest, w->box, sizeof(w->box)) < 0 ||
	    identity_word(&rest, until, sizeof(until)) < 0 ||
	    identity_word(&rest, w->isolation, sizeof(w->isolation)) < 0 ||
	    identity_word(&rest, x.team_isolation, sizeof(x.team_isolation)) < 0 || *rest)
		return err_set(e, ERR_INVALID, "'%.80s' is not an identity of a caller", text);
	if (store_role_parse(role, &w->role) < 0)
		return err_set(e, ERR_INVALID, "'%s' is not a role", role);
	if (w->box[0] && !id_valid(w->box))
		return err_set(e, ERR_INVALID, "'%s' is not the id of a box", w->box);
	errno = 0;
	w->until_ns = strtoll(until, &end, 10);
	if (errno || *end || end == until || w->until_ns < 0)
		return err_set(e, ERR_INVALID, "'%s' is not a time", until);
	*out = x;
	return 0;
}
