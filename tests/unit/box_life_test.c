/* box_life_test.c - the life of a box and of an exec, against a fake keeper and a fake init: each message
 * in its order, out of order, twice, and not at all. */
#include "fake_fleet.h"

#include <errno.h>
#include <signal.h>

static struct fake_peer init;
static struct err e;

/* The state of a box in the store; -1: no row. */
static int row_state(const char *id, char cause[STORE_WORD + 1])
{
	struct store_box row = { 0 };
	int state;

	if (store_box_get(fake.store, id, &row, &e) < 0)
		return -1;
	state = (int)row.state;
	snprintf(cause, STORE_WORD + 1, "%s", row.cause);
	store_box_fini(&row);
	return state;
}

static struct box *new_box(const struct box_spec *change)
{
	struct box_spec spec = fake_spec("default");

	init.fd = -1;
	return fake_begin(NULL, NULL) < 0 ? NULL : fake_box(change ? change : &spec, &init);
}

static void end_test(void)
{
	own_close_fd(&init.fd);
	fake_end();
}

/* The keeper reports that the box is destroyed; the fleet then has no entry for it. */
static int destroyed(const char *id)
{
	return fake_reply_counters(WIRE_DESTROYED) == 0 && FAKE_UNTIL(!fleet_find(fake.fleet, id));
}

/* ---- create ---- */

TEST(box_is_in_the_store_before_init_gets_the_first_frame)
{
	struct box_spec spec = fake_spec("default");
	char cause[STORE_WORD + 1];
	struct fake_wait wait;
	struct box *b;

	init.fd = -1;
	CHECK_INT(fake_begin(NULL, NULL), 0);
	snprintf(spec.row.name, sizeof(spec.row.name), "web");
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait), &b, &e), 0);
	CHECK_INT(b->state, BOX_MAKING);
	CHECK_INT(fleet_team_boxes(fake.fleet, "default"), 1);
	CHECK(!fleet_named(fake.fleet, "default", "web"));
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_STR(fake.keeper.got.create.template, "base");
	CHECK_INT(fake_reply_box(&init, id_of(7)), 0);
	CHECK_INT(fake_next(&init), WIRE_FORGET);
	CHECK_INT(row_state(id_of(7), cause), STORE_BOX_RUNNING);
	CHECK_INT(wait.calls, 1);
	CHECK_INT(wait.failed, 0);
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK(fleet_named(fake.fleet, "default", "web") == b);
	CHECK(!fleet_named(fake.fleet, "other", "web"));
	CHECK_INT(fake.fleet->figures.created, 1);
	end_test();
}

TEST(rejected_create_leaves_no_box)
{
	struct box_spec spec = fake_spec("default");
	struct fake_wait wait;
	struct box *b;

	CHECK_INT(fake_begin(NULL, NULL), 0);
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait), &b, &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_LIMIT, 0, "no memory left"), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.why.kind, ERR_LIMIT);
	CHECK_INT(fleet_team_boxes(fake.fleet, "default"), 0);
	CHECK_INT(fake.fleet->figures.create_failed, 1);
	fake_end();
}

TEST(box_without_a_connection_is_an_error)
{
	struct box_spec spec = fake_spec("default");
	struct wire_box answer = { .head = sock_head(WIRE_BOX, 0) };
	struct fake_wait wait;
	struct box *b;

	CHECK_INT(fake_begin(NULL, NULL), 0);
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait), &b, &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	answer.head.ref = fake.keeper.got.head.ref;
	CHECK_INT(fake_send(&fake.keeper, &answer, sizeof(answer), NULL, 0), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.failed, 1);
	CHECK_INT(fleet_team_boxes(fake.fleet, "default"), 0);
	fake_end();
}

/* Two boxes of one name, both requested before either exists: the store accepts the first row. */
TEST(unclaimed_box_is_closed_when_its_row_cannot_be_written)
{
	struct box_spec spec = fake_spec("default");
	struct fake_peer second = { .fd = -1 };
	struct fake_wait wait[2];
	struct box *b;

	init.fd = -1;
	CHECK_INT(fake_begin(NULL, NULL), 0);
	snprintf(spec.row.name, sizeof(spec.row.name), "web");
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait[0]), &b, &e), 0);
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait[1]), &b, &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_INT(fake_reply_box(&init, id_of(1)), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_INT(fake_reply_box(&second, id_of(2)), 0);
	CHECK(FAKE_UNTIL(wait[0].calls && wait[1].calls));
	CHECK_INT(wait[0].failed, 0);
	CHECK_INT(wait[1].why.kind, ERR_CONFLICT);
	CHECK_INT(fake_next(&second), 0); /* closed, without a frame: the box ends by itself */
	own_close_fd(&second.fd);
	end_test();
}

