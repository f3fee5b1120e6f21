/* secrets.h - /v1/secrets: values that programs in boxes use and that no request returns. */
#pragma once
#include "api/api.h"
#include "fleet/box_secrets.h"

extern const struct field secrets_set_fields[], secrets_list_query[];

/* "secrets": [{name, as, variable, path, hosts, in}] of a request for a box, into out: row.secrets, the
 * hosts of placeholders in row.network, and the flag for files. */
must_check int secrets_want(struct call *c, const json_t *list, struct box_spec *out,
			    struct err *e);
/* row.secrets (NULL: nothing yet) with these headers in place of its earlier ones: [{host, name, value}].
 * The values are encrypted; *out is freed by the caller. */
must_check int secrets_set_headers(struct call *c, const char *row_secrets, const json_t *headers,
				   char **out, struct err *e);
/* The same list as in the request, with all defaults, for the box as JSON. */
json_t *secrets_of_row(const struct store_box *row);

void secrets_set(struct call *c);
void secrets_list(struct call *c);
void secrets_show(struct call *c);
void secrets_delete(struct call *c);
