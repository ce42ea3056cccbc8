/* remembered: hands the notes to the editor and back. */

#include "front/conversation/remembered.h"

#include "base/buf.h"
#include "base/err.h"
#include "extend/notes.h"
#include "front/chat.h"
#include "front/talk.h"
#include "tui/lent/job.h"

/* Let the person edit the notes. False: ERR says why they are as they were. */
static bool edit(struct chat *chat, const struct buf *before, struct buf *after,
		 struct err *err)
{
	(void)buf_addstr(after, buf_str(before));
	return lent_job_edit(chat->console, after, talk_interrupt_fd(chat->talk), err);
}

void remembered_edit(struct chat *chat)
{
	struct buf *out = &chat->paint.out;
	struct buf before, after;
	struct err err = {0};

	if (chat->setup->notes == NOTES_NONE) {
		(void)buf_adds(out, "There are no notes: \"memory\": true in the configuration "
				    "lets agents write them.\n");
		return;
	}
	buf_init(&before, NOTES_BYTES_MAX);
	/* A text that is too long is refused when it is written, and not cut. */
	buf_init(&after, 4 * NOTES_BYTES_MAX);
	if (!notes_read(chat->setup->workspace, &before, &err) ||
	    !edit(chat, &before, &after, &err))
		(void)buf_addf(out, "%s\n", err.text);
	else if (str_equal(str_trim(buf_str(&before)), str_trim(buf_str(&after))))
		(void)buf_adds(out, "The notes are as they were.\n");
	else if (!notes_replace(chat->setup->workspace, buf_str(&before), buf_str(&after),
				&err))
		(void)buf_addf(out, "%s\n", err.text);
	else
		(void)buf_adds(out,
			       "The notes are written; the next conversation reads them.\n");
	buf_fini(&after);
	buf_fini(&before);
}
