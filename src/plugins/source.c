/*
 * source: reads the forms of sources, hashes and copies them, and keeps the record of
 * trust.
 */

#include "plugins/source.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A session that runs may still show a copy that no record names any more. */
enum { PLUGIN_KEPT_DAYS = 30 };

enum { EXPANDED_MAX = 1 << 20, REF_MAX = 200, URL_MAX = 2048, QUOTED_MAX = 80 };

static const char *variable_of(const struct plugin_places *places, struct str name)
{
	for (const char *const *at = places->environment; at != NULL && *at != NULL; at++) {
		if (strncmp(*at, name.data, name.size) == 0 && (*at)[name.size] == '=')
			return *at + name.size + 1;
	}
	return NULL;
}

/* NAME is the text between the braces. */
static bool expand_one(const struct plugin_places *places, struct str name,
		       struct buf *out, struct err *err)
{
	const char *value = NULL;
	struct buf shown;

	if (str_is(name, "CONFIG_DIR"))
		value = places->config_dir;
	else if (str_is(name, "WORKING_DIR"))
		value = places->working_dir;
	else if (str_starts(name, STR("env:")))
		value = variable_of(places, str_part(name, 4, name.size));
	if (value != NULL)
		return buf_adds(out, value) ||
		       err_set(err, E2BIG,
			       "a text is over %zu bytes with its placeholders filled in",
			       out->max);
	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(name, 0, QUOTED_MAX));
	if (str_starts(name, STR("env:")))
		(void)err_set(err, ENOENT,
			      "${%s}: this variable is not set; set it, or take the placeholder "
			      "out (\"$${\" is a plain \"${\")",
			      shown.data);
	else
		(void)err_set(err, EINVAL,
			      "${%s}: the placeholders are ${env:NAME}, ${CONFIG_DIR} and "
			      "${WORKING_DIR} (\"$${\" is a plain \"${\")",
			      shown.data);
	buf_fini(&shown);
	return false;
}

bool source_expand(const struct plugin_places *places, struct str text, struct buf *out,
		   struct err *err)
{
	size_t at = 0;

	while (at < text.size) {
		struct str rest = str_part(text, at, text.size - at);
		size_t end;

		if (str_starts(rest, STR("$${"))) {
			(void)buf_adds(out, "${");
			at += 3;
			continue;
		}
		if (!str_starts(rest, STR("${"))) {
			(void)buf_addc(out, rest.data[0]);
			at++;
			continue;
		}
		end = str_find(rest, STR("}"), 2);
		if (end == (size_t)-1)
			return err_set(err, EINVAL, "\"${\" without its \"}\"");
		if (!expand_one(places, str_part(rest, 2, end - 2), out, err))
			return false;
		at += end + 1;
	}
	return !out->overflowed || err_set(err, E2BIG, "a text is too long");
}

static bool expand_text(const struct plugin_places *places, const struct value *value,
			struct value **expanded, struct err *err)
{
	struct buf out;

	buf_init(&out, EXPANDED_MAX);
	bool ok = source_expand(places, value_str(value), &out, err);
	if (ok)
		*expanded = value_new_str(buf_str(&out));
	buf_fini(&out);
	return ok;
}

bool source_expand_value(const struct plugin_places *places, const struct value *value,
			 struct value **expanded, struct err *err)
{
	auto_value struct value *made = NULL;
	struct value *item = NULL;

	if (value_kind(value) == VALUE_STRING)
		return expand_text(places, value, expanded, err);
	if (value_kind(value) == VALUE_ARRAY) {
		made = value_new_array();
		for (size_t i = 0; i < value_count(value); i++) {
			if (!source_expand_value(places, value_item(value, i), &item, err))
				return false;
			value_append(made, item);
		}
	} else if (value_kind(value) == VALUE_OBJECT) {
		made = value_new_object();
		for (void *at = value_first(value); at != NULL; at = value_next(value, at)) {
			if (!source_expand_value(places, value_at(at), &item, err))
				return err_while(err, "%s", value_key(at));
			value_set(made, value_key(at), item);
		}
	} else {
		made = value_copy(value);
	}
	*expanded = made;
	made = NULL;
	return true;
}

