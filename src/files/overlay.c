/* overlay: reads the attributes of overlays, and those that a program has given a file. */

#include "files/overlay.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define ATTRIBUTE       "user.overlay."
#define OVERLAY_ESCAPED ATTRIBUTE "overlay."
#define ACCESS_LIST     "system.posix_acl_access"
#define ORIGIN          "origin"

static const char *const strange_marks[] = {"metacopy", "redirect", "whiteout", NULL};

enum {
	NAME_ROOM = 64,
	MARKS_LIST = 1 << 10,  /* names of attributes that are read in one piece */
	NAMES_LIST = 64 << 10, /* the kernel's own limits */
	VALUE_LONGEST = 64 << 10,
};

const char *const overlay_refusal_names[REFUSED_REASONS] = {
	[REFUSED_GIT] = "git",         [REFUSED_PROTECTED] = "protected",
	[REFUSED_SESSION] = "session", [REFUSED_AGENT] = "agent",
	[REFUSED_KIND] = "kind",       [REFUSED_READ] = "read",
};

bool overlay_is_removed(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool overlay_hides(int fd)
{
	char value[2];

	return fgetxattr(fd, ATTRIBUTE "opaque", value, sizeof(value)) == 1 &&
	       value[0] == 'y';
}

static bool has(int fd, const char *name)
{
	char whole[NAME_ROOM];

	(void)snprintf(whole, sizeof(whole), ATTRIBUTE "%s", name);
	return fgetxattr(fd, whole, NULL, 0) >= 0;
}

bool overlay_is_copy(int fd)
{
	return has(fd, ORIGIN);
}

/*
 * The name under which the attribute NAME is copied, in ROOM; NULL: it is not. Only a
 * program's own attributes and access lists are: others give rights.
 */
static const char *extra_name(const char *name, char room[XATTR_NAME_MAX + 1])
{
	if (strncmp(name, OVERLAY_ESCAPED, strlen(OVERLAY_ESCAPED)) == 0) {
		(void)snprintf(room, XATTR_NAME_MAX + 1, "%s%s", ATTRIBUTE,
			       name + strlen(OVERLAY_ESCAPED));
		return room;
	}
	if (strncmp(name, ATTRIBUTE, strlen(ATTRIBUTE)) == 0)
		return NULL;
	return strncmp(name, "user.", strlen("user.")) == 0 || strcmp(name, ACCESS_LIST) == 0
		       ? name
		       : NULL;
}

struct overlay_marks overlay_marks_of(int fd)
{
	char list[MARKS_LIST];
	const ssize_t size = flistxattr(fd, list, sizeof(list));
	struct overlay_marks marks = {0};

	/* A program may have given the file more attributes than have room here. */
	if (size < 0 && errno == ERANGE) {
		marks.copy = has(fd, ORIGIN);
		marks.extra = true;
		for (size_t i = 0; strange_marks[i] != NULL; i++)
			marks.strange = marks.strange || has(fd, strange_marks[i]);
		return marks;
	}
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(list + at) + 1) {
		char room[XATTR_NAME_MAX + 1];

		marks.extra = marks.extra || extra_name(list + at, room) != NULL;
		if (strncmp(list + at, ATTRIBUTE, strlen(ATTRIBUTE)) != 0)
			continue;
		const char *name = list + at + strlen(ATTRIBUTE);

		marks.copy = marks.copy || strcmp(name, ORIGIN) == 0;
		for (size_t i = 0; strange_marks[i] != NULL; i++)
			marks.strange =
				marks.strange || strcmp(name, strange_marks[i]) == 0;
	}
	return marks;
}

void overlay_each_extra(int fd,
			void (*each)(void *context, const char *name, struct str value),
			void *context)
{
	if (flistxattr(fd, NULL, 0) <= 0)
		return;
	auto_free char *list = memory_alloc(NAMES_LIST);
	auto_free char *value = memory_alloc(VALUE_LONGEST);
	const ssize_t size = flistxattr(fd, list, NAMES_LIST);
	auto_free const char **names =
		memory_array((size > 0 ? (size_t)size : 0) + 1, sizeof(*names));
	size_t count = 0;

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(list + at) + 1)
		names[count++] = list + at;
	str_sort(names, count);
	for (size_t i = 0; i < count; i++) {
		char room[XATTR_NAME_MAX + 1];
		const char *name = extra_name(names[i], room);
		const ssize_t length =
			name != NULL ? fgetxattr(fd, names[i], value, VALUE_LONGEST) : -1;

		if (length >= 0)
			each(context, name, (struct str){value, (size_t)length});
	}
}

static void hash_one(void *context, const char *name, struct str value)
{
	hash_add(context, (struct str){name, strlen(name) + 1});
	hash_add(context, (struct str){(const char *)&value.size, sizeof(value.size)});
	hash_add(context, value);
}

static void hash_extra(int fd, uint8_t digest[HASH_BYTES])
{
	struct hash *hash = hash_new();

	overlay_each_extra(fd, hash_one, hash);
	hash_digest(hash, digest);
	hash_free(hash);
}

bool overlay_same_extra(int one, int other)
{
	uint8_t digests[2][HASH_BYTES];

	/* Nearly every file has none. */
	if (flistxattr(one, NULL, 0) <= 0 && flistxattr(other, NULL, 0) <= 0)
		return true;
	hash_extra(one, digests[0]);
	hash_extra(other, digests[1]);
	return memcmp(digests[0], digests[1], HASH_BYTES) == 0;
}
