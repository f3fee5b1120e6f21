/* links.c - see links.h. */
#include "v1box/links.h"
#include "fleet/box.h"
#include "fleet/box_link.h"

#include <string.h>

static int links_add(struct call *c, const char *name, const char *box, json_t *lines,
		     struct err *e)
{
	struct box *to = fleet_find(&c->api->fleet, box);

	if (!box_link_valid(name))
		return err_set(
			e, ERR_INVALID,
			"network.links: '%.80s' cannot be a name: it has small letters, digits and -, at "
			"most %d, and is not localhost",
			name, BOX_LINK_NAME);
	if (!to)
		to = fleet_named(&c->api->fleet, c->who.team, box);
	if (!to || strcmp(to->row.team, c->who.team) != 0 || to->is_installer)
		return err_set(e, ERR_NOT_FOUND, "network.links.%s: there is no box '%.64s'", name,
			       box);
	json_array_append_new(lines, json_sprintf("link %s %s", name, to->row.id));
	return 0;
}

int links_read(struct call *c, const json_t *links, json_t *lines, struct err *e)
{
	const char *name;
	json_t *box;

	if (json_object_size(links) && !c->api->conf.links)
		return err_set(
			e, ERR_DENIED,
			"network.links: this daemon links no boxes; the operator sets egress.links = true");
	/* A key of one box must not reach others. */
	if (json_object_size(links) && c->who.box[0])
		return err_set(e, ERR_DENIED, "network.links: this key is bound to one box");
	json_object_foreach((json_t *)links, name,
			    box) if (links_add(c, name, json_string_value(box), lines, e) <
				     0) return -1;
	return 0;
}
