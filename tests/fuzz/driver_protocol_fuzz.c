/* driver_protocol_fuzz.c - any bytes from a driver. The result is events of the table with all their
 * fields, or an error, and it is the same for pieces of any size. */
#include "notebook/driver_protocol.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

enum { MOST = 64 };

struct told {
	unsigned n;
	int refused;
	enum driver_msg_kind kinds[MOST];
	uint64_t cells[MOST];
};

static void note(struct told *to, struct driver_msg_event *ev)
{
	const char *type = json_string_value(json_object_get(ev->doc, "type"));

	assert(type && (ev->kind == DRIVER_MSG_READY ? !ev->cell : ev->cell > 0));
	if (ev->kind == DRIVER_MSG_RESULT)
		assert(json_is_object(json_object_get(ev->doc, "data")));
	if (ev->kind == DRIVER_MSG_ERROR)
		assert(json_is_array(json_object_get(ev->doc, "frames")));
	if (to->n < MOST) {
		to->kinds[to->n] = ev->kind;
		to->cells[to->n] = ev->cell;
	}
	to->n++;
	json_decref(ev->doc);
}

static struct told listen_to(const char *bytes, size_t len, size_t piece)
{
	struct told out = { 0 };
	struct driver_msg t = { 0 };

	while (len && !out.refused) {
		const char *at = bytes;
		size_t n = len < piece ? len : piece, rest = n;
		struct driver_msg_event ev;
		struct err e;

		while (rest && !out.refused) {
			int rc = driver_msg_take(&t, &at, &rest, &ev, &e);

			out.refused = rc < 0;
			if (rc < 0)
				assert(e.kind == ERR_INVALID && strlen(e.msg) < sizeof(e.msg));
			else if (rc)
				note(&out, &ev);
		}
		bytes += n;
		len -= n;
	}
	driver_msg_fini(&t);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct told whole = listen_to((const char *)bytes, len, len ? len : 1),
		    split = listen_to((const char *)bytes, len, 3);

	assert(!memcmp(&whole, &split, sizeof(whole)));
	return 0;
}
