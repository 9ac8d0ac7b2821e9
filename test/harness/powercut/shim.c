/*
 * Wraps the C library for a server (LD_PRELOAD). For every file below one folder it records writes, truncations, syncs,
 * creations, renames and removals in order, together with the responses that are sent. Operations that bypass the C
 * library are trapped (pwrite64, large writes) or read back when the file is synced (a file that nothing else opens). It
 * can let operations fail. It never really syncs: the content of the disk after a power cut is derived from the notes.
 *
 *   POWERCUT_ROOT     the folder, as an absolute path without links
 *   POWERCUT_TRACE    where the notes are appended to; without it nothing is noted
 *   POWERCUT_SYNC_US  how many microseconds each sync takes: 300 where notes are taken, else 0
 *   POWERCUT_CONTROL  a file of four int32: what fails, with what error, how often, in which files (see below)
 *
 * A note is a head of 32 bytes (uint32 type, uint32 bytes that follow, uint64 inode, int64 a, int64 b) and what follows.
 * The readers of both are trace.ts and control.ts.
 */
#include "notes.h"

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

ssize_t write(int fd, const void *bytes, size_t size) {
  struct file *file = known(fd);
  if (file != NULL) note_text(UNKNOWN, file->inode, "write");
  return REAL(write)(fd, bytes, size);
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  struct file *file = known(fd);
  if (file != NULL) note_text(UNKNOWN, file->inode, "fallocate");
  return REAL(fallocate)(fd, mode, at, size);
}

/* A file that is opened and written past the C library: what it holds is noted when it is synced. */
static void note_content(const char *path, const char *name, uint64_t inode, off64_t size) {
  int fd = REAL(open64)(path, O_RDONLY | O_CLOEXEC);
  char *bytes = malloc((size_t)size + 1);
  if (fd < 0 || bytes == NULL || pread64(fd, bytes, (size_t)size, 0) != size) abort();
  note_text(CREATE, inode, name);
  note(CONTENT, inode, 0, 0, bytes, (size_t)size);
  free(bytes);
  REAL(close)(fd);
}

static int is_open(uint64_t inode) {
  for (int fd = 0; fd < FDS; fd += 1)
    if (files[fd].inode == inode) return 1;
  return 0;
}

/*
 * What a descriptor stands for, also one that was opened past the C library. Its name below the folder ("" for the folder
 * itself, and for a file that is followed anyway); NULL when it is elsewhere. The order is held.
 */
