/* judge.c - compares the lines of the probe with what is observed outside. A line alone proves nothing: a box could print
 * anything. What it printed is searched for canaries, and sockets, processes and folders of the host are examined. */
#include "base/cleanup.h"
#include "prove/prove_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { CLOCK_MS = 50 };

struct judge_line {
	const char *probe, *way, *result, *got;
};

struct judge_effects { /* on the host */
	int tcp, udp, abstract, path, vsock;
	char process[200], file[64];
	int other_accepted; /* -1: the other box did not answer */
};

static void judge_observe(struct prove_run *r, struct judge_effects *out)
{
	struct prove_canary *c = &r->canary;
	const char *line;

	out->tcp = canary_reached(c->tcp, c->token, 0);
	out->udp = canary_reached(c->udp, c->token, 1);
	out->abstract = canary_reached(c->abstract, c->token, 0);
	out->path = canary_reached(c->path, c->token, 0);
	out->vsock = canary_reached(c->vsock, c->token, 0);
	canary_process_changes(c, out->process);
	canary_foreign_file(c, out->file);
	line = strstr(buf_str(&r->b.out), "\"way\": \"accepted\", \"result\": \"ok\", \"got\": \"");
	out->other_accepted = line ? atoi(strstr(line, "got") + 7) : -1;
}

static void judge_say(struct prove_run *r, const struct judge_line *l, int fails, const char *if_so,
		      const char *if_not)
{
	prove_note(r, fails ? PROVE_FAILS : PROVE_PASSED, l->probe, l->way, l->result, "%s",
		   fails ? if_so : if_not);
}

static void judge_files(struct prove_run *r, const struct judge_line *l,
			const struct judge_effects *o)
{
	char text[120];

	if (!strcmp(l->way, "a new file beside it")) {
		snprintf(text, sizeof(text), "the folder of the host has a new file: %s", o->file);
		judge_say(r, l, o->file[0], text, "no new file in the folder of the host");
		return;
	}
	if (!strcmp(l->way, "own descriptors")) {
		snprintf(text, sizeof(text), "open: %.80s", l->got);
		judge_say(r, l, strcmp(l->got, "0 1 2 ") != 0, text, "only 0, 1 and 2 are open");
		return;
	}
	judge_say(r, l, 0, "", "no canary of the host in the output");
}

/* A change is attributed to the attempts that succeeded; if none has, to all. */
static void judge_processes(struct prove_run *r, const struct judge_line *l,
			    const struct judge_effects *o)
{
	int ok = !strcmp(l->result, "ok");
	char text[240];

	snprintf(text, sizeof(text), "the canary process: %s", o->process);
	judge_say(r, l, o->process[0] && (ok || !strstr(buf_str(&r->a.out), "host processes")),
		  text, "the canary process is unchanged");
}

static void judge_sockets(struct prove_run *r, const struct judge_line *l,
			  const struct judge_effects *o)
{
	const struct {
		const char *way;
		int reached, fd;
	} ways[] = {
		{ "TCP at 127.0.0.1", o->tcp, r->canary.tcp },
		{ "TCP at ::1", o->tcp, r->canary.tcp },
		{ "TCP at the addresses of the host", o->tcp, r->canary.tcp },
		{ "UDP at 127.0.0.1", o->udp, r->canary.udp },
		{ "an abstract socket", o->abstract, r->canary.abstract },
		{ "a socket in a folder", o->path, r->canary.path },
		{ "vsock", o->vsock, r->canary.vsock },
	};

	for (unsigned i = 0; i < ARRAY_LEN(ways); i++)
		if (!strcmp(l->way, ways[i].way)) {
			if (ways[i].fd < 0)
				prove_note(r, PROVE_SKIPPED, l->probe, l->way, l->result,
					   "this host has no such sockets");
			else
				judge_say(r, l, ways[i].reached,
					  "the listener of the host was reached",
					  "nothing arrived at the listener of the host");
			return;
		}
	judge_say(r, l, !strcmp(l->result, "ok") && !prove_has_guest_kernel(r),
		  "the attempt succeeded", "the attempt failed");
}

