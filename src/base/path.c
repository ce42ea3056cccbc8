/* path: takes paths apart and joins them, as text only. */
#include "base/path.h"

#include "base/text/text.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATH_TEXT_MAX = 2 * PATH_MAX /* bytes of a path that stands as a key */ };

/* Apply the components of PATH to the part of OUT that begins at START. */
static bool path_apply(const char *path, size_t start, struct buf *out)
{
	while (*path) {
		size_t size = strcspn(path, "/");
		struct str name = {path, size};

		path += size + strspn(path + size, "/");
		if (size == 0 || str_is(name, "."))
			continue;
		if (str_is(name, "..")) {
			if (out->size == start)
				return false;
			while (out->data[out->size - 1] != '/')
				buf_truncate(out, out->size - 1);
			buf_truncate(out, out->size - 1);
			continue;
		}
		if (!buf_addc(out, '/') || !buf_addstr(out, name))
			return false;
	}
	return true;
}

bool path_normal(const char *base, const char *path, struct buf *out)
{
	size_t start = out->size;

	assert(path[0] == '/' || base[0] == '/');
	if ((path[0] == '/' || path_apply(base, start, out)) &&
	    path_apply(path, start, out) && (out->size > start || buf_addc(out, '/')))
		return true;
	buf_truncate(out, start);
	return false;
}

/* The size of ROOT without its final slashes: 0 for "/". */
static size_t path_root_size(const char *root)
{
	size_t size = strlen(root);

	while (size && root[size - 1] == '/')
		size--;
	return size;
}

bool path_within(const char *path, const char *root)
{
	size_t size = path_root_size(root);

	/* An empty root holds nothing. It must not be taken for "/". */
	if (root[0] == '\0')
		return path[0] == '\0';
	return strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

const char *path_relative(const char *path, const char *root)
{
	const char *rest;

	if (!path_within(path, root))
		return path;
	rest = path + path_root_size(root);
	rest += strspn(rest, "/");
	return *rest ? rest : ".";
}

bool path_move(struct buf *path, const char *from, const char *to)
{
	char moved[PATH_MAX];

	if (!path_within(path->data, from))
		return false;
	const char *rest = path_relative(path->data, from);
	const bool whole = strcmp(rest, ".") == 0;
	const int size =
		snprintf(moved, sizeof(moved), "%s%s%s", to,
			 whole || strcmp(to, "/") == 0 ? "" : "/", whole ? "" : rest);

	if (size < 0 || size >= (int)sizeof(moved))
		return false;
	if ((size_t)size > path->max)
		return false;
	buf_clear(path);
	return buf_adds(path, moved);
}

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Before a path that begins with a slash: the machine is left out. */
static const char file_scheme[] = "file://";

bool path_add_uri(const char *path, struct buf *out)
{
	return buf_adds(out, file_scheme) &&
	       text_percent_add(str_of(path), "/!$&'()*+,;=:@", out);
}

bool path_of_uri(struct str uri, struct buf *path)
{
	struct buf text;
	bool fine;

	buf_init(&text, PATH_MAX);
	fine = str_starts(uri, STR(file_scheme)) &&
	       text_percent_read(str_part(uri, sizeof(file_scheme) - 1, uri.size), &text) &&
	       text.size > 0 && text.data[0] == '/' && path_normal("/", text.data, path);
	buf_fini(&text);
	return fine;
}

size_t path_depth(const char *path)
{
	size_t depth = 0;

	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		depth++;
		path += strcspn(path, "/");
	}
	return depth;
}

bool path_xdg(const char *variable, const char *home, const char *fallback,
	      const char *name, struct buf *out)
{
	bool told = variable && variable[0] == '/';
	size_t start = out->size;

	if (!told && (!home || home[0] != '/'))
		return false;
	if (path_apply(told ? variable : home, start, out) &&
	    (told || path_apply(fallback, start, out)) && path_apply(name, start, out))
		return true;
	buf_truncate(out, start);
	return false;
}

bool path_next_folder(struct str *list, struct str *folder)
{
	while (list->size > 0) {
		size_t end = str_find(*list, STR(":"), 0);

		*folder = str_part(*list, 0, end);
		*list = end < list->size ? str_part(*list, end + 1, list->size)
					 : (struct str){0};
		if (folder->size > 0)
			return true;
	}
	return false;
}

char *path_key(const char *path)
{
	struct buf key;

	buf_init(&key, 4 * PATH_TEXT_MAX);
	for (; *path != '\0'; path++) {
		unsigned char c = (unsigned char)*path;
		if (c < ' ' || c >= 0x7f || c == '\\')
			(void)buf_addf(&key, "\\%02x", c);
		else
			(void)buf_addc(&key, (char)c);
	}
	return buf_take(&key);
}

char *path_of_key(const char *key)
{
	struct buf path;
	bool fine = key != NULL;

	buf_init(&path, PATH_TEXT_MAX);
	for (; fine && *key != '\0'; key++) {
		if (*key != '\\') {
			fine = buf_addc(&path, *key);
			continue;
		}
		int high = text_hex_digit(key[1]);
		int low = high < 0 ? -1 : text_hex_digit(key[2]);
		int c = high * 16 + low;
		fine = low >= 0 && c > 0 && buf_addc(&path, (char)c);
		key += 2;
	}
	if (fine)
		return buf_take(&path);
	buf_fini(&path);
	return NULL;
}

bool path_names_git(const char *path)
{
	while (*path != '\0') {
		const size_t size = strcspn(path, "/");

		if (size == 4 && strncasecmp(path, ".git", size) == 0)
			return true;
		path += size;
		path += *path == '/';
	}
	return false;
}