static const char *look(int fd, char path[PATH_MAX], struct file *found) {
  char link[64];
  struct stat64 is;
  if (known(fd) != NULL) {
    *found = *known(fd);
    return "";
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = trace < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
  if (size < 0 || fstat64(fd, &is) != 0) return NULL;
  path[size] = '\0';
  const char *name = below(path);
  if (name == NULL) return NULL;
  *found = (struct file){is.st_ino, kind_of(name)};
  if (!S_ISREG(is.st_mode)) return name;
  if (is_open(is.st_ino)) return "";
  note_content(path, name, is.st_ino, is.st_size);
  return "";
}

static ssize_t put(int fd, const void *bytes, size_t size, off64_t at) {
  if (at == OWN_PLACE) return direct_syscall(SYS_write, fd, (long)bytes, (long)size, 0);
  return direct_syscall(SYS_pwrite64, fd, (long)bytes, (long)size, at);
}

/* Where a descriptor writes by itself. The order is held, so nobody makes the file longer meanwhile. */
static off64_t place_of(int fd) {
  struct stat64 is;
  if ((fcntl(fd, F_GETFL) & O_APPEND) == 0) return lseek64(fd, 0, SEEK_CUR);
  if (fstat64(fd, &is) != 0) abort();
  return is.st_size;
}

/* Returns the error below zero, as the system does. */
static ssize_t write_at(int fd, const void *bytes, size_t size, off64_t at) {
  char path[PATH_MAX];
  struct file file;
  pthread_mutex_lock(&order);
  ssize_t result;
  int ours = look(fd, path, &file) != NULL;
  off64_t place = ours && at == OWN_PLACE ? place_of(fd) : at;
  if (!ours) {
    result = put(fd, bytes, size, at);
  } else if (!fails(FAIL_WRITE, file.kind, "write")) {
    result = put(fd, bytes, size, at);
    if (result > 0) note(WRITE, file.inode, place, 0, bytes, (size_t)result);
  } else if (control->error == ENOSPC && size > 1) {
    /* A disk that becomes full writes as much as fits; the next attempt writes nothing. */
    control->left += 1;
    result = put(fd, bytes, size / 2 < 256 ? 1 : size / 2, at);
    if (result > 0) note(WRITE, file.inode, place, 0, bytes, (size_t)result);
  } else {
    result = -control->error;
  }
  pthread_mutex_unlock(&order);
  return result;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
  ssize_t result = known(fd) == NULL ? put(fd, bytes, size, at) : write_at(fd, bytes, size, at);
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}

/* What is written and did not come through the C library, as by node:fs. */
static void trapped(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  off64_t at = info->si_syscall == SYS_write ? OWN_PLACE : registers[REG_R10];
  (void)signal;
  registers[REG_RAX] = write_at((int)registers[REG_RDI], (const void *)registers[REG_RSI],
                                (size_t)registers[REG_RDX], at);
}

/*
 * Lets the system hand us every pwrite64, and every write that is too large for a line or an event, but our own, which are
 * told by where they come from.
 */
static void trap_writes(void) {
  uint64_t ours = (uint64_t)direct_syscall_end;
  struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LARGE_BYTES, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ours, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(ours >> 32), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (REAL(sigaction)(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    abort();
}

/* The runtime uses this signal as well, but not in these runs. */
int sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
  if (trace >= 0 && signal == SIGSYS) return 0;
  return REAL(sigaction)(signal, action, old);
}

static int cut(int fd, off64_t size) {
  char path[PATH_MAX];
  struct file file;
  if (trace < 0) return REAL(ftruncate64)(fd, size);
  pthread_mutex_lock(&order);
  int ours = look(fd, path, &file) != NULL;
  int result = ours && fails(FAIL_WRITE, file.kind, "ftruncate") ? -1 : REAL(ftruncate64)(fd, size);
  int error = errno;
  if (ours && result == 0) note(TRUNCATE, file.inode, size, 0, NULL, 0);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int ftruncate64(int fd, off64_t size) { return cut(fd, size); }
int ftruncate(int fd, off_t size) { return cut(fd, size); }

static int sync_file(int fd) {
  char path[PATH_MAX];
  struct file file;
  if (trace < 0) {
    usleep(sync_microseconds);
    return 0;
  }
  pthread_mutex_lock(&order);
  const char *name = look(fd, path, &file);
  int64_t number = ++syncs;
  if (name != NULL) note(SYNC_BEGIN, file.inode, number, 0, name, strlen(name));
  pthread_mutex_unlock(&order);
  if (name == NULL) return 0;
  usleep(sync_microseconds);
  pthread_mutex_lock(&order);
  int failed = fails(FAIL_SYNC, file.kind, "sync");
  int error = errno;
  note(SYNC_END, file.inode, number, failed ? error : 0, NULL, 0);
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

/* The beginning of a response that is not sent as one piece, as while another connection has the buffer of the runtime. */
static struct {
  size_t size;
  char bytes[ANSWER_BYTES];
} heads[SOCKETS];

/* Recorded before it is sent: its recipient may kill this process immediately. */
static void note_answer(int socket, const void *bytes, size_t size) {
  if (trace < 0 || socket < 0 || socket >= SOCKETS) return;
  int begins = size >= 8 && memcmp(bytes, "HTTP/1.1", 8) == 0;
  if (!begins && heads[socket].size == 0) return;
  pthread_mutex_lock(&order);
  size_t before = begins ? 0 : heads[socket].size;
  size_t added = size < ANSWER_BYTES - before ? size : ANSWER_BYTES - before;
  memcpy(heads[socket].bytes + before, bytes, added);
  heads[socket].size = before + added;
  if (before + added == ANSWER_BYTES || memmem(heads[socket].bytes, before + added, "\r\n\r\n", 4) != NULL) {
    note(ANSWER, 0, 0, 0, heads[socket].bytes, before + added);
    heads[socket].size = 0;
  }
  pthread_mutex_unlock(&order);
}

ssize_t send(int socket, const void *bytes, size_t size, int flags) {
  note_answer(socket, bytes, size);
  return REAL(send)(socket, bytes, size, flags);
}

/* Head and body of a long response are sent as two pieces. */
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  for (size_t piece = 0; piece < message->msg_iovlen; piece += 1)
    note_answer(socket, message->msg_iov[piece].iov_base, message->msg_iov[piece].iov_len);
  return REAL(sendmsg)(socket, message, flags);
}
