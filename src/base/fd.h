/*
 * fd: descriptors that close themselves, and whole reads and writes. All
 * descriptors of ours are close-on-exec.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <dirent.h>
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

/* Return *FD and set it to -1: the caller owns the descriptor now. */
int fd_take(int *fd);

/*
 * The descriptor with the number in TEXT, as a role of ours gets it; -1 when TEXT is no
 * number.
 */
int fd_of_text(const char *text);

/*
 * The name by which FD of this process can be opened again, linked or changed. Returns
 * NAME.
 */
enum { FD_NAME_ROOM = 32 };
char *fd_name(int fd, char name[FD_NAME_ROOM]);
/* Link the file FD as NAME in FOLDER. NAME must not exist yet. False with errno. */
bool fd_link(int fd, int folder, const char *name);

/*
 * Replace PATH by the absolute path of FD as the kernel knows it, followed by "
 * (deleted)" when the name is gone. False with errno, and PATH unchanged, when /proc is
 * not readable, when FD has no path (a pipe, a socket), or when the path is over PATH's
 * ceiling.
 */
bool fd_real_path(int fd, struct buf *path);

/*
 * Open NAME (may have folders) beneath FOLDER with open flags FLAGS. Follows no link,
 * takes no terminal, waits for nothing. -1 with errno.
 */
int fd_open_beneath(int folder, const char *name, int flags);

/*
 * Open the names of the open folder FOLDER (O_PATH is enough) for readdir(3), from the
 * first one on; the caller closes them. NULL with errno.
 */
DIR *fd_open_names(int folder);

/* Names of a folder, in the order of their bytes. */
struct fd_names {
	char **items;
	size_t count;
};
/*
 * Read at most MAX names of FOLDER; those that begin with a dot only with HIDDEN. A folder that
 * cannot be read has none. Call fd_names_fini.
 */
void fd_names_read(struct fd_names *names, int folder, size_t max, bool hidden);
void fd_names_fini(struct fd_names *names);
/* Is the open folder FOLDER (O_PATH is enough) empty? One that cannot be read is not. */
bool fd_folder_is_empty(int folder);

/*
 * Read to the end of FD into BUF. False with EFBIG when BUF's ceiling is
 * reached before the end. WHAT names the source in the sentence.
 */
bool fd_read_all(int fd, struct buf *buf, const char *what, struct err *err);
/* Like fd_read_all, for a file whose status was read before: it had SIZE bytes then. */
bool fd_read_looked(int fd, off_t size, struct buf *buf, const char *what, struct err *err);

/* Write all of DATA, despite short writes and EINTR (waits on EAGAIN). */
bool fd_write_all(int fd, const void *data, size_t size, struct err *err);

/*
 * Write TEXT to the existing file NAME beneath FOLDER_FD (or AT_FDCWD) in one write, as
 * files of /proc and the like need it. False with errno.
 */
bool fd_write_at(int folder_fd, const char *name, const char *text);

/* Like fd_write_at by PATH, but a failure is a sentence. */
bool fd_write_file(const char *path, const char *text, struct err *err);

bool fd_set_blocking(int fd, bool blocking, struct err *err);

/*
 * The output FD of our caller, or a descriptor of our own for it that never blocks, where
 * FD is a pipe: a non-blocking mode on FD itself would hold for all other processes that
 * share it. IS_SOCKET: use send(2) with MSG_DONTWAIT.
 */
int fd_open_output(int fd, bool *is_socket);

/* A close-on-exec pipe; ends[0] reads. */
bool fd_pipe(int ends[2], struct err *err);

/*
 * Is FD a pipe without a name? A named pipe (FIFO) is a file: a process that holds its
 * descriptor could change its mode and times.
 */
bool fd_is_pipe(int fd);

/* An anonymous file in memory that holds DATA, read position at its start. */
bool fd_memory_file(const char *name, struct str data, int *fd, struct err *err);

/*
 * Make the folders above the last name of PATH, with permissions for their owner only
 * (for the front's own files).
 */
bool fd_make_folders(const char *path, struct err *err);

/*
 * Replace BUF by the content of the file NAME beneath FOLDER_FD (or AT_FDCWD), for
 * files of /proc and the like, whose size is not known before. False when it is missing
 * or too large.
 */
bool fd_read_at(int folder_fd, const char *name, struct buf *buf);

/*
 * Replace the file PATH, with its folders, by one with TEXT that only its owner reads, whole or
 * not at all (for the front's own files).
 */
