#define _GNU_SOURCE /* FNM_CASEFOLD */
/* The built-in server "folder": what lies below one folder is listed, read and searched; nothing is
 * written, and nothing beside it is opened. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "server/mcp/mcp_builtin.h"
#include "server/mcp/mcp_catalog.h"
#include "server/mcp/mcp_decode.h"
#include "server/media/open_below.h"

enum {
    NAMES_SHOWN = 500,
    LINES_SHOWN = 1000,
    TEXT_SHOWN = 32 << 10,
    MATCHES_SHOWN = 100,
    LINE_SHOWN = 300,
    DEEPEST = 64,
    BLOCK_BYTES = 65536,
};

/* ---- where ---- */

/* The path of an argument as open_below takes it; false after saying why it is none. */
static bool read_path(char out[PATH_MAX], const builtin_call *call, bytes *said)
{
    const char *path = builtin_text(call, "path"), *folder = call->config->folder;
    const size_t n_folder = strlen(folder);
    size_t n = 0;
    if (strncmp(path, folder, n_folder) == 0 && (path[n_folder] == '/' || path[n_folder] == '\0')) {
        path += n_folder;
    }
    while (*path) {
        const size_t step = strcspn(path, "/");
        if (step == 2 && strncmp(path, "..", 2) == 0) {
            bytes_append_str(said, "the path may not have .. in it: nothing outside of the folder is read");
            return false;
        }
        if (step > 0 && !(step == 1 && *path == '.')) {
            if (n + step + 2 > PATH_MAX) {
                bytes_append_str(said, "the path is too long");
                return false;
            }
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%s%.*s", n ? "/" : "", (int)step, path);
        }
        path += step + (path[step] == '/');
    }
    out[n] = '\0';
    return true;
}

static bool say_error(bytes *out, const char *path, int why)
{
    const char *text = why == ENOENT    ? "there is nothing of this name; list_folder shows what there is"
                       : why == ELOOP   ? "it is a link, and links are not followed"
                       : why == ENOTDIR ? "it is no folder, or behind a link"
                       : why == EACCES || why == EPERM ? "it may not be read"
                                                       : strerror(why);
    mcp_clean_text(out, path[0] ? path : ".", PATH_MAX, false);
    bytes_printf(out, ": %s", text);
    return false;
}

/* ---- names ---- */

typedef struct entry {
    char *name;
    mode_t kind; /* S_IFMT of it */
    off_t bytes;
} entry;

typedef struct entries {
    entry *items;
    size_t n, cap;
    bool is_cut; /* there are more: than LIMIT_TOOL_ENTRIES, or than there was memory for */
} entries;

