/* base: from a word to folders and the settings of an image. */

#include "image/base.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "image/devcontainer/devcontainer.h"
#include "image/devcontainer/prepared.h"
#include "image/layout.h"
#include "image/snapshot.h"
#include "image/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORD_HOST         "host"
#define WORD_ROOTFS       "rootfs:"
#define WORD_IMAGE        "image:"
#define WORD_LAYOUT       "oci:"
#define WORD_DEVCONTAINER PREPARED_KIND

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
	case BASE_SNAPSHOT:
		return "snapshot";
	case BASE_DEVCONTAINER:
		return WORD_DEVCONTAINER;
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
	/* The word stands in prompts, and in lines of a terminal. */
	if (text_find_unseen(all) < all.size)
		return refuse_word(word,
				   "it has a byte that is not seen, such as the end of a line; "
				   "rename what it names",
				   err);
	if (str_is(all, WORD_HOST))
		return true;
	if (str_starts(all, STR(WORD_ROOTFS))) {
		parsed->kind = BASE_ROOTFS;
		parsed->folder = arena_copy(arena, str_of(word + strlen(WORD_ROOTFS)));
		return parsed->folder[0] != '\0' ||
		       refuse_word(word, "it names no folder; write rootfs:DIR", err);
	}
	if (str_is(all, WORD_DEVCONTAINER) || str_starts(all, STR(WORD_DEVCONTAINER ":"))) {
		parsed->kind = BASE_DEVCONTAINER;
		if (all.size > strlen(WORD_DEVCONTAINER))
			parsed->folder =
				arena_copy(arena,
					   str_of(word + strlen(WORD_DEVCONTAINER ":")));
		return all.size != strlen(WORD_DEVCONTAINER ":") ||
		       refuse_word(word, "it names no file; write devcontainer:FILE", err);
	}
	if (str_starts(all, STR(SNAPSHOT_WORD))) {
		parsed->kind = BASE_SNAPSHOT;
		parsed->name = arena_copy(arena, str_of(word + strlen(SNAPSHOT_WORD)));
		return snapshot_check_name(parsed->name, err);
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
				   "it is no base; write host, rootfs:DIR, image:NAME[:TAG], "
				   "oci:DIR:TAG, snapshot:NAME or devcontainer[:FILE]",
				   err);
	buf_init(&name, BASE_WORD_MAX + sizeof(REGISTRY LIBRARY LATEST));
	fine = full_name(word, word + strlen(WORD_IMAGE), &name, err);
	parsed->name = arena_copy(arena, buf_str(&name));
	buf_fini(&name);
	return fine;
}

/* Bases. */

/* The word that begins with KIND for FOLDER, which is absolute, and TAG (NULL: it has none). */
static const char *lasting_word(struct base *base, const char *kind, const char *folder,
				const char *tag)
{
	struct buf word;
	const char *kept;

	buf_init(&word, BASE_WORD_MAX + PATH_MAX);
	(void)buf_addf(&word, "%s%s%s%s", kind, folder, tag != NULL ? ":" : "",
		       tag != NULL ? tag : "");
	kept = arena_copy(&base->arena, buf_str(&word));
	buf_fini(&word);
	return kept;
}

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
		base->folder_count = base->named = 1;
		base->lasting = lasting_word(base, WORD_ROOTFS, base->folders[0], NULL);
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

/* The record of an image that is looked for by its digest. */
struct wanted {
	const char *digest;
	struct manifest_descriptor found; /* texts of `arena` */
	struct arena *arena;
};

static bool take_wanted(void *context, const struct image_record *record)
{
	struct wanted *wanted = context;

	if (strcmp(record->digest, wanted->digest) != 0)
		return true;
	wanted->found = (struct manifest_descriptor){
		.media_type = arena_copy(wanted->arena, str_of(record->media_type)),
		.digest = arena_copy(wanted->arena, str_of(record->digest)),
		.size = record->size,
		.architecture = arena_copy(wanted->arena, STR("")),
		.os = arena_copy(wanted->arena, STR("")),
		.variant = arena_copy(wanted->arena, STR("")),
		.name = arena_copy(wanted->arena, STR("")),
	};
	return false;
}

/* Find the image of the digest in NAME, whatever name it was pulled by. */
static bool find_by_digest(struct base *base, const char *name,
			   const struct image_store *store, struct layout_image *image)
{
	const char *at = strchr(name, '@');
	struct wanted wanted = {.digest = at != NULL ? at + 1 : "", .arena = &base->arena};
	struct err err;

	if (at == NULL)
		return false;
	image_store_each(store, take_wanted, &wanted);
	if (wanted.found.digest == NULL)
		return false;
	layout_fini(image);
	return layout_read(store->folder, &wanted.found, image, &err);
}