TEST(box_deleted_while_it_is_created_is_killed_when_it_exists)
{
	struct box_spec spec = fake_spec("default");
	struct fake_wait made, ended;
	char cause[STORE_WORD + 1];
	struct box *b;

	init.fd = -1;
	CHECK_INT(fake_begin(NULL, NULL), 0);
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&made), &b, &e), 0);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&ended));
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_INT(fake_reply_box(&init, id_of(3)), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_STR(fake.keeper.got.id.id, id_of(3));
	CHECK_INT(ended.calls, 0);
	CHECK(destroyed(id_of(3)));
	CHECK_INT(made.why.kind, ERR_NOT_FOUND);
	CHECK_INT(ended.calls, 1);
	CHECK_INT(row_state(id_of(3), cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "operator");
	end_test();
}

/* ---- exec ---- */

struct fake_exec {
	struct exec_wait wait;
	struct exec_reader reader;
	struct exec *exec;
	unsigned calls, overs;
	int pid;
	char out[64], id[ID_MAX + 1], cause[STORE_WORD + 1];
	int status;
	uint32_t ref;
};

static void exec_done(struct exec_wait *w, json_t *record)
{
	struct fake_exec *x = loop_owner(w, struct fake_exec, wait);

	x->calls++;
	snprintf(x->cause, sizeof(x->cause), "%s",
		 json_string_value(json_object_get(record, "cause")));
	x->status = (int)json_integer_value(json_object_get(record, "status"));
}

static void reader_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			  const char *bytes, size_t n)
{
	struct fake_exec *x = loop_owner(t, struct fake_exec, reader);

	(void)stream;
	if (offset + n < sizeof(x->out))
		memcpy(x->out + offset, bytes, n);
}

static void reader_over(struct exec_reader *t, json_t *record, const struct err *why)
{
	(void)record;
	(void)why;
	loop_owner(t, struct fake_exec, reader)->overs++;
}

static void reader_started(struct exec_reader *t, int pid)
{
	loop_owner(t, struct fake_exec, reader)->pid = pid;
}

static const struct exec_reader_events reader_events = { .output = reader_output,
							 .over = reader_over,
							 .started = reader_started };

/* Starts /bin/true and waits for its START at init. */
static int start_exec(struct box *b, struct fake_exec *x)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const struct exec_spec spec = { .argv = argv };

	*x = (struct fake_exec){ .wait.done = exec_done };
	exec_reader_init(&x->reader, fake.fleet, &reader_events);
	if (exec_launch(b, &spec, &x->reader, &x->exec, &e) < 0)
		return -1;
	snprintf(x->id, sizeof(x->id), "%s", x->exec->id);
	exec_await(x->exec, &x->wait);
	x->ref = x->exec->ref;
	return fake_next(&init) == WIRE_START && init.got.head.ref == x->ref ? 0 : -1;
}

/* The end of an exec in the store; "" while it runs. */
static const char *stored_cause(const char *id)
{
	static char cause[STORE_WORD + 1];
	struct store_run row = { 0 };

	run_writer_flush(&fake.fleet->run_writer);
	if (store_run_get(fake.store, id, &row, &e) < 0)
		return "no row";
	snprintf(cause, sizeof(cause), "%s", row.cause);
	store_run_fini(&row);
	return cause;
}

/* The server requests counters from the keeper, which answers, and the exec has a record. */
static int counted(struct fake_exec *x, uint64_t oom_kills)
{
	struct wire_counters f;

	if (fake_next(&fake.keeper) != WIRE_COUNTERS)
		return 0;
	f = fake_counters(WIRE_COUNTERS_REPLY, fake.keeper.got.head.ref);
	f.oom_kills = oom_kills;
	return fake_send(&fake.keeper, &f, sizeof(f), NULL, 0) == 0 && FAKE_UNTIL(x->calls);
}

