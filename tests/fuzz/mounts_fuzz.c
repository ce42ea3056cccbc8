/*
 * Fuzz target of base/mounts: every part is a word of the text, and a path does not grow when
 * its escapes are undone.
 */
#include "base/fd.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(struct str text, struct str part)
{
	if (part.size > 0 &&
	    (part.data < text.data || part.data + part.size > text.data + text.size ||
	     memchr(part.data, ' ', part.size) != NULL ||
	     memchr(part.data, '\n', part.size) != NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct str rest = text;
	struct mount mount;
	struct buf path;

	buf_init(&path, MOUNTS_BYTES_MAX);
	while (fd_mounts_next(&rest, &mount)) {
		check_part(text, mount.root);
		check_part(text, mount.point);
		check_part(text, mount.type);
		check_part(text, mount.super);
		buf_clear(&path);
		if (mount.point.size == 0 || (fd_mounts_add_path(mount.point, &path) &&
					      path.size > mount.point.size))
			abort();
	}
	buf_fini(&path);
	return 0;
}
