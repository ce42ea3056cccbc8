/*
 * program_output: the first and the last bytes of one output stream. Past the head, reads
 * go straight into the ring, so that a flood costs no copy and no memory.
 */
#include "process/program_output.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <sys/uio.h>
#include <unistd.h>

ssize_t program_output_read(struct program_output *output, int fd, struct str pieces[2])
{
	struct iovec parts[2];
	ssize_t got;

	pieces[0] = pieces[1] = (struct str){0};
	if (output->head.size < PROGRAM_HEAD) {
		size_t room = PROGRAM_HEAD - output->head.size;
		char *at = buf_reserve(&output->head, room);

		got = read(fd, at, room);
		if (got > 0) {
			buf_commit(&output->head, (size_t)got);
			pieces[0] = (struct str){at, (size_t)got};
			output->total += (uint64_t)got;
		}
		return got;
	}
	if (!output->tail)
		output->tail = memory_grow(NULL, PROGRAM_READ, 1);
	parts[0] = (struct iovec){output->tail + output->tail_at,
				  PROGRAM_READ - output->tail_at};
	parts[1] = (struct iovec){output->tail, output->tail_at};
	got = readv(fd, parts, output->tail_at ? 2 : 1);
	if (got > 0) {
		size_t size = (size_t)got;
		size_t first = size < parts[0].iov_len ? size : parts[0].iov_len;

		pieces[0] = (struct str){parts[0].iov_base, first};
		pieces[1] = (struct str){output->tail, size - first};
		output->tail_at = (output->tail_at + size) % PROGRAM_READ;
		output->tail_size += size;
		if (output->tail_size > PROGRAM_TAIL)
			output->tail_size = PROGRAM_TAIL;
		output->total += size;
	}
	return got;
}

void program_output_tail(const struct program_output *output, struct buf *text)
{
	size_t size = output->tail_size;
	size_t from = (output->tail_at + PROGRAM_READ - size) % PROGRAM_READ;
	size_t first = size < PROGRAM_READ - from ? size : PROGRAM_READ - from;

	if (size == 0)
		return;
	buf_add(text, output->tail + from, first);
	buf_add(text, output->tail, size - first);
}

void program_output_since(const struct program_output *output, uint64_t since,
			  struct program_output *part)
{
	const uint64_t left = since < output->total ? output->total - since : 0;

	*part = *output;
	buf_init(&part->head, PROGRAM_HEAD);
	if (since < output->head.size)
		(void)buf_add(&part->head, output->head.data + since,
			      output->head.size - (size_t)since);
	part->total = left;
	if (part->tail_size > left - part->head.size)
		part->tail_size = (size_t)(left - part->head.size);
}

uint64_t program_output_missing(const struct program_output *output)
{
	return output->total - output->head.size - output->tail_size;
}

void program_output_text(const struct program_output *output, struct buf *text)
{
	uint64_t missing = program_output_missing(output);

	buf_addstr(text, buf_str(&output->head));
	if (missing) {
		if (!str_ends(buf_str(text), STR("\n")))
			buf_addc(text, '\n');
		buf_addf(text, "[… %llu bytes not kept …]\n", (unsigned long long)missing);
	}
	program_output_tail(output, text);
}

void program_output_fini(struct program_output *output)
{
	if (!output)
		return;
	buf_fini(&output->head);
	free(output->tail);
	output->tail = NULL;
	output->tail_size = output->tail_at = 0;
}
