/* split.c - see split.h. The text is read line by line: wasm2c begins every definition in the first
 * column, ends a function or an array with a line that begins with '}', and writes one initialiser
 * or statement on a line. */
#include "wasm/split.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_MEMORY_MAX (1ull << 32)
#define SPLIT_ARRAY_LINE "static const u8 data_segment_data_"
#define SPLIT_LOAD_LINE "  LOAD_DATA(instance->"

enum split_mode {
	SPLIT_PREAMBLE, /* before the first definition that belongs to the module */
	SPLIT_TOP,
	SPLIT_FUNCTION,
	SPLIT_ARRAY,
};

struct split_array { /* one data segment */
	char *name;
	size_t at, len; /* of its bytes in split.bytes */
};

struct split {
	int folder;
	FILE *common, *main, *part, *data;
	size_t chunk_bytes, part_bytes;
	enum split_mode mode;
	struct buf bytes; /* of all data segments */
	struct split_array *arrays;
	size_t n_arrays, room_arrays;
	size_t next_array; /* segments are loaded in the order of their definitions */
	unsigned imports;  /* parameters of the instantiate function after the instance */
	struct wasm_split *out;
};

static bool split_begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

static bool split_ends(const char *line, const char *with)
{
	size_t n = strlen(line), k = strlen(with);

	return n >= k && strcmp(line + n - k, with) == 0;
}

