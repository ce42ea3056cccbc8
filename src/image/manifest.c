/* manifest: tables of members, and the checks that a table cannot hold. */

#include "image/manifest.h"

#include "base/buf.h"
#include "base/json/fields.h"
#include "base/text/text.h"
#include "base/value.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#define OS_LINUX "linux"
#define SHA256   "sha256:"

/* Bytes of a media type or an annotation, and of a file: far more than any real one. */
enum { NAME_MAX_BYTES = 4096 };
#define SIZE_MAX_BYTES ((int64_t)1 << 42)

static const struct field platform_fields[] = {
	FIELD(struct manifest_descriptor, architecture, .optional = true,
	      .max = NAME_MAX_BYTES),
	FIELD(struct manifest_descriptor, os, .optional = true, .max = NAME_MAX_BYTES),
	FIELD(struct manifest_descriptor, variant, .optional = true, .max = NAME_MAX_BYTES),
	{0},
};
static const struct field annotation_fields[] = {
	FIELD_NAMED(struct manifest_descriptor, name, MANIFEST_NAME, .optional = true,
		    .max = NAME_MAX_BYTES),
	{0},
};
static const struct field descriptor_fields[] = {
	FIELD_NAMED(struct manifest_descriptor, media_type, "mediaType", .optional = true,
		    .max = NAME_MAX_BYTES),
	FIELD(struct manifest_descriptor, digest, .max = NAME_MAX_BYTES),
	FIELD(struct manifest_descriptor, size, .min = 0, .max = SIZE_MAX_BYTES),
	FIELD_GROUP("platform", platform_fields, .optional = true),
	FIELD_GROUP("annotations", annotation_fields, .optional = true),
	{0},
};
static const struct field index_fields[] = {
	FIELD_LIST(struct manifest_index, items, count, "manifests", descriptor_fields,
		   .max = MANIFEST_ITEMS_MAX),
	{0},
};
static const struct field manifest_fields[] = {
	FIELD_LIST(struct manifest, layers, layer_count, "layers", descriptor_fields,
		   .max = MANIFEST_LAYERS_MAX),
	{0},
};
static const struct field run_fields[] = {
	FIELD_NAMED(struct manifest_config, user, "User", .optional = true,
		    .max = NAME_MAX_BYTES),
	FIELD_NAMED(struct manifest_config, workdir, "WorkingDir", .optional = true,
		    .max = NAME_MAX_BYTES),
	FIELD_TEXTS(struct manifest_config, environment, environment_count, "Env",
		    .optional = true, .max = MANIFEST_TEXTS_MAX),
	FIELD_TEXTS(struct manifest_config, entrypoint, entrypoint_count, "Entrypoint",
		    .optional = true, .max = MANIFEST_TEXTS_MAX),
	FIELD_TEXTS(struct manifest_config, command, command_count, "Cmd",
		    .optional = true, .max = MANIFEST_TEXTS_MAX),
	{0},
};
static const struct field rootfs_fields[] = {
	FIELD_TEXTS(struct manifest_config, diff_ids, diff_count, "diff_ids",
		    .max = MANIFEST_LAYERS_MAX),
	{0},
};
static const struct field config_fields[] = {
	FIELD(struct manifest_config, architecture, .optional = true, .max = NAME_MAX_BYTES),
	FIELD(struct manifest_config, os, .optional = true, .max = NAME_MAX_BYTES),
	FIELD_GROUP("config", run_fields, .optional = true),
	FIELD_GROUP("rootfs", rootfs_fields),
	{0},
};

