/*
 * Stands between a server and the C library (LD_PRELOAD). Of every file below one folder it notes what is written, cut,
 * synced, made, renamed and removed, in the order in which it happens, and beside it which answers leave. It can let
 * operations fail. It never syncs for real: what is on the disk after a power cut is worked out from the notes.
 *
 *   POWERCUT_ROOT     the folder, as an absolute path without links
 *   POWERCUT_TRACE    where the notes are appended to; without it nothing is noted, and syncs cost nothing
 *   POWERCUT_CONTROL  a file of four int32: what fails, with what error, how often, in which files (see below)
 *
 * A note is a head of 32 bytes (uint32 type, uint32 bytes that follow, uint64 inode, int64 a, int64 b) and what follows.
 * The readers of both are trace.ts and faults.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
/* Of an answer: its head, which has the request's id. */
#define ANSWER_BYTES 600
/* How long a sync takes, so that other threads write while it is under way, and requests gather as on a disk. */
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

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("POWERCUT_TRACE");
  root = getenv("POWERCUT_ROOT");
  if (path == NULL || root == NULL) return;
  root_size = strlen(root);
  int fd = REAL(open64)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  /* Out of the way of the low numbers, which programs expect to be theirs. */
  trace = fcntl(fd, F_DUPFD_CLOEXEC, 900);
  if (trace < 0) abort();
  REAL(close)(fd);
  const char *controls = getenv("POWERCUT_CONTROL");
  if (controls == NULL) return;
  fd = REAL(open64)(controls, O_RDWR | O_CLOEXEC, 0);
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (control == MAP_FAILED) abort();
  REAL(close)(fd);
}

