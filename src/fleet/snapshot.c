/* snapshot.c - see snapshot.h. */
#include "fleet/snapshot.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "fleet/exec_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SAID_MAX = 500, /* bytes of the error output that are kept */
	PIECE = 64 * 1024,
	WALL_MS = 20 * 60 * 1000, /* for one snapshot */
	STALE_S = 3600,           /* age after which an unfinished snapshot is removed */
	NO_FOLDER = 43,
};

struct snapshot {
	struct fleet *fleet;
	struct exec_reader reader;
	struct exec_input_wait low;
	struct store_snapshot row;
	char box[ID_MAX + 1];
	int fd;
	int taking, hidden;
	char sha256[2 * SHA256_BYTES + 1]; /* that the file must have; "": not known */
	struct sha256 sum;
	uint64_t bytes, most;
	struct buf said;
	struct err trouble; /* error of the server; kind 0: none */
	snapshot_done *done;
	void *ctx;
};

/* A file that changes while it is read (status 1) is not an error. In gVisor /tmp is a mount, of the same disk. On a host without
 * overlays /etc is a read-only mount: tar would list the folder itself, whose owner and time no box could restore. */
static const char pack_script[] =
	"cd / || exit 43\n"
	"[ \"$(stat -c %d .)\" = \"$(stat -c %d tmp)\" ] && t= || t=./tmp\n"
	"[ \"$(stat -c %d .)\" = \"$(stat -c %d etc)\" ] && x= || x=--exclude=./etc\n"
	"if command -v zstd >/dev/null; then c='zstd -q -1'; else c='gzip -1'; fi\n"
	"tar -cf - --one-file-system --numeric-owner --sparse --xattrs --xattrs-include='user.*'"
	" --exclude=./proc --exclude=./sys --exclude=./dev --exclude=./usr --exclude=./opt/atoll"
	" $x -I \"$c\" . $t\n"
	"s=$?; [ $s -le 1 ] && exit 0; exit $s\n";
/* $1: the packer. -P: links to absolute names are made at once; else tar makes them at its end and fails if a folder has another
 * inode number then, which folders of an overlay get whenever the kernel has forgotten their inodes. All names are those of the
 * box, which has nothing outside of its root. */
static const char unpack_script[] =
	"cd / || exit 43\n"
	"exec tar -xpPf - --same-owner --numeric-owner --xattrs --xattrs-include='user.*'"
	" --delay-directory-restore --warning=no-timestamp -I \"$1\"\n";

/* ---- the folder ---- */

static int snapshots_folder(int dir, const char *name, int *out, struct err *e)
{
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make the folder %s", name);
	*out = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *out < 0 ? err_sys(e, "open the folder %s", name) : 0;
}

int snapshots_init(struct fleet *f, const char *state, uint64_t team_bytes, struct err *e)
{
	auto_fd int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	f->snaps.folder = f->snaps.copies = -1;
	f->snaps.team_bytes = team_bytes;
	if (dir < 0)
		return err_sys(e, "open %.150s", state);
	if (snapshots_folder(dir, "snapshots", &f->snaps.folder, e) < 0)
		return -1;
	return snapshots_folder(dir, "copies", &f->snaps.copies, e);
}

void snapshots_fini(struct fleet *f)
{
	own_close_fd(&f->snaps.folder);
	own_close_fd(&f->snaps.copies);
}

static const char *file_name(const char *id, const char *ending, char out[32])
{
	snprintf(out, 32, "%.*s.%s", ID_MAX, id, ending);
	return out;
}

/* The row is deleted last: a crash in between leaves a row that names the file. */
int snapshot_remove(struct fleet *f, const char *id, struct err *e)
{
	char name[32];

	if ((unlinkat(f->snaps.folder, file_name(id, "snap", name), 0) < 0 && errno != ENOENT) ||
	    (unlinkat(f->snaps.folder, file_name(id, "part", name), 0) < 0 && errno != ENOENT))
		return err_sys(e, "remove snapshot %s", id);
	return store_snapshot_remove(f->store, id, e);
}

