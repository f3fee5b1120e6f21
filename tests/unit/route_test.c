/* route_test.c - the route of a path, and paths without a route. */
#include "http/route.h"
#include "tap.h"

#include <time.h>

static const struct route table[] = {
	{ "GET", "/", "root" },
	{ "GET", "/v1/boxes", "list" },
	{ "POST", "/v1/boxes", "create" },
	{ "GET", "/v1/boxes/{box}", "show" },
	{ "DELETE", "/v1/boxes/{box}", "kill" },
	{ "GET", "/v1/boxes/stats", "stats" },
	{ "GET", "/v1/{kind}/first", "first" },
	{ "POST", "/v1/boxes/{box}/execs", "run" },
	{ "GET", "/v1/boxes/{box}/execs/{exec}", "exec" },
	{ "GET", "/v1/boxes/{box}/files/{a}/{b}/{c}", "deep" },
};
enum { COUNT = sizeof(table) / sizeof(table[0]) };

static struct route_match m;

static int find(const char *method, const char *path)
{
	return route_find(table, COUNT, method, path, &m);
}

static const char *found(const char *method, const char *path)
{
	int status = find(method, path);

	return status == 0     ? m.route->target
	       : status == 404 ? "404"
	       : status == 405 ? "405"
			       : "4xx";
}

TEST(a_path_finds_its_route)
{
	CHECK_STR(found("GET", "/"), "root");
	CHECK_STR(found("GET", "/v1/boxes"), "list");
	CHECK_STR(found("POST", "/v1/boxes"), "create");
	CHECK_STR(found("GET", "/v1/boxes/abc"), "show");
	CHECK_STR(found("DELETE", "/v1/boxes/abc"), "kill");
	CHECK_STR(found("POST", "/v1/boxes/abc/execs"), "run");
	CHECK_STR(found("GET", "/v1/boxes/abc/execs/7"), "exec");
}

TEST(parameters_come_in_the_order_of_the_pattern)
{
	CHECK_INT(find("GET", "/v1/boxes/abc/execs/7"), 0);
	CHECK_INT(m.nparams, 2);
	CHECK_STR(m.params[0], "abc");
	CHECK_STR(m.params[1], "7");
	CHECK_INT(find("GET", "/v1/boxes/x/files/1/2/3"), 0);
	CHECK_INT(m.nparams, 4);
	CHECK_STR(m.params[3], "3");
	CHECK_INT(find("GET", "/"), 0);
	CHECK_INT(m.nparams, 0);
}

TEST(literal_segments_take_precedence_over_parameters)
{
	CHECK_STR(found("GET", "/v1/boxes/stats"), "stats");
	CHECK_STR(found("DELETE", "/v1/boxes/stats"), "kill");
	CHECK_STR(m.params[0], "stats");
	CHECK_STR(found("GET", "/v1/boxes/first"),
		  "show"); /* the leftmost literal segment decides */
	CHECK_STR(found("GET", "/v1/runs/first"), "first");
}

TEST(one_trailing_slash_is_ignored)
{
	CHECK_STR(found("GET", "/v1/boxes/"), "list");
	CHECK_STR(found("GET", "/v1/boxes/a/"), "show");
	CHECK_INT(find("GET", "/nowhere/at/all/"), 404);
}

TEST(an_encoded_slash_is_no_separator)
{
	CHECK_INT(find("GET", "/v1%2fboxes"), 404);
	CHECK_INT(find("GET", "/v1%2Fboxes/a"), 404);
}

TEST(an_encoded_slash_in_a_parameter_is_decoded)
{
	CHECK_STR(found("GET", "/v1/boxes/a%2Fb"), "show");
	CHECK_STR(m.params[0], "a/b");
	CHECK_STR(found("GET", "/v1/boxes/a%2fexecs%2f7"), "show");
	CHECK_STR(found("GET", "/v1/box%65s"), "list");
	CHECK_STR(found("GET", "/v1/boxes/%7Bbox%7D"), "show");
	CHECK_STR(m.params[0], "{box}");
	CHECK_STR(found("GET", "/v1/boxes/%C3%A9+"), "show");
	CHECK_STR(m.params[0], "\xc3\xa9+"); /* + is a + here */
}

TEST(dot_segments_and_empty_segments_are_rejected)
{
	static const char *const bad[] = {
		"",
		"v1/boxes",
		"//",
		"/v1//boxes",
		"/v1/boxes//",
		"/v1/./boxes",
		"/v1/boxes/..",
		"/v1/%2e/boxes",
		"/v1/boxes/%2E.",
		"/v1/boxes/.%2e",
		"/%00",
		"/v1/boxes/a%00b",
		"/v1/boxes/a%",
		"/v1/boxes/a%4",
		"/v1/boxes/%zz",
		"/../..",
		"/v1/boxes/%",
		"/nowhere/at/all//",
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(find("GET", bad[i]), 400);
	CHECK_INT(find("GET", "/v1/boxes/..."), 0); /* an ordinary name */
}

TEST(an_unknown_path_is_404)
{
	static const char *const gone[] = {
		"/v1",
		"/v2/boxes",
		"/v1/boxe",
		"/v1/boxess",
		"/v1/boxes/a/b",
		"/v1/boxes/a/execs/7/8",
		"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18",
		"/V1/boxes",
	};

	for (unsigned i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		CHECK_INT(find("GET", gone[i]), 404);
	CHECK_INT(route_find(table, 0, "GET", "/", &m), 404);
}

TEST(another_method_is_405_with_the_allowed_methods)
{
	CHECK_INT(find("PUT", "/v1/boxes"), 405);
	CHECK_STR(m.allow, "GET, HEAD, POST");
	CHECK_INT(find("POST", "/v1/boxes/a"), 405);
	CHECK_STR(m.allow, "GET, HEAD, DELETE");
	CHECK_INT(find("GET", "/v1/boxes/a/execs"), 405);
	CHECK_STR(m.allow, "POST");
	CHECK_INT(find("PUT", "/v1/boxes/stats"), 405);
	CHECK_STR(m.allow, "GET, HEAD, DELETE");
	CHECK_INT(find("get", "/"), 405);
}

TEST(head_uses_the_route_of_get)
{
	CHECK_STR(found("HEAD", "/v1/boxes"), "list");
	CHECK_INT(find("HEAD", "/v1/boxes/a/execs"), 405);
}

TEST(a_parameter_or_a_path_too_long_is_414)
{
	char path[4000];

	snprintf(path, sizeof(path), "/v1/boxes/%0255d", 0);
	CHECK_INT(find("GET", path), 0);
	snprintf(path, sizeof(path), "/v1/boxes/%0256d", 0);
	CHECK_INT(find("GET", path), 414);
	snprintf(path, sizeof(path), "/v1/boxes/%03000d", 0);
	CHECK_INT(find("GET", path), 414);
}

TEST(a_lookup_in_a_hundred_routes_takes_microseconds)
{
	static struct route many[100];
	static char patterns[100][64];
	struct timespec a, b;
	double us;

	for (unsigned i = 0; i < 100; i++) {
		snprintf(patterns[i], sizeof(patterns[i]), "/v1/boxes/{box}/part%u/{id}", i);
		many[i] = (struct route){ "GET", patterns[i], NULL };
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a); /* independent of the load of the machine */
	for (unsigned i = 0; i < 10000; i++)
		CHECK_INT(route_find(many, 100, "GET", "/v1/boxes/abcdefghijkl/part99/7", &m), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	us = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3 / 10000;
	printf("# %.2f us\n", us);
	CHECK(us < 100); /* a tenth of that here; sanitizers and busy machines also run this */
}
