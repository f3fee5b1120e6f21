/* room.c - see room.h. */
#include "v1/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct room_entry {
	struct room_entry *next;
	uint64_t number;
	enum room_frame kind; /* ROOM_UPDATE or ROOM_SNAPSHOT */
	size_t n;
	char bytes[];
};

int room_path_check(const char *path, struct err *e)
{
	size_t n = strlen(path);

	if (n > ROOM_PATH)
		return err_set(e, ERR_INVALID, "path: %zu bytes; the most are %d", n, ROOM_PATH);
	if (!n)
		return 0;
	for (const char *p = path; *p; p += 1 + strcspn(p + 1, "/")) {
		size_t part = strcspn(p + 1, "/");

		if (*p != '/' || !part || (part <= 2 && !strncmp(p + 1, "..", part)))
			return err_set(e, ERR_INVALID,
				       "path: '%.60s' must be absolute, without '.', '..' and '//'",
				       path);
	}
	return 0;
}

/* ---- the roles of peers: starter, writer ---- */

/* The peer with the lowest id that may write. */
static struct room_peer *room_first_editor(const struct room *r)
{
	struct room_peer *p = r->peers;

	while (p && !p->may_write)
		p = p->next;
	return p;
}

/* A client that has the text of an earlier room continues its epoch: other clients of that room
 * have the same text, and their updates fit. */
static int room_choose_starter(struct room *r, struct err *e)
{
	struct room_peer *p = room_first_editor(r);

	if (r->started || r->starter || !p || !r->path[0])
		return 0;
	if (p->epoch[0])
		snprintf(r->epoch, sizeof(r->epoch), "%s", p->epoch);
	else if (id_new(r->epoch, e) < 0)
		return -1;
	r->starter = p;
	return 0;
}

/* A writer stays the writer until it leaves or another peer claims that role. */
static void room_choose_writer(struct room *r)
{
	if (r->writer || !r->started)
		return;
	r->writer = room_first_editor(r);
	if (r->writer)
		r->writer->on->note(r->writer, ROOM_NOTE_WRITER, 0);
}

/* ---- sending ---- */

static void room_send_presence(struct room_peer *to, const struct room_peer *of)
{
	if (to->full)
		to->greeted = 0; /* room_resume() sends the presence of all peers */
	else if (of->presence)
		to->full =
			to->on->frame(to, ROOM_PRESENCE, of->id, of->presence, of->presence_bytes);
}

/* The log is the send buffer of slow peers: each has a position in it. */
static void room_send_log(struct room_peer *p)
{
	struct room *r = p->room;

	for (const struct room_entry *x = p->sent + 1 == r->head ? r->last : r->log; x && !p->full;
	     x = x->next)
		if (x->number > p->sent) {
			p->sent = x->number;
			p->full = p->on->frame(p, x->kind, x->number, x->bytes, x->n);
		}
	if (r->started && !p->synced && p->sent == r->head) {
		p->synced = 1;
		p->on->note(p, ROOM_NOTE_SYNCED, r->head);
		room_choose_writer(r);
	}
}

void room_resume(struct room_peer *p)
{
	if (!p->room)
		return;
	p->full = 0;
	if (!p->greeted) {
		p->greeted = 1;
		for (const struct room_peer *x = p->room->peers; x; x = x->next)
			if (x != p)
				room_send_presence(p, x);
	}
	room_send_log(p);
}

/* ---- join, leave ---- */

static struct room *room_find(struct rooms *rooms, const char *team, const char *box,
			      const char *path, unsigned *of_box)
{
	struct room *found = NULL;

	*of_box = 0;
	for (struct room *r = rooms->first; r; r = r->next) {
		if (strcmp(r->box, box) != 0 || strcmp(r->team, team) != 0)
			continue;
		++*of_box;
		if (!strcmp(r->path, path))
			found = r;
	}
	return found;
}

static struct room *room_new(struct rooms *rooms, const char *team, const char *box,
			     const char *path)
{
	struct room *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	snprintf(r->team, sizeof(r->team), "%s", team);
	snprintf(r->box, sizeof(r->box), "%s", box);
	snprintf(r->path, sizeof(r->path), "%s", path);
	r->compact_at = ROOM_COMPACT_UPDATES;
	r->next = rooms->first;
	rooms->first = r;
	return r;
}

static void room_drop_log(struct room *r, uint64_t up_to)
{
	while (r->log && r->log->number <= up_to) {
		struct room_entry *x = r->log;

		r->log = x->next;
		r->bytes -= x->n + ROOM_ENTRY_BYTES;
		free(x);
	}
	if (!r->log)
		r->last = NULL;
}

static void room_free(struct rooms *rooms, struct room *r)
{
	struct room **at = &rooms->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	room_drop_log(r, UINT64_MAX);
	free(r);
}