TEST(exec_runs_from_start_to_its_record)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_STR(stored_cause(x.id), ""); /* a row before START, and without an end */
	CHECK_INT(fake_say_started(&init, x.ref, 42), 0);
	CHECK_INT(fake_say_output(&init, x.ref, 0, "hel"), 0);
	CHECK_INT(fake_say_output(&init, x.ref, 3, "lo"), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 3), 0);
	CHECK(counted(&x, 0));
	CHECK_INT(x.pid, 42);
	CHECK_STR(x.out, "hello");
	CHECK_STR(x.cause, "exit");
	CHECK_INT(x.status, 3);
	CHECK_STR(stored_cause(x.id), "exit");
	CHECK(!exec_lookup(b, x.id));
	CHECK_INT(b->nruns, 0);
	CHECK_INT(x.overs, 1);
	CHECK_INT(b->state, BOX_RUNNING);
	end_test();
}

TEST(exec_that_init_rejects_ends_with_a_record)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_INT(fake_reply_error(&init, ERR_LIMIT, EAGAIN, "too many execs"), 0);
	CHECK(FAKE_UNTIL(x.calls));
	CHECK_STR(x.cause, "host");
	CHECK_INT(x.overs, 1);
	CHECK_INT(b->nruns, 0);
	CHECK_STR(stored_cause(x.id), "host");
	end_test();
}

TEST(exit_without_started_and_messages_after_exit_are_accepted)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 0), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 9), 0);
	CHECK_INT(fake_say_started(&init, x.ref, 42), 0);
	CHECK_INT(fake_say_output(&init, x.ref, 0, "late"), 0);
	CHECK(counted(&x, 0));
	CHECK(fake_is_silent(&fake.keeper)); /* one request for counters, not two */
	CHECK_INT(x.status, 0);
	CHECK_INT(x.calls, 1);
	CHECK_INT(x.overs, 1);
	CHECK_STR(x.out, "");
	CHECK_INT(b->state, BOX_RUNNING);
	end_test();
}

TEST(signal_reaches_init_and_the_cause_is_signal)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	exec_send_signal(x.exec, SIGKILL);
	CHECK_INT(fake_next(&init), WIRE_SIGNAL);
	CHECK_INT(init.got.signal.signo, SIGKILL);
	CHECK_INT(init.got.head.ref, x.ref);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_SIGNAL, SIGKILL), 0);
	CHECK(counted(&x, 0));
	CHECK_STR(x.cause, "signal");
	CHECK_INT(x.status, 128 + SIGKILL);
	end_test();
}

TEST(wall_limit_is_a_cause_of_its_own)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_WALL, SIGKILL), 0);
	CHECK(counted(&x, 0));
	CHECK_STR(x.cause, "wall");
	CHECK_INT(x.status, 124);
	end_test();
}

TEST(kill_for_memory_explains_one_exec_only)
{
	struct box *b = new_box(NULL);
	struct fake_exec one, two;

	CHECK(b);
	CHECK_INT(start_exec(b, &one), 0);
	CHECK_INT(start_exec(b, &two), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_COUNTERS); /* CPU time before the second one */
	CHECK_INT(fake_reply_counters(WIRE_COUNTERS_REPLY), 0);
	CHECK_INT(fake_say_exit(&init, one.ref, WIRE_WHY_SIGNAL, SIGKILL), 0);
	CHECK(counted(&one, 1));
	CHECK_INT(fake_say_exit(&init, two.ref, WIRE_WHY_SIGNAL, SIGKILL), 0);
	CHECK(counted(&two, 1));
	CHECK_STR(one.cause, "memory");
	CHECK_STR(two.cause, "signal");
	end_test();
}

TEST(exec_without_counters_still_gets_its_record)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 0), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_COUNTERS);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_SYS, EIO, "cannot read the cgroup"), 0);
	CHECK(FAKE_UNTIL(x.calls));
	CHECK_STR(x.cause, "exit");
	end_test();
}

/* ---- the end of a box ---- */

