/* message: sendmsg and recvmsg with SCM_RIGHTS, see unix(7). */
#include "base/message.h"

#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
};

bool message_send(int socket, const void *data, size_t size, const int *fds, size_t count,
		  int flags)
{
	union rights rights = {0};
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	assert(count <= MESSAGE_FDS_MAX);
	if (count > 0) {
		message.msg_control = rights.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
	}
	do {
		n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

/* Store the descriptors that came with MESSAGE in CAME; places without one are -1. */
static void take_rights(struct msghdr *message, int came[MESSAGE_FDS_MAX])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);

	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		came[i] = -1;
	if (header != NULL && header->cmsg_level == SOL_SOCKET &&
	    header->cmsg_type == SCM_RIGHTS)
		memcpy(came, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

/*
 * Receive one message. When the other end has closed with unread messages, the kernel
 * reports ECONNRESET once, before the last messages of the other end: read again then.
 */
static ssize_t receive(int socket, struct msghdr *message, int flags)
{
	bool reset = false, again;
	ssize_t n;

	do {
		n = recvmsg(socket, message, flags);
		again = n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset));
		reset = reset || (n < 0 && errno == ECONNRESET);
	} while (again);
	return n;
}

bool message_receive(int socket, void *data, size_t size, int *fds, size_t count, int flags)
{
	union rights rights = {0};
	struct iovec part = {data, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	int came[MESSAGE_FDS_MAX];
	ssize_t n;

	assert(count <= MESSAGE_FDS_MAX);
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	n = receive(socket, &message, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	take_rights(&message, came);
	bool whole = n == (ssize_t)size && (message.msg_flags & MSG_TRUNC) == 0;
	for (size_t i = 0; whole && i < count; i++)
		fds[i] = fd_take(&came[i]);
	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		fd_close(&came[i]);
	if (!whole)
		errno = ECONNRESET;
	return whole;
}
