/* What built-in tools make of pages: HTML as text, and encodings. */
#include <iconv.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/mcp/mcp_decode.h"
#include "server/mcp/mcp_html.h"
#include "tests/recorded.h"

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
    check_page("<img alt='a  cat'><img alt=''><img><img alt='c'>", "[image: a cat][image: c]");
    check_page("<pre>a\tb\n\rc</pre>", "a\tb\nc");
    check_page("<p>a\f</p><pre>b</pre> c<pre>d\n</pre> e", "a\n\nb\n\nc\n\nd\n\n\ne");
    check_page("<a href='http://o/a(b'>a</a> <a href='http://o/<b'>b</a> <a href='HTTPS://o/'>c</a> <a "
               "href='ftp://o/'>d</a>",
               "a b c (HTTPS://o/) d");
    static char page[2000], text[2000];
    for (int n = 499; n <= 501; n++) { /* an address may have 499 bytes, as it is said and as it is meant */
        snprintf(page, sizeof page, "<a href='http://o/%0*d'>a</a>", n - 9, 0);
        snprintf(text, sizeof text, n < 500 ? "a (http://o/%0*d)" : "a", n - 9, 0);
        check_page(page, text);
        snprintf(page, sizeof page, "<a href='%0*d'>a</a>", n - 14, 0);
        snprintf(text, sizeof text, n < 500 ? "a (https://h/dir/%0*d)" : "a", n - 14, 0);
        check_page(page, text);
    }
    for (int n = 241; n <= 245; n++) { /* of a style 255 signs are read, blanks not counted */
        snprintf(page, sizeof page, "<p style='%0*d; \n display: none'>a</p>", n, 0);
        check_page(page, n <= 242 ? "" : "a");
    }
    check_page("a &amp; b &lt;c&gt; &eacute;", "a & b <c> \xc3\xa9");
    check_page("", "");
    bytes out = bytes_empty(1 << 16), title = bytes_empty(1 << 10);
    CHECK(mcp_html_text(&out, &title, "<title>A &amp; B</title>x", 25, "http://h", go_on, NULL));
    CHECK_STR(bytes_str(&title), "A & B");
    CHECK_STR(bytes_str(&out), "x");
    out.len = 0;
    CHECK(!mcp_html_text(&out, &title, "<p>x", 4, "http://h", go_on, &out)); /* nobody waits */
    bytes small = bytes_empty(10);
    CHECK(!mcp_html_text(&small, &title, "<p>0123456789</p>0", 18, "http://h", go_on, NULL)); /* no room */
    bytes_deinit(&small);
    bytes_init(&small, 10);
    CHECK(mcp_html_text(&small, &title, "<p>0123456789</p>", 17, "http://h", go_on, NULL));
    CHECK_STR(bytes_str(&small), "0123456789");
    bytes_deinit(&small);
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
    memcpy(text + 4096 - 11, "charset=abcd", 12); /* it is looked for in the first 4096 bytes */
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
        {"\xef\xbb\xbf", 3, "latin1", ""}, /* nothing but a mark */
        {"\xff\xfe", 2, "latin1", ""},
        {"\xff", 1, "latin1", "\xc3\xbf"},
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

/* Names of sets of characters, those by which pages call another one among them. */
static void test_names(void)
{
    bytes all = bytes_empty(1 << 16);
    static const char *const NAMES[] = {
        "ISO-8859-1", "iso8859-1",      "latin1", "us-ascii",    "ASCII",       "iso-8859-9", "iso-8859-15",
        "shift_jis",  "shift-jis",      "sjis",   "x-sjis",      "windows-31j", "gb2312",     "gbk",
        "x-gbk",      "ks_c_5601-1987", "euc-kr", "big5",        "tis-620",     "unicode",    "utf-16",
        "UTF8",       "x-mac-roman",    "koi8-r", "no-such-name"};
    static const char *const TEXTS[] = {"\x80 \xd0\xa1 \x87\x40 \xfd", "a\xa1", "plain.", "caf\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        bytes_printf(&all, "%s:", NAMES[i]);
        for (size_t k = 0; k < ARRAY_LEN(TEXTS); k++) {
            bytes out = bytes_empty(100);
            mcp_decode(&out, TEXTS[k], strlen(TEXTS[k]), NAMES[i]);
            bytes_printf(&all, " \"");
            bytes_append_str(&all, bytes_str(&out));
            bytes_printf(&all, "\"");
            bytes_deinit(&out);
        }
        bytes_append_char(&all, '\n');
    }
    recorded_check("server/mcp/charsets.txt", bytes_str(&all));
    bytes_deinit(&all);
}

int main(void)
{
    test_html();
    test_charset();
    test_decode();
    test_names();
    test_no_tables();
    CHECK_DONE();
}
