/* message: what front and proxy say to each other, over a socket and at the start. */
#include "proxy/proxy.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/value.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool proxy_send(int control, const struct proxy_message *message, int fd)
{
	union rights rights = {0};
	struct iovec part = {(void *)(uintptr_t)message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		header.msg_control = rights.bytes;
		header.msg_controllen = sizeof(rights.bytes);
		struct cmsghdr *first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(first), &fd, sizeof(fd));
	}
	do {
		n = sendmsg(control, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*message);
}

bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err)
{
	union rights rights = {0};
	struct proxy_message read = {0};
	struct iovec part = {&read, sizeof(read)};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = rights.bytes,
				.msg_controllen = sizeof(rights.bytes)};
	int came = -1;
	ssize_t n;

	do {
		n = recvmsg(control, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return err_set(err, EAGAIN, "no message yet");
	struct cmsghdr *first = n > 0 ? CMSG_FIRSTHDR(&header) : NULL;
	if (first != NULL && first->cmsg_type == SCM_RIGHTS &&
	    first->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&came, CMSG_DATA(first), sizeof(came));
	if (n != (ssize_t)sizeof(read)) {
		fd_close(&came);
		return err_set(err, ECONNRESET, "the network proxy has ended");
	}
	read.text[sizeof(read.text) - 1] = '\0';
	read.remedy[sizeof(read.remedy) - 1] = '\0';
	*message = read;
	*fd = came;
	return true;
}

bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();
	struct value *network = value_new_array();

	for (size_t i = 0; spec->network[i] != NULL; i++)
		value_append(network, value_new_text(spec->network[i]));
	value_set(object, "network", network);
	value_set_text(object, "rule", spec->rule);
	if (spec->resolver != NULL)
		value_set_text(object, "resolver", spec->resolver);
	return value_print(object, 0, out);
}