struct room_peer *room_earlier(struct rooms *rooms, const struct room_peer *p, const char *team,
			       const char *box, const char *path)
{
	unsigned of_box;
	struct room *r = room_find(rooms, team, box, path, &of_box);
	struct room_peer *x = r && p->client[0] ? r->peers : NULL;

	while (x && strcmp(x->client, p->client) != 0)
		x = x->next;
	return x;
}

int room_join(struct rooms *rooms, struct room_peer *p, const char *team, const char *box,
	      const char *path, struct err *e)
{
	struct room_peer **at;
	unsigned of_box;
	struct room *r = room_find(rooms, team, box, path, &of_box);

	if (!r && of_box == ROOM_BOX_ROOMS)
		return err_set(e, ERR_LIMIT, "%d files of this box are already open, the maximum",
			       ROOM_BOX_ROOMS);
	if (r && r->npeers == ROOM_PEERS)
		return err_set(e, ERR_LIMIT, "%d clients have this file open, the maximum",
			       ROOM_PEERS);
	if (!r)
		r = room_new(rooms, team, box, path);
	for (at = &r->peers; *at;)
		at = &(*at)->next;
	*at = p;
	p->next = NULL;
	p->room = r;
	p->id = ++r->last_id;
	r->npeers++;
	if (room_choose_starter(r, e) == 0)
		return 0;
	room_leave(rooms, p);
	return -1;
}

/* No peer is left that would merge changes of the file into the log: the file has the text. */
static void room_forget(struct room *r)
{
	room_drop_log(r, UINT64_MAX);
	r->started = 0;
	r->epoch[0] = 0;
	for (struct room_peer *p = r->peers; p; p = p->next) {
		p->synced = 0;
		p->sent = r->head;
		p->on->note(p, ROOM_NOTE_EPOCH, 0);
	}
}

void room_leave(struct rooms *rooms, struct room_peer *p)
{
	struct room *r = p->room;
	struct room_peer **at;
	struct err e;

	if (!r)
		return;
	for (at = &r->peers; *at != p;)
		at = &(*at)->next;
	*at = p->next;
	p->room = NULL;
	free(p->presence);
	p->presence = NULL;
	r->npeers--;
	if (r->compactor == p)
		r->compactor = NULL;
	if (!r->peers) {
		room_free(rooms, r);
		return;
	}
	for (struct room_peer *x = r->peers; x; x = x->next)
		x->on->note(x, ROOM_NOTE_LEFT, p->id);
	if (r->starter == p) {
		r->starter = NULL;
		/* Without random bytes for an epoch the next client that joins gets the request. */
		if (room_choose_starter(r, &e) == 0 && r->starter)
			r->starter->on->note(r->starter, ROOM_NOTE_BEGIN, 0);
	}
	if (r->writer == p) {
		r->writer = NULL;
		room_choose_writer(r);
	}
	if (r->started && !room_first_editor(r))
		room_forget(r);
}

/* ---- updates ---- */

static int room_has_space(const struct rooms *rooms, const struct room *r, size_t n, size_t freed,
			  struct err *e)
{
	size_t of_box = 0, of_team = 0;

	for (const struct room *x = rooms->first; x; x = x->next) {
		if (strcmp(x->team, r->team) != 0)
			continue;
		of_team += x->bytes;
		of_box += strcmp(x->box, r->box) ? 0 : x->bytes;
	}
	if (n > ROOM_UPDATE_BYTES)
		return err_set(e, ERR_LIMIT, "%zu bytes in one update; the most are %d", n,
			       ROOM_UPDATE_BYTES);
	n += ROOM_ENTRY_BYTES;
	if (r->bytes - freed + n > ROOM_BYTES)
		return err_set(e, ERR_LIMIT,
			       "the log of this room is full: %zu of %d bytes; close the file in "
			       "all browsers to begin a new one",
			       r->bytes, ROOM_BYTES);
	if (of_box - freed + n > ROOM_BOX_BYTES || of_team - freed + n > ROOM_TEAM_BYTES)
		return err_set(e, ERR_LIMIT,
			       "the rooms of this %s are full: %zu bytes; close files in browsers",
			       of_box - freed + n > ROOM_BOX_BYTES ? "box" : "team",
			       of_box - freed + n > ROOM_BOX_BYTES ? of_box : of_team);
	return 0;
}

static struct room_entry *room_entry_new(enum room_frame kind, uint64_t number, const void *bytes,
					 size_t n)
{
	struct room_entry *x = malloc(sizeof(*x) + n);

	if (!x)
		abort();
	*x = (struct room_entry){ .number = number, .kind = kind, .n = n };
	if (n)
		memcpy(x->bytes, bytes, n);
	return x;
}