TEST(deleted_box_ends_its_exec_and_is_killed_once)
{
	struct box *b = new_box(NULL);
	struct fake_wait one, two;
	char cause[STORE_WORD + 1];
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&one));
	box_end(b, CAUSE_IDLE, fake_waiter(&two));
	CHECK_INT(b->state, BOX_ENDING);
	CHECK_INT(fake.fleet->ending, 1);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(fake.keeper.got.head.flags, WIRE_KILL_FIGURES);
	CHECK(fake_is_silent(&fake.keeper));
	CHECK_INT(row_state(init.id, cause),
		  STORE_BOX_RUNNING); /* the intention is written, the end is not */
	CHECK_STR(cause, "operator");
	CHECK_INT(fake_reply_counters(WIRE_DESTROYED), 0);
	CHECK_INT(fake_reply_counters(WIRE_DESTROYED),
		  0); /* twice: the second frame has no receiver */
	CHECK(FAKE_UNTIL(one.calls && two.calls));
	CHECK(fake_is_silent(&fake.keeper));
	CHECK_INT(one.calls + two.calls, 2);
	CHECK_STR(x.cause, "operator");
	CHECK_INT(x.calls, 1);
	CHECK_STR(stored_cause(x.id), "operator");
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "operator");
	CHECK_INT(fake.fleet->ending, 0);
	CHECK_INT(fake.fleet->count, 0);
	CHECK_INT(fake.fleet->figures.boxes_ended[CAUSE_OPERATOR], 1);
	CHECK_INT(fake_next(&init), 0);
	end_test();
}

TEST(box_that_the_keeper_no_longer_has_is_ended_too)
{
	struct box *b = new_box(NULL);
	struct fake_wait wait;
	char cause[STORE_WORD + 1];

	CHECK(b);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&wait));
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_NOT_FOUND, 0, "no such box"), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.failed, 0);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	end_test();
}

/* EXIT has arrived and the counters are requested, but DESTROYED overtakes their answer. */
TEST(exec_ends_once_when_its_box_ends_before_its_counters_arrive)
{
	struct box *b = new_box(NULL);
	struct wire_counters late;
	struct fake_wait wait;
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 0), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_COUNTERS);
	late = fake_counters(WIRE_COUNTERS_REPLY, fake.keeper.got.head.ref);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&wait));
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK(destroyed(init.id));
	CHECK_INT(fake_send(&fake.keeper, &late, sizeof(late), NULL, 0), 0);
	CHECK(fake_is_silent(&fake.keeper));
	CHECK_INT(x.calls, 1);
	CHECK_STR(x.cause, "exit");
	CHECK_INT(wait.calls, 1);
	end_test();
}

TEST(cancelled_waiter_is_not_called)
{
	struct box *b = new_box(NULL);
	struct fake_wait wait;

	CHECK(b);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&wait));
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	box_wait_cancel(&wait.wait);
	CHECK(destroyed(init.id));
	CHECK_INT(wait.calls, 0);
	end_test();
}

TEST(lost_init_ends_the_box_with_the_cause_that_the_kernel_has)
{
	static const struct {
		uint64_t oom_kills;
		uint32_t by_operator, over_cpu;
		const char *cause;
	} rows[] = { { 0, 0, 0, "host" },
		     { 1, 0, 0, "memory" },
		     { 0, 1, 0, "operator" },
		     { 0, WIRE_ENDED_BY_DEADLINE, 0, "lifetime" },
		     { 0, 0, 1, "cpu" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct box *b = new_box(NULL);
		char cause[STORE_WORD + 1];
		struct wire_counters f;
		struct fake_exec x;

		CHECK(b);
		CHECK_INT(start_exec(b, &x), 0);
		own_close_fd(&init.fd);
		CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
		CHECK_INT(b->state, BOX_ENDING);
		f = fake_counters(WIRE_DESTROYED, fake.keeper.got.head.ref);
		f.oom_kills = rows[i].oom_kills;
		f.by_operator = rows[i].by_operator;
		f.over_cpu = rows[i].over_cpu;
		CHECK_INT(fake_send(&fake.keeper, &f, sizeof(f), NULL, 0), 0);
		CHECK(FAKE_UNTIL(!fleet_find(fake.fleet, init.id)));
		CHECK_INT(x.calls, 1);
		CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
		CHECK_STR(cause, rows[i].cause);
		end_test();
	}
}

TEST(init_lost_while_the_box_is_deleted_changes_nothing)
{
	struct box *b = new_box(NULL);
	char cause[STORE_WORD + 1];
	struct fake_wait wait;

	CHECK(b);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&wait));
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	own_close_fd(&init.fd);
	CHECK(fake_is_silent(&fake.keeper));
	CHECK(destroyed(init.id));
	CHECK_INT(wait.calls, 1);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "operator");
	end_test();
}

