// io: the only room that touches files. Comes in: paths and bytes. Goes out: durable files, whole or not at all.
// Paths are UTF-8. Every failed system call is SAND_ERROR_IO with errno and a sentence naming the path; an empty path
// is SAND_ERROR_ARGUMENT, a failed allocation SAND_ERROR_MEMORY. Any thread; no call here touches another call's state.
#ifndef SAND_IO_H
#define SAND_IO_H

#include "base.h"

/// Writes the parts one after another to `path`: a temporary file beside it, every write checked, fsync, rename,
/// fsync of the folder. Until the rename the old file stays; on failure the temporary is removed.
/// A failure after the rename (fsync of the folder) is reported although the new file is in place.
/// The temporary is named "<path>.tmp.<pid>.<number>", so two processes never share one.
typedef struct SandIoPart
{
	const void *bytes;
	size_t byte_count;
} SandIoPart;
SandStatus sand_io_write_file(const char *path, const SandIoPart *parts, int part_count, SandError *err);

/// Reads a whole regular file into a block of sand_alloc (free with sand_free). Refuses files above byte_limit.
SandStatus sand_io_read_file(const char *path, size_t byte_limit, void **bytes_out, size_t *byte_count_out,
                             SandError *err);

/// A regular file that is read in parts. Any thread may read from an open one.
typedef struct SandIoFile
{
	int handle;          // the system's; -1 = not open
	uint64_t byte_count; // when it was opened
} SandIoFile;
SandStatus sand_io_open(const char *path, SandIoFile *file_out, SandError *err); // on failure handle is -1
/// Exactly byte_count bytes from offset; path is for the sentence.
SandStatus sand_io_read_at(const SandIoFile *file, const char *path, uint64_t offset, void *bytes_out,
                           size_t byte_count, SandError *err);
void sand_io_close(SandIoFile *file); // leaves handle -1; nothing was written, so nothing can be lost

/// Makes the folder and its parents; fine when it exists. Then proves that a file can be written in it, with a small
/// temporary of SAND_IO_PROBE_NAME that is removed at once.
SandStatus sand_io_make_folder(const char *path, SandError *err);
#define SAND_IO_PROBE_NAME "probe.sand"

/// Removes the folder when it is empty. A folder that is not empty, absent, busy, or that the user may not remove stays
/// and is no error.
SandStatus sand_io_remove_empty_folder(const char *path, SandError *err);

/// Calls visit with the name of every regular file of the folder (links are followed), in no order. A missing folder is
/// not an error: visit is never called. visit returns false to stop.
typedef bool SandIoVisit(void *context, const char *name, uint64_t byte_count);
SandStatus sand_io_list_folder(const char *path, SandIoVisit *visit, void *context, SandError *err);

/// Removes one file. Guarded: the name must end in ".sand" or be a temporary of such a file
/// (".sand.tmp.<pid>.<number>"), else SAND_ERROR_ARGUMENT and nothing is touched.
SandStatus sand_io_remove_own_file(const char *path, SandError *err);

/// Takes the file `path` for this process until sand_io_unlock or the end of the process, with the system's own lock,
/// which no crash leaves behind. Then the file holds `text`, *lock_out is set and holder_out (holder_bytes with the
/// NUL) is what the file held before: "" or the text of an owner that is gone. Held by another: SAND_OK too, *lock_out
/// is NULL and holder_out that one's text. On a file system without locks the text alone counts: any means held, unless
/// is_forced.
typedef struct SandIoLock SandIoLock;
SandStatus sand_io_lock(const char *path, const char *text, bool is_forced, char *holder_out, size_t holder_bytes,
                        SandIoLock **lock_out, SandError *err);
void sand_io_unlock(SandIoLock *lock); // removes the file; NULL is fine

/// The beginning of a small file that may have no size, as those of /proc, as text. Missing or unreadable: "".
void sand_io_read_text(const char *path, char *text_out, size_t text_bytes);

/// Length of the file name that the temporary `name` (no folder) stands for; 0 when it is not a temporary of ours.
size_t sand_io_temporary_stem(const char *name);

/// Test seam, process-wide: the io call number `countdown` from now (1 = the next) fails once with os_error;
/// countdown 0 = off. os_error -1 fails nothing but cuts a write or read short.
void sand_io_fail_after(uint64_t countdown, int os_error);
/// Test seam, process-wide: every io call from now on takes this much longer, as on a slow network; 0 = off.
void sand_io_slow_down(double seconds);
/// System calls made by this room so far, process-wide: the length of a fault loop.
uint64_t sand_io_call_count(void);

#endif
