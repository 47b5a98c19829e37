#include "server/chat/chat_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "server/media/data_uri.h"

typedef struct talk_file {
    char *path;
    const char *mime; /* constant */
    bool is_video;
    bytes data;
} talk_file;

typedef struct talk_message {
    bool is_answer;
    char *text;
    talk_file *files;
    size_t n_files;
} talk_message;

struct chat_talk {
    char *system;
    talk_message *messages;
    size_t n, cap;
    talk_file *files; /* for the next question */
    size_t n_files, cap_files;
};

static void free_files(talk_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(files[i].path);
        bytes_deinit(&files[i].data);
    }
    free(files);
}

static void drop_last(chat_talk *t)
{
    talk_message *m = &t->messages[--t->n];
    free(m->text);
    free_files(m->files, m->n_files);
}

chat_talk *chat_talk_create(void)
{
    return calloc(1, sizeof(chat_talk));
}

void chat_talk_clear(chat_talk *t)
{
    while (t->n > 0) {
        drop_last(t);
    }
    free_files(t->files, t->n_files);
    t->files = NULL;
    t->n_files = t->cap_files = 0;
}

void chat_talk_destroy(chat_talk *t)
{
    if (t) {
        chat_talk_clear(t);
        free(t->messages);
        free(t->system);
        free(t);
    }
}

bool chat_talk_set_system(chat_talk *t, const char *text)
{
    char *copy = strdup(text);
    if (copy) {
        free(t->system);
        t->system = copy;
    }
    return copy != NULL;
}

const char *chat_talk_system(const chat_talk *t)
{
    return t->system ? t->system : "";
}

err_code chat_talk_attach(chat_talk *t, const char *path, const char *kind, err_detail *detail)
{
    talk_file f = {.data = bytes_empty(LIMIT_VIDEO_BYTES), .path = strdup(path)};
    err_code err = f.path ? file_read(&f.data, path, detail) : ERR_NOMEM;
    f.mime = err ? NULL : engine_media_type((const uint8_t *)bytes_str(&f.data), f.data.len);
    f.is_video = f.mime && strncmp(f.mime, "video/", 6) == 0;
    const bool wants_video = strcmp(kind, "video") == 0;
    if (err == ERR_LIMIT) {
        err = err_set(detail, ERR_LIMIT, "%s is larger than %zu MiB", path, (size_t)LIMIT_VIDEO_BYTES >> 20);
    } else if (!err && (!f.mime || f.is_video != wants_video)) {
        err = err_set(detail, ERR_INVALID, f.mime ? "%s is no %s; it is %s" : "%s is no %s that is known",
                      path, kind, f.mime);
    }
    if (!err && !memory_grow(&t->files, &t->cap_files, t->n_files + 1, 4, sizeof *t->files)) {
        err = ERR_NOMEM;
    }
    if (err == ERR_NOMEM) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory for %s", path);
    }
    if (err) {
        free(f.path);
        bytes_deinit(&f.data);
        return err;
    }
    t->files[t->n_files++] = f;
    return ERR_OK;
}

size_t chat_talk_attached(const chat_talk *t)
{
    return t->n_files;
}

/* ---- questions and answers ---- */

static bool has_open_question(const chat_talk *t)
{
    return t->n > 0 && !t->messages[t->n - 1].is_answer;
}

static bool add(chat_talk *t, bool is_answer, const char *text, size_t len)
{
    char *copy =
        memory_grow(&t->messages, &t->cap, t->n + 1, 16, sizeof *t->messages) ? malloc(len + 1) : NULL;
    if (!copy) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    t->messages[t->n++] = (talk_message){.is_answer = is_answer, .text = copy};
    return true;
}

bool chat_talk_ask(chat_talk *t, const char *text)
{
    if (has_open_question(t)) {
        drop_last(t);
    }
    if (!add(t, false, text, strlen(text))) {
        return false;
    }
    talk_message *m = &t->messages[t->n - 1];
    m->files = t->files;
    m->n_files = t->n_files;
    t->files = NULL;
    t->n_files = t->cap_files = 0;
    return true;
}

bool chat_talk_answer(chat_talk *t, const char *text, size_t len)
{
    return add(t, true, text, len);
}

bool chat_talk_again(chat_talk *t)
{
    if (t->n > 0 && t->messages[t->n - 1].is_answer) {
        drop_last(t);
    }
    return has_open_question(t);
}

/* ---- as JSON, as Markdown ---- */

static void write_file(bytes *out, const talk_file *f)
{
    const char *type = f->is_video ? "video_url" : "image_url";
    bytes_json(out, "{\"type\":%s,\"%-s\":{\"url\":\"data:%-s;base64,", type, type, f->mime);
    base64_encode(out, (const uint8_t *)bytes_str(&f->data), f->data.len);
    bytes_append_str(out, "\"}},");
}

static void write_message(bytes *out, const talk_message *m)
{
    if (m->n_files == 0) {
        bytes_json(out, "{\"role\":%s,\"content\":%s}", m->is_answer ? "assistant" : "user", m->text);
        return;
    }
    bytes_append_str(out, "{\"role\":\"user\",\"content\":[");
    for (size_t i = 0; i < m->n_files; i++) {
        write_file(out, &m->files[i]);
    }
    bytes_json(out, "{\"type\":\"text\",\"text\":%s}]}", m->text);
}

void chat_talk_write(const chat_talk *t, bytes *out)
{
    bytes_append_char(out, '[');
    if (chat_talk_system(t)[0]) {
        bytes_json(out, "{\"role\":\"system\",\"content\":%s}%-s", t->system, t->n ? "," : "");
    }
    for (size_t i = 0; i < t->n; i++) {
        bytes_append_str(out, i ? "," : "");
        write_message(out, &t->messages[i]);
    }
    bytes_append_char(out, ']');
}

static void write_markdown(const chat_talk *t, bytes *out)
{
    if (chat_talk_system(t)[0]) {
        bytes_printf(out, "## System\n\n%s\n\n", t->system);
    }
    for (size_t i = 0; i < t->n; i++) {
        const talk_message *m = &t->messages[i];
        bytes_printf(out, "## %s\n\n", m->is_answer ? "Answer" : "Question");
        for (size_t k = 0; k < m->n_files; k++) {
            bytes_printf(out, "[%s](<%s>)\n\n", m->files[k].is_video ? "video" : "image", m->files[k].path);
        }
        bytes_printf(out, "%s\n\n", m->text);
    }
}

err_code chat_talk_save(const chat_talk *t, const char *path, err_detail *detail)
{
    static const char END[] = ".json";
    bytes text = bytes_empty(SIZE_MAX);
    const size_t n = strlen(path), n_end = sizeof END - 1;
    if (n > n_end && strcmp(path + n - n_end, END) == 0) {
        chat_talk_write(t, &text);
        bytes_append_char(&text, '\n');
    } else {
        write_markdown(t, &text);
    }
    int fd = text.failed ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    err_code err = ERR_OK;
    if (text.failed) {
        err = err_set(detail, ERR_NOMEM, "there is not enough memory to write %s", path);
    } else if (fd < 0) {
        err = err_set(detail, ERR_IO, "%s cannot be written: %s", path, strerror(errno));
    } else if (!file_write_all(fd, bytes_str(&text), text.len) || fsync(fd) != 0) {
        err = err_set(detail, ERR_IO, "%s could not be written whole: %s", path, strerror(errno));
        (void)unlink(path);
    }
    file_close(fd);
    bytes_deinit(&text);
    return err;
}
