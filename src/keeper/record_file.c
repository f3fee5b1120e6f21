/* record_file.c - see record_file.h. */
#include "keeper/record_file.h"
#include "base/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAGIC 0x7364726f63657261ull /* "arecords" */

struct header {
	uint64_t sum; /* checksum of everything after it */
	uint64_t magic, boot;
	uint32_t version, place; /* place: bytes of a slot */
};

struct records_place {
	uint64_t sum;   /* checksum of everything after it that was written; 0: free */
	uint64_t bytes; /* of the record; unused space is not written */
	struct box_record meta;
};

struct deadline {
	uint64_t sum; /* checksum of everything after it */
	char id[WIRE_ID];
	struct wire_then what;
};

static_assert(sizeof(struct records_place) + sizeof(struct deadline) <= RECORD_FILE_PLACE &&
		      4096 % RECORD_FILE_PLACE == 0,
	      "a place is in one page");
static_assert(offsetof(struct box_record, root) == 1112 &&
		      offsetof(struct box_record, nchain) == 1184 &&
		      sizeof(struct box_record) == 1448,
	      "another struct box_record: another RECORD_FILE_VERSION and BOX_RECORD_MAGIC, "
	      "unless it only has more at its end");
static_assert(offsetof(struct box_record, mounts) % 8 == 0 &&
		      offsetof(struct box_record, layer) % 8 == 0 &&
		      offsetof(struct box_record, root) % 8 == 0 &&
		      offsetof(struct box_record, nchain) % 8 == 0 &&
		      sizeof(struct box_record) % 8 == 0,
	      "sums are of whole words");

/* Protects against accidents, not against attacks: only the user of the keeper can write here. */
static uint64_t sum_of(const void *at, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u, word;

	for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, (const char *)at + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
}

static off_t offset_of(uint32_t place)
{
	return (off_t)RECORD_FILE_PLACE * (place + 1);
}

/* Bytes of the record that are used: most boxes have neither volumes nor layers. */
static size_t used_of(const struct box_record *m)
{
	if (m->nchain || m->checkpointing)
		return sizeof(*m);
	if (m->root[0])
		return offsetof(struct box_record, nchain);
	if (m->nlayers)
		return offsetof(struct box_record, root);
	return m->nmounts ? offsetof(struct box_record, layer)
			  : offsetof(struct box_record, mounts);
}

/* ---- the file ---- */

static struct header header_of(uint64_t boot)
{
	struct header h = { .magic = FILE_MAGIC,
			    .boot = boot,
			    .version = RECORD_FILE_VERSION,
			    .place = RECORD_FILE_PLACE };

	h.sum = sum_of(&h.magic, sizeof(h) - offsetof(struct header, magic));
	return h;
}

static int is_header(const struct header *h)
{
	return h->magic == FILE_MAGIC &&
	       h->sum == sum_of(&h->magic, sizeof(*h) - offsetof(struct header, magic));
}

static int any_taken(int fd, uint32_t place_bytes)
{
	uint64_t sum;

	for (uint32_t i = 1; i <= RECORD_FILE_MOST; i++) {
		if (pread(fd, &sum, sizeof(sum), (off_t)place_bytes * i) != (ssize_t)sizeof(sum))
			return 0;
		if (sum)
			return 1;
	}
	return 0;
}

static int look_at_header(struct record_file *r, struct err *e)
{
	struct header h = { 0 };
	ssize_t n = pread(r->fd, &h, sizeof(h), 0);

	if (n < 0)
		return err_sys(e, "read records");
	/* Without a complete header, every slot is checked by itself. */
	if (n < (ssize_t)sizeof(h) || !is_header(&h))
		return 0;
	r->old_boot = h.boot != r->boot;
	if (h.version == RECORD_FILE_VERSION && h.place == RECORD_FILE_PLACE)
		return 0;
	if (!r->old_boot && any_taken(r->fd, h.place))
		return err_set(
			e, ERR_CONFLICT,
			"the records of boxes are of version %u, this keeper's of %u: end those boxes "
			"with the atoll that made them",
			h.version, RECORD_FILE_VERSION);
	return ftruncate(r->fd, 0) < 0 ? err_sys(e, "empty old records") : 0;
}

int record_file_open(struct record_file *r, int run, uint64_t boot, struct err *e)
{
	struct stat st;

	*r = (struct record_file){ .boot = boot };
	r->fd = openat(run, "records", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		       0600);
	if (r->fd < 0)
		return err_sys(e, "open records");
	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "records is not a file");
	return look_at_header(r, e);
}

