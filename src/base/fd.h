/*
 * fd: descriptors that close themselves, and whole reads and writes. All
 * descriptors of ours are close-on-exec.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* `auto_close int fd = open(…);` closes at the end of the scope; -1 is fine. */
void fd_auto_close(int *fd);
#define auto_close __attribute__((cleanup(fd_auto_close)))

/* Close *FD when it is open and make it -1. Keeps errno. */
void fd_close(int *fd);

/*
 * openat, read and close without points of cancellation, for code that makes these calls by
 * the hundred thousand in several threads. Nothing here cancels a thread, and those points
 * take the C library longer than the way into the kernel.
 */
int fd_bare_open(int folder_fd, const char *name, int flags);
ssize_t fd_bare_read(int fd, void *data, size_t size);
void fd_bare_close(int fd);

/* Give *FD away: returns it and leaves -1 behind. */
int fd_take(int *fd);

/* The descriptor whose number TEXT is, as a role of ours gets it; -1 when it is none. */
int fd_of_text(const char *text);

/*
 * The name by which FD of this process is opened anew, linked or changed. Returns NAME.
 */
enum { FD_NAME_ROOM = 32 };
char *fd_name(int fd, char name[FD_NAME_ROOM]);
/* Give the file FD the name NAME in FOLDER, where none is by that name. False with errno. */
bool fd_link(int fd, int folder, const char *name);

/*
 * Replace PATH by the absolute path at which FD lies now, as the kernel has it (" (deleted)"
 * behind it when the name is gone). False with errno, PATH untouched, where /proc is not
 * readable, when FD has no path (a pipe, a socket), or one over PATH's ceiling.
 */
bool fd_real_path(int fd, struct buf *path);

/*
 * Open NAME (may have folders) beneath FOLDER with open flags FLAGS: no link on the way nor at
 * its end, no terminal taken, nothing waited for. -1 with errno.
 */
int fd_open_beneath(int folder, const char *name, int flags);

/*
 * Read to the end of FD into BUF. False with EFBIG when BUF's ceiling is
 * reached before the end. WHAT names the source in the sentence.
 */
bool fd_read_all(int fd, struct buf *buf, const char *what, struct err *err);
/* The same of a file that was looked at: it had SIZE bytes, and may have others by now. */
bool fd_read_looked(int fd, off_t size, struct buf *buf, const char *what, struct err *err);

/* Write all, over short writes and EINTR (waits on EAGAIN). */
bool fd_write_all(int fd, const void *data, size_t size, struct err *err);

/*
 * Write TEXT to the file NAME beneath FOLDER_FD (or AT_FDCWD), which must be there, in one
 * write: as /proc and its like want it. False with errno.
 */
bool fd_write_at(int folder_fd, const char *name, const char *text);

/* The same by PATH, with a sentence. */
bool fd_write_file(const char *path, const char *text, struct err *err);

bool fd_set_blocking(int fd, bool blocking, struct err *err);

/* A close-on-exec pipe; ends[0] reads. */
bool fd_pipe(int ends[2], struct err *err);

/*
 * Is FD a pipe without a name? A named pipe (FIFO) is a file: a process that holds its
 * descriptor could change its mode and times.
 */
bool fd_is_pipe(int fd);

/* An anonymous file in memory that holds DATA, read position at its start. */
bool fd_memory_file(const char *name, struct str data, int *fd, struct err *err);

/* Make the folders above the last name of PATH, for their owner alone (the front's own). */
bool fd_make_folders(const char *path, struct err *err);

/*
 * Replace BUF by the content of the file NAME beneath FOLDER_FD (or AT_FDCWD): one of /proc
 * or its like, whose size nobody knows before. False when it is not there or too large.
 */
bool fd_read_at(int folder_fd, const char *name, struct buf *buf);

/* Read a whole regular file of at most MAX bytes by name (for the front's own files). */
bool fd_read_file(const char *path, size_t max, struct buf *buf, struct err *err);

/* Taking away a folder of our own with all that is in it; opening a closed one. */

/*
 * MODE with the permissions MORE and without set-id bits, fit for a chmod in a cell. The
 * filter of a cell asks the worker about a chmod with set-id bits, so that a worker that
 * sets them itself would wait for its own answer.
 */
static inline mode_t folder_mode_opened(mode_t mode, mode_t more)
{
	return (mode & (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)) | more;
}

/*
 * Remove PATH (NULL is fine) and everything below it, as far as the kernel lets us; links
 * are removed, never followed. For when nobody works in it any more.
 */
void fd_folder_remove(const char *path);

/*
 * Whole messages with descriptors, between processes of ours that share a pair of
 * SOCK_SEQPACKET sockets. (Streams of frames are process/frame.h.)
 */

/*
 * Send the SIZE bytes at DATA, with COUNT descriptors, which stay the caller's. FLAGS: those
 * of sendmsg(2) beside MSG_NOSIGNAL. False with errno.
 */
bool fd_message_send(int socket, const void *data, size_t size, const int *fds,
		     size_t count, int flags);

/*
 * Receive one message of exactly SIZE bytes. Its descriptors are close-on-exec and the
 * caller's; the COUNT places of FDS are -1 where none came, what is beyond is closed. FLAGS:
 * those of recvmsg(2). False with errno; ECONNRESET at the end, and for a message of another
 * size.
 */
bool fd_message_receive(int socket, void *data, size_t size, int *fds, size_t count,
			int flags);

/*
 * The lines of /proc/self/mountinfo (proc(5)). The caller reads the file; the parts of a
 * mount are views of its text.
 */

/* Of the whole file: a machine with tens of thousands of them. */
enum { MOUNTS_BYTES_MAX = 16 << 20 };

struct mount {
	struct str root;  /* of the file system, what is mounted; as written */
	struct str point; /* where; as written (fd_mounts_add_path) */
	struct str type; /* of the file system; empty when the line breaks off before it */
	struct str super; /* its own options; likewise */
};

/*
 * Take the next mount off the front of *REST, in the order of mounting. A line without a mount
 * point is passed over. False when none is left.
 */
bool fd_mounts_next(struct str *rest, struct mount *mount);

/* Append PATH as the kernel writes it, "\040" for a blank, as it is. False at the ceiling. */
bool fd_mounts_add_path(struct str path, struct buf *out);
