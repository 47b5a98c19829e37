/* chats: a chat from a line of JSON, for tests that record what is made of it. Its files are of the tree. The JSON must outlive
 * the chat, which the caller destroys.
 *
 *     chat_input *in = chats_make(v);
 *
 * v is {"messages":[...],"tools":[...],"kwargs":{...},"continues":true,"scope":1}, a message
 *   {"role":"user","content":["See ",{"image":"assets/samples/color.png"}]}
 *   {"role":"assistant","content":"","calls":[{"id":"a","name":"f","arguments":{}}],"reasoning":"so"}
 *   {"role":"tool","call_id":"a","content":[{"ours":"<|im_end|>"},"x"],"joined":true}
 */
#ifndef PARLEY_TESTS_ENGINE_CHATS_H
#define PARLEY_TESTS_ENGINE_CHATS_H

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/chat.h"
#include "tests/check.h"

static inline int64_t chats_number(const json *of, const char *key, int64_t other)
{
    return (int64_t)json_num(json_get(of, key), (double)other);
}

static inline const char *chats_text(const json *of, const char *key)
{
    return json_str(json_get(of, key), NULL);
}

static inline char *chats_path(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", PARLEY_SOURCE_DIR, name);
    return path;
}

static inline void *chats_copied(chat_input *in, const void *from, size_t n)
{
    void *to = arena_alloc(in->arena, n + 1);
    CHECK(to != NULL);
    memcpy(to, from, n);
    return to;
}

static inline chat_file chats_load(chat_input *in, const char *name)
{
    err_detail d = {0};
    bytes file = bytes_empty((size_t)16 << 20);
    CHECK_OK(file_read(&file, chats_path(name), &d), d);
    const chat_file f = {.data = chats_copied(in, bytes_str(&file), file.len), .bytes = file.len};
    bytes_deinit(&file);
    return f;
}

static inline void chats_make_video(chat_input *in, chat_part *part, const json *v)
{
    const json *files = json_get(v, "video");
    chat_video *to = &part->video;
    part->kind = CHAT_VIDEO;
    *to = (chat_video){.fps = json_num(json_get(v, "fps"), 0),
                       .n_frames = (int32_t)chats_number(v, "frames", 0),
                       .min_frames = (int32_t)chats_number(v, "least", 0),
                       .max_frames = (int32_t)chats_number(v, "most", 0),
                       .pair_tokens = (int32_t)chats_number(v, "pair", 0),
                       .start_s = json_num(json_get(v, "start"), 0),
                       .end_s = json_num(json_get(v, "end"), 0),
                       .list_fps = json_num(json_get(v, "list_fps"), 0),
                       .n_list = json_len(files)};
    if (!to->n_list && json_get(v, "fd")) {
        part->fd = open(chats_path(json_str(files, "")), O_RDONLY | O_CLOEXEC);
        CHECK(part->fd > 0);
        in->fds[in->n_fds++] = part->fd;
        part->data_bytes = (size_t)lseek(part->fd, 0, SEEK_END);
    } else if (!to->n_list && *json_str(files, "")) {
        const chat_file f = chats_load(in, json_str(files, ""));
        part->data = f.data;
        part->data_bytes = f.bytes;
    }
    to->list = to->n_list ? arena_calloc(in->arena, to->n_list, sizeof *to->list) : NULL;
    size_t n = 0;
    for (const json *one = to->n_list ? json_child(files) : NULL; one; one = json_next(one)) {
        to->list[n++] = chats_load(in, json_str(one, ""));
    }
}

static inline void chats_make_part(chat_input *in, chat_part *part, const json *v, const char *param)
{
    const char *said = json_is(v, JSON_STRING) ? json_str(v, "") : chats_text(v, "text");
    const char *ours = chats_text(v, "ours"), *shown = chats_text(v, "image"), *hash = chats_text(v, "hash");
    *part = (chat_part){.kind = CHAT_TEXT, .param = chats_copied(in, param, strlen(param) + 1)};
    if (said || ours) {
        part->text = said ? said : ours;
        part->text_len = strlen(part->text);
        part->is_ours = ours != NULL;
    } else if (shown) {
        const chat_file f = chats_load(in, shown);
        part->kind = CHAT_IMAGE;
        part->data = f.data;
        part->data_bytes = f.bytes;
        part->is_found = json_is_true(json_get(v, "found"));
    } else {
        chats_make_video(in, part, v);
    }
    if (hash) {
        uint8_t *known = arena_calloc(in->arena, 1, HASH_BYTES);
        hash_sha256(known, hash, strlen(hash));
        part->hash = known;
    }
    part->pixels = (chat_pixels){chats_number(v, "min", 0), chats_number(v, "max", 0)};
}

static inline void chats_make_message(chat_input *in, chat_message *m, const json *v, size_t at)
{
    static const char *const ROLES[] = {"system", "user", "assistant", "tool"};
    const json *content = json_get(v, "content"), *calls = json_get(v, "calls");
    *m = (chat_message){.reasoning = chats_text(v, "reasoning"),
                        .tool_call_id = chats_text(v, "call_id"),
                        .name = chats_text(v, "name"),
                        .is_string = json_is(content, JSON_STRING) || json_is_true(json_get(v, "joined")),
                        .n_parts = json_is(content, JSON_STRING) ? 1 : json_len(content),
                        .n_tool_calls = json_len(calls)};
    while (strcmp(ROLES[m->role], chats_text(v, "role")) != 0) {
        m->role++;
    }
    m->parts = arena_calloc(in->arena, m->n_parts + 1, sizeof *m->parts);
    const json *one = json_is(content, JSON_STRING) ? content : json_child(content);
    for (size_t i = 0; i < m->n_parts; i++, one = json_next(one)) {
        char param[64];
        snprintf(param, sizeof param, "messages[%zu].content[%zu]", at, i);
        chats_make_part(in, &m->parts[i], one, param);
    }
    m->tool_calls = arena_calloc(in->arena, m->n_tool_calls + 1, sizeof *m->tool_calls);
    size_t n = 0;
    for (const json *call = json_child(calls); call; call = json_next(call)) {
        m->tool_calls[n++] = (chat_tool_call){.id = chats_text(call, "id"),
                                              .name = chats_text(call, "name"),
                                              .arguments = json_get(call, "arguments")};
    }
}

static inline chat_input *chats_make(const json *v)
{
    chat_input *in = chat_input_create((size_t)32 << 20);
    const json *messages = json_get(v, "messages");
    CHECK(in != NULL);
    in->messages = arena_calloc(in->arena, json_len(messages) + 1, sizeof *in->messages);
    for (const json *one = json_child(messages); one; one = json_next(one), in->n_messages++) {
        chats_make_message(in, &in->messages[in->n_messages], one, in->n_messages);
    }
    in->tools = json_get(v, "tools");
    in->template_kwargs = json_get(v, "kwargs");
    in->continues = json_is_true(json_get(v, "continues"));
    in->scope = (uint64_t)chats_number(v, "scope", 0);
    return in;
}

#endif
