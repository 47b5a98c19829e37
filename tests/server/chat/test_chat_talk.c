/* chat_talk and chat_screen: what was said, as JSON and as Markdown; an answer on a terminal and into a pipe. */
#define _GNU_SOURCE /* posix_openpt */
#include "server/chat/chat_talk.h"

#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/limits.h"
#include "server/chat/chat_screen.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/said.h"

static char folder[FOLDER_NAME];

static void is_written(const chat_talk *t, const char *expected)
{
    bytes out = bytes_empty(1 << 20);
    chat_talk_write(t, &out);
    CHECK_STR(bytes_str(&out), expected);
    bytes_deinit(&out);
}

static const char *file_of(const char *name, const void *data, size_t n)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
    return path;
}

static void test_messages(void)
{
    chat_talk *t = chat_talk_create();
    CHECK(t != NULL);
    CHECK_STR(chat_talk_system(t), "");
    is_written(t, "[]");
    CHECK(!chat_talk_again(t));
    CHECK(chat_talk_set_system(t, "be \"brief\""));
    CHECK_STR(chat_talk_system(t), "be \"brief\"");
    is_written(t, "[{\"role\":\"system\",\"content\":\"be \\\"brief\\\"\"}]");
    CHECK(chat_talk_ask(t, "one"));
    is_written(
        t,
        "[{\"role\":\"system\",\"content\":\"be \\\"brief\\\"\"},{\"role\":\"user\",\"content\":\"one\"}]");
    CHECK(chat_talk_set_system(t, ""));
    CHECK(chat_talk_again(t)); /* it is asked again as it is */
    is_written(t, "[{\"role\":\"user\",\"content\":\"one\"}]");
    CHECK(chat_talk_ask(t, "instead")); /* takes the place of a question without an answer */
    CHECK(chat_talk_answer(t, "Yes. More", 4));
    CHECK(chat_talk_ask(t, "two"));
    is_written(t,
               "[{\"role\":\"user\",\"content\":\"instead\"},{\"role\":\"assistant\",\"content\":\"Yes.\"},"
               "{\"role\":\"user\",\"content\":\"two\"}]");
    CHECK(chat_talk_answer(t, "No.", 3));
    CHECK(chat_talk_again(t));
    is_written(t,
               "[{\"role\":\"user\",\"content\":\"instead\"},{\"role\":\"assistant\",\"content\":\"Yes.\"},"
               "{\"role\":\"user\",\"content\":\"two\"}]");
    chat_talk_clear(t);
    is_written(t, "[]");
    CHECK(!chat_talk_again(t));
    for (int i = 0; i < 40; i++) { /* more than there was room for at first */
        CHECK(chat_talk_ask(t, "q") && chat_talk_answer(t, "a", 1));
    }
    bytes out = bytes_empty(1 << 20);
    chat_talk_write(t, &out);
    CHECK_INT(out.len, 40 * (strlen("{\"role\":\"user\",\"content\":\"q\"},") +
                             strlen("{\"role\":\"assistant\",\"content\":\"a\"},")) +
                           1);
    bytes_deinit(&out);
    chat_talk_destroy(t);
    chat_talk_destroy(NULL);
}

static const unsigned char PNG[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
                                    13,   'I', 'H', 'D', 'R',  0,    0,    0,    1, 0, 0,
                                    0,    1,   8,   0,   0,    0,    0,    0,    0, 0};
static const unsigned char MP4[] = {0, 0, 0, 24, 'f', 't', 'y', 'p', 'i', 's', 'o', 'm',
                                    0, 0, 2, 0,  'i', 's', 'o', 'm', 'm', 'p', '4', '1'};

