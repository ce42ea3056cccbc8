/* git_scan_mark: writes down findings: paths as keys, and fingerprints. */
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "guard/scan.h"

#include <limits.h>
#include <stdint.h>
#include <unistd.h>

enum { NAME_TEXT_MAX = 2 * PATH_MAX };

void look_fingerprint(const struct stat *st, struct buf *out)
{
	/* No program can set the ctime of an inode. */
	if (S_ISDIR(st->st_mode))
		(void)buf_addf(out, "folder %jx", (uintmax_t)st->st_ino);
	else
		(void)buf_addf(out, "%jx %jx %jd.%09ld %jd.%09ld", (uintmax_t)st->st_ino,
			       (uintmax_t)st->st_size, (intmax_t)st->st_mtim.tv_sec,
			       st->st_mtim.tv_nsec, (intmax_t)st->st_ctim.tv_sec,
			       st->st_ctim.tv_nsec);
}

static void mark(const struct scan_look *look, const char *name, const char *fingerprint)
{
	struct buf path;

	buf_init(&path, NAME_TEXT_MAX);
	(void)buf_addf(&path, "%s/%s", look->path, name);
	auto_free char *key = path_key(path.data);
	value_set_text(git_scan_list(&look->scan->dangers), key, fingerprint);
	buf_fini(&path);
}

void look_mark(const struct scan_look *look, const char *name, struct str content)
{
	char hex[HASH_HEX + 1];

	hash_text(content, hex);
	mark(look, name, hex);
}

void look_mark_stat(const struct scan_look *look, const char *name, const struct stat *st)
{
	char target[PATH_MAX];
	struct buf text;

	buf_init(&text, NAME_TEXT_MAX);
	if (S_ISLNK(st->st_mode)) {
		ssize_t size = readlinkat(look->fd, name, target, sizeof(target));
		(void)buf_adds(&text, "link ");
		if (size > 0)
			(void)buf_add(&text, target, (size_t)size);
	} else {
		look_fingerprint(st, &text);
	}
	mark(look, name, text.data);
	buf_fini(&text);
}

int look_enter_or_mark(const struct scan_look *look, const char *name, char path[PATH_MAX])
{
	struct stat st;

	if (!look_stat(look, name, &st))
		return -1;
	if (S_ISDIR(st.st_mode))
		return look_enter(look, name, path);
	look_mark_stat(look, name, &st);
	return -1;
}
