/*
 * readers: reads git configurations, indexes and small files. Holds the list of inert
 * configuration keys.
 */

#include "guard/readers.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES = 256, VALUE_BYTES = 16 << 10 };

/*
 * Inert keys: they name no program, no file and no other place to read settings from. "*"
 * stands for the part in quotes. They are in lower case, as git compares them.
 */
static const char inert[] =
	"core.repositoryformatversion core.filemode core.bare core.logallrefupdates "
	"core.ignorecase core.precomposeunicode core.symlinks core.autocrlf core.eol "
	"core.safecrlf core.quotepath core.abbrev core.compression core.loosecompression "
	"core.sharedrepository core.sparsecheckout core.sparsecheckoutcone "
	"core.untrackedcache core.preloadindex core.commitgraph core.hidedotfiles "
	"core.bigfilethreshold core.checkstat core.trustctime core.longpaths "
	"core.whitespace core.splitindex core.fsyncobjectfiles "
	"extensions.objectformat extensions.refstorage "
	"user.name user.email user.signingkey author.name author.email committer.name "
	"committer.email init.defaultbranch "
	"remote.*.url remote.*.pushurl remote.*.fetch remote.*.push remote.*.tagopt "
	"remote.*.prune remote.*.mirror remote.*.skipdefaultupdate remote.*.skipfetchall "
	"remote.pushdefault "
	"branch.*.remote branch.*.merge branch.*.rebase branch.*.pushremote "
	"branch.*.description branch.*.vscode-merge-base branch.autosetupmerge "
	"branch.autosetuprebase branch.sort "
	"submodule.*.url submodule.*.active submodule.*.branch submodule.*.path "
	"submodule.*.ignore submodule.*.update submodule.active submodule.recurse "
	"pull.rebase pull.ff push.default push.autosetupremote push.followtags "
	"merge.ff merge.conflictstyle merge.renames merge.log rebase.autostash "
	"rebase.autosquash rebase.updaterefs rerere.enabled fetch.prune fetch.prunetags "
	"commit.gpgsign commit.verbose tag.gpgsign tag.sort "
	"gc.auto gc.autodetach gc.autopacklimit gc.pruneexpire gc.reflogexpire "
	"gc.reflogexpireunreachable gc.worktreepruneexpire maintenance.auto "
	"maintenance.strategy pack.threads pack.windowmemory pack.writebitmaps "
	"index.version index.threads feature.manyfiles status.showuntrackedfiles "
	"status.short status.branch diff.algorithm diff.renames diff.colormoved "
	"diff.mnemonicprefix diff.noprefix diff.context log.date log.decorate "
	"i18n.commitencoding i18n.logoutputencoding lfs.repositoryformatversion "
	"receive.denycurrentbranch receive.denynonfastforwards receive.denydeletes "
	"receive.autogc http.postbuffer color.ui color.branch color.diff color.status "
	"gui.wmstate gui.geometry";

/* The name of a remote counts as an address when no remote has that name. */
static const char urls[] = "remote.*.url remote.*.pushurl submodule.*.url branch.*.remote "
			   "branch.*.pushremote remote.pushdefault";

void git_config_init(struct git_config *config)
{
	*config = (struct git_config){0};
	buf_init(&config->active, GIT_CONFIG_MAX);
	buf_init(&config->excludes_file, VALUE_BYTES);
}

void git_config_fini(struct git_config *config)
{
	buf_fini(&config->active);
	buf_fini(&config->excludes_file);
}

bool git_config_included(struct str line, const char *folder, const char *home,
			 struct buf *path)
{
	static const struct str key = {".path=", 6};
	const bool conditional = str_starts(line, STR("includeif."));
	const size_t at = str_find(line, key, 0);
	struct str named;

	if (at == (size_t)-1 || (!conditional && !str_is(str_part(line, 0, at), "include")))
		return false;
	named = str_part(line, at + key.size, line.size);
	const bool of_home = str_starts(named, STR("~/"));
	if (named.size == 0 || (named.data[0] == '~' && (!of_home || home == NULL)))
		return false;
	auto_free char *copy =
		memory_copy_str(str_part(named, of_home ? 2 : 0, named.size));
	return path_normal(of_home ? home : folder, copy, path) && path->size > 1;
}

struct reading {
	struct str text;
	size_t at;
	char section[NAME_BYTES];
	char sub[NAME_BYTES];
	bool has_sub;
	bool bare; /* a key without "=" */
	struct buf value;
};