/* REF becomes a word of git's command line, and appears in sentences. */
static bool check_ref(const char *ref, struct err *err)
{
	bool fine = strlen(ref) <= REF_MAX && ref[0] != '-' && ref[0] != '\0' &&
		    strstr(ref, "..") == NULL;

	for (const char *at = ref; fine && *at; at++)
		fine = isalnum((unsigned char)*at) || strchr("._/-+", *at) != NULL;
	return fine ||
	       err_set(err, EINVAL,
		       "the ref is a tag, a branch or a commit: letters, digits and ._/-+, "
		       "at most %d",
		       REF_MAX);
}

/* Refuse a URL for which git would run another program (ssh, ext::). */
static bool check_url(const char *url, struct err *err)
{
	struct str text = str_of(url);
	bool fine = str_starts(text, STR("https://")) ||
		    str_starts(text, STR("http://")) || str_starts(text, STR("file:///"));

	for (const char *at = url; fine && *at; at++)
		fine = (unsigned char)*at > ' ' && *at != 0x7f;
	return (fine && text.size <= URL_MAX) ||
	       err_set(err, EINVAL,
		       "a git source begins with https://, http:// or file:/// and holds no blank");
}

static bool set_git(const struct plugin_places *places, struct str url, struct str ref,
		    struct plugin_source *source, struct err *err)
{
	struct buf text;

	buf_init(&text, URL_MAX);
	source->kind = PLUGIN_GIT;
	bool ok = source_expand(places, url, &text, err);
	source->text = buf_take(&text);
	if (ok && ref.data != NULL) {
		buf_init(&text, URL_MAX);
		ok = source_expand(places, ref, &text, err);
		source->ref = buf_take(&text);
		ok = ok && check_ref(source->ref, err);
	}
	return ok && check_url(source->text, err);
}

static bool set_path(const struct plugin_places *places, struct str path,
		     enum plugin_source_kind kind, struct plugin_source *source,
		     struct err *err)
{
	struct buf text, normal;

	if (str_starts(path, STR("~/")))
		return err_set(err, EINVAL,
			       "~ is the shell's word: write ${env:HOME}/ for your home, or ./~/ "
			       "for a folder of that name");
	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	source->kind = kind;
	bool ok = source_expand(places, path, &text, err) &&
		  ((text.size > 0 && path_normal(places->config_dir, text.data, &normal)) ||
		   err_set(err, EINVAL, "\"%s\" is no path", text.data));
	source->text = buf_take(&normal);
	buf_fini(&text);
	return ok;
}

static bool take_prefix(struct str *text, const char *prefix)
{
	const struct str word = str_of(prefix);
	const bool has = str_starts(*text, word);

	if (has)
		*text = str_part(*text, word.size, text->size);
	return has;
}

static bool parse_text(const struct plugin_places *places, struct str text,
		       struct plugin_source *source, struct err *err)
{
	struct buf shown;
	size_t hash;

	if (take_prefix(&text, "bash:") || take_prefix(&text, "toolbox:"))
		return set_path(places, text, PLUGIN_EITHER, source, err);
	if (take_prefix(&text, "bash+git:")) {
		hash = str_find(text, STR("#"), 0);
		return set_git(places,
			       str_part(text, 0, hash == (size_t)-1 ? text.size : hash),
			       hash == (size_t)-1 ? (struct str){0}
						  : str_part(text, hash + 1, text.size),
			       source, err);
	}
	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(text, 0, QUOTED_MAX));
	if (str_starts(text, STR("path:")))
		(void)err_set(err, EINVAL,
			      "\"%s\": path: is for packages in other languages, which are not "
			      "taken here; scripts are named by \"bash:%s\"",
			      shown.data, shown.data + strlen("path:"));
	else
		(void)err_set(err, EINVAL,
			      "\"%s\": write \"bash:./folder\", \"bash+git:URL#ref\", "
			      "\"toolbox:./folder\", or an object with bash_tool or toolbox",
			      shown.data);
	buf_fini(&shown);
	return false;
}

