/* What built-in tools make of pages and files: HTML as text, encodings, a folder listed, read and searched. */
#include <iconv.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/mcp/mcp_builtin.h"
#include "server/mcp/mcp_decode.h"
#include "server/mcp/mcp_html.h"
#include "tests/folder.h"
#include "tests/said.h"

enum { PATH = 512 };

static bool go_on(void *ctx)
{
    return ctx == NULL;
}

/* ---- pages ---- */

static void check_page(const char *html, const char *text)
{
    bytes out = bytes_empty(1 << 16), title = bytes_empty(1 << 10);
    CHECK(mcp_html_text(&out, &title, html, strlen(html), "https://h/dir/page", go_on, NULL));
    CHECK_STR(bytes_str(&out), text);
    bytes_deinit(&out);
    bytes_deinit(&title);
}

static void test_html(void)
{
    check_page("<p>One  \n two</p><p>three</p>", "One two\n\nthree");
    check_page("<h1>A</h1><h3>B</h3>text<h6>C</h6>", "# A\n\n### B\n\ntext\n\n###### C");
    check_page("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc");
    check_page("a<br>b<br><br>c", "a\nb\n\nc");
    check_page("<table><tr><td>a<td>b</tr><tr><th>c</th><th>d</th></tr></table>e", "a | b\nc | d\n\ne");
    check_page("<div>a</div><div>b</div>", "a\nb");
    check_page("<pre>a  b\n c</pre>d", "a  b\n c\n\nd");
    check_page("<b>a</b> <i>b</i>c", "a bc");
    check_page("a<script>no</script><style>no</style><nav>no <b>no</b></nav><select><option>no</select>b",
               "ab");
    check_page("<p hidden>no</p><p style='Display : None'>no</p><p style=\"visibility:hidden\">no</p><p "
               "aria-hidden=TRUE>no</p><p aria-hidden=false>yes</p>",
               "yes");
    check_page("<a href='x'>rel</a> <a href='/y?z'>abs</a> <a href='http://o/'>out</a>",
               "rel (https://h/dir/x) abs (https://h/y?z) out (http://o/)");
    check_page("<a href='#x'>a</a> <a href='mailto:x'>b</a> <a href='javascript:x'>c</a> <a href='q'></a>",
               "a b c");
    check_page("<img alt='a  cat'><img alt=''><img>", "[image: a cat]");
    check_page("a &amp; b &lt;c&gt; &eacute;", "a & b <c> \xc3\xa9");
    check_page("", "");
    bytes out = bytes_empty(1 << 16), title = bytes_empty(1 << 10);
    CHECK(mcp_html_text(&out, &title, "<title>A &amp; B</title>x", 25, "http://h", go_on, NULL));
    CHECK_STR(bytes_str(&title), "A & B");
    CHECK_STR(bytes_str(&out), "x");
    out.len = 0;
    CHECK(!mcp_html_text(&out, &title, "<p>x", 4, "http://h", go_on, &out)); /* nobody waits */
    char deep[4000];
    for (int n = 500; n <= 800; n += 300) {
        for (int i = 0; i < n; i++) {
            memcpy(deep + 5 * i, "<div>", 5);
        }
        CHECK_INT(mcp_html_text(&out, &title, deep, (size_t)n * 5, "http://h", go_on, NULL), n == 500);
    }
    /* A character is not cut where a piece ends. */
    char longer[9000];
    memset(longer, 'x', sizeof longer);
    memcpy(longer + 4095, "\xc3\xa9", 2);
    out.len = 0;
    bytes whole = bytes_empty(1 << 16);
    CHECK(mcp_html_text(&whole, &title, longer, sizeof longer, "http://h", go_on, NULL));
    CHECK(whole.len == sizeof longer && memcmp(bytes_str(&whole), longer, sizeof longer) == 0);
    bytes_deinit(&whole);
    bytes_deinit(&out);
    bytes_deinit(&title);
}

