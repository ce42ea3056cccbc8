/* binary_kind: the table of beginnings; see binary_kind.h. */
#include "tools/binary_kind.h"

#include "base/text/text.h"

#include <stddef.h>

enum { LOOKED_AT = 8192 };

static const struct {
	size_t at;
	struct str bytes;
	const char *name;
} kinds[] = {
	{0, {"\x89PNG\r\n\x1a\n", 8}, "PNG"},
	{0, {"\xff\xd8\xff", 3}, "JPEG"},
	{0, {"GIF8", 4}, "GIF"},
	{8, {"WEBP", 4}, "WebP"},
	{0, {"%PDF-", 5}, "PDF"},
	{0,
	 {"\x7f"
	  "ELF",
	  4},
	 "ELF"},
	{0, {"PK\x03\x04", 4}, "ZIP"},
	{0, {"\x1f\x8b", 2}, "gzip"},
	{0, {"BZh", 3}, "bzip2"},
	{0,
	 {"\xfd"
	  "7zXZ",
	  5},
	 "xz"},
	{0, {"\x28\xb5\x2f\xfd", 4}, "Zstandard"},
	{0, {"7z\xbc\xaf", 4}, "7z"},
	{0, {"SQLite format 3", 15}, "SQLite"},
	{0, {"\0asm", 4}, "WebAssembly"},
	{0, {"\xca\xfe\xba\xbe", 4}, "a Java class"},
	{0, {"!<arch>\n", 8}, "an archive of ar"},
	{257, {"ustar", 5}, "tar"},
	{0, {"OggS", 4}, "Ogg"},
	{0, {"ID3", 3}, "MP3"},
	{0, {"RIFF", 4}, "RIFF"},
	{4, {"ftyp", 4}, "MP4"},
	{0, {"PACK", 4}, "a pack of git"},
	{0, {"DIRC", 4}, "an index of git"},
	{0, {"\xff\xfe", 2}, "UTF-16"},
	{0, {"\xfe\xff", 2}, "UTF-16"},
};

static bool is_plain(struct str part)
{
	for (size_t i = 0; i < part.size; i++) {
		unsigned char byte = (unsigned char)part.data[i];

		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
		    byte == 0x7f)
			return false;
	}
	return text_is_utf8(part);
}

/* Is it text but for the bytes of 0 that end its parts, as `find -print0` writes them? */
static bool is_parts(struct str start)
{
	struct str rest = str_part(start, 0, LOOKED_AT);
	size_t parts = 0, end;

	/* The last one may be torn in the middle of a character. */
	while ((end = str_find(rest, STR("\0"), 0)) != (size_t)-1) {
		if (end == 0 || !is_plain(str_part(rest, 0, end)))
			return false;
		rest = str_part(rest, end + 1, rest.size);
		parts++;
	}
	return parts > 0;
}

const char *binary_kind(struct str start)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (str_starts(str_part(start, kinds[i].at, start.size), kinds[i].bytes))
			return kinds[i].name;
	}
	return is_parts(start) ? "text in parts that end with NUL" : NULL;
}