static FILE *split_create(const struct split *s, const char *name, struct err *e)
{
	auto_fd int fd = openat(s->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	FILE *f;

	if (fd < 0 || !(f = fdopen(fd, "w"))) {
		err_sys(e, "create %s", name);
		return NULL;
	}
	steal_fd(&fd);
	return f;
}

static int split_close(FILE **f, const char *name, struct err *e)
{
	FILE *taken = *f;

	*f = NULL;
	if (taken && fclose(taken) != 0)
		return err_sys(e, "write %s", name);
	return 0;
}

/* The file that the next function goes to. */
static int split_part(struct split *s, struct err *e)
{
	char name[32];

	if (s->part && s->part_bytes < s->chunk_bytes)
		return 0;
	if (split_close(&s->part, "a part", e) < 0)
		return -1;
	snprintf(name, sizeof name, "part-%u.c", s->out->parts);
	s->part = split_create(s, name, e);
	if (!s->part)
		return -1;
	fputs("#include \"common.h\"\n", s->part);
	s->out->parts++;
	s->part_bytes = 0;
	return 0;
}

static int split_array_begin(struct split *s, const char *line, struct err *e)
{
	const char *name = line + strlen("static const u8 ");
	const char *end = strchr(name, '[');

	if (!end)
		return err_set(e, ERR_INVALID, "a data segment without a name: %.60s", line);
	if (s->n_arrays == s->room_arrays) {
		s->room_arrays = s->room_arrays ? 2 * s->room_arrays : 256;
		s->arrays = reallocarray(s->arrays, s->room_arrays, sizeof *s->arrays);
		if (!s->arrays)
			abort();
	}
	s->arrays[s->n_arrays++] = (struct split_array){
		.name = strndup(name, (size_t)(end - name)),
		.at = s->bytes.len,
	};
	s->mode = SPLIT_ARRAY;
	return 0;
}

/* "  0x01, 0x00, " */
static int split_array_line(struct split *s, const char *line, struct err *e)
{
	const char *p = line + strspn(line, " \n");

	while (*p) {
		char *end;
		unsigned long v = strtoul(p, &end, 16);

		if (end == p || v > 255 || *end != ',')
			return err_set(e, ERR_INVALID, "not a byte of a data segment: %.40s", p);
		buf_putc(&s->bytes, (char)v);
		s->arrays[s->n_arrays - 1].len++;
		p = end + 1;
		p += strspn(p, " \n");
	}
	return 0;
}

/* "  LOAD_DATA(instance->w2c_memory, 1024u, data_segment_data_w2c_d0, 4468);" */
static int split_load(struct split *s, const char *line, struct err *e)
{
	const char *comma = strchr(line, ',');
	unsigned long long at;
	char name[512];
	size_t len;

	if (!comma || sscanf(comma, ", %lluu, %511[^,], %zu", &at, name, &len) != 3)
		return err_set(e, ERR_INVALID, "a data segment with a computed address: %.80s",
			       line);
	while (s->next_array < s->n_arrays && strcmp(s->arrays[s->next_array].name, name) != 0)
		s->next_array++;
	if (s->next_array == s->n_arrays || s->arrays[s->next_array].len < len ||
	    at + len > SPLIT_MEMORY_MAX)
		return err_set(e, ERR_INVALID, "data segment %.60s of %zu bytes at %llu: unknown",
			       name, len, at);
	if (fseeko(s->data, (off_t)at, SEEK_SET) != 0 ||
	    fwrite(s->bytes.p + s->arrays[s->next_array].at, 1, len, s->data) != len)
		return err_sys(e, "write data");
	if (at + len > s->out->data_bytes)
		s->out->data_bytes = at + len;
	s->next_array++;
	return 0;
}

/* Every load and store uses the constant address of the linear memory instead of a pointer that the
 * compiler would have to read again after each store. */
static void split_preamble_line(struct split *s, const char *line)
{
	static const char slow[] = "mem->data[addr]";
	const char *found = strstr(line, slow);

	if (!found) {
		fputs(line, s->common);
		return;
	}
	fprintf(s->common, "%.*sWASM_RT_MEMORY[addr]%s", (int)(found - line), line,
		found + strlen(slow));
}

/* "void Z_python_instantiate(Z_python_instance_t* instance, struct Z_wasi_..._t* x) {" */
static void split_exported(struct split *s, const char *line)
{
	static const char tail[] = "_instantiate(";
	const char *found = strstr(line, tail);

	if (!split_begins(line, "void Z_") || !found)
		return;
	line += strlen("void ");
	snprintf(s->out->prefix, sizeof s->out->prefix, "%.*s", (int)(found - line), line);
	for (const char *p = strstr(found, ", struct "); p; p = strstr(p + 1, ", struct "))
		s->imports++;
}

static int split_top_line(struct split *s, const char *line, struct err *e)
{
	bool local = split_begins(line, "static ") && strstr(line, " w2c_") &&
		     !split_begins(line, "static const") && !strstr(line, " init_");

	if (split_begins(line, SPLIT_ARRAY_LINE))
		return split_array_begin(s, line, e);
	if (split_begins(line, SPLIT_LOAD_LINE))
		return split_load(s, line, e);
	if (local && split_ends(line, ");\n")) {
		fputs(line + strlen("static "), s->common);
	} else if (local) { /* the parameters of a definition may take several lines */
		if (split_part(s, e) < 0)
			return -1;
		fputs(line + strlen("static "), s->part);
		s->out->functions++;
		s->mode = SPLIT_FUNCTION;
	} else if (split_begins(line, "static u32 func_types[")) {
		fprintf(s->common, "extern %s", line + strlen("static "));
		fputs(line + strlen("static "), s->main);
	} else {
		split_exported(s, line);
		fputs(line, s->main);
	}
	return 0;
}

static int split_line(struct split *s, const char *line, struct err *e)
{
	switch (s->mode) {
	case SPLIT_PREAMBLE:
		if (!split_begins(line, "static bool s_module_initialized")) {
			split_preamble_line(s, line);
			return 0;
		}
		s->mode = SPLIT_TOP;
		return split_top_line(s, line, e);
	case SPLIT_TOP:
		return split_top_line(s, line, e);
	case SPLIT_FUNCTION:
		if (strstr(line, "data_segment_data_"))
			return err_set(e, ERR_INVALID,
				       "the module copies data segments itself (memory.init), "
				       "which is not supported");
		fputs(line, s->part);
		s->part_bytes += strlen(line);
		if (line[0] == '}')
			s->mode = SPLIT_TOP;
		return 0;
	case SPLIT_ARRAY:
		if (line[0] == '}') {
			s->mode = SPLIT_TOP;
			return 0;
		}
		return split_array_line(s, line, e);
	}
	return 0;
}

/* What the host calls (host.h). */
static void split_glue(struct split *s)
{
	const char *z = s->out->prefix;

	fprintf(s->main,
		"\nstatic %s_instance_t wasm_the_instance;\n"
		"void *const wasm_instance = &wasm_the_instance;\n"
		"const size_t wasm_instance_bytes = sizeof wasm_the_instance;\n"
		"wasm_rt_memory_t *wasm_instance_memory(void) { return "
		"%sZ_memory(&wasm_the_instance); }\n"
		"void wasm_instance_start(void) { %sZ__start(&wasm_the_instance); }\n"
		"void wasm_module_init(void) { %s_init_module(); }\n"
		"void wasm_instance_init(void) { %s_instantiate(&wasm_the_instance",
		z, z, z, z, z);
	for (unsigned i = 0; i < s->imports; i++)
		fputs(", 0", s->main);
	fputs("); }\n", s->main);
}

static int split_all(struct split *s, FILE *in, struct err *e)
{
	auto_free char *line = NULL;
	size_t room = 0;

	s->common = split_create(s, "common.h", e);
	s->main = s->common ? split_create(s, "main.c", e) : NULL;
	s->data = s->main ? split_create(s, "data", e) : NULL;
	if (!s->data)
		return -1;
	fputs("#include \"common.h\"\n", s->main);
	while (getline(&line, &room, in) > 0)
		if (split_line(s, line, e) < 0)
			return -1;
	if (ferror(in))
		return err_sys(e, "read the translated module");
	if (s->mode != SPLIT_TOP || !s->out->prefix[0] || !s->out->parts)
		return err_set(e, ERR_INVALID,
			       "the text is not what wasm2c 1.0.32 writes, or it is incomplete");
	split_glue(s);
	if (split_close(&s->common, "common.h", e) < 0 || split_close(&s->main, "main.c", e) < 0 ||
	    split_close(&s->part, "the last part", e) < 0 || split_close(&s->data, "data", e) < 0)
		return -1;
	return 0;
}

int wasm_split(FILE *in, int folder, size_t chunk_bytes, struct wasm_split *out, struct err *e)
{
	struct split s = { .folder = folder, .chunk_bytes = chunk_bytes, .out = out };
	FILE **files[] = { &s.common, &s.main, &s.part, &s.data };
	int rc;

	*out = (struct wasm_split){ 0 };
	rc = split_all(&s, in, e);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (*files[i])
			fclose(*files[i]);
	for (size_t i = 0; i < s.n_arrays; i++)
		free(s.arrays[i].name);
	free(s.arrays);
	buf_fini(&s.bytes);
	return rc;
}
