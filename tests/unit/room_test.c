/* room_test.c - rooms: the log of updates, one starter, one writer, limits, peers that leave. */
#include "v1/room.h"
#include "tap.h"

#include <stdlib.h>

enum { SEEN = 512 };

/* A client that records what the room sends: "u1" update 1, "s200" snapshot, "p2" presence of peer 2,
 * notes by name. */
struct client {
	struct room_peer peer;
	char seen[SEEN];
	unsigned frames, capacity; /* frames until it is full; 0: never */
	char last[64];
};

static struct rooms rooms;
static struct err oops;

static void see(struct room_peer *p, const char *name, uint64_t number)
{
	struct client *c = (struct client *)p;
	size_t n = strlen(c->seen);

	snprintf(c->seen + n, SEEN - n, "%s%s%llu", n ? " " : "", name, (unsigned long long)number);
}

static int on_frame(struct room_peer *p, enum room_frame kind, uint64_t number, const void *bytes,
		    size_t n)
{
	struct client *c = (struct client *)p;

	see(p, kind == ROOM_UPDATE ? "u" : kind == ROOM_PRESENCE ? "p" : "s", number);
	snprintf(c->last, sizeof(c->last), "%.*s", (int)n, (const char *)bytes);
	return c->capacity && ++c->frames >= c->capacity;
}

static void on_note(struct room_peer *p, enum room_note note, uint64_t number)
{
	static const char *const names[] = {
		[ROOM_NOTE_BEGIN] = "begin",     [ROOM_NOTE_EPOCH] = "epoch",
		[ROOM_NOTE_SYNCED] = "synced",   [ROOM_NOTE_ACK] = "ack",
		[ROOM_NOTE_COMPACT] = "compact", [ROOM_NOTE_WRITER] = "writer",
		[ROOM_NOTE_READER] = "reader",   [ROOM_NOTE_SAVE] = "save",
		[ROOM_NOTE_LEFT] = "left",
	};

	see(p, names[note], number);
}

static const struct room_events on = { on_frame, on_note };

static int join_at(struct client *c, int may_write, const char *epoch, const char *box,
		   const char *path)
{
	*c = (struct client){ .peer = { .on = &on, .may_write = may_write } };
	snprintf(c->peer.epoch, sizeof(c->peer.epoch), "%s", epoch);
	if (room_join(&rooms, &c->peer, "team", box, path, &oops) < 0)
		return -1;
	room_resume(&c->peer);
	return 0;
}
static int join(struct client *c, int may_write, const char *epoch)
{
	return join_at(c, may_write, epoch, "aaaaaaaaaaaa", "/home/user/a.py");
}
static void leave(struct client *c)
{
	room_leave(&rooms, &c->peer);
}
static int update(struct client *c, const char *text)
{
	return room_update(&rooms, &c->peer, text, strlen(text), &oops);
}
static const char *seen(struct client *c)
{
	static char text[SEEN];

	snprintf(text, sizeof(text), "%s", c->seen);
	c->seen[0] = 0;
	return text;
}

TEST(updates_are_numbered_acknowledged_and_relayed_and_a_late_client_gets_all)
{
	struct client a, b, c;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK(a.peer.room->starter == &a.peer && a.peer.id == 1);
	CHECK_INT(join(&b, 1, ""), 0);
	CHECK(b.peer.room == a.peer.room && b.peer.id == 2);
	CHECK_STR(seen(&b), "");
	CHECK_INT(update(&b, "early"), -1);
	CHECK_INT(oops.kind, ERR_CONFLICT);
	CHECK_INT(update(&a, "text"), 0);
	CHECK_STR(seen(&a), "ack1 writer0");
	CHECK_STR(seen(&b), "epoch0 u1 synced1");
	CHECK_INT(update(&b, "more"), 0);
	CHECK_STR(seen(&a), "u2");
	CHECK_STR(a.last, "more");
	CHECK_STR(seen(&b), "ack2");
	CHECK_INT(join(&c, 0, ""), 0);
	CHECK_STR(seen(&c), "u1 u2 synced2");
	CHECK_INT(update(&c, "no"), -1);
	CHECK_INT(oops.kind, ERR_DENIED);
	leave(&c);
	CHECK_STR(seen(&a), "left3");
	leave(&a);
	CHECK_STR(seen(&b), "left3 left1 writer0");
	leave(&b);
	CHECK(!rooms.first);
}

TEST(first_update_passes_to_another_editor_and_never_to_a_viewer)
{
	struct client viewer, a, b;

	CHECK_INT(join(&viewer, 0, "bbbbbbbbbbbb"), 0);
	CHECK(!viewer.peer.room->starter);
	CHECK_INT(join(&a, 1, ""), 0);
	CHECK(a.peer.room->starter == &a.peer);
	CHECK(strcmp(a.peer.room->epoch, "bbbbbbbbbbbb") != 0);
	CHECK_INT(join(&b, 1, "cccccccccccc"), 0);
	leave(&a);
	CHECK_STR(seen(&b), "left2 begin0");
	CHECK_STR(b.peer.room->epoch, "cccccccccccc");
	CHECK_INT(update(&b, "text"), 0);
	CHECK_STR(seen(&viewer), "left2 epoch0 u1 synced1");
	leave(&b);
	leave(&viewer);
}

