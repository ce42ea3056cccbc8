/* message: what front and proxy say to each other, over a socket and at the start. */
#include "proxy/proxy.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"

#include <errno.h>
#include <sys/socket.h>

bool proxy_send(int control, const struct proxy_message *message, int fd)
{
	return message_send(control, message, sizeof(*message), &fd, fd >= 0 ? 1 : 0,
			    MSG_DONTWAIT);
}

bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err)
{
	struct proxy_message read = {0};
	int came;

	if (!message_receive(control, &read, sizeof(read), &came, 1, MSG_DONTWAIT))
		return errno == EAGAIN
			       ? err_set(err, EAGAIN, "no message yet")
			       : err_set(err, ECONNRESET, "the network proxy has ended");
	read.text[sizeof(read.text) - 1] = '\0';
	read.remedy[sizeof(read.remedy) - 1] = '\0';
	*message = read;
	*fd = came;
	return true;
}

bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();

	value_set(object, "network", value_new_texts(spec->network));
	value_set_text(object, "rule", spec->rule);
	value_set_boolean(object, "asks", spec->asks);
	if (spec->resolver != NULL)
		value_set_text(object, "resolver", spec->resolver);
	return value_print(object, 0, out);
}
