// folder: an empty folder for one test, and its removal with everything in it.
// Comes in: nothing. Goes out: paths. Uses the system's own calls, so that it does not lean on the room under test.
#ifndef SAND_TEST_FOLDER_H
#define SAND_TEST_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_PATH_BYTES 4096

/// Makes a new folder and writes its path.
static inline void folder_make(char path_out[FOLDER_PATH_BYTES])
{
	const char *parent = getenv("TMPDIR");
	snprintf(path_out, FOLDER_PATH_BYTES, "%s/barchan-test-XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(path_out) == NULL)
	{
		perror(path_out);
		abort();
	}
}

/// Calls itself for folders inside. Links are removed, not followed.
static inline void folder_remove(const char *path)
{
	DIR *entries = opendir(path);
	const struct dirent *entry;
	// cppcheck-suppress readdirCalled ; no other thread uses this DIR
	while (entries != NULL && (entry = readdir(entries)) != NULL)
	{
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		{
			continue;
		}
		size_t bytes = strlen(path) + strlen(entry->d_name) + 2;
		char *child = malloc(bytes);
		if (child == NULL)
		{
			abort();
		}
		snprintf(child, bytes, "%s/%s", path, entry->d_name);
		struct stat info;
		if (lstat(child, &info) == 0 && S_ISDIR(info.st_mode))
		{
			folder_remove(child);
		}
		else
		{
			(void)unlink(child);
		}
		free(child);
	}
	if (entries != NULL)
	{
		(void)closedir(entries);
	}
	(void)rmdir(path);
}

/// Entries without '.' and '..'; -1 when there is no such folder.
static inline int folder_entry_count(const char *path)
{
	DIR *entries = opendir(path);
	if (entries == NULL)
	{
		return -1;
	}
	int count = 0;
	// cppcheck-suppress readdirCalled ; no other thread uses this DIR
	while (readdir(entries) != NULL)
	{
		count++;
	}
	(void)closedir(entries);
	return count - 2;
}

/// A file that the room under test did not make.
static inline void folder_put(const char *folder, const char *name, const char *text)
{
	char path[FOLDER_PATH_BYTES];
	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
	{
		abort();
	}
	FILE *file = fopen(path, "wb");
	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
	{
		perror(path);
		abort();
	}
}

static inline bool folder_has(const char *folder, const char *name)
{
	char path[FOLDER_PATH_BYTES];
	struct stat info;
	return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && lstat(path, &info) == 0;
}

#endif