static void free_entries(entries *e)
{
    for (size_t i = 0; i < e->n; i++) {
        free(e->items[i].name);
    }
    free(e->items);
    *e = (entries){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

/* What is in the folder, by name; takes the descriptor over. */
static void read_entries(entries *out, int fd, const builtin_call *call)
{
    DIR *d = fdopendir(fd);
    *out = (entries){.is_cut = !d};
    for (const struct dirent *e = d ? readdir(d) : NULL; e && call->may_go_on(call->ctx); e = readdir(d)) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        out->is_cut = out->n == LIMIT_TOOL_ENTRIES;
        char *name = out->is_cut ? NULL : strdup(e->d_name);
        if (!name || !memory_grow(&out->items, &out->cap, out->n + 1, 64, sizeof *out->items)) {
            free(name);
            out->is_cut = true;
            break;
        }
        out->items[out->n++] = (entry){.name = name, .kind = st.st_mode & S_IFMT, .bytes = st.st_size};
    }
    if (out->n > 0) {
        qsort(out->items, out->n, sizeof *out->items, by_name);
    }
    d ? (void)closedir(d) : (void)close(fd);
}

bool mcp_folder_list(const builtin_call *call, bytes *out)
{
    char path[PATH_MAX];
    entries e;
    if (!read_path(path, call, out)) {
        return false;
    }
    const int fd = open_below(call->config->folder, path, true);
    if (fd < 0) {
        return say_error(out, path, errno);
    }
    read_entries(&e, fd, call);
    for (size_t i = 0; i < e.n && i < NAMES_SHOWN; i++) {
        mcp_clean_text(out, e.items[i].name, PATH_MAX, false);
        if (S_ISDIR(e.items[i].kind)) {
            bytes_append_str(out, "/\n");
        } else if (S_ISREG(e.items[i].kind)) {
            bytes_printf(out, " (%lld bytes)\n", (long long)e.items[i].bytes);
        } else {
            bytes_append_str(out, S_ISLNK(e.items[i].kind) ? " (a link, not followed)\n" : " (no file)\n");
        }
    }
    if (e.n > NAMES_SHOWN) {
        bytes_printf(out, "(cut here: %zu%s more)\n", e.n - NAMES_SHOWN, e.is_cut ? " or" : "");
    } else if (e.n == 0 || e.is_cut) {
        bytes_append_str(out,
                         e.is_cut ? "(cut here: there was no memory for more)\n" : "The folder is empty.\n");
    }
    free_entries(&e);
    return true;
}

/* ---- what is in a file ---- */

/* Reads at most `most` bytes of a file; false: errno. size: of all of it. */
static bool load(bytes *out, off_t *size, int fd, size_t most, const builtin_call *call)
{
    char block[BLOCK_BYTES];
    struct stat st;
    ssize_t n = fstat(fd, &st) == 0 ? 1 : -1;
    if (n > 0 && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
        n = -1;
    }
    *size = n > 0 ? st.st_size : 0;
    while (n > 0 && out->len < most && call->may_go_on(call->ctx)) {
        n = read(fd, block, most - out->len < sizeof block ? most - out->len : sizeof block);
        if (n > 0) {
            bytes_append(out, block, (size_t)n);
        }
    }
    return n >= 0 && !out->failed;
}

/* What a binary file is, as its first bytes tell. */
static const char *kind_of(const bytes *b)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *kind;
    } KINDS[] = {{"\x89PNG", 4, "a PNG image"},
                 {"\xff\xd8\xff", 3, "a JPEG image"},
                 {"GIF8", 4, "a GIF image"},
                 {"%PDF", 4, "a PDF document"},
                 {"PK\x03\x04", 4, "a ZIP file"},
                 {"\x7f"
                  "ELF",
                  4, "a program"},
                 {"\x1f\x8b", 2, "a gzip file"},
                 {"SQLite format 3", 15, "an SQLite database"}};
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (b->len >= KINDS[i].n && memcmp(b->data, KINDS[i].bytes, KINDS[i].n) == 0) {
            return KINDS[i].kind;
        }
    }
    return NULL;
}

static void add_lines(bytes *out, const bytes *text, int64_t first, int64_t wanted, bool is_cut)
{
    int64_t line = 1, shown = 0;
    size_t at = 0;
    for (; at < text->len && line < first; line++) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        at = end ? (size_t)(end - text->data) + 1 : text->len;
    }
    if (at >= text->len && first > 1) {
        bytes_printf(out, "(the file has %lld lines)", (long long)(line - 1));
        return;
    }
    const size_t begin = at;
    bool is_long = false;
    while (at < text->len && shown < wanted && !is_long) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        size_t n = (end ? (size_t)(end - text->data) + 1 : text->len) - at;
        is_long = at + n - begin > TEXT_SHOWN;
        if (is_long && shown > 0) {
            break;
        }
        if (is_long) { /* a line that is too long by itself */
            n = TEXT_SHOWN - utf8_incomplete_tail(text->data + at, TEXT_SHOWN);
        }
        at += n;
        shown++;
    }
    bytes_append(out, text->data + begin, at - begin);
    if (at < text->len || is_cut) {
        bytes_printf(out, "\n(cut here, after line %lld%s; read_file with first_line %lld goes on%s)",
                     (long long)(first + shown - 1), is_long && shown == 1 ? ", which is longer" : "",
                     (long long)(first + shown), is_cut ? "; the end of the file is too far to be read" : "");
    }
}

