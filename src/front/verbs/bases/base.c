/*
 * glovebox base: brings images into the cache, shows what is there and what one holds, builds one,
 * removes old ones, and says whether this machine can use them.
 */

#include "image/base.h"
#include "front/config_file.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/verb.h"
#include "image/devcontainer/devcontainer.h"
#include "image/devcontainer/prepared.h"
#include "image/prune.h"
#include "image/pull.h"
#include "image/snapshot.h"
#include "image/store.h"
#include "image/trial.h"
#include "image/unpack.h"
#include "image/unpacked.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
	SIZE_ROOM = 32,
	NAME_COLUMNS = 44,
	SHOWN_DIGITS = sizeof("sha256:") - 1 + 12, /* of a digest in a table */
	SPACE_LITTLE = 5, /* GiB: less is told by `base doctor` */
};

/* Kinds of things that some layers have lost, in words; the names stand in JSON too. */
static const struct {
	const char *name, *what;
	size_t offset;
} left_out[] = {
	{"owners", "files of other users, which are yours here",
	 offsetof(struct maker_counts, owners)},
	{"devices", "devices, which were left out", offsetof(struct maker_counts, devices)},
	{"set_id", "set-id bits, which were taken away",
	 offsetof(struct maker_counts, set_id)},
	{"attributes", "attributes, which were left out",
	 offsetof(struct maker_counts, attributes)},
	{"outside", "names with .. that led out and stay inside",
	 offsetof(struct maker_counts, outside)},
	{"across", "hard links to files of lower layers, which became links",
	 offsetof(struct maker_counts, across)},
};

static uint64_t left_out_of(const struct maker_counts *counts, size_t i)
{
	uint64_t number;

	memcpy(&number, (const char *)counts + left_out[i].offset, sizeof(number));
	return number;
}

/* The folder of the cache; false after a complaint. */
static bool find_store(struct buf *path)
{
	if (image_store_path(config_file_variable("XDG_CACHE_HOME"),
			     config_file_variable("HOME"), path))
		return true;
	(void)verb_complain(CODE_FAILED,
			    "there is no place for a cache; set HOME or XDG_CACHE_HOME");
	return false;
}

/* Is WORD one of a base, for `base pull` of an image? False after a complaint. */
static bool check_word(const char *word, bool pulls)
{
	struct base_word parsed;
	struct arena arena;
	struct err err;
	bool fine;

	arena_init(&arena);
	fine = base_parse_word(word, &arena, &parsed, &err);
	if (fine && pulls && parsed.kind != BASE_IMAGE)
		fine = err_set(&err, EINVAL,
			       "base %s: only image:NAME and oci:DIR:TAG are pulled", word);
	if (!fine)
		(void)verb_complain(CODE_USAGE, "%s", err.text);
	arena_fini(&arena);
	return fine;
}

static struct value *counts_value(const struct maker_counts *counts)
{
	struct value *object = value_new_object();

	value_set_integer(object, "entries", (int64_t)counts->entries);
	value_set_integer(object, "bytes", (int64_t)counts->bytes);
	value_set_integer(object, "removed", (int64_t)counts->removed);
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		value_set_integer(object, left_out[i].name, (int64_t)left_out_of(counts, i));
	return object;
}

static void print_left_out(const struct maker_counts *counts, FILE *out)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		if (left_out_of(counts, i) > 0)
			(void)fprintf(out, "  %" PRIu64 " %s\n", left_out_of(counts, i),
				      left_out[i].what);
	}
}

/* Pulling and building. */

struct teller {
	bool quiet;     /* nothing but the result */
	bool rewrites;  /* standard error is a terminal */
	bool open_line; /* a line of progress stands there */
};

static void end_line(struct teller *teller)
{
	if (teller->open_line)
		(void)fputs("\r\033[K", stderr);
	teller->open_line = false;
}

static void told(void *context, const char *line)
{
	struct teller *teller = context;

	if (teller->quiet)
		return;
	end_line(teller);
	(void)fprintf(stderr, "%s\n", line);
}

static void progressed(void *context, size_t number, size_t count, uint64_t read,
		       uint64_t size, const struct maker_counts *counts)
{
	struct teller *teller = context;
	char done[SIZE_ROOM], all[SIZE_ROOM];

	if (teller->quiet || !teller->rewrites)
		return;
	(void)fprintf(stderr,
		      "\r\033[Kunpacking layer %zu of %zu: %s of %s, %" PRIu64 " files",
		      number, count, text_size(read, done), text_size(size, all),
		      counts->files);
	teller->open_line = true;
}

