/* prove_settings.c - see prove_settings.h. */
#include "daemon/prove_settings.h"

#include <string.h>

void prove_settings_text(const struct config *c, struct buf *out)
{
	char shown[CONFIG_SHOWN];

	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		if (!strncmp(config_rows[i].name, "isolation.", 10) &&
		    strcmp(config_rows[i].name, "isolation.prove") != 0)
			buf_printf(out, "%s=%s\n", config_rows[i].name,
				   config_shown(c, (enum config_key)i, shown));
}
