/* Tokens of published vocabularies. $PARLEY_VOCABULARIES is a folder with NAME.gguf (a vocabulary
 * without tensors), NAME.gguf.inp (texts with a line of their own between them) and NAME.gguf.out
 * (a line of ids for each), as llama.cpp's sources have them under models/. What is supported gives
 * those ids; the rest is refused, and the message names the splitting. */
#include <dirent.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/file.h"
#include "model/checkpoint/gguf_file.h"
#include "model/checkpoint/gguf_tokenizer.h"
#include "tests/check.h"
#include "text/tokenizer/tokenizer.h"

static const char BETWEEN[] = "\n__ggml_vocab_test__\n";

/* Numbers of a line, at most `room`; *line moves behind it. */
static size_t read_ids(const char **line, int32_t *ids, size_t room)
{
    size_t n = 0;
    while (**line && **line != '\n') {
        char *end;
        const long id = strtol(*line, &end, 10);
        if (end == *line) {
            (*line)++;
        } else if (n < room) {
            ids[n++] = (int32_t)id;
            *line = end;
        }
    }
    *line += **line == '\n';
    return n;
}

/* Every text of an .inp file against its line. Returns how many there were. */
static size_t compare(const tokenizer *tok, const char *name, const char *texts, const char *lines)
{
    enum { ROOM = 4096 };
    static int32_t expected[ROOM];
    size_t count = 0;
    for (const char *next; texts; texts = next, count++) {
        const char *end = strstr(texts, BETWEEN);
        next = end ? end + strlen(BETWEEN) : NULL;
        const size_t len = end ? (size_t)(end - texts) : strlen(texts);
        token_ids ids;
        err_detail d = {0};
        token_ids_init(&ids);
        CHECK_OK(tokenizer_encode(tok, &ids, texts, len, TOKENIZER_SPECIALS, &d), d);
        const size_t n = read_ids(&lines, expected, ROOM);
        const bool same = ids.len == n && memcmp(ids.ids, expected, n * sizeof *expected) == 0;
        if (!same) {
            fprintf(stderr, "%s, text %zu: \"%.*s\"\n", name, count, (int)len, texts);
        }
        CHECK(same);
        token_ids_deinit(&ids);
    }
    return count;
}

/* One vocabulary; returns whether it was supported and compared. */
static bool check_vocabulary(const char *folder, const char *name)
{
    char path[4096];
    gguf_file *f = NULL;
    tokenizer *tok = NULL;
    bytes json, texts, lines;
    err_detail d = {0};
    size_t count = 0;
    bytes_init(&json, 256 << 20);
    bytes_init(&texts, 1 << 20);
    bytes_init(&lines, 1 << 20);
    snprintf(path, sizeof path, "%s/%s.inp", folder, name);
    const bool has_texts = file_exists(path);
    if (has_texts) {
        CHECK_OK(file_read(&texts, path, &d), d);
        snprintf(path, sizeof path, "%s/%s.out", folder, name);
        CHECK_OK(file_read(&lines, path, &d), d);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(gguf_file_open(&f, path, &d), d);
    err_code err = f ? gguf_tokenizer_json(&json, f, path, &d) : ERR_CORRUPT;
    if (!err) {
        CHECK_OK(tokenizer_open_json(&tok, bytes_str(&json), json.len, name, &d), d);
        count = tok && has_texts ? compare(tok, name, bytes_str(&texts), bytes_str(&lines)) : 0;
        printf("%s: %zu texts\n", name, count);
    } else {
        CHECK_INT(err, ERR_UNSUPPORTED);
        CHECK(strstr(d.text, "tokenizer.ggml.pre is \"") || strstr(d.text, "tokenizer.ggml.model is \""));
        printf("%s\n", d.text);
    }
    tokenizer_close(tok);
    gguf_file_close(f);
    bytes_deinit(&json);
    bytes_deinit(&texts);
    bytes_deinit(&lines);
    return count > 0;
}

int main(void)
{
    const char *folder = getenv("PARLEY_VOCABULARIES");
    DIR *dir = folder ? opendir(folder) : NULL;
    size_t n_compared = 0;
    if (!dir) {
        puts("skipped: $PARLEY_VOCABULARIES names no folder of vocabularies");
        return 77;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        const size_t n = strlen(e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".gguf") == 0) {
            n_compared += check_vocabulary(folder, e->d_name);
        }
    }
    closedir(dir);
    CHECK(n_compared > 0);
    CHECK_DONE();
}
