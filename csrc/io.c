// io: the only room that touches files. Comes in: paths and bytes. Goes out: durable files, whole or not at all.
// Every system call goes through one of the call_* functions, which count it, let the test seam fail it, and repeat it
// after a signal (EINTR).
#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHOWN_PATH_BYTES 240 // of the path in a sentence, so that the reason still fits into SAND_MESSAGE_BYTES
#define WRITE_BYTES ((size_t)1 << 30) // per call: Linux moves at most 0x7ffff000 bytes at once
#define TEMPORARY_TEXT_BYTES 48       // ".tmp." + pid + "." + 64-bit number + NUL
#define TEMPORARY_TRY_LIMIT 1000      // names left over from crashed processes of the same pid that are skipped
#define SUFFIX ".sand"
#define TEMPORARY_MARK ".tmp."

static atomic_uint_fast64_t call_count;
static atomic_uint_fast64_t fault_countdown; // 0 = off, 1 = the next call fails
static atomic_int fault_error;
static atomic_uint_fast64_t delay_nanoseconds;
static atomic_uint_fast64_t temporary_number;

void sand_io_fail_after(uint64_t countdown, int os_error)
{
	atomic_store(&fault_error, os_error);
	atomic_store(&fault_countdown, countdown);
}

void sand_io_slow_down(double seconds)
{
	atomic_store(&delay_nanoseconds, seconds > 0 ? (uint_fast64_t)(seconds * 1e9) : 0);
}

uint64_t sand_io_call_count(void)
{
	return atomic_load(&call_count);
}

/// Counts one call. 0: make it. -1: move fewer bytes than asked, when it moves bytes. Else: fail with this errno.
static int next_fault(void)
{
	atomic_fetch_add(&call_count, 1);
	uint_fast64_t delay = atomic_load(&delay_nanoseconds);
	if (delay > 0)
	{
		struct timespec left = {.tv_sec = (time_t)(delay / 1000000000), .tv_nsec = (long)(delay % 1000000000)};
		while (nanosleep(&left, &left) != 0 && errno == EINTR)
		{
		}
	}
	uint_fast64_t countdown = atomic_load(&fault_countdown);
	if (countdown == 0)
	{
		return 0;
	}
	atomic_store(&fault_countdown, countdown - 1);
	return countdown == 1 ? atomic_load(&fault_error) : 0;
}

/// True when the seam fails this call; errno is set as the real call would.
static bool is_call_failed(void)
{
	int fault = next_fault();
	if (fault > 0)
	{
		errno = fault;
	}
	return fault > 0;
}

/// As is_call_failed, for calls that move bytes: a short transfer halves *byte_count, but leaves at least one.
static bool is_transfer_failed(size_t *byte_count)
{
	int fault = next_fault();
	if (fault > 0)
	{
		errno = fault;
		return true;
	}
	if (fault < 0 && *byte_count > 1)
	{
		*byte_count /= 2;
	}
	return false;
}

static int call_open(const char *path, int flags)
{
	int fd;
	do
	{
		fd = is_call_failed() ? -1 : open(path, flags | O_CLOEXEC, 0666);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

static ssize_t call_write(int fd, const void *bytes, size_t byte_count)
{
	ssize_t moved;
	do
	{
		moved = is_transfer_failed(&byte_count) ? -1 : write(fd, bytes, byte_count);
	} while (moved < 0 && errno == EINTR);
	return moved;
}

static ssize_t call_read(int fd, void *bytes, size_t byte_count)
{
	ssize_t moved;
	do
	{
		moved = is_transfer_failed(&byte_count) ? -1 : read(fd, bytes, byte_count);
	} while (moved < 0 && errno == EINTR);
	return moved;
}

static ssize_t call_pread(int fd, void *bytes, size_t byte_count, uint64_t offset)
{
	ssize_t moved;
	do
	{
		moved = is_transfer_failed(&byte_count) ? -1 : pread(fd, bytes, byte_count, (off_t)offset);
	} while (moved < 0 && errno == EINTR);
	return moved;
}

static int call_flock(int fd)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : flock(fd, LOCK_EX | LOCK_NB);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_ftruncate(int fd)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : ftruncate(fd, 0);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_fsync(int fd)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : fsync(fd);
	} while (result != 0 && errno == EINTR);
	return result;
}