static int print_pulled(const struct pull *pull, bool json, FILE *out)
{
	char size[SIZE_ROOM];

	if (json) {
		auto_value struct value *object = value_new_object();

		value_set_text(object, "base", pull->word);
		value_set_text(object, "digest", pull->digest);
		value_set_integer(object, "layers", (int64_t)pull->layers);
		value_set_integer(object, "layers_new", (int64_t)pull->layers_new);
		value_set(object, "counts", counts_value(&pull->counts));
		return verb_print_json(object, 0, out);
	}
	(void)fprintf(out, "%s\n  %s\n  %zu %s, %zu of them new; %" PRIu64 " %s, %s\n",
		      pull->word, pull->digest, pull->layers,
		      pull->layers == 1 ? "layer" : "layers", pull->layers_new,
		      pull->counts.files, pull->counts.files == 1 ? "file" : "files",
		      text_size(pull->counts.bytes, size));
	print_left_out(&pull->counts, out);
	return CODE_DONE;
}

static int pull_or_build(const struct options *options, const char *word, const char *dir,
			 FILE *out)
{
	const bool json = options_given(options, "json");
	struct teller teller = {.quiet = json, .rewrites = isatty(STDERR_FILENO) == 1};
	struct buf store;
	struct err err = {0};
	int code = CODE_FAILED;

	if (!check_word(word, true))
		return CODE_USAGE;
	buf_init(&store, PATH_MAX);
	if (find_store(&store)) {
		struct pull pull = {
			.word = word,
			.store = store.data,
			.timeout_s = options_seconds(options, "timeout", PULL_TIMEOUT_S),
			.environment = (const char *const *)environ,
			.told = told,
			.progress = progressed,
			.context = &teller,
		};
		bool done;

		if (dir == NULL) {
			pull.from = options_text(options, "from");
			done = pull_run(&pull, &err);
		} else {
			done = pull_build(&pull, dir, options_text(options, "file"),
					  options->words + 1, &err);
		}
		end_line(&teller);
		code = done ? print_pulled(&pull, json, out)
			    : verb_complain(err.code == ETIMEDOUT ? CODE_TIMED_OUT
								  : CODE_FAILED,
					    "%s", err.text);
	}
	buf_fini(&store);
	return code;
}

static int pull_verb(const struct options *options, FILE *out)
{
	return pull_or_build(options, options->words[0], NULL, out);
}

#define ROW_TIMEOUT                                                                    \
	{                                                                              \
		"timeout", 0, OPTION_SECONDS, "S",                                     \
			"end the program that fetches after S seconds (default: 3600)" \
	}
#define ROW_JSON                                                 \
	{                                                        \
		"json", 0, OPTION_FLAG, NULL, "print one object" \
	}