/* NAMED is the object `bash_tool` or `toolbox`. A toolbox never comes from git. */
static bool parse_object(const struct plugin_places *places, const struct value *named,
			 struct plugin_source *source, struct err *err)
{
	const bool toolbox = source->dialect == PLUGIN_TOOLBOX;
	const struct value *file = value_member(named, "file");
	const struct value *path = value_member(named, "path");
	const struct value *git = toolbox ? NULL : value_member(named, "git");
	const struct value *ref = value_member(named, "ref");

	if ((file != NULL) + (path != NULL) + (git != NULL) != 1)
		return err_set(err, EINVAL, "%s",
			       toolbox ? "toolbox has one of file and path"
				       : "bash_tool has one of file, path and git");
	if (ref != NULL && git == NULL)
		return err_set(err, EINVAL, "bash_tool.ref is for git");
	if (git != NULL)
		return set_git(places, value_str(git),
			       ref != NULL ? value_str(ref) : (struct str){0}, source, err);
	return set_path(places, value_str(file != NULL ? file : path),
			file != NULL ? PLUGIN_FILE : PLUGIN_FOLDER, source, err);
}

bool plugin_source_parse(const struct plugin_places *places, const struct value *entry,
			 struct plugin_source *source, struct err *err)
{
	const struct value *tool = value_member(entry, "bash_tool");
	const struct value *toolbox = value_member(entry, "toolbox");
	bool ok;

	*source = (struct plugin_source){.dialect = plugin_source_dialect(entry)};
	if (value_kind(entry) == VALUE_STRING)
		ok = parse_text(places, value_str(entry), source, err);
	else if (tool != NULL && toolbox != NULL)
		ok = err_set(err, EINVAL, "an entry has one of bash_tool and toolbox");
	else if (value_kind(toolbox) == VALUE_OBJECT || value_kind(tool) == VALUE_OBJECT)
		ok = parse_object(places, toolbox != NULL ? toolbox : tool, source, err);
	else
		ok = err_set(err, EINVAL,
			     "an entry is a text, or an object with bash_tool or toolbox");
	if (!ok)
		plugin_source_fini(source);
	return ok;
}

void plugin_source_fini(struct plugin_source *source)
{
	free(source->text);
	free(source->ref);
	*source = (struct plugin_source){0};
}

void plugin_source_name(const struct plugin_source *source, struct buf *name)
{
	(void)buf_adds(name, source->text);
	if (source->ref != NULL)
		(void)buf_addf(name, "#%s", source->ref);
}

/* One walk that hashes a source and, when asked, copies it. */

enum {
	/*
	 * A cell of root runs as another user, who must read the copies. Only the user
	 * can enter the folder above.
	 */
	FOLDER_MODE = 0755,
	FILE_MODE = 0644,
	PROGRAM_MODE = 0755,
	LINK_MAX_BYTES = 1024,
};

struct walk {
	struct hash *hash;
	size_t bytes, files;
	const char *source; /* for sentences */
};

static bool entry_copy(struct walk *walk, int from, const char *name, int to,
		       const char *path, int depth, struct err *err);

/* Hash one record: kind, path and content, each with its length before it. */
static void add_record(struct walk *walk, char kind, const char *path, struct str content)
{
	char head[64];

	(void)snprintf(head, sizeof(head), "%c %zu %zu\n", kind, strlen(path), content.size);
	hash_add(walk->hash, str_of(head));
	hash_add(walk->hash, str_of(path));
	if (content.size > 0)
		hash_add(walk->hash, content);
}

static bool count_in(struct walk *walk, size_t bytes, struct err *err)
{
	walk->bytes += bytes;
	walk->files++;
	if (walk->bytes > PLUGIN_COPY_MAX || walk->files > PLUGIN_COPY_FILES)
		return err_set(err, EFBIG, "%s: a plugin has at most %d MiB and %d files",
			       walk->source, PLUGIN_COPY_MAX >> 20, PLUGIN_COPY_FILES);
	return true;
}