/// Never repeated: after EINTR the descriptor is gone, and may already be another thread's.
static int call_close(int fd)
{
	bool is_failed = is_call_failed();
	int os_error = errno;
	int result = close(fd);
	if (is_failed)
	{
		errno = os_error;
		result = -1;
	}
	return result != 0 && errno == EINTR ? 0 : result;
}

static int call_fstat(int fd, struct stat *info)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : fstat(fd, info);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_fstatat(int folder_fd, const char *name, struct stat *info)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : fstatat(folder_fd, name, info, 0);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_rename(const char *from, const char *to)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : rename(from, to);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_unlink(const char *path)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : unlink(path);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_mkdir(const char *path)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : mkdir(path, 0777);
	} while (result != 0 && errno == EINTR);
	return result;
}

static int call_rmdir(const char *path)
{
	int result;
	do
	{
		result = is_call_failed() ? -1 : rmdir(path);
	} while (result != 0 && errno == EINTR);
	return result;
}

static DIR *call_opendir(const char *path)
{
	DIR *folder;
	do
	{
		folder = is_call_failed() ? NULL : opendir(path);
	} while (folder == NULL && errno == EINTR);
	return folder;
}

/// The next entry; NULL with errno 0 at the end, NULL with errno on failure.
static struct dirent *call_readdir(DIR *folder)
{
	struct dirent *entry;
	do
	{
		errno = 0;
		// cppcheck-suppress readdirCalled ; each call has its own DIR, for which POSIX 2008 lets readdir run in any
		// thread
		entry = is_call_failed() ? NULL : readdir(folder);
	} while (entry == NULL && errno == EINTR);
	return entry;
}

static int call_closedir(DIR *folder)
{
	bool is_failed = is_call_failed();
	int os_error = errno;
	int result = closedir(folder);
	if (is_failed)
	{
		errno = os_error;
		result = -1;
	}
	return result != 0 && errno == EINTR ? 0 : result;
}

/// What the user can do about it.
static const char *advice(int os_error)
{
	switch (os_error)
	{
	case ENOSPC:
	case EDQUOT:
		return "free some room on that disk or choose another folder";
	case EACCES:
	case EPERM:
	case EROFS:
		return "choose a folder you may write to";
	case ENOENT:
		return "check that the folder exists";
	case ENOTDIR:
	case EISDIR:
	case EEXIST:
		return "check which parts of the path are files and which are folders";
	case EFBIG:
		return "it is not a file of Barchan's, choose another folder";
	case ENAMETOOLONG:
		return "choose a shorter path";
	case EMFILE:
	case ENFILE:
		return "close other programs";
	default:
		return "check the disk or choose another folder";
	}
}

/// The one way this room reports a refused call. what: "write the file", "make the folder", ...
static SandStatus fail_io(SandError *err, int os_error, const char *what, const char *path)
{
	char reason[96];
	if (strerror_r(os_error, reason, sizeof reason) != 0)
	{
		snprintf(reason, sizeof reason, "error %d", os_error);
	}
	// The end of a long path tells more than its beginning; a UTF-8 character is not cut in two.
	size_t path_bytes = strlen(path);
	const char *shown = path;
	if (path_bytes > SHOWN_PATH_BYTES)
	{
		shown = path + path_bytes - SHOWN_PATH_BYTES;
		while (((unsigned char)*shown & 0xC0u) == 0x80u)
		{
			++shown;
		}
	}
	SandStatus status = sand_fail(err, SAND_ERROR_IO, "Cannot %s '%s%s': %s; %s", what, shown == path ? "" : "...",
	                              shown, reason, advice(os_error));
	if (err != NULL)
	{
		err->os_error = os_error;
	}
	return status;
}

static SandStatus check_path(const char *path, const char *what, SandError *err)
{
	if (path == NULL || path[0] == '\0')
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "Cannot %s: the path is empty; choose a folder", what);
	}
	return SAND_OK;
}

/// Where the file name starts in path.
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL ? path : slash + 1;
}

