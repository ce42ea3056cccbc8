/* git_config: a reader of the syntax, and the list of inert keys. */
#include "guard/git_config.h"

#include "base/memory.h"
#include "base/path.h"

#include <ctype.h>
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
		config->has_ignore_case = true;
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
