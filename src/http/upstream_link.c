/* upstream_link.c - see upstream_link.h. */
#include "http/upstream_link.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINK_RECORD = 16 << 10 }; /* the most that one TLS record carries */

void upstream_link_init(struct upstream_link *l)
{
	if (!l->tls)
		return;
	SSL_set_mode(l->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One read(2) for several records, instead of two for each. */
	SSL_set_read_ahead(l->tls, 1);
}

void upstream_link_close(struct upstream_link *l)
{
	if (l->tls)
		SSL_free(l->tls);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct upstream_link){ .fd = -1 };
}

static enum link_result link_errno(void)
{
	return errno == EAGAIN || errno == EINTR ? LINK_WANTS_READ : LINK_BROKEN;
}

static enum link_result link_tls_result(SSL *tls, int returned)
{
	switch (SSL_get_error(tls, returned)) {
	case SSL_ERROR_WANT_READ:
		return LINK_WANTS_READ;
	case SSL_ERROR_WANT_WRITE:
		return LINK_WANTS_WRITE;
	case SSL_ERROR_ZERO_RETURN:
		return LINK_END;
	default:
		ERR_clear_error();
		return LINK_BROKEN;
	}
}

/* ---- reading ---- */

static enum link_result link_tls_read(SSL *tls, char *bytes, size_t n, size_t *out_got)
{
	enum link_result result = LINK_OK;

	do {
		int got = SSL_read(tls, bytes + *out_got, (int)(n - *out_got));

		if (got > 0)
			*out_got += (size_t)got;
		else
			result = link_tls_result(tls, got);
	} while (result == LINK_OK && *out_got < n && SSL_has_pending(tls));
	/* Nothing is buffered: the descriptor shows what comes next. */
	if (result == LINK_OK && !SSL_has_pending(tls))
		result = LINK_WANTS_READ;
	return result;
}

enum link_result upstream_link_read(struct upstream_link *l, void *bytes, size_t n, size_t *out_got)
{
	ssize_t got;

	*out_got = 0;
	if (l->tls)
		return link_tls_read(l->tls, bytes, n, out_got);
	got = recv(l->fd, bytes, n, MSG_DONTWAIT);
	if (got < 0)
		return link_errno();
	*out_got = (size_t)got;
	return got ? LINK_WANTS_READ : LINK_END;
}

int upstream_link_has_buffered(const struct upstream_link *l)
{
	return l->tls && SSL_has_pending(l->tls);
}

int upstream_link_is_silent(struct upstream_link *l)
{
	char first;
	int got;

	if (!l->tls)
		return recv(l->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
	got = SSL_peek(l->tls, &first, 1);
	return got <= 0 && link_tls_result(l->tls, got) == LINK_WANTS_READ;
}

/* ---- writing ---- */

struct link_cursor { /* what is left of the pieces */
	const struct iovec *iov;
	unsigned n;
	size_t at; /* in iov[0] */
};

static void link_cursor_move(struct link_cursor *c, size_t n)
{
	c->at += n;
	while (c->n > 0 && c->at >= c->iov->iov_len) {
		c->at -= c->iov->iov_len;
		c->iov++;
		c->n--;
	}
}

/* The bytes of the next record: of one piece if that fills it or is the last one, else copied
 * together. */
static const char *link_cursor_record(const struct link_cursor *c, char *room, size_t *out_len)
{
	struct link_cursor from = *c;
	size_t len = c->iov->iov_len - c->at;

	if (len >= LINK_RECORD || c->n == 1) {
		*out_len = len < LINK_RECORD ? len : LINK_RECORD;
		return (const char *)c->iov->iov_base + c->at;
	}
	*out_len = 0;
	while (from.n > 0 && *out_len < LINK_RECORD) {
		len = from.iov->iov_len - from.at;
		len = len < LINK_RECORD - *out_len ? len : LINK_RECORD - *out_len;
		memcpy(room + *out_len, (const char *)from.iov->iov_base + from.at, len);
		*out_len += len;
		link_cursor_move(&from, len);
	}
	return room;
}

static enum link_result link_tls_write(SSL *tls, const struct iovec *iov, unsigned n,
				       size_t *out_sent)
{
	static char room[LINK_RECORD];
	struct link_cursor left = { .iov = iov, .n = n };

	link_cursor_move(&left, 0); /* skips empty pieces */
	while (left.n > 0) {
		size_t len;
		const char *record = link_cursor_record(&left, room, &len);
		int sent = SSL_write(tls, record, (int)len);

		if (sent <= 0)
			return link_tls_result(tls, sent);
		*out_sent += (size_t)sent;
		link_cursor_move(&left, (size_t)sent);
	}
	return LINK_OK;
}

enum link_result upstream_link_write(struct upstream_link *l, const struct iovec *iov, unsigned n,
				     size_t *out_sent)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t sent;

	*out_sent = 0;
	if (l->tls)
		return link_tls_write(l->tls, iov, n, out_sent);
	sent = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return link_errno() == LINK_BROKEN ? LINK_BROKEN : LINK_WANTS_WRITE;
	*out_sent = (size_t)sent;
	return LINK_OK;
}

enum link_result upstream_link_shut(struct upstream_link *l)
{
	int done;

	if (!l->tls)
		return shutdown(l->fd, SHUT_WR) < 0 ? LINK_BROKEN : LINK_OK;
	done = SSL_shutdown(l->tls);
	return done >= 0 ? LINK_OK : link_tls_result(l->tls, done);
}