static bool find_image(struct base *base, const struct base_word *parsed,
		       const struct image_store *store, struct layout_image *image,
		       struct err *err)
{
	struct err found = {0};
	struct buf path;
	auto_close int layout = -1;

	if (!parsed->is_layout) {
		if (layout_find(store->folder, "the cache of images", parsed->name, image,
				&found) ||
		    find_by_digest(base, parsed->name, store, image))
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
	if (!layout_find(layout, parsed->folder, parsed->name, image, err))
		return err_while(err, "base %s", base->word);
	buf_init(&path, PATH_MAX);
	/* A colon would end the folder: such a word is told by its digest when it is another one. */
	if (fd_real_path(layout, &path) && strchr(path.data, ':') == NULL)
		base->lasting = lasting_word(base, WORD_LAYOUT, path.data,
					     parsed->name[0] != '\0' ? parsed->name : NULL);
	buf_fini(&path);
	return true;
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
		found = (image_store_hold(&store, image.found.digest, &base->held[0],
					  &missing) &&
			 keep_layers(base, &store, &image, &missing)) ||
			(missing.code == ENOENT
				 ? say_missing(base, err)
				 : err_set(err, missing.code, "%s", missing.text));
	if (base->held[0] >= 0)
		base->held_count = 1;
	if (found) {
		(void)snprintf(base->digest, sizeof(base->digest), "%s", image.found.digest);
		memcpy(base->mark, base->digest, sizeof(base->mark));
		keep_config(base, &image.config);
	}
	layout_fini(&image);
	image_store_close(&store);
	return found;
}

/* Snapshots. */

static bool open_nested(const char *word, const struct base_places *places, size_t nested,
			struct base *base, struct err *err);

/* Is the base BELOW the one over which SNAPSHOT was made? */
static bool is_same(const struct snapshot *snapshot, const struct base *below)
{
	return snapshot->base_digest == NULL ||
	       strcmp(snapshot->base_digest, below->mark) == 0;
}

/*
 * Open the base BELOW of SNAPSHOT. The name of an image may stand for a newer one by now: then the
 * older one is found by its digest.
 */
static bool open_below(struct base *base, const struct snapshot *snapshot,
		       const struct base_places *places, size_t nested,
		       struct base *below, struct err *err)
{
	struct base_word word;
	struct err why;
	struct buf pinned;
	bool found;

	if (!base_parse_word(snapshot->base, &base->arena, &word, err))
		return err_while(err, "base %s lies over another", base->word);
	/* Nothing says from which folder it was named. */
	if (word.kind == BASE_ROOTFS && word.folder[0] != '/')
		return err_set(err, EINVAL,
			       "base %s lies over %s, which does not say where that is; make the "
			       "snapshot again",
			       base->word, snapshot->base);
	found = open_nested(snapshot->base, places, nested, below, &why);
	if (found && is_same(snapshot, below))
		return true;
	if (snapshot->base_digest == NULL || word.kind != BASE_IMAGE || word.is_layout)
		return err_set(err, found ? ESTALE : why.code, "base %s lies over %s: %s",
			       base->word, snapshot->base,
			       found ? "that is another one by now" : why.text);
	buf_init(&pinned, 2 * BASE_WORD_MAX);
	(void)buf_addf(&pinned, WORD_IMAGE "%.*s@%s", (int)strcspn(word.name, "@"),
		       word.name, snapshot->base_digest);
	/* A tag beside a digest is left out (full_name). */
	base_close(below);
	found = open_nested(pinned.data, places, nested, below, &why) ||
		err_set(err, why.code, "base %s lies over %s: %s", base->word,
			snapshot->base, why.text);
	buf_fini(&pinned);
	return found;
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;

