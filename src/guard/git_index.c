/* git_index: reads the entries one after the other, then the extensions. */
#include "guard/git_index.h"

#include "base/buf.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	HEADER = 12,
	STAT_BYTES = 40, /* times, device, inode, mode, owner, size */
	INODE_AT = 20,
	MODE_AT = 24,
	SIZE_AT = 36,
	EXTENDED = 0x4000,
	ASSUME_VALID = 0x8000,
	STAGE_MASK = 0x3000,
	SKIP_WORKTREE = 0x4000, /* in the flags of version 3 and later */
	INTENT_TO_ADD = 0x2000,
	NAME_MASK = 0x0fff,
	MODE_GITLINK = 0160000,
	MODE_FOLDER = 0040000, /* in a sparse index; the name ends in a slash */
	MODE_TYPE = 0170000,
	EXTENSION_HEADER = 8,
	OFFSETS_VERSION = 1,
	OFFSETS_HEADER = 4,
	OFFSETS_ROW = 8, /* the offset of a block of entries and their number */
};

struct place {
	struct str text; /* without the hash at its end */
	size_t at;
	size_t hash; /* bytes of an object name */
	unsigned version;
	struct buf name; /* name of the last entry, for version 4 */
	bool nameless;   /* an entry changes one of the other part, which has its name */
};

