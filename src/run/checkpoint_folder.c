/*
 * The folder of --save: one folder per checkpoint.
 *
 * A checkpoint is written to step-N.tmp and renamed to step-N once all of it is on the disk; one
 * that is removed is renamed to step-N.tmp first. So what is named step-N is whole, whenever the
 * writer is killed.
 */
#define _GNU_SOURCE /* renameat2 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/checkpoint.h"

#define UNFINISHED ".tmp"
#define REPLACED ".old" /* where names can't be exchanged: a checkpoint that is written again */

static sw_status refused(const char *path, const char *what, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_IO, path, 0, 0, "cannot %s: %s", what, strerror(errno));
}

static void add_path(const char *path, int64_t step, const char *ending, sw_text *text)
{
	sw_text_addf(text, "%s/" SW_CHECKPOINT_NAME "%s", path, step, ending);
}

void sw_folder_add_part(const char *path, int64_t step, const char *name, sw_text *text)
{
	add_path(path, step, UNFINISHED "/", text);
	sw_text_add(text, name);
}

/* ---- which checkpoints there are -------------------------------------------------------- */

typedef SW_VEC(int64_t) steps;

static int descending(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a > b ? -1 : a < b;
}

/* Read the number of a name step-N with this ending; false: it is another name. */
static bool step_of(const char *name, const char *ending, int64_t *step)
{
	char again[64];
	char *end;
	if (strncmp(name, "step-", 5) != 0)
		return false;
	errno = 0;
	*step = strtoll(name + 5, &end, 10);
	snprintf(again, sizeof(again), SW_CHECKPOINT_NAME "%s", *step, ending);
	return errno == 0 && *step >= 0 && strcmp(name, again) == 0;
}

/* List the steps of the folders with this ending, the newest first. */
static sw_status list_steps(const char *path, const char *ending, steps *list, sw_error *err)
{
	DIR *folder = opendir(path);
	if (!folder)
		return refused(path, "read the folder", err);
	for (const struct dirent *entry; (entry = readdir(folder));) {
		int64_t step;
		if (step_of(entry->d_name, ending, &step))
			sw_vec_push(list, step);
	}
	closedir(folder);
	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), descending);
	return SW_OK;
}

sw_status sw_checkpoint_newest(const char *folder, int64_t *step, sw_error *err)
{
	steps list = {0};
	sw_status status = list_steps(folder, "", &list, err);
	*step = list.len ? list.data[0] : -1;
	sw_vec_clear(&list);
	return status;
}

/* A folder that is a checkpoint has an index of its own. */
static bool is_of_several(const char *path)
{
	struct stat info;
	sw_text index = {0};
	sw_text_addf(&index, "%s/" SW_CHECKPOINT_INDEX, path);
	bool is = stat(path, &info) == 0 && S_ISDIR(info.st_mode) && stat(index.data, &info) != 0;
	sw_text_clear(&index);
	return is;
}

sw_status sw_checkpoint_newest_of(const char *path, sw_text *newest, sw_error *err)
{
	int64_t step = -1;
	if (is_of_several(path))
		SW_TRY(sw_checkpoint_newest(path, &step, err));
	if (step >= 0)
		add_path(path, step, "", newest);
	return SW_OK;
}

/* ---- removing --------------------------------------------------------------------------- */

