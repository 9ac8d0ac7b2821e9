// A disk that keeps what was synced, and loses what was not: for the tests of what a failed sync leaves behind.
//
// Preloaded into a server (LD_PRELOAD), it follows the writes to its database file and its log, and keeps a second
// copy of both in the folder that SYNCED_DISK names: in it stands only what a sync has confirmed. The first sync of a
// process writes all of the file: what a process leaves that is killed stays in the system's memory. Files in that
// folder make syncs fail or wait, "db" or "wal" in the place of the X:
//   fail-X       they fail with EIO; and as some systems do, all that was to be synced counts as clean from then on, and
//                no later sync writes it
//   fail-X-once  the same for one sync, which removes the file
//   hold-X       they wait as long as the file is there
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DB, LOG, KINDS };
static const char *NAMES[KINDS] = {"db", "wal"};
static const char *SUFFIXES[KINDS] = {"/ninefold.db", "/ninefold.db-wal"};
/** A new database is synced under this name before it gets its own. */
static const char *NEW_DATABASE = "/ninefold.db.new";

struct range { off_t from, to; };
/** What was written since the last sync, and whether the file was cut. */
static struct { struct range *ranges; size_t count, room; int cut, seen; } pending[KINDS];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static int ends_with(const char *path, size_t length, const char *suffix) {
  size_t size = strlen(suffix);
  return length >= size && strcmp(path + length - size, suffix) == 0;
}

static int kind_of(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return -1;
  path[length] = 0;
  if (ends_with(path, length, NEW_DATABASE)) return DB;
  for (int kind = 0; kind < KINDS; kind += 1)
    if (ends_with(path, length, SUFFIXES[kind])) return kind;
  return -1;
}

/** Whether the folder holds a file of this name; its path is left in `path`. */
static int told(char *path, size_t room, const char *what, int kind, const char *how) {
  snprintf(path, room, "%s/%s-%s%s", getenv("SYNCED_DISK"), what, NAMES[kind], how);
  return access(path, F_OK) == 0;
}

static void note_range(int kind, off_t from, off_t size) {
  if (pending[kind].count == pending[kind].room) {
    pending[kind].room = pending[kind].room * 2 + 256;
    pending[kind].ranges = realloc(pending[kind].ranges, pending[kind].room * sizeof(struct range));
    if (pending[kind].ranges == NULL) abort();
  }
  // The system keeps files by pages: what is written dirties the whole of each.
  pending[kind].ranges[pending[kind].count++] =
      (struct range){from & ~(off_t)4095, (from + size + 4095) & ~(off_t)4095};
}

static void note_write(int fd, off_t from, ssize_t size) {
  int kind = size > 0 ? kind_of(fd) : -1;
  if (kind < 0) return;
  pthread_mutex_lock(&guard);
  note_range(kind, from, size);
  pthread_mutex_unlock(&guard);
}

static void keep(int fd, int kind) {
  char path[4096], buffer[65536];
  snprintf(path, sizeof path, "%s%s", getenv("SYNCED_DISK"), SUFFIXES[kind]);
  int disk = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  struct stat status;
  if (disk < 0 || fstat(fd, &status) != 0) abort();
  if (!pending[kind].seen) {
    note_range(kind, 0, status.st_size);
    pending[kind].cut = pending[kind].seen = 1;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int source = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t (*write_really)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
  int (*cut_really)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate64");
  for (size_t index = 0; index < pending[kind].count; index += 1) {
    struct range range = pending[kind].ranges[index];
    for (off_t at = range.from; at < range.to;) {
      size_t wanted = range.to - at < (off_t)sizeof buffer ? (size_t)(range.to - at) : sizeof buffer;
      ssize_t got = pread(source, buffer, wanted, at);
      if (got <= 0) break;
      if (write_really(disk, buffer, got, at) != got) abort();
      at += got;
    }
  }
  if (pending[kind].cut && cut_really(disk, status.st_size) != 0) abort();
  // Not closed: a process that closes a file once loses its locks on it, and with them SQLite's.
  if (kind == LOG) close(source);
  close(disk);
}

static int sync_or_fail(int fd, const char *how) {
  char path[4096];
  int kind = kind_of(fd);
  if (kind >= 0) {
    while (told(path, sizeof path, "hold", kind, "")) usleep(1000);
    pthread_mutex_lock(&guard);
    int once = told(path, sizeof path, "fail", kind, "-once");
    if (once) unlink(path);
    int fails = once || told(path, sizeof path, "fail", kind, "");
    if (!fails) keep(fd, kind);
    pending[kind].count = 0;
    pending[kind].cut = 0;
    pthread_mutex_unlock(&guard);
    if (fails) {
      errno = EIO;
      return -1;
    }
  }
  int (*really)(int) = dlsym(RTLD_NEXT, how);
  return really(fd);
}

int fsync(int fd) { return sync_or_fail(fd, "fsync"); }
int fdatasync(int fd) { return sync_or_fail(fd, "fdatasync"); }

static ssize_t write_at(const char *how, int fd, const void *bytes, size_t size, off_t at) {
  ssize_t (*really)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, how);
  ssize_t written = really(fd, bytes, size, at);
  note_write(fd, at, written);
  return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return write_at("pwrite", fd, bytes, size, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return write_at("pwrite64", fd, bytes, size, at); }

static int cut(const char *how, int fd, off_t size) {
  int (*really)(int, off_t) = dlsym(RTLD_NEXT, how);
  int result = really(fd, size);
  int kind = result == 0 ? kind_of(fd) : -1;
  if (kind >= 0) {
    pthread_mutex_lock(&guard);
    pending[kind].cut = 1;
    pthread_mutex_unlock(&guard);
  }
  return result;
}

int ftruncate(int fd, off_t size) { return cut("ftruncate", fd, size); }
int ftruncate64(int fd, off_t size) { return cut("ftruncate64", fd, size); }
