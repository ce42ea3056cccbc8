/* pull: a program that fetches, an image that is read, layers that are unpacked. */

#include "image/pull.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "image/base.h"
#include "image/layout.h"
#include "image/prune.h"
#include "image/unpacked.h"
#include "process/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of the image in the layout of one pull. */
#define STAGE_NAME "image"

enum {
	DIGEST_KIND = sizeof("sha256:") - 1,
	RANDOM_DIGITS = 12,
	SAID_MAX = 800,
	LINE_MAX_BYTES = 4096
};

static void tell(const struct pull *pull, const char *line)
{
	if (pull->told != NULL)
		pull->told(pull->context, line);
}

/* Programs. */

struct lines {
	const struct pull *pull;
	struct buf line;
	/* the last whole line, which is told with the next one: the end may say it better */
	struct buf held;
};

static void tell_held(struct lines *lines)
{
	if (lines->held.size > 0)
		tell(lines->pull, lines->held.data);
	buf_clear(&lines->held);
}

static void take_output(void *context, int stream, struct str bytes)
{
	struct lines *lines = context;

	(void)stream;
	while (buf_take_line(&lines->line, &bytes)) {
		if (str_trim(buf_str(&lines->line)).size > 0) {
			tell_held(lines);
			text_add_name(&lines->held, str_trim(buf_str(&lines->line)));
		}
		buf_clear(&lines->line);
	}
}

/*
 * The last words of the program. skopeo writes logs: the text behind msg= is the sentence.
 */
static void last_words(const struct program_run *run, struct buf *said)
{
	static const struct str mark = {" msg=\"", 6};
	struct buf text;

	buf_init(&text, PROGRAM_TAIL + PROGRAM_HEAD);
	program_output_text(&run->error, &text);
	struct str rest = str_trim(buf_str(&text)), line = {0}, last = {0};

	while (str_next_line(&rest, &line)) {
		if (str_trim(line).size > 0)
			last = str_trim(line);
	}
	const size_t at = str_find(last, mark, 0);

	if (at != (size_t)-1 && str_ends(last, STR("\""))) {
		last = str_part(last, at + mark.size, last.size);
		last.size--;
	}
	text_add_name(said, str_part(last, 0, SAID_MAX));
	buf_fini(&text);
}

/* Run the program ARGV[0], which the package of the same name has, until it ends. */
static bool run_program(const struct pull *pull, const char *const *argv, struct err *err)
{
	const double timeout_s = pull->timeout_s > 0 ? pull->timeout_s : PULL_TIMEOUT_S;
	struct lines lines = {.pull = pull};
	struct program_run run;
	struct buf said;
	bool done;

	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = pull->environment;
	run.start.fds[0] = run.start.fds[1] = run.start.fds[2] = -1;
	run.deadline_ms = clock_deadline(timeout_s);
	run.output = take_output;
	run.context = &lines;
	buf_init(&lines.line, LINE_MAX_BYTES);
	buf_init(&lines.held, LINE_MAX_BYTES);
	buf_init(&said, ERR_TEXT_MAX);
	done = follow_program(&run, err);
	if (!done && err->code == ENOENT)
		(void)err_set(err, ENOENT, "needs %s: apt install %s", argv[0], argv[0]);
	else if (done && run.ending != PROGRAM_ENDED)
		done = err_set(err, ETIMEDOUT, "%s did not end within %g seconds",
			       argv[0], timeout_s);
	else if (done && run.exit_code != 0) {
		last_words(&run, &said);
		done = err_set(err, EIO, "%s: %s", argv[0],
			       said.size > 0 ? said.data : "failed without a word");
	}
	/* The error has the last line already. */
	if (said.size == 0 ||
	    str_find(buf_str(&lines.held), buf_str(&said), 0) == (size_t)-1)
		tell_held(&lines);
	buf_fini(&lines.held);
	buf_fini(&said);
	buf_fini(&lines.line);
	program_run_fini(&run);
	return done;
}

/* One pull. */

struct work {
	struct pull *pull;
	struct base_word word;
	struct image_store store;
	int layout; /* whose blobs hold the layers; the store's own or another one */
	struct layout_image image;
	size_t number; /* of the layer under way, from 1 */
};