static void test_files(void)
{
    err_detail d = {0};
    char path[256], sentence[512];
    chat_talk *t = chat_talk_create();
    CHECK_OK(chat_talk_attach(t, file_of("a.png", PNG, sizeof PNG), "image", &d), d);
    CHECK_INT(chat_talk_attached(t), 1);
    CHECK_OK(chat_talk_attach(t, file_of("a.mp4", MP4, sizeof MP4), "video", &d), d);
    CHECK_INT(chat_talk_attached(t), 2);
    snprintf(path, sizeof path, "%s/a.png", folder);
    CHECK_INT(chat_talk_attach(t, path, "video", &d), ERR_INVALID);
    snprintf(sentence, sizeof sentence, "%s is no video; it is image/png", path);
    CHECK_STR(d.text, sentence);
    snprintf(path, sizeof path, "%s/a.mp4", folder);
    CHECK_INT(chat_talk_attach(t, path, "image", &d), ERR_INVALID);
    snprintf(sentence, sizeof sentence, "%s is no image; it is video/mp4", path);
    CHECK_STR(d.text, sentence);
    CHECK_INT(chat_talk_attach(t, file_of("a.txt", "text", 4), "image", &d), ERR_INVALID);
    CHECK_HAS(d.text, "a.txt is no image that is known");
    CHECK_INT(chat_talk_attach(t, "/nowhere/a.png", "image", &d), ERR_NOT_FOUND);
    CHECK_HAS(d.text, "/nowhere/a.png");
    CHECK_INT(chat_talk_attached(t), 2);
    for (int i = 0; i < 6; i++) { /* more than there was room for at first */
        snprintf(path, sizeof path, "%s/a.png", folder);
        CHECK_OK(chat_talk_attach(t, path, "image", &d), d);
    }
    CHECK_INT(chat_talk_attached(t), 8);
    chat_talk_clear(t);
    CHECK_INT(chat_talk_attached(t), 0);
    CHECK(chat_talk_set_system(t, "S"));
    CHECK_OK(chat_talk_attach(t, path, "image", &d), d);
    snprintf(path, sizeof path, "%s/a.mp4", folder);
    CHECK_OK(chat_talk_attach(t, path, "video", &d), d);
    CHECK(chat_talk_ask(t, "What?"));
    CHECK_INT(chat_talk_attached(t), 0);
    CHECK(chat_talk_answer(t, "That.", 5));
    is_written(t, "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":["
                  "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/"
                  "png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAAAAAA=\"}},"
                  "{\"type\":\"video_url\",\"video_url\":{\"url\":\"data:video/"
                  "mp4;base64,AAAAGGZ0eXBpc29tAAACAGlzb21tcDQx\"}},"
                  "{\"type\":\"text\",\"text\":\"What?\"}]},{\"role\":\"assistant\",\"content\":\"That.\"}]");

    /* Saved by its name: as messages or as Markdown, and never over a file that is there. */
    bytes text = bytes_empty(1 << 20), messages = bytes_empty(1 << 20);
    snprintf(path, sizeof path, "%s/talk.json", folder);
    CHECK_OK(chat_talk_save(t, path, &d), d);
    CHECK_OK(file_read(&text, path, &d), d);
    chat_talk_write(t, &messages);
    bytes_append_char(&messages, '\n');
    CHECK_STR(bytes_str(&text), bytes_str(&messages));
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK_INT(chat_talk_save(t, path, &d), ERR_IO);
    CHECK_HAS(d.text, "talk.json cannot be written: File exists");
    bytes_clear(&text);
    snprintf(path, sizeof path, "%s/talk.md", folder);
    CHECK_OK(chat_talk_save(t, path, &d), d);
    CHECK_OK(file_read(&text, path, &d), d);
    snprintf(sentence, sizeof sentence,
             "## System\n\nS\n\n## Question\n\n[image](<%s/a.png>)\n\n[video](<%s/a.mp4>)\n\nWhat?\n\n## "
             "Answer\n\nThat.\n\n",
             folder, folder);
    CHECK_STR(bytes_str(&text), sentence);
    bytes_clear(&text);
    CHECK(chat_talk_set_system(t, ""));
    CHECK(chdir(folder) == 0);
    CHECK_OK(chat_talk_save(t, ".json", &d), d); /* no name before it: Markdown */
    CHECK_OK(file_read(&text, ".json", &d), d);
    CHECK(strncmp(bytes_str(&text), "## Question", 11) == 0);
    bytes_deinit(&text);
    bytes_deinit(&messages);
    chat_talk_destroy(t);
}

/* ---- the screen ---- */

static void show(chat_screen *s, bool is_thought, const char *text)
{
    chat_screen_text(s, is_thought, text, strlen(text));
}

static void test_pipe(void)
{
    said_begin();
    chat_screen s;
    chat_screen_begin(&s, false);
    show(&s, true, "hm");
    show(&s, true, "");
    show(&s, false, "Yes\033[2J");
    chat_screen_wait(&s, 5);
    chat_screen_end(&s);
    chat_screen_note(&s, "[%d tokens]", 2);
    said_end();
    CHECK(!s.is_terminal && !s.has_styles);
    CHECK_STR(said_out, "Yes\033[2J\n"); /* as it is */
    CHECK_STR(said_err, "hm\n[2 tokens]\n");

    said_begin();
    chat_screen_begin(&s, false);
    show(&s, true, "hm\n"); /* its line has ended */
    show(&s, false, "Yes\n");
    chat_screen_end(&s);
    show(&s, false, "No");
    show(&s, true, "so");
    said_end();
    CHECK_STR(said_out, "Yes\nNo");
    CHECK_STR(said_err, "hm\nso");

    said_begin();
    chat_screen_begin(&s, true);
    show(&s, true, "hm");
    show(&s, false, "Yes");
    chat_screen_end(&s);
    chat_screen_note(&s, "x");
    said_end();
    CHECK_STR(said_out, "Yes\n");
    CHECK_STR(said_err, "");
}

static void test_terminal(void)
{
    chat_screen s = {.is_terminal = true, .has_styles = true, .at_line_start = true};
    said_begin();
    chat_screen_wait(&s, 0.99);
    chat_screen_wait(&s, 1.0);
    chat_screen_wait(&s, 2.0);
    show(&s, true, "hm");
    show(&s, true, "m");
    show(&s, false, "Yes");
    chat_screen_end(&s);
    chat_screen_wait(&s, 3);
    chat_screen_end(&s);
    chat_screen_note(&s, "[%d]", 2);
    said_end();
    CHECK_STR(said_out,
              "\r\033[K\033[2m... 1 s\033[0m\r\033[K\033[2m... 2 s\033[0m\r\033[K\033[2mhmm\033[0m\nYes\n"
              "\r\033[K\033[2m... 3 s\033[0m\r\033[K\033[2m[2]\033[0m\n");
    CHECK_STR(said_err, "");

    /* An answer that ends in thoughts: the next one begins as the first did. */
    s = (chat_screen){.is_terminal = true, .has_styles = true, .at_line_start = true};
    said_begin();
    show(&s, true, "hm");
    chat_screen_end(&s);
    show(&s, false, "No");
    chat_screen_end(&s);
    said_end();
    CHECK_STR(said_out, "\033[2mhm\033[0m\nNo\n");

    /* Controls are shown: both ends of each range, and what stands beside it. */
    s = (chat_screen){.is_terminal = true, .at_line_start = true};
    said_begin();
    show(&s, false, "\t\x01\x1b[m\x1f ~\x7f\xc2\x80\xc2\x9f\xc2\xa0");
    show(&s, false,
         "\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa");
    show(&s, true, "x");
    chat_screen_end(&s);
    chat_screen_wait(&s, 5); /* without styles nothing is drawn */
    chat_screen_note(&s, "n");
    said_end();
    CHECK_STR(said_out, "\t^A^[[m^_ ~\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc2\xa0"
                        "\xe2\x80\xa9\xef\xbf\xbd\xef\xbf\xbd\xe2\x80\xaf\xe2\x81\xa5\xef\xbf\xbd\xef\xbf\xbd"
                        "\xe2\x81\xaax\nn\n");
    s = (chat_screen){.is_terminal = true, .has_styles = true, .is_quiet = true, .at_line_start = true};
    said_begin();
    chat_screen_wait(&s, 5);
    show(&s, true, "hm");
    chat_screen_note(&s, "n");
    said_end();
    CHECK_STR(said_out, "");
}

/* Which terminals take colours. */
static void test_styles(void)
{
    static const struct {
        const char *term, *no_color;
        bool has;
    } ROWS[] = {{"xterm", NULL, true}, {"xterm", "", true}, {"xterm", "1", false},
                {"dumb", NULL, false}, {"", NULL, false},   {NULL, NULL, false}};
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        return;
    }
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY), kept = dup(STDOUT_FILENO);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        chat_screen s;
        ROWS[i].term ? setenv("TERM", ROWS[i].term, 1) : unsetenv("TERM");
        ROWS[i].no_color ? setenv("NO_COLOR", ROWS[i].no_color, 1) : unsetenv("NO_COLOR");
        dup2(slave, STDOUT_FILENO);
        chat_screen_begin(&s, i == 0);
        dup2(kept, STDOUT_FILENO);
        CHECK_INT(s.is_terminal, true);
        CHECK_INT(s.has_styles, ROWS[i].has);
        CHECK_INT(s.is_quiet, i == 0);
        CHECK(s.at_line_start);
    }
    close(kept);
    close(slave);
    close(master);
}