static void test_charset(void)
{
    static const char *const CASES[][2] = {
        {"<meta charset=\"latin1\">", "latin1"},
        {"<meta CHARSET='x-1:2.3_4'>", "x-1:2.3_4"},
        {"content=\"text/html; charset=ab\"", "ab"},
        {"<p>none</p>", ""},
        {"charset=utf-16le ", "UTF-8"},
        {"charset=UTF-32 ", "UTF-8"},
    };
    char out[16], text[5000];
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        mcp_html_charset(out, sizeof out, CASES[i][0], strlen(CASES[i][0]));
        CHECK_STR(out, CASES[i][1]);
    }
    memset(text, ' ', sizeof text);
    memcpy(text + 4096 - 11, "charset=abc", 11);
    mcp_html_charset(out, sizeof out, text, sizeof text);
    CHECK_STR(out, "abc");
    memcpy(text + 4096 - 11, "           charset=abc", 22);
    mcp_html_charset(out, sizeof out, text, sizeof text);
    CHECK_STR(out, ""); /* too far */
    mcp_html_charset(out, 4, "charset=abcdef ", 15);
    CHECK_STR(out, "abc");
}

static bool has_tables = true;

iconv_t __real_iconv_open(const char *to, const char *from);
iconv_t __wrap_iconv_open(const char *to, const char *from);
iconv_t __wrap_iconv_open(const char *to, const char *from)
{
    return has_tables ? __real_iconv_open(to, from) : (iconv_t)-1;
}

/* A system without tables of characters. */
static void test_no_tables(void)
{
    static const char *const CASES[][3] = {{"caf\xc3\xa9", "latin1", "caf\xc3\xa9"},
                                           {"caf\xe9s\x80\xff", "latin1", "caf\xc3\xa9s\xc2\x80\xc3\xbf"},
                                           {"a\x83", "shift_jis", "a\xc2\x83"},
                                           {"a\xe9s", "", "a\xc3\xa9s"},
                                           {"a\xe9", "", "a\xef\xbf\xbd"},
                                           {"a\xe9", "utf-8", "a\xef\xbf\xbd"}};
    has_tables = false;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes out = bytes_empty(100);
        mcp_decode(&out, CASES[i][0], strlen(CASES[i][0]), CASES[i][1]);
        CHECK_STR(bytes_str(&out), CASES[i][2]);
        bytes_deinit(&out);
    }
    has_tables = true;
}

static void test_decode(void)
{
    static const struct {
        const char *data;
        size_t n;
        const char *charset, *text;
    } CASES[] = {
        {"abc", 3, "", "abc"},
        {"caf\xc3\xa9", 5, "", "caf\xc3\xa9"},
        {"caf\xe9s", 5, "", "caf\xc3\xa9s"},
        {"\x80", 1, "", "\xe2\x82\xac"},
        {"\xef\xbb\xbf"
         "a",
         4, "latin1", "a"},
        {"\xff\xfe"
         "a\0b\0",
         6, "", "ab"},
        {"\xfe\xff\0a\0b", 6, "", "ab"},
        {"\x83\x41", 2, "shift_jis", "\xe3\x82\xa2"},
        {"a\xff"
         "b",
         3, "utf-8",
         "a\xef\xbf\xbd"
         "b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes out = bytes_empty(100);
        mcp_decode(&out, CASES[i].data, CASES[i].n, CASES[i].charset);
        CHECK_STR(bytes_str(&out), CASES[i].text);
        bytes_deinit(&out);
    }
    CHECK(mcp_is_binary("a\0b", 3) && !mcp_is_binary("ab", 2) &&
          !mcp_is_binary("\xff\xfe"
                         "a\0",
                         4) &&
          !mcp_is_binary("", 0));
}

/* ---- a folder ---- */

static mcp_server_config config;
static char root[FOLDER_NAME];

static void put(const char *name, const char *data, size_t n)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

/* What a tool says to arguments; "!" in front where it failed. */
static const char *said(bool (*tool)(const builtin_call *, bytes *), const char *arguments)
{
    static bytes out;
    json_doc *doc = NULL;
    bytes_deinit(&out);
    out = bytes_empty(1 << 20);
    CHECK(json_parse(&doc, arguments, strlen(arguments), 8, NULL) == ERR_OK);
    const builtin_call call = {.config = &config, .arguments = json_root(doc), .may_go_on = go_on};
    bytes text = bytes_empty(1 << 20);
    const bool ok = tool(&call, &text);
    bytes_append_str(&out, ok ? "" : "!");
    bytes_append_str(&out, bytes_str(&text));
    bytes_deinit(&text);
    json_free(doc);
    return bytes_str(&out);
}

static void test_list(void)
{
    char path[PATH];
    CHECK_STR(said(mcp_folder_list, "{}"), "The folder is empty.\n");
    put("b.txt", "hello", 5);
    put("a\x01.md", "", 0);
    snprintf(path, sizeof path, "%s/sub", root);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/link", root);
    CHECK(symlink("b.txt", path) == 0);
    snprintf(path, sizeof path, "%s/pipe", root);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_STR(said(mcp_folder_list, "{}"),
              "a.md (0 bytes)\nb.txt (5 bytes)\nlink (a link, not followed)\npipe (no file)\nsub/\n");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"./sub//\"}"), "The folder is empty.\n");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"nothing\"}"),
              "!nothing: there is nothing of this name; list_folder shows what there is");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"b.txt\"}"), "!b.txt: it is no folder, or behind a link");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"sub/../b.txt\"}"),
              "!the path may not have .. in it: nothing outside of the folder is read");
    char arguments[PATH + 64];
    snprintf(arguments, sizeof arguments, "{\"path\":\"%s/sub\"}", root); /* absolute, but below it */
    CHECK_STR(said(mcp_folder_list, arguments), "The folder is empty.\n");
    for (int i = 0; i < 502; i++) {
        char name[32];
        snprintf(name, sizeof name, "sub/%03d", i);
        put(name, "", 0);
    }
    const char *many = said(mcp_folder_list, "{\"path\":\"sub\"}");
    CHECK(strstr(many, "499 (0 bytes)\n(cut here: 2 more)\n") && !strstr(many, "500 ("));
    for (int i = 0; i < 502; i++) {
        snprintf(path, sizeof path, "%s/sub/%03d", root, i);
        CHECK(unlink(path) == 0);
    }
}