static void judge_other(struct prove_run *r, const struct judge_line *l,
			const struct judge_effects *o)
{
	char text[80];

	snprintf(text, sizeof(text), "the other box accepted %d connections", o->other_accepted);
	if (strstr(l->way, "socket") || strstr(l->way, "TCP"))
		judge_say(r, l, o->other_accepted > 0, text,
			  "the other box accepted no connection");
	else if (!strcmp(l->way, "kill"))
		judge_say(r, l, o->other_accepted < 0, "the other box has ended",
			  "the other box is still running");
	else
		judge_say(r, l, 0, "", "the canary of the other box is not in the output");
}

static void judge_kernel(struct prove_run *r, const struct judge_line *l)
{
	if (prove_has_guest_kernel(r))
		prove_note(r, PROVE_PASSED, l->probe, l->way, l->result,
			   "the kernel of the guest answered, not that of the host");
	else
		judge_say(r, l, !strcmp(l->result, "ok"), "the attempt succeeded",
			  "the attempt failed");
}

static void judge_one(struct prove_run *r, const struct judge_line *l,
		      const struct judge_effects *o)
{
	const char *leaked = canary_in(&r->canary, l->got);

	if (leaked)
		prove_note(r, PROVE_FAILS, l->probe, l->way, l->result, "the output contains %s",
			   leaked);
	else if (!strcmp(l->probe, "host files") || !strcmp(l->probe, "host environment"))
		judge_files(r, l, o);
	else if (!strcmp(l->probe, "host processes"))
		judge_processes(r, l, o);
	else if (!strcmp(l->probe, "host sockets"))
		judge_sockets(r, l, o);
	else if (!strcmp(l->probe, "other box"))
		judge_other(r, l, o);
	else if (!strcmp(l->probe, "kernel"))
		judge_kernel(r, l);
}

static const char *judge_member(json_t *line, const char *name)
{
	const char *text = json_string_value(json_object_get(line, name));

	return text ? text : "";
}

void prove_judge_attempts(struct prove_run *r)
{
	struct judge_effects o;
	char *text = strdup(buf_str(&r->a.out)), *rest = NULL;
	unsigned n = 0, other = 0;
	const char *leaked;

	judge_observe(r, &o);
	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		json_t *line = json_loads(p, 0, NULL);
		struct judge_line l = { judge_member(line, "probe"), judge_member(line, "way"),
					judge_member(line, "result"), judge_member(line, "got") };

		n += *l.probe != 0;
		other += !*l.probe;
		judge_one(r, &l, &o);
		json_decref(line);
	}
	free(text);
	/* Once more over all bytes, so that no form of the lines can hide it. */
	leaked = canary_in(&r->canary, buf_str(&r->a.out));
	prove_note(r, leaked || other ? PROVE_FAILS : PROVE_PASSED, "output", "all bytes", "",
		   leaked  ? "the output contains %s"
		   : other ? "%s: lines that are not of the probe"
			   : "%s",
		   leaked  ? leaked
		   : other ? "output"
			   : "no canary in the output");
	prove_note(r, n >= 70 ? PROVE_PASSED : PROVE_FAILS, "output", "all attempts", "",
		   "%u lines of the probe", n);
}

/* ---- identity ---- */

static void judge_host_file(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(out, (int)size, f))
		out[0] = 0;
	out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
}

