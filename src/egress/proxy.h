/* proxy.h - one connection of a box, from its request to its report. For the files of this folder only.
 * Owns:         both sockets, the timer, the report.
 * Does not own: the protocol in which the box names a host and is refused (proxy_http.c, proxy_tunnel.c,
 *               proxy_socks.c, proxy_dns.c), nor the decision (judge.h).
 *
 *                   proxy_to()
 *   ASKING ──► (WAITING) ─► RESOLVING ──every address is allowed─► CONNECTING ──► PASSING ──► LEAVING
 *      │                       │                                        │            │
 *      └─── proxy_refuse() ────┴────────────────────────────────────────┴── cut ─────┴─► report, freed
 *
 * A name is resolved once, and the socket is connected to a checked address: a later change of the
 * name has no effect. */
#pragma once
#include "egress/http_message.h"
#include "egress/judge.h"
#include "egress/way.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum {
	PROXY_HIGH = 64 << 10, /* bytes of one direction that wait at most */
	PROXY_ADDRESSES = 4,   /* of a host that are tried */
	PROXY_REFUSED_MS =
		1000, /* so long a refusal waits for the first bytes, to have their form */
};

enum proxy_stage {
	PROXY_ASKING,
	PROXY_WAITING,
	PROXY_RESOLVING,
	PROXY_CONNECTING,
	PROXY_PASSING,
	PROXY_LEAVING
};

/* The protocol on the side of the box. */
struct proxy_protocol {
	/* ASKING: bytes of the box wait in near. Calls proxy_to() when the host is known. */
	void (*ask)(struct proxy *p);
	/* Writes the refusal to near. -1: it has no form for it, and the connection is reset. 1: its form
	 * depends on bytes of the box that have not arrived: ask() is called with them. */
	int (*refuse)(struct proxy *p, int status, const char *text);
	/* The host is connected: writes the first bytes, in either direction. */
	void (*connected)(struct proxy *p);
	/* Passes bytes in both directions, unless p->tunnel. 0: p was freed, or is leaving. */
	int (*pass)(struct proxy *p);
	/* PASSING, and no tunnel: a refusal can still be written. */
	int (*can_refuse)(const struct proxy *p);
	/* PASSING, and no tunnel: more bytes of the box are needed. */
	int (*reads_near)(const struct proxy *p);
};

struct proxy_end { /* what is reported */
	const char *host, *rule, *why, *hint;
	uint16_t port;
	enum verdict verdict;
	uint64_t began_ns, began_ms, bytes_in, bytes_out;
};

struct proxy {
	struct egress_endpoint *way;
	struct proxy *next, **at;
	const struct proxy_protocol *protocol;
	struct bufferevent *near, *far; /* the box, the host */
	struct timer clock;
	enum proxy_stage stage;
	char host[RULE_HOST]; /* "": not known yet */
	uint16_t port;
	const char *method, *path; /* of the request, as long as the proxy; path NULL: not known */
	uint64_t request;          /* WAITING: number of the request for an approval; else 0 */
	uint64_t ask_until_ms;
	int approved;     /* no rule of the box is needed */
	unsigned budgets; /* for destinations, that it belongs to: spent.h */
	int told;         /* reported */
	int late;         /* status of a refusal that waits for the first bytes of the box */
	int tunnel;       /* set by the protocol: bytes are passed unchanged */
	int opened;       /* the host is known, and the request comes without it */
	int tls;          /* intercept.c: both connections use TLS, which ends here */
	int near_eof, far_eof, far_broken, near_shut, far_shut;
	struct resolver_request *names;
	uint32_t link; /* reference of the request for a connection to a linked box; 0: none */
	struct name_address to[PROXY_ADDRESSES];
	unsigned nto, tried;
	uint64_t active_ms;
	struct proxy_end end;
	struct judgement judged;
	char why[200];
	int answered; /* bytes of the host were passed */
	/* of proxy_http.c */
	struct message ask, answer;
	unsigned early;
	/* of proxy_socks.c */
	int greeted;
	int socks_error; /* the code of a refusal, if the verdict does not determine it */
};