static bool is_set(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* Remove the members of OBJECT that are null, which programs write for empty ones. */
static void drop_nulls(struct value *object, int depth)
{
	void *next;

	if (value_kind(object) != VALUE_OBJECT || depth == 0)
		return;
	for (void *at = value_first(object); at != NULL; at = next) {
		next = value_next(object, at);
		if (value_kind(value_at(at)) == VALUE_NULL)
			value_remove(object, value_key(at));
		else
			drop_nulls(value_at(at), depth - 1);
	}
}

static bool parse_object(struct str text, struct value **object, struct err *err)
{
	enum { NULLS_DEPTH = 3 };

	if (text.size > MANIFEST_BYTES_MAX)
		return err_set(err, E2BIG, "the document is larger than 4 MiB");
	if (!value_parse(text, VALUE_LAST | VALUE_WIDE, object, err))
		return false;
	if (value_kind(*object) != VALUE_OBJECT)
		return err_set(err, EBADMSG, "the document is no JSON object");
	drop_nulls(*object, NULLS_DEPTH);
	return true;
}

bool manifest_is_digest(struct str text)
{
	if (text.size != MANIFEST_DIGEST || !str_starts(text, STR(SHA256)))
		return false;
	for (size_t i = strlen(SHA256); i < text.size; i++) {
		const char c = text.data[i];

		if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
			return false;
	}
	return true;
}

static bool check_digest(const char *digest, struct err *err)
{
	char shown[2 * MANIFEST_DIGEST];
	struct buf text;

	if (manifest_is_digest(str_of(digest)))
		return true;
	buf_init(&text, sizeof(shown));
	text_add_name(&text, str_part(str_of(digest), 0, MANIFEST_DIGEST));
	(void)err_set(err, EBADMSG, "\"%s\" is no digest of the form sha256:HEX", text.data);
	buf_fini(&text);
	return false;
}

static bool check_all(const struct manifest_descriptor *items, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (!check_digest(items[i].digest, err))
			return false;
	}
	return true;
}

bool manifest_parse_index(struct str text, struct manifest_index *index, struct err *err)
{
	auto_value struct value *object = NULL;

	*index = (struct manifest_index){0};
	return parse_object(text, &object, err) &&
	       fields_read(object, index_fields, index, &index->arena, err) &&
	       check_all(index->items, index->count, err);
}

void manifest_fini_index(struct manifest_index *index)
{
	arena_fini(&index->arena);
	*index = (struct manifest_index){0};
}

bool manifest_parse(struct str text, struct manifest *manifest, struct err *err)
{
	auto_value struct value *object = NULL;

	*manifest = (struct manifest){0};
	if (!parse_object(text, &object, err) ||
	    !fields_read(object, manifest_fields, manifest, &manifest->arena, err) ||
	    !check_all(manifest->layers, manifest->layer_count, err))
		return false;
	if (!fields_read(value_member(object, "config"), descriptor_fields,
			 &manifest->config, &manifest->arena, err))
		return err_while(err, "config");
	if (!check_digest(manifest->config.digest, err))
		return false;
	for (size_t i = 0; i < manifest->layer_count; i++) {
		struct buf shown;

		if (manifest_media_of(&manifest->layers[i]) == MEDIA_LAYER)
			continue;
		buf_init(&shown, ERR_TEXT_MAX / 2);
		text_add_name(&shown, str_of(manifest->layers[i].media_type));
		(void)err_set(err, ENOTSUP,
			      "layer %zu is no tar that is plain, gzip or zstd, but \"%s\"",
			      i + 1, shown.data);
		buf_fini(&shown);
		return false;
	}
	return true;
}

void manifest_fini(struct manifest *manifest)
{
	arena_fini(&manifest->arena);
	*manifest = (struct manifest){0};
}

/* The texts of LIST are borrowed from the document: copy them. */
static bool keep_texts(struct arena *arena, const char **list, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct str text = str_of(list[i]);

		if (text.size > MANIFEST_TEXT_MAX)
			return err_set(err, E2BIG,
				       "a text of the configuration is too long");
		list[i] = arena_copy(arena, text);
	}
	return true;
}

/* A list that the document does not have is empty, not NULL. */
static void fill_list(struct arena *arena, const char ***list)
{
	if (*list == NULL)
		*list = arena_alloc(arena, sizeof(**list));
}

/*
 * Is the image of CONFIG for this machine? A name of one image, or its digest, may lead to another
 * machine's without a list to choose from. No cell starts programs of such an image.
 */
static bool check_platform(const struct manifest_config *config, struct err *err)
{
	const char *here = manifest_architecture();
	struct buf shown;

	if (is_set(config->os) && strcmp(config->os, OS_LINUX) != 0)
		return err_set(err, ENOTSUP, "the image is not for Linux");
	if (!is_set(config->architecture) || strcmp(config->architecture, here) == 0)
		return true;
	buf_init(&shown, ERR_TEXT_MAX / 4);
	text_add_name(&shown, str_of(config->architecture));
	(void)err_set(err, ENOTSUP,
		      "the image is for linux/%s, and this machine is linux/%s; name an image "
		      "for linux/%s, by another tag or digest, or build one: glovebox base build",
		      shown.data, here, here);
	buf_fini(&shown);
	return false;
}

