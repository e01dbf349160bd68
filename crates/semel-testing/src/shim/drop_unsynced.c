/* A power cut for tests, to be preloaded into a process (LD_PRELOAD).
 *
 * Files below SHIM_REAL are written as usual. Beside them, below SHIM_SHADOW, lies what a disk would hold if the power went now:
 * a file's writes get there only when the file is synced, all of them in their order. When the process is killed, what it had
 * not synced is in the real file (the kernel has it) and not in the shadow. With SHIM_EARLY set (to a seed), about half of the
 * writes get to the shadow at once, in an order of their own: a disk may well write what nobody has asked it to sync.
 *
 * What is simplified: a file's name becomes durable with its first sync (as on ext4 and XFS), and removing a file is durable at
 * once. Memory-mapped writes are not seen: of SQLite's files only the -shm is mapped, and recovery does not read it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 256
#define DESCRIPTORS 4096

/* A write, or a truncation where data is null and offset the new length. */
struct change {
    struct change *next;
    off_t offset;
    size_t length;
    char *data;
};

struct file {
    char name[NAME_MAX + 1];
    struct change *first, *last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file files[FILES];
static struct file *open_files[DESCRIPTORS];

static void fail(const char *what) {
    /* A shim that loses its way would make the test pass for nothing. */
    fprintf(stderr, "drop_unsynced: %s: %s\n", what, strerror(errno));
    abort();
}

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) fail(name);
    return found;
}

#define REAL_AS(variable, type, name) \
    static __typeof__(type) variable; \
    if (!variable) variable = (__typeof__(type))real(name)
#define REAL(type, name) REAL_AS(real_call, type, name)

/* The file's name below SHIM_REAL, or null where it is none of ours. */
static const char *below(const char *path) {
    const char *directory = getenv("SHIM_REAL");
    if (!directory || !path) return NULL;
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) != 0 || path[length] != '/') return NULL;
    const char *name = path + length + 1;
    return *name && !strchr(name, '/') ? name : NULL;
}

static void shadow_path(char *path, const char *name) {
    const char *directory = getenv("SHIM_SHADOW");
    if (!directory) fail("SHIM_SHADOW is not set");
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX) fail("the path is too long");
}

static struct file *file_of(const char *name) {
    for (int at = 0; at < FILES; at++) {
        if (!files[at].name[0]) strncpy(files[at].name, name, NAME_MAX);
        if (strcmp(files[at].name, name) == 0) return &files[at];
    }
    fail("too many files");
    return NULL;
}

static void forget_changes(struct file *file) {
    while (file->first) {
        struct change *change = file->first;
        file->first = change->next;
        free(change->data);
        free(change);
    }
    file->last = NULL;
}

static int shadow_of(const struct file *file) {
    REAL(int (*)(const char *, int, ...), "open");
    char path[PATH_MAX];
    shadow_path(path, file->name);
    int fd = real_call(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) fail(path);
    return fd;
}

static void apply(int fd, const struct change *change) {
    REAL_AS(real_pwrite, ssize_t (*)(int, const void *, size_t, off_t), "pwrite");
    REAL_AS(real_ftruncate, int (*)(int, off_t), "ftruncate");
    if (!change->data) {
        if (real_ftruncate(fd, change->offset) != 0) fail("ftruncate");
    } else if (real_pwrite(fd, change->data, change->length, change->offset) != (ssize_t)change->length) {
        fail("pwrite");
    }
}

static void close_shadow(int fd) {
    REAL(int (*)(int), "close");
    real_call(fd);
}

static int goes_early(void) {
    static unsigned int seed;
    const char *text = getenv("SHIM_EARLY");
    if (!text) return 0;
    if (!seed) seed = (unsigned int)strtoul(text, NULL, 10) | 1;
    return rand_r(&seed) % 2;
}

static void note(struct file *file, off_t offset, const void *data, size_t length) {
    struct change *change = calloc(1, sizeof *change);
    if (!change) fail("no memory");
    change->offset = offset;
    if (data) {
        change->length = length;
        change->data = malloc(length ? length : 1);
        if (!change->data) fail("no memory");
        memcpy(change->data, data, length);
    }
    if (file->last) file->last->next = change; else file->first = change;
    file->last = change;
    if (data && goes_early()) {
        int fd = shadow_of(file);
        apply(fd, change);
        close_shadow(fd);
    }
}

static struct file *watched(int fd) {
    return fd >= 0 && fd < DESCRIPTORS ? open_files[fd] : NULL;
}

