/* build_found.c - at the start of a server: layers and roots of the keeper that no row names. A server
 * that was killed between their creation and their row has left them. They get a row, and
 * build_collect.c removes what is not used. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

static void builds_ask_found(struct builds *b, const char *after);

static void builds_found_end(struct builds *b)
{
	if (!b->found_roots) {
		b->found_roots = 1;
		builds_ask_found(b, "");
		return;
	}
	if (b->found)
		log_info("layers without a row were found", LOG_U("layers", b->found));
	builds_collect(b);
}

static void builds_found(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct builds *b = ctx;
	const char *at = f ? (const char *)(f + 1) : NULL;
	size_t n = f ? (len - sizeof(*f)) / WIRE_LAYER_ID : 0;
	struct store_layer row = { .is_root = b->found_roots, .used_ns = fleet_now_ns() };
	struct err own;
	int added;

	(void)fd;
	b->finding = NULL;
	if (!f) { /* a keeper of an earlier version does not know the request */
		log_warn("cannot list the layers", LOG_E(e));
		builds_collect(b);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(row.id, sizeof(row.id), "%.64s", at + i * WIRE_LAYER_ID);
		added = store_layer_found(b->fleet->store, &row, &own);
		if (added < 0) {
			log_warn("cannot record a layer", LOG_E(&own));
			builds_collect(b);
			return;
		}
		b->found += (unsigned)added;
	}
	if (n)
		builds_ask_found(b, row.id);
	else
		builds_found_end(b);
}

static void builds_ask_found(struct builds *b, const char *after)
{
	struct wire_layer ask = { .head = sock_head(WIRE_LAYER_LIST, 0) };

	ask.head.flags = b->found_roots ? WIRE_LIST_ROOTS : 0;
	snprintf(ask.id, sizeof(ask.id), "%s", after);
	b->finding = keeper_client_request(&b->fleet->keeper, &ask, sizeof(ask), WIRE_LISTED,
					   builds_found, b);
}

void builds_find_layers(struct builds *b)
{
	b->found = 0;
	b->found_roots = 0;
	builds_ask_found(b, "");
}