bool manifest_parse_config(struct str text, struct manifest_config *config, struct err *err)
{
	auto_value struct value *object = NULL;
	struct arena *arena = &config->arena;

	*config = (struct manifest_config){0};
	if (!parse_object(text, &object, err))
		return false;
	const bool read = fields_read(object, config_fields, config, arena, err);

	fill_list(arena, &config->environment);
	fill_list(arena, &config->entrypoint);
	fill_list(arena, &config->command);
	fill_list(arena, &config->diff_ids);
	if (!read ||
	    !keep_texts(arena, config->environment, config->environment_count, err) ||
	    !keep_texts(arena, config->entrypoint, config->entrypoint_count, err) ||
	    !keep_texts(arena, config->command, config->command_count, err) ||
	    !keep_texts(arena, config->diff_ids, config->diff_count, err))
		return false;
	for (size_t i = 0; i < config->diff_count; i++) {
		if (!check_digest(config->diff_ids[i], err))
			return false;
	}
	return check_platform(config, err);
}

void manifest_fini_config(struct manifest_config *config)
{
	arena_fini(&config->arena);
	*config = (struct manifest_config){0};
}

enum manifest_media manifest_media_of(const struct manifest_descriptor *descriptor)
{
	static const struct {
		const char *type;
		enum manifest_media media;
	} known[] = {
		{"application/vnd.oci.image.index.v1+json", MEDIA_INDEX},
		{"application/vnd.docker.distribution.manifest.list.v2+json", MEDIA_INDEX},
		{"application/vnd.oci.image.manifest.v1+json", MEDIA_MANIFEST},
		{"application/vnd.docker.distribution.manifest.v2+json", MEDIA_MANIFEST},
		{"application/vnd.oci.image.layer.v1.tar", MEDIA_LAYER},
		{"application/vnd.oci.image.layer.v1.tar+gzip", MEDIA_LAYER},
		{"application/vnd.oci.image.layer.v1.tar+zstd", MEDIA_LAYER},
		{"application/vnd.oci.image.layer.nondistributable.v1.tar", MEDIA_LAYER},
		{"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", MEDIA_LAYER},
		{"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", MEDIA_LAYER},
		{"application/vnd.docker.image.rootfs.diff.tar", MEDIA_LAYER},
		{"application/vnd.docker.image.rootfs.diff.tar.gzip", MEDIA_LAYER},
		{"application/vnd.docker.image.rootfs.diff.tar.zstd", MEDIA_LAYER},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (descriptor->media_type != NULL &&
		    strcmp(descriptor->media_type, known[i].type) == 0)
			return known[i].media;
	}
	return MEDIA_OTHER;
}

const char *manifest_architecture(void)
{
	static const struct {
		const char *machine, *word;
	} known[] = {
		{"x86_64", "amd64"},    {"aarch64", "arm64"}, {"riscv64", "riscv64"},
		{"ppc64le", "ppc64le"}, {"s390x", "s390x"},
	};
	struct utsname here;

	if (uname(&here) == 0) {
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			if (strcmp(here.machine, known[i].machine) == 0)
				return known[i].word;
		}
	}
	return "unknown";
}

/* How well ITEM fits: 0 not at all, 1 it does not say, 2 it says so. */
static int fits(const struct manifest_descriptor *item, const char *name)
{
	const enum manifest_media media = manifest_media_of(item);

	if (media != MEDIA_INDEX && media != MEDIA_MANIFEST)
		return 0;
	if (name != NULL && (item->name == NULL || strcmp(item->name, name) != 0))
		return 0;
	if (!is_set(item->os) || !is_set(item->architecture))
		return 1;
	return strcmp(item->os, OS_LINUX) == 0 &&
			       strcmp(item->architecture, manifest_architecture()) == 0
		       ? 2
		       : 0;
}

const struct manifest_descriptor *manifest_choose(const struct manifest_index *index,
						  const char *name)
{
	const struct manifest_descriptor *chosen = NULL;
	int best = 0;

	for (size_t i = 0; i < index->count; i++) {
		const int how_well = fits(&index->items[i], name);

		if (how_well > best) {
			best = how_well;
			chosen = &index->items[i];
		}
	}
	return chosen;
}

bool manifest_print_index(const struct manifest_index *index, struct buf *out)
{
	auto_value struct value *object = fields_print(index_fields, index);

	value_set_integer(object, "schemaVersion", 2);
	return value_print(object, VALUE_PRETTY, out) && buf_addc(out, '\n');
}