TEST(epoch_of_the_first_editor_continues_and_changes_when_a_new_client_is_first)
{
	struct client a, b;
	char epoch[ID_MAX + 1];

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(update(&a, "text"), 0);
	snprintf(epoch, sizeof(epoch), "%s", a.peer.room->epoch);
	CHECK(id_valid(epoch));
	leave(&a);
	CHECK_INT(join(&a, 1, epoch), 0);
	CHECK_STR(a.peer.room->epoch, epoch);
	CHECK_INT(join(&b, 1, epoch), 0);
	CHECK(a.peer.room->starter == &a.peer);
	leave(&a);
	leave(&b);
	CHECK_INT(join(&b, 1, ""), 0);
	CHECK(strcmp(b.peer.room->epoch, epoch) != 0);
	leave(&b);
}

TEST(room_of_viewers_only_forgets_its_text)
{
	struct client a, viewer;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(update(&a, "text"), 0);
	CHECK_INT(join(&viewer, 0, ""), 0);
	CHECK_STR(seen(&viewer), "u1 synced1");
	leave(&a);
	CHECK_STR(seen(&viewer), "left1 epoch0");
	CHECK_STR(viewer.peer.room->epoch, "");
	CHECK_INT(viewer.peer.room->bytes, 0);
	CHECK_INT(join(&a, 1, ""), 0);
	CHECK(a.peer.room->starter == &a.peer);
	CHECK_INT(update(&a, "new text"), 0);
	CHECK_STR(seen(&viewer), "epoch0 u2 synced2");
	leave(&a);
	leave(&viewer);
}

TEST(snapshot_is_requested_after_200_updates_and_replaces_them)
{
	struct client a, b, late;
	const struct room *r;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(join(&b, 1, ""), 0);
	for (unsigned i = 1; i < ROOM_COMPACT_UPDATES; i++) {
		CHECK_INT(update(&a, "x"), 0);
		CHECK(!strstr(seen(&a), "compact"));
	}
	CHECK_INT(update(&a, "x"), 0);
	CHECK_STR(seen(&a), "ack200 compact200");
	CHECK_INT(room_snapshot(&rooms, &b.peer, 200, "all", 3, &oops), -1);
	CHECK_INT(room_snapshot(&rooms, &a.peer, 201, "all", 3, &oops), -1);
	CHECK_INT(oops.kind, ERR_INVALID);
	CHECK_INT(update(&b, "y"), 0);
	CHECK_INT(room_snapshot(&rooms, &a.peer, 200, "all", 3, &oops), 0);
	CHECK_INT(room_snapshot(&rooms, &a.peer, 200, "all", 3, &oops), -1);
	r = a.peer.room;
	CHECK_INT(r->bytes, 3 + 1 + 2 * ROOM_ENTRY_BYTES);
	CHECK_INT(join(&late, 1, ""), 0);
	CHECK_STR(seen(&late), "s200 u201 synced201");
	leave(&late);
	/* A peer that does not answer gets only one request. */
	seen(&a), seen(&b);
	for (unsigned i = 0; i < 2 * ROOM_COMPACT_UPDATES; i++) {
		CHECK_INT(update(&a, "x"), 0);
		b.seen[0] = i < 390 ? 0 : b.seen[0];
		a.seen[0] = i < 190 ? 0 : a.seen[0];
	}
	CHECK(strstr(a.seen, "compact") && strstr(b.seen, "compact"));
	leave(&a);
	leave(&b);
	CHECK(!rooms.first);
}

TEST(slow_client_gets_the_rest_when_it_can_take_more)
{
	struct client a, slow;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(update(&a, "1"), 0);
	CHECK_INT(join(&slow, 1, ""), 0);
	seen(&slow);
	slow.capacity = 1;
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(update(&a, "x"), 0);
	CHECK_INT(room_presence(&a.peer, "here", 4, &oops), 0);
	CHECK_STR(seen(&slow), "u2");
	slow.capacity = 0;
	room_resume(&slow.peer);
	CHECK_STR(seen(&slow), "p1 u3 u4");
	CHECK_INT(update(&slow, "mine"), 0);
	CHECK_STR(seen(&slow), "ack5");
	leave(&a);
	leave(&slow);
}

TEST(presence_is_relayed_and_shown_to_new_clients)
{
	struct client a, viewer, late;

	CHECK_INT(join_at(&a, 1, "", "aaaaaaaaaaaa", ""), 0);
	CHECK_INT(join_at(&viewer, 0, "", "aaaaaaaaaaaa", ""), 0);
	CHECK(!a.peer.room->starter);
	CHECK_INT(room_presence(&viewer.peer, "eve", 3, &oops), 0);
	CHECK_STR(seen(&a), "p2");
	CHECK_STR(seen(&viewer), "");
	CHECK_INT(join_at(&late, 1, "", "aaaaaaaaaaaa", ""), 0);
	CHECK_STR(seen(&late), "p2");
	CHECK_STR(late.last, "eve");
	CHECK_INT(update(&a, "text"), -1);
	CHECK_INT(oops.kind, ERR_INVALID);
	leave(&viewer);
	CHECK_STR(seen(&late), "left2");
	leave(&a);
	leave(&late);
}

