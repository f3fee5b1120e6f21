/* javascript.c - the program around QuickJS in the module `javascript`: javascript FILE [ARG...]. `atoll tier prepare wasm` compiles
 * it for WASI, together with the sources of QuickJS and javascript.js (as javascript_text.h). */
#include "javascript_text.h"
#include "quickjs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 512 << 10, REJECTED_MOST = 64 };

static JSValue rejected[REJECTED_MOST]; /* promises that were rejected and have no handler yet */
static unsigned nrejected;

/* ---- what javascript.js calls ---- */

/* To be freed; NULL: errno says why. A NUL follows the text. */
static char *read_all(FILE *f, size_t *out_len)
{
	size_t room = 1 << 16, len = 0, n;
	char *text = malloc(room + 1), *more;

	while (text && (n = fread(text + len, 1, room - len, f)) > 0) {
		len += n;
		if (len < room)
			continue;
		more = realloc(text, 2 * room + 1);
		if (!more)
			free(text);
		room *= 2;
		text = more;
	}
	if (text && ferror(f)) {
		free(text);
		return NULL;
	}
	if (text)
		text[len] = 0;
	*out_len = len;
	return text;
}

static char *read_file(const char *path, size_t *out_len)
{
	FILE *f = fopen(path, "rb");
	char *text = f ? read_all(f, out_len) : NULL;

	if (f)
		fclose(f);
	return text;
}

static JSValue fail(JSContext *ctx, const char *path)
{
	JSValue error = JS_NewError(ctx);
	char text[600];

	snprintf(text, sizeof(text), "%.500s: %s", path, strerror(errno));
	JS_SetPropertyStr(ctx, error, "message", JS_NewString(ctx, text));
	return JS_Throw(ctx, error);
}

static JSValue js_read_file(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	JSValue value = JS_EXCEPTION;
	size_t len;
	char *text;

	(void)self, (void)argc;
	if (!path)
		return JS_EXCEPTION;
	text = read_file(path, &len);
	value = text ? JS_NewStringLen(ctx, text, len) : fail(ctx, path);
	free(text);
	JS_FreeCString(ctx, path);
	return value;
}

static JSValue js_write_file(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	size_t len = 0;
	const char *text = path ? JS_ToCStringLen(ctx, &len, argv[1]) : NULL;
	JSValue value = JS_UNDEFINED;
	FILE *f;

	(void)self, (void)argc;
	if (!text) {
		value = JS_EXCEPTION;
	} else {
		f = fopen(path, "wb");
		if (!f || fwrite(text, 1, len, f) != len || fflush(f))
			value = fail(ctx, path);
		if (f)
			fclose(f);
	}
	JS_FreeCString(ctx, text);
	JS_FreeCString(ctx, path);
	return value;
}

/* The rest of stdin. */
static JSValue js_read_input(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	size_t len;
	char *text = read_all(stdin, &len);
	JSValue value = text ? JS_NewStringLen(ctx, text, len) : fail(ctx, "stdin");

	(void)self, (void)argc, (void)argv;
	free(text);
	return value;
}

static JSValue js_write(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	size_t len;
	const char *text = JS_ToCStringLen(ctx, &len, argv[1]);
	int32_t fd;

	(void)self, (void)argc;
	if (!text || JS_ToInt32(ctx, &fd, argv[0]))
		return JS_EXCEPTION;
	fwrite(text, 1, len, fd == 2 ? stderr : stdout);
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSValue js_exit(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	int32_t status;

	(void)self, (void)argc;
	if (JS_ToInt32(ctx, &status, argv[0]))
		return JS_EXCEPTION;
	exit(status & 255);
}

static JSValue js_sleep(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	struct timespec t;
	double ms;

	(void)self, (void)argc;
	if (JS_ToFloat64(ctx, &ms, argv[0]))
		return JS_EXCEPTION;
	t.tv_sec = (time_t)(ms / 1000);
	t.tv_nsec = (long)((ms - (double)t.tv_sec * 1000) * 1e6);
	nanosleep(&t, NULL);
	return JS_UNDEFINED;
}

static const JSCFunctionListEntry calls[] = {
	JS_CFUNC_DEF("readFile", 1, js_read_file),
	JS_CFUNC_DEF("writeFile", 2, js_write_file),
	JS_CFUNC_DEF("readInput", 0, js_read_input),
	JS_CFUNC_DEF("write", 2, js_write),
	JS_CFUNC_DEF("exit", 1, js_exit),
	JS_CFUNC_DEF("sleep", 1, js_sleep),
};

/* ---- the program ---- */

static void print_error(JSContext *ctx, JSValueConst value)
{
	const char *text = JS_ToCString(ctx, value), *trace = NULL;
	JSValue stack =
		JS_IsError(ctx, value) ? JS_GetPropertyStr(ctx, value, "stack") : JS_UNDEFINED;

	fflush(stdout);
	if (JS_IsString(stack))
		trace = JS_ToCString(ctx, stack);
	fprintf(stderr, "%s\n%s", text ? text : "an exception that is no string",
		trace ? trace : "");
	JS_FreeCString(ctx, trace);
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, stack);
}