/* A box that was created for one run, and whose run is done: its init closes the connection before
 * DESTROYED arrives. */
TEST(planned_end_keeps_its_cause_when_init_closes_first)
{
	struct box *b = new_box(NULL);
	char cause[STORE_WORD + 1];

	CHECK(b);
	box_end(b, CAUSE_EXIT, NULL);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	own_close_fd(&init.fd);
	CHECK(fake_is_silent(&fake.keeper));
	CHECK(destroyed(init.id));
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "exit");
	end_test();
}

/* ---- the keeper is lost ---- */

TEST(requests_are_repeated_to_the_next_keeper)
{
	struct box_spec spec = fake_spec("default");
	struct fake_wait wait;
	struct box *b;

	init.fd = -1;
	CHECK_INT(fake_begin(NULL, NULL), 0);
	CHECK_INT(box_create(fake.fleet, &spec, fake_waiter(&wait), &b, &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	own_close_fd(&fake.keeper.fd);
	CHECK(FAKE_UNTIL(fake.keepers_needed));
	CHECK_INT(fake.keepers_needed, 1);
	CHECK_INT(wait.calls, 0);
	CHECK_INT(fake_connect_keeper(), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_CREATE);
	CHECK_INT(fake_reply_box(&init, id_of(5)), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.failed, 0);
	end_test();
}

TEST(running_box_and_its_exec_survive_the_keeper)
{
	struct box *b = new_box(NULL);
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(start_exec(b, &x), 0);
	own_close_fd(&fake.keeper.fd);
	CHECK(FAKE_UNTIL(fake.keepers_needed));
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK_INT(fake_say_exit(&init, x.ref, WIRE_WHY_EXIT, 0), 0);
	CHECK(FAKE_UNTIL(x.exec->over));
	CHECK_INT(x.calls, 0); /* waits for the counters of the next keeper */
	CHECK_INT(fake_connect_keeper(), 0);
	CHECK(counted(&x, 0));
	CHECK_STR(x.cause, "exit");
	end_test();
}

/* ---- timeouts ---- */

/* A box whose lifetime of 1 ms ends at once. */
static struct box *short_box(enum store_on_timeout on_timeout, uint64_t retention_ms)
{
	struct box_spec spec = fake_spec("default");

	spec.row.lifetime_ms = 1;
	spec.row.on_timeout = on_timeout;
	spec.row.retention_ms = retention_ms;
	return new_box(&spec);
}

TEST(box_is_killed_at_the_end_of_its_lifetime)
{
	char cause[STORE_WORD + 1];

	CHECK(short_box(STORE_TIMEOUT_KILL, 0));
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK(destroyed(init.id));
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "lifetime");
	end_test();
}

TEST(box_is_stopped_at_the_end_of_its_lifetime_and_runs_again_when_used)
{
	struct box *b = short_box(STORE_TIMEOUT_KEEP, STORE_FOREVER);
	char cause[STORE_WORD + 1];
	struct fake_exec x;

	CHECK(b);
	CHECK_INT(fake_next(&init), WIRE_STOP);
	CHECK_INT(fake_reply(&init, WIRE_DONE), 0);
	CHECK_INT(b->state, BOX_STOPPED);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_STOPPED);
	CHECK_INT(start_exec(b, &x), -1);
	CHECK_INT(e.kind, ERR_CONFLICT);
	b->row.lifetime_ms = 0;
	b->row.ends_ns = 0;
	box_wake(b);
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_RUNNING);
	CHECK_INT(start_exec(b, &x), 0);
	end_test();
}

TEST(stopped_box_is_deleted_at_the_end_of_its_retention)
{
	char cause[STORE_WORD + 1];

	CHECK(short_box(STORE_TIMEOUT_KEEP, 1));
	CHECK_INT(fake_next(&init), WIRE_STOP);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK(destroyed(init.id));
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "lifetime");
	end_test();
}