static void opened(int fd, const char *path, int flags) {
    if (fd < 0) return;
    const char *name = below(path);
    pthread_mutex_lock(&lock);
    if (fd >= DESCRIPTORS) { if (name) fail("too many descriptors"); }
    else {
        open_files[fd] = name ? file_of(name) : NULL;
        if (name && (flags & O_TRUNC)) note(open_files[fd], 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
}

/* The changes reach the disk. */
static void flush(struct file *file) {
    int fd = shadow_of(file);
    for (struct change *change = file->first; change; change = change->next) apply(fd, change);
    close_shadow(fd);
    forget_changes(file);
}

#define OPEN(symbol)                                                            \
    int symbol(const char *path, int flags, ...) {                              \
        REAL(int (*)(const char *, int, ...), #symbol);                         \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                           \
        int fd = real_call(path, flags, mode);                                  \
        opened(fd, path, flags);                                                \
        return fd;                                                              \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(symbol)                                                          \
    int symbol(int directory, const char *path, int flags, ...) {               \
        REAL(int (*)(int, const char *, int, ...), #symbol);                    \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                           \
        int fd = real_call(directory, path, flags, mode);                       \
        opened(fd, path, flags);                                                \
        return fd;                                                              \
    }
OPENAT(openat)
OPENAT(openat64)

#define PWRITE(symbol, offset_type)                                             \
    ssize_t symbol(int fd, const void *data, size_t length, offset_type offset) { \
        REAL(ssize_t (*)(int, const void *, size_t, offset_type), #symbol);     \
        pthread_mutex_lock(&lock);                                              \
        ssize_t written = real_call(fd, data, length, offset);                  \
        struct file *file = watched(fd);                                        \
        if (file && written > 0) note(file, offset, data, (size_t)written);     \
        pthread_mutex_unlock(&lock);                                            \
        return written;                                                         \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int fd, const void *data, size_t length) {
    REAL(ssize_t (*)(int, const void *, size_t), "write");
    if (!watched(fd)) return real_call(fd, data, length);
    pthread_mutex_lock(&lock);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = real_call(fd, data, length);
    struct file *file = watched(fd);
    if (file && written > 0) note(file, offset, data, (size_t)written);
    pthread_mutex_unlock(&lock);
    return written;
}

#define FTRUNCATE(symbol, offset_type)                                          \
    int symbol(int fd, offset_type length) {                                    \
        REAL(int (*)(int, offset_type), #symbol);                               \
        pthread_mutex_lock(&lock);                                              \
        int outcome = real_call(fd, length);                                    \
        struct file *file = watched(fd);                                        \
        if (file && outcome == 0) note(file, length, NULL, 0);                  \
        pthread_mutex_unlock(&lock);                                            \
        return outcome;                                                         \
    }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define SYNC(symbol)                                                            \
    int symbol(int fd) {                                                        \
        REAL(int (*)(int), #symbol);                                            \
        struct file *file = watched(fd);                                        \
        if (!file) return real_call(fd);                                        \
        /* The lock is held throughout: no write slips in between the sync and its shadow. */ \
        pthread_mutex_lock(&lock);                                              \
        int outcome = real_call(fd);                                            \
        if (outcome == 0) flush(file);                                          \
        pthread_mutex_unlock(&lock);                                            \
        return outcome;                                                         \
    }
SYNC(fsync)
SYNC(fdatasync)

int close(int fd) {
    REAL(int (*)(int), "close");
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < DESCRIPTORS) open_files[fd] = NULL;
    pthread_mutex_unlock(&lock);
    return real_call(fd);
}

int unlink(const char *path) {
    REAL(int (*)(const char *), "unlink");
    int outcome = real_call(path);
    const char *name = below(path);
    if (outcome == 0 && name) {
        char shadow[PATH_MAX];
        pthread_mutex_lock(&lock);
        forget_changes(file_of(name));
        shadow_path(shadow, name);
        real_call(shadow);
        pthread_mutex_unlock(&lock);
    }
    return outcome;
}

/* Nothing that writes behind our back may go unnoticed. */
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    REAL(ssize_t (*)(int, const struct iovec *, int, off_t), "pwritev");
    if (watched(fd)) fail("pwritev is not followed");
    return real_call(fd, parts, count, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    REAL(int (*)(int, int, off_t, off_t), "fallocate");
    if (watched(fd)) fail("fallocate is not followed");
    return real_call(fd, mode, offset, length);
}

int rename(const char *from, const char *to) {
    REAL(int (*)(const char *, const char *), "rename");
    if (below(from) || below(to)) fail("rename is not followed");
    return real_call(from, to);
}