	while (list[count] != NULL)
		count++;
	return count;
}

/* BASE has all that BELOW has, whose locks it takes, and then the folder LAYER (NULL: none). */
static void keep_below(struct base *base, struct base *below, const char *layer)
{
	const size_t count = below->folder_count;
	const char **folders = arena_alloc(&base->arena, (count + 2) * sizeof(*folders));

	for (size_t i = 0; i < count; i++)
		folders[i] = arena_copy(&base->arena, str_of(below->folders[i]));
	if (layer != NULL)
		folders[count] = arena_copy(&base->arena, str_of(layer));
	base->folders = folders;
	base->folder_count = count + (layer != NULL);
	base->named = below->named;
	base->environment =
		keep_list(base, below->environment, count_of(below->environment));
	base->entrypoint = keep_list(base, below->entrypoint, count_of(below->entrypoint));
	base->command = keep_list(base, below->command, count_of(below->command));
	base->workdir = arena_copy(&base->arena, str_of(below->workdir));
	base->user = arena_copy(&base->arena, str_of(below->user));
	memcpy(base->digest, below->digest, sizeof(base->digest));
	memcpy(base->mark, below->mark, sizeof(base->mark));
	memcpy(base->held, below->held, sizeof(base->held));
	base->held_count = below->held_count;
	below->held_count = 0;
}

/* BASE is BELOW with the layer of SNAPSHOT, whose lock it takes, over it. */
static void keep_snapshot(struct base *base, struct base *below, struct snapshot *snapshot)
{
	struct buf both;
	char hex[HASH_HEX + 1];

	keep_below(base, below, snapshot->layer);
	base->held[base->held_count++] = fd_take(&snapshot->lock);
	base->below = arena_copy(&base->arena, str_of(snapshot->base));
	buf_init(&both, 2 * BASE_WORD_MAX);
	(void)buf_addf(&both, "%s %s", below->mark[0] != '\0' ? below->mark : snapshot->base,
		       snapshot->layer_digest);
	hash_text(buf_str(&both), hex);
	(void)snprintf(base->mark, sizeof(base->mark), "sha256:%s", hex);
	/* A folder without a digest may have changed since: such a base has no digest either. */
	if (below->digest[0] != '\0')
		memcpy(base->digest, base->mark, sizeof(base->digest));
	buf_fini(&both);
}

static bool open_snapshot(struct base *base, const struct base_word *parsed,
			  const struct base_places *places, size_t nested, struct err *err)
{
	struct snapshot snapshot;
	struct base below = {.held_count = 0};
	bool found;

	if (places->snapshots == NULL)
		return err_set(err, ENOENT,
			       "base %s: there is no place for snapshots; set HOME or "
			       "XDG_DATA_HOME",
			       base->word);
	found = snapshot_open(places->snapshots, parsed->name, &snapshot, err) ||
		err_while(err, "base %s", base->word);
	if (found && snapshot.base == NULL)
		found = err_set(err, EINVAL,
				"base %s: it has the files of a workspace and no root, because its "
				"cell was on no base; cell/open takes it as a workspace: "
				"{\"snapshot\": \"%s\"}",
				base->word, parsed->name);
	if (found && nested + 1 >= BASE_NESTED_MAX)
		found = err_set(err, ELOOP,
				"base %s: more than %d snapshots lie over each other",
				base->word, BASE_NESTED_MAX - 1);
	if (found) {
		found = open_below(base, &snapshot, places, nested + 1, &below, err);
		if (found)
			keep_snapshot(base, &below, &snapshot);
		base_close(&below);
	}
	snapshot_close(&snapshot);
	return found;
}

/* Devcontainers. */

/*
 * *INSIDE becomes the place of the FILE of the word in the workspace of PLACES. A caller with fewer
 * rights than this process may have named it (a task of a batch, a client of `serve`), so a file outside
 * is not opened.
 */
static bool place_in_workspace(struct base *base, const char *file,
			       const struct base_places *places, const char **inside,
			       struct err *err)
{
	const char *workspace = places->workspace;
	struct buf path;
	bool fine;