static void test_read(void)
{
    put("lines", "1\n2\n3\n4", 7);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\"}"), "1\n2\n3\n4");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":2,\"lines\":2}"),
              "2\n3\n\n(cut here, after line 3; read_file with first_line 4 goes on)");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":4}"), "4");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":5}"), "(the file has 4 lines)");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"a\\u0001.md\"}"), "The file is empty.");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"sub\"}"),
              "!this is a folder: list_folder shows what is in it");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"link\"}"),
              "!link: it is a link, and links are not followed");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"pipe\"}")[0] == '!' ? "!" : "", "!");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"none\"}"),
              "!none: there is nothing of this name; list_folder shows what there is");
    put("latin", "caf\xe9s", 5);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"latin\"}"), "caf\xc3\xa9s");
    put("image", "\x89PNG\r\n\x1a\n", 8);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"image\"}"),
              "This file is no text: it is a PNG image of 8 bytes.");
    put("zeros", "ab\0", 3);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"zeros\"}"),
              "This file is no text: it is binary, of 3 bytes.");
    /* A line that is too long by itself, and lines that are too long together. */
    static char large[70000];
    memset(large, 'x', sizeof large);
    put("wide", large, sizeof large);
    const char *wide = said(mcp_folder_read, "{\"path\":\"wide\"}");
    CHECK(strspn(wide, "x") == 32768 &&
          strstr(wide, "(cut here, after line 1, which is longer; read_file with first_line 2 goes on)"));
    for (size_t i = 999; i < sizeof large; i += 1000) {
        large[i] = '\n';
    }
    put("tall", large, sizeof large);
    const char *tall = said(mcp_folder_read, "{\"path\":\"tall\"}");
    CHECK(strstr(tall, "(cut here, after line 32; read_file with first_line 33 goes on)") != NULL);
    for (size_t i = 0; i < 2200; i++) {
        large[i] = i % 2 ? '\n' : 'y';
    }
    put("many", large, 2200);
    CHECK(strstr(said(mcp_folder_read, "{\"path\":\"many\"}"),
                 "(cut here, after line 1000; read_file with first_line 1001 goes on)") != NULL);
}