int record_file_begin(struct record_file *r, struct err *e)
{
	struct header h = header_of(r->boot);
	uint32_t n = RECORD_FILE_MOST;

	while (n > 0 && !(r->taken[(n - 1) / 64] >> (n - 1) % 64 & 1))
		n--;
	if (pwrite(r->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    ftruncate(r->fd, offset_of(n)) < 0)
		return err_sys(e, "write records");
	r->old_boot = 0;
	return 0;
}

void record_file_end(struct record_file *r, int run)
{
	for (unsigned i = 0; i < ARRAY_LEN(r->taken); i++)
		if (r->taken[i])
			return;
	unlinkat(run, "records", 0);
}

/* ---- slots ---- */

/* 1: the slot has a valid record. Bytes that were not written are 0. */
static int is_whole(struct records_place *p)
{
	size_t bytes = p->bytes;

	if (bytes < offsetof(struct box_record, mounts) || bytes > sizeof(p->meta) || bytes % 8 ||
	    p->sum != sum_of(&p->bytes, sizeof(p->bytes) + bytes))
		return 0;
	memset((char *)&p->meta + bytes, 0, sizeof(p->meta) - bytes);
	return bytes == used_of(&p->meta) && box_record_may_be(&p->meta);
}

static void records_mark(struct record_file *r, uint32_t place)
{
	r->taken[place / 64] |= 1ull << place % 64;
}

int record_file_each(struct record_file *r, record_file_found *each, void *arg, struct err *e)
{
	for (uint32_t i = 0; i < RECORD_FILE_MOST; i++) {
		struct records_place p = { 0 };
		ssize_t n = pread(r->fd, &p, sizeof(p), offset_of(i));

		if (n < 0)
			return err_sys(e, "read records");
		if (n == 0)
			break;
		if (!p.sum)
			continue;
		records_mark(r, i);
		if (is_whole(&p))
			each(i, &p.meta, arg);
		else if (r->old_boot)
			record_file_drop(r, i);
		else
			each(i, NULL, arg);
	}
	return 0;
}

int record_file_take(struct record_file *r, uint32_t *out_place, struct err *e)
{
	for (uint32_t i = r->free_from / 64; i < ARRAY_LEN(r->taken); i++) {
		if (r->taken[i] == ~0ull)
			continue;
		*out_place = i * 64 + (uint32_t)__builtin_ctzll(~r->taken[i]);
		records_mark(r, *out_place);
		r->free_from = *out_place + 1;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "%u boxes are recorded: no more can be created",
		       RECORD_FILE_MOST);
}

void record_file_drop(struct record_file *r, uint32_t place)
{
	uint64_t none = 0;

	/* If this fails, the next keeper finds the record of a box that has ended, as after a kill
	 * before this call. */
	(void)!pwrite(r->fd, &none, sizeof(none), offset_of(place));
	r->taken[place / 64] &= ~(1ull << place % 64);
	if (place < r->free_from)
		r->free_from = place;
}

int record_file_write(int fd, uint32_t place, const struct box_record *m, struct err *e)
{
	struct records_place p = { .bytes = used_of(m) };
	size_t whole = offsetof(struct records_place, meta) + p.bytes;

	memcpy(&p.meta, m, p.bytes);
	p.sum = sum_of(&p.bytes, sizeof(p.bytes) + p.bytes);
	if (pwrite(fd, &p, whole, offset_of(place)) == (ssize_t)whole)
		return 0;
	/* Not err_sys(): a client would take "no space" for the disk of the box. */
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(
			e, ERR_SYS,
			"record of box %s: the host's file system below the run folder is full",
			m->about.id);
	return err_sys(e, "record of box %s", m->about.id);
}

/* ---- deadlines ---- */

static off_t deadline_offset(uint32_t place)
{
	return offset_of(place + 1) - (off_t)sizeof(struct deadline);
}

static uint64_t deadline_sum(const struct deadline *d)
{
	return sum_of(d->id, sizeof(*d) - offsetof(struct deadline, id));
}

int record_file_write_deadline(int fd, uint32_t place, const char *id, const struct wire_then *d,
			       struct err *e)
{
	struct deadline x = { .what = *d };

	memcpy(x.id, id, strnlen(id, sizeof(x.id) - 1));
	x.sum = deadline_sum(&x);
	if (pwrite(fd, &x, sizeof(x), deadline_offset(place)) != (ssize_t)sizeof(x))
		return err_sys(e, "deadline of box %s", id);
	return 0;
}

void record_file_read_deadline(int fd, uint32_t place, const char *id, struct wire_then *out)
{
	struct deadline x = { 0 };

	*out = (struct wire_then){ 0 };
	if (pread(fd, &x, sizeof(x), deadline_offset(place)) != (ssize_t)sizeof(x) ||
	    x.sum != deadline_sum(&x) || strncmp(x.id, id, sizeof(x.id)) != 0 ||
	    x.what.then >= WIRE_THENS)
		return;
	*out = x.what;
}