static uint32_t number32(const char *bytes)
{
	const unsigned char *b = (const unsigned char *)bytes;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static unsigned number16(const char *bytes)
{
	const unsigned char *b = (const unsigned char *)bytes;

	return (unsigned)b[0] << 8 | b[1];
}

static bool broken(struct err *err, const char *what)
{
	return err_set(err, EINVAL, "a git index that does not hold together (%s)", what);
}

/*
 * Version 4: read how many bytes to cut off the last name, a number in groups of seven
 * bits.
 */
static bool take_strip(struct place *place, size_t *strip)
{
	size_t value = 0;

	for (bool first = true;; first = false) {
		if (place->at >= place->text.size || value > PATH_MAX)
			return false;
		unsigned byte = (unsigned char)place->text.data[place->at++];
		value = first ? byte & 0x7f : ((value + 1) << 7) | (byte & 0x7f);
		if ((byte & 0x80) == 0)
			break;
	}
	*strip = value;
	return true;
}

static bool name_compressed(struct place *place)
{
	const char *end;
	size_t strip;

	if (!take_strip(place, &strip) || strip > place->name.size)
		return false;
	end = memchr(place->text.data + place->at, '\0', place->text.size - place->at);
	if (end == NULL)
		return false;
	struct str rest = str_part(place->text, place->at,
				   (size_t)(end - place->text.data) - place->at);
	buf_truncate(&place->name, place->name.size - strip);
	place->at += rest.size + 1;
	return buf_addstr(&place->name, rest);
}

/*
 * Versions 2 and 3: read the name and the zeros that pad the entry to a multiple of eight
 * bytes.
 */
static bool name_plain(struct place *place, size_t start, size_t size, struct str *name)
{
	size_t from = place->at;

	if (size == NAME_MASK) {
		const char *end =
			memchr(place->text.data + from, '\0', place->text.size - from);
		if (end == NULL)
			return false;
		size = (size_t)(end - place->text.data) - from;
	}
	*name = str_part(place->text, from, size);
	place->at = start + ((from - start + size + 8) & ~(size_t)7);
	return name->size == size && place->at <= place->text.size;
}

/* Call READER->entry for the file NAME, whose entry begins at BYTES. */
static bool tell_entry(struct git_index_reader *reader, const char *bytes,
		       struct str name, bool unsure)
{
	const struct git_index_entry entry = {
		.path = name,
		.mode = number32(bytes + MODE_AT),
		.ctime_s = number32(bytes),
		.ctime_ns = number32(bytes + 4),
		.mtime_s = number32(bytes + 8),
		.mtime_ns = number32(bytes + 12),
		.inode = number32(bytes + INODE_AT),
		.size = number32(bytes + SIZE_AT),
		.object = (const unsigned char *)bytes + STAT_BYTES,
		.unsure = unsure,
	};

	return reader->entry(reader->context, &entry);
}

/*
 * May NAME be written below a worktree? Git checks the names that it puts into an index,
 * but not those that it finds there.
 */
static bool is_sound(struct str name)
{
	const char *at = name.data, *end = name.data + name.size;

	if (memchr(name.data, '\0', name.size) != NULL)
		return false;
	while (at <= end) {
		const char *slash = at < end ? memchr(at, '/', (size_t)(end - at)) : NULL;
		const size_t size = (size_t)((slash != NULL ? slash : end) - at);

		if (size == 0 ||
		    (at[0] == '.' && (size == 1 || (size == 2 && at[1] == '.') ||
				      (size == 4 && strncasecmp(at, ".git", size) == 0))))
			return false;
		at += size + 1;
	}
	return true;
}

static bool take_entry(struct place *place, struct git_index_reader *reader, struct err *err)
{
	size_t start = place->at;
	size_t fixed = STAT_BYTES + place->hash + 2;
	struct str name;

	if (place->text.size - start < fixed + 2)
		return broken(err, "an entry is cut");
	unsigned mode = number32(place->text.data + start + MODE_AT);
	unsigned flags = number16(place->text.data + start + fixed - 2);
	place->at = start + fixed;
	bool unsure = (flags & (ASSUME_VALID | STAGE_MASK)) != 0;
	if ((flags & EXTENDED) != 0) {
		if (place->version < 3)
			return broken(err, "a flag of a later version");
		if (number16(place->text.data + place->at) & (SKIP_WORKTREE | INTENT_TO_ADD))
			unsure = true;
		place->at += 2;
	}
	if (place->version == 4) {
		if (!name_compressed(place))
			return broken(err, "a name");
		name = buf_str(&place->name);
	} else if (!name_plain(place, start, flags & NAME_MASK, &name)) {
		return broken(err, "a name");
	}
	if (name.size == 0) {
		place->nameless = true;
		return true;
	}
	const bool is_folder =
		(mode & MODE_TYPE) == MODE_FOLDER && str_ends(name, STR("/"));
	if (!is_sound(str_part(name, 0, name.size - is_folder)))
		reader->unsound = true;
	if ((mode & MODE_TYPE) != MODE_GITLINK && (mode & MODE_TYPE) != MODE_FOLDER)
		return reader->entry == NULL || name.size >= PATH_MAX ||
		       tell_entry(reader, place->text.data + start, name, unsure) ||
		       err_set(err, E2BIG, "a git index with too many files");
	/*
	 * Git does not expand a folder without a slash, and such an entry is not
	 * documented.
	 */
	if (((mode & MODE_TYPE) == MODE_FOLDER) != str_ends(name, STR("/")))
		return broken(err, "a folder's name");
	if (name.size >= PATH_MAX || memchr(name.data, '\0', name.size) != NULL)
		return broken(err, "a gitlink's name");
	return reader->link == NULL || reader->link(reader->context, name) ||
	       err_set(err, E2BIG, "a git index with too many gitlinks");
}

static void take_shared(struct git_index_reader *reader, struct str data, size_t hash)
{
	unsigned any = 0;

	if (data.size < hash)
		return;
	for (size_t i = 0; i < hash; i++) {
		unsigned byte = (unsigned char)data.data[i];
		any |= byte;
		(void)snprintf(reader->shared + 2 * i, 3, "%02x", byte);
	}
	if (any == 0)
		reader->shared[0] = '\0';
}

static bool unknown(struct err *err, struct str name)
{
	struct buf shown;

	buf_init(&shown, 32);
	text_add_name(&shown, name);
	(void)err_set(err, ENOTSUP,
		      "a git index with an extension that is not known here (%s)",
		      shown.data);
	buf_fini(&shown);
	return false;
}

/*
 * Does the table TEXT, in the form of git, lead to the same entries as reading them in
 * order?
 */
static bool offsets_hold(const struct place *whole, struct str text)
{
	struct place place = {.text = whole->text,
			      .at = HEADER,
			      .hash = whole->hash,
			      .version = whole->version};
	struct git_index_reader nobody = {.sha256 = whole->hash == GIT_HASH_MAX};
	uint32_t left = number32(whole->text.data + 8);
	bool hold = text.size >= OFFSETS_HEADER && number32(text.data) == OFFSETS_VERSION;

	buf_init(&place.name, PATH_MAX);
	for (size_t at = OFFSETS_HEADER; hold && at < text.size; at += OFFSETS_ROW) {
		hold = text.size - at >= OFFSETS_ROW &&
		       number32(text.data + at) == place.at &&
		       number32(text.data + at + 4) <= left;
		for (uint32_t i = hold ? number32(text.data + at + 4) : 0; hold && i > 0;
		     i--) {
			hold = take_entry(&place, &nobody, NULL);
			left--;
		}
	}
	buf_fini(&place.name);
	return hold && left == 0;
}

static bool take_extensions(struct place *place, struct git_index_reader *reader,
			    struct err *err)
{
	const size_t end = place->at;

	while (place->text.size - place->at >= EXTENSION_HEADER) {
		struct str name = str_part(place->text, place->at, 4);
		size_t size = number32(place->text.data + place->at + 4);

		place->at += EXTENSION_HEADER;
		if (size > place->text.size - place->at)
			return broken(err, "an extension is cut");
		/*
		 * Git may ignore an extension whose name begins with a capital letter,
		 * but no other.
		 */
		if ((name.data[0] < 'A' || name.data[0] > 'Z') && !str_is(name, "link") &&
		    !str_is(name, "sdir"))
			return unknown(err, name);
		const struct str data = str_part(place->text, place->at, size);
		/* Git reads these two when index.threads is not 1. */
		if ((str_is(name, "EOIE") && (size < 4 || number32(data.data) != end)) ||
		    (str_is(name, "IEOT") && !offsets_hold(place, data)))
			reader->unsound = true;
		if (str_is(name, "link"))
			take_shared(reader, data, place->hash);
		place->at += size;
	}
	return true;
}

bool git_index_read(struct git_index_reader *reader, struct str text, struct err *err)
{
	struct place place = {.hash = reader->sha256 ? 32 : 20, .at = HEADER};
	bool fine = true;

	reader->shared[0] = '\0';
	reader->unsound = false;
	if (text.size < HEADER + place.hash || !str_starts(text, STR("DIRC")))
		return broken(err, "its head");
	place.version = number32(text.data + 4);
	if (place.version < 2 || place.version > 4)
		return broken(err, "a version that is not 2, 3 or 4");
	place.text = str_part(text, 0, text.size - place.hash);
	buf_init(&place.name, PATH_MAX);
	for (uint32_t left = number32(text.data + 8); fine && left > 0; left--)
		fine = take_entry(&place, reader, err);
	fine = fine && take_extensions(&place, reader, err);
	if (fine && place.nameless && reader->shared[0] == '\0')
		fine = broken(err, "an entry without a name");
	buf_fini(&place.name);
	return fine;
}