static bool file_copy(struct walk *walk, int from, const char *name, int to,
		      const char *path, struct err *err)
{
	auto_close int fd =
		openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct buf content;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, fd < 0 ? errno : EINVAL,
			       "%s: cannot be read as a file", path);
	buf_init(&content, PLUGIN_COPY_MAX);
	bool ok = fd_read_all(fd, &content, path, err) && count_in(walk, content.size, err);
	if (ok) {
		bool runs = (st.st_mode & S_IXUSR) != 0;

		add_record(walk, runs ? 'x' : 'f', path, buf_str(&content));
		if (to >= 0) {
			auto_close int out =
				openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				       0600);
			ok = (out >= 0 &&
			      fchmod(out, runs ? PROGRAM_MODE : FILE_MODE) == 0) ||
			     err_set(err, errno, "%s: %s", path, strerror(errno));
			ok = ok && fd_write_all(out, content.data, content.size, err);
		}
	}
	buf_fini(&content);
	return ok;
}

/*
 * Does TARGET go up (..) after it has gone down? It may have gone down through another
 * link, and then ".." leads elsewhere than the text says.
 */
static bool climbs_late(const char *target)
{
	bool down = false;

	while (*target != '\0') {
		const struct str name = {target, strcspn(target, "/")};

		target += name.size;
		target += strspn(target, "/");
		if (down && str_is(name, ".."))
			return true;
		down = down || !str_among(". ..", name);
	}
	return false;
}

/* A link that stays inside keeps its text; PATH is below the top. */
static bool link_copy(struct walk *walk, int from, const char *name, int to,
		      const char *path, struct err *err)
{
	char target[LINK_MAX_BYTES + 1], above[PATH_MAX];
	ssize_t size = readlinkat(from, name, target, LINK_MAX_BYTES);
	struct buf leads;

	if (size <= 0 || size >= LINK_MAX_BYTES)
		return err_set(err, EINVAL, "%s: a link that cannot be read", path);
	target[size] = '\0';
	if (snprintf(above, sizeof(above), "/%s", path) >= (int)sizeof(above))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	above[path_base_name(above) - above] = '\0';
	buf_init(&leads, PATH_MAX);
	bool inside = target[0] != '/' && !climbs_late(target) &&
		      path_normal(above, target, &leads);
	buf_fini(&leads);
	if (!inside)
		return err_set(err, EPERM,
			       "%s/%s is a link that leads out of the plugin, to %s: a plugin is "
			       "one folder, put a copy into it",
			       walk->source, path, target);
	if (!count_in(walk, (size_t)size, err))
		return false;
	add_record(walk, 'l', path, str_of(target));
	return to < 0 || symlinkat(target, to, name) == 0 ||
	       err_set(err, errno, "%s: %s", path, strerror(errno));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
	       strcmp(entry->d_name, ".git") != 0;
}

/*
 * Hash the content of the folder FROM and copy it to the folder TO (-1: no copy is made).
 * PATH "" is the top.
 */
static bool folder_copy(struct walk *walk, int from, int to, const char *path, int depth,
			struct err *err)
{
	struct dirent **names = NULL;
	int count = scandirat(from, ".", &names, wanted, by_name);
	bool ok = count >= 0 ||
		  err_set(err, errno, "%s: %s", walk->source, strerror(errno));

	if (ok && (depth > PLUGIN_COPY_DEPTH || count > PLUGIN_COPY_FILES))
		ok = err_set(err, EFBIG, "%s: a plugin has at most %d levels and %d files",
			     walk->source, PLUGIN_COPY_DEPTH, PLUGIN_COPY_FILES);
	for (int i = 0; i < count; i++) {
		char below[PATH_MAX];

		ok = ok && snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "",
				    names[i]->d_name) < (int)sizeof(below);
		ok = ok && entry_copy(walk, from, names[i]->d_name, to, below, depth, err);
		free(names[i]);
	}
	free(names);
	return ok;
}

