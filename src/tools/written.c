/* written: guard and report of the tools that write; see written.h. */
#include "tools/written.h"

#include "tools/shown.h"

#include "tool/denial.h"

#include "base/hash.h"
#include "base/text/diff.h"
#include "base/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

void written_init(struct written *written, struct call *call, struct tool_result *result)
{
	memset(written, 0, sizeof(*written));
	written->call = call;
	written->result = result;
	written->path = call_text(call, "path");
	place_init(&written->place);
	buf_init(&written->real, PATH_MAX);
	buf_init(&written->old, WRITTEN_FILE_MAX);
}

void written_fini(struct written *written)
{
	place_fini(&written->place);
	buf_fini(&written->real);
	buf_fini(&written->old);
}

bool written_fits(const struct call *call, size_t bytes, struct tool_result *result)
{
	const uint64_t most = call->limits.write_bytes;
	char target[32], now[32];

	if (most == 0 || bytes <= most)
		return true;
	(void)tool_fail(result,
			"%s brings %zu bytes, and this agent may write at most %" PRIu64
			" in one call. Nothing was written.",
			call->tool->name, bytes, most);
	denial_add_limit(result,
			 &(struct denial_limit){.agent = call->agent,
						.key = "write_bytes",
						.target = text_size(bytes, target),
						.advice = "bring it in several calls",
						.now = text_size(most, now)});
	return false;
}

bool written_read_old(struct written *written, struct err *err)
{
	const char *seen;

	buf_clear(&written->old);
	buf_clear(&written->real);
	shown_place_path(&written->place, &written->real);
	if (!place_read(&written->place, WRITTEN_FILE_MAX, &written->old, &written->st, err))
		return false;
	files_mark(buf_str(&written->old), &written->st, written->mark);
	seen = call_seen(written->call, written->real.data);
	written->changed_since_read = seen && strcmp(seen, written->mark) != 0;
	return true;
}

bool written_check_hash(struct written *written)
{
	const char *expected = call_text(written->call, "expected_hash");
	char hash[HASH_HEX + 1];

	if (!expected)
		return true;
	if (!hash_is_valid(expected)) {
		(void)tool_fail(written->result,
				"expected_hash must be %d to %d lower-case hex digits of the file's "
				"SHA-256, as read_file gives it in its details.",
				HASH_SHOWN, HASH_HEX);
		return false;
	}
	hash_text(buf_str(&written->old), hash);
	if (hash_matches(expected, hash))
		return true;
	(void)tool_fail(written->result,
			"%s does not have the hash %.16s; its hash is now %.*s. Read it again: it "
			"holds something else than you think. Nothing was written.",
			written->path, expected, HASH_SHOWN, hash);
	return false;
}

bool written_replace(struct written *written, struct str content, struct err *err)
{
	struct place_change change = {.place = &written->place,
				      .content = content,
				      .expected_mark = written->mark,
				      .expected = buf_str(&written->old)};

	return place_write_set(&change, 1, err);
}

void written_add_path(const struct written *written, struct buf *out)
{
	const char *shown = files_shown(written->call->files, written->real.data);

	shown_add(str_of(shown), out);
	if (strcmp(shown, written->path) != 0 &&
	    strcmp(written->real.data, written->path) != 0) {
		buf_adds(out, " (reached as ");
		shown_add(str_of(written->path), out);
		buf_addc(out, ')');
	}
}

void written_new_mark(const struct written *written, struct str content,
		      char mark[FILES_MARK])
{
	if (written->new_hash[0] && content.size <= FILES_HASHED_MAX)
		memcpy(mark, written->new_hash, sizeof(written->new_hash));
	else
		files_mark(content, written->place.exists ? &written->place.st : NULL, mark);
}

void written_report_into(struct written *written, struct str content,
			 enum written_kind kind, struct value *into)
{
	static const char *const kinds[] = {"", "new file, ", "deleted, "};
	const bool created = kind == WRITTEN_CREATED, removed = kind == WRITTEN_REMOVED;
	struct buf *text = &written->result->text;
	const char *shown = files_shown(written->call->files, written->real.data);
	struct str old = buf_str(&written->old);
	struct diff_counts counts = {0};
	char size[32];
	struct buf diff;
	struct buf names[2];

