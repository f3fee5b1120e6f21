/* room.h - a room: clients that have the same file of a box open, and the log of their updates.
 *
 * The room relays bytes and does not interpret them. Updates are logged with sequence numbers, so
 * that a client that joins later receives all of them. Presence (names, cursors) is kept per client
 * and not logged. docs/collaboration.md describes the protocol.
 *
 * Owns:         rooms, their logs, the last presence of each peer.
 * Does not own: peers, which are part of the caller's channels; a peer leaves before it is freed. */
#pragma once
#include "base/err.h"
#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

enum {
	ROOM_UPDATE_BYTES = 2 << 20, /* of one update or snapshot */
	ROOM_PRESENCE_BYTES = 4096,
	ROOM_ENTRY_BYTES = 64,
	ROOM_BYTES = 8 << 20, /* logs: of one room, of all rooms of a box, of a team */
	ROOM_BOX_BYTES = 32 << 20,
	ROOM_TEAM_BYTES = 128 << 20,
	ROOM_BOX_ROOMS = 64,
	ROOM_PEERS = 64,
	ROOM_COMPACT_UPDATES =
		200, /* updates after which the room requests a snapshot from a client */
	ROOM_PATH = 4000,
	ROOM_NAME = 64, /* of a team */
};

enum room_frame { ROOM_UPDATE, ROOM_PRESENCE, ROOM_SNAPSHOT };

/* The messages of a room to one peer, with a number. */
enum room_note {
	ROOM_NOTE_BEGIN, /* send the first update: the whole text */
	ROOM_NOTE_EPOCH, /* another peer has sent the first update; room->epoch is set. "": the last
			    * editor has left, and the log is empty */
	ROOM_NOTE_SYNCED,  /* all updates so far were sent; the number of the last one */
	ROOM_NOTE_ACK,     /* an update of this peer is in the log; its number */
	ROOM_NOTE_COMPACT, /* send a snapshot */
	ROOM_NOTE_WRITER,  /* this peer writes the file from now on */
	ROOM_NOTE_READER,  /* another peer writes the file from now on */
	ROOM_NOTE_SAVE,    /* another peer needs the file written now */
	ROOM_NOTE_LEFT,    /* a peer has left; its id */
};

struct rooms {
	struct room *first;
};
struct room_peer;
struct room_events {
	/* number: the sequence number, or the id of the peer whose presence it is. Returns 1 if the
	 * peer cannot take more until room_resume(). */
	int (*frame)(struct room_peer *p, enum room_frame kind, uint64_t number, const void *bytes,
		     size_t n);
	void (*note)(struct room_peer *p, enum room_note note, uint64_t number);
};

struct room_peer {
	const struct room_events *on; /* set by the caller, as the next three */
	int may_write;
	char epoch[ID_MAX + 1]; /* of the text that the client has from an earlier room; "": none */
	char client[ID_MAX + 1]; /* the same for all connections of a client; "": not known */
	uint32_t id;             /* in the room; the first is 1 */
	struct room *room;       /* NULL: not joined */
	struct room_peer *next;  /* in the room, by id */
	uint64_t sent;           /* sequence number of the last update that was sent to this peer */
	int full, synced;
	int greeted; /* the presence of the other peers was sent */
	void *presence;
	size_t presence_bytes;
};

struct room_entry;
struct room {
	struct room *next;
	char team[ROOM_NAME + 1], box[ID_MAX + 1], path[ROOM_PATH + 1];
	char epoch[ID_MAX + 1]; /* identifies the first update; "" until a starter is chosen */
	struct room_peer *peers, *starter, *writer, *compactor;
	uint32_t last_id, npeers;
	int started;
	struct room_entry *log, *last;
	uint64_t head;       /* sequence number of the last update */
	uint64_t compact_at; /* the number after which a snapshot is requested */
	size_t bytes;        /* of the log, with ROOM_ENTRY_BYTES for each update */
};

/* path: absolute, in one spelling (room_path_check()); "": a room for presence only. The caller
 * reports the peer's id, the epoch and whether it is the starter, then calls room_resume(). */
must_check int room_join(struct rooms *rooms, struct room_peer *p, const char *team,
			 const char *box, const char *path, struct err *e);
/* The peer of an earlier connection of p's client, in the room that p would join; NULL: none. The
 * server may not know yet that this connection is lost. */
struct room_peer *room_earlier(struct rooms *rooms, const struct room_peer *p, const char *team,
			       const char *box, const char *path);
void room_leave(struct rooms *rooms, struct room_peer *p); /* fine on a peer that has not joined */
must_check int room_update(struct rooms *rooms, struct room_peer *p, const void *bytes, size_t n,
			   struct err *e);
/* Replaces all updates up to number. */
must_check int room_snapshot(struct rooms *rooms, struct room_peer *p, uint64_t number,
			     const void *bytes, size_t n, struct err *e);
must_check int room_presence(struct room_peer *p, const void *bytes, size_t n, struct err *e);
must_check int room_save(struct room_peer *p, struct err *e); /* asks the writer */
/* This peer becomes the writer: the present one does not save what the room has. */
must_check int room_claim(struct room_peer *p, struct err *e);
/* The peer can take more: sends the rest of the log. */
void room_resume(struct room_peer *p);
must_check int room_path_check(const char *path, struct err *e);
