/* image_flags.h - flags of IMAGE_SAVE (wire.h). */
#pragma once

enum {
	WIRE_IMAGE_PORTABLE = 1 << 0, /* with the files of the host that programs have mapped */
};