TEST(box_is_paused_at_the_end_of_its_lifetime)
{
	struct box *b = short_box(STORE_TIMEOUT_PAUSE, STORE_FOREVER);
	char cause[STORE_WORD + 1];

	CHECK(b);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_PAUSED); /* written before the freeze */
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK(FAKE_UNTIL(!b->asking));
	CHECK_INT(b->state, BOX_PAUSED);
	end_test();
}

/* Idle: the server requests unread output from its init, then kills the box. */
TEST(idle_box_is_killed_after_its_init_reported_no_output)
{
	struct box_spec spec = fake_spec("default");
	char cause[STORE_WORD + 1];

	spec.row.idle_ms = 1;
	CHECK(new_box(&spec));
	CHECK_INT(fake_next(&init), WIRE_EXECS);
	CHECK_INT(fake_reply(&init, WIRE_DONE), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK(destroyed(init.id));
	CHECK_INT(row_state(init.id, cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "idle");
	end_test();
}

TEST(box_whose_program_writes_output_is_not_idle)
{
	struct box_spec spec = fake_spec("default");
	struct wire_exec row = { .head = sock_head(WIRE_EXEC, 1), .tip = { 5 } };
	struct box *b;

	spec.row.idle_ms = 1;
	b = new_box(&spec);
	CHECK(b);
	for (unsigned i = 0; i < 3; i++, row.tip[0] += 5) {
		CHECK_INT(fake_next(&init), WIRE_EXECS);
		CHECK_INT(fake_send(&init, &row, sizeof(row), NULL, 0), 0);
		CHECK_INT(fake_reply(&init, WIRE_DONE), 0);
	}
	CHECK_INT(b->state, BOX_RUNNING);
	end_test();
}

/* ---- pause and resume ---- */

static int paused_box(struct box **out)
{
	struct fake_wait wait;

	*out = new_box(NULL);
	if (!*out || box_pause(*out, 1, fake_waiter(&wait), &e) < 0 ||
	    fake_next(&fake.keeper) != WIRE_FREEZE || fake.keeper.got.head.flags ||
	    fake_reply(&fake.keeper, WIRE_DONE) < 0 || !FAKE_UNTIL(wait.calls))
		return -1;
	return wait.failed ? -1 : 0;
}

TEST(paused_box_runs_nothing_until_it_is_resumed)
{
	char cause[STORE_WORD + 1];
	struct fake_wait one, two;
	struct fake_exec x;
	struct box *b;

	CHECK_INT(paused_box(&b), 0);
	CHECK_INT(b->state, BOX_PAUSED);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_PAUSED);
	CHECK_INT(start_exec(b, &x), -1);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK_INT(box_pause(b, 1, NULL, &e), -1);
	CHECK_INT(box_resume(b, 0, fake_waiter(&one), &e), 0);
	CHECK_INT(box_resume(b, 0, fake_waiter(&two), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake.keeper.got.head.flags, WIRE_FREEZE_OFF);
	CHECK(fake_is_silent(&fake.keeper));                    /* one request for both */
	CHECK_INT(row_state(init.id, cause), STORE_BOX_PAUSED); /* until the thaw is done */
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK(FAKE_UNTIL(one.calls && two.calls));
	CHECK_INT(one.failed + two.failed, 0);
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_RUNNING);
	CHECK_INT(box_resume(b, 0, NULL, &e), -1);
	CHECK_INT(e.kind, ERR_CONFLICT);
	CHECK_INT(start_exec(b, &x), 0);
	end_test();
}

TEST(resume_requested_during_the_pause_follows_it)
{
	struct box *b = new_box(NULL);
	struct fake_wait paused, resumed;

	CHECK(b);
	CHECK_INT(box_pause(b, 1, fake_waiter(&paused), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(box_resume(b, 0, fake_waiter(&resumed), &e), 0);
	CHECK(fake_is_silent(&fake.keeper));
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake.keeper.got.head.flags, WIRE_FREEZE_OFF);
	CHECK_INT(paused.calls, 1);
	CHECK_INT(resumed.calls, 0);
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK(FAKE_UNTIL(resumed.calls));
	CHECK_INT(resumed.failed, 0);
	CHECK_INT(b->state, BOX_RUNNING);
	end_test();
}

TEST(box_that_cannot_be_frozen_keeps_running)
{
	struct box *b = new_box(NULL);
	char cause[STORE_WORD + 1];
	struct fake_wait wait;

	CHECK(b);
	CHECK_INT(box_pause(b, 1, fake_waiter(&wait), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_SYS, EBUSY, "not frozen in time"), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.failed, 1);
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_RUNNING);
	end_test();
}

TEST(box_that_cannot_be_thawed_stays_paused)
{
	char cause[STORE_WORD + 1];
	struct fake_wait wait;
	struct box *b;

	CHECK_INT(paused_box(&b), 0);
	CHECK_INT(box_resume(b, 0, fake_waiter(&wait), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_SYS, EBUSY, "not thawed"), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(wait.failed, 1);
	CHECK_INT(b->state, BOX_PAUSED);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_PAUSED);
	end_test();
}

TEST(paused_box_that_no_longer_exists_ends_when_it_is_resumed)
{
	struct fake_wait wait;
	struct box *b;

	CHECK_INT(paused_box(&b), 0);
	CHECK_INT(box_resume(b, 0, fake_waiter(&wait), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_NOT_FOUND, 0, "no such box"), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(wait.calls, 1);
	CHECK(destroyed(init.id));
	end_test();
}

TEST(resume_with_files_only_stops_the_programs_and_runs_again)
{
	char cause[STORE_WORD + 1];
	struct fake_wait wait;
	struct box *b;

	CHECK_INT(paused_box(&b), 0);
	CHECK_INT(box_resume(b, 1, fake_waiter(&wait), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK_INT(fake_next(&init), WIRE_STOP);
	CHECK_INT(wait.calls, 0);
	CHECK_INT(fake_reply(&init, WIRE_DONE), 0);
	CHECK(FAKE_UNTIL(wait.calls));
	CHECK_INT(b->state, BOX_RUNNING);
	CHECK_INT(row_state(init.id, cause), STORE_BOX_RUNNING);
	end_test();
}

TEST(box_deleted_while_it_is_paused_is_killed_and_its_resume_fails)
{
	struct box *b = new_box(NULL);
	struct fake_wait paused, resumed, ended;

	CHECK(b);
	CHECK_INT(box_pause(b, 1, fake_waiter(&paused), &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(box_resume(b, 0, fake_waiter(&resumed), &e), 0);
	box_end(b, CAUSE_OPERATOR, fake_waiter(&ended));
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0); /* of the freeze: cancelled */
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL);
	CHECK_INT(fake_reply_counters(WIRE_DESTROYED), 0);
	CHECK(FAKE_UNTIL(ended.calls));
	CHECK_INT(paused.why.kind, ERR_NOT_FOUND);
	CHECK_INT(resumed.why.kind, ERR_NOT_FOUND);
	CHECK_INT(fake.fleet->count, 0);
	end_test();
}

/* ---- after a restart of the server ---- */

static int stored_box(const char *boot, enum store_box_state state)
{
	struct store_box row = box_of(9);

	init.fd = -1;
	if (fake_begin(NULL, NULL) < 0)
		return -1;
	snprintf(row.boot, sizeof(row.boot), "%s", boot);
	row.state = state;
	if (store_box_insert(fake.store, &row, &e) < 0 || fleet_restore(fake.fleet, &e) < 0)
		return -1;
	/* The first request checks whether the keeper answers. */
	return fake_next(&fake.keeper) == WIRE_INFO ? 0 : -1;
}

TEST(box_of_an_earlier_boot_has_ended)
{
	char cause[STORE_WORD + 1];

	CHECK_INT(stored_box("another boot", STORE_BOX_RUNNING), 0);
	CHECK_INT(row_state(id_of(9), cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "host");
	CHECK_INT(fake.fleet->count, 0);
	CHECK(fake_is_silent(&fake.keeper));
	end_test();
}

TEST(stored_box_is_opened_claimed_and_runs)
{
	CHECK_INT(stored_box(FAKE_BOOT, STORE_BOX_RUNNING), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_OPEN);
	CHECK_INT(fleet_find(fake.fleet, id_of(9))->state, BOX_MAKING);
	CHECK_INT(fake_reply_box(&init, id_of(9)), 0);
	CHECK_INT(fake_next(&init), WIRE_FORGET);
	CHECK_INT(fleet_find(fake.fleet, id_of(9))->state, BOX_RUNNING);
	CHECK_INT(fake.fleet->figures.restored, 1);
	end_test();
}

TEST(paused_box_is_frozen_again_after_a_restart)
{
	CHECK_INT(stored_box(FAKE_BOOT, STORE_BOX_PAUSED), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_FREEZE);
	CHECK_INT(fake.keeper.got.head.flags, 0);
	CHECK_INT(fake_reply(&fake.keeper, WIRE_DONE), 0);
	CHECK(FAKE_UNTIL(fleet_find(fake.fleet, id_of(9))->state == BOX_PAUSED));
	end_test();
}

TEST(stored_box_that_the_keeper_does_not_have_is_ended)
{
	char cause[STORE_WORD + 1];

	CHECK_INT(stored_box(FAKE_BOOT, STORE_BOX_RUNNING), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_OPEN);
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_NOT_FOUND, 0, "no such box"), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_KILL); /* for its last counters */
	CHECK_INT(fake_reply_error(&fake.keeper, ERR_NOT_FOUND, 0, "no such box"), 0);
	CHECK(FAKE_UNTIL(!fleet_find(fake.fleet, id_of(9))));
	CHECK_INT(row_state(id_of(9), cause), STORE_BOX_DELETED);
	CHECK_STR(cause, "host");
	end_test();
}

TEST(running_exec_is_attached_again_after_a_restart)
{
	struct store_run run = { .ref = 77, .started_ns = 1 };
	struct store_box row = box_of(9);

	init.fd = -1;
	CHECK_INT(fake_begin(NULL, NULL), 0);
	snprintf(row.boot, sizeof(row.boot), "%s", FAKE_BOOT);
	snprintf(run.id, sizeof(run.id), "%s", id_of(20));
	snprintf(run.box, sizeof(run.box), "%s", row.id);
	snprintf(run.team, sizeof(run.team), "default");
	CHECK_INT(store_box_insert(fake.store, &row, &e), 0);
	CHECK_INT(store_run_begin(fake.store, &run, &e), 0);
	CHECK_INT(fleet_restore(fake.fleet, &e), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_INFO);
	CHECK_INT(fake_next(&fake.keeper), WIRE_OPEN);
	CHECK_INT(fake_reply_box(&init, row.id), 0);
	CHECK_INT(fake_next(&init), WIRE_FORGET);
	CHECK_INT(fake_next(&init), WIRE_ATTACH);
	CHECK_INT(init.got.head.ref, 77);
	CHECK_INT(fake_next(&init), WIRE_EXECS);
	CHECK_INT(fake_reply(&init, WIRE_DONE), 0);
	CHECK_INT(fake_say_exit(&init, 77, WIRE_WHY_EXIT, 4), 0);
	CHECK_INT(fake_next(&fake.keeper), WIRE_COUNTERS);
	CHECK_INT(fake_reply_counters(WIRE_COUNTERS_REPLY), 0);
	CHECK(FAKE_UNTIL(!exec_lookup(fleet_find(fake.fleet, row.id), id_of(20))));
	CHECK_STR(stored_cause(id_of(20)), "exit");
	end_test();
}

/* ---- the table of states ---- */

/* 1: a chain of transitions leads from one state to the other. */
static int leads_to(enum box_state from, enum box_state to, unsigned seen)
{
	for (unsigned i = 0; i < BOX_STATES; i++)
		if (box_state_follows(from, (enum box_state)i) &&
		    (i == to ||
		     (!(seen >> i & 1) && leads_to((enum box_state)i, to, seen | 1u << i))))
			return 1;
	return 0;
}

TEST(every_state_of_a_box_is_reached_and_leads_to_deleted)
{
	for (unsigned i = 0; i < BOX_STATES; i++) {
		CHECK(i == BOX_MAKING || leads_to(BOX_MAKING, (enum box_state)i, 0));
		CHECK(i == BOX_DELETED || leads_to((enum box_state)i, BOX_DELETED, 0));
		CHECK(!box_state_follows(BOX_DELETED, (enum box_state)i));
		CHECK_INT(box_state_follows((enum box_state)i, BOX_DELETED), i == BOX_ENDING);
		CHECK_INT(box_state_follows((enum box_state)i, BOX_ENDING), i < BOX_ENDING);
	}
}
