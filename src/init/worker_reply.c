/* worker_reply.c - sends the replies of a file worker; see worker.h. */
#include "init/conn.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include "init/worker.h"

enum { NAME_SHOWN = 80 }; /* of a path in a message, so that the reason still fits */

static LAZY char target[PATH_MAX + 1]; /* NUL and the target of a link */

static void reply_send(struct iovec *iov, size_t n)
{
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };

	if (sys_sendmsg(SOCK, &m, MSG_NOSIGNAL) < 0)
		sys_exit(0); /* the client has disconnected, so the worker exits */
}

void say(const void *body, size_t n, const void *tail, size_t tail_n)
{
	struct iovec iov[2] = { { (void *)body, n }, { (void *)tail, tail_n } };

	reply_send(iov, 2);
}

void say_two(const void *body, size_t n, const char *a, const char *b)
{
	struct iovec iov[3] = { { (void *)body, n },
				{ (void *)a, strlen(a) + 1 },
				{ (void *)b, strlen(b) } };

	reply_send(iov, 3);
}

void say_head(uint8_t type, uint32_t ref, uint16_t flags)
{
	struct frame f = conn_head(type, ref);

	f.flags = flags;
	say(&f, sizeof(f), NULL, 0);
}

/* "request path: why" */
static void reply_refuse(struct wire_error e, const char *action, const char *path, const char *why)
{
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };

	text_add(&t, action);
	text_add(&t, " ");
	t.room = t.len + NAME_SHOWN + 1;
	text_add(&t, path);
	t.room = sizeof(e.msg);
	text_add(&t, ": ");
	text_add(&t, why);
	say(&e, sizeof(e), NULL, 0);
}

void say_refusal(uint32_t ref, uint32_t kind, const char *action, const char *path, const char *why)
{
	reply_refuse((struct wire_error){ .head = conn_head(WIRE_ERROR, ref), .kind = kind },
		     action, path, why);
}

void say_error(uint32_t ref, const char *action, const char *path, int err)
{
	struct wire_error e = { .head = conn_head(WIRE_ERROR, ref), .sys = err };
	const char *why = text_errno(err, &e.kind);

	reply_refuse(e, action, path, why);
}

uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtime * 1000000000u + (uint64_t)st->st_mtime_nsec;
}

struct wire_entry entry_from(uint32_t ref, const struct stat *st)
{
	return (struct wire_entry){
		.head = conn_head(WIRE_ENTRY, ref),
		.mode = st->st_mode,
		.size = (uint64_t)st->st_size,
		.mtime_ns = mtime_ns(st),
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

void say_entry(uint32_t ref, const struct stat *st, const uint8_t *sha256, const char *name,
	       size_t n)
{
	struct wire_entry e = entry_from(ref, st);

	if (sha256) {
		memcpy(e.sha256, sha256, sizeof(e.sha256));
		e.hashed = 1;
	}
	say(&e, sizeof(e), name, n);
}

void say_link(uint32_t ref, const struct stat *st, int dir, const char *at, const char *name)
{
	struct wire_entry e = entry_from(ref, st);
	struct iovec iov[3] = { { &e, sizeof(e) }, { (void *)name, strlen(name) }, { target, 0 } };
	struct stat led;
	long n;

	if (S_ISLNK(st->st_mode)) {
		if (sys_fstatat(dir, at, &led, 0) >= 0)
			e.target_mode = led.st_mode;
		target[0] = '\0';
		n = sys_readlinkat(dir, at, target + 1, sizeof(target) - 1);
		iov[2].iov_len = n > 0 ? 1 + (size_t)n : 0;
	}
	reply_send(iov, 3);
}
