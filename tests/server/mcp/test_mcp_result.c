/* mcp_result: what of a call's contents the model gets: texts to their limit, images that it may see, a note for each thing
 * that is left out; and that a lack of memory is told, not hidden. */
#include "server/mcp/mcp_result.h"

#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

#define PNG "{\"type\":\"image\",\"data\":\"iVBORw0KGgoAAA==\"}"

static mcp_result *read_text(const char *text)
{
    json_doc *doc = NULL;
    mcp_result *r = mcp_result_create(7, 3);
    CHECK(r != NULL);
    CHECK_INT(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, NULL), ERR_OK);
    mcp_result_read(r, json_root(doc));
    json_free(doc);
    return r;
}

static void check_read(const char *text, const char *said, const char *images)
{
    mcp_result *r = read_text(text);
    CHECK_STR(bytes_str(&r->text), said);
    CHECK_STR(bytes_str(&r->images), images);
    CHECK(!r->has_failed);
    CHECK_INT(r->owner, 7);
    CHECK_INT(r->place, 3);
    CHECK(r->progress < 0);
    mcp_result_free(r);
}

static void test_blocks(void)
{
    check_read("{}", "", "");
    check_read("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
               "a\nb", "");
    check_read("{\"content\":[" PNG ",{\"type\":\"image\",\"data\":\"/9j/4\\\"A\"}]}", "",
               "\"data:image/png;base64,iVBORw0KGgoAAA==\",\"data:image/jpeg;base64,/9j/4A\"");
    check_read("{\"content\":[{\"type\":\"image\",\"data\":\"UklGRg+/"
               "9\"},{\"type\":\"image\",\"data\":\"R0lGODaz0Z\"}]}",
               "", "\"data:image/webp;base64,UklGRg+/9\",\"data:image/gif;base64,R0lGODaz0Z\"");
    check_read("{\"content\":[{\"type\":\"image\",\"data\":\"R0lGOD@AZ[`az{/09:=+*,-.;~ \\u00e4\"}]}", "",
               "\"data:image/gif;base64,R0lGODAZaz/09=+\"");
    check_read("{\"content\":[{\"type\":\"image\",\"data\":\"PHN2Zz4=\"}]}",
               "[an image is left out: of a form that is not read]", "");
    check_read(
        "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"t\"}},"
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"a:c\",\"mimeType\":\"x/y\",\"blob\":\"AAAA\"}},"
        "{\"type\":\"resource\",\"resource\":{\"blob\":\"iVBORw0KGgo=\"}},{\"type\":\"resource\","
        "\"resource\":{}}]}",
        "t\n[a file: a:c, x/y, 4 bytes as base64]\n[a file: without a name, of an unknown type, 0 bytes as "
        "base64]",
        "\"data:image/png;base64,iVBORw0KGgo=\"");
    check_read(
        "{\"content\":[{\"type\":\"resource_link\",\"name\":\"n\",\"uri\":\"u:v\"},{\"type\":\"audio\"}]}",
        "[a resource: n, u:v]\n[audio: not shown to the model]", "");
    check_read("{\"content\":[" PNG "," PNG "," PNG "," PNG "," PNG "]}",
               "[an image is left out: one too many]",
               "\"data:image/png;base64,iVBORw0KGgoAAA==\",\"data:image/png;base64,iVBORw0KGgoAAA==\","
               "\"data:image/png;base64,iVBORw0KGgoAAA==\",\"data:image/png;base64,iVBORw0KGgoAAA==\"");
    /* what is for programs is said where nothing is for the model */
    check_read("{\"structuredContent\":{\"a\":[1,\"x\"]}}", "{\"a\":[1,\"x\"]}", "");
    check_read("{\"structuredContent\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}", "b", "");
    check_read("{\"structuredContent\":{\"a\":1},\"content\":[" PNG "]}", "",
               "\"data:image/png;base64,iVBORw0KGgoAAA==\"");
}

static void test_failures(void)
{
    mcp_result *r = read_text("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}");
    CHECK(r->has_failed);
    CHECK_STR(bytes_str(&r->text), "no");
    mcp_result_fail(r, "it ended with %d", 9);
    CHECK(r->has_failed);
    CHECK_STR(bytes_str(&r->text), "it ended with 9");
    mcp_result_free(r);
    mcp_result_free(NULL);
}

