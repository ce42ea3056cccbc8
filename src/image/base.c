/* base: from a word to folders and the settings of an image. */

#include "image/base.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "image/layout.h"
#include "image/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD_HOST   "host"
#define WORD_ROOTFS "rootfs:"
#define WORD_IMAGE  "image:"
#define WORD_LAYOUT "oci:"

/* The registry and the folder of names that say neither, as in other programs for images. */
#define REGISTRY "docker.io/"
#define LIBRARY  "library/"
#define LATEST   ":latest"

static const char *const nothing[] = {NULL};

const char *base_kind_name(enum base_kind kind)
{
	switch (kind) {
	case BASE_HOST:
		return WORD_HOST;
	case BASE_ROOTFS:
		return "rootfs";
	case BASE_IMAGE:
		return "image";
	}
	return "";
}

/* Words. */

static bool refuse_word(const char *word, const char *because, struct err *err)
{
	struct buf shown;

	buf_init(&shown, ERR_TEXT_MAX / 2);
	text_add_name(&shown, str_of(word));
	(void)err_set(err, EINVAL, "base %s: %s", shown.data, because);
	buf_fini(&shown);
	return false;
}

/* May C stand in the name of an image? */
static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || strchr("._-/:@", c) != NULL;
}

/*
 * Append the full form of the name REF: with registry and tag. A tag beside a digest is left out:
 * the digest says more.
 */
static bool full_name(const char *word, const char *ref, struct buf *name, struct err *err)
{
	const struct str all = str_of(ref);
	const size_t at = str_find(all, STR("@"), 0);
	struct str path = str_part(all, 0, at);
	const struct str digest =
		at != (size_t)-1 ? str_part(all, at + 1, all.size) : STR("");
	size_t slash = str_find(path, STR("/"), 0), tag = (size_t)-1;

	for (size_t i = 0; i < all.size; i++) {
		if (!is_name_byte(all.data[i]))
			return refuse_word(word,
					   "the name of an image has letters, digits "
					   "and ._-/:@ only",
					   err);
	}
	for (size_t i = 0; i < path.size; i++) {
		if (path.data[i] == '/')
			tag = (size_t)-1;
		else if (path.data[i] == ':')
			tag = i;
	}
	if (at != (size_t)-1 && !manifest_is_digest(digest))
		return refuse_word(word, "a digest is sha256: and 64 lower-case digits",
				   err);
	if (path.size == 0 || path.data[0] == '/' || path.data[0] == '-' || tag == 0 ||
	    path.data[path.size - 1] == '/' || path.data[path.size - 1] == ':')
		return refuse_word(word,
				   "it names no image; write image:NAME[:TAG][@DIGEST], as "
				   "in image:python:3.12",
				   err);
	const struct str first = str_part(path, 0, slash);
	const bool has_registry =
		slash != (size_t)-1 && (str_is(first, "localhost") ||
					str_find(first, STR("."), 0) != (size_t)-1 ||
					str_find(first, STR(":"), 0) != (size_t)-1);

	if (!has_registry)
		(void)buf_adds(name, REGISTRY);
	if (slash == (size_t)-1)
		(void)buf_adds(name, LIBRARY);
	if (digest.size > 0)
		(void)(buf_addstr(name, str_part(path, 0, tag)) && buf_addc(name, '@') &&
		       buf_addstr(name, digest));
	else
		(void)(buf_addstr(name, path) &&
		       (tag != (size_t)-1 || buf_adds(name, LATEST)));
	return !name->overflowed || refuse_word(word, "the name is too long", err);
}

bool base_parse_word(const char *word, struct arena *arena, struct base_word *parsed,
		     struct err *err)
{
	const struct str all = str_of(word);
	struct buf name;
	bool fine = true;

