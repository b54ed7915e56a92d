// lock: one baker per cache. Comes in: a folder. Goes out: the lock, or a sentence that says who has it.
// The file "lock.sand" holds who took it. The system's lock on it ends with its owner, however that ended; where a file
// system has no locks, process number, start time and boot tell whether the owner still lives.
#ifndef SAND_LOCK_H
#define SAND_LOCK_H

#include "base.h"

typedef struct SandLock SandLock;

/// Takes the folder, which must exist. Held by a living owner: SAND_ERROR_CACHE, which names process and machine.
/// note_out (may be NULL): a sentence when a dead owner was taken over, else "". Any thread.
SandStatus sand_lock_take(const char *folder, SandLock **lock_out, char note_out[SAND_MESSAGE_BYTES], SandError *err);
void sand_lock_release(SandLock *lock); // removes the file; NULL is fine

#endif
