/*
 * picture: walks through the parts of a picture's file. Each part names its own size, so
 * a file that is cut off ends inside a part, or lacks the last one.
 */

#include "tool/picture.h"

#include "base/buf.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <string.h>

static const char cut_off[] = "it is cut off";

/* The bytes that were not read yet. Reading past their end gives zeros and sets SHORT. */
struct rest {
	struct str bytes;
	bool is_short;
};

static uint32_t take(struct rest *rest, unsigned count, bool big)
{
	uint32_t number = 0;

	if (rest->bytes.size < count) {
		rest->bytes = (struct str){0};
		rest->is_short = true;
		return 0;
	}
	for (unsigned i = 0; i < count; i++) {
		const uint32_t byte = (unsigned char)rest->bytes.data[i];

		number |= byte << 8 * (big ? count - 1 - i : i);
	}
	rest->bytes = str_part(rest->bytes, count, rest->bytes.size);
	return number;
}

static struct str take_part(struct rest *rest, uint64_t size)
{
	struct str part = {0};

	if (size > rest->bytes.size) {
		rest->bytes = (struct str){0};
		rest->is_short = true;
		return part;
	}
	part = str_part(rest->bytes, 0, (size_t)size);
	rest->bytes = str_part(rest->bytes, (size_t)size, rest->bytes.size);
	return part;
}