extern const struct proxy_protocol proxy_http;   /* HTTP: to the proxy, or to the host itself */
extern const struct proxy_protocol proxy_tunnel; /* bytes, after a check of the first ones */
extern const struct proxy_protocol proxy_dns;    /* DNS over TCP */
extern const struct proxy_protocol proxy_socks;  /* SOCKS5, on the port of the HTTP proxy */
enum { SOCKS_VERSION = 5 };                      /* its first byte */

/* A connection of the box; frees itself after its report. */
struct proxy *proxy_new(struct egress_endpoint *w, int take_fd,
			const struct proxy_protocol *protocol);
void capture_accept(struct egress_endpoint *w, int take_fd); /* proxy_tunnel.c: a captured one */
void proxy_free(struct proxy *p);                            /* reports it as cut */
void proxy_gone(struct egress_endpoint *w); /* egress.c: another connection is possible */
/* The rules have changed: the proxy is cut if they no longer permit it, and a waiting one continues
 * if they now do. */
void proxy_judge_again(struct proxy *p);
void proxy_decided(struct proxy *p, int allow); /* WAITING: it continues, or is refused */

/* egress.c */
void egress_report(struct egress_endpoint *w, const struct proxy_end *end);
void egress_count(struct egress_endpoint *w, int into_box, size_t n);
void egress_count_query(struct egress_endpoint *w);
void egress_send(struct egress *x, const void *body, size_t len, const char *tail, size_t tail_len);
/* Requests a connection to the box that is linked under this name, for proxy_linked(). -1: no server
 * is connected. */
must_check int egress_ask_link(struct egress_endpoint *w, const char *name, uint16_t port,
			       uint32_t *out_ref); /* egress.c */
/* The answer: a connection, or -1 and the reason. */
void proxy_linked(struct proxy *p, int take_fd, const char *why);

/* ---- for protocols ---- */

/* The protocol has read the host: judges it, resolves it, connects. method, path: of an HTTP request,
 * as long as the proxy; or NULL. */
void proxy_to(struct proxy *p, const char *host, uint16_t port, const char *method,
	      const char *path);
/* The verdict about its host with its method and path; in p->judged, too. */
enum verdict proxy_check(struct proxy *p);
void proxy_refuse_judged(struct proxy *p); /* with the reason of the last proxy_check() */
/* Only before a byte of an answer was sent to the box. status: in terms of HTTP. May free p. */
__attribute__((format(printf, 4, 5))) void proxy_refuse(struct proxy *p, int status, enum verdict v,
							const char *fmt, ...);
/* An incomplete answer must not look complete: the connection is reset, not closed. Frees p. */
void proxy_cut(struct proxy *p, enum verdict v, const char *why);
/* The answer is complete: closes after the box has read it. */
void proxy_leave(struct proxy *p);
const char *proxy_hint(const struct proxy *p); /* of its refusal: what would permit it; or "" */
void proxy_count(struct proxy *p, int into_box, size_t n);
size_t proxy_room(struct bufferevent *to); /* bytes that may be added to its output */
/* Pass bytes unchanged, in both directions or only into the box. 0: both sides have closed, p was
 * freed. */
must_check int proxy_pass_tunnel(struct proxy *p);
must_check int proxy_pass_in(struct proxy *p);
void proxy_watch_near(struct proxy *p); /* after near was replaced */

/* ---- intercept.c ---- */

/* 1: the box has a placeholder for this host. */
int intercept_wants(const struct proxy *p, const char *host, uint16_t port);
/* The box has asked for a connection to this host, and its first bytes are expected. May free p. */
void intercept_begin(struct proxy *p, const char *host, uint16_t port);
struct bufferevent *intercept_far(struct proxy *p); /* NULL: could not be made */
/* NULL, or why the certificate of the host is not accepted. */
const char *intercept_distrusts(const struct proxy *p);
void intercept_close_near(struct proxy *p); /* says that no more bytes follow */

static inline struct evbuffer *proxy_in(struct bufferevent *b)
{
	return bufferevent_get_input(b);
}

static inline struct evbuffer *proxy_out(struct bufferevent *b)
{
	return bufferevent_get_output(b);
}
