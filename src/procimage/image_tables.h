/* image_tables.h - sizes of the records of a process image. */
#pragma once
#include "procimage/image.h"

extern const size_t procimage_record_bytes[IMAGE_TABLES];