	buf_init(&diff, WRITTEN_DIFF_MAX);
	buf_init(&names[0], PATH_MAX + 2);
	buf_init(&names[1], PATH_MAX + 2);
	/* Outside of the workspace it begins with a slash itself. */
	buf_addf(&names[0], "a/%s", shown + (shown[0] == '/'));
	buf_addf(&names[1], "b/%s", shown + (shown[0] == '/'));
	if (!diff_unified(old, content, created ? NULL : names[0].data,
			  removed ? NULL : names[1].data, DIFF_CONTEXT, &diff, &counts)) {
		value_set_boolean(into, "diff_cut", true);
		diff_count(old, content, &counts);
	}
	buf_addf(text, ": %s+%zu -%zu lines", kinds[kind], counts.added, counts.removed);
	if (!removed) {
		buf_adds(text, "; now ");
		text_add_count(text, text_count_lines(content), "line");
		buf_addf(text, ", %s", text_size(content.size, size));
	}
	buf_addc(text, '.');
	hash_text(content, written->new_hash);
	value_set_text(into, "path", written->real.data);
	value_set_boolean(into, "created", created);
	if (removed)
		value_set_boolean(into, "removed", true);
	value_set_integer(into, "added", (int64_t)counts.added);
	value_set_integer(into, "removed", (int64_t)counts.removed);
	value_set_integer(into, "size", (int64_t)content.size);
	value_set_text(into, "hash", written->new_hash);
	value_set_str(into, "diff", buf_str(&diff));
	buf_fini(&diff);
	buf_fini(&names[0]);
	buf_fini(&names[1]);
}

void written_report(struct written *written, struct str content, bool created)
{
	written_report_into(written, content, created ? WRITTEN_CREATED : WRITTEN_CHANGED,
			    tool_details(written->result));
}

enum result_status written_fail(struct written *written, const struct err *err)
{
	struct buf roots;

	switch (err->code) {
	case EPERM:
		return tool_fail(written->result,
				 "%s Write where this agent may write, or ask the user to add the "
				 "path to its `write` list.",
				 err->text);
	case EROFS:
		buf_init(&roots, FILES_LISTED * 4 * PATH_MAX);
		files_add_writable(written->call->files, &roots);
		(void)tool_fail(written->result,
				"%s It writes only below %s: write there, or ask the user to add "
				"the path to its `write` list.",
				err->text, roots.data);
		buf_fini(&roots);
		shown_claim_unwritable(written->call, written->result, written->path);
		return RESULT_FAILED;
	case FILES_PROTECTED:
		denial_note(written->result,
			    &(struct denial){.kind = DENIAL_FS,
					     .target = written->path,
					     .rule = "protected",
					     .remedy = "run git by a command instead"});
		(void)tool_fail(written->result,
				"%s Use git in bash (git commit, git switch, git reset …); hooks "
				"and configuration are the user's to change.",
				err->text);
		written->result->status = RESULT_DENIED;
		return RESULT_DENIED;
	case FILES_AUTOEXEC:
		denial_note(written->result, &(struct denial){.kind = DENIAL_FS,
							      .target = written->path,
							      .rule = "protected",
							      .remedy = AUTOEXEC_REMEDY});
		(void)tool_fail(written->result,
				"%s Tell the user what it should say; who wants it written here names "
				"it in the `write` list.",
				err->text);
		written->result->status = RESULT_DENIED;
		return RESULT_DENIED;
	case EFBIG:
		return tool_fail(written->result,
				 "%s Use a command (sed, a script) through bash "
				 "for a file of this size.",
				 err->text);
	case EISDIR:
		return tool_fail(written->result, "%s Name a file in it.", err->text);
	case EAGAIN:
		return tool_fail(written->result,
				 "%s Nothing was written; read it again and repeat "
				 "the call.",
				 err->text);
	default:
		return shown_fail(written->call, written->result, written->path, err);
	}
}