/* Sends the request to the next editor in turn: one that never answers does not block the
 * others. */
static void room_request_snapshot(struct room *r)
{
	uint32_t last = r->compactor ? r->compactor->id : 0;
	struct room_peer *first = NULL, *after = NULL;

	for (struct room_peer *p = r->peers; p; p = p->next) {
		if (!p->may_write || p->sent != r->head || p->full)
			continue;
		first = first ? first : p;
		after = !after && p->id > last ? p : after;
	}
	r->compactor = after ? after : first;
	r->compact_at = r->head + ROOM_COMPACT_UPDATES;
	if (r->compactor)
		r->compactor->on->note(r->compactor, ROOM_NOTE_COMPACT, r->head);
}

static void room_begin(struct room *r)
{
	r->started = 1;
	for (struct room_peer *p = r->peers; p; p = p->next)
		if (p != r->starter)
			p->on->note(p, ROOM_NOTE_EPOCH, 0);
	r->starter->synced = 1;
	r->starter = NULL;
}

int room_update(struct rooms *rooms, struct room_peer *p, const void *bytes, size_t n,
		struct err *e)
{
	struct room *r = p->room;
	struct room_entry *x;

	if (!p->may_write)
		return err_set(e, ERR_DENIED, "a viewer may only read");
	if (!r->path[0])
		return err_set(e, ERR_INVALID, "a room without a path accepts presence only");
	if (!r->started && r->starter != p)
		return err_set(e, ERR_CONFLICT, "another client sends the first update");
	if (room_has_space(rooms, r, n, 0, e) < 0)
		return -1;
	x = room_entry_new(ROOM_UPDATE, ++r->head, bytes, n);
	*(r->last ? &r->last->next : &r->log) = x;
	r->last = x;
	r->bytes += n + ROOM_ENTRY_BYTES;
	if (p->sent == r->head - 1)
		p->sent = r->head;
	if (!r->started)
		room_begin(r);
	p->on->note(p, ROOM_NOTE_ACK, r->head);
	for (struct room_peer *to = r->peers; to; to = to->next)
		if (!to->full)
			room_send_log(to);
	room_choose_writer(r);
	if (r->head >= r->compact_at)
		room_request_snapshot(r);
	return 0;
}

int room_snapshot(struct rooms *rooms, struct room_peer *p, uint64_t number, const void *bytes,
		  size_t n, struct err *e)
{
	struct room *r = p->room;
	struct room_entry *x;
	size_t freed = 0;

	if (r->compactor != p)
		return err_set(e, ERR_CONFLICT, "no snapshot of this client was requested");
	if (!r->log || number < r->log->number || number > p->sent)
		return err_set(e, ERR_INVALID, "a snapshot of update %llu, which was not sent",
			       (unsigned long long)number);
	for (x = r->log; x && x->number <= number; x = x->next)
		freed += x->n + ROOM_ENTRY_BYTES;
	if (room_has_space(rooms, r, n, freed, e) < 0)
		return -1;
	x = room_entry_new(ROOM_SNAPSHOT, number, bytes, n);
	room_drop_log(r, number);
	x->next = r->log;
	r->log = x;
	r->last = r->last ? r->last : x;
	r->bytes += n + ROOM_ENTRY_BYTES;
	r->compactor = NULL;
	return 0;
}

int room_presence(struct room_peer *p, const void *bytes, size_t n, struct err *e)
{
	void *copy;

	if (n > ROOM_PRESENCE_BYTES)
		return err_set(e, ERR_LIMIT, "%zu bytes of presence; the most are %d", n,
			       ROOM_PRESENCE_BYTES);
	copy = malloc(n ? n : 1);
	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	free(p->presence);
	p->presence = copy;
	p->presence_bytes = n;
	for (struct room_peer *x = p->room->peers; x; x = x->next)
		if (x != p)
			room_send_presence(x, p);
	return 0;
}

static int room_check_writer(const struct room_peer *p, struct err *e)
{
	if (!p->may_write)
		return err_set(e, ERR_DENIED, "a viewer may only read");
	return p->room->writer ? 0 : err_set(e, ERR_CONFLICT, "no client writes this file yet");
}

int room_save(struct room_peer *p, struct err *e)
{
	struct room *r = p->room;

	if (room_check_writer(p, e) < 0)
		return -1;
	r->writer->on->note(r->writer, ROOM_NOTE_SAVE, 0);
	return 0;
}

int room_claim(struct room_peer *p, struct err *e)
{
	struct room *r = p->room;

	if (room_check_writer(p, e) < 0)
		return -1;
	if (r->writer == p)
		return 0;
	r->writer->on->note(r->writer, ROOM_NOTE_READER, 0);
	r->writer = p;
	p->on->note(p, ROOM_NOTE_WRITER, 0);
	return 0;
}