static void snapshot_sweep(struct fleet *f)
{
	int64_t before = fleet_now_ns() - (int64_t)STALE_S * 1000000000;
	char id[ID_MAX + 1];
	struct err e;

	while (store_snapshot_stale(f->store, before, id, &e) == 0)
		if (snapshot_remove(f, id, &e) < 0)
			return;
}

/* ---- end ---- */

static void snap_free(struct snapshot *s)
{
	exec_input_cancel(&s->low);
	if (s->reader.run)
		exec_send_signal(s->reader.run, SIGKILL);
	exec_reader_close(&s->reader);
	buf_fini(&s->said);
	own_close_fd(&s->fd);
	free(s);
}

static void snapshot_undo(struct snapshot *s)
{
	struct err ignored;

	if (s->taking) /* a remaining row is removed by the sweep */
		(void)!snapshot_remove(s->fleet, s->row.id, &ignored);
}

void snapshot_cancel(struct snapshot *s)
{
	if (!s)
		return;
	snapshot_undo(s);
	snap_free(s);
}

static int is_well(const json_t *record)
{
	const char *cause = json_string_value(json_object_get(record, "cause"));

	return cause && !strcmp(cause, cause_name(CAUSE_EXIT)) &&
	       json_integer_value(json_object_get(record, "status")) == 0;
}

/* The error output of the program, or else its exit status. A packer is a program of the box: all that stops it is the state
 * of the box (no tar, no memory, killed by its user), unless the host ended the box. */
static int program_failed(struct snapshot *s, const json_t *record, struct err *e)
{
	const char *said = buf_str(&s->said),
		   *summary = json_string_value(json_object_get(record, "summary")),
		   *cause = json_string_value(json_object_get(record, "cause"));
	int is_ours = !s->taking || !cause || !strcmp(cause, cause_name(CAUSE_HOST));

	if (strstr(said, "No space left"))
		return err_set(e, ERR_LIMIT,
			       "the snapshot does not fit onto the disk of box %s (limits.disk)",
			       s->box);
	return err_set(e, is_ours ? ERR_SYS : ERR_CONFLICT, "snapshot, box %s: %.150s", s->box,
		       *said     ? said
		       : summary ? summary
				 : "the box ended meanwhile");
}

static int keep_file(struct snapshot *s, struct err *e)
{
	char part[32], whole[32];

	if (renameat(s->fleet->snaps.folder, file_name(s->row.id, "part", part),
		     s->fleet->snaps.folder, file_name(s->row.id, "snap", whole)) < 0)
		return err_sys(e, "keep snapshot %s", s->row.id);
	s->row.bytes = s->bytes;
	return s->hidden ? 0 : store_snapshot_finish(s->fleet->store, s->row.id, s->bytes, e);
}

static void snapshot_finish(struct snapshot *s, const struct err *e)
{
	struct store_snapshot row = s->row;
	char box[ID_MAX + 1];
	snapshot_done *done = s->done;
	void *ctx = s->ctx;
	struct err own = e ? *e : (struct err){ 0 };

	memcpy(box, s->box, sizeof(box));
	if (e)
		snapshot_undo(s);
	snap_free(s);
	done(ctx, &row, box, e ? &own : NULL);
}

static void snapshot_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct snapshot *s = loop_owner(t, struct snapshot, reader);
	struct err own = s->trouble;

	if (!own.kind && e)
		own = *e;
	if (!own.kind && !is_well(record))
		program_failed(s, record, &own);
	if (!own.kind && s->taking && s->bytes == 0)
		err_set(&own, ERR_SYS, "snapshot of %s: no data arrived", s->box);
	if (!own.kind && s->taking && keep_file(s, &own) == 0)
		own.kind = ERR_NONE;
	snapshot_finish(s, own.kind ? &own : NULL);
}

/* Stops; done() is called when the program has ended. */
static void give_up(struct snapshot *s)
{
	if (s->reader.run)
		exec_send_signal(s->reader.run, SIGKILL);
}

/* ---- out of a box ---- */

static void snapshot_hear(struct snapshot *s, const char *bytes, size_t n)
{
	size_t room = SAID_MAX - s->said.len;

	buf_add(&s->said, bytes, n < room ? n : room);
}