static void judge_clock(struct prove_run *r, const struct prove_box *x, const char *way)
{
	const uint64_t most = CLOCK_MS * UINT64_C(1000000);
	char text[80];
	uint64_t clock;
	int64_t off = 0;

	prove_box_fact(x, "clock", text, sizeof(text));
	clock = strtoull(text, NULL, 10);
	if (clock < x->started_ns)
		off = (int64_t)(clock - x->started_ns);
	else if (clock > x->last_ns)
		off = (int64_t)(clock - x->last_ns);
	prove_note(r,
		   clock + most >= x->started_ns && clock <= x->last_ns + most ? PROVE_PASSED
									       : PROVE_FAILS,
		   "identity", way, "", "%lld ms beside the clock of the host",
		   (long long)(off / 1000000));
}

/* Every path of it is "/" in its own namespace. With cgroup v1 a pooled box enters a cgroup below that, whose name is an id
 * of the keeper. */
static int judge_cgroup_is_own(const char *text)
{
	size_t n;

	for (const char *p = strchr(text, ':'); p; p = strchr(p, ':')) {
		p = strchr(p + 1, ':');
		if (!p || strncmp(p, ":/", 2) != 0)
			return 0;
		p += 2;
		n = strspn(p, "abcdefghijklmnopqrstuvwxyz234567");
		if (n == ID_LEN || n == ID_MAX)
			p += n;
		if (*p && *p != '\\') /* the next line, as JSON has it */
			return 0;
	}
	return 1;
}

static void judge_boot_id(struct prove_run *r)
{
	char a[64], b[64], host[64];
	const char *bad;

	prove_box_fact(&r->a, "boot id", a, sizeof(a));
	prove_box_fact(&r->b, "boot id", b, sizeof(b));
	judge_host_file("/proc/sys/kernel/random/boot_id", host, sizeof(host));
	if (!*a && !*b && prove_has_guest_kernel(r)) {
		prove_note(r, PROVE_SKIPPED, "identity", "boot id", "",
			   "the kernel of the guest has none");
		return;
	}
	bad = !*a || !*b                             ? "there is none"
	      : !strcmp(a, host) || !strcmp(b, host) ? "that of the host"
	      : !strcmp(a, b)                        ? "the same in two boxes"
						     : NULL;
	prove_note(r, bad ? PROVE_FAILS : PROVE_PASSED, "identity", "boot id", a, "%s",
		   bad ? bad : "different in two boxes and on the host");
}

void prove_judge_identity(struct prove_run *r)
{
	char a[1100], b[1100];
	struct utsname u;
	int own;

	uname(&u);
	prove_box_fact(&r->a, "release", a, sizeof(a));
	if (prove_has_guest_kernel(r))
		prove_note(r, strcmp(a, u.release) != 0 && *a ? PROVE_PASSED : PROVE_FAILS,
			   "identity", "kernel", a, "the host has %s", u.release);
	else
		prove_note(r, *a ? PROVE_PASSED : PROVE_FAILS, "identity", "kernel", a,
			   "the tier shares the kernel of the host: %s", u.release);
	prove_box_fact(&r->a, "host name", a, sizeof(a));
	prove_note(r, *a && strcmp(a, u.nodename) != 0 ? PROVE_PASSED : PROVE_FAILS, "identity",
		   "host name", a, "%s",
		   strcmp(a, u.nodename) ? "not that of the host" : "that of the host");

	judge_boot_id(r);
	prove_box_fact(&r->a, "random", a, sizeof(a));
	prove_box_fact(&r->b, "random", b, sizeof(b));
	prove_note(r, *a && strcmp(a, b) != 0 ? PROVE_PASSED : PROVE_FAILS, "identity",
		   "random bytes", "", "%s",
		   strcmp(a, b) ? "different in two boxes" : "the same in two boxes");
	judge_clock(r, &r->a, "clock");
	judge_clock(r, &r->b, "clock of the other box");
	if (prove_has_guest_kernel(r))
		return;
	prove_box_fact(&r->a, "cgroup", a, sizeof(a));
	own = judge_cgroup_is_own(a);
	prove_note(r, own ? PROVE_PASSED : PROVE_FAILS, "identity", "cgroup path", "", "%s",
		   own ? "that of the host is not visible" : a);
}