static bool entry_copy(struct walk *walk, int from, const char *name, int to,
		       const char *path, int depth, struct err *err)
{
	auto_close int below_from = -1;
	auto_close int below_to = -1;
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%s/%s: %s", walk->source, path, strerror(errno));
	if (S_ISREG(st.st_mode))
		return file_copy(walk, from, name, to, path, err);
	if (S_ISLNK(st.st_mode))
		return link_copy(walk, from, name, to, path, err);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, EINVAL, "%s/%s is neither file nor folder",
			       walk->source, path);
	if (!count_in(walk, 0, err))
		return false;
	add_record(walk, 'd', path, (struct str){0});
	below_from = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to >= 0 && below_from >= 0 && mkdirat(to, name, FOLDER_MODE) == 0)
		below_to =
			openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below_from < 0 ||
	    (to >= 0 && (below_to < 0 || fchmod(below_to, FOLDER_MODE) < 0)))
		return err_set(err, errno, "%s/%s: %s", walk->source, path, strerror(errno));
	return folder_copy(walk, below_from, below_to, path, depth + 1, err);
}

/* Copy SOURCE to the folder TO (-1: no copy), and compute its hash. */
static bool walk_source(const char *source, int to, char hex[HASH_HEX + 1], struct err *err)
{
	struct walk walk = {.source = source};
	auto_close int fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint8_t digest[HASH_BYTES];
	struct stat st;
	bool ok;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", source, strerror(errno));
	walk.hash = hash_new();
	if (S_ISDIR(st.st_mode)) {
		ok = folder_copy(&walk, fd, to, "", 0, err);
	} else {
		auto_free char *real = realpath(source, NULL);
		auto_free char *above = memory_copy(real);
		const char *name = real != NULL ? path_base_name(real) : "";

		if (above != NULL)
			above[name - real] = '\0';
		auto_close int folder =
			above != NULL ? open(above, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
		ok = (folder >= 0 && S_ISREG(st.st_mode)) ||
		     err_set(err, EINVAL, "%s: is neither a file nor a folder", source);
		ok = ok && file_copy(&walk, folder, name, to, name, err);
	}
	hash_digest(walk.hash, digest);
	hash_free(walk.hash);
	for (size_t i = 0; i < HASH_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return ok;
}

bool source_copy_hash(const char *source, char hex[HASH_HEX + 1], struct err *err)
{
	return walk_source(source, -1, hex, err);
}

/* Copy to a temporary folder first. It gets its name when it is complete. */
static bool copy_new(const char *source, const char *folder, const char *hex,
		     const char *place, struct err *err)
{
	char temp[PATH_MAX], files[PATH_MAX], found[HASH_HEX + 1];
	bool ok;

	if (snprintf(temp, sizeof(temp), "%s/new-XXXXXX", folder) >= (int)sizeof(temp) ||
	    mkdtemp(temp) == NULL)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	(void)chmod(temp, FOLDER_MODE);
	(void)snprintf(files, sizeof(files), "%.4000s/files", temp);
	ok = mkdir(files, FOLDER_MODE) == 0 && chmod(files, FOLDER_MODE) == 0;
	auto_close int to = ok ? open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (to < 0)
		ok = err_set(err, errno, "%s: %s", files, strerror(errno));
	ok = ok && walk_source(source, to, found, err) &&
	     (strcmp(found, hex) == 0 ||
	      err_set(err, ESTALE, "%s: changed while it was copied; try again", source));
	/* Another process may have made the same copy in the meantime. */
	if (ok && rename(temp, place) < 0 && access(place, F_OK) < 0)
		ok = err_set(err, errno, "%s: %s", place, strerror(errno));
	fd_folder_remove(temp);
	return ok;
}

bool source_copy_make(const char *source, const char *folder, const char *hex,
		      struct buf *copy, struct err *err)
{
	char place[PATH_MAX];
	struct stat st;

	if (snprintf(place, sizeof(place), "%s/%s", folder, hex) >= (int)sizeof(place))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	if (!fd_make_folders(place, err))
		return false;
	if (access(place, F_OK) < 0 && !copy_new(source, folder, hex, place, err))
		return false;
	(void)buf_addf(copy, "%s/files", place);
	if (stat(source, &st) == 0 && S_ISREG(st.st_mode)) {
		auto_free char *real = realpath(source, NULL);

		(void)buf_addf(copy, "/%s", path_base_name(real != NULL ? real : source));
	}
	return true;
}

/* The record of trust. */

enum { RECORD_MAX = 4 << 20 };

static bool record_read(const char *folder, struct value **root, struct err *err)
{
	char path[PATH_MAX];
	struct buf text;
	struct err why = {0};

	(void)snprintf(path, sizeof(path), "%s/trusted.json", folder);
	buf_init(&text, RECORD_MAX);
	bool ok = fd_read_file(path, RECORD_MAX, &text, &why);
	if (!ok && (why.code == ENOENT || why.code == ENOTDIR)) {
		*root = value_new_object();
		ok = true;
	} else {
		ok = ok && value_parse(buf_str(&text), 0, root, &why);
		if (!ok)
			(void)err_set(err, why.code,
				      "%s: %s; remove it to trust your plugins anew",
				      path, why.text);
	}
	buf_fini(&text);
	return ok;
}

static void take_hex(const struct value *value, char hex[HASH_HEX + 1])
{
	struct str text = value_str(value);

	hex[0] = '\0';
	if (text.size > 0 && text.size <= HASH_HEX)
		(void)snprintf(hex, HASH_HEX + 1, "%.*s", (int)text.size, text.data);
}

bool source_trust_find(const char *folder, const char *source,
		       struct plugin_trusted *trusted, struct err *err)
{
	auto_value struct value *root = NULL;

	*trusted = (struct plugin_trusted){0};
	if (!record_read(folder, &root, err))
		return false;
	const struct value *entry = value_member(root, source);
	take_hex(value_member(entry, "hash"), trusted->hash);
	take_hex(value_member(entry, "commit"), trusted->commit);
	return true;
}

static bool record_write(const char *folder, const struct value *root, struct err *err)
{
	char path[PATH_MAX], temp[PATH_MAX];
	struct buf text;

	(void)snprintf(path, sizeof(path), "%s/trusted.json", folder);
	(void)snprintf(temp, sizeof(temp), "%s/trusted.json.new", folder);
	auto_close int fd =
		open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	buf_init(&text, RECORD_MAX);
	bool ok = value_print(root, VALUE_PRETTY | VALUE_SORTED, &text) &&
		  buf_addc(&text, '\n');
	ok = (ok && fd >= 0 && fd_write_all(fd, text.data, text.size, NULL) &&
	      fsync(fd) == 0 && rename(temp, path) == 0) ||
	     err_set(err, ok ? errno : EFBIG, "%s: %s", path, strerror(ok ? errno : EFBIG));
	buf_fini(&text);
	return ok;
}

static bool is_named(const struct value *root, const char *hash)
{
	for (void *at = value_first(root); at != NULL; at = value_next(root, at)) {
		if (str_is(value_str(value_member(value_at(at), "hash")), hash))
			return true;
	}
	return false;
}

/* Is NAME that of a copy, or of an incomplete copy whose maker died? */
static bool is_copy(const char *name)
{
	return (strlen(name) == HASH_HEX && hash_is_valid(name)) ||
	       strncmp(name, "new-", 4) == 0;
}

/*
 * Remove the copies below CACHE that the record ROOT does not name and that are older than
 * thirty days.
 */
static void prune(const struct value *root, const char *cache)
{
	const time_t oldest = time(NULL) - (time_t)PLUGIN_KEPT_DAYS * 24 * 3600;
	DIR *copies = cache != NULL ? opendir(cache) : NULL;
	char path[PATH_MAX];
	struct stat st;

	for (const struct dirent *at = copies != NULL ? readdir(copies) : NULL;
	     at != NULL; at = readdir(copies)) {
		if (is_copy(at->d_name) && !is_named(root, at->d_name) &&
		    snprintf(path, sizeof(path), "%s/%s", cache, at->d_name) <
			    (int)sizeof(path) &&
		    lstat(path, &st) == 0 && st.st_mtime < oldest)
			fd_folder_remove(path);
	}
	if (copies != NULL)
		(void)closedir(copies);
}

bool source_trust_record(const char *folder, const char *cache, const char *source,
			 const struct plugin_trusted *trusted, struct err *err)
{
	auto_value struct value *root = NULL;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/trusted.lock", folder) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	if (!fd_make_folders(path, err))
		return false;
	/* Two sessions may write the record at the same moment. */
	auto_close int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!record_read(folder, &root, err))
		return false;
	struct value *entry = value_new_object();
	value_set_text(entry, "hash", trusted->hash);
	if (trusted->commit[0] != '\0')
		value_set_text(entry, "commit", trusted->commit);
	value_set(root, source, entry);
	if (!record_write(folder, root, err))
		return false;
	prune(root, cache);
	return true;
}

static const char *const keys[] = {"bash_tools", "prompts", "resources",
				   "resource_templates", NULL};

/* Is NAME relative, and inside the folder? */
static bool is_inside(struct str name)
{
	struct buf normal;

	if (name.size == 0 || name.size >= PATH_MAX ||
	    memchr(name.data, '\0', name.size) || name.data[0] == '/')
		return false;
	buf_init(&normal, PATH_MAX);
	bool inside = path_normal("/", name.data, &normal) && normal.size > 1;
	buf_fini(&normal);
	return inside;
}

/*
 * Take the list KEY of ROOT: objects, whose `file`, if they have one, is inside the
 * folder.
 */
static bool take_list(const struct value *root, const char *key, bool needs_file,
		      struct value **list, struct err *err)
{
	const struct value *found = value_member(root, key);

	*list = value_new_array();
	if (found != NULL && value_kind(found) != VALUE_ARRAY)
		return err_set(err, EINVAL, "\"%s\" must be a list of objects", key);
	if (value_count(found) > PLUGIN_PACKAGE_ENTRIES_MAX)
		return err_set(err, EINVAL, "\"%s\" is over %d entries long", key,
			       PLUGIN_PACKAGE_ENTRIES_MAX);
	for (size_t i = 0; i < value_count(found); i++) {
		const struct value *entry = value_item(found, i);
		const struct value *file = value_member(entry, "file");

		if (value_kind(entry) != VALUE_OBJECT)
			return err_set(err, EINVAL, "\"%s/%zu\" must be an object", key, i);
		if (file != NULL || needs_file) {
			if (!is_inside(value_str(file)))
				return err_set(err, EINVAL,
					       "\"%s/%zu/file\" must be a path inside the package",
					       key, i);
		}
		value_append(*list, value_copy(entry));
	}
	return true;
}

static bool check_keys(const struct value *root, struct err *err)
{
	for (void *at = value_first(root); at != NULL; at = value_next(root, at)) {
		struct str key = str_of(value_key(at));
		const char *nearest = text_nearest(key.data, keys);
		bool known = false;

		for (size_t i = 0; keys[i] != NULL; i++)
			known = known || str_is(key, keys[i]);
		if (known)
			continue;
		return err_set(err, EINVAL,
			       "there is no key \"%.64s\"%s%s%s; the keys are bash_tools, prompts, "
			       "resources, resource_templates",
			       key.data, nearest ? " (did you mean \"" : "",
			       nearest ? nearest : "", nearest ? "\"?)" : "");
	}
	return true;
}

static bool manifest_parse(struct str text, struct plugin_manifest *manifest, struct err *err)
{
	auto_value struct value *root = NULL;
	auto_value struct value *scripts = NULL;
	bool ok;

	if (!value_parse(text, VALUE_COMMENTS, &root, err))
		return false;
	ok = (value_kind(root) == VALUE_OBJECT ||
	      err_set(err, EINVAL, "must be an object")) &&
	     check_keys(root, err) && take_list(root, "bash_tools", true, &scripts, err) &&
	     take_list(root, "prompts", true, &manifest->prompts, err) &&
	     take_list(root, "resources", false, &manifest->resources, err) &&
	     take_list(root, "resource_templates", false, &manifest->resource_templates,
		       err);
	if (ok && value_count(scripts) + value_count(manifest->prompts) +
				  value_count(manifest->resources) +
				  value_count(manifest->resource_templates) ==
			  0)
		ok = err_set(err, EINVAL,
			     "it lists nothing: {\"bash_tools\": [{\"file\": \"my_tool.bash\"}]}");
	manifest->files = value_new_array();
	for (size_t i = 0; i < value_count(scripts); i++)
		value_append(manifest->files,
			     value_copy(value_member(value_item(scripts, i), "file")));
	return ok;
}

bool plugin_manifest_parse(struct str text, struct plugin_manifest *manifest, struct err *err)
{
	*manifest = (struct plugin_manifest){.kind = PLUGIN_FOLDER};
	if (manifest_parse(text, manifest, err))
		return true;
	plugin_manifest_fini(manifest);
	return err_while(err, PLUGIN_PACKAGE_FILE);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool is_executable(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name) <
		       (int)sizeof(path) &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR);
}

