/* message: prints and reads the messages, and the specification of a broker. */

#include "broker/message.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"

#include <errno.h>
#include <sys/socket.h>

bool broker_message_send(int control, const struct broker_order *order, int fd)
{
	return fd_message_send(control, order, sizeof(*order), &fd, fd >= 0 ? 1 : 0,
			       MSG_DONTWAIT);
}

bool broker_message_receive(int control, struct broker_word *word, int *fd, struct err *err)
{
	size_t size;

	*word = (struct broker_word){0};
	if (!fd_message_receive_some(control, word, sizeof(*word), &size, fd, 1,
				     MSG_DONTWAIT))
		return errno == EAGAIN ? err_set(err, EAGAIN, "no message yet")
				       : err_set(err, ECONNRESET, "the broker has ended");
	word->name[sizeof(word->name) - 1] = '\0';
	word->target[sizeof(word->target) - 1] = '\0';
	word->text[sizeof(word->text) - 1] = '\0';
	return true;
}

bool broker_message_print_spec(const struct broker_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();
	struct value *list = value_new_array();

	for (size_t i = 0; i < spec->count; i++) {
		const struct broker_used *used = &spec->used[i];
		struct value *item = value_new_object();

		value_set_text(item, "name", used->credential->name);
		value_set_text(item, "phantom", used->phantom);
		value_set(item, "credential", value_copy(used->credential->root));
		if (used->repositories != NULL)
			value_set(item, "repositories", value_new_texts(used->repositories));
		if (used->phantoms != NULL)
			value_set(item, "phantoms", value_new_texts(used->phantoms));
		value_append(list, item);
	}
	value_set(object, "credentials", list);
	value_set(object, "network", value_new_texts(spec->network));
	if (spec->resolver != NULL)
		value_set_text(object, "resolver", spec->resolver);
	return value_print(object, 0, out);
}