	buf_init(&path, PATH_MAX - 1);
	fine = path_normal(workspace, file, &path);
	if (fine && places->at != NULL)
		(void)path_move(&path, places->at, workspace);
	fine = fine && path_within(path.data, workspace) &&
	       strcmp(path.data, workspace) != 0;
	if (fine)
		*inside = arena_copy(&base->arena,
				     str_of(path_relative(path.data, workspace)));
	buf_fini(&path);
	return fine ||
	       err_set(err, EPERM,
		       "base %.400s: FILE lies outside of the workspace %.400s, and no other file "
		       "is read; copy it into the workspace, and name it from there, as in "
		       "devcontainer:ci/devcontainer.json",
		       base->word, workspace);
}

/* The end of an attempt to open a file of the workspace. */
enum opening {
	FILE_OPENED,
	FILE_ABSENT,
	FILE_REFUSED, /* it may not be read, or cannot be: the error says why */
};

/* Open the file NAME of the workspace of PLACES, if it may be read. *FD becomes -1 where it is not opened. */
static enum opening open_allowed(struct base *base, const struct base_places *places,
				 int folder, const char *name, int *fd, struct err *err)
{
	struct buf path;
	bool fine = true;

	*fd = -1;
	buf_init(&path, PATH_MAX);
	if (places->reads != NULL)
		fine = (path_normal(places->workspace, name, &path) ||
			err_set(err, ENAMETOOLONG, "%s: the path is too long", name)) &&
		       places->reads(places->context, path.data, err);
	buf_fini(&path);
	if (!fine) {
		(void)err_while(err, "base %.400s", base->word);
		return FILE_REFUSED;
	}
	*fd = devcontainer_open_file(folder, name);
	if (*fd >= 0)
		return FILE_OPENED;
	if (errno == ENOENT)
		return FILE_ABSENT;
	(void)err_set(err, errno, "base %s: %s: %s%s", base->word, name, strerror(errno),
		      errno == ELOOP ? "; no link is followed in a workspace" : "");
	return FILE_REFUSED;
}

/* Read the file of the word into TEXT; *SHOWN gets its name. */
static bool read_devcontainer(struct base *base, const struct base_word *parsed,
			      const struct base_places *places, int folder,
			      const char **shown, struct buf *text, struct err *err)
{
	static const char *const names[] = {".devcontainer/devcontainer.json",
					    ".devcontainer.json"};
	const bool is_named = parsed->folder[0] != '\0';
	auto_close int fd = -1;
	enum opening end;

	*shown = names[0];
	if (is_named && !place_in_workspace(base, parsed->folder, places, shown, err))
		return false;
	end = open_allowed(base, places, folder, *shown, &fd, err);
	if (end == FILE_ABSENT && !is_named) {
		*shown = names[1];
		end = open_allowed(base, places, folder, *shown, &fd, err);
	}
	if (end == FILE_REFUSED)
		return false;
	if (end == FILE_ABSENT)
		return is_named ? err_set(err, ENOENT, "base %s: %s: %s", base->word,
					  *shown, strerror(ENOENT))
				: err_set(err, ENOENT,
					  "base %s: the workspace has neither %s nor %s; "
					  "name the file by devcontainer:FILE",
					  base->word, names[0], names[1]);
	return fd_read_all(fd, text, *shown, err) || err_while(err, "base %s", base->word);
}

/* Put the variables of READ behind those of the image. */
static bool add_variables(struct base *base, const struct devcontainer *read,
			  struct devcontainer_cell *cell, struct err *err)
{
	const size_t count = count_of(base->environment);
	const char *const *more;
	const char **all;

	cell->environment = base->environment;
	if (!devcontainer_environment(read, cell, &base->arena, &more, err))
		return false;
	all = arena_alloc(&base->arena, (count + read->variable_count + 1) * sizeof(*all));
	for (size_t i = 0; i < count; i++)
		all[i] = base->environment[i];
	for (size_t i = 0; i < read->variable_count; i++)
		all[count + i] = more[i];
	base->environment = keep_variables(base, all, count + read->variable_count);
	return true;
}

/*
 * Take the snapshot of what the commands have made, where there is one, over BELOW. One that cannot
 * be used keeps its name, so the commands would run in vain.
 */
static bool take_prepared(struct base *base, struct base *below,
			  const struct base_places *places, struct err *err)
{
	struct snapshot snapshot = {.lock = -1};
	struct err why = {.code = ENOENT};
	bool found = base->prepared[0] != '\0' && places->snapshots != NULL &&
		     snapshot_open(places->snapshots, base->prepared, &snapshot, &why);

	if (found && (snapshot.base == NULL || !is_same(&snapshot, below)))
		found = err_set(&why, EINVAL,
				"snapshot %s is not one of this file's commands; remove it: "
				"glovebox base prune --snapshot %s",
				base->prepared, base->prepared);
	if (found) {
		keep_snapshot(base, below, &snapshot);
	} else if (why.code == ENOENT) {
		base->state = base->prepared[0] != '\0' ? BASE_IS_RAW : BASE_IS_READY;
		keep_below(base, below, NULL);
	}
	snapshot_close(&snapshot);
	return found || why.code == ENOENT ||
	       err_set(err, why.code, "base %s: %s", base->word, why.text);
}

/* The place of the workspace that a person names beats none: the file expects its own. */
static bool check_folder(const struct devcontainer *read,
			 const struct base_places *places, struct err *err)
{
	return read->workspace_folder == NULL || places->at == NULL ||
	       strcmp(read->workspace_folder, places->at) == 0 ||
	       err_set(err, EINVAL,
		       "workspaceFolder: %s is not where the cell has the workspace (%s); take "
		       "--at %s, or leave it out there",
		       read->workspace_folder, places->at, read->workspace_folder);
}

/*
 * Read the file, open its image as BELOW, whose word WORD gets, and name what its commands make. TEXT
 * gets the file.
 */
static bool find_devcontainer(struct base *base, const struct base_word *parsed,
			      const struct base_places *places, int folder,
			      struct devcontainer_cell *cell, struct base *below,
			      struct buf *text, struct buf *word, struct err *err)
{
	struct devcontainer *read = arena_alloc(&base->arena, sizeof(*read));
	const char *shown;

