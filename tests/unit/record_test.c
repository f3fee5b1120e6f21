/* record_test.c - the cause of the end of a run, and the run record. */
#include "record/record.h"
#include "mux/packet.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static struct exit_info exited_with(int code)
{
	return (struct exit_info){
		.program = "prog",
		.exited = 1,
		.exit = { .why = WIRE_WHY_EXIT,
			  .status = code,
			  .disk_size = 1 << 28,
			  .disk_free = 1 << 27,
			  .files_size = 1000,
			  .files_free = 900 },
		.evidence = 1,
		.limits = { .mem_bytes = 256 << 20,
			    .pids = 64,
			    .disk_bytes = 1 << 28,
			    .disk_files = 1000,
			    .cpu_ms = 2000 },
		.run_us = 2100000,
	};
}

static struct exit_info killed_by(int signo)
{
	struct exit_info x = exited_with(signo);

	x.exit.why = WIRE_WHY_SIGNAL;
	return x;
}

static const char *sentence(const struct exit_info *x)
{
	static struct buf b;

	buf_cut(&b, 0);
	cause_sentence(x, &b);
	return buf_str(&b);
}

static const char *hint(const struct exit_info *x)
{
	static struct buf b;

	buf_cut(&b, 0);
	cause_hint(x, &b);
	return buf_str(&b);
}

#define CAUSE(x, name, status)                                                                     \
	do {                                                                                       \
		CHECK_STR(cause_name(cause_of(&(x))), name);                                       \
		CHECK_INT(cause_status(&(x)), status);                                             \
	} while (0)

TEST(a_program_that_exits_has_cause_exit_without_a_message)
{
	struct exit_info good = exited_with(0), bad = exited_with(3);

	CAUSE(good, "exit", 0);
	CAUSE(bad, "exit", 3);
	CHECK_STR(sentence(&bad), "");
	CHECK_STR(hint(&bad), "");
}

TEST(a_signal_is_status_128_plus_its_number)
{
	struct exit_info x = killed_by(SIGSEGV);

	CAUSE(x, "signal", 139);
	CHECK_STR(sentence(&x), "ended by SIGSEGV after 2.1 s");
}

TEST(a_kill_with_an_oom_event_has_cause_memory)
{
	struct exit_info x = killed_by(SIGKILL);

	x.figures.oom_kills = 1;
	x.figures.mem_peak = 256 << 20;
	CAUSE(x, "memory", 137);
	CHECK_STR(sentence(&x),
		  "memory limit reached: 256 MiB; the kernel killed 1 process after 2.1 s");
	CHECK_STR(hint(&x), "raise: atoll run --mem 512M ...   (peak was 256 MiB)");
}

/* An engine is the kernel of its box: where it ends, no exit status arrives. */
TEST(limits_that_end_an_engine_are_the_cause_of_the_end_of_its_box)
{
	struct exit_info x = { .program = "prog",
			       .evidence = 1,
			       .engine = 1,
			       .limits = { .mem_bytes = 256 << 20, .pids = 64 } };

	CAUSE(x, "host", 125);
	x.figures.pids_hits = 2;
	CAUSE(x, "processes", 137);
	CHECK_STR(
		hint(&x),
		"raise: atoll run --pids 128 ...   (in this isolation tier the limit ends the whole box)");
	x.figures.oom_kills = 1;
	CAUSE(x, "memory", 137);
	CHECK_STR(
		hint(&x),
		"raise: atoll run --mem 512M ...   (in this isolation tier the limit ends the whole box)");
	x.engine = 0;
	x.figures.oom_kills = 0;
	CAUSE(x, "host", 125);
}

TEST(a_failed_exit_with_an_oom_event_has_cause_memory_and_a_good_one_exit)
{
	struct exit_info bad = exited_with(1), good = exited_with(0);

	bad.figures.oom_kills = good.figures.oom_kills = 3;
	CAUSE(bad, "memory", 1);
	CAUSE(good, "exit", 0);
}

TEST(a_kill_without_an_oom_event_has_cause_signal)
{
	struct exit_info x = killed_by(SIGKILL);

	CAUSE(x, "signal", 137);
}

TEST(an_unavailable_counter_is_no_evidence)
{
	struct exit_info x = killed_by(SIGKILL);

	x.figures.oom_kills = UINT64_MAX;
	CAUSE(x, "signal", 137);
	x.figures.oom_kills = 1;
	x.evidence = 0;
	CAUSE(x, "signal", 137);
}

TEST(refused_forks_explain_a_failed_exit_only)
{
	struct exit_info bad = exited_with(1), good = exited_with(0);

	bad.figures.pids_hits = good.figures.pids_hits = 9;
	CAUSE(bad, "processes", 1);
	CHECK_STR(sentence(&bad),
		  "process limit reached: 64; the kernel refused 9 more after 2.1 s");
	CHECK_STR(hint(&bad), "raise: atoll run --pids 128 ...");
	CAUSE(good, "exit", 0);
}