static const struct option_row pull_options[] = {
	{"from", 0, OPTION_TEXT, "SOURCE",
	 "take the image from SOURCE, in skopeo's words, instead of its registry"},
	ROW_TIMEOUT,
	ROW_JSON,
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_pull = {
	.name = "base pull",
	.summary = "bring an image into the cache, for --base",
	.arguments = "WORD",
	.help = "Bring an image into your cache and unpack its layers, so that cells can have it\n"
		"below them (--base). WORD is image:NAME[:TAG][@DIGEST], which the program skopeo\n"
		"fetches from its registry, or oci:DIR:TAG, an image in an OCI layout on this\n"
		"machine, which is read where it lies. Layers that the cache has already are not\n"
		"fetched or unpacked again.\n\n"
		"Owners, set-id bits and devices are left out and counted: in a cell everything is\n"
		"yours. Each layer is unpacked by a process that sees this layer and one empty\n"
		"folder, and is compared with the digests of the image.\n\n"
		"Exit codes: 0 done, 1 failed, 2 usage, 124 timeout.",
	.example = "  glovebox base pull image:python:3.12\n"
		   "  glovebox base pull image:tools:1 --from docker-archive:tools.tar\n"
		   "  glovebox base pull oci:./layout:latest",
	.options = pull_options,
	.words_least = 1,
	.words_most = 1,
	.run = pull_verb,
};

static int build_verb(const struct options *options, FILE *out)
{
	const char *dir = options->words[0], *name = options_text(options, "name");
	auto_free char *real = realpath(dir, NULL);
	struct buf word;
	int code;

	if (real == NULL)
		return verb_complain(CODE_FAILED, "%s: %s", dir, strerror(errno));
	buf_init(&word, PATH_MAX);
	if (name != NULL)
		(void)buf_addf(&word, "%s%s",
			       strncmp(name, "image:", 6) == 0 ? "" : "image:", name);
	else
		(void)buf_addf(&word, "image:localhost/%s", path_base_name(real));
	code = pull_or_build(options, word.data, dir, out);
	buf_fini(&word);
	return code;
}

static const struct option_row build_options[] = {
	{"name", 'n', OPTION_TEXT, "NAME",
	 "call the image NAME[:TAG] (default: localhost/ and the name of DIR)"},
	{"file", 'f', OPTION_TEXT, "FILE", "read FILE instead of DIR/Dockerfile"},
	ROW_TIMEOUT,
	ROW_JSON,
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_build = {
	.name = "base build",
	.summary = "build an image from a Dockerfile, for --base",
	.arguments = "DIR [-- ARGUMENT…]",
	.help = "Build an image from DIR, whose Dockerfile or Containerfile says how, and bring it\n"
		"into your cache. The program buildah does it (bud --isolation chroot), without\n"
		"root and without a daemon; ARGUMENTs are passed to it, such as\n"
		"--build-arg=NAME=VALUE. The commands of the Dockerfile run on this machine with\n"
		"your rights and the network, in no cell: build only what you would run.\n\n"
		"Exit codes: 0 done, 1 failed, 2 usage, 124 timeout.",
	.example = "  glovebox base build ./image --name tools:1\n"
		   "  glovebox exec --base image:tools:1 -- make test",
	.options = build_options,
	.words_least = 1,
	.words_most = VERB_WORDS_ANY,
	.run = build_verb,
};

/* Listing. */

struct listing {
	const struct image_store *store;
	enum prune_depth depth; /* of the search for torn blobs */
	struct value *rows;     /* objects; NULL: print lines */
	FILE *out;
	size_t count;
};

static void add_torn(void *context, const char *digest)
{
	value_append(context, value_new_text(digest));
}

static void print_torn(const struct value *torn, FILE *out)
{
	for (size_t i = 0; i < value_count(torn); i++)
		(void)fprintf(out,
			      "  torn: %.*s has other bytes than its name says; glovebox base prune "
			      "removes it, and glovebox base pull fetches it again\n",
			      SHOWN_DIGITS, value_text(value_item(torn, i)));
}

static bool list_one(void *context, const struct image_record *record)
{
	struct listing *listing = context;
	const uint64_t bytes = prune_bytes(listing->store, record);
	auto_value struct value *torn = value_new_array();
	char size[SIZE_ROOM], day[CLOCK_DAY];

	listing->count++;
	prune_each_torn(listing->store, record, listing->depth, add_torn, torn);
	if (listing->rows != NULL) {
		struct value *row = value_new_object();

		value_set_text(row, "base", record->word);
		value_set_text(row, "digest", record->digest);
		value_set_integer(row, "layers", (int64_t)record->layer_count);
		value_set_integer(row, "bytes", (int64_t)bytes);
		value_set_integer(row, "used_ms", record->used_ms);
		if (value_count(torn) > 0)
			value_set(row, "torn", value_ref(torn));
		value_append(listing->rows, row);
		return true;
	}
	clock_text_day(record->used_ms, day);
	verb_print_name(record->word, NAME_COLUMNS, listing->out);
	(void)fprintf(listing->out, "  %.*s  %3zu %-6s  %10s  used %s\n", SHOWN_DIGITS,
		      record->digest, record->layer_count,
		      record->layer_count == 1 ? "layer" : "layers",
		      text_size(bytes, size), day);
	print_torn(torn, listing->out);
	return true;
}

/*
 * Add the snapshot ITEM, which is a base as well: one of `glovebox serve`, or one that the commands of
 * a devcontainer have made.
 */
static void list_snapshot(struct listing *listing, const struct snapshot_item *item)
{
	const struct snapshot *snapshot = &item->snapshot;
	const bool prepared = !item->damaged && prepared_is_name(snapshot->name);
	const enum snapshot_workspace where =
		prepared ? snapshot_find_workspace(snapshot) : SNAPSHOT_WORKSPACE_THERE;
	char size[SIZE_ROOM], day[CLOCK_DAY],
		word[sizeof(SNAPSHOT_WORD) + SNAPSHOT_NAME_MAX];

	listing->count++;
	(void)snprintf(word, sizeof(word), SNAPSHOT_WORD "%s", snapshot->name);
	if (listing->rows != NULL) {
		struct value *row = value_new_object();

		value_set_text(row, "base", word);
		value_set_text(row, "digest", snapshot->digest);
		/* One that has no root is no base. */
		if (snapshot->base != NULL)
			value_set_text(row, "over", snapshot->base);
		value_set_integer(row, "bytes", snapshot->bytes);
		value_set_integer(row, "created_ms", snapshot->created_ms);
		value_set_boolean(row, "damaged", item->damaged);
		value_set_boolean(row, "used", item->used);
		if (prepared) {
			value_set_text(row, "workspace", snapshot->from);
			value_set_boolean(row, "workspace_gone",
					  where == SNAPSHOT_WORKSPACE_GONE);
			value_set_boolean(row, "workspace_away",
					  where == SNAPSHOT_WORKSPACE_AWAY);
		}
		value_append(listing->rows, row);
		return;
	}
	clock_text_day(snapshot->created_ms, day);
	verb_print_name(word, NAME_COLUMNS, listing->out);
	if (item->damaged)
		(void)fprintf(listing->out, "  damaged\n");
	else
		(void)fprintf(listing->out, "  sha256:%.12s  %-10s  %10s  made %s%s\n",
			      snapshot->digest,
			      snapshot->base != NULL ? "snapshot" : "workspace",
			      text_size((uint64_t)snapshot->bytes, size), day,
			      item->used ? ", in use" : "");
	if (where == SNAPSHOT_WORKSPACE_GONE) {
		(void)fputs("  its workspace is gone: ", listing->out);
		verb_print_name(snapshot->from, 0, listing->out);
		(void)fputs("; glovebox base prune removes it\n", listing->out);
	} else if (where == SNAPSHOT_WORKSPACE_AWAY) {
		(void)fputs("  its workspace is gone, or its disk is not mounted: ",
			    listing->out);
		verb_print_name(snapshot->from, 0, listing->out);
		(void)fprintf(listing->out,
			      "; if it is gone: glovebox base prune --snapshot %s\n",
			      snapshot->name);
	}
}

/* The folder of all snapshots of this user; false: there is no home. */
static bool find_snapshots(struct buf *folder)
{
	return snapshot_place(config_file_variable("XDG_DATA_HOME"),
			      config_file_variable("HOME"), folder);
}

static bool list_snapshots(struct listing *listing, struct err *err)
{
	struct snapshot_list list = {0};
	struct buf folder;
	bool read = true;

	buf_init(&folder, PATH_MAX);
	if (find_snapshots(&folder))
		read = snapshot_list_read(folder.data, &list, err);
	for (size_t i = 0; i < list.count; i++)
		list_snapshot(listing, &list.items[i]);
	snapshot_list_fini(&list);
	buf_fini(&folder);
	return read;
}

static int list_verb(const struct options *options, FILE *out)
{
	const bool json = options_given(options, "json");
	struct image_store store;
	struct listing listing = {.store = &store,
				  .depth = options_given(options, "deep") ? PRUNE_BYTES
									  : PRUNE_SIZES,
				  .out = out};
	struct buf path;
	struct err err = {0};
	int code = CODE_DONE;

	buf_init(&path, PATH_MAX);
	listing.rows = json ? value_new_array() : NULL;
	if (!find_store(&path)) {
		code = CODE_FAILED;
	} else if (image_store_open(path.data, IMAGE_STORE_READS, &store, &err)) {
		image_store_each(&store, list_one, &listing);
		image_store_close(&store);
	} else if (err.code != ENOENT) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	}
	if (code == CODE_DONE && !list_snapshots(&listing, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE && json)
		code = verb_print_json(listing.rows, 0, out);
	else if (code == CODE_DONE && listing.count == 0)
		(void)fprintf(out, "There is no image in the cache; glovebox base pull "
				   "image:NAME brings one.\n");
	value_free(listing.rows);
	buf_fini(&path);
	return code;
}

#define ROW_DEEP                                                                                \
	{                                                                                       \
		"deep", 0, OPTION_FLAG, NULL,                                                   \
			"read all blobs whole, to find also those that are torn by their bytes" \
	}

static const struct option_row list_options[] = {
	ROW_DEEP,
	{"json", 0, OPTION_FLAG, NULL, "print an array of objects"},
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_list = {
	.name = "base list",
	.summary = "list the images in the cache, and snapshots",
	.arguments = "",
	.help = "List the images that `--base` can use: the word, the digest, the number of layers,\n"
		"the bytes (layers that images share count for each of them) and when the image\n"
		"was last used. A blob that is torn (its size, with --deep also its bytes, is not\n"
		"what the image says) is told. Snapshots stand behind them: those of `glovebox serve`, where one\n"
		"marked `workspace` has no root, and is no word of --base; and those that the commands\n"
		"of devcontainers have made, with a line where the workspace of one is gone.",
	.example = "  glovebox base list\n  glovebox base list --json",
	.options = list_options,
	.folds = true,
	.run = list_verb,
};

/* Showing. */

static struct value *base_value(const struct base *base, const struct maker_counts *counts)
{
	struct value *object = value_new_object();

	value_set_text(object, "base", base->word);
	value_set_text(object, "kind", base_kind_name(base->kind));
	if (base->digest[0] != '\0')
		value_set_text(object, "digest", base->digest);
	value_set(object, "folders", value_new_texts(base->folders));
	value_set(object, "environment", value_new_texts(base->environment));
	value_set_text(object, "workdir", base->workdir);
	value_set_text(object, "user", base->user);
	if (base->devcontainer != NULL) {
		struct value *ports = value_new_array();

		for (size_t i = 0; i < base->devcontainer->port_count; i++)
			value_append(ports, value_new_integer(base->devcontainer->ports[i]));
		value_set(object, "forward_ports", ports);
		value_set_boolean(object, "is_prepared", base->state != BASE_IS_RAW);
	}
	if (base->below != NULL)
		value_set_text(object, "over", base->below);
	value_set(object, "entrypoint", value_new_texts(base->entrypoint));
	value_set(object, "command", value_new_texts(base->command));
	if (base->kind == BASE_IMAGE)
		value_set(object, "counts", counts_value(counts));
	return object;
}

static void print_texts(const char *label, const char *const *texts, FILE *out)
{
	for (size_t i = 0; texts[i] != NULL; i++) {
		(void)fprintf(out, "%-12s", i == 0 ? label : "");
		verb_print_name(texts[i], 0, out);
		(void)fputc('\n', out);
	}
}

/* The ports that the file of BASE names, and whether its commands have been run. */
static void print_devcontainer(const struct base *base, FILE *out)
{
	const struct devcontainer *read = base->devcontainer;

	for (size_t i = 0; i < read->port_count; i++)
		(void)fprintf(out, "%-12s%" PRIu16 ", which --publish %" PRIu16 " opens\n",
			      i == 0 ? "ports" : "", read->ports[i], read->ports[i]);
	if (base->state == BASE_IS_RAW)
		(void)fprintf(out, "%-12shave not been run; the first cell runs them\n",
			      "commands");
}

static void print_base(const struct base *base, const struct maker_counts *counts, FILE *out)
{
	const char *const word[] = {base->word, NULL}, *const workdir[] = {base->workdir, NULL},
			  *const user[] = {base->user, NULL},
			  *const digest[] = {base->digest, NULL},
			  *const below[] = {base->below, NULL};

	print_texts("base", word, out);
	if (base->digest[0] != '\0')
		print_texts("digest", digest, out);
	print_texts("over", below, out);
	print_texts("folders", base->folders, out);
	print_texts("variables", base->environment, out);
	print_texts("workdir", workdir, out);
	if (base->user[0] != '\0')
		print_texts("user", user, out);
	if (base->devcontainer != NULL)
		print_devcontainer(base, out);
	print_texts("entrypoint", base->entrypoint, out);
	print_texts("command", base->command, out);
	if (base->kind == BASE_IMAGE)
		print_left_out(counts, out);
}

/* The digest of the layer in the folder PATH, "…/layers/HEX/tree". */
static void sum_counts(const char *store_path, const struct base *base,
		       struct maker_counts *sum)
{
	static const struct str mark = {"/layers/", 8};
	struct image_store store;

	if (!image_store_open(store_path, IMAGE_STORE_READS, &store, NULL))
		return;
	for (size_t i = 0; i < base->folder_count; i++) {
		const struct str path = str_of(base->folders[i]);
		const size_t at = strlen(store.path) + mark.size;
		char digest[BASE_DIGEST_ROOM];
		struct maker_counts counts;

		if (!path_within(base->folders[i], store.path))
			continue;
		(void)snprintf(digest, sizeof(digest), "sha256:%.64s",
			       at < path.size ? path.data + at : "");
		if (unpacked_look(&store, digest, &counts))
			maker_counts_add(sum, &counts);
	}
	image_store_close(&store);
}

static int show_verb(const struct options *options, FILE *out)
{
	struct maker_counts counts = {0};
	struct base base;
	struct buf path, kept;
	struct err err = {0};
	int code;

	if (!check_word(options->words[0], false))
		return CODE_USAGE;
	buf_init(&path, PATH_MAX);
	auto_free char *here = getcwd(NULL, 0);
	buf_init(&kept, PATH_MAX);
	const bool has_store = image_store_path(config_file_variable("XDG_CACHE_HOME"),
						config_file_variable("HOME"), &path);
	const struct base_places places = {
		.images = has_store ? path.data : NULL,
		.snapshots = find_snapshots(&kept) ? kept.data : NULL,
		.workspace = here,
	};

	if (!base_open(options->words[0], &places, &base, &err)) {
		code = verb_complain(CODE_FAILED, "%s", err.text);
	} else {
		if (has_store && base.kind != BASE_HOST)
			sum_counts(path.data, &base, &counts);
		if (options_given(options, "json")) {
			auto_value struct value *object = base_value(&base, &counts);

			code = verb_print_json(object, 0, out);
		} else {
			print_base(&base, &counts, out);
			code = CODE_DONE;
		}
	}
	base_close(&base);
	buf_fini(&path);
	buf_fini(&kept);
	return code;
}

static const struct option_row show_options[] = {
	ROW_JSON,
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_show = {
	.name = "base show",
	.summary = "show what a base holds: folders, variables, user",
	.arguments = "WORD",
	.help = "Show what a cell with `--base WORD` gets: the folders, the lowest one first, the\n"
		"variables, the folder where programs start, the user and the entrypoint as the\n"
		"image names them, its digest, and what was left out of its layers; of a\n"
		"devcontainer also its ports, and whether its commands have been run.\n\n"
		"Exit codes: 0 done, 1 the base is not in the cache or is damaged, 2 usage.",
	.example = "  glovebox base show image:python:3.12\n"
		   "  glovebox base show rootfs:./debian --json",
	.options = show_options,
	.words_least = 1,
	.words_most = 1,
	.folds = true,
	.run = show_verb,
};

/* Pruning. */

struct pruning {
	struct value *gone; /* words; NULL: lines are printed */
	bool dry;
	FILE *out;
};

static void tell_gone(void *context, const struct image_record *record)
{
	const struct pruning *pruning = context;

	if (pruning->gone != NULL) {
		value_append(pruning->gone, value_new_text(record->word));
		return;
	}
	(void)fputs(pruning->dry ? "would remove " : "removed ", pruning->out);
	verb_print_name(record->word, 0, pruning->out);
	(void)fprintf(pruning->out, "  %.*s\n", SHOWN_DIGITS, record->digest);
}

/* Tell each snapshot of LIST that goes; LOST gets their words, else lines are printed. */
static void tell_lost(const struct snapshot_list *list, const struct pruning *pruning,
		      struct value *lost)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct snapshot *snapshot = &list->items[i].snapshot;
		char word[sizeof(SNAPSHOT_WORD) + SNAPSHOT_NAME_MAX];

		if (!list->items[i].goes)
			continue;
		(void)snprintf(word, sizeof(word), SNAPSHOT_WORD "%s", snapshot->name);
		if (pruning->gone != NULL) {
			value_append(lost, value_new_text(word));
			continue;
		}
		(void)fprintf(pruning->out, "%s %s, because its workspace is gone: ",
			      pruning->dry ? "would remove" : "removed", word);
		verb_print_name(snapshot->from, 0, pruning->out);
		(void)fputc('\n', pruning->out);
	}
}

static int print_pruned(const struct prune *prune, struct value *take_gone,
			struct value *lost, FILE *out)
{
	char removed[SIZE_ROOM], kept[SIZE_ROOM];

	if (take_gone != NULL) {
		auto_value struct value *object = value_new_object();

		value_set(object, "images", take_gone);
		value_set(object, "snapshots", value_ref(lost));
		value_set_integer(object, "layers", (int64_t)prune->layers);
		value_set_integer(object, "blobs", (int64_t)prune->blobs);
		value_set_integer(object, "leftovers", (int64_t)prune->leftovers);
		value_set_integer(object, "torn", (int64_t)prune->torn);
		value_set_integer(object, "in_use", (int64_t)prune->in_use);
		value_set_integer(object, "removed_bytes", (int64_t)prune->removed);
		value_set_integer(object, "kept_bytes", (int64_t)prune->kept);
		return verb_print_json(object, 0, out);
	}
	(void)fprintf(out, "%s %zu layers, %zu blobs and %zu leftovers: %s; %s stay.\n",
		      prune->dry ? "Would remove" : "Removed", prune->layers,
		      prune->blobs, prune->leftovers, text_size(prune->removed, removed),
		      text_size(prune->kept, kept));
	if (prune->torn > 0)
		(void)fprintf(out, "%s %zu torn blobs, which a pull fetches again.\n",
			      prune->dry ? "Would remove" : "Removed", prune->torn);
	if (prune->in_use > 0)
		(void)fprintf(out,
			      "%zu more %s would have gone, but cells or snapshots use %s.\n",
			      prune->in_use, prune->in_use == 1 ? "image" : "images",
			      prune->in_use == 1 ? "it" : "them");
	return CODE_DONE;
}

/* Remove the snapshots NAMES, with or without their prefix, and nothing else. */
static int remove_snapshots(const char *const *names, FILE *out)
{
	int code = CODE_DONE;
	struct buf folder;
	struct err err = {0};

	buf_init(&folder, PATH_MAX);
	if (!find_snapshots(&folder))
		code = verb_complain(CODE_FAILED,
				     "there is no place for snapshots; set HOME or "
				     "XDG_DATA_HOME");
	for (size_t i = 0; names[i] != NULL && code == CODE_DONE; i++) {
		const size_t prefix = strlen(SNAPSHOT_WORD);
		const bool has_prefix = strncmp(names[i], SNAPSHOT_WORD, prefix) == 0;

		if (snapshot_remove(folder.data, names[i] + (has_prefix ? prefix : 0), &err))
			(void)fprintf(out, "removed %s%s\n",
				      has_prefix ? "" : SNAPSHOT_WORD, names[i]);
		else
			code = verb_complain(CODE_FAILED, "%s", err.text);
	}
	buf_fini(&folder);
	return code;
}

/*
 * Remove what was prepared for workspaces that are gone, or with DRY only find it; *LOCKS gets the
 * number of locks that went. Put the digests of the images below all other snapshots into NEEDED, whose
 * texts LIST has.
 */
static bool prune_snapshots(struct snapshot_list *list, bool dry, const char ***needed,
			    size_t *locks, struct err *err)
{
	struct buf folder;
	size_t count = 0;
	bool has_place, read;

	buf_init(&folder, PATH_MAX);
	has_place = find_snapshots(&folder);
	read = !has_place || snapshot_list_read(folder.data, list, err);
	*locks = has_place && read ? prepared_prune(folder.data, list, dry) : 0;
	*needed = memory_array(list->count + 1, sizeof(**needed));
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].snapshot.base_digest != NULL && !list->items[i].goes)
			(*needed)[count++] = list->items[i].snapshot.base_digest;
	}
	buf_fini(&folder);
	return read;
}

