/* The share of a gateway of a team's boxes: what a request names is never less than what the gateway uses until the
 * answer, and an answer to an earlier limit is not used. The test is the cluster process. */
#include "gateway/shares.h"
#include "coordinator/cluster_client.h"
#include "outbound/json_pipe.h"
#include "tap.h"

#include <string.h>
#include <sys/socket.h>

static struct err e;
static struct loop loop;
static struct cluster_client *client;
static struct json_pipe process;
static struct timer limit;
static struct gateway_shares *shares;
static struct shares_ask ask;
static unsigned queries;
static long long asked, wanted,
	kept; /* of the last query: its number, and the parameters $4 and $6 */
static int result, timed_out;

enum { NO_RESULT = -9 };

static void need_line(void *user)
{
	(void)user;
}

static void process_message(struct json_pipe *p, const json_t *m)
{
	const json_t *params = json_object_get(json_object_get(m, "query"), "params");

	(void)p;
	asked = json_integer_value(json_object_get(m, "ask"));
	wanted = atoll(json_string_value(json_array_get(params, 3)));
	kept = atoll(json_string_value(json_array_get(params, 5)));
	queries++;
	loop_stop(&loop);
}

static void process_gone(struct json_pipe *p)
{
	json_pipe_fini(p);
}

static void too_late(struct timer *t)
{
	(void)t;
	timed_out = 1;
	loop_stop(&loop);
}

static void ask_done(struct shares_ask *a, int what)
{
	(void)a;
	result = what;
	loop_stop(&loop);
}

static int take(uint64_t of)
{
	ask = (struct shares_ask){ .done = ask_done };
	result = NO_RESULT;
	return shares_take(shares, &ask, "team", of);
}

/* Without a wait: one that would wait is cancelled. */
static int take_now(uint64_t of)
{
	int rc = take(of);

	shares_cancel(&ask);
	return rc;
}

static int next_query(void)
{
	unsigned before = queries;

	timed_out = 0;
	timer_set(&limit, 20000);
	while (queries == before && !timed_out) {
		loop.stopping = 0;
		loop_run(&loop);
	}
	loop.stopping = 0;
	return queries > before;
}

static void turn_ended(struct timer *t)
{
	(void)t;
	loop_stop(&loop);
}

/* The database has stored this amount. */
static void answer(int amount)
{
	struct timer turn;
	char text[16];

	snprintf(text, sizeof(text), "%d", amount);
	json_pipe_send(&process, json_pack("{s:I, s:[[], [], [], [[s]]]}", "done",
					   (json_int_t)asked, "results", text));
	timer_init(&turn, &loop, turn_ended);
	timer_set(&turn, 20);
	loop_run(&loop);
	loop.stopping = 0;
	timer_fini(&turn);
}

static int begin(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    loop_init(&loop, &e) < 0 || cluster_client_new(&client, &loop, need_line, NULL, &e) < 0)
		return 0;
	process = (struct json_pipe){ .message = process_message, .gone = process_gone };
	json_pipe_init(&process, &loop, pair[0]);
	cluster_client_connect(client, pair[1]);
	timer_init(&limit, &loop, too_late);
	return gateway_shares_new(&shares, &loop, client, 1, &e) == 0;
}

static void end(void)
{
	gateway_shares_free(shares);
	cluster_client_free(client);
	json_pipe_fini(&process);
	timer_fini(&limit);
	loop_fini(&loop);
}

TEST(the_database_keeps_what_is_used_before_its_answer)
{
	int used = 0;

	if (!begin())
		abort();
	CHECK_INT(take(100), 0);
	CHECK(next_query());
	CHECK_INT(kept, 0);
	answer(10);
	CHECK_INT(result, 1);
	used++;
	while (used < 6 && take_now(100))
		used++;
	CHECK_INT(used, 6); /* more than half: the next request */
	CHECK(next_query());
	CHECK(wanted > 10);
	while (take_now(100)) /* while it is in progress */
		used++;
	CHECK_INT(used, 10);
	/* The database may give everything else to other gateways at once. */
	CHECK(used <= kept);
	end();
}

TEST(an_answer_to_a_higher_limit_is_not_used)
{
	if (!begin())
		abort();
	CHECK_INT(take(100), 0);
	CHECK(next_query());
	answer(2);
	CHECK_INT(result, 1);
	CHECK(next_query());
	/* The limit is lowered while the request is in progress; its answer has the one before. */
	CHECK_INT(take_now(1), 0);
	answer(20);
	CHECK_INT(take(1), 0);
	CHECK_INT(result, NO_RESULT);
	/* The database is asked again, and has no more. */
	CHECK(next_query());
	CHECK(kept <= 1);
	answer(1);
	CHECK_INT(result, 0);
	end();
}
