/*
 * picture: what the header of a picture tells, and whether its file is whole. PNG, JPEG,
 * GIF and WebP are known by their content. No picture is decoded: the bytes go to the
 * model as they are. A file that ends too early, or whose parts do not fit, is refused
 * here, because a service that cannot decode one picture refuses the whole conversation
 * from then on.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All services take pictures within these limits. 3.75 MiB are 5 MB (5 MiB) as Base64, and
 * that is the limit of Anthropic's API, as are 8,000 pixels a side.
 */
#define PICTURE_MOST_TEXT "3.75 MiB and 8,000 pixels a side"
enum { PICTURE_BYTES_MAX = 15 << 18, PICTURE_SIDE_MAX = 8000 };

struct picture {
	const char *format; /* "PNG" */
	const char *mime;   /* "image/png" */
	uint32_t width, height;
};

/* The name of the format with whose mark START begins; NULL: it is no picture. */
const char *picture_format(struct str start);

/*
 * Read the header of a whole file. False (ERR: half a sentence such as "it is cut off"):
 * the file is damaged, or is no picture. Sides are 1 or more.
 */
bool picture_read(struct str bytes, struct picture *picture, struct err *err);

/* Append "PNG, 1280×800, 212 KiB". BYTES: the size of the file. */
void picture_describe(const struct picture *picture, uint64_t bytes, struct buf *out);

/* Is a picture of BYTES within the limits? */
bool picture_fits(const struct picture *picture, uint64_t bytes);

/* The picture in BYTES as an item of a result's content (tool.h); the caller frees it. */
struct value *picture_value(const struct picture *picture, struct str bytes);

/* Add the picture in BYTES to the content of RESULT. False: there is no room for it. */
bool picture_add(const struct picture *picture, struct str bytes,
		 struct tool_result *result);