static void test_search(void)
{
    put("sub/one.md", "A Quagga here\nnone\nquagga again", 31);
    put("sub/two.txt", "no animal", 9);
    put("sub/.hidden", "quagga", 6);
    put("sub/bin", "quagga\0", 7);
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"quagga\",\"path\":\"sub\"}"),
              "sub/one.md:1: A Quagga here\nsub/one.md:3: quagga again\n");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"QUAGGA a\"}"), "sub/one.md:3: quagga again\n");
    CHECK_STR(said(mcp_folder_search, "{\"name\":\"*.MD\",\"path\":\"sub\"}"), "sub/one.md\n");
    CHECK_STR(said(mcp_folder_search, "{\"name\":\"*.txt\",\"text\":\"quagga\"}"), "Nothing was found.\n");
    CHECK_STR(said(mcp_folder_search, "{}"),
              "!text (what the files say) or name (a pattern like *.md) is needed");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"x\",\"path\":\"gone\"}"),
              "!gone: there is nothing of this name; list_folder shows what there is");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"x\",\"path\":\"..\"}")[0] == '!' ? "!" : "", "!");
    /* Long lines are cut around what was found. */
    static char line[1000];
    memset(line, 'z', sizeof line);
    memcpy(line + 500, "needle", 6);
    put("sub/long", line, sizeof line);
    const char *found = said(mcp_folder_search, "{\"text\":\"needle\",\"path\":\"sub\"}");
    CHECK(strncmp(found, "sub/long:1: ... z", 17) == 0 && strstr(found, "needle") &&
          strstr(found, "z ...\n"));
    CHECK_INT(strlen(found), strlen("sub/long:1: ... ") + 300 + strlen(" ...\n"));
    for (size_t i = 1; i < sizeof line; i += 2) {
        line[i] = '\n';
    }
    put("sub/long", line, sizeof line);
    found = said(mcp_folder_search, "{\"text\":\"z\",\"path\":\"sub\"}");
    CHECK(
        strstr(found, "(the search ended early: there may be more matches; a path or a name narrows it)\n") !=
        NULL);
    size_t n = 0;
    for (const char *p = found; (p = strstr(p, "sub/long:")); p++) {
        n++;
    }
    CHECK_INT(n, 100);
}

/* Where a search ends early or leaves something out, and paths and characters at their bounds. */
static void test_search_bounds(void)
{
    static char line[2 * 400 + 7], path[2 * 4096];
    char name[PATH];
    for (size_t i = 0; i < 400; i++) {
        memcpy(line + 2 * i, "\xc3\xa9", 2);
    }
    for (size_t odd = 0; odd < 2; odd++) { /* the cut is in front of a character */
        memcpy(line + 800, odd ? "yneedle" : "needle", 6 + odd);
        put("wide", line, 806 + odd);
        const char *found = said(mcp_folder_search, "{\"text\":\"needle\",\"name\":\"wide\"}");
        CHECK_INT(strncmp(found, "wide:1: ... \xc3\xa9\xc3\xa9", 16), 0);
        CHECK_INT(strlen(found), strlen("wide:1: ... needle\n") + 100 + odd);
    }
    for (off_t more = 0; more < 2; more++) {
        put("large.log", "quokka\n", 7);
        snprintf(name, sizeof name, "%s/large.log", root);
        CHECK(truncate(name, (off_t)LIMIT_TOOL_SEARCHED_FILE_BYTES + more) == 0);
        CHECK_STR(said(mcp_folder_search, "{\"text\":\"quokka\",\"name\":\"*.log\"}"),
                  more ? "Nothing was found.\n(1 files are too large and were not searched)\n"
                       : "Nothing was found.\n"); /* with zeros in it, it is no text */
    }
    CHECK(unlink(name) == 0);
    memset(line, '\n', sizeof line);
    for (int i = 0; i < 3; i++) { /* the first has more than is shown; the others wait */
        snprintf(name, sizeof name, "%s/heap", root);
        CHECK(i > 0 || mkdir(name, 0700) == 0);
        snprintf(name, sizeof name, "%s/heap/%d", root, i);
        CHECK(mkdir(name, 0700) == 0);
        snprintf(name, sizeof name, "heap/%d/f", i);
        for (size_t k = 0; k < 400; k += 2) {
            line[k] = 'w';
        }
        put(name, line, 400);
    }
    CHECK_HAS(said(mcp_folder_search, "{\"text\":\"w\",\"path\":\"heap\"}"),
              "(the search ended early: there may be more matches; a path or a name narrows it)\n");
    size_t n = (size_t)snprintf(path, sizeof path, "{\"text\":\"x\",\"path\":\"");
    for (size_t k = 0; k < 2046; k++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "a/");
    }
    snprintf(path + n, sizeof path - n, "aaa\"}"); /* PATH_MAX has room for its end, too */
    CHECK_HAS(said(mcp_folder_search, path), "there is nothing of this name");
    snprintf(path + n, sizeof path - n, "aaaa\"}");
    CHECK_STR(said(mcp_folder_search, path), "!the path is too long");
}

int main(void)
{
    folder_make(root);
    config.folder = root;
    test_html();
    test_charset();
    test_decode();
    test_no_tables();
    test_list();
    test_read();
    test_search();
    test_search_bounds();
    (void)said(mcp_folder_list, "{}");
    CHECK_DONE();
}