static int peek(const struct reading *reading)
{
	return reading->at < reading->text.size
		       ? (unsigned char)reading->text.data[reading->at]
		       : -1;
}

static void skip_line(struct reading *reading)
{
	while (peek(reading) >= 0 && peek(reading) != '\n')
		reading->at++;
}

static bool is_name(int c)
{
	return c >= 0 && c < 0x80 && (isalnum(c) || c == '-');
}

/*
 * Read a name at the present position and put it into NAME in lower case. The character
 * EXTRA may be part of it.
 */
static bool take_name(struct reading *reading, char name[NAME_BYTES], int extra)
{
	size_t size = 0;

	while (is_name(peek(reading)) || (extra != 0 && peek(reading) == extra)) {
		if (size + 1 == NAME_BYTES)
			return false;
		name[size++] = (char)tolower(peek(reading));
		reading->at++;
	}
	name[size] = '\0';
	return size > 0;
}

static void skip_blanks(struct reading *reading)
{
	while (peek(reading) == ' ' || peek(reading) == '\t' || peek(reading) == '\r')
		reading->at++;
}

/* Read the part in quotes of [section "sub"]. */
static bool take_sub(struct reading *reading)
{
	size_t size = 0;

	reading->at++;
	while (peek(reading) >= 0 && peek(reading) != '"') {
		if (peek(reading) == '\\')
			reading->at++;
		int c = peek(reading);
		if (c < 0 || c == '\n' || size + 1 == NAME_BYTES)
			return false;
		reading->sub[size++] = (char)c;
		reading->at++;
	}
	reading->sub[size] = '\0';
	reading->has_sub = true;
	if (peek(reading) != '"')
		return false;
	reading->at++;
	return true;
}

static bool take_section(struct reading *reading)
{
	char *dot;

	reading->at++;
	reading->has_sub = false;
	reading->sub[0] = '\0';
	if (!take_name(reading, reading->section, '.'))
		return false;
	skip_blanks(reading);
	if (peek(reading) == '"' && !take_sub(reading))
		return false;
	if (peek(reading) != ']')
		return false;
	reading->at++;
	/* The old form [section.sub]. */
	dot = strchr(reading->section, '.');
	if (dot != NULL && reading->has_sub)
		return false;
	if (dot != NULL) {
		(void)memmove(reading->sub, dot + 1, strlen(dot + 1) + 1);
		*dot = '\0';
		reading->has_sub = true;
	}
	return true;
}

/* Read one letter behind a backslash; false when git knows no such escape. */
static bool take_escape(struct reading *reading)
{
	int c;

	reading->at++;
	if (peek(reading) == '\r' && reading->at + 1 < reading->text.size &&
	    reading->text.data[reading->at + 1] == '\n')
		reading->at++;
	c = peek(reading);
	reading->at += c >= 0;
	if (c == '\n')
		return true; /* the value goes on in the next line */
	if (c == 't' || c == 'b' || c == 'n')
		return buf_addc(&reading->value, c == 't'   ? '\t'
						 : c == 'n' ? '\n'
							    : '\b');
	return (c == '\\' || c == '"') && buf_addc(&reading->value, (char)c);
}

static bool take_value(struct reading *reading)
{
	bool quoted = false;
	size_t kept = 0; /* blanks at the end count only in quotes */

	buf_clear(&reading->value);
	skip_blanks(reading);
	for (int c = peek(reading); c >= 0 && c != '\n'; c = peek(reading)) {
		if (!quoted && (c == '#' || c == ';')) {
			skip_line(reading);
			break;
		}
		if (c == '\\') {
			if (!take_escape(reading))
				return false;
		} else {
			if (c == '"')
				quoted = !quoted;
			else if (!buf_addc(&reading->value, (char)c))
				return false;
			reading->at++;
		}
		if (quoted || c == '"' || !isspace(c))
			kept = reading->value.size;
	}
	buf_truncate(&reading->value, kept);
	return !quoted;
}

/*
 * Does git fetch from URL without another program? "ext::" and other "helper::" forms run
 * a program, and a URL that begins with a dash is an option.
 */
static bool is_plain_url(struct str url)
{
	return !str_starts(url, STR("-")) && str_find(url, STR("::"), 0) == (size_t)-1;
}