static void waits(void *context)
{
	const struct work *work = context;

	tell(work->pull, "another process is pulling the same; waiting for it");
}

static void progress(void *context, uint64_t read, const struct maker_counts *counts)
{
	const struct work *work = context;
	const struct pull *pull = work->pull;

	if (pull->progress != NULL)
		pull->progress(pull->context, work->number, work->image.config.diff_count,
			       read, work->image.manifest.layers[work->number - 1].size,
			       counts);
}

/* Run skopeo: the image goes into the layout STAGE, its blobs into those of the store. */
static bool fetch(const struct work *work, const char *stage, struct err *err)
{
	const struct pull *pull = work->pull;
	struct buf source, target, blobs;
	bool fetched;

	buf_init(&source, 2 * BASE_WORD_MAX);
	buf_init(&target, PATH_MAX);
	buf_init(&blobs, PATH_MAX);
	(void)(pull->from != NULL ? buf_adds(&source, pull->from)
				  : buf_addf(&source, "docker://%s", work->word.name));
	(void)buf_addf(&target, "oci:%s:" STAGE_NAME, stage);
	(void)buf_addf(&blobs, "%s/blobs", work->store.path);
	const char *const argv[] = {"skopeo",   "copy",      "--dest-shared-blob-dir",
				    blobs.data, source.data, target.data,
				    NULL};

	if (strchr(stage, ':') != NULL)
		fetched = err_set(err, EINVAL,
				  "skopeo takes no folder with a colon in its name (%s); set "
				  "XDG_CACHE_HOME",
				  stage);
	else
		fetched = run_program(pull, argv, err);
	buf_fini(&source);
	buf_fini(&target);
	buf_fini(&blobs);
	return fetched;
}

/* Read which image skopeo has brought into STAGE. */
static bool read_stage(struct work *work, const char *stage, struct err *err)
{
	struct manifest_index index = {0};
	auto_close int folder = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool read = false;

	if (folder < 0)
		return err_set(err, errno, "%s: %s", stage, strerror(errno));
	if (layout_read_index(folder, stage, &index, err)) {
		const struct manifest_descriptor *found =
			manifest_choose(&index, STAGE_NAME);

		read = found != NULL
			       ? layout_read(work->store.folder, found, &work->image, err)
			       : err_set(err, ENOENT, "there is no image for linux/%s",
					 manifest_architecture());
	}
	manifest_fini_index(&index);
	return read;
}

/* Put the digests of IMAGE, as far as it was read, into BLOBS, which has room for them. */
static size_t list_blobs(const struct layout_image *image, const char **blobs)
{
	size_t count = 0;

	blobs[count++] = image->found.digest;
	if (image->manifest.config.digest != NULL)
		blobs[count++] = image->manifest.config.digest;
	for (size_t i = 0; i < image->manifest.layer_count; i++)
		blobs[count++] = image->manifest.layers[i].digest;
	return count;
}

/* Remove the blobs of the image of WORK that are torn; false: there are none. */
static bool drop_torn(const struct work *work)
{
	const struct layout_image *image = &work->image;
	auto_free const char **blobs =
		memory_array(image->manifest.layer_count + 2, sizeof(*blobs));
	const struct image_record record = {
		.digest = image->found.digest,
		.media_type = image->found.media_type,
		.size = image->found.size,
		.blobs = blobs,
		.blob_count = list_blobs(image, blobs),
	};

	return prune_torn(&work->store, &record) > 0;
}

/*
 * Fetch the image, and once more when the store had torn blobs of it: skopeo fetches no blob whose
 * name is there.
 */
static bool fetch_whole(struct work *work, const char *stage, struct err *err)
{
	bool read;

	if (!fetch(work, stage, err))
		return false;
	read = read_stage(work, stage, err);
	if ((!read && err->code != EBADMSG) || work->image.found.digest == NULL ||
	    !drop_torn(work))
		return read;
	tell(work->pull, "torn blobs of the cache are removed, and fetched again");
	layout_fini(&work->image);
	return fetch(work, stage, err) && read_stage(work, stage, err);
}