	*parsed = (struct base_word){.folder = "", .name = ""};
	if (all.size > BASE_WORD_MAX)
		return err_set(err, EINVAL, "the word of the base is too long");
	if (str_is(all, WORD_HOST))
		return true;
	if (str_starts(all, STR(WORD_ROOTFS))) {
		parsed->kind = BASE_ROOTFS;
		parsed->folder = arena_copy(arena, str_of(word + strlen(WORD_ROOTFS)));
		return parsed->folder[0] != '\0' ||
		       refuse_word(word, "it names no folder; write rootfs:DIR", err);
	}
	parsed->kind = BASE_IMAGE;
	if (str_starts(all, STR(WORD_LAYOUT))) {
		/* The first colon divides, as in other programs that know this form. */
		const struct str rest = str_of(word + strlen(WORD_LAYOUT));
		const size_t colon = str_find(rest, STR(":"), 0);

		parsed->is_layout = true;
		parsed->folder = arena_copy(arena, str_part(rest, 0, colon));
		if (colon != (size_t)-1)
			parsed->name =
				arena_copy(arena, str_part(rest, colon + 1, rest.size));
		return parsed->folder[0] != '\0' ||
		       refuse_word(word, "it names no folder; write oci:DIR:TAG", err);
	}
	if (!str_starts(all, STR(WORD_IMAGE)))
		return refuse_word(word,
				   "it is no base; write host, rootfs:DIR, image:NAME[:TAG] or "
				   "oci:DIR:TAG",
				   err);
	buf_init(&name, BASE_WORD_MAX + sizeof(REGISTRY LIBRARY LATEST));
	fine = full_name(word, word + strlen(WORD_IMAGE), &name, err);
	parsed->name = arena_copy(arena, buf_str(&name));
	buf_fini(&name);
	return fine;
}

/* Bases. */

static bool open_rootfs(struct base *base, const struct base_word *parsed, struct err *err)
{
	struct buf path;
	struct stat st;
	const char **folders;
	bool found = false;
	auto_close int fd = open(parsed->folder, O_PATH | O_CLOEXEC);

	buf_init(&path, PATH_MAX);
	if (fd < 0 || fstat(fd, &st) < 0)
		(void)err_set(err, errno, "base %s: %s", base->word, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		(void)err_set(err, ENOTDIR, "base %s: it is no folder", base->word);
	else
		found = fd_real_path(fd, &path) ||
			err_set(err, errno, "base %s: %s", base->word, strerror(errno));
	if (found && path.size == 1)
		found = err_set(err, EINVAL, "base %s: the whole machine is --base host",
				base->word);
	if (found) {
		folders = arena_alloc(&base->arena, 2 * sizeof(*folders));
		folders[0] = arena_copy(&base->arena, buf_str(&path));
		base->folders = folders;
		base->folder_count = 1;
	}
	buf_fini(&path);
	return found;
}

/* The variables of LIST that have a name; of several with one name the last one holds. */
static const char *const *keep_variables(struct base *base, const char *const *list,
					 size_t count)
{
	const char **kept = arena_alloc(&base->arena, (count + 1) * sizeof(*kept));
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const char *end = strchr(list[i], '=');
		size_t at = 0;

		if (end == NULL || end == list[i])
			continue;
		const size_t name = (size_t)(end - list[i]) + 1;
		while (at < used && strncmp(kept[at], list[i], name) != 0)
			at++;
		kept[at] = arena_copy(&base->arena, str_of(list[i]));
		used += at == used;
	}
	return kept;
}

static const char *const *keep_list(struct base *base, const char *const *list, size_t count)
{
	const char **kept = arena_alloc(&base->arena, (count + 1) * sizeof(*kept));

	for (size_t i = 0; i < count; i++)
		kept[i] = arena_copy(&base->arena, str_of(list[i]));
	return kept;
}

static void keep_config(struct base *base, const struct manifest_config *config)
{
	struct buf workdir;

	base->environment =
		keep_variables(base, config->environment, config->environment_count);
	base->entrypoint = keep_list(base, config->entrypoint, config->entrypoint_count);
	base->command = keep_list(base, config->command, config->command_count);
	base->user = arena_copy(&base->arena, str_of(config->user));
	buf_init(&workdir, PATH_MAX);
	if (config->workdir != NULL && path_normal("/", config->workdir, &workdir))
		base->workdir = arena_copy(&base->arena, buf_str(&workdir));
	buf_fini(&workdir);
}