static bool key_is_inert(const struct reading *reading, const char *key)
{
	static const char updates[] = "checkout rebase merge none";
	char name[2 * NAME_BYTES + 4];
	struct str value = buf_str(&reading->value);

	(void)snprintf(name, sizeof(name), "%s.%s%s", reading->section,
		       reading->has_sub ? "*." : "", key);
	if (!str_among(inert, str_of(name)))
		return false;
	if (str_among(urls, str_of(name)))
		return is_plain_url(value);
	if (strcmp(name, "submodule.*.update") == 0)
		return str_among(updates, value);
	/* Other values may also name a place. */
	if (strcmp(name, "extensions.refstorage") == 0)
		return str_among("files reftable", value);
	return memchr(value.data, '\0', value.size) == NULL;
}

/* git-config(1), "boolean"; any other text counts as false. */
static bool is_true(const struct reading *reading)
{
	const char *value = reading->value.data;

	return reading->bare || strcasecmp(value, "true") == 0 ||
	       strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0 ||
	       strtol(value, NULL, 0) != 0;
}

/* Note the values of other keys that scans need. */
static void take_known(const struct reading *reading, struct git_config *config,
		       const char *key)
{
	const bool is_core = strcmp(reading->section, "core") == 0;

	if (reading->has_sub || (!is_core && strcmp(reading->section, "extensions") != 0))
		return;
	if (!is_core && strcmp(key, "objectformat") == 0) {
		config->sha256 = str_is(buf_str(&reading->value), "sha256");
	} else if (!is_core && strcmp(key, "worktreeconfig") == 0) {
		config->of_worktrees = is_true(reading);
	} else if (is_core && strcmp(key, "ignorecase") == 0) {
		config->ignore_case = is_true(reading);
	} else if (is_core && strcmp(key, "excludesfile") == 0) {
		config->has_excludes_file = true;
		buf_clear(&config->excludes_file);
		(void)buf_addstr(&config->excludes_file, buf_str(&reading->value));
	}
}

static void take_key(struct reading *reading, struct git_config *config, const char *key)
{
	struct buf *out = &config->active;

	take_known(reading, config, key);
	if (config->each != NULL)
		config->each(config->context, reading->section,
			     reading->has_sub ? reading->sub : "", key,
			     reading->bare ? STR("") : buf_str(&reading->value));
	if (key_is_inert(reading, key))
		return;
	(void)buf_addf(out, "%s.%s%s%s=", reading->section,
		       reading->has_sub ? reading->sub : "", reading->has_sub ? "." : "",
		       key);
	(void)buf_addstr(out, buf_str(&reading->value));
	(void)buf_addc(out, '\n');
}

static bool take_line(struct reading *reading, struct git_config *config)
{
	char key[NAME_BYTES];

	while (isspace(peek(reading)))
		reading->at++;
	if (peek(reading) < 0)
		return true;
	if (peek(reading) == '#' || peek(reading) == ';') {
		skip_line(reading);
		return true;
	}
	if (peek(reading) == '[')
		return take_section(reading);
	if (reading->section[0] == '\0' || !take_name(reading, key, 0))
		return false;
	skip_blanks(reading);
	buf_clear(&reading->value);
	reading->bare = peek(reading) != '=';
	if (!reading->bare) {
		reading->at++;
		if (!take_value(reading))
			return false;
	} else if (peek(reading) == '#' || peek(reading) == ';') {
		skip_line(reading);
	} else if (peek(reading) >= 0 && peek(reading) != '\n') {
		return false;
	}
	take_key(reading, config, key);
	return true;
}

void git_config_read(struct str text, struct git_config *config)
{
	struct reading reading = {.text = text};

	if (str_starts(text, STR("\xef\xbb\xbf")))
		reading.at = 3;
	buf_init(&reading.value, VALUE_BYTES);
	while (reading.at < text.size) {
		size_t line = reading.at;
		if (take_line(&reading, config))
			continue;
		/* Git refuses such a file, but another reader may accept it. */
		skip_line(&reading);
		(void)buf_adds(&config->active, "?");
		(void)buf_addstr(&config->active, str_part(text, line, reading.at - line));
		(void)buf_addc(&config->active, '\n');
	}
	/* When `active` is full, it already shows that the configuration is not inert. */
	buf_fini(&reading.value);
}

/* Reads the entries one after the other, then the extensions. */

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
	/* where each entry begins, and where the last one ends */
	uint32_t *starts;
	size_t count, end;
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
 * Does the table TEXT, in the form of git, lead to the entries of WHOLE, as they were read in
 * order?
 */