TEST(writer_is_asked_to_save)
{
	struct client a, b, viewer;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(join(&b, 1, ""), 0);
	CHECK_INT(join(&viewer, 0, ""), 0);
	CHECK_INT(room_save(&b.peer, &oops), -1);
	CHECK_INT(update(&a, "text"), 0);
	seen(&a);
	CHECK_INT(room_save(&b.peer, &oops), 0);
	CHECK_STR(seen(&a), "save0");
	CHECK_INT(room_save(&viewer.peer, &oops), -1);
	CHECK_INT(oops.kind, ERR_DENIED);
	leave(&a);
	leave(&b);
	leave(&viewer);
}

TEST(writer_that_does_not_save_loses_its_role)
{
	struct client a, b, viewer;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(join(&b, 1, ""), 0);
	CHECK_INT(join(&viewer, 0, ""), 0);
	CHECK_INT(room_claim(&b.peer, &oops), -1);
	CHECK_INT(oops.kind, ERR_CONFLICT);
	CHECK_INT(update(&a, "text"), 0);
	seen(&a), seen(&b);
	CHECK_INT(room_claim(&viewer.peer, &oops), -1);
	CHECK_INT(oops.kind, ERR_DENIED);
	CHECK_INT(room_claim(&b.peer, &oops), 0);
	CHECK_STR(seen(&a), "reader0");
	CHECK_STR(seen(&b), "writer0");
	CHECK_INT(room_claim(&b.peer, &oops), 0);
	CHECK_STR(seen(&b), "");
	CHECK_INT(update(&a, "more"), 0);
	CHECK(b.peer.room->writer == &b.peer);
	leave(&b);
	CHECK_STR(seen(&a), "ack2 left2 writer0");
	leave(&a);
	leave(&viewer);
}

TEST(limits_of_updates_rooms_and_peers_hold)
{
	static struct client many[ROOM_PEERS + 1];
	char *big = calloc(1, ROOM_UPDATE_BYTES + 1), path[32];
	struct client a;
	unsigned n = 0;

	CHECK_INT(join(&a, 1, ""), 0);
	CHECK_INT(room_update(&rooms, &a.peer, big, ROOM_UPDATE_BYTES + 1, &oops), -1);
	CHECK_INT(oops.kind, ERR_LIMIT);
	CHECK_INT(room_presence(&a.peer, big, ROOM_PRESENCE_BYTES + 1, &oops), -1);
	while (n < 100 && room_update(&rooms, &a.peer, big, ROOM_UPDATE_BYTES, &oops) == 0)
		n++;
	CHECK_INT(n, ROOM_BYTES / ROOM_UPDATE_BYTES - 1);
	CHECK(strstr(oops.msg, "is full"));
	CHECK(a.peer.room->bytes <= ROOM_BYTES);
	leave(&a);
	for (n = 0; n < ROOM_PEERS; n++)
		CHECK_INT(join(&many[n], 1, ""), 0);
	CHECK_INT(join(&many[n], 1, ""), -1);
	CHECK_INT(oops.kind, ERR_LIMIT);
	while (n > 0)
		leave(&many[--n]);
	for (n = 0; n < ROOM_BOX_ROOMS; n++) {
		snprintf(path, sizeof(path), "/f%u", n);
		CHECK_INT(join_at(&many[n], 1, "", "aaaaaaaaaaaa", path), 0);
	}
	CHECK_INT(join_at(&many[n], 1, "", "aaaaaaaaaaaa", "/one-more"), -1);
	CHECK_INT(oops.kind, ERR_LIMIT);
	CHECK_INT(join_at(&a, 1, "", "bbbbbbbbbbbb", "/one-more"), 0);
	leave(&a);
	/* All rooms of the box together. */
	for (unsigned i = 0; i < ROOM_BOX_ROOMS; i++)
		while (room_update(&rooms, &many[i].peer, big, ROOM_UPDATE_BYTES, &oops) == 0)
			;
	CHECK(strstr(oops.msg, "this box are full"));
	while (n > 0)
		leave(&many[--n]);
	CHECK(!rooms.first);
	free(big);
}

TEST(one_file_has_one_spelling)
{
	static const char *const wrong[] = { "a.py", "/a/../b", "/a/./b", "//a", "/a//b",
					     "/a/",  "/",       "/..",    "/." };
	char deep[ROOM_PATH + 8] = "/";

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_INT(room_path_check(wrong[i], &oops), -1);
	CHECK_INT(room_path_check("", &oops), 0);
	CHECK_INT(room_path_check("/home/user/.bashrc", &oops), 0);
	CHECK_INT(room_path_check("/home/user/..a/...", &oops), 0);
	memset(deep + 1, 'a', ROOM_PATH);
	CHECK_INT(room_path_check(deep, &oops), -1);
	deep[ROOM_PATH] = 0;
	CHECK_INT(room_path_check(deep, &oops), 0);
}
