/* builtin.c - see builtin.h. */
#include "template/builtin.h"
#include "base/buf.h"

#include <string.h>

const struct builtin_template builtin_templates[BUILTIN_TEMPLATES] = {
	{ "base", "5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d01", "python", NULL, 0, 0 },
	{ "code-interpreter-v1", "5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d02", "python", NULL, 1, 0 },
	{ "code-interpreter", "5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d03", "python", NULL, 1, 0 },
	{ "code-interpreter-stateful", "5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d04", "python", NULL, 1,
	  0 },
	{ "code-interpreter-multilang", "5f0b6a52-3c0e-4c9a-9d0c-6a1f0b8e2d05", "python", NULL, 1,
	  0 },
	{ "streamlit-developer", NULL, "python", "streamlit run app.py --server.port \"$PORT\"", 0,
	  1 },
	{ "gradio-developer", NULL, "python", NULL, 0, 0 },
	{ "nextjs-developer", NULL, "node", "npx next dev -p \"$PORT\"", 0, 1 },
	{ "vue-developer", NULL, "node", "npx nuxt dev --port \"$PORT\"", 0, 1 },
};

const struct builtin_template *builtin_template_find(const char *name)
{
	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++)
		if (!strcmp(builtin_templates[i].name, name))
			return &builtin_templates[i];
	return NULL;
}

void builtin_template_names(struct buf *out, int e2b)
{
	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++)
		if (!e2b || builtin_templates[i].build)
			buf_printf(out, "%s%s", i ? ", " : "", builtin_templates[i].name);
}
