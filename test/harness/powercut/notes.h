/* What the shim knows and notes; see shim.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, MKDIR, ANSWER, CONTENT, FAULT, UNKNOWN };
enum { FAIL_NOTHING, FAIL_SYNC, FAIL_WRITE, FAIL_CHANGE, DIE };
enum { IN_ANY, IN_LOG, IN_DATABASE };

struct head {
  uint32_t type, size;
  uint64_t inode;
  int64_t a, b;
};

struct control {
  volatile int32_t kind, error, left, files;
};

/* Descriptors above this are not the data folder's: a server has a handful of them. */
#define FDS 65536
/* Recorded bytes of a response: its head, which contains the request id. */
#define ANSWER_BYTES 600
/* Descriptors above this are no sockets of these runs. */
#define SOCKETS 4096
/* Writes of at least this size are always recorded: the log is preallocated with larger ones. */
#define LARGE_BYTES 65536
/* Instead of an offset: where the descriptor itself stands, or the file ends. */
#define OWN_PLACE ((off64_t)-1)
/* Duration of a sync, so that other threads write during it, and requests gather as on a disk. */
#define SYNC_MICROSECONDS 300

static struct file {
  uint64_t inode;
  int kind;
} files[FDS];

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int trace = -1;
static const char *root;
static size_t root_size;
static struct control *control;
static int64_t syncs;
static useconds_t sync_microseconds;

/* A system call from a place of our own. */
long direct_syscall(long number, long a, long b, long c, long d);
extern const char direct_syscall_end[];
__asm__(
    ".text\n"
    "direct_syscall:\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  mov %rdx, %rsi\n"
    "  mov %rcx, %rdx\n"
    "  mov %r8, %r10\n"
    "  syscall\n"
    "direct_syscall_end:\n"
    "  ret\n");

static void trap_writes(void);

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("POWERCUT_TRACE");
  const char *delay = getenv("POWERCUT_SYNC_US");
  root = getenv("POWERCUT_ROOT");
  sync_microseconds = delay != NULL ? (useconds_t)atol(delay) : path == NULL ? 0 : SYNC_MICROSECONDS;
  if (path == NULL || root == NULL) return;
  root_size = strlen(root);
  int fd = REAL(open64)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  /* Out of the way of the low numbers, which programs expect to be theirs. */
  trace = fcntl(fd, F_DUPFD_CLOEXEC, 900);
  if (trace < 0) abort();
  REAL(close)(fd);
  trap_writes();
  const char *controls = getenv("POWERCUT_CONTROL");
  if (controls == NULL) return;
  fd = REAL(open64)(controls, O_RDWR | O_CLOEXEC, 0);
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (control == MAP_FAILED) abort();
  REAL(close)(fd);
}

static void note(uint32_t type, uint64_t inode, int64_t a, int64_t b, const void *bytes, size_t size) {
  struct head head = {type, (uint32_t)size, inode, a, b};
  if (direct_syscall(SYS_write, trace, (long)&head, sizeof head, 0) != (long)sizeof head) abort();
  if (size > 0 && direct_syscall(SYS_write, trace, (long)bytes, (long)size, 0) != (long)size) abort();
}

static void note_text(uint32_t type, uint64_t inode, const char *text) {
  note(type, inode, 0, 0, text, strlen(text));
}

/* The part of a path below the folder ("" for itself); NULL when it is elsewhere, or no file that outlives the process. */
static const char *below(const char *path) {
  if (trace < 0 || path == NULL || strncmp(path, root, root_size) != 0) return NULL;
  if (path[root_size] != '\0' && path[root_size] != '/') return NULL;
  size_t size = strlen(path);
  if (size > 4 && strcmp(path + size - 4, "-shm") == 0) return NULL;
  return path[root_size] == '/' ? path + root_size + 1 : path + root_size;
}

static struct file *known(int fd) {
  return trace >= 0 && fd >= 0 && fd < FDS && files[fd].inode != 0 ? &files[fd] : NULL;
}

static int ends_with(const char *path, const char *end) {
  size_t size = strlen(path), end_size = strlen(end);
  return size >= end_size && strcmp(path + size - end_size, end) == 0;
}

static int kind_of(const char *path) {
  if (ends_with(path, ".db-wal")) return IN_LOG;
  return ends_with(path, ".db") ? IN_DATABASE : IN_ANY;
}

/* Whether an operation of this kind is to fail now; errno says how. The order is held. */
static int fails(int kind, int file_kind, const char *what) {
  if (control == NULL || control->kind == FAIL_NOTHING || control->left <= 0) return 0;
  if (control->kind == DIE) {
    /* Between two operations, so that the notes tell exactly what the system has. */
    control->left -= 1;
    if (control->left == 0) kill(getpid(), SIGKILL);
    return 0;
  }
  int hit = control->kind == kind || (control->kind == FAIL_CHANGE && kind != FAIL_NOTHING);
  if (!hit || (control->files != IN_ANY && control->files != file_kind)) return 0;
  control->left -= 1;
  note(FAULT, 0, control->error, 0, what, strlen(what));
  errno = control->error;
  return 1;
}