/* Remove a folder of files; it holds no folders. */
static sw_status remove_folder(const char *path, sw_error *err)
{
	DIR *folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? SW_OK : refused(path, "remove", err);
	for (const struct dirent *entry; (entry = readdir(folder));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	return rmdir(path) == 0 ? SW_OK : refused(path, "remove", err);
}

static sw_status remove_unfinished(const char *path, int64_t step, sw_error *err)
{
	sw_text name = {0};
	add_path(path, step, UNFINISHED, &name);
	sw_status status = remove_folder(name.data, err);
	sw_text_clear(&name);
	return status;
}

static sw_status remove_checkpoint(const char *path, int64_t step, sw_error *err)
{
	sw_text whole = {0}, unfinished = {0};
	add_path(path, step, "", &whole);
	add_path(path, step, UNFINISHED, &unfinished);
	sw_status status = rename(whole.data, unfinished.data) == 0
	                           ? remove_folder(unfinished.data, err)
	                           : refused(whole.data, "remove", err);
	sw_text_clear(&whole);
	sw_text_clear(&unfinished);
	return status;
}

static sw_status keep_newest(const sw_checkpoint_folder *folder, sw_error *err)
{
	steps list = {0};
	sw_status status = folder->keep ? list_steps(folder->path, "", &list, err) : SW_OK;
	for (size_t i = (size_t)folder->keep; i < list.len && status == SW_OK; i++)
		status = remove_checkpoint(folder->path, list.data[i], err);
	sw_vec_clear(&list);
	return status;
}

/* Put a checkpoint back that was about to be replaced, or remove it if it was. */
static sw_status restore(const char *path, int64_t step, sw_error *err)
{
	sw_text whole = {0}, replaced = {0};
	add_path(path, step, "", &whole);
	add_path(path, step, REPLACED, &replaced);
	sw_status status = SW_OK;
	if (access(whole.data, F_OK) == 0)
		status = remove_folder(replaced.data, err);
	else if (rename(replaced.data, whole.data) != 0)
		status = refused(replaced.data, "put back", err);
	sw_text_clear(&whole);
	sw_text_clear(&replaced);
	return status;
}

typedef sw_status mend_fn(const char *path, int64_t step, sw_error *err);

static sw_status mend_all(const char *path, const char *ending, mend_fn *mend, sw_error *err)
{
	steps list = {0};
	sw_status status = list_steps(path, ending, &list, err);
	for (size_t i = 0; i < list.len && status == SW_OK; i++)
		status = mend(path, list.data[i], err);
	sw_vec_clear(&list);
	return status;
}

/* ---- the folder ------------------------------------------------------------------------- */

sw_status sw_folder_open(sw_checkpoint_folder *folder, const char *path, int64_t keep,
                         sw_error *err)
{
	*folder = (sw_checkpoint_folder){
		.path = path,
		.keep = keep,
		.lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	if (folder->lock < 0)
		return refused(path, "open the folder", err);
	sw_status status = SW_OK;
	/* file systems without locks have none */
	if (flock(folder->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		status = sw_fail_at(err, SW_ERR_INPUT, path, 0, 0,
		                    "another run saves there: give --save another folder");
	if (status == SW_OK)
		status = mend_all(path, REPLACED, restore, err);
	if (status == SW_OK)
		status = mend_all(path, UNFINISHED, remove_unfinished, err);
	if (status)
		sw_folder_close(folder);
	return status;
}

void sw_folder_close(sw_checkpoint_folder *folder)
{
	if (folder->lock >= 0)
		close(folder->lock);
	folder->lock = -1;
}

sw_status sw_folder_begin(const sw_checkpoint_folder *folder, int64_t step, sw_error *err)
{
	sw_text name = {0};
	add_path(folder->path, step, UNFINISHED, &name);
	sw_status status = mkdir(name.data, 0777) == 0 ? SW_OK : refused(name.data, "make", err);
	sw_text_clear(&name);
	return status;
}

static int sync_folder(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return -1;
	bool failed = fsync(descriptor) != 0 && errno != EINVAL;
	return close(descriptor) != 0 || failed ? -1 : 0;
}

/* Give what is written its name. A checkpoint that had the name is exchanged for it at once and
 * then removed, or, where the system can't exchange, removed before. */
static int take_name(const char *written, const char *name)
{
	if (rename(written, name) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	return renameat2(AT_FDCWD, written, AT_FDCWD, name, RENAME_EXCHANGE);
}

static sw_status replace(const sw_checkpoint_folder *folder, int64_t step, const char *written,
                         const char *name, sw_error *err)
{
	if (sync_folder(written) != 0)
		return refused(written, "write", err);
	if (take_name(written, name) != 0) {
		sw_text aside = {0};
		sw_text_addf(&aside, "%s" REPLACED, name);
		bool placed = rename(name, aside.data) == 0 && rename(written, name) == 0;
		sw_status status =
			placed ? remove_folder(aside.data, err) : refused(name, "write", err);
		sw_text_clear(&aside);
		SW_TRY(status);
	}
	if (sync_folder(folder->path) != 0)
		return refused(folder->path, "write", err);
	return remove_unfinished(folder->path, step, err);
}

sw_status sw_folder_finish(const sw_checkpoint_folder *folder, int64_t step, sw_error *err)
{
	sw_text written = {0}, name = {0};
	add_path(folder->path, step, UNFINISHED, &written);
	add_path(folder->path, step, "", &name);
	sw_status status = replace(folder, step, written.data, name.data, err);
	sw_text_clear(&written);
	sw_text_clear(&name);
	return status ? status : keep_newest(folder, err);
}