static bool fetch_into_stage(struct work *work, const char *lock_name, struct err *err)
{
	char digits[RANDOM_DIGITS + 1];
	struct buf stage;
	bool fetched;

	(void)text_random_hex(digits, RANDOM_DIGITS);
	buf_init(&stage, PATH_MAX);
	(void)buf_addf(&stage, "%s/" IMAGE_STORE_PULLS "/.%s.%s/", work->store.path,
		       lock_name, digits);
	fetched = fd_make_folders(stage.data, err);
	buf_truncate(&stage, stage.size - 1);
	fetched = fetched && fetch_whole(work, stage.data, err);
	fd_folder_remove(stage.data);
	buf_fini(&stage);
	return fetched;
}

/* Find the image of `image:REF`, which this pull or the one before it has fetched. */
static bool find_remote(struct work *work, int *lock, struct err *err)
{
	char hex[HASH_HEX + 1], name[sizeof(IMAGE_STORE_PULL_LOCK) + HASH_HEX];
	struct err missing;
	bool waited;

	hash_text(str_of(work->word.name), hex);
	(void)snprintf(name, sizeof(name), IMAGE_STORE_PULL_LOCK "%s", hex);
	*lock = image_store_lock(&work->store, name, waits, work, &waited, err);
	if (*lock < 0)
		return false;
	work->layout = work->store.folder;
	if (waited && layout_find(work->store.folder, work->store.path, work->word.name,
				  &work->image, &missing))
		return true;
	layout_fini(&work->image);
	return fetch_into_stage(work, name, err);
}

static bool find_local(struct work *work, struct err *err)
{
	work->layout = open(work->word.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (work->layout < 0)
		return err_set(err, errno, "%s", strerror(errno));
	return layout_find(work->layout, work->word.folder, work->word.name, &work->image,
			   err);
}

static bool unpack_layers(struct work *work, struct err *err)
{
	struct pull *pull = work->pull;
	const size_t count = work->image.config.diff_count;

	if (count == 0)
		return err_set(err, ENODATA, "the image has no layers");
	for (work->number = 1; work->number <= count; work->number++) {
		struct unpacked unpacked = {
			.store = &work->store,
			.layout = work->layout,
			.layer = &work->image.manifest.layers[work->number - 1],
			.diff = work->image.config.diff_ids[work->number - 1],
			.progress = progress,
			.waiting = waits,
			.context = work,
		};

		if (!unpacked_make(&unpacked, err))
			return false;
		pull->layers_new += !unpacked.was_there;
		maker_counts_add(&pull->counts, &unpacked.counts);
	}
	pull->layers = count;
	return true;
}

/*
 * Let the disk have the documents of the image before the index names it: skopeo does not wait
 * for that.
 */
static void sync_documents(const struct work *work)
{
	const char *const digests[] = {work->image.found.digest,
				       work->image.manifest.config.digest};

	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
		auto_close int fd = layout_open_blob(work->store.folder, digests[i], NULL);

		if (fd >= 0)
			(void)fsync(fd);
	}
}

/* From now on base_open finds the image. */
static bool record(struct work *work, struct err *err)
{
	const struct layout_image *image = &work->image;
	auto_free const char **blobs =
		memory_array(image->manifest.layer_count + 2, sizeof(*blobs));
	struct buf word;
	bool recorded;
	struct image_record record = {
		.digest = image->found.digest,
		.media_type = image->found.media_type,
		.size = image->found.size,
		.layers = image->config.diff_ids,
		.layer_count = image->config.diff_count,
		.blobs = blobs,
	};

	/* The blobs of a layout elsewhere are not ours. */
	if (!work->word.is_layout) {
		sync_documents(work);
		record.blob_count = list_blobs(image, blobs);
	}
	buf_init(&word, 2 * BASE_WORD_MAX);
	if (work->word.is_layout)
		(void)buf_adds(&word, work->pull->word);
	else
		(void)buf_addf(&word, "image:%s", work->word.name);
	record.word = word.data;
	recorded = image_store_write(&work->store, &record, err) &&
		   (work->word.is_layout ||
		    image_store_name(&work->store, work->word.name, &image->found, err));
	buf_fini(&word);
	return recorded;
}