/* One text of n bytes, and a second of two behind it where `more` is true. */
static mcp_result *read_long(const char *type, const char *field, const char *begin, size_t n,
                             const char *more)
{
    char *text = malloc(n + 512);
    size_t at =
        (size_t)snprintf(text, n + 512, "{\"content\":[{\"type\":\"%s\",\"%s\":\"%s", type, field, begin);
    memset(text + at, 'A', n - strlen(begin));
    at += n - strlen(begin);
    snprintf(text + at, n + 512 - at, "%s\"}]}", more);
    mcp_result *r = read_text(text);
    free(text);
    return r;
}

static void test_limits(void)
{
    const size_t most = LIMIT_MCP_RESULT_BYTES;
    mcp_result *r = read_long("text", "text", "", most, "");
    CHECK_INT(r->text.len, most);
    mcp_result_free(r);
    r = read_long("text", "text", "", most, "\"},{\"type\":\"text\",\"text\":\"bc");
    CHECK_INT(r->text.len, most + strlen("\n[cut here: 2 more bytes]"));
    CHECK_STR(bytes_str(&r->text) + most, "\n[cut here: 2 more bytes]");
    mcp_result_free(r);
    r = read_long("text", "text", "", most - 2,
                  "\"},{\"type\":\"text\",\"text\":\"bc"); /* room for one of them */
    CHECK_STR(bytes_str(&r->text) + most - 3, "A\nb\n[cut here: 1 more bytes]");
    mcp_result_free(r);
    r = read_long("text", "text", "", most - 1,
                  "\xe2\x82\xac"
                  "d"); /* a character is whole, or not there */
    CHECK_STR(bytes_str(&r->text) + most - 2, "A\n[cut here: 4 more bytes]");
    mcp_result_free(r);
    r = read_long("image", "data", "iVBORw0KGgo", LIMIT_MCP_IMAGE_BYTES, "");
    CHECK_INT(r->n_images, 1);
    CHECK_INT(r->images.len, LIMIT_MCP_IMAGE_BYTES + strlen("\"data:image/png;base64,\""));
    mcp_result_free(r);
    r = read_long("image", "data", "iVBORw0KGgo", LIMIT_MCP_IMAGE_BYTES + 1, "");
    CHECK_INT(r->n_images, 0);
    CHECK_STR(bytes_str(&r->text), "[an image is left out: too large]");
    mcp_result_free(r);
}

/* Everything of it, or that memory was short. */
static err_code read_all(void *context)
{
    (void)context;
    static const char TEXT[] =
        "{\"content\":[{\"type\":\"text\",\"text\":\"a text that is longer than nothing\"}," PNG
        ",{\"type\":\"audio\"}]}";
    static const char ONLY[] = "{\"structuredContent\":{\"a\":[1,2,3,\"something\"]}}";
    for (int i = 0; i < 2; i++) {
        json_doc *doc = NULL;
        err_code err = json_parse(&doc, i ? ONLY : TEXT, strlen(i ? ONLY : TEXT), LIMIT_JSON_DEPTH, NULL);
        mcp_result *r = err ? NULL : mcp_result_create(0, 0);
        if (!r) {
            json_free(doc);
            return ERR_NOMEM;
        }
        mcp_result_read(r, json_root(doc));
        const char *said = bytes_str(&r->text);
        if (r->has_failed) {
            /* even the reason may not fit any more */
            err = !said[0] || strcmp(said, "there is no memory for this result") == 0 ? ERR_NOMEM
                                                                                      : ERR_INTERNAL;
            CHECK(r->n_images == 0 && r->images.len == 0 && !r->images.failed); /* nor a half of one */
        } else if (strcmp(said, i ? "{\"a\":[1,2,3,\"something\"]}"
                                  : "a text that is longer than nothing\n[audio: not shown to the model]") !=
                       0 ||
                   r->images.len != (i ? 0 : strlen("\"data:image/png;base64,iVBORw0KGgoAAA==\""))) {
            fprintf(stderr, "%s, %s\n", said, bytes_str(&r->images));
            err = ERR_INTERNAL;
        }
        mcp_result_free(r);
        json_free(doc);
        if (err) {
            return err;
        }
    }
    return ERR_OK;
}

int main(void)
{
    test_blocks();
    test_failures();
    test_limits();
    CHECK(alloc_fail_each(read_all, NULL, 1000) > 5);
    CHECK_DONE();
}