static void note(uint32_t type, uint64_t inode, int64_t a, int64_t b, const void *bytes, size_t size) {
  struct head head = {type, (uint32_t)size, inode, a, b};
  if (REAL(write)(trace, &head, sizeof head) != (ssize_t)sizeof head) abort();
  if (size > 0 && REAL(write)(trace, bytes, size) != (ssize_t)size) abort();
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

static int opened(int fd, const char *name, int existed, int flags) {
  struct stat64 is;
  if (fd < 0 || fd >= FDS || fstat64(fd, &is) != 0 || !S_ISREG(is.st_mode)) return fd;
  files[fd] = (struct file){is.st_ino, kind_of(name)};
  if (!existed) note_text(CREATE, is.st_ino, name);
  else if (flags & O_TRUNC) note(TRUNCATE, is.st_ino, 0, 0, NULL, 0);
  return fd;
}

#define OPEN(call)                                                              \
  const char *name = below(path);                                               \
  if (name == NULL) return call;                                                \
  pthread_mutex_lock(&order);                                                   \
  int existed = access(path, F_OK) == 0;                                        \
  int writes = (flags & O_ACCMODE) != O_RDONLY;                                 \
  int failed = writes && control != NULL && control->error == EROFS && fails(FAIL_CHANGE, kind_of(name), "open"); \
  int fd = failed ? -1 : opened(call, name, existed, flags);                    \
  pthread_mutex_unlock(&order);                                                 \
  return fd

#define MODE                      \
  va_list arguments;              \
  va_start(arguments, flags);     \
  mode_t mode = va_arg(arguments, mode_t); \
  va_end(arguments)

int open(const char *path, int flags, ...) {
  MODE;
  OPEN(REAL(open)(path, flags, mode));
}

int open64(const char *path, int flags, ...) {
  MODE;
  OPEN(REAL(open64)(path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...) {
  MODE;
  OPEN(REAL(openat)(folder, path, flags, mode));
}

int close(int fd) {
  if (known(fd) != NULL) files[fd].inode = 0;
  return REAL(close)(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  struct file *file = known(fd);
  if (file == NULL) return REAL(pwrite64)(fd, bytes, size, at);
  pthread_mutex_lock(&order);
  ssize_t result = -1;
  int full = control != NULL && control->error == ENOSPC;
  if (!fails(FAIL_WRITE, file->kind, "write")) {
    result = REAL(pwrite64)(fd, bytes, size, at);
  } else if (full && size > 1) {
    /* A disk that becomes full takes what there is room for; the next attempt takes nothing. */
    control->left += 1;
    result = REAL(pwrite64)(fd, bytes, size / 2 < 256 ? 1 : size / 2, at);
  }
  int error = errno;
  if (result > 0) note(WRITE, file->inode, at, 0, bytes, (size_t)result);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  struct file *file = known(fd);
  if (file != NULL) note_text(UNKNOWN, file->inode, "write");
  return REAL(write)(fd, bytes, size);
}

static int cut(int fd, off64_t size) {
  struct file *file = known(fd);
  if (file == NULL) return REAL(ftruncate64)(fd, size);
  pthread_mutex_lock(&order);
  int result = fails(FAIL_WRITE, file->kind, "ftruncate") ? -1 : REAL(ftruncate64)(fd, size);
  int error = errno;
  if (result == 0) note(TRUNCATE, file->inode, size, 0, NULL, 0);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int ftruncate64(int fd, off64_t size) { return cut(fd, size); }
int ftruncate(int fd, off_t size) { return cut(fd, size); }

int fallocate(int fd, int mode, off_t at, off_t size) {
  struct file *file = known(fd);
  if (file != NULL) note_text(UNKNOWN, file->inode, "fallocate");
  return REAL(fallocate)(fd, mode, at, size);
}

/* A file that was opened past the C library: what it holds is noted when it is synced or renamed. */
static void note_content(int fd, const char *name, uint64_t inode, off64_t size) {
  char *bytes = malloc((size_t)size + 1);
  if (bytes == NULL || pread64(fd, bytes, (size_t)size, 0) != size) abort();
  note_text(CREATE, inode, name);
  note(CONTENT, inode, 0, 0, bytes, (size_t)size);
  free(bytes);
}

/*
 * The name below the folder of a descriptor that was opened past us, such as a folder's; NULL when it is elsewhere. The order
 * is held.
 */
static const char *look(int fd, char path[PATH_MAX], uint64_t *inode) {
  char link[64];
  struct stat64 is;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, PATH_MAX - 1);
  if (size < 0 || fstat64(fd, &is) != 0) return NULL;
  path[size] = '\0';
  const char *name = below(path);
  if (name == NULL) return NULL;
  if (S_ISREG(is.st_mode)) {
    int reading = REAL(open64)(path, O_RDONLY | O_CLOEXEC);
    if (reading < 0) return NULL;
    note_content(reading, name, is.st_ino, is.st_size);
    REAL(close)(reading);
  }
  *inode = is.st_ino;
  return name;
}

static int sync_file(int fd) {
  if (trace < 0) return 0;
  struct file *file = known(fd);
  int kind = file == NULL ? IN_ANY : file->kind;
  uint64_t inode = file == NULL ? 0 : file->inode;
  char path[PATH_MAX];
  pthread_mutex_lock(&order);
  const char *name = file == NULL ? look(fd, path, &inode) : "";
  int64_t number = ++syncs;
  if (name != NULL) note(SYNC_BEGIN, inode, number, 0, name, strlen(name));
  pthread_mutex_unlock(&order);
  if (name == NULL) return 0;
  usleep(SYNC_MICROSECONDS);
  pthread_mutex_lock(&order);
  int failed = fails(FAIL_SYNC, kind, "sync");
  int error = errno;
  note(SYNC_END, inode, number, failed ? error : 0, NULL, 0);
  pthread_mutex_unlock(&order);
  errno = error;
  return failed ? -1 : 0;
}

int fsync(int fd) { return sync_file(fd); }
int fdatasync(int fd) { return sync_file(fd); }

int rename(const char *from, const char *to) {
  const char *old = below(from), *new = below(to);
  if (old == NULL || new == NULL) return REAL(rename)(from, to);
  pthread_mutex_lock(&order);
  int result = fails(FAIL_CHANGE, kind_of(new), "rename") ? -1 : REAL(rename)(from, to);
  int error = errno;
  if (result == 0) {
    char names[2 * PATH_MAX];
    int size = snprintf(names, sizeof names, "%s%c%s", old, '\0', new);
    note(RENAME, 0, 0, 0, names, (size_t)size);
  }
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  if (below(from) != NULL || below(to) != NULL) return rename(from, to);
  return REAL(renameat)(from_folder, from, to_folder, to);
}

int unlink(const char *path) {
  const char *name = below(path);
  if (name == NULL) return REAL(unlink)(path);
  pthread_mutex_lock(&order);
  int result = fails(FAIL_CHANGE, kind_of(name), "unlink") ? -1 : REAL(unlink)(path);
  int error = errno;
  if (result == 0) note_text(UNLINK, 0, name);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int unlinkat(int folder, const char *path, int flags) {
  if (below(path) != NULL && flags == 0) return unlink(path);
  if (below(path) != NULL) note_text(UNKNOWN, 0, "unlinkat");
  return REAL(unlinkat)(folder, path, flags);
}

int link(const char *from, const char *to) {
  if (below(to) != NULL) note_text(UNKNOWN, 0, "link");
  return REAL(link)(from, to);
}

int mkdir(const char *path, mode_t mode) {
  const char *name = below(path);
  if (name == NULL) return REAL(mkdir)(path, mode);
  pthread_mutex_lock(&order);
  struct stat64 is;
  int result = fails(FAIL_CHANGE, IN_ANY, "mkdir") ? -1 : REAL(mkdir)(path, mode);
  int error = errno;
  if (result == 0 && stat64(path, &is) == 0) note_text(MKDIR, is.st_ino, name);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

static int is_answer(const void *bytes, size_t size) {
  return trace >= 0 && size >= 8 && memcmp(bytes, "HTTP/1.1", 8) == 0;
}

/* Before it leaves: whoever has it may kill this process at once. */
static void note_answer(const void *bytes, size_t size) {
  pthread_mutex_lock(&order);
  note(ANSWER, 0, 0, 0, bytes, size < ANSWER_BYTES ? size : ANSWER_BYTES);
  pthread_mutex_unlock(&order);
}

ssize_t send(int socket, const void *bytes, size_t size, int flags) {
  if (is_answer(bytes, size)) note_answer(bytes, size);
  return REAL(send)(socket, bytes, size, flags);
}

/* Head and body of a long answer leave as two pieces. */
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  const struct iovec *first = message->msg_iov;
  if (message->msg_iovlen > 0 && is_answer(first->iov_base, first->iov_len))
    note_answer(first->iov_base, first->iov_len);
  return REAL(sendmsg)(socket, message, flags);
}