/* The unpacked layers of IMAGE. ENOENT: one is not there. */
static bool keep_layers(struct base *base, const struct image_store *store,
			const struct layout_image *image, struct err *err)
{
	const size_t count = image->config.diff_count;
	const char **folders = arena_alloc(&base->arena, (count + 1) * sizeof(*folders));
	struct buf path;
	bool there = count > 0 ||
		     err_set(err, ENODATA, "base %s: the image has no layers", base->word);

	buf_init(&path, PATH_MAX);
	for (size_t i = 0; there && i < count; i++) {
		image_store_layer(store, image->config.diff_ids[i], &path);
		there = access(path.data, F_OK) == 0 ||
			err_set(err, ENOENT, "%s is missing", path.data);
		folders[i] = arena_copy(&base->arena, buf_str(&path));
	}
	buf_fini(&path);
	base->folders = folders;
	base->folder_count = count;
	return there;
}

static bool say_missing(const struct base *base, struct err *err)
{
	return err_set(err, ENOENT, "base %s is not in the cache; run glovebox base pull %s",
		       base->word, base->word);
}

static bool find_image(struct base *base, const struct base_word *parsed,
		       const struct image_store *store, struct layout_image *image,
		       struct err *err)
{
	struct err found = {0};
	auto_close int layout = -1;

	if (!parsed->is_layout) {
		if (layout_find(store->folder, "the cache of images", parsed->name, image,
				&found))
			return true;
		if (found.code == ENOENT)
			return say_missing(base, err);
		/* A crash of the machine may have cut a document that its name was given to. */
		return err_set(err, found.code, "base %s: %s%s%s", base->word, found.text,
			       found.code == EBADMSG ? "; fetch it again: glovebox base pull "
						     : "",
			       found.code == EBADMSG ? base->word : "");
	}
	layout = open(parsed->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (layout < 0)
		return err_set(err, errno, "base %s: %s", base->word, strerror(errno));
	return layout_find(layout, parsed->folder, parsed->name, image, err) ||
	       err_while(err, "base %s", base->word);
}

static bool open_image(struct base *base, const struct base_word *parsed,
		       const char *path, struct err *err)
{
	struct image_store store;
	struct layout_image image = {0};
	struct err missing = {0};
	bool found;

	if (path == NULL)
		return err_set(err, ENOENT,
			       "base %s: there is no cache of images; set HOME or XDG_CACHE_HOME",
			       base->word);
	if (!image_store_open(path, IMAGE_STORE_READS, &store, &missing))
		return missing.code == ENOENT ? say_missing(base, err)
					      : err_set(err, missing.code, "base %s: %s",
							base->word, missing.text);
	found = find_image(base, parsed, &store, &image, err);
	if (found)
		found = (image_store_hold(&store, image.found.digest, &base->held, &missing) &&
			 keep_layers(base, &store, &image, &missing)) ||
			(missing.code == ENOENT
				 ? say_missing(base, err)
				 : err_set(err, missing.code, "%s", missing.text));
	if (found) {
		(void)snprintf(base->digest, sizeof(base->digest), "%s", image.found.digest);
		keep_config(base, &image.config);
	}
	layout_fini(&image);
	image_store_close(&store);
	return found;
}

bool base_open(const char *word, const char *store, struct base *base, struct err *err)
{
	struct base_word parsed;

	*base = (struct base){
		.word = "",
		.folders = nothing,
		.environment = nothing,
		.workdir = "/",
		.user = "",
		.entrypoint = nothing,
		.command = nothing,
		.held = -1,
	};
	if (!base_parse_word(word, &base->arena, &parsed, err))
		return false;
	base->word = arena_copy(&base->arena, str_of(word));
	base->kind = parsed.kind;
	switch (parsed.kind) {
	case BASE_HOST:
		return true;
	case BASE_ROOTFS:
		return open_rootfs(base, &parsed, err);
	case BASE_IMAGE:
		return open_image(base, &parsed, store, err);
	}
	return false;
}

void base_close(struct base *base)
{
	fd_close(&base->held);
	arena_fini(&base->arena);
}
