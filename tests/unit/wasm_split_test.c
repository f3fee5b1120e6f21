/* wasm_split_test.c - the text of wasm2c, divided into files, and the imports of a module. */
#include "wasm/split.h"
#include "base/err.h"
#include "tap.h"
#include "wasm/build.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN                                                                                      \
	"#include \"module.h\"\n"                                                                  \
	"  wasm_rt_memcpy(&result, &mem->data[addr], sizeof(t1));\n"                               \
	"static bool s_module_initialized = false;\n"                                              \
	"static u32 func_types[1];\n"                                                              \
	"static void init_func_types(void) {\n  func_types[0] = 1;\n}\n"                           \
	"static u32 w2c_f0(Z_module_instance_t*, u32);\n"
#define ARRAY "static const u8 data_segment_data_w2c_d0[] = {\n  0x01, 0xff, \n  0x7f, \n};\n"
#define END                                                                                        \
	"void Z_module_instantiate(Z_module_instance_t* instance, struct Z_wasi_t* a, struct "     \
	"Z_other_t* b) {\n}\n"

static char folder[64];

static int split(const char *text, struct wasm_split *out, struct err *e)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int dir, rc;

	if (!folder[0]) {
		strcpy(folder, "/tmp/wasm-split-XXXXXX");
		if (!mkdtemp(folder))
			return -2;
	}
	dir = open(folder, O_RDONLY | O_DIRECTORY);
	rc = wasm_split(in, dir, 100, out, e);
	close(dir);
	fclose(in);
	return rc;
}

static const char *text_of(const char *name)
{
	static char text[8192];
	char path[128];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	return text;
}

TEST(functions_go_to_parts_and_declarations_to_the_common_file)
{
	struct wasm_split out;
	struct err e = { 0 };

	CHECK_INT(split(BEGIN ARRAY
			"static void init_memories(Z_module_instance_t* instance) {\n"
			"  LOAD_DATA(instance->w2c_memory, 4u, data_segment_data_w2c_d0, 3);\n}\n"
			"static u32 w2c_f0(Z_module_instance_t* instance, u32 w2c_p0,\n"
			"                  u32 w2c_p1) {\n  return 0;\n}\n"
			"static void w2c_f1(Z_module_instance_t* instance) {\n}\n" END,
			&out, &e),
		  0);
	CHECK_STR(e.msg, "");
	CHECK_INT(out.functions, 2);
	CHECK_STR(out.prefix, "Z_module");
	CHECK(strstr(text_of("common.h"), "WASM_RT_MEMORY[addr]") != NULL);
	CHECK(strstr(text_of("common.h"), "\nextern u32 func_types[1];") != NULL);
	CHECK(strstr(text_of("common.h"), "\nu32 w2c_f0(Z_module_instance_t*, u32);") != NULL);
	CHECK(strstr(text_of("part-0.c"), "\nu32 w2c_f0(Z_module_instance_t* instance") != NULL);
	CHECK(strstr(text_of("main.c"), "LOAD_DATA") == NULL);
	CHECK(strstr(text_of("main.c"), "Z_module_instantiate(&wasm_the_instance, 0, 0)") != NULL);
	CHECK_INT(out.data_bytes, 7);
	CHECK_INT(memcmp(text_of("data"), "\0\0\0\0\x01\xff\x7f", 7), 0);
}

TEST(parts_have_a_size)
{
	char text[32768] = BEGIN;
	struct wasm_split out;
	struct err e = { 0 };

	for (int i = 0; i < 100; i++)
		snprintf(
			text + strlen(text), sizeof(text) - strlen(text),
			"static void w2c_g%d(Z_module_instance_t* instance) {\n  w2c_i0 = 12345678;\n}\n",
			i);
	strcat(text, END);
	CHECK_INT(split(text, &out, &e), 0);
	CHECK_INT(out.functions, 100);
	CHECK(out.parts > 10 && out.parts < 60);
}

TEST(what_wasm2c_does_not_write_is_rejected)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "not what wasm2c" },
		{ "int main(void) { return 0; }\n", "not what wasm2c" },
		{ BEGIN END, "not what wasm2c" }, /* no function */
		{ BEGIN "static void w2c_f0(Z_module_instance_t* instance) {\n", "incomplete" },
		{ BEGIN "static const u8 data_segment_data_w2c_d0[] = {\n  0x100, \n};\n",
		  "not a byte" },
		{ BEGIN "static const u8 data_segment_data_w2c_d0[] = {\n  system(\"x\"), \n};\n",
		  "not a byte" },
		{ BEGIN ARRAY
		  "  LOAD_DATA(instance->w2c_memory, 4294967295u, data_segment_data_w2c_d0, 3);\n",
		  "unknown" },
		{ BEGIN ARRAY
		  "  LOAD_DATA(instance->w2c_memory, 0u, data_segment_data_w2c_d0, 4);\n",
		  "unknown" },
		{ BEGIN ARRAY
		  "  LOAD_DATA(instance->w2c_memory, 0u, data_segment_data_w2c_d9, 1);\n",
		  "unknown" },
		{ BEGIN ARRAY
		  "  LOAD_DATA(instance->w2c_memory, instance->w2c_g0, data_segment_data_w2c_d0, 1);\n",
		  "computed address" },
		{ BEGIN ARRAY
		  "static void w2c_f0(Z_module_instance_t* instance) {\n  memory_init(data_segment_data_w2c_d0);\n}\n" END,
		  "memory.init" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wasm_split out;
		struct err e = { 0 };

		CHECK_INT(split(cases[i].text, &out, &e), -1);
		if (!strstr(e.msg, cases[i].why))
			CHECK_STR(e.msg, cases[i].why);
	}
}

TEST(imports_that_the_host_lacks_get_an_answer_or_are_rejected)
{
	struct err e = { 0 };
	char *stubs = wasm_stubs(
		"/* import: 'wasi_snapshot_preview1' 'fd_write' */\nu32 a(struct X*, u32);\n"
		"/* import: 'wasi_snapshot_preview1' 'sock_open' */\nu32 b(struct X*, u32,\n  u32);\n",
		&e);

	CHECK(stubs && strstr(stubs, "u32 b(struct X*, u32,\n  u32) { return 52; }") != NULL);
	CHECK(stubs && strstr(stubs, "u32 a(") == NULL);
	free(stubs);
	CHECK(wasm_stubs("/* import: 'env' 'system' */\nu32 c(struct X*, u32);\n", &e) == NULL);
	CHECK(strstr(e.msg, "'env' 'system'") != NULL);
	CHECK(wasm_stubs("/* import: 'wasi_snapshot_preview1' 'fd_write", &e) == NULL);
}

TEST(nothing_is_left)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}