static bool offsets_hold(const struct place *whole, struct str text)
{
	size_t entry = 0;

	if (text.size < OFFSETS_HEADER || number32(text.data) != OFFSETS_VERSION)
		return false;
	for (size_t at = OFFSETS_HEADER; at < text.size; at += OFFSETS_ROW) {
		if (text.size - at < OFFSETS_ROW)
			return false;
		const size_t count = number32(text.data + at + 4);

		if (count > whole->count - entry ||
		    number32(text.data + at) !=
			    (entry < whole->count ? whole->starts[entry] : whole->end))
			return false;
		entry += count;
	}
	return entry == whole->count;
}

static bool take_extensions(struct place *place, struct git_index_reader *reader,
			    struct err *err)
{
	const size_t end = place->end;

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

bool readers_index_read(struct git_index_reader *reader, struct str text, struct err *err)
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
	const size_t count = number32(text.data + 8);
	/* Of so many entries, of which none is shorter, the last one is cut. */
	const size_t most = text.size / (STAT_BYTES + place.hash + 2) + 1;

	place.starts = memory_array(count < most ? count : most, sizeof(*place.starts));
	buf_init(&place.name, PATH_MAX);
	while (fine && place.count < count) {
		place.starts[place.count++] = (uint32_t)place.at;
		fine = take_entry(&place, reader, err);
	}
	place.end = place.at;
	fine = fine && take_extensions(&place, reader, err);
	if (fine && place.nameless && reader->shared[0] == '\0')
		fine = broken(err, "an entry without a name");
	buf_fini(&place.name);
	free(place.starts);
	return fine;
}

/* Small files of git, line by line. */

bool readers_text_line(struct str text, struct str *path)
{
	while (text.size > 0 &&
	       (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	if (text.size == 0 || memchr(text.data, '\n', text.size) != NULL ||
	    memchr(text.data, '\0', text.size) != NULL)
		return false;
	*path = text;
	return true;
}

bool readers_text_pointer(struct str text, struct str *path)
{
	static const struct str mark = {"gitdir: ", 8};

	return str_starts(text, mark) &&
	       readers_text_line(str_part(text, mark.size, text.size), path);
}

bool readers_text_todo_is_inert(struct str text)
{
	static const char known[] =
		"pick p revert edit e reword r fixup f squash s break b "
		"label l reset t merge m update-ref u noop drop d";
	struct str line;

	if (memchr(text.data, '\0', text.size) != NULL)
		return false;
	while (str_next_line(&text, &line)) {
		struct str rest = str_trim(line);
		if (rest.size == 0 || rest.data[0] == '#')
			continue;
		size_t size = 0;
		while (size < rest.size && strchr(" \t\r", rest.data[size]) == NULL)
			size++;
		if (!str_among(known, str_part(rest, 0, size)))
			return false;
	}
	return true;
}

bool readers_text_strategy_is_own(struct str text)
{
	return str_among("ort recursive resolve octopus ours subtree", str_trim(text));
}

bool readers_text_apply_is_inert(struct str text)
{
	static const char *const known[] = {
		"-p",          "-C",         "--whitespace=", "--ignore-whitespace",
		"--reject",    "--include=", "--exclude=",    "--ignore-space-change",
		"--directory="};
	struct str word;

	text = str_trim(text);
	while (str_next_word(&text, &word)) {
		bool fine = false;

		/*
		 * Each option is in quotes. The text behind a blank in it cannot be an
		 * option.
		 */
		if (str_starts(word, STR("'")))
			word = str_part(word, 1, word.size);
		for (size_t i = 0; !fine && i < sizeof(known) / sizeof(known[0]); i++)
			fine = str_starts(word, str_of(known[i]));
		if (!fine)
			return false;
	}
	return true;
}

bool readers_text_next_conflict(struct str *text, struct str *path)
{
	const char *end = memchr(text->data, '\0', text->size);
	const size_t size = end != NULL ? (size_t)(end - text->data) : text->size;
	const size_t tab = str_find(str_part(*text, 0, size), STR("\t"), 0);

	if (text->size == 0)
		return false;
	*path = tab != (size_t)-1 && end != NULL ? str_part(*text, tab + 1, size - tab - 1)
						 : STR("");
	*text = str_part(*text, size + (end != NULL), text->size);
	return true;
}

bool readers_text_is_empty(struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		line = str_trim(line);
		if (line.size > 0 && line.data[0] != '#')
			return false;
	}
	return true;
}
