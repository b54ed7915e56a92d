// lock: one baker per cache. Comes in: a folder. Goes out: the lock, or a sentence that says who has it.
#include "lock.h"

#include "cache.h"
#include "io.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 512
#define FIELD_BYTES 80

struct SandLock
{
	SandIoLock *held;
};

/// Who an owner is.
typedef struct Owner
{
	long pid;
	unsigned long long start; // clock ticks after boot at which the process began: a pid is used again, the pair is not
	char boot[FIELD_BYTES];
	char host[FIELD_BYTES];
} Owner;

/// Start time of a process, 0 when there is none of that number.
static unsigned long long start_of(long pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	sand_io_read_text(path, text, sizeof text);
	// The second field is the program's name in brackets, which may hold anything; the start is the 22nd.
	const char *field = strrchr(text, ')');
	for (int i = 2; i < 22 && field != NULL; ++i)
	{
		field = strchr(field + 1, ' ');
	}
	return field != NULL ? strtoull(field, NULL, 10) : 0;
}

static Owner self(void)
{
	Owner owner = {.pid = (long)getpid()};
	owner.start = start_of(owner.pid);
	sand_io_read_text("/proc/sys/kernel/random/boot_id", owner.boot, sizeof owner.boot);
	owner.boot[strcspn(owner.boot, " \n")] = '\0';
	if (gethostname(owner.host, sizeof owner.host - 1) != 0)
	{
		owner.host[0] = '\0';
	}
	owner.host[strcspn(owner.host, " \n")] = '\0';
	return owner;
}

static Owner parse(const char *text)
{
	Owner owner = {0};
	char boot[FIELD_BYTES] = "", host[FIELD_BYTES] = "";
	if (sscanf(text, "barchan lock 1\npid %ld\nstart %llu\nboot %79s\nhost %79s\n", &owner.pid, &owner.start, boot,
	           host) >= 2)
	{
		memcpy(owner.boot, boot, sizeof boot);
		memcpy(owner.host, host, sizeof host);
	}
	return owner;
}

/// Surely gone: the machine was started anew since, or no process of that number and start time runs on it.
static bool is_dead(const Owner *owner, const Owner *me)
{
	if (owner->pid <= 0 || owner->boot[0] == '\0')
	{
		return false;
	}
	if (strcmp(owner->boot, me->boot) != 0)
	{
		return strcmp(owner->host, me->host) == 0 && owner->host[0] != '\0';
	}
	if (kill((pid_t)owner->pid, 0) != 0 && errno == ESRCH)
	{
		return true;
	}
	return owner->start != start_of(owner->pid);
}

static SandStatus take(const char *path, const char *folder, SandLock *lock, char *note_out, SandError *err)
{
	char text[TEXT_BYTES], holder[TEXT_BYTES];
	Owner me = self();
	snprintf(text, sizeof text, "barchan lock 1\npid %ld\nstart %llu\nboot %s\nhost %s\n", me.pid, me.start, me.boot,
	         me.host);
	SandStatus status = sand_io_lock(path, text, false, holder, sizeof holder, &lock->held, err);
	Owner owner = parse(holder);
	if (status == SAND_OK && lock->held == NULL && is_dead(&owner, &me))
	{
		status = sand_io_lock(path, text, true, holder, sizeof holder, &lock->held, err);
	}
	if (status != SAND_OK)
	{
		return status;
	}
	if (lock->held == NULL)
	{
		return sand_fail(
		    err, SAND_ERROR_CACHE,
		    "The cache '%.200s' is in use by process %ld on '%s'%s; wait until it is done or choose another "
		    "cache folder",
		    folder, owner.pid, owner.host, owner.pid == me.pid ? ", this very Blender" : "");
	}
	if (holder[0] != '\0' && note_out != NULL)
	{
		snprintf(note_out, SAND_MESSAGE_BYTES,
		         "Process %ld on '%s' left the cache '%.200s' without a word; its lock was taken over", owner.pid,
		         owner.host, folder);
	}
	return SAND_OK;
}

SandStatus sand_lock_take(const char *folder, SandLock **lock_out, char note_out[SAND_MESSAGE_BYTES], SandError *err)
{
	*lock_out = NULL;
	if (note_out != NULL)
	{
		note_out[0] = '\0';
	}
	if (folder == NULL || folder[0] == '\0')
	{
		return sand_fail(err, SAND_ERROR_ARGUMENT, "The cache folder is empty; choose a folder");
	}
	size_t path_bytes = strlen(folder) + sizeof SAND_CACHE_LOCK + 1;
	char *path = sand_alloc(path_bytes, 1);
	SandLock *lock = sand_alloc(1, sizeof *lock);
	if (path == NULL || lock == NULL)
	{
		sand_free(path);
		sand_free(lock);
		return sand_fail_memory(err, path_bytes, "a lock");
	}
	snprintf(path, path_bytes, "%s/%s", folder, SAND_CACHE_LOCK);
	SandStatus status = take(path, folder, lock, note_out, err);
	sand_free(path);
	if (status != SAND_OK)
	{
		sand_free(lock);
		return status;
	}
	*lock_out = lock;
	return SAND_OK;
}

void sand_lock_release(SandLock *lock)
{
	if (lock != NULL)
	{
		sand_io_unlock(lock->held);
		sand_free(lock);
	}
}
