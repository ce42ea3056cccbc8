/* filter_calls: the lists of calls; see filter_calls.h. */
#include "sandbox/filter_calls.h"

#include <stddef.h>

/* Asked for on purpose, and nothing else would do: the worker is told of each. */
const char *const calls_explained[] = {
	/* mounts and roots */
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"open_tree",
	"move_mount",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"open_by_handle_at",
	"swapon",
	"swapoff",
	"quotactl",
	/* namespaces */
	"setns",
	/* the kernel itself */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"syslog",
	"acct",
	"iopl",
	"ioperm",
	"vhangup",
	"fanotify_init",
	/* clocks and names */
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"sethostname",
	"setdomainname",
	/* keyrings */
	"add_key",
	"request_key",
	"keyctl",
	NULL,
};

/* Tried in passing, by programs that have another way. */
const char *const calls_refused[] = {
	"name_to_handle_at",
	"nfsservctl",
	"process_vm_writev",
	"kcmp",
	"migrate_pages",
	"move_pages",
	"create_module",
	"get_kernel_syms",
	"query_module",
	"lookup_dcookie",
	"uselib",
	"ustat",
	"sysfs",
	"_sysctl",
	"vm86",
	"vm86old",
	"modify_ldt",
	"afs_syscall",
	NULL,
};

const int calls_refused_numbers[] = {
	CALL_PIDFD_GETFD,  CALL_PROCESS_MADVISE,   CALL_MOUNT_SETATTR,  CALL_QUOTACTL_FD,
	CALL_MEMFD_SECRET, CALL_LSM_SET_SELF_ATTR, CALL_OPEN_TREE_ATTR, -1,
};

/* Programs try these and fall back when they do not exist. */
const char *const calls_absent[] = {
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	NULL,
};

/* Contact with processes outside through names of the host that no path rule judges. */
const char *const calls_refused_outside[] = {
	"bind",   "connect",    "listen", /* sockets of the host, named and abstract */
	"shmget", "shmat",      "shmctl",  "shmdt",     "semget",
	"semop",  "semtimedop", "semctl",  "msgget",    "msgsnd",
	"msgrcv", "msgctl",     "mq_open", "mq_unlink", NULL,
};

/* Programs ask at times and go on without; a watch would tell of any folder's names. */
const char *const calls_absent_outside[] = {
	"inotify_init",
	"inotify_init1",
	NULL,
};

const char *const calls_unsupported_outside[] = {
	"setxattr",     "lsetxattr",    "fsetxattr", "removexattr",
	"lremovexattr", "fremovexattr", NULL,
};

const int calls_unsupported_outside_numbers[] = {
	CALL_SETXATTRAT,
	CALL_REMOVEXATTRAT,
	CALL_FILE_SETATTR,
	-1,
};

const char *const calls_of_attributes[] = {
	"chmod",    "fchmod", "fchmodat", "chown",     "lchown",    "fchown",
	"fchownat", "utime",  "utimes",   "futimesat", "utimensat", NULL,
};

/* A filter cannot tell whose pid a number is: without a domain these are all refused. */
const char *const calls_of_signals[] = {
	"tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
	NULL,
};
