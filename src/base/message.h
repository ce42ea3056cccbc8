/*
 * message: whole messages with descriptors, between processes of ours that share a pair of
 * SOCK_SEQPACKET sockets. (Streams of frames are process/frame.h.)
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Descriptors beside one message. */
enum { MESSAGE_FDS_MAX = 17 };

/*
 * Send the SIZE bytes at DATA, with COUNT descriptors, which stay the caller's. FLAGS: those
 * of sendmsg(2) beside MSG_NOSIGNAL. False with errno.
 */
bool message_send(int socket, const void *data, size_t size, const int *fds, size_t count,
		  int flags);

/*
 * Receive one message of exactly SIZE bytes. Its descriptors are close-on-exec and the
 * caller's; the COUNT places of FDS are -1 where none came, what is beyond is closed. FLAGS:
 * those of recvmsg(2). False with errno; ECONNRESET at the end, and for a message of another
 * size.
 */
bool message_receive(int socket, void *data, size_t size, int *fds, size_t count, int flags);
