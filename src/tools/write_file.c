/*
 * write_file: writes a whole content to a new or an old file. The session must have read
 * the old file, which must be unchanged since, or the call must name its hash. So no
 * content is overwritten that the model does not know.
 */
#include "tools/shown.h"
#include "tools/tools.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

static const struct row write_file_params[] = {
	{"path", ROW_PATH, true, "File to write; parent folders are made",
	 .aliases = "file file_path filename"},
	{"content", ROW_TEXT, true, "The whole new content",
	 .aliases = "contents text file_text", .unmasks = UNMASKS},
	{"expected_hash", ROW_TEXT, false,
	 "Hash (read_file's, or SHA-256; 12 digits or more) of the content to be replaced, instead of a read_file before",
	 .aliases = "hash"},
	SHOWN_ENDS_PARAM,
	{0},
};

/* Does the model know the old content? False: RESULT says what to do. */
static bool is_known(struct written *written)
{
	char hash[HASH_HEX + 1];
	const enum written_known known = written_known(written, hash);

	if (known == KNOWN_BEFORE)
		(void)tool_fail(written->result,
				"%s was changed since you read it (its hash is now %.*s). Read it again, "
				"then write; nothing was written.",
				written->path, HASH_SHOWN, hash);
	else if (known == KNOWN_NOT)
		(void)tool_fail(written->result,
				"%s exists and has not been read in this session. Read it first, or pass "
				"\"expected_hash\": \"%.*s\" to replace it; edit_file changes parts of "
				"it. Nothing was written.",
				written->path, HASH_SHOWN, hash);
	return known == KNOWN_NOW;
}

static enum result_status finish(struct written *written, struct str content,
				 bool created, enum shown_end end_set)
{
	struct buf *text = &written->result->text;
	char mark[FILES_MARK];

	buf_adds(text, "Wrote ");
	written_add_path(written, text);
	written_report(written, content, created);
	shown_add_ends_set("The content", end_set, text);
	if (!created && !str_ends(content, STR("\n")) && content.size &&
	    str_ends(buf_str(&written->old), STR("\n")))
		buf_adds(text, " The newline at its end is gone: the content had none.");
	written_new_mark(written, content, mark);
	call_saw(written->result, written->real.data, mark);
	return tool_done(written->result);
}

static enum result_status write_new(struct written *written, struct str content)
{
	struct err err = {0};

	if (call_text(written->call, "expected_hash"))
		return tool_fail(written->result,
				 "%s does not exist, so no hash can fit. Leave "
				 "expected_hash away to make a new file.",
				 written->path);
	/*
	 * The first look made no folders, so that a refused call leaves nothing behind.
	 */
	place_fini(&written->place);
	place_init(&written->place);
	if (!files_place(written->call->files, written->path, true, &written->place, &err) ||
	    !place_write(&written->place, content, NULL, &err)) {
		if (err.code == EEXIST)
			return tool_fail(written->result,
					 "%s has just been made by somebody else. "
					 "Read it before you write it.",
					 written->path);
		return written_fail(written, &err);
	}
	buf_clear(&written->real);
	shown_place_path(&written->place, &written->real);
	return finish(written, content, true, SHOWN_END_NONE);
}

static enum result_status write_old(struct written *written, struct str given)
{
	struct shown_ends old_ends = {0};
	enum shown_end end_set = SHOWN_END_NONE;
	struct err err = {0};
	struct buf content;
	enum result_status status;

	if (!written_read_old(written, &err))
		return written_fail(written, &err);
	if (!is_known(written))
		return RESULT_FAILED;
	buf_init(&content, 2 * given.size);
	buf_addstr(&content, given);
	shown_count_ends(buf_str(&written->old), &old_ends);
	if (!shown_ends_are_given(written->call) &&
	    shown_set_ends(&content, shown_end_of_all(&old_ends)))
		end_set = shown_end_of_all(&old_ends);
	if (str_equal(buf_str(&content), buf_str(&written->old))) {
		buf_adds(&written->result->text, "Nothing to do: ");
		written_add_path(written, &written->result->text);
		buf_adds(&written->result->text, " holds exactly this content already.");
		shown_add_ends_set("The content", end_set, &written->result->text);
		call_saw(written->result, written->real.data, written->mark);
		status = tool_done(written->result);
	} else if (written_replace(written, buf_str(&content), &err)) {
		status = finish(written, buf_str(&content), false, end_set);
	} else {
		status = written_fail(written, &err);
	}
	buf_fini(&content);
	return status;
}

static enum result_status write_file_execute(struct call *call, struct tool_result *result)
{
	struct str content = call_str(call, "content");
	struct written written;
	struct err err = {0};
	enum result_status status;

	written_init(&written, call, result);
	if (!content.data)
		content = STR("");
	if (!written_fits(call, content.size, result)) {
		written_fini(&written);
		return RESULT_FAILED;
	}
	if (!files_place(call->files, written.path, false, &written.place, &err))
		status = err.code == ENOENT ? write_new(&written, content)
					    : written_fail(&written, &err);
	else if (written.place.exists)
		status = write_old(&written, content);
	else
		status = write_new(&written, content);
	written_fini(&written);
	return status;
}

const struct tool write_file_tool = {
	.name = "write_file",
	.description =
		"Create a file or replace its whole content. An existing file must have "
		"been read first. Use edit_file to change parts.",
	.example = "{\"path\": \"docs/notes.md\", \"content\": \"# Notes\\n\"}",
	.aliases = "write create_file",
	.params = write_file_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 30, /* fsync on a busy disk */
	.execute = write_file_execute,
};
