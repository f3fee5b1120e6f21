/* proxy_dns.c - answers DNS queries of programs of a box, over UDP and TCP.
 *
 * No query leaves this process. A name that a rule permits has an address of name_table.h, which
 * stands for it in this box; it has no other records. All other names do not exist here: a program
 * that gets this answer fails at once and does not retry. */
#include "base/clock.h"
#include "egress/dns_message.h"
#include "egress/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { DNS_A_TURN = 32, DNS_RATE = 200 };

/* For each name once: programs send a query for A and one for AAAA. */
static void dns_report(struct egress_endpoint *w, const struct dns_query *q,
		       const struct judgement *j)
{
	struct proxy_end end = { .host = q->name,
				 .rule = "",
				 .why = j->why,
				 .hint = j->hint,
				 .verdict = j->verdict,
				 .port = 53,
				 .began_ns = clock_ns(CLOCK_REALTIME),
				 .began_ms = loop_now_ms() };

	if (q->type == DNS_A)
		egress_report(w, &end);
}

/* Returns the length of the answer; 0: none. */
static size_t dns_answer(struct egress_endpoint *w, const uint8_t *bytes, size_t n,
			 uint8_t out[DNS_MESSAGE_MAX])
{
	struct dns_query q;
	struct judgement j;
	uint32_t address;
	int code = dns_query_read(bytes, n, &q);

	if (code < 0)
		return 0;
	if (code != DNS_OK)
		return dns_answer_write(&q, bytes, (enum dns_code)code, NULL, NULL, out);
	if (!way_take_token(&w->dns_tokens, &w->dns_filled_ms, DNS_RATE))
		return dns_answer_write(&q, bytes, DNS_SERVFAIL, NULL,
					"too many queries of this box", out);
	if (!q.name[0])
		return dns_answer_write(&q, bytes, DNS_NXDOMAIN, NULL, NULL, out);
	if (judge_queries(w, &j) != VERDICT_OK) {
		dns_report(w, &q, &j);
		return dns_answer_write(&q, bytes, DNS_SERVFAIL, NULL, j.why, out);
	}
	egress_count_query(w);
	if (judge_name(w, q.name, &j) != VERDICT_OK) {
		dns_report(w, &q, &j);
		return dns_answer_write(&q, bytes, DNS_NXDOMAIN, NULL, j.why, out);
	}
	if (q.type != DNS_A)
		return dns_answer_write(&q, bytes, DNS_OK, NULL, NULL, out);
	address = name_table_address(&w->names, q.name);
	return dns_answer_write(&q, bytes, DNS_OK, &address, NULL, out);
}

/* ---- UDP ---- */

/* 1: a datagram was read. The answer comes from the address that the query was sent to. */
static int dns_read_one(struct egress_endpoint *w)
{
	uint8_t query[DNS_MESSAGE_MAX], out[DNS_MESSAGE_MAX];
	struct sockaddr_in from;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control;
	struct iovec part = { query, sizeof(query) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int fd = w->sockets[WAY_DNS].fd;
	ssize_t n = recvmsg(fd, &m, 0);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	struct in_pktinfo to;

	if (n < 0)
		return errno == EINTR || errno == ECONNREFUSED;
	if (m.msg_flags & MSG_TRUNC || !c || c->cmsg_level != IPPROTO_IP ||
	    c->cmsg_type != IP_PKTINFO)
		return 1;
	memcpy(&to, CMSG_DATA(c), sizeof(to));
	to.ipi_spec_dst = to.ipi_addr;
	to.ipi_ifindex = 0;
	memcpy(CMSG_DATA(c), &to, sizeof(to));
	part = (struct iovec){ out, dns_answer(w, query, (size_t)n, out) };
	/* A box that does not read its answers loses them. */
	if (part.iov_len)
		(void)!sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return 1;
}

void dns_read(struct egress_endpoint *w)
{
	for (unsigned i = 0; i < DNS_A_TURN && dns_read_one(w); i++)
		;
}

/* ---- TCP: a length of two bytes before each message ---- */

static void dns_ask(struct proxy *p)
{
	struct evbuffer *in = proxy_in(p->near);

	while (proxy_room(p->near)) {
		uint8_t query[2 + DNS_MESSAGE_MAX], out[2 + DNS_MESSAGE_MAX];
		size_t n, answer;

		if (evbuffer_copyout(in, query, 2) < 2)
			return;
		n = (size_t)query[0] << 8 | query[1];
		if (n > DNS_MESSAGE_MAX) {
			proxy_cut(p, VERDICT_BAD, "the DNS query is larger than allowed");
			return;
		}
		if (evbuffer_get_length(in) < 2 + n)
			return;
		evbuffer_remove(in, query, 2 + n);
		answer = dns_answer(p->way, query + 2, n, out + 2);
		if (!answer) {
			proxy_cut(p, VERDICT_BAD, "not a DNS query");
			return;
		}
		out[0] = (uint8_t)(answer >> 8);
		out[1] = (uint8_t)answer;
		evbuffer_add(proxy_out(p->near), out, 2 + answer);
	}
	proxy_cut(p, VERDICT_BAD, "the box does not read the answers to its DNS queries");
}

static int dns_refuse(struct proxy *p, int status, const char *text)
{
	(void)p;
	(void)status;
	(void)text;
	return -1;
}

const struct proxy_protocol proxy_dns = { .ask = dns_ask, .refuse = dns_refuse };
