/* steer: waits for whole lines. */
#include "mcp/bridge/steer.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 4096 };

void steer_init(struct steer *steer, int fd)
{
	steer->fd = fd;
	buf_init(&steer->line, STEER_LINE_MAX);
}

void steer_fini(struct steer *steer)
{
	/* The lines hold tokens. */
	if (steer->line.capacity > 0)
		explicit_bzero(steer->line.data, steer->line.capacity);
	buf_fini(&steer->line);
}

bool steer_tell(struct steer *steer, struct value *take_value)
{
	struct buf text;
	bool ok;

	buf_init(&text, STEER_LINE_MAX);
	ok = value_print(take_value, 0, &text) && buf_addc(&text, '\n') &&
	     fd_write_all(steer->fd, text.data, text.size, NULL);
	if (text.capacity > 0)
		explicit_bzero(text.data, text.size);
	buf_fini(&text);
	value_wipe(take_value);
	value_free(take_value);
	return ok;
}

struct value *steer_hear(struct steer *steer)
{
	struct value *value = NULL;
	size_t end;

	while ((end = str_find(buf_str(&steer->line), STR("\n"), 0)) == (size_t)-1) {
		char bytes[READ_SIZE];
		const ssize_t size = read(steer->fd, bytes, sizeof(bytes));
		struct pollfd news = {.fd = steer->fd, .events = POLLIN};

		if (size < 0 && errno == EAGAIN)
			(void)poll(&news, 1, -1);
		else if (size == 0 || (size < 0 && errno != EINTR) ||
			 (size > 0 && !buf_add(&steer->line, bytes, (size_t)size)))
			return NULL;
	}
	if (!value_parse(str_part(buf_str(&steer->line), 0, end), 0, &value, NULL))
		return NULL;
	buf_remove(&steer->line, 0, end + 1);
	if (value_kind(value) == VALUE_OBJECT)
		return value;
	value_free(value);
	return NULL;
}