static void write_piece(struct snapshot *s, const char *bytes, size_t n)
{
	if (s->trouble.kind)
		return;
	if (n > s->most - s->bytes) {
		err_set(&s->trouble, ERR_LIMIT,
			"snapshot of %s: the team's snapshots may have %llu bytes in all "
			"(quota.snapshot_bytes)",
			s->box, (unsigned long long)s->fleet->snaps.team_bytes);
		give_up(s);
		return;
	}
	while (n > 0) {
		ssize_t done = write(s->fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			err_sys(&s->trouble, "write snapshot of %s", s->box);
			give_up(s);
			return;
		}
		bytes += done;
		n -= (size_t)done;
		s->bytes += (uint64_t)done;
	}
}

static void snapshot_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			    const char *bytes, size_t n)
{
	struct snapshot *s = loop_owner(t, struct snapshot, reader);

	if (stream == 1) {
		snapshot_hear(s, bytes, n);
	} else if (s->taking && offset != s->bytes && !s->trouble.kind) {
		err_set(&s->trouble, ERR_SYS, "snapshot of %s: bytes were lost", s->box);
		give_up(s);
	} else if (s->taking) {
		write_piece(s, bytes, n);
	}
}

/* ---- into a box ---- */

/* After the last byte was read. */
static int snapshot_is_unchanged(struct snapshot *s)
{
	uint8_t sum[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];

	if (!s->sha256[0])
		return 1;
	sha256_end(&s->sum, sum);
	hex_encode(text, sum, sizeof(sum));
	return strcmp(text, s->sha256) == 0;
}

static void snapshot_feed(struct snapshot *s)
{
	char piece[PIECE];
	ssize_t n = 0;

	while (s->reader.run && !s->reader.run->over &&
	       (n = read(s->fd, piece, sizeof(piece))) > 0) {
		if (s->sha256[0])
			sha256_add(&s->sum, piece, (size_t)n);
		if (exec_stdin(s->reader.run, piece, (size_t)n)) {
			exec_input_await(s->reader.run, &s->low);
			return;
		}
	}
	if (s->reader.run && n < 0) {
		err_sys(&s->trouble, "read snapshot %s", s->row.id);
		give_up(s);
	} else if (s->reader.run && !snapshot_is_unchanged(s)) {
		err_set(&s->trouble, ERR_SYS,
			"snapshot %s is damaged: its digest is not that of the file which was sent",
			s->row.id);
		give_up(s);
	} else if (s->reader.run) {
		exec_input_close(s->reader.run);
	}
}

static void snapshot_low(struct exec_input_wait *w, int closed)
{
	struct snapshot *s = loop_owner(w, struct snapshot, low);

	if (!closed)
		snapshot_feed(s);
}

/* The first bytes of the file identify the packer. */
static const char *packer_of(int fd)
{
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint8_t head[4] = { 0 };

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return NULL;
	return memcmp(head, zstd, sizeof(zstd)) == 0 ? "zstd"
	       : head[0] == 0x1f && head[1] == 0x8b  ? "gzip"
						     : NULL;
}

/* ---- start ---- */

static int snapshot_start(struct snapshot *s, struct box *b, const char *packer, struct err *e)
{
	/* The variables of the box must not change the behaviour of these programs. */
	static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8",
					   "TAR_OPTIONS=", "GZIP=", NULL };
	static const struct exec_reader_events on = { .output = snapshot_output,
						      .over = snapshot_over };
	const char *argv[] = { "/bin/sh",  "-c",   packer ? unpack_script : pack_script,
			       "snapshot", packer, NULL };
	struct exec_spec want = { .argv = argv,
				  .env = env,
				  .cwd = "/",
				  .kind = STORE_RUN_EXEC,
				  .wall_ms = WALL_MS,
				  .root = 1,
				  .helper = 1,
				  .stdin_open = packer != NULL };
	struct exec *r;

	exec_reader_init(&s->reader, s->fleet, &on);
	return exec_launch(b, &want, &s->reader, &r, e);
}