/* List the executables of the toolbox COPY by name, without hidden ones. */
static bool executables_list(const char *copy, struct plugin_manifest *manifest,
			     struct err *err)
{
	struct dirent **names = NULL;
	int count = scandir(copy, &names, is_shown, by_name);

	if (count < 0)
		return err_set(err, errno, "%s: %s", copy, strerror(errno));
	*manifest = (struct plugin_manifest){.kind = PLUGIN_FOLDER,
					     .files = value_new_array()};
	for (int i = 0; i < count; i++) {
		if (is_executable(copy, names[i]->d_name))
			value_append(manifest->files, value_new_text(names[i]->d_name));
		free(names[i]);
	}
	free(names);
	if (value_count(manifest->files) > PLUGIN_PACKAGE_ENTRIES_MAX)
		return err_set(err, EFBIG, "a toolbox has at most %d executables",
			       PLUGIN_PACKAGE_ENTRIES_MAX);
	return value_count(manifest->files) > 0 ||
	       err_set(err, ENOENT, "there is no executable in it (chmod +x?)");
}

static bool package_read(const char *copy, struct plugin_manifest *manifest, struct err *err)
{
	char path[PATH_MAX];
	struct buf text;

	if (snprintf(path, sizeof(path), "%s/%s", copy, PLUGIN_PACKAGE_FILE) >=
	    (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", copy);
	buf_init(&text, PLUGIN_PACKAGE_BYTES_MAX);
	bool ok = fd_read_file(path, PLUGIN_PACKAGE_BYTES_MAX, &text, err);
	if (!ok && err != NULL && err->code == ENOENT)
		(void)err_set(err, ENOENT,
			      "there is no " PLUGIN_PACKAGE_FILE
			      " in it; a folder is a package, a lone script is named as a file");
	ok = ok && plugin_manifest_parse(buf_str(&text), manifest, err);
	buf_fini(&text);
	return ok;
}

bool plugin_manifest_read(const char *copy, enum plugin_dialect dialect,
			  struct plugin_manifest *manifest, struct err *err)
{
	struct stat st;

	*manifest = (struct plugin_manifest){.kind = PLUGIN_FILE};
	if (stat(copy, &st) == 0 && S_ISREG(st.st_mode))
		return dialect == PLUGIN_SCRIPT || is_executable(copy, "") ||
		       err_set(err, EACCES, "it is not executable: chmod +x");
	return dialect == PLUGIN_TOOLBOX ? executables_list(copy, manifest, err)
					 : package_read(copy, manifest, err);
}

void plugin_manifest_fini(struct plugin_manifest *manifest)
{
	value_free(manifest->files);
	value_free(manifest->prompts);
	value_free(manifest->resources);
	value_free(manifest->resource_templates);
	*manifest = (struct plugin_manifest){0};
}