/* The checksum of a part of a PNG (ISO 3309, CRC-32). */
static uint32_t checksum(struct str bytes)
{
	static const uint32_t half[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint32_t sum = UINT32_MAX;

	for (size_t i = 0; i < bytes.size; i++) {
		sum ^= (unsigned char)bytes.data[i];
		sum = sum >> 4 ^ half[sum & 15];
		sum = sum >> 4 ^ half[sum & 15];
	}
	return ~sum;
}

#define PNG_MARK "\x89PNG\r\n\x1a\n"

/* Parts of a PNG: length, type, content, checksum of type and content. */
static bool read_png(struct str bytes, struct picture *picture, struct err *err)
{
	enum { SIDES = 13, TYPE = 4 };
	struct rest rest = {.bytes = str_part(bytes, strlen(PNG_MARK), bytes.size)};
	bool has_data = false;

	for (bool is_first = true;; is_first = false) {
		const uint32_t size = take(&rest, 4, true);
		struct str part = take_part(&rest, (uint64_t)size + TYPE);
		const uint32_t sum = take(&rest, 4, true);

		if (rest.is_short)
			return err_set(err, EINVAL, "%s", cut_off);
		if (sum != checksum(part))
			return err_set(err, EINVAL,
				       "it is damaged: the checksum of a part does not fit");
		if (is_first != str_starts(part, STR("IHDR")) || (is_first && size != SIDES))
			return err_set(err, EINVAL, "it is damaged: its header is wrong");
		if (is_first) {
			struct rest header = {.bytes = str_part(part, TYPE, part.size)};

			picture->width = take(&header, 4, true);
			picture->height = take(&header, 4, true);
		}
		has_data |= str_starts(part, STR("IDAT")) && size > 0;
		if (str_starts(part, STR("IEND")))
			return has_data || err_set(err, EINVAL, "it holds no picture");
	}
}

#define JPEG_MARK "\xff\xd8\xff"

enum {
	JPEG_FIRST_FRAME = 0xc0,
	JPEG_LAST_FRAME = 0xcf,
	JPEG_HUFFMAN = 0xc4,    /* … but not these three, which are tables … */
	JPEG_EXTENSION = 0xc8,  /* … or reserved */
	JPEG_ARITHMETIC = 0xcc, /* … */
	JPEG_RESTART = 0xd0,    /* up to 0xd7; these stand in the data */
	JPEG_END = 0xd9,
	JPEG_SCAN = 0xda,
};

static bool is_frame(uint32_t mark)
{
	return mark >= JPEG_FIRST_FRAME && mark <= JPEG_LAST_FRAME &&
	       mark != JPEG_HUFFMAN && mark != JPEG_EXTENSION && mark != JPEG_ARITHMETIC;
}

/* Pass the data of a scan, up to the next mark that is none of the data's own. */
static void pass_scan(struct rest *rest)
{
	struct str bytes = rest->bytes;

	for (size_t at = 0; at + 1 < bytes.size; at++) {
		const char *found = memchr(bytes.data + at, 0xff, bytes.size - 1 - at);
		unsigned char next;

		if (found == NULL)
			break;
		at = (size_t)(found - bytes.data);
		next = (unsigned char)bytes.data[at + 1];
		if (next != 0 && next != 0xff && (next & ~7U) != JPEG_RESTART) {
			rest->bytes = str_part(bytes, at, bytes.size);
			return;
		}
	}
	rest->bytes = (struct str){0};
	rest->is_short = true;
}

/* Segments of a JPEG: 0xff, mark, length with itself, content; after a scan its data. */
static bool read_jpeg(struct str bytes, struct picture *picture, struct err *err)
{
	struct rest rest = {.bytes = str_part(bytes, 2, bytes.size)};
	bool has_frame = false, has_scan = false;

	for (;;) {
		uint32_t mark = take(&rest, 1, true);
		uint32_t size;
		struct str part;

		if (!rest.is_short && mark != 0xff)
			return err_set(err, EINVAL, "it is damaged: a mark is missing");
		while (mark == 0xff)
			mark = take(&rest, 1, true);
		if (rest.is_short)
			return err_set(err, EINVAL, "%s", cut_off);
		if (mark == JPEG_END)
			return (has_frame && has_scan) ||
			       err_set(err, EINVAL, "it holds no picture");
		size = take(&rest, 2, true);
		if (!rest.is_short && size < 2)
			return err_set(err, EINVAL, "it is damaged: a part has no length");
		part = take_part(&rest, size - 2U);
		if (rest.is_short)
			return err_set(err, EINVAL, "%s", cut_off);
		if (is_frame(mark)) {
			struct rest frame = {.bytes = part};

			(void)take(&frame, 1, true); /* bits of a sample */
			picture->height = take(&frame, 2, true);
			picture->width = take(&frame, 2, true);
			has_frame = !frame.is_short;
		}
		if (mark == JPEG_SCAN) {
			has_scan = true;
			pass_scan(&rest);
		}
	}
}

/* Pass blocks that begin with their size, up to one of size 0. */
static void pass_blocks(struct rest *rest)
{
	uint32_t size;

	do {
		size = take(rest, 1, false);
		(void)take_part(rest, size);
	} while (size > 0);
}

static void pass_colours(struct rest *rest, uint32_t flags)
{
	if ((flags & 0x80) != 0)
		(void)take_part(rest, 3U << ((flags & 7) + 1));
}

#define GIF_MARK_87 "GIF87a"
#define GIF_MARK_89 "GIF89a"

static bool read_gif(struct str bytes, struct picture *picture, struct err *err)
{
	enum { IMAGE = 0x2c, EXTENSION = 0x21, TRAILER = 0x3b, PLACE = 8 };
	struct rest rest = {.bytes = str_part(bytes, strlen(GIF_MARK_89), bytes.size)};
	bool has_image = false;
	uint32_t flags;

	picture->width = take(&rest, 2, false);
	picture->height = take(&rest, 2, false);
	flags = take(&rest, 1, false);
	(void)take(&rest, 2, false); /* background, shape of a pixel */
	pass_colours(&rest, flags);
	for (;;) {
		const uint32_t kind = take(&rest, 1, false);

		if (rest.is_short)
			return err_set(err, EINVAL, "%s", cut_off);
		if (kind == TRAILER)
			return has_image || err_set(err, EINVAL, "it holds no picture");
		if (kind == IMAGE) {
			(void)take_part(&rest, PLACE);
			flags = take(&rest, 1, false);
			pass_colours(&rest, flags);
			has_image = true;
		} else if (kind != EXTENSION) {
			return err_set(err, EINVAL,
				       "it is damaged: a part is of no known kind");
		}
		(void)take(&rest, 1, false); /* bits of a code, or kind of the extension */
		pass_blocks(&rest);
	}
}

#define WEBP_MARK "RIFF"

/* A part of a WebP that tells the sides. False: it is damaged. */
static bool read_webp_part(struct str name, struct str part, struct picture *picture)
{
	struct rest rest = {.bytes = part};
	uint32_t sides;

	if (str_is(name, "VP8X")) {
		(void)take(&rest, 4, false); /* flags */
		picture->width = take(&rest, 3, false) + 1;
		picture->height = take(&rest, 3, false) + 1;
	} else if (str_is(name, "VP8L")) {
		if (take(&rest, 1, false) != 0x2f)
			return false;
		sides = take(&rest, 4, false);
		picture->width = (sides & 0x3fff) + 1;
		picture->height = (sides >> 14 & 0x3fff) + 1;
	} else {
		(void)take(&rest, 3, false); /* tag of the frame */
		if (take(&rest, 3, false) != 0x2a019d)
			return false;
		picture->width = take(&rest, 2, false) & 0x3fff;
		picture->height = take(&rest, 2, false) & 0x3fff;
	}
	return !rest.is_short;
}

/* Parts of a WebP (RIFF): name, length, content, padded to an even number of bytes. */
static bool read_webp(struct str bytes, struct picture *picture, struct err *err)
{
	struct rest file = {.bytes = str_part(bytes, strlen(WEBP_MARK), bytes.size)};
	struct rest rest = {.bytes = take_part(&file, take(&file, 4, false))};
	bool has_sides = false, has_image = false;

	if (file.is_short)
		return err_set(err, EINVAL, "%s", cut_off);
	(void)take_part(&rest, strlen("WEBP"));
	while (rest.bytes.size > 0) {
		struct str name = take_part(&rest, 4);
		const uint32_t size = take(&rest, 4, false);
		struct str part = take_part(&rest, size);
		const bool is_image = str_is(name, "VP8 ") || str_is(name, "VP8L");

		if (size % 2 != 0 && rest.bytes.size > 0)
			(void)take(&rest, 1, false);
		if (rest.is_short)
			return err_set(err, EINVAL, "it is damaged: a part does not fit");
		has_image |= is_image || str_is(name, "ANMF");
		if (has_sides || (!is_image && !str_is(name, "VP8X")))
			continue;
		if (!read_webp_part(name, part, picture))
			return err_set(err, EINVAL, "it is damaged: its header is wrong");
		has_sides = true;
	}
	return (has_sides && has_image) || err_set(err, EINVAL, "it holds no picture");
}

static const struct format {
	const char *name, *mime;
	struct str mark;
	bool (*read)(struct str bytes, struct picture *picture, struct err *err);
} formats[] = {
	{"PNG", "image/png", {PNG_MARK, sizeof(PNG_MARK) - 1}, read_png},
	{"JPEG", "image/jpeg", {JPEG_MARK, sizeof(JPEG_MARK) - 1}, read_jpeg},
	{"GIF", "image/gif", {GIF_MARK_87, sizeof(GIF_MARK_87) - 1}, read_gif},
	{"GIF", "image/gif", {GIF_MARK_89, sizeof(GIF_MARK_89) - 1}, read_gif},
	{"WebP", "image/webp", {WEBP_MARK, sizeof(WEBP_MARK) - 1}, read_webp},
};

static const struct format *format_of(struct str start)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!str_starts(start, formats[i].mark))
			continue;
		/* Other kinds of files begin with RIFF too. */
		return formats[i].read != read_webp || str_is(str_part(start, 8, 4), "WEBP")
			       ? &formats[i]
			       : NULL;
	}
	return NULL;
}