/// One or more digits from text; returns the first character behind them, NULL when there is none.
static const char *skip_digits(const char *text)
{
	const char *end = text + strspn(text, "0123456789");
	return end == text ? NULL : end;
}

static bool is_own_suffix(const char *name, size_t name_bytes)
{
	size_t suffix_bytes = strlen(SUFFIX);
	return name_bytes > suffix_bytes && memcmp(name + name_bytes - suffix_bytes, SUFFIX, suffix_bytes) == 0;
}

size_t sand_io_temporary_stem(const char *name)
{
	const char *mark = NULL; // the last one
	for (const char *next = strstr(name, TEMPORARY_MARK); next != NULL; next = strstr(next + 1, TEMPORARY_MARK))
	{
		mark = next;
	}
	if (mark == NULL || !is_own_suffix(name, (size_t)(mark - name)))
	{
		return 0;
	}
	const char *end = skip_digits(mark + strlen(TEMPORARY_MARK));
	if (end == NULL || *end != '.')
	{
		return 0;
	}
	end = skip_digits(end + 1);
	return end != NULL && *end == '\0' ? (size_t)(mark - name) : 0;
}

/// Makes sure that a new name in the folder survives a power cut. File systems that cannot do that say EINVAL; a folder
/// that may be written but not read says EACCES. Both are as durable as they can be.
static SandStatus sync_folder(const char *folder, SandError *err)
{
	int fd = call_open(folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
	{
		return errno == EACCES ? SAND_OK : fail_io(err, errno, "save the folder", folder);
	}
	int os_error = call_fsync(fd) != 0 ? errno : 0;
	if (call_close(fd) != 0 && os_error == 0)
	{
		os_error = errno;
	}
	if (os_error != 0 && os_error != EINVAL && os_error != ENOTSUP)
	{
		return fail_io(err, os_error, "save the folder", folder);
	}
	return SAND_OK;
}

/// sync_folder for the folder that holds path. path is changed and put back.
static SandStatus sync_parent(char *path, SandError *err)
{
	char *slash = strrchr(path, '/');
	if (slash == NULL)
	{
		return sync_folder(".", err);
	}
	if (slash == path)
	{
		return sync_folder("/", err);
	}
	*slash = '\0';
	SandStatus status = sync_folder(path, err);
	*slash = '/';
	return status;
}

/// Opens a new file beside path and writes its name to temporary (room: strlen(path) + TEMPORARY_TEXT_BYTES).
/// Returns the descriptor, or -1 with errno.
static int open_temporary(const char *path, char *temporary)
{
	int fd = -1;
	for (int i = 0; i < TEMPORARY_TRY_LIMIT && fd < 0; ++i)
	{
		size_t path_bytes = strlen(path);
		memcpy(temporary, path, path_bytes);
		snprintf(temporary + path_bytes, TEMPORARY_TEXT_BYTES, TEMPORARY_MARK "%ld.%" PRIu64, (long)getpid(),
		         (uint64_t)atomic_fetch_add(&temporary_number, 1));
		fd = call_open(temporary, O_WRONLY | O_CREAT | O_EXCL);
		if (fd < 0 && errno != EEXIST)
		{
			break;
		}
	}
	return fd;
}

/// what and path: for the sentence of a failure.
static SandStatus write_parts(int fd, const SandIoPart *parts, int part_count, const char *what, const char *path,
                              SandError *err)
{
	for (int i = 0; i < part_count; ++i)
	{
		const char *bytes = parts[i].bytes;
		size_t left = parts[i].byte_count;
		while (left > 0)
		{
			ssize_t moved = call_write(fd, bytes, left < WRITE_BYTES ? left : WRITE_BYTES);
			if (moved <= 0)
			{
				return fail_io(err, moved < 0 ? errno : EIO, what, path);
			}
			bytes += moved;
			left -= (size_t)moved;
		}
	}
	return SAND_OK;
}

SandStatus sand_io_write_file(const char *path, const SandIoPart *parts, int part_count, SandError *err)
{
	SandStatus status = check_path(path, "write a file", err);
	if (status != SAND_OK)
	{
		return status;
	}
	size_t temporary_bytes = strlen(path) + TEMPORARY_TEXT_BYTES;
	char *temporary = sand_alloc(temporary_bytes, 1);
	if (temporary == NULL)
	{
		return sand_fail_memory(err, temporary_bytes, "a file name");
	}
	int fd = open_temporary(path, temporary);
	if (fd < 0)
	{
		status = fail_io(err, errno, "write the file", path);
		sand_free(temporary);
		return status;
	}
	status = write_parts(fd, parts, part_count, "write the file", path, err);
	if (status == SAND_OK && call_fsync(fd) != 0)
	{
		status = fail_io(err, errno, "write the file", path);
	}
	if (call_close(fd) != 0 && status == SAND_OK)
	{
		status = fail_io(err, errno, "write the file", path);
	}
	if (status == SAND_OK && call_rename(temporary, path) != 0)
	{
		status = fail_io(err, errno, "write the file", path);
	}
	if (status != SAND_OK)
	{
		call_unlink(temporary); // the first failure is the one to report
	}
	else
	{
		status = sync_parent(temporary, err); // lies in the same folder as path
	}
	sand_free(temporary);
	return status;
}

/// Fills the block from fd and checks that the file ends there.
static SandStatus read_bytes(int fd, char *block, size_t byte_count, const char *path, SandError *err)
{
	size_t done = 0;
	while (done < byte_count)
	{
		size_t left = byte_count - done;
		ssize_t moved = call_read(fd, block + done, left < WRITE_BYTES ? left : WRITE_BYTES);
		if (moved < 0)
		{
			return fail_io(err, errno, "read the file", path);
		}
		if (moved == 0)
		{
			return fail_io(err, EIO, "read the whole file (it became shorter meanwhile)", path);
		}
		done += (size_t)moved;
	}
	char extra;
	ssize_t moved = call_read(fd, &extra, 1);
	if (moved < 0)
	{
		return fail_io(err, errno, "read the file", path);
	}
	if (moved > 0)
	{
		return fail_io(err, EIO, "read the whole file (it became longer meanwhile)", path);
	}
	return SAND_OK;
}

static SandStatus read_open_file(int fd, const char *path, size_t byte_limit, void **bytes_out, size_t *byte_count_out,
                                 SandError *err)
{
	struct stat info;
	if (call_fstat(fd, &info) != 0)
	{
		return fail_io(err, errno, "read the file", path);
	}
	if (!S_ISREG(info.st_mode))
	{
		return fail_io(err, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "read as a file", path);
	}
	if (info.st_size < 0 || (uint64_t)info.st_size > byte_limit)
	{
		char what[96];
		snprintf(what, sizeof what, "read the file (it has %lld bytes, expected at most %zu)", (long long)info.st_size,
		         byte_limit);
		return fail_io(err, EFBIG, what, path);
	}
	size_t byte_count = (size_t)info.st_size;
	char *block = sand_alloc(byte_count, 1);
	if (block == NULL)
	{
		return sand_fail_memory(err, byte_count, "the contents of a file");
	}
	SandStatus status = read_bytes(fd, block, byte_count, path, err);
	if (status != SAND_OK)
	{
		sand_free(block);
		return status;
	}
	*bytes_out = block;
	*byte_count_out = byte_count;
	return SAND_OK;
}

SandStatus sand_io_read_file(const char *path, size_t byte_limit, void **bytes_out, size_t *byte_count_out,
                             SandError *err)
{
	*bytes_out = NULL;
	*byte_count_out = 0;
	SandStatus status = check_path(path, "read a file", err);
	if (status != SAND_OK)
	{
		return status;
	}
	int fd = call_open(path, O_RDONLY | O_NONBLOCK); // a pipe of that name must not hold us
	if (fd < 0)
	{
		return fail_io(err, errno, "read the file", path);
	}
	status = read_open_file(fd, path, byte_limit, bytes_out, byte_count_out, err);
	if (call_close(fd) != 0 && status == SAND_OK)
	{
		status = fail_io(err, errno, "read the file", path);
		sand_free(*bytes_out);
		*bytes_out = NULL;
		*byte_count_out = 0;
	}
	return status;
}

SandStatus sand_io_open(const char *path, SandIoFile *file_out, SandError *err)
{
	*file_out = (SandIoFile){.handle = -1};
	SandStatus status = check_path(path, "read a file", err);
	if (status != SAND_OK)
	{
		return status;
	}
	int fd = call_open(path, O_RDONLY | O_NONBLOCK); // a pipe of that name must not hold us
	if (fd < 0)
	{
		return fail_io(err, errno, "read the file", path);
	}
	struct stat info;
	if (call_fstat(fd, &info) != 0)
	{
		status = fail_io(err, errno, "read the file", path);
	}
	else if (!S_ISREG(info.st_mode))
	{
		status = fail_io(err, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "read as a file", path);
	}
	if (status != SAND_OK)
	{
		call_close(fd);
		return status;
	}
	*file_out = (SandIoFile){fd, info.st_size < 0 ? 0 : (uint64_t)info.st_size};
	return SAND_OK;
}

SandStatus sand_io_read_at(const SandIoFile *file, const char *path, uint64_t offset, void *bytes_out,
                           size_t byte_count, SandError *err)
{
	char *place = bytes_out;
	while (byte_count > 0)
	{
		ssize_t moved = call_pread(file->handle, place, byte_count < WRITE_BYTES ? byte_count : WRITE_BYTES, offset);
		if (moved < 0)
		{
			return fail_io(err, errno, "read the file", path);
		}
		if (moved == 0)
		{
			return fail_io(err, EIO, "read the whole file (it became shorter meanwhile)", path);
		}
		place += moved;
		offset += (uint64_t)moved;
		byte_count -= (size_t)moved;
	}
	return SAND_OK;
}

void sand_io_close(SandIoFile *file)
{
	if (file->handle >= 0)
	{
		call_close(file->handle);
	}
	file->handle = -1;
}

/// As much text as there is from the file's start; false when a read fails.
static bool read_text(int fd, char *text_out, size_t text_bytes)
{
	size_t done = 0;
	ssize_t moved = 1;
	while (done + 1 < text_bytes && moved > 0)
	{
		moved = call_pread(fd, text_out + done, text_bytes - 1 - done, done);
		done += moved > 0 ? (size_t)moved : 0;
	}
	text_out[done] = '\0';
	return moved >= 0;
}

void sand_io_read_text(const char *path, char *text_out, size_t text_bytes)
{
	text_out[0] = '\0';
	int fd = call_open(path, O_RDONLY | O_NONBLOCK);
	if (fd >= 0)
	{
		if (!read_text(fd, text_out, text_bytes))
		{
			text_out[0] = '\0';
		}
		call_close(fd);
	}
}

struct SandIoLock
{
	int fd;
	char path[];
};

/// True when path still leads to the open file: its last owner may have removed it between our open and our lock.
static int is_same_file(int fd, const char *path)
{
	struct stat open_info, path_info;
	if (call_fstat(fd, &open_info) != 0)
	{
		return -1;
	}
	if (call_fstatat(AT_FDCWD, path, &path_info) != 0)
	{
		return errno == ENOENT ? 0 : -1;
	}
	return open_info.st_dev == path_info.st_dev && open_info.st_ino == path_info.st_ino;
}

typedef enum LockOutcome
{
	LOCK_TAKEN,
	LOCK_HELD,
	LOCK_GONE, // the file was removed meanwhile: try again
	LOCK_FAILED
} LockOutcome;

static LockOutcome take_lock(int fd, const char *path, bool is_forced, char *holder_out, size_t holder_bytes)
{
	bool is_locked = call_flock(fd) == 0;
	bool is_held = !is_locked && errno == EWOULDBLOCK;
	if (!is_locked && !is_held && errno != ENOLCK && errno != ENOTSUP && errno != ENOSYS)
	{
		return LOCK_FAILED;
	}
	int is_same = is_same_file(fd, path);
	if (is_same != 1)
	{
		return is_same == 0 ? LOCK_GONE : LOCK_FAILED;
	}
	if (!read_text(fd, holder_out, holder_bytes))
	{
		return LOCK_FAILED;
	}
	return is_held || (!is_locked && holder_out[0] != '\0' && !is_forced) ? LOCK_HELD : LOCK_TAKEN;
}

SandStatus sand_io_lock(const char *path, const char *text, bool is_forced, char *holder_out, size_t holder_bytes,
                        SandIoLock **lock_out, SandError *err)
{
	static const char what[] = "lock the cache with the file";
	*lock_out = NULL;
	holder_out[0] = '\0';
	SandStatus status = check_path(path, "lock a cache", err);
	if (status != SAND_OK)
	{
		return status;
	}
	size_t path_bytes = strlen(path) + 1;
	SandIoLock *lock = sand_alloc(1, sizeof *lock + path_bytes);
	if (lock == NULL)
	{
		return sand_fail_memory(err, sizeof *lock + path_bytes, "a lock");
	}
	memcpy(lock->path, path, path_bytes);
	LockOutcome outcome = LOCK_GONE;
	for (int i = 0; i < TEMPORARY_TRY_LIMIT && outcome == LOCK_GONE; ++i)
	{
		lock->fd = call_open(path, O_RDWR | O_CREAT);
		outcome = lock->fd < 0 ? LOCK_FAILED : take_lock(lock->fd, path, is_forced, holder_out, holder_bytes);
		if (outcome != LOCK_TAKEN && lock->fd >= 0)
		{
			int os_error = errno;
			call_close(lock->fd);
			errno = os_error;
		}
	}
	if (outcome != LOCK_TAKEN)
	{
		int os_error = outcome == LOCK_GONE ? EBUSY : errno;
		sand_free(lock);
		return outcome == LOCK_HELD ? SAND_OK : fail_io(err, os_error, what, path);
	}
	const SandIoPart part = {text, strlen(text)};
	if (call_ftruncate(lock->fd) != 0)
	{
		status = fail_io(err, errno, what, path);
	}
	if (status == SAND_OK)
	{
		status = write_parts(lock->fd, &part, 1, what, path, err);
	}
	if (status != SAND_OK)
	{
		sand_io_unlock(lock);
		return status;
	}
	*lock_out = lock;
	return SAND_OK;
}

void sand_io_unlock(SandIoLock *lock)
{
	if (lock != NULL)
	{
		call_unlink(lock->path); // first: who opens it from now on makes a new one
		call_close(lock->fd);
		sand_free(lock);
	}
}

/// One folder whose parent exists.
static SandStatus make_one_folder(char *path, SandError *err)
{
	struct stat info;
	if (call_fstatat(AT_FDCWD, path, &info) == 0)
	{
		return S_ISDIR(info.st_mode) ? SAND_OK : fail_io(err, ENOTDIR, "make the folder", path);
	}
	if (errno != ENOENT)
	{
		return fail_io(err, errno, "make the folder", path);
	}
	if (call_mkdir(path) == 0)
	{
		return sync_parent(path, err);
	}
	if (errno != EEXIST)
	{
		return fail_io(err, errno, "make the folder", path);
	}
	// Another process was faster, or it is a link that leads nowhere.
	if (call_fstatat(AT_FDCWD, path, &info) != 0)
	{
		return fail_io(err, errno, "make the folder", path);
	}
	return S_ISDIR(info.st_mode) ? SAND_OK : fail_io(err, ENOTDIR, "make the folder", path);
}

/// probe is the folder and the probe's name; temporary has room for open_temporary.
static SandStatus prove_writable(const char *probe, char *temporary, const char *folder, SandError *err)
{
	int fd = open_temporary(probe, temporary);
	if (fd < 0)
	{
		return fail_io(err, errno, "write in the folder", folder);
	}
	const SandIoPart part = {"barchan", 7};
	SandStatus status = write_parts(fd, &part, 1, "write in the folder", folder, err);
	if (call_close(fd) != 0 && status == SAND_OK)
	{
		status = fail_io(err, errno, "write in the folder", folder);
	}
	if (call_unlink(temporary) != 0 && status == SAND_OK)
	{
		status = fail_io(err, errno, "remove a file in the folder", folder);
	}
	return status;
}

SandStatus sand_io_make_folder(const char *path, SandError *err)
{
	SandStatus status = check_path(path, "make a folder", err);
	if (status != SAND_OK)
	{
		return status;
	}
	// One block: path + "/" + probe name, then room for the temporary made of it.
	size_t path_bytes = strlen(path);
	size_t probe_bytes = path_bytes + 1 + sizeof SAND_IO_PROBE_NAME;
	size_t block_bytes = 2 * probe_bytes + TEMPORARY_TEXT_BYTES;
	char *probe = sand_alloc(block_bytes, 1);
	if (probe == NULL)
	{
		return sand_fail_memory(err, block_bytes, "a folder name");
	}
	memcpy(probe, path, path_bytes + 1);
	for (size_t i = 1; i <= path_bytes && status == SAND_OK; ++i)
	{
		// The end of a component: a slash or the end, behind something that is not a slash.
		if ((probe[i] == '/' || probe[i] == '\0') && probe[i - 1] != '/')
		{
			char end = probe[i];
			probe[i] = '\0';
			status = make_one_folder(probe, err);
			probe[i] = end;
		}
	}
	if (status == SAND_OK)
	{
		snprintf(probe + path_bytes, probe_bytes - path_bytes, "/%s", SAND_IO_PROBE_NAME);
		status = prove_writable(probe, probe + probe_bytes, path, err);
	}
	sand_free(probe);
	return status;
}

SandStatus sand_io_remove_empty_folder(const char *path, SandError *err)
{
	SandStatus status = check_path(path, "remove a folder", err);
	if (status != SAND_OK || call_rmdir(path) == 0)
	{
		return status;
	}
	switch (errno)
	{
	case ENOTEMPTY:
	case EEXIST:
	case ENOENT:
	case EBUSY:
	case ENOTDIR: // a link to a folder
	case EINVAL:  // "."
	case EACCES:
	case EPERM:
	case EROFS:
		return SAND_OK;
	default:
		return fail_io(err, errno, "remove the folder", path);
	}
}

static SandStatus visit_entries(DIR *folder, const char *path, SandIoVisit *visit, void *context, SandError *err)
{
	bool is_wanted = true;
	while (is_wanted)
	{
		const struct dirent *entry = call_readdir(folder);
		if (entry == NULL)
		{
			return errno == 0 ? SAND_OK : fail_io(err, errno, "list the folder", path);
		}
		struct stat info;
		if (call_fstatat(dirfd(folder), entry->d_name, &info) != 0)
		{
			if (errno != ENOENT && errno != ELOOP) // removed meanwhile, or a link that leads nowhere
			{
				return fail_io(err, errno, "list the folder", path);
			}
		}
		else if (S_ISREG(info.st_mode))
		{
			is_wanted = visit(context, entry->d_name, (uint64_t)info.st_size);
		}
	}
	return SAND_OK;
}

SandStatus sand_io_list_folder(const char *path, SandIoVisit *visit, void *context, SandError *err)
{
	SandStatus status = check_path(path, "list a folder", err);
	if (status != SAND_OK)
	{
		return status;
	}
	DIR *folder = call_opendir(path);
	if (folder == NULL)
	{
		return errno == ENOENT ? SAND_OK : fail_io(err, errno, "list the folder", path);
	}
	status = visit_entries(folder, path, visit, context, err);
	if (call_closedir(folder) != 0 && status == SAND_OK)
	{
		status = fail_io(err, errno, "list the folder", path);
	}
	return status;
}

SandStatus sand_io_remove_own_file(const char *path, SandError *err)
{
	SandStatus status = check_path(path, "remove a file", err);
	if (status != SAND_OK)
	{
		return status;
	}
	const char *name = file_name(path);
	if (!is_own_suffix(name, strlen(name)) && sand_io_temporary_stem(name) == 0)
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT,
		                 "Refused to remove '%.*s': only files ending in '" SUFFIX "' or '" SUFFIX TEMPORARY_MARK
		                 "<pid>.<number>' are Barchan's",
		                 SHOWN_PATH_BYTES, name);
	}
	if (call_unlink(path) != 0)
	{
		return fail_io(err, errno, "remove the file", path);
	}
	return SAND_OK;
}