static struct snapshot *snap_new(struct fleet *f, const struct box *b, snapshot_done *done,
				 void *ctx)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	*s = (struct snapshot){
		.fleet = f, .low.low = snapshot_low, .fd = -1, .done = done, .ctx = ctx
	};
	exec_reader_init(&s->reader, f, NULL);
	memcpy(s->box, b->row.id, sizeof(s->box));
	return s;
}

static int is_awake(struct box *b, struct err *e)
{
	if (b->state == BOX_PAUSED)
		return err_set(e, ERR_CONFLICT, "box %s is paused", b->row.id);
	box_wake(b);
	return 0;
}

static int begin_file(struct snapshot *s, struct err *e)
{
	char name[32];
	uint64_t has;

	if (store_snapshot_bytes(s->fleet->store, s->row.team, &has, e) < 0)
		return -1;
	s->most = s->fleet->snaps.team_bytes > has ? s->fleet->snaps.team_bytes - has : 0;
	if (!s->fleet->snaps.team_bytes)
		s->most = UINT64_MAX;
	if (store_snapshot_insert(s->fleet->store, &s->row, e) < 0)
		return -1;
	s->fd = openat(s->fleet->snaps.folder, file_name(s->row.id, "part", name),
		       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return s->fd < 0 ? err_sys(e, "make snapshot %s", s->row.id) : 0;
}

int snapshot_take(struct fleet *f, struct box *b, const struct store_snapshot *want, int hidden,
		  snapshot_done *done, void *ctx, struct snapshot **out, struct err *e)
{
	struct snapshot *s;

	snapshot_sweep(f);
	if (is_awake(b, e) < 0)
		return -1;
	s = snap_new(f, b, done, ctx);
	s->row = *want;
	s->row.bytes = 0;
	s->row.created_ns = fleet_now_ns();
	s->taking = 1;
	s->hidden = hidden;
	memcpy(s->row.box, b->row.id, sizeof(s->row.box));
	memcpy(s->row.template, b->row.template, sizeof(s->row.template));
	snprintf(s->row.tier, sizeof(s->row.tier), "%s", isolation_tier(&b->row));
	if (id_new(s->row.id, e) < 0 || begin_file(s, e) < 0 || snapshot_start(s, b, NULL, e) < 0) {
		snapshot_cancel(s);
		return -1;
	}
	*out = s;
	return 0;
}

static int snapshot_fill_from(int folder, struct snapshot *s, struct box *b, struct snapshot **out,
			      struct err *e)
{
	const char *packer;
	char name[32];

	s->fd = openat(folder, file_name(s->row.id, "snap", name),
		       O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0)
		err_sys(e, "open snapshot %s", s->row.id);
	packer = s->fd < 0 ? NULL : packer_of(s->fd);
	if (s->fd >= 0 && !packer)
		err_set(e, ERR_SYS, "snapshot %s is damaged", s->row.id);
	if (!packer || snapshot_start(s, b, packer, e) < 0) {
		snap_free(s);
		return -1;
	}
	*out = s;
	snapshot_feed(s);
	return 0;
}

int snapshot_fill(struct fleet *f, struct box *b, const char *id, snapshot_done *done, void *ctx,
		  struct snapshot **out, struct err *e)
{
	struct snapshot *s = snap_new(f, b, done, ctx);

	memcpy(s->row.id, id, ID_MAX + 1);
	return snapshot_fill_from(f->snaps.folder, s, b, out, e);
}

int snapshot_fill_copy(struct fleet *f, struct box *b, const char *id, const char *sha256,
		       snapshot_done *done, void *ctx, struct snapshot **out, struct err *e)
{
	struct snapshot *s = snap_new(f, b, done, ctx);

	memcpy(s->row.id, id, ID_MAX + 1);
	snprintf(s->sha256, sizeof(s->sha256), "%s", sha256);
	sha256_init(&s->sum);
	return snapshot_fill_from(f->snaps.copies, s, b, out, e);
}

int snapshot_open(struct fleet *f, const char *id, int *out_fd, struct err *e)
{
	char name[32];

	file_name(id, "snap", name);
	*out_fd = openat(f->snaps.folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*out_fd < 0 && errno == ENOENT)
		*out_fd = openat(f->snaps.copies, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *out_fd < 0 ? err_sys(e, "open snapshot %s", id) : 0;
}
