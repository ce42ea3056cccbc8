/* mounts: one pass over a line's words; see mounts.h. */
#include "base/mounts.h"

/* "31 23 0:28 ROOT POINT OPTIONS … - TYPE SOURCE SUPER" */
enum { FIELD_ROOT = 3, FIELD_POINT = 4, TYPE_AFTER_DASH = 1, SUPER_AFTER_DASH = 3 };

/* False when LINE ends before the mount point. */
static bool parse(struct str line, struct mount *mount)
{
	int dash = -1;
	struct str word;

	*mount = (struct mount){0};
	for (int i = 0; str_next_word(&line, &word); i++) {
		if (i == FIELD_ROOT)
			mount->root = word;
		else if (i == FIELD_POINT)
			mount->point = word;
		else if (dash < 0 && i > FIELD_POINT && str_is(word, "-"))
			dash = i;
		else if (dash >= 0 && i == dash + TYPE_AFTER_DASH)
			mount->type = word;
		else if (dash >= 0 && i == dash + SUPER_AFTER_DASH)
			mount->super = word;
	}
	return mount->point.size > 0;
}

bool mounts_next(struct str *rest, struct mount *mount)
{
	struct str line;

	while (str_next_line(rest, &line)) {
		if (parse(line, mount))
			return true;
	}
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

bool mounts_add_path(struct str path, struct buf *out)
{
	for (size_t i = 0; i < path.size; i++) {
		const char *at = path.data + i;
		char byte = *at;

		if (byte == '\\' && path.size - i > 3 && is_octal(at[1]) &&
		    is_octal(at[2]) && is_octal(at[3])) {
			byte = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 |
				      (at[3] - '0'));
			i += 3;
		}
		if (!buf_addc(out, byte))
			return false;
	}
	return true;
}