/* Without counters of the host: those of its own kernel, as init of the guest reports them. */
TEST(the_kernel_of_a_guest_explains_memory_and_processes)
{
	struct exit_info x = killed_by(SIGKILL);

	x.figures.mem_peak = 400 << 20; /* of the engine */
	CHECK(!cause_is_of_guest(&x));
	x.exit.head.flags = wire_exit_flags(1, 0);
	CAUSE(x, "memory", 137);
	CHECK(cause_is_of_guest(&x));
	CHECK_STR(
		sentence(&x),
		"memory limit reached: 256 MiB; the kernel of the guest killed 1 process after 2.1 s");
	CHECK_STR(hint(&x), "raise: atoll run --mem 512M ...");
	x.exit.head.flags = wire_exit_flags(0, 3);
	CAUSE(x, "signal", 137);
	x = exited_with(1);
	x.exit.head.flags = wire_exit_flags(0, 3);
	CAUSE(x, "processes", 1);
	CHECK_STR(sentence(&x),
		  "process limit reached: 64; the kernel of the guest refused 3 more after 2.1 s");
	x.exit.head.flags = wire_exit_flags(0, 0);
	CAUSE(x, "exit", 1);
	CHECK_INT(wire_exit_kills(wire_exit_flags(1000, 1000)), 127);
	CHECK_INT(wire_exit_refused(wire_exit_flags(1000, 1000)), 255);
}

TEST(a_full_disk_or_no_file_left_explains_a_failed_exit)
{
	struct exit_info x = exited_with(1);

	x.exit.disk_free = 4096;
	CAUSE(x, "disk", 1);
	CHECK_STR(sentence(&x), "disk limit reached: 256 MiB after 2.1 s");
	CHECK_STR(hint(&x), "raise: atoll run --disk 512M ...");
	x.exit.disk_free = 1 << 20;
	x.exit.files_free = 0;
	CAUSE(x, "disk", 1);
	CHECK_STR(hint(&x), "raise: atoll run --files 2000 ...");
	x.exit.files_size = 0; /* this disk does not count files */
	CAUSE(x, "exit", 1);
}

TEST(the_wall_limit_is_status_124_for_every_signal)
{
	struct exit_info x = killed_by(SIGKILL);

	x.exit.why = WIRE_WHY_WALL;
	x.wall_ms = 1500;
	CAUSE(x, "wall", 124);
	CHECK_STR(sentence(&x), "time limit reached: 1.5 s");
	CHECK_STR(hint(&x), "raise: atoll run --time 3s ...");
}

TEST(cause_cpu_is_known_by_sigxcpu_or_by_the_keeper)
{
	struct exit_info x = killed_by(SIGXCPU), y = { .end = STREAM_BOX_DIED, .evidence = 1 };

	CAUSE(x, "cpu", 128 + SIGXCPU);
	y.figures.over_cpu = 1;
	CAUSE(y, "cpu", 137);
	CHECK_STR(hint(&x), "raise: atoll run --cpu-time 4s ...");
}

TEST(hints_of_the_daemon_use_the_names_of_the_api)
{
	struct exit_info x = { .end = STREAM_EXITED, .exited = 1, .evidence = 1, .served = 1 };

	x.exit.why = WIRE_WHY_SIGNAL;
	x.exit.status = SIGKILL;
	x.figures.oom_kills = 1;
	x.limits.mem_bytes = 64 << 20;
	CHECK_STR(hint(&x), "raise: \"limits\": {\"mem\": 134217728}, or atoll new --mem 128M ...");
	x.figures.oom_kills = 0;
	x.figures.over_cpu = 1;
	x.limits.cpu_ms = 300;
	CHECK_STR(hint(&x),
		  "raise: \"limits\": {\"cpu_ms\": 1000}, or atoll new --cpu-time 1s ...");
	x.figures.over_cpu = 0;
	x.exit.why = WIRE_WHY_WALL;
	x.wall_ms = 1500;
	CHECK_STR(hint(&x), "raise: \"timeout_ms\": 3000, or atoll exec --time 3s ...");
}

TEST(the_exit_status_of_mux_explains_the_end_of_a_box)
{
	struct exit_info x = { .end = STREAM_BOX_DIED, .evidence = 1, .engine = 1 };

	CAUSE(x, "host", 125);
	CHECK(strstr(sentence(&x), "no limit explains it"));
	x.figures.engine_status = PACKET_EXIT + PACKET_BAD_WINDOW;
	CAUSE(x, "host", 125);
	CHECK_STR(sentence(&x),
		  "the box ended first: mux: the guest exceeded the window of a stream");
	x.figures.engine_status = UINT16_MAX; /* of a box whose counters were not requested */
	CHECK(strstr(sentence(&x), "no limit explains it"));
}

TEST(sigsys_has_cause_policy)
{
	struct exit_info x = killed_by(SIGSYS);

	CAUSE(x, "policy", 128 + SIGSYS);
}

TEST(a_second_ctrl_c_has_cause_operator)
{
	struct exit_info x = killed_by(SIGKILL), gone = { .end = STREAM_KILLED };

	x.end = STREAM_KILLED;
	x.figures.oom_kills = 1;
	CAUSE(x, "operator", 137);
	CAUSE(gone, "operator", 137);
}