bool mcp_folder_read(const builtin_call *call, bytes *out)
{
    char path[PATH_MAX];
    off_t size;
    bytes data = bytes_empty(LIMIT_TOOL_FILE_BYTES), text = bytes_empty(4 * LIMIT_TOOL_FILE_BYTES);
    if (!read_path(path, call, out)) {
        return false;
    }
    const int fd = open_below(call->config->folder, path, false);
    bool ok = fd >= 0 && load(&data, &size, fd, LIMIT_TOOL_FILE_BYTES, call);
    const int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!ok && why == EISDIR) {
        bytes_append_str(out, "this is a folder: list_folder shows what is in it");
    } else if (!ok) {
        say_error(out, path, data.failed ? ENOMEM : why);
    } else if (kind_of(&data) || mcp_is_binary(data.data, data.len)) {
        bytes_printf(out, "This file is no text: it is %s of %lld bytes.",
                     kind_of(&data) ? kind_of(&data) : "binary,", (long long)size);
    } else if (data.len == 0) {
        bytes_append_str(out, "The file is empty.");
    } else {
        mcp_decode(&text, data.data, data.len, "");
        add_lines(out, &text, builtin_number(call, "first_line", 1),
                  builtin_number(call, "lines", LINES_SHOWN), (off_t)data.len < size);
        ok = !text.failed || say_error(out, path, ENOMEM);
    }
    bytes_deinit(&text);
    bytes_deinit(&data);
    return ok;
}

/* ---- searching ---- */

typedef struct searcher {
    const builtin_call *call;
    bytes *out;
    const char *words, *glob; /* "": any */
    double until_ms;
    size_t n_matches, n_entries, n_large;
    uint64_t n_bytes;
    const char *stopped; /* why it ended early; NULL: it did not */
} searcher;

static const char NO_MEMORY[] = "there was no memory for more";

static bool may_go_on(searcher *s)
{
    s->stopped = s->stopped                             ? s->stopped
                 : s->n_matches >= MATCHES_SHOWN        ? "there may be more matches"
                 : s->n_entries > LIMIT_TOOL_ENTRIES    ? "there are more files"
                 : s->n_bytes > LIMIT_TOOL_SEARCH_BYTES ? "the files hold more than is searched at once"
                 : clock_ms() > s->until_ms             ? "it took too long"
                 : !s->call->may_go_on(s->call->ctx)    ? "nobody waits"
                                                        : NULL;
    return !s->stopped;
}

static const char *find(const char *line, size_t n, const char *words)
{
    const size_t n_words = strlen(words);
    for (size_t i = 0; i + n_words <= n; i++) {
        if (tolower((unsigned char)line[i]) == tolower((unsigned char)words[0]) &&
            strncasecmp(line + i, words, n_words) == 0) {
            return line + i;
        }
    }
    return NULL;
}

static void search_text(searcher *s, const char *path, const bytes *text)
{
    size_t line = 1;
    for (size_t at = 0; at < text->len && may_go_on(s); line++) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        const size_t n = (end ? (size_t)(end - text->data) : text->len) - at;
        const char *found = find(text->data + at, n, s->words);
        if (found) {
            const char *begin = text->data + at;
            const size_t before = (size_t)(found - begin);
            size_t cut = before > LINE_SHOWN / 2 ? before - LINE_SHOWN / 3 : 0;
            while (cut > 0 && ((unsigned char)begin[cut] & 0xc0) == 0x80) {
                cut--;
            }
            char shown[LINE_SHOWN + 1];
            const size_t n_shown = n - cut < LINE_SHOWN ? n - cut : LINE_SHOWN;
            memcpy(shown, begin + cut, n_shown);
            shown[n_shown - utf8_incomplete_tail(shown, n_shown)] = '\0';
            mcp_clean_text(s->out, path, PATH_MAX, false);
            bytes_printf(s->out, ":%zu: %s", line, cut > 0 ? "... " : "");
            mcp_clean_text(s->out, shown, LINE_SHOWN, false);
            bytes_append_str(s->out, n - cut > n_shown ? " ...\n" : "\n");
            s->n_matches++;
        }
        at += n + 1;
    }
}