bool fd_replace_file(const char *path, struct str text, struct err *err);
/*
 * Lock the folder of PATH, which is made when it is missing, and wait for the lock. Returns the
 * descriptor that holds the lock; -1: ERR says why.
 */
int fd_lock_beside(const char *path, struct err *err);

/*
 * Folders that are held. The user of a folder has a lock on it (flock(2)) as long as the descriptor
 * is open, and a process that finds one which nobody holds removes it while holding it. So a folder may be
 * removed between the moment when it is opened and the moment when it is locked, and another one
 * may have its name by then. Both functions look again behind the lock, and try again.
 */

/*
 * Open the folder NAME of PARENT (or AT_FDCWD) and lock it, HOW as flock(2) has it. A folder that is
 * missing is made with the mode MAKES, unless that is 0. Follows no link. Returns the
 * descriptor that holds the lock, of the folder that is called NAME until its holder removes
 * it. -1 with errno: EWOULDBLOCK when another process holds it and HOW has LOCK_NB, EBUSY when
 * others remove it again and again.
 */
int fd_hold(int parent, const char *name, int how, mode_t makes);
/*
 * The same for a new folder with MODE. The last six bytes of NAME become letters and digits that
 * nobody has chosen before. It never waits: a folder that another process has locked first is left
 * to that one, and another name is tried. So HOW needs no LOCK_NB, and a program that locks
 * all that appears cannot hold up anybody: that ends with EBUSY.
 */
int fd_hold_new(int parent, char *name, int how, mode_t mode);

/* Read a whole regular file of at most MAX bytes by name (for the front's own files). */
bool fd_read_file(const char *path, size_t max, struct buf *buf, struct err *err);

/*
 * Removing one of our own folders with all its contents, and opening a folder that is
 * closed.
 */

/*
 * MODE with the permissions MORE and without set-id bits, for a chmod in a cell. The
 * filter of a cell asks the worker about a chmod with set-id bits. So a worker that set
 * them itself would wait for its own answer.
 */
static inline mode_t folder_mode_opened(mode_t mode, mode_t more)
{
	return (mode & (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)) | more;
}

/*
 * Remove PATH (NULL is allowed) and everything below it, as far as the kernel permits.
 * Links are removed, never followed. Call this only when nobody works in it any more. Needs two
 * descriptors, and is faster with as many as there are levels.
 */
void fd_folder_remove(const char *path);
/* The same for the folder NAME in the open folder PARENT. */
void fd_folder_remove_at(int parent, const char *name);

/*
 * Whole messages with descriptors, between processes of ours that share a pair of
 * SOCK_SEQPACKET sockets. (Streams of frames are process/frame.h.)
 */

/*
 * Send the SIZE bytes at DATA with COUNT descriptors, which the caller keeps. FLAGS:
 * those of sendmsg(2), besides MSG_NOSIGNAL. False with errno.
 */
bool fd_message_send(int socket, const void *data, size_t size, const int *fds,
		     size_t count, int flags);

/*
 * Receive one message of exactly SIZE bytes. Its descriptors are close-on-exec, and the
 * caller owns them. Of the COUNT places in FDS, those without a descriptor become -1;
 * further descriptors are closed. FLAGS: those of recvmsg(2). False with errno;
 * ECONNRESET at the end of the stream and for a message of another size.
 */
bool fd_message_receive(int socket, void *data, size_t size, int *fds, size_t count,
			int flags);
/* The same for a message of at most MAX bytes; *SIZE is that of the message, 1 or more. */
bool fd_message_receive_some(int socket, void *data, size_t max, size_t *size, int *fds,
			     size_t count, int flags);

/*
 * The lines of /proc/self/mountinfo (proc(5)). The caller reads the file; the parts of a
 * mount are views of its text.
 */

/* For the whole file of a machine with tens of thousands of mounts. */
enum { MOUNTS_BYTES_MAX = 16 << 20 };

struct mount {
	struct str root;  /* the mounted part of the file system; as written */
	struct str point; /* the mount point; as written (fd_mounts_add_path) */
	struct str type; /* type of the file system; empty when the line ends before it */
	/* options of the file system; empty when the line ends before them */
	struct str super;
};

/*
 * Take the next mount from *REST, in the order of mounting. A line without a mount
 * point is skipped. False when none is left.
 */
bool fd_mounts_next(struct str *rest, struct mount *mount);

/* Append PATH decoded: the kernel writes "\040" for a blank. False when OUT is full. */
bool fd_mounts_add_path(struct str path, struct buf *out);