const char *picture_format(struct str start)
{
	const struct format *format = format_of(start);

	return format != NULL ? format->name : NULL;
}

bool picture_read(struct str bytes, struct picture *picture, struct err *err)
{
	const struct format *format = format_of(bytes);

	if (format == NULL)
		return err_set(err, EINVAL, "it is no PNG, JPEG, GIF or WebP");
	*picture = (struct picture){.format = format->name, .mime = format->mime};
	if (!format->read(bytes, picture, err))
		return false;
	return (picture->width > 0 && picture->height > 0) ||
	       err_set(err, EINVAL, "its header tells no size");
}

void picture_describe(const struct picture *picture, uint64_t bytes, struct buf *out)
{
	char size[32];

	(void)buf_addf(out, "%s, %u×%u, %s", picture->format, picture->width,
		       picture->height, text_size(bytes, size));
}

bool picture_fits(const struct picture *picture, uint64_t bytes)
{
	return bytes <= PICTURE_BYTES_MAX && picture->width <= PICTURE_SIDE_MAX &&
	       picture->height <= PICTURE_SIDE_MAX;
}

struct value *picture_value(const struct picture *picture, struct str bytes)
{
	struct value *item = value_new_object();
	struct buf data;

	buf_init(&data, RESULT_CONTENT_BYTES_MAX);
	(void)buf_base64_add(bytes, &data);
	value_set_text(item, "type", "image");
	value_set_str(item, "data", buf_str(&data));
	value_set_text(item, "mimeType", picture->mime);
	buf_fini(&data);
	return item;
}

bool picture_add(const struct picture *picture, struct str bytes, struct tool_result *result)
{
	return tool_add_content(result, picture_value(picture, bytes));
}