TEST(a_closed_terminal_has_cause_operator)
{
	struct exit_info x = { .end = STREAM_HUNG_UP };

	CAUSE(x, "operator", 128 + SIGHUP);
}

TEST(a_program_that_exits_before_a_requested_kill_has_cause_exit)
{
	struct exit_info x = exited_with(5);

	x.end = STREAM_HUNG_UP;
	CHECK_STR(cause_name(cause_of(&x)), "exit");
}

TEST(a_closed_output_is_status_141)
{
	struct exit_info killed = killed_by(SIGKILL), gone = { .end = STREAM_UNREAD };

	killed.end = STREAM_UNREAD;
	CAUSE(killed, "signal", 141);
	CAUSE(gone, "signal", 141);
}

TEST(a_lost_box_has_cause_host_unless_an_oom_event_shows_memory)
{
	struct exit_info x = { .end = STREAM_BOX_DIED, .evidence = 1 };

	CAUSE(x, "host", 125);
	x.figures.oom_kills = 1;
	CAUSE(x, "memory", 137);
}

TEST(a_missing_program_is_127_and_one_that_cannot_run_126)
{
	struct exit_info x = exited_with(ENOENT);

	x.exit.why = WIRE_WHY_EXEC;
	strcpy(x.exit.step, "program");
	CAUSE(x, "exit", 127);
	CHECK_STR(sentence(&x), "cannot execute 'prog': No such file or directory");
	x.exit.status = ENOEXEC;
	CAUSE(x, "exit", 126);
	x.exit.status = E2BIG;
	strcpy(x.exit.step, "arguments");
	CAUSE(x, "exit", 126);
}

TEST(a_failed_isolation_step_is_an_internal_error)
{
	struct exit_info x = exited_with(EPERM);

	x.exit.why = WIRE_WHY_EXEC;
	strcpy(x.exit.step, "capabilities");
	CAUSE(x, "host", 125);
}

/* ---- the document ---- */

static const char *const layer_names[] = { "one", "two", "three", NULL };
static const char *const command[] = { "prog",
				       "bad\xff"
				       "byte",
				       NULL };

static struct record a_record(void)
{
	return (struct record){
		.tier = "container",
		.id = "abcdefabcdef",
		.box = "boxboxboxbox",
		.template = "python",
		.layers = 5,
		.layer_names = layer_names,
		.command = command,
		.started_ns = 1700000000123000000,
		.ended_ns = 1700000002456000000,
		.create_us = 150,
		.end = exited_with(3),
	};
}

static const char *text(json_t *doc, const char *key)
{
	return json_string_value(json_object_get(doc, key));
}

TEST(the_record_names_features_and_has_times_in_utc)
{
	struct record r = a_record();
	json_t *doc = record_json(&r), *layers = json_object_get(doc, "layers");

	CHECK_INT(json_array_size(layers), 2);
	CHECK_STR(json_string_value(json_array_get(layers, 1)), "three");
	CHECK_STR(text(doc, "started"), "2023-11-14T22:13:20.123Z");
	CHECK_STR(text(doc, "ended"), "2023-11-14T22:13:22.456Z");
	CHECK_STR(text(doc, "cause"), "exit");
	CHECK_INT(json_integer_value(json_object_get(doc, "exit_code")), 3);
	CHECK(json_is_null(json_object_get(doc, "signal")));
	CHECK(json_is_null(json_object_get(doc, "hint")));
	json_decref(doc);
}

TEST(bytes_that_are_not_utf8_do_not_break_the_record)
{
	struct record r = a_record();
	json_t *doc = record_json(&r), *argv = json_object_get(doc, "command");

	CHECK_STR(json_string_value(json_array_get(argv, 1)), "bad\xef\xbf\xbd"
							      "byte");
	json_decref(doc);
}

TEST(a_counter_that_is_unknown_is_null)
{
	struct record r = a_record();
	json_t *doc, *evidence;

	r.end.figures.oom_kills = UINT64_MAX;
	doc = record_json(&r);
	evidence = json_object_get(doc, "evidence");
	CHECK(json_is_null(json_object_get(evidence, "oom_kills")));
	CHECK_INT(json_integer_value(json_object_get(evidence, "pids_hits")), 0);
	json_decref(doc);
}

TEST(captured_output_is_text_or_base64)
{
	struct buf out = { 0 }, err = { 0 };
	struct record r = a_record();
	json_t *doc;

	buf_add(&out, "h\0i", 3);
	buf_add(&err, "\xff\xfe\x00\x01", 4);
	r.output[0] = &out;
	r.output[1] = &err;
	r.dropped[0] = 1;
	doc = record_json(&r);
	CHECK_INT(json_string_length(json_object_get(doc, "stdout")), 3);
	CHECK(!json_object_get(doc, "stdout_encoding"));
	CHECK_STR(text(doc, "stderr"), "//4AAQ==");
	CHECK_STR(text(doc, "stderr_encoding"), "base64");
	CHECK(json_is_true(json_object_get(doc, "truncated")));
	json_decref(doc);
	buf_fini(&out);
	buf_fini(&err);
}