static void search_file(searcher *s, const char *path, const entry *e)
{
    bytes data = bytes_empty(LIMIT_TOOL_SEARCHED_FILE_BYTES),
          text = bytes_empty(4 * LIMIT_TOOL_SEARCHED_FILE_BYTES);
    off_t size;
    if (s->glob[0] && fnmatch(s->glob, e->name, FNM_CASEFOLD) != 0) {
        return;
    }
    if (!s->words[0]) {
        mcp_clean_text(s->out, path, PATH_MAX, false);
        bytes_append_char(s->out, '\n');
        s->n_matches++;
        return;
    }
    if (e->bytes > (off_t)LIMIT_TOOL_SEARCHED_FILE_BYTES) {
        s->n_large++;
        return;
    }
    const int fd = open_below(s->call->config->folder, path, false);
    if (fd >= 0 && load(&data, &size, fd, LIMIT_TOOL_SEARCHED_FILE_BYTES, s->call) &&
        !mcp_is_binary(data.data, data.len)) {
        s->n_bytes += data.len;
        mcp_decode(&text, data.data, data.len, "");
        search_text(s, path, &text);
    }
    if (fd >= 0) {
        close(fd);
    }
    bytes_deinit(&text);
    bytes_deinit(&data);
}

/* One folder after the other, without recursion: what is not looked into yet waits in a list. */
static void search_below(searcher *s, const char *start)
{
    char **waiting = NULL;
    size_t n = 0, cap = 0;
    char *first = strdup(start);
    bool is_short = false; /* of memory */
    if (first && memory_grow(&waiting, &cap, 1, 64, sizeof *waiting)) {
        waiting[n++] = first;
    } else {
        free(first);
        s->stopped = NO_MEMORY;
    }
    while (n > 0 && may_go_on(s)) {
        char *folder = waiting[--n], path[PATH_MAX];
        entries e = {0};
        const int fd = open_below(s->call->config->folder, folder, true);
        size_t depth = 0;
        for (const char *p = folder; *p; p++) {
            depth += *p == '/';
        }
        if (fd >= 0) {
            read_entries(&e, fd, s->call);
        }
        s->n_entries += e.n;
        for (size_t i = e.n; i-- > 0;) { /* folders from the last, so that the first is next */
            if (S_ISDIR(e.items[i].kind) && e.items[i].name[0] != '.' && depth < DEEPEST &&
                snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "", e.items[i].name) <
                    PATH_MAX) {
                char *below = memory_grow(&waiting, &cap, n + 1, 64, sizeof *waiting) ? strdup(path) : NULL;
                if (below) {
                    waiting[n++] = below;
                }
                is_short = is_short || !below;
            }
        }
        for (size_t i = 0; i < e.n && may_go_on(s); i++) {
            if (S_ISREG(e.items[i].kind) && e.items[i].name[0] != '.' &&
                snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "", e.items[i].name) <
                    PATH_MAX) {
                search_file(s, path, &e.items[i]);
            }
        }
        if ((e.is_cut || is_short) && !s->stopped) {
            s->stopped = e.n == LIMIT_TOOL_ENTRIES ? "there are more files" : NO_MEMORY;
        }
        free_entries(&e);
        free(folder);
    }
    while (n > 0) {
        free(waiting[--n]);
    }
    free(waiting);
}

bool mcp_folder_search(const builtin_call *call, bytes *out)
{
    char path[PATH_MAX];
    searcher s = {.call = call,
                  .out = out,
                  .words = builtin_text(call, "text"),
                  .glob = builtin_text(call, "name"),
                  .until_ms = clock_ms() + 1000.0 * LIMIT_TOOL_SEARCH_S};
    if (!s.words[0] && !s.glob[0]) {
        bytes_append_str(out, "text (what the files say) or name (a pattern like *.md) is needed");
        return false;
    }
    if (!read_path(path, call, out)) {
        return false;
    }
    const int fd = open_below(call->config->folder, path, true);
    if (fd < 0) {
        return say_error(out, path, errno);
    }
    close(fd);
    search_below(&s, path);
    if (s.n_matches == 0) {
        bytes_append_str(out, "Nothing was found.\n");
    }
    if (s.stopped) {
        bytes_printf(out, "(the search ended early: %s; a path or a name narrows it)\n", s.stopped);
    }
    if (s.n_large > 0) {
        bytes_printf(out, "(%zu files are too large and were not searched)\n", s.n_large);
    }
    return true;
}
