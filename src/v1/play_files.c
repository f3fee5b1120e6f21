/* play_files.c - see play_files.h. */
#include "v1/play_files.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <string.h>

#define PLAY_JS "text/javascript;charset=utf-8"
#define CORE "quickjs-emscripten-core/dist/"
#define QUICKJS "@jitl/quickjs-wasmfile-release-sync/dist/"

const char *const play_packages[] = { "pyodide@314.0.7", "quickjs-emscripten-core@0.32.0",
				      "@jitl/quickjs-ffi-types@0.32.0",
				      "@jitl/quickjs-wasmfile-release-sync@0.32.0", NULL };

const struct play_file play_files[] = {
	/* clang-format off */
	{ "pyodide.mjs", PLAY_JS, "pyodide/pyodide.mjs",
	  "6f1d60f7bf529beb300f0f47983c921d3982363640ba20af0e38efdddbc66109" },
	{ "pyodide.asm.mjs", PLAY_JS, "pyodide/pyodide.asm.mjs",
	  "f7cdc8ece80678ceb712f8e65ebe6d3a83203a180c399865f49612a051693635" },
	{ "pyodide.asm.wasm", "application/wasm", "pyodide/pyodide.asm.wasm",
	  "cc36e3cab04fdfc9a63ff13eb52eae2b911bf46c025cc7b281f394bd3de1d5e6" },
	{ "python_stdlib.zip", "application/zip", "pyodide/python_stdlib.zip",
	  "fa1957e5777068fc4f7437f96d860ae2fbe9c19732ba06c84e004ec16dd7dd7a" },
	{ "pyodide-lock.json", "application/json", "pyodide/pyodide-lock.json",
	  "5dc2fc119108bc148c7457dc86e7675b5c87e1cafd420b9c34c1eaef7b36c010" },
	{ "quickjs-core.mjs", PLAY_JS, CORE "index.mjs",
	  "5f7a507ca71ffbff0ec0bad88a9c38f717d34fd8ab9222b58deacc9de5644a3e" },
	{ "chunk-TAV5CUKK.mjs", PLAY_JS, CORE "chunk-TAV5CUKK.mjs",
	  "b423c720a9deef215b404e4ee212533bcef9de785a11f44aacf1ad8266ae6769" },
	{ "chunk-V2S4ZYJR.mjs", PLAY_JS, CORE "chunk-V2S4ZYJR.mjs",
	  "9601ad84160a56f1321e1ed67910a3b79a4e29312f11de129e6f94a5b3e17b9a" },
	{ "module-ES6BEMUI.mjs", PLAY_JS, CORE "module-ES6BEMUI.mjs",
	  "289a200ab91f855ed79f75147eb674b81cea7adf032f9344bd8b29ff5e7a7d43" },
	{ "quickjs-ffi-types.mjs", PLAY_JS, "@jitl/quickjs-ffi-types/dist/index.mjs",
	  "5b6ccfe50a0d0066411135c66964b0c15c05167f5324df2e8066493da807efbe" },
	{ "quickjs-ffi.mjs", PLAY_JS, QUICKJS "ffi.mjs",
	  "ccf8b3aa066c2be5755e3ea49d81b01dff5a671deb34b7ec3a1c983dd52e9335" },
	{ "emscripten-module.browser.mjs", PLAY_JS, QUICKJS "emscripten-module.browser.mjs",
	  "3b8e916b3248062be4bbd3281c8d2832f074e6850596fc9951e93b846139ddea" },
	{ "emscripten-module.wasm", "application/wasm", QUICKJS "emscripten-module.wasm",
	  "105c3bed22d457e43e3d1c3c1c6959fda62a8fe06f0fc8a985303c3a2be72232" },
	/* clang-format on */
};
const unsigned play_nfiles = ARRAY_LEN(play_files);

const char *play_set(void)
{
	static char name[PLAY_SET];
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;

	if (name[0])
		return name;
	sha256_init(&s);
	for (unsigned i = 0; i < play_nfiles; i++) {
		sha256_add(&s, play_files[i].name, strlen(play_files[i].name) + 1);
		sha256_add(&s, play_files[i].sha256, strlen(play_files[i].sha256) + 1);
	}
	sha256_end(&s, digest);
	hex_encode(name, digest, (PLAY_SET - 1) / 2);
	return name;
}

const struct play_file *play_find(const char *name)
{
	for (unsigned i = 0; i < play_nfiles; i++)
		if (!strcmp(play_files[i].name, name))
			return &play_files[i];
	return NULL;
}
