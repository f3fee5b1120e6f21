/* packet_fuzz.c - any bytes as packets of the other end: an accepted sequence leaves every stream within
 * its window. The first byte chooses the end; in the reserved byte of a descriptor's place, or where no
 * packet begins, this end acts, too: it closes and grants. */
#include "mux/packet.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static struct packet_state state;

static void check(void)
{
	for (unsigned i = 0; i < PACKET_STREAMS; i++) {
		const struct packet_stream *t = &state.streams[i];

		assert(t->kind < PACKET_KINDS);
		assert(t->window <= PACKET_WINDOW && t->credit <= PACKET_WINDOW);
		assert(t->kind || (!t->ended && !t->closed && !t->peer_closed));
		assert(!(t->closed && t->peer_closed));
	}
	assert(!state.streams[0].kind);
}

/* This end: opens, spends, grants, closes. */
static void act(uint8_t what, uint8_t stream)
{
	struct packet_stream *t = &state.streams[stream];
	unsigned number;

	if (what % 4 == 0 && t->kind && !t->closed)
		packet_close(&state, stream);
	else if (what % 4 == 1 && t->kind)
		t->credit -= t->credit / 2;
	else if (what % 4 == 2 && t->kind)
		t->window = PACKET_WINDOW;
	else if ((number = packet_free_number(&state)))
		packet_open(&state, number, 1 + what / 4 % (PACKET_KINDS - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct packet_head h;
	struct packet_fd fds[PACKET_FDS];

	if (!len)
		return 0;
	memset(&state, 0, sizeof(state));
	state.is_mux = *bytes & 1;
	state.generation = state.is_mux ? *bytes >> 1 : 0;
	bytes++;
	len--;
	while (len >= sizeof(h)) {
		memcpy(&h, bytes, sizeof(h));
		if (h.type == PACKET_TYPES) {
			act(h.nfds, (uint8_t)h.stream);
			bytes += sizeof(h);
			len -= sizeof(h);
			continue;
		}
		bytes += sizeof(h);
		len -= sizeof(h);
		if (packet_check_head(&h)) {
			assert(packet_take(&state, &h, fds, NULL) != PACKET_GOOD);
			return 0;
		}
		assert(h.nfds <= PACKET_FDS && h.bytes <= PACKET_BODY);
		if (len < h.nfds * sizeof(fds[0]) + h.bytes)
			return 0;
		memcpy(fds, bytes, h.nfds * sizeof(fds[0]));
		bytes += h.nfds * sizeof(fds[0]);
		len -= h.nfds * sizeof(fds[0]);
		if (packet_take(&state, &h, fds, bytes))
			return 0;
		check();
		bytes += h.bytes;
		len -= h.bytes;
	}
	return 0;
}