static int prune_verb(const struct options *options, FILE *out)
{
	const char *keep = options_text(options, "keep");
	const bool json = options_given(options, "json");
	struct image_store store = {.folder = -1, .lock = -1};
	struct pruning pruning = {.out = out, .dry = options_given(options, "dry-run")};
	struct prune prune = {
		.store = &store,
		.keep = PRUNE_KEEP,
		.dry = pruning.dry,
		.depth = options_given(options, "deep") ? PRUNE_BYTES : PRUNE_SIZES,
		.gone = tell_gone,
		.context = &pruning,
	};
	struct snapshot_list snapshots = {0};
	auto_free const char **needed = NULL;
	auto_value struct value *lost = value_new_array();
	struct buf path;
	struct err err = {0};
	size_t locks = 0;
	int code;

	if (options_given(options, "snapshot"))
		return keep != NULL || json || prune.dry
			       ? verb_complain(CODE_USAGE,
					       "--snapshot goes with no other option")
			       : remove_snapshots(options_texts(options, "snapshot"), out);
	if (keep != NULL && strcmp(keep, "0") == 0)
		prune.keep = 0;
	else if (keep != NULL && !text_parse_size(keep, &prune.keep, &err))
		return verb_complain(CODE_USAGE, "--keep: %s", err.text);
	buf_init(&path, PATH_MAX);
	pruning.gone = json ? value_new_array() : NULL;
	code = find_store(&path) ? CODE_DONE : CODE_FAILED;
	/* A cache that cannot be opened is told before anything goes; one that was never made is empty. */
	if (code == CODE_DONE &&
	    !image_store_open(path.data, IMAGE_STORE_PRUNES, &store, &err) &&
	    err.code != ENOENT)
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE &&
	    !prune_snapshots(&snapshots, prune.dry, &needed, &locks, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	if (code == CODE_DONE) {
		tell_lost(&snapshots, &pruning, lost);
		prune.leftovers += locks;
		prune.needed = needed;
		if (store.folder >= 0 && !prune_run(&prune, &err))
			code = verb_complain(CODE_FAILED, "%s", err.text);
		/* Each thing that went has its line already, but the object comes only here. */
		if (code == CODE_DONE || json) {
			const int printed =
				print_pruned(&prune, value_ref(pruning.gone), lost, out);

			code = code == CODE_DONE ? printed : code;
		}
	}
	image_store_close(&store);
	value_free(pruning.gone);
	snapshot_list_fini(&snapshots);
	buf_fini(&path);
	return code;
}

static const struct option_row prune_options[] = {
	{"keep", 0, OPTION_TEXT, "SIZE", "keep at most SIZE, such as 5G or 0 (default: 20G)"},
	{"dry-run", 0, OPTION_FLAG, NULL, "only say what would go"},
	ROW_DEEP,
	{"snapshot", 0, OPTION_TEXTS, "NAME",
	 "remove only the snapshot NAME, which nothing brings back (may be repeated)"},
	ROW_JSON,
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_prune = {
	.name = "base prune",
	.summary = "remove images that were used longest ago",
	.arguments = "",
	.help = "Remove the images that were used longest ago from the cache, until at most --keep\n"
		"is left, and then all layers and blobs that no image needs and all that killed\n"
		"pulls have left, and torn blobs. Images of cells that run, and those below snapshots, stay.\n"
		"Everything that goes can be pulled again.\n"
		"Snapshots of `glovebox serve` stay, but for those that --snapshot names. Those that the\n"
		"commands of a devcontainer have made go, each with a line, when their workspace is\n"
		"gone and no cell or other snapshot is on them.\n"
		"With --json, a run that fails on its way still prints what has gone before that.\n\n"
		"Exit codes: 0 done, 1 failed, also while something is being pulled, 2 usage.",
	.example = "  glovebox base prune\n  glovebox base prune --keep 5G --dry-run",
	.options = prune_options,
	.run = prune_verb,
};

/* The doctor. */

struct finding {
	const char *name;
	bool good;
	char text[ERR_TEXT_MAX];
};

static bool is_in_path(const char *program, struct buf *place)
{
	struct str list = str_of(config_file_variable("PATH")), folder;

	while (path_next_folder(&list, &folder)) {
		buf_clear(place);
		(void)buf_addf(place, "%.*s/%s", (int)folder.size, folder.data, program);
		if (access(place->data, X_OK) == 0)
			return true;
	}
	return false;
}

static void look_program(struct finding *finding, const char *program, const char *purpose)
{
	struct buf place;

	buf_init(&place, PATH_MAX);
	finding->name = program;
	finding->good = is_in_path(program, &place);
	(void)snprintf(finding->text, sizeof(finding->text),
		       finding->good ? "%s" : "%s is missing: it %s; apt install %s",
		       finding->good ? place.data : program, purpose, program);
	buf_fini(&place);
}

static void look_library(struct finding *finding)
{
	struct err err = {0};

	finding->name = "libarchive";
	finding->good = unpack_load(&err);
	(void)snprintf(finding->text, sizeof(finding->text), "%s",
		       finding->good ? "can be loaded" : err.text);
}

static void look_overlay(struct finding *finding, const char *path)
{
	struct err err = {0};

	finding->name = "overlay";
	finding->good = trial_overlay(path, &err);
	(void)snprintf(finding->text, sizeof(finding->text), "%s",
		       finding->good ? "layers can be mounted by a user (userxattr)"
				     : err.text);
}

static void look_space(struct finding *finding, const char *path)
{
	struct statvfs space = {0};
	char size[SIZE_ROOM];

	finding->name = "space";
	if (statvfs(path, &space) < 0) {
		(void)snprintf(finding->text, sizeof(finding->text), "%s: %s", path,
			       strerror(errno));
		return;
	}
	const uint64_t bytes = (uint64_t)space.f_bavail * space.f_frsize;

	finding->good = bytes >> 30 >= SPACE_LITTLE;
	(void)snprintf(finding->text, sizeof(finding->text), "%s free in %s%s",
		       text_size(bytes, size), path,
		       finding->good ? "" : "; glovebox base prune makes room");
}

enum { FINDINGS = 5 };

static int print_findings(const struct finding findings[FINDINGS], bool json, FILE *out)
{
	auto_value struct value *rows = value_new_array();
	/* buildah is for `base build` alone. */
	bool good = true;

	for (size_t i = 0; i < FINDINGS; i++) {
		struct value *row = value_new_object();

		good = good &&
		       (findings[i].good || strcmp(findings[i].name, "buildah") == 0);
		value_set_text(row, "name", findings[i].name);
		value_set_boolean(row, "good", findings[i].good);
		value_set_text(row, "text", findings[i].text);
		value_append(rows, row);
		if (!json)
			(void)fprintf(out, "%-12s%-4s%s\n", findings[i].name,
				      findings[i].good ? "ok" : "no", findings[i].text);
	}
	if (json && verb_print_json(rows, 0, out) != CODE_DONE)
		return CODE_FAILED;
	return good ? CODE_DONE : CODE_FAILED;
}

static int doctor_verb(const struct options *options, FILE *out)
{
	struct finding findings[FINDINGS] = {0};
	struct image_store store;
	struct buf path;
	struct err err = {0};
	int code = CODE_FAILED;

	buf_init(&path, PATH_MAX);
	if (find_store(&path)) {
		if (image_store_open(path.data, IMAGE_STORE_ADDS, &store, &err)) {
			look_overlay(&findings[0], store.path);
			look_space(&findings[1], store.path);
			look_library(&findings[2]);
			look_program(&findings[3], "skopeo", "fetches images");
			look_program(&findings[4], "buildah", "builds images");
			code = print_findings(findings, options_given(options, "json"), out);
			image_store_close(&store);
		} else {
			code = verb_complain(CODE_FAILED, "%s", err.text);
		}
	}
	buf_fini(&path);
	return code;
}

static const struct option_row doctor_options[] = {
	{"json", 0, OPTION_FLAG, NULL, "print an array of objects"},
	OPTION_ROW_HELP,
	{0},
};

const struct verb verb_base_doctor = {
	.name = "base doctor",
	.summary = "say whether bases can be used here",
	.arguments = "",
	.help = "Try what bases need: an overlay of two layers in your cache, mounted without root,\n"
		"space, libarchive, and the programs that fetch and build. Each line that says no\n"
		"says what helps.\n\n"
		"Exit codes: 0 bases can be used, 1 something is missing (without buildah only\n"
		"`base build` is).",
	.example = "  glovebox base doctor",
	.options = doctor_options,
	.run = doctor_verb,
};
