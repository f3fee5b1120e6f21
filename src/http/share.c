/* share.c - see share.h. */
#include "http/share.h"
#include "base/cleanup.h"
#include "http/conn.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

static void ring_init(struct ring *r)
{
	r->next = r->prev = r;
}

static void ring_add_last(struct ring *list, struct ring *member)
{
	member->prev = list->prev;
	member->next = list;
	list->prev->next = member;
	list->prev = member;
}

static void ring_remove(struct ring *member)
{
	if (!member->next)
		return;
	member->prev->next = member->next;
	member->next->prev = member->prev;
	member->next = member->prev = NULL;
}

void shares_init(struct shares *all)
{
	for (unsigned i = 0; i < SHARE_LISTS; i++)
		ring_init(&all->lists[i]);
	/* Without random bytes a client could choose addresses that share a bucket; that is
	 * slower, not wrong. */
	if (getrandom(&all->seed, sizeof(all->seed), GRND_NONBLOCK) != sizeof(all->seed))
		all->seed = (uint64_t)(uintptr_t)all;
}

void share_key(const struct sockaddr_storage *from, int is_unix, uint32_t uid, uint8_t out[16])
{
	const struct sockaddr_in *four = (const void *)from;
	const struct sockaddr_in6 *six = (const void *)from;

	memset(out, 0, 16);
	if (is_unix) {
		out[0] = 'u';
		memcpy(out + 4, &uid, sizeof(uid));
	} else if (from->ss_family == AF_INET) {
		out[0] = '4';
		memcpy(out + 4, &four->sin_addr, 4);
	} else if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		out[0] = '4';
		memcpy(out + 4, six->sin6_addr.s6_addr + 12, 4);
	} else if (from->ss_family == AF_INET6) { /* one client usually has a whole /64 */
		out[0] = '6';
		memcpy(out + 4, six->sin6_addr.s6_addr, 8);
	}
}

static unsigned share_bucket(const struct shares *all, const uint8_t key[16])
{
	uint64_t words[2], h = all->seed;

	memcpy(words, key, sizeof(words));
	for (unsigned i = 0; i < 2; i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return (unsigned)(h >> 32) % SHARE_BUCKETS;
}

struct share *share_find(const struct shares *all, const uint8_t key[16])
{
	struct share *s = all->buckets[share_bucket(all, key)];

	while (s && memcmp(s->key, key, 16) != 0)
		s = s->next;
	return s;
}

static struct share *share_new(struct shares *all, const uint8_t key[16])
{
	struct share *s = calloc(1, sizeof(*s)), **bucket = &all->buckets[share_bucket(all, key)];

	if (!s)
		abort();
	memcpy(s->key, key, 16);
	for (unsigned i = 0; i < SHARE_LISTS; i++)
		ring_init(&s->lists[i]);
	s->next = *bucket;
	s->link = bucket;
	if (s->next)
		s->next->link = &s->next;
	*bucket = s;
	return s;
}

static void share_list(struct shares *all, struct http_conn *c, unsigned list)
{
	ring_add_last(&all->lists[list], &c->in_server);
	ring_add_last(&c->share->lists[list], &c->in_share);
}

void share_join(struct shares *all, struct http_conn *c, const uint8_t key[16])
{
	c->share = share_find(all, key);
	if (!c->share)
		c->share = share_new(all, key);
	c->share->open++;
	share_list(all, c, SHARE_FRESH);
}

void share_busy(struct http_conn *c)
{
	ring_remove(&c->in_server);
	ring_remove(&c->in_share);
}

void share_idle(struct shares *all, struct http_conn *c)
{
	share_busy(c);
	if (c->share)
		share_list(all, c, SHARE_KEPT);
}

void share_leave(struct http_conn *c)
{
	struct share *s = c->share;

	share_busy(c);
	c->share = NULL;
	if (!s || --s->open > 0)
		return;
	loop_budget_forget(c->req.server->loop, &s->budget);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	free(s);
}

struct http_conn *share_victim(const struct shares *all, const struct share *of)
{
	for (unsigned i = 0; i < SHARE_LISTS; i++) {
		const struct ring *list = of ? &of->lists[i] : &all->lists[i];

		if (list->next == list)
			continue;
		return of ? loop_owner(list->next, struct http_conn, in_share)
			  : loop_owner(list->next, struct http_conn, in_server);
	}
	return NULL;
}