	base->devcontainer = read;
	if (!read_devcontainer(base, parsed, places, folder, &shown, text, err))
		return false;
	base->file = arena_copy(&base->arena, str_of(shown));
	hash_text(buf_str(text), base->file_digest);
	if (!devcontainer_parse(buf_str(text), cell, read, err) ||
	    !check_folder(read, places, err))
		return err_while(err, "base %s: %s", base->word, shown);
	if (read->workspace_folder != NULL)
		cell->shown = read->workspace_folder;
	(void)buf_addf(word, WORD_IMAGE "%s", read->image);
	if (!open_nested(word->data, places, 1, below, err))
		return err_while(err, "%s", shown);
	if (read->command_count > 0)
		prepared_name(&(struct prepared_content){.workspace = cell->workspace,
							 .shown = cell->shown,
							 .folder = folder,
							 .file = shown,
							 .text = buf_str(text),
							 .below = below->digest},
			      base->prepared);
	return true;
}

static bool open_devcontainer(struct base *base, const struct base_word *parsed,
			      const struct base_places *places, struct err *err)
{
	struct devcontainer_cell cell = {.workspace = places->workspace,
					 .shown = places->at != NULL ? places->at
								     : places->workspace,
					 .quiet = parsed->folder[0] != '\0'};
	struct base below = {.held_count = 0};
	struct buf text, word;
	bool found;

	if (places->workspace == NULL)
		return err_set(err, EINVAL, "base %s: it needs a workspace", base->word);
	auto_close int folder = open(places->workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return err_set(err, errno, "base %s: %s: %s", base->word,
			       places->workspace, strerror(errno));
	buf_init(&text, DEVCONTAINER_BYTES_MAX);
	buf_init(&word, BASE_WORD_MAX);
	found = find_devcontainer(base, parsed, places, folder, &cell, &below, &text,
				  &word, err);
	found = found && take_prepared(base, &below, places, err);
	if (found) {
		base->below = arena_copy(&base->arena, buf_str(&word));
		base->lasting =
			base->prepared[0] != '\0'
				? lasting_word(base, SNAPSHOT_WORD, base->prepared, NULL)
				: base->below;
		if (base->devcontainer->user[0] != '\0')
			base->user = base->devcontainer->user;
		found = add_variables(base, base->devcontainer, &cell, err) ||
			err_while(err, "base %s", base->word);
	}
	base_close(&below);
	buf_fini(&text);
	buf_fini(&word);
	return found;
}

static bool open_nested(const char *word, const struct base_places *places, size_t nested,
			struct base *base, struct err *err)
{
	struct base_word parsed;

	*base = (struct base){
		.word = "",
		.lasting = "",
		.folders = nothing,
		.environment = nothing,
		.workdir = "/",
		.user = "",
		.entrypoint = nothing,
		.command = nothing,
		.held = {[0 ... BASE_NESTED_MAX - 1] = -1},
	};
	if (!base_parse_word(word, &base->arena, &parsed, err))
		return false;
	base->word = base->lasting = arena_copy(&base->arena, str_of(word));
	base->kind = parsed.kind;
	switch (parsed.kind) {
	case BASE_HOST:
		return true;
	case BASE_ROOTFS:
		return open_rootfs(base, &parsed, err);
	case BASE_IMAGE:
		return open_image(base, &parsed, places->images, err);
	case BASE_SNAPSHOT:
		return open_snapshot(base, &parsed, places, nested, err);
	case BASE_DEVCONTAINER:
		return nested == 0 ? open_devcontainer(base, &parsed, places, err)
				   : err_set(err, EINVAL,
					     "base %s: no other base lies over it", word);
	}
	return false;
}

bool base_open(const char *word, const struct base_places *places, struct base *base,
	       struct err *err)
{
	return open_nested(word, places, 0, base, err);
}

void base_close(struct base *base)
{
	for (size_t i = 0; i < base->held_count; i++)
		fd_close(&base->held[i]);
	base->held_count = 0;
	if (base->devcontainer != NULL)
		devcontainer_fini(base->devcontainer);
	base->devcontainer = NULL;
	arena_fini(&base->arena);
}