/* A talk with a picture: whole, or told to be short of memory. */
static err_code talk_once(void *picture)
{
    char path[FOLDER_NAME + 16];
    err_detail d = {0};
    bytes out = bytes_empty(1 << 20);
    chat_talk *t = chat_talk_create();
    err_code err = t && chat_talk_set_system(t, "be brief") ? ERR_OK : ERR_NOMEM;
    const bool attaches = err == ERR_OK;
    err = err ? err : chat_talk_attach(t, picture, "image", &d);
    if (attaches && err) {
        CHECK_HAS(d.text, "there is not enough memory for ");
    }
    err = err ? err : chat_talk_ask(t, "q") && chat_talk_answer(t, "a", 1) ? ERR_OK : ERR_NOMEM;
    if (!err) {
        snprintf(path, sizeof path, "%s/saved.json", folder);
        err = chat_talk_save(t, path, &d);
        CHECK_INT(unlink(path) == 0, err == ERR_OK); /* nothing is left of what was not saved */
        chat_talk_write(t, &out);
        err = out.failed ? ERR_NOMEM : err;
    }
    bytes_deinit(&out);
    chat_talk_destroy(t);
    return err;
}

static void test_short_memory(void)
{
    char picture[256];
    snprintf(picture, sizeof picture, "%s", file_of("picture.png", PNG, sizeof PNG));
    CHECK(alloc_fail_each(talk_once, picture, 1000) > 6);
}

