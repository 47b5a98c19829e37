/* What the double of the engine (fake_engine.c) answers, and what models it may be. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/ledger.h"
#include "base/limits.h"
#include "tests/server/fake_engine.h"

enum { TIGHT = 92 << 10 };

/* How thoughts begin. */
static const char OPENING[] = "<think>\nLet me think.";
_Static_assert(sizeof OPENING - 1 == FAKE_OPENING, "its length is known elsewhere, too");

int fake_option(const char *text, const char *name, int otherwise)
{
    const char *p = strstr(text, name);
    if (!p) {
        return otherwise;
    }
    p += strlen(name);
    return *p == '=' ? (int)strtol(p + 1, NULL, 10) : 1;
}

static void append_plain(bytes *out, const char *text)
{
    while (*text) {
        if (*text == '!') {
            text += strcspn(text, " ");
            text += *text == ' ';
        } else {
            bytes_append_char(out, *text++);
        }
    }
}

void fake_write_answer(bytes *out, const char *said, int n_images)
{
    int len = fake_option(said, "!len", -1);
    const char *raw = strstr(said, "!raw ");
    if (strstr(said, "!think")) {
        bytes_append_str(out, OPENING);
        for (int i = fake_option(said, "!think", 0); i > 1; i--) {
            bytes_append_char(out, '.');
        }
        bytes_append_str(out, "\n</think>\n\n");
    }
    if (raw) {
        bytes_append_str(out, raw + 5);
        return;
    }
    for (int i = 0; i < n_images; i++) {
        bytes_append_str(out, "[image] ");
    }
    for (int i = 0; i < len; i++) {
        bytes_append_char(out, i % 10 == 9 ? ' ' : (char)('a' + i % 26));
    }
    if (len < 0) {
        bytes_append_str(out, "You said: ");
        append_plain(out, said);
    }
}

void fake_write_messages(bytes *out, const chat_input *in)
{
    static const char *const ROLES[] = {
        [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant", [CHAT_TOOL] = "tool"};
    for (size_t i = 0; i < in->n_messages; i++) {
        const chat_message *m = &in->messages[i];
        bytes_printf(out, " %s:", ROLES[m->role]);
        for (size_t k = 0; k < m->n_parts; k++) {
            append_plain(out, m->parts[k].kind == CHAT_TEXT ? m->parts[k].text : "[image]");
        }
    }
}

void fake_be(const char *kind, engine_info *info, engine_status *status, ledger *memory)
{
    if (strcmp(kind, "videos") == 0) {
        info->has_video = info->video_fills_budget = true;
        info->video_fps = 2.5;
        info->video_min_frames = 4;
        info->video_max_frames = 768;
        info->patch_size = 16;
        info->merge_size = 2;
        info->temporal_patch_size = 3;
        info->video_min_pixels = 4096;
        info->video_max_pixels = 25165824;
        info->video_fixed_frames = 7;
    } else if (strcmp(kind, "tight") == 0) {
        info->request_bytes = LIMIT_PROCESS_MEMORY + TIGHT;
        ledger_set_limit(memory, TIGHT);
    } else if (strcmp(kind, "disk") == 0) {
        status->n_disk_entries = 4;
        status->disk_bytes = 7000;
        status->disk_budget = 9000;
        status->n_disk_hits = 5;
        status->n_disk_tokens = 600;
        status->n_disk_saves = 8;
        status->n_disk_errors = 1;
    }
}

bool fake_holds(const char *dir, const char *name)
{
    char path[4096];
    return dir && file_join(path, sizeof path, dir, name) && file_exists(path);
}

static const struct {
    const char *file, *what; /* with a slash: behind the folder */
    err_code err;
} LOAD_FAILS[] = {{"refuse", "there is not enough memory for this model", ERR_NOMEM},
                  {"absent", "/tokenizer.json is missing", ERR_NOT_FOUND},
                  {"corrupt", "/model.safetensors: tensor norm.weight is damaged", ERR_CORRUPT},
                  {"foreign", "/config.json: this family is not known", ERR_UNSUPPORTED},
                  {"unfit", "--ctx does not fit this model", ERR_INVALID},
                  {"failing", "/config.json cannot be read", ERR_IO}};

err_code fake_load_error(const char *dir, err_detail *d)
{
    const char *how = getenv("FAKE_LOAD_FAILS");
    for (size_t i = 0; i < ARRAY_LEN(LOAD_FAILS); i++) {
        const bool is_of = LOAD_FAILS[i].what[0] == '/';
        if (fake_holds(dir, LOAD_FAILS[i].file) || (how && strcmp(how, LOAD_FAILS[i].file) == 0)) {
            return err_set(d, LOAD_FAILS[i].err, "%s%s",
                           !is_of ? ""
                           : dir  ? dir
                                  : "fake",
                           LOAD_FAILS[i].what);
        }
    }
    return ERR_OK;
}
