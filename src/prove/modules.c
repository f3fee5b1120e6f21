/* modules.c - the proof of the tier wasm. The probe program cannot be a module, so a program of the module python makes the
 * attempts; what counts is observed outside: canaries, system calls of the WASM host, its memory, two equal runs. */
#include "base/cleanup.h"
#include "prove/prove_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MODULE_MIB = 64,
	MODULE_HOST_MIB = 24
}; /* limit of the module; memory of its host beside that */

/* Each line is one attempt: a success is printed with what it got. At the end the program waits for the end of its input. */
static const char module_attempts[] =
	"import sys, os, json\n"
	"path, pid = sys.argv[1], sys.argv[2]\n"
	"def attempt(probe, way, f):\n"
	"    try: result, got = 'ok', str(f())[:4000]\n"
	"    except BaseException as e: result, got = type(e).__name__, str(e)[:200]\n"
	"    print(json.dumps({'probe': probe, 'way': way, 'result': result, 'got': got}), flush=True)\n"
	"def read(p): return open(p, 'rb').read(100000)\n"
	"def link():\n"
	"    os.symlink(path, 'prove-link')\n"
	"    return read('prove-link')\n"
	"attempt('host files', 'by its path', lambda: read(path))\n"
	"attempt('host files', 'above the home', lambda: read('../' * 12 + path[1:]))\n"
	"attempt('host files', 'a symbolic link', link)\n"
	"attempt('host files', '/proc/self/root', lambda: read('/proc/self/root' + path))\n"
	"attempt('host files', 'its folder', lambda: os.listdir(os.path.dirname(path)))\n"
	"attempt('host files', 'a new file beside it', lambda: open(os.path.dirname(path) + '/new', 'w'))\n"
	"attempt('host files', 'the root folder', lambda: os.listdir('/etc'))\n"
	"attempt('host environment', 'environment of every process', lambda: read('/proc/' + pid + '/environ'))\n"
	"attempt('host processes', 'kill', lambda: os.kill(int(pid), 9))\n"
	"attempt('programs', 'subprocess', lambda: __import__('subprocess').run(['/bin/true']))\n"
	"attempt('programs', 'fork', lambda: os.fork())\n"
	"attempt('programs', 'execve', lambda: os.execv('/bin/true', ['true']))\n"
	"attempt('programs', 'a thread', lambda: __import__('_thread').start_new_thread(print, ()))\n"
	"attempt('host sockets', 'TCP at 127.0.0.1', lambda: __import__('socket').create_connection(('127.0.0.1', int(sys.argv[3]))))\n"
	"print(json.dumps({'probe': 'end', 'way': '', 'result': 'ok', 'got': ''}), flush=True)\n"
	"sys.stdin.read()\n";

/* Takes all the memory that it gets, and keeps it. */
static const char module_memory[] = "import sys\n"
				    "all = []\n"
				    "try:\n"
				    "    while True: all.append(bytearray(1 << 20))\n"
				    "except MemoryError: pass\n"
				    "sys.stdout.write('taken %d\\n' % len(all))\n"
				    "sys.stdout.flush()\n"
				    "sys.stdin.read()\n";

static const char module_values[] =
	"import time, os, random\n"
	"print(time.time(), os.urandom(16).hex(), random.random(), os.stat('.').st_ino)\n";

static int module_start(struct prove_run *r, const char *code, const char *const *env,
			struct err *e)
{
	char program[WIRE_PATH + 16], pid[16], file[96], port[16], memory[24];
	const char *argv[] = { program, memory, "--", "-c", code, file, pid, port, NULL };

	snprintf(program, sizeof(program), "%s/python", r->want->modules);
	snprintf(memory, sizeof(memory), "--memory=%d", MODULE_MIB);
	snprintf(pid, sizeof(pid), "%d", (int)r->canary.process);
	snprintf(file, sizeof(file), "%s/canary", r->canary.folder);
	snprintf(port, sizeof(port), "%u", r->canary.tcp_port);
	return prove_box_command(r, &r->a, argv, env, e);
}

static int module_end(struct prove_run *r, struct err *e)
{
	if (prove_box_close_stdin(&r->a, e) < 0)
		return -1;
	return prove_until(&r->a, NULL, "the module", e);
}

/* ---- attempts ---- */

static unsigned module_judge_lines(struct prove_run *r)
{
	char *text = strdup(buf_str(&r->a.out)), *rest = NULL;
	unsigned n = 0;

	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		json_t *line = json_loads(p, 0, NULL);
		const char *probe = json_string_value(json_object_get(line, "probe")),
			   *way = json_string_value(json_object_get(line, "way")),
			   *result = json_string_value(json_object_get(line, "result"));
		int ok = result && !strcmp(result, "ok");

		if (probe && way && result && strcmp(probe, "end")) {
			prove_note(r, ok ? PROVE_FAILS : PROVE_PASSED, probe, way, result, "%s",
				   ok ? "the attempt succeeded" : "the attempt failed");
			n++;
		}
		json_decref(line);
	}
	free(text);
	return n;
}