ONE_FAILS(int, fsync, (int fd), (fd), (errno = EIO, -1))

/* A file of more bytes than may be sent, and one that the disk does not take. */
static void test_limits(void)
{
    char path[FOLDER_NAME + 16];
    err_detail d = {0};
    chat_talk *t = chat_talk_create();
    CHECK(t && chat_talk_ask(t, "a question"));
    const char *large = file_of("large.mp4", MP4, sizeof MP4);
    CHECK_INT(truncate(large, (off_t)LIMIT_VIDEO_BYTES + 1), 0);
    CHECK_INT(chat_talk_attach(t, large, "video", &d), ERR_LIMIT);
    CHECK_HAS(d.text, "/large.mp4 is larger than 512 MiB");
    CHECK_INT(chat_talk_attached(t), 0);
    CHECK_INT(unlink(large), 0);
    struct rlimit before, none;
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 8, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    snprintf(path, sizeof path, "%s/short.md", folder);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
    const err_code err = chat_talk_save(t, path, &d);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_INT(err, ERR_IO);
    CHECK_HAS(d.text, "/short.md could not be written whole: File too large");
    CHECK(access(path, F_OK) != 0);
    one_fails("fsync", 1);
    CHECK_INT(chat_talk_save(t, path, &d), ERR_IO);
    CHECK(one_fails_over());
    CHECK_HAS(d.text, "/short.md could not be written whole: Input/output error");
    CHECK(access(path, F_OK) != 0);
    chat_talk_destroy(t);
}

int main(void)
{
    folder_make(folder);
    test_messages();
    test_files();
    test_pipe();
    test_terminal();
    test_styles();
    test_limits();
    test_short_memory();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
