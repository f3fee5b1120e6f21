/* site_test.c - names that are one site for a browser. */
#include "base/site.h"
#include "tap.h"

#include <string.h>

static int shared(const char *host, const char *domain)
{
	return site_is_shared(host, site_host_len(host), domain);
}

TEST(names_below_one_registered_domain_share_a_site)
{
	CHECK(shared("box.example.org", "box.example.org"));
	CHECK(shared("ui.example.org:443", "*.box.example.org"));
	CHECK(shared("EXAMPLE.org", "box.example.org"));
	CHECK(shared("a.example.co.uk", "b.example.co.uk"));
	CHECK(shared("box.localhost", "box.localhost"));
}

TEST(other_domains_addresses_and_localhost_are_sites_of_their_own)
{
	CHECK(!shared("ui.example.org", "box.example.net"));
	CHECK(!shared("one.co.uk", "two.co.uk"));
	CHECK(!shared("localhost:7070", "localhost"));
	CHECK(!shared("ui.localhost", "localhost"));
	CHECK(!shared("localhost", "box.localhost"));
	CHECK(!shared("127.0.0.1:80", "0.0.1"));
	CHECK(!shared("[::1]:80", "box.example.org"));
	CHECK(!shared("", "box.example.org"));
	CHECK(!shared("org", "org"));
	CHECK(!shared("box.example.org", ""));
}