static bool run(struct work *work, struct err *err)
{
	auto_close int lock = -1;

	if (!(work->word.is_layout ? find_local(work, err) : find_remote(work, &lock, err)) ||
	    !unpack_layers(work, err) || !record(work, err))
		return false;
	(void)snprintf(work->pull->digest, sizeof(work->pull->digest), "%s",
		       work->image.found.digest);
	return true;
}

bool pull_run(struct pull *pull, struct err *err)
{
	struct work work = {.pull = pull, .layout = -1};
	struct arena arena;
	bool done;

	arena_init(&arena);
	done = base_parse_word(pull->word, &arena, &work.word, err);
	if (done && work.word.kind != BASE_IMAGE)
		done = err_set(err, EINVAL, "base %s: only image:… and oci:… are pulled",
			       pull->word);
	else if (done && work.word.is_layout && pull->from != NULL)
		done = err_set(err, EINVAL, "base %s: --from is for image:…", pull->word);
	if (done) {
		done = image_store_open(pull->store, IMAGE_STORE_ADDS, &work.store, err);
		if (done) {
			done = run(&work, err);
			if (work.layout != work.store.folder)
				fd_close(&work.layout);
			layout_fini(&work.image);
			image_store_close(&work.store);
		}
		done = done || err_while(err, "base %s", pull->word);
	}
	arena_fini(&arena);
	return done;
}

/* Building. */

/* Run buildah, which puts the image NAME into the layout STAGE. */
static bool build_into(const struct pull *pull, const char *const *bud, const char *name,
		       const char *stage, struct err *err)
{
	struct buf target;
	bool built;

	buf_init(&target, PATH_MAX);
	(void)buf_addf(&target, "oci:%s:" STAGE_NAME, stage);
	const char *const push[] = {"buildah", "push", name, target.data, NULL};

	built = run_program(pull, bud, err) && run_program(pull, push, err);
	buf_fini(&target);
	return built;
}

bool pull_build(struct pull *pull, const char *dir, const char *file,
		const char *const *args, struct err *err)
{
	char digits[RANDOM_DIGITS + 1];
	struct image_store store = {.folder = -1, .lock = -1};
	struct base_word word;
	struct arena arena;
	struct buf stage, from;
	size_t count = 0;
	bool built;

	while (args[count] != NULL)
		count++;
	enum { OWN_ARGUMENTS = 10 };
	auto_free const char **bud = memory_array(count + OWN_ARGUMENTS, sizeof(*bud));

	arena_init(&arena);
	buf_init(&stage, PATH_MAX);
	buf_init(&from, PATH_MAX);
	built = base_parse_word(pull->word, &arena, &word, err);
	if (built && (word.kind != BASE_IMAGE || word.is_layout))
		built = err_set(err, EINVAL, "base %s: a build is named image:NAME[:TAG]",
				pull->word);
	/* Its lock keeps `prune` from our stage, until the image is pulled from there. */
	built = built && image_store_open(pull->store, IMAGE_STORE_ADDS, &store, err);
	if (built) {
		size_t at = 0;

		bud[at++] = "buildah";
		bud[at++] = "bud";
		bud[at++] = "--isolation";
		bud[at++] = "chroot";
		bud[at++] = "--tag";
		bud[at++] = word.name;
		if (file != NULL) {
			bud[at++] = "--file";
			bud[at++] = file;
		}
		for (size_t i = 0; i < count; i++)
			bud[at++] = args[i];
		bud[at++] = dir;
		(void)text_random_hex(digits, RANDOM_DIGITS);
		(void)buf_addf(&stage,
			       "%s/" IMAGE_STORE_PULLS "/" IMAGE_STORE_PULL_BUILD "%s/",
			       pull->store, digits);
		built = fd_make_folders(stage.data, err);
		buf_truncate(&stage, stage.size - 1);
		(void)buf_addf(&from, "oci:%s:" STAGE_NAME, stage.data);
		pull->from = from.data;
		built = built &&
			(build_into(pull, bud, word.name, stage.data, err) ||
			 err_while(err, "base build")) &&
			pull_run(pull, err);
		pull->from = NULL;
		fd_folder_remove(stage.data);
	}
	image_store_close(&store);
	buf_fini(&stage);
	buf_fini(&from);
	arena_fini(&arena);
	return built;
}