static _Noreturn void end_by_exception(JSContext *ctx)
{
	JSValue value = JS_GetException(ctx);

	print_error(ctx, value);
	exit(1);
}

static void on_rejection(JSContext *ctx, JSValueConst promise, JSValueConst reason, JS_BOOL handled,
			 void *opaque)
{
	(void)opaque;
	if (!handled) {
		if (nrejected + 2 <= REJECTED_MOST) {
			rejected[nrejected++] = JS_DupValue(ctx, promise);
			rejected[nrejected++] = JS_DupValue(ctx, reason);
		}
		return;
	}
	for (unsigned i = 0; i < nrejected; i += 2)
		if (JS_VALUE_GET_PTR(rejected[i]) == JS_VALUE_GET_PTR(promise)) {
			JS_FreeValue(ctx, rejected[i]);
			JS_FreeValue(ctx, rejected[i + 1]);
			nrejected -= 2;
			rejected[i] = rejected[nrejected];
			rejected[i + 1] = rejected[nrejected + 1];
			return;
		}
}

static JSModuleDef *load_module(JSContext *ctx, const char *name, void *opaque)
{
	size_t len;
	char *text = read_file(name, &len);
	JSValue value;

	(void)opaque;
	if (!text) {
		fail(ctx, name);
		return NULL;
	}
	value = JS_Eval(ctx, text, len, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	free(text);
	if (JS_IsException(value))
		return NULL;
	JS_FreeValue(ctx, value); /* the context has the module */
	return JS_VALUE_GET_PTR(value);
}

static void run_jobs(JSContext *ctx)
{
	JSContext *of_job; /* NULL after the last one */
	int rc;

	while ((rc = JS_ExecutePendingJob(JS_GetRuntime(ctx), &of_job)) > 0)
		;
	if (rc < 0)
		end_by_exception(of_job);
	if (nrejected) {
		print_error(ctx, rejected[1]);
		exit(1);
	}
}

/* Jobs, then the next timer, until there is none. */
static void run_timers(JSContext *ctx, JSValueConst next_timer)
{
	for (;;) {
		JSValue more;
		int any;

		run_jobs(ctx);
		more = JS_Call(ctx, next_timer, JS_UNDEFINED, 0, NULL);
		if (JS_IsException(more))
			end_by_exception(ctx);
		any = JS_ToBool(ctx, more);
		JS_FreeValue(ctx, more);
		if (!any)
			return;
	}
}

static JSValue boot(JSContext *ctx, int argc, char **argv)
{
	JSValue host = JS_NewObject(ctx), words = JS_NewArray(ctx), start, next_timer;

	JS_SetPropertyFunctionList(ctx, host, calls, sizeof(calls) / sizeof(*calls));
	for (int i = 0; i < argc; i++)
		JS_SetPropertyUint32(ctx, words, (uint32_t)i, JS_NewString(ctx, argv[i]));
	JS_SetPropertyStr(ctx, host, "argv", words);
	start = JS_Eval(ctx, javascript_text, sizeof(javascript_text) - 1, "javascript.js",
			JS_EVAL_TYPE_GLOBAL);
	if (JS_IsException(start))
		end_by_exception(ctx);
	next_timer = JS_Call(ctx, start, JS_UNDEFINED, 1, &host);
	if (JS_IsException(next_timer))
		end_by_exception(ctx);
	return next_timer;
}

int main(int argc, char **argv)
{
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = rt ? JS_NewContext(rt) : NULL;
	JSValue next_timer, value;
	size_t len;
	char *text;
	int kind;

	if (argc == 2 && !strcmp(argv[1], "--version"))
		return puts("QuickJS " CONFIG_VERSION) < 0;
	if (argc < 2 || !ctx) {
		fprintf(stderr, "usage: javascript FILE [ARG...]\n");
		return 2;
	}
	JS_SetMaxStackSize(rt, STACK_BYTES);
	JS_SetHostPromiseRejectionTracker(rt, on_rejection, NULL);
	JS_SetModuleLoaderFunc(rt, NULL, load_module, NULL);
	text = read_file(argv[1], &len);
	if (!text) {
		fprintf(stderr, "javascript: %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	next_timer = boot(ctx, argc, argv);
	kind = JS_DetectModule(text, len) ? JS_EVAL_TYPE_MODULE : JS_EVAL_TYPE_GLOBAL;
	value = JS_Eval(ctx, text, len, argv[1], kind);
	if (JS_IsException(value))
		end_by_exception(ctx);
	run_timers(ctx, next_timer);
	return 0;
}