static void module_judge_attempts(struct prove_run *r)
{
	const struct prove_canary *c = &r->canary;
	const char *leaked = canary_in(c, buf_str(&r->a.out));
	char changes[200], file[64];
	unsigned n = module_judge_lines(r);
	int reached = canary_reached(c->tcp, c->token, 0);

	canary_process_changes(c, changes);
	canary_foreign_file(c, file);
	prove_note(r, leaked ? PROVE_FAILS : PROVE_PASSED, "output", "all bytes", "", "%s%s",
		   leaked ? "the output contains " : "no canary in the output",
		   leaked ? leaked : "");
	prove_note(r, n >= 14 ? PROVE_PASSED : PROVE_FAILS, "output", "all attempts", "",
		   "%u lines of the program", n);
	prove_note(r, changes[0] ? PROVE_FAILS : PROVE_PASSED, "host processes", "canary", "", "%s",
		   changes[0] ? changes : "the canary process is unchanged");
	prove_note(r, file[0] ? PROVE_FAILS : PROVE_PASSED, "host files", "canary", "", "%s%s",
		   file[0] ? "the folder of the host has a new file: "
			   : "no new file in the folder of the host",
		   file);
	prove_note(r, reached ? PROVE_FAILS : PROVE_PASSED, "host sockets", "canary", "", "%s",
		   reached ? "the listener of the host was reached"
			   : "nothing arrived at the listener of the host");
}

/* ---- memory ---- */

/* Anonymous and private memory of the WASM host, from /proc of the host; 0: no such process. */
static unsigned long module_rss_kib(const struct prove_run *r)
{
	unsigned long most = 0;
	struct dirent *entry;
	DIR *d = opendir("/proc");

	while (d && (entry = readdir(d))) {
		char path[64], line[200], own[64];
		unsigned long kib = 0;
		ssize_t n;
		FILE *f;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", entry->d_name);
		n = readlink(path, own, sizeof(own) - 1);
		own[n > 0 ? n : 0] = 0;
		if (n <= 0 || strcmp(own, r->a.pid_namespace) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/status", entry->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "RssAnon: %lu", &kib);
		if (f)
			fclose(f);
		most = kib > most ? kib : most;
	}
	if (d)
		closedir(d);
	return most;
}

static int module_prove_memory(struct prove_run *r, struct err *e)
{
	unsigned long kib;
	const char *said;
	int taken;

	if (module_start(r, module_memory, NULL, e) < 0 ||
	    prove_until(&r->a, "taken ", "the module that takes all memory", e) < 0)
		return -1;
	kib = module_rss_kib(r);
	said = strstr(buf_str(&r->a.out), "taken ");
	taken = said ? atoi(said + 6) : -1;
	prove_note(r, taken > 0 && taken < MODULE_MIB ? PROVE_PASSED : PROVE_FAILS, "limits",
		   "memory of the module", "MemoryError", "%d of at most %d MiB", taken,
		   MODULE_MIB);
	prove_note(r,
		   kib && kib <= (MODULE_MIB + MODULE_HOST_MIB) * 1024ul ? PROVE_PASSED
									 : PROVE_FAILS,
		   "limits", "memory of its process", "", "%lu MiB of at most %d", kib >> 10,
		   MODULE_MIB + MODULE_HOST_MIB);
	return module_end(r, e);
}

/* ---- clock and random values ---- */

static int module_read_values(struct prove_run *r, int deterministic, char out[200], struct err *e)
{
	static const char *const constant[] = { "HOME=" BOX_HOME, "ATOLL_DETERMINISTIC=1", NULL };
	static const char *const usual[] = { "HOME=" BOX_HOME, NULL };

	if (module_start(r, module_values, deterministic ? constant : usual, e) < 0 ||
	    prove_until(&r->a, NULL, "the module", e) < 0)
		return -1;
	snprintf(out, 200, "%s", buf_str(&r->a.out));
	return 0;
}

static int module_prove_values(struct prove_run *r, struct err *e)
{
	char a[200], b[200], c[200], d[200];

	if (module_read_values(r, 1, a, e) < 0 || module_read_values(r, 1, b, e) < 0 ||
	    module_read_values(r, 0, c, e) < 0 || module_read_values(r, 0, d, e) < 0)
		return -1;
	prove_note(r, *a && !strcmp(a, b) ? PROVE_PASSED : PROVE_FAILS, "identity",
		   "supplied clock and random values", "", "%s",
		   strcmp(a, b) ? "two deterministic runs differ"
				: "two deterministic runs are equal");
	prove_note(r, *c && strcmp(c, d) != 0 ? PROVE_PASSED : PROVE_FAILS, "identity",
		   "random values", "", "%s",
		   strcmp(c, d) ? "different in two runs" : "the same in two runs");
	return 0;
}

int prove_modules(struct prove_run *r, struct err *e)
{
	struct wire_limits usual = box_default_limits();

	if (!strstr(r->facts.version, "python"))
		return err_set(e, ERR_NOT_FOUND,
			       "%s: the module python is missing (atoll tier prepare wasm)",
			       r->want->tier_name);
	if (prove_box_create(r, &r->a, &usual, e) < 0 ||
	    module_start(r, module_attempts, NULL, e) < 0 ||
	    prove_until(&r->a, "\"probe\": \"end\"", "the module", e) < 0)
		return -1;
	prove_judge_processes(r);
	if (module_end(r, e) < 0)
		return -1;
	module_judge_attempts(r);
	if (module_prove_memory(r, e) < 0)
		return err_in(e, "memory of a module");
	return module_prove_values(r, e);
}
