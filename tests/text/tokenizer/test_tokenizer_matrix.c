/* Files of tokenizers that differ from a plain one of their form in one place: what each makes of some texts, or why it is
 * refused, is as recorded in matrix.txt. Lines that a file has in common with the plain one are left out. */
#include <string.h>

#include "base/limits.h"
#include "tests/recorded.h"
#include "text/tokenizer/pretokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocab.h"

#define MARK "\xe2\x96\x81"

enum { MEMORY = 1 << 22, TEXT_MAX = 1 << 20, A_IS_0 = 159 /* the id of byte 0, then that of a is 0 */ };

/* ' stands for a quotation mark, @BYTES for the tokens of the 256 bytes. */
static const char BYTE_LEVEL[] =
    "{'added_tokens':[{'id':300,'content':'<s>','special':true},{'id':301,'content':'\xc3\xa9!','normalized':"
    "true},"
    "{'id':302,'content':'<tool>'},{'id':303,'content':'[INST]','normalized':true}],"
    "'normalizer':{'type':'NFC'},"
    "'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false,'use_regex':true},"
    "'decoder':{'type':'ByteLevel'},"
    "'model':{'type':'BPE','vocab':{@BYTES,'ab':256,'abc':257,'bc':258,'\xc4\xa0"
    "a':259,'\xc4\xa0\xc4\xa0':260,'11':261},"
    "'merges':[['a','b'],['ab','c'],['b','c'],['\xc4\xa0','a'],['\xc4\xa0','\xc4\xa0'],['1','1']]}}";
/* Words that are tokens are taken whole; one of them has the id 0. */
static const char WHOLE[] =
    "{'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false},'decoder':{'type':'ByteLevel'},"
    "'model':{'ignore_merges':true,'vocab':{@BYTES,'\xc4\xa0"
    "b':0,'abc':256,'aa':257,'aaa':258},'merges':['a a']}}";
static const char SPACED[] =
    "{'added_tokens':[{'id':301,'content':'<s>','special':true}],"
    "'normalizer':{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'},"
    "'pre_tokenizer':{'type':'Split','pattern':{'String':' "
    "'},'behavior':'MergedWithPrevious','invert':false},"
    "'decoder':{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'" MARK
    "'},'content':' '},"
    "{'type':'ByteFallback'},{'type':'Fuse'}]},"
    "'model':{'type':'BPE','unk_token':'<unk>','byte_fallback':true,'vocab':{'<s>':301,@BYTES,'" MARK
    "':300,'a':0,'b':302,'" MARK "a':303,'" MARK MARK "':304,'ab':305,'\xc3\xa9':306,'a" MARK "':307},"
    "'merges':[['" MARK "','a'],['" MARK "','" MARK "'],['a','b']]}}";
/* Each piece of a text begins with a space. */
static const char EACH[] =
    "{'added_tokens':[{'id':301,'content':'<s>','special':true}],"
    "'normalizer':{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'" MARK
    "'},{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'}]},"
    "'pre_tokenizer':null,"
    "'decoder':{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'" MARK
    "'},'content':' '},"
    "{'type':'ByteFallback'},{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'stop':0}]},"
    "'model':{'type':'BPE','byte_fallback':true,'vocab':{'<s>':301,@BYTES,'" MARK "':300,'a':0,'b':302,'" MARK
    "a':303,'" MARK MARK "':304,'ab':305},"
    "'merges':[['" MARK "','a'],['" MARK "','" MARK "'],['a','b']]}}";
static const char SCORED[] =
    "{'added_tokens':[{'id':0,'content':'<s>','special':true}],'normalizer':null,"
    "'pre_tokenizer':{'type':'Metaspace','replacement':'" MARK "','prepend_scheme':'first','split':false},"
    "'decoder':{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'" MARK
    "'},'content':' '},"
    "{'type':'ByteFallback'},{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'stop':0}]},"
    "'model':{'type':'BPE','byte_fallback':true,'vocab':{'<s>':0,@BYTES,'" MARK "':257,'a':258,'b':259,'" MARK
    "a':260,'ab':261,'aba':262,'ba':263},'scores':[0@ZEROES,-9,-8,-7,-2,-1,-3,-1.5]}}";

typedef struct change {
    const char *from, *to;
} change;

#define SPLIT(regex)   "{'type':'Split','pattern':{'Regex':'" regex "'},'behavior':'Isolated','invert':false}"
#define NO_REGEX       "{'type':'ByteLevel','add_prefix_space':false,'use_regex':false}"
#define STEPS(...)     "'pre_tokenizer':{'type':'Sequence','pretokenizers':[" __VA_ARGS__ "]}"
#define BYTE_LEVEL_PRE "'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false,'use_regex':true}"
#define FOUR(one)      one "," one "," one "," one ","

static const change BYTE_LEVEL_CHANGES[] = {
    {"'normalizer':{'type':'NFC'},", ""},
    {"{'type':'NFC'}", "null"},
    {"{'type':'NFC'}", "{}"},
    {"{'type':'NFC'}", "{'type':'NFD'}"},
    {"{'type':'NFC'}", "{'type':'Sequence','normalizers':[]}"},
    {"{'type':'NFC'}", "{'type':'Sequence','normalizers':[{'type':'NFC'}]}"},
    {"{'type':'NFC'}", "{'type':'Sequence','normalizers':[{'type':'NFC'},{'type':'Lowercase'}]}"},
    {BYTE_LEVEL_PRE, "'pre_tokenizer':null"},
    {BYTE_LEVEL_PRE, "'pre_tokenizer':{'type':'Whitespace'}"},
    {BYTE_LEVEL_PRE, "'pre_tokenizer':" NO_REGEX},
    {",'use_regex':true", ""},
    {"'add_prefix_space':false,", ""},
    {"'add_prefix_space':false,", "'add_prefix_space':true,"},
    {BYTE_LEVEL_PRE, "'pre_tokenizer':" SPLIT("b")},
    {BYTE_LEVEL_PRE, STEPS()},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("b") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("\\\\s|\\\\S\\\\S") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("\\\\S+\\\\d") "," SPLIT("a|\\\\\\\\") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("a*") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("a\\\\") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("a(") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("(a+)+$") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(SPLIT("(.|x)*y") "," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(NO_REGEX "," SPLIT("b"))},
    {BYTE_LEVEL_PRE, STEPS(FOUR(SPLIT("b")) FOUR(SPLIT("a")) NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS(FOUR(SPLIT("b")) FOUR(SPLIT("a")) SPLIT("c") "," NO_REGEX)},
    {BYTE_LEVEL_PRE,
     STEPS(FOUR(SPLIT("b")) FOUR(SPLIT("a")) "{'type':'ByteLevel','add_prefix_space':false}")},
    {BYTE_LEVEL_PRE, STEPS("{'type':'Split','pattern':{'String':'b'},'behavior':'Isolated'}," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS("{'type':'Split','pattern':{'Regex':'b'}}," NO_REGEX)},
    {BYTE_LEVEL_PRE, STEPS("{'type':'Split','pattern':{'Regex':'b'},'behavior':'Removed'}," NO_REGEX)},
    {BYTE_LEVEL_PRE,
     STEPS("{'type':'Split','pattern':{'Regex':'b'},'behavior':'Isolated','invert':true}," NO_REGEX)},
    {"'decoder':{'type':'ByteLevel'},", ""},
    {"'decoder':{'type':'ByteLevel'}", "'decoder':{'type':'WordPiece'}"},
    {"'type':'BPE',", ""},
    {"'type':'BPE'", "'type':'Unigram'"},
    {"'type':'BPE'", "'type':'BPE','dropout':0"},
    {"'type':'BPE'", "'type':'BPE','dropout':0.1"},
    {"'type':'BPE'", "'type':'BPE','dropout':null"},
    {"'type':'BPE'", "'type':'BPE','dropout':[]"},
    {"'type':'BPE'", "'type':'BPE','unk_token':''"},
    {"'type':'BPE'", "'type':'BPE','unk_token':'<s>'"},
    {"'type':'BPE'", "'type':'BPE','continuing_subword_prefix':'#'"},
    {"'type':'BPE'", "'type':'BPE','end_of_word_suffix':'#'"},
    {"'type':'BPE'", "'type':'BPE','byte_fallback':false"},
    {"'type':'BPE'", "'type':'BPE','byte_fallback':true"},
    {"'type':'BPE'", "'type':'BPE','ignore_merges':true"},
    {"['ab','c'],", ""},
    {"['a','b']", "'a b'"},
    {"['a','b']", "'ab'"},
    {"['a','b']", "['a']"},
    {"['a','b']", "['a','b','c']"},
    {"['a','b']", "['a',1]"},
    {"['a','b']", "['','a']"},
    {"['a','b']", "['a','']"},
    {"['a','b']", "['','']"},
    {"['a','b']", "7"},
    {"['ab','c']", "['ab','d']"},
    {"['ab','c']", "['xy','c']"},
    {"['ab','c']", "['ab','\xe4\xb8\xad']"},
    {"'merges':[", "'merges':7,'x':["},
    {"'vocab':{", "'vocab':[],'x':{"},
    {"'type':'BPE','vocab':{", "'vocab':[],'x':{"},
    {"'type':'BPE','vocab':{", "'type':'Unigram','vocab':[],'x':{"},
    {"'type':'BPE','vocab':{", "'type':7,'vocab':[],'x':{"},
    {"{'added_tokens':[",
     "{'model':{'vocab':{},'merges':[]},'pre_tokenizer':" NO_REGEX ",'decoder':{'type':'ByteLevel'},'x':["},
    {"'\\u0062':1,", ""},
    {"'\\u0100':159,", ""},
    {"'ab':256", "'ab':-1"},
    {"'ab':256", "'ab':'256'"},
    {"'ab':256", "'ab':16777217"},
    {"'ab':256", "'ab':100000"},
    {"'ab':256", "'ab':256,'\xe4\xb8\xad':400,'':401"},
    {"'id':300", "'id':'300'"},
    {"'id':300", "'id':-1"},
    {"'id':300", "'id':16777217"},
    {"'id':300", "'id':0"},
    {"'content':'<s>'", "'content':7"},
    {"'content':'<s>'", "'content':''"},
    {"'content':'<s>','special':true", "'content':'<s>'"},
    {"'content':'<s>','special':true", "'content':'ab','special':true"},
    {"'content':'<s>','special':true", "'content':'aaa','special':false"},
    {"'content':'<s>','special':true", "'content':'!!','special':false"},
    {"'content':'<s>','special':true", "'content':'\xef\xbd\x9c"
                                       "a\xef\xbd\x9c'"},
    {"'content':'<s>'", "'content':'<s>','lstrip':true"},
    {"'content':'<s>'", "'content':'<s>','rstrip':true"},
    {"'content':'<s>'", "'content':'<s>','single_word':true"},
    {"'content':'<s>'", "'content':'<s>','normalized':true"},
    {"'content':'\xc3\xa9!'", "'content':'<s> '"},
    {"'normalized':true},{'id':302", "'normalized':false},{'id':302"},
    {"'\\u0100'", "'zz'"}, /* 00 */
    {"'\\u0108'", "'zz'"}, /* 08 */
    {"'\\u0109'", "'zz'"}, /* 09 */
    {"'\\u010a'", "'zz'"}, /* 0A */
    {"'\\u010b'", "'zz'"}, /* 0B */
    {"'\\u010d'", "'zz'"}, /* 0D */
    {"'\\u011f'", "'zz'"}, /* 1F */
    {"'\\u0120'", "'zz'"}, /* 20 */
    {"'\\u007e'", "'zz'"}, /* 7E */
    {"'\\u0121'", "'zz'"}, /* 7F */
    {"'\\u00c0'", "'zz'"}, /* C0 */
    {"'\\u00c1'", "'zz'"}, /* C1 */
    {"'\\u00c2'", "'zz'"}, /* C2 */
    {"'\\u00f0'", "'zz'"}, /* F0 */
    {"'\\u00f1'", "'zz'"}, /* F1 */
    {"'\\u00ff'", "'zz'"}, /* FF */
};

static const change WHOLE_CHANGES[] = {
    {"'ignore_merges':true,", ""},
    {"'abc':256", "'ab':256"},
};

static const change SPACED_CHANGES[] = {
    {"'normalizer':{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'}", "'normalizer':null"},
    {"'pattern':{'String':' '},'content':'" MARK "'}", "'pattern':{'String':'_'},'content':'" MARK "'}"},
    {"'content':'" MARK "'}", "'content':'_'}"},
    {"'pre_tokenizer':{'type':'Split','pattern':{'String':' "
     "'},'behavior':'MergedWithPrevious','invert':false}",
     "'pre_tokenizer':null"},
    {"{'type':'Split','pattern':{'String':' '},", "{'type':'Split','pattern':{'String':'a'},"},
    {"{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'}",
     "{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'" MARK
     "'},{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'}]}"},
    {"'decoders':[", "'decoders':[{'type':'Fuse'},"},
    {"{'type':'ByteFallback'},", ""},
    {"{'type':'Fuse'}", "{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'stop':0}"},
    {"'byte_fallback':true,", ""},
    {"'unk_token':'<unk>'", "'unk_token':'<unk>','dropout':1"},
    {"'unk_token':'<unk>'", "'unk_token':'<unk>','ignore_merges':true"},
    {"'<0x41>'", "'<0x4>'"},
    {"'<0x41>'", "'<0x041>'"},
    {"'<0x4A>'", "'<0x4a>'"},
    {"['a','b']", "['a','b'],['a','" MARK "']"},
    {"['a','b']", "['a','c']"},
    {"['a','b']", "'a b'"},
    {"'b':302", "'b':302,'b" MARK "b':400"},
    {"{'type':'Fuse'}", "{'type':'Fused'}"},
    {"'byte_fallback':true", "'byte_fallback':false"},
    {"'<0x41>'", "'<0x41]'"},
    {"'<0x41>'", "'<1x41>'"},
    {"'<0x09>'", "'<0x09'"},
    {"'<0x0A>'", "'<0x0A'"},
    {"'<0x0D>'", "'<0x0D'"},
    {"'<0x1F>'", "'<0x1F'"},
    {"'<0x20>'", "'<0x20'"},
    {"'<0x7E>'", "'<0x7E'"},
    {"'<0x7F>'", "'<0x7F'"},
    {"'<0xBF>'", "'<0xBF'"},
    {"'<0xC0>'", "'<0xC0'"},
    {"'<0xC1>'", "'<0xC1'"},
    {"'<0xC2>'", "'<0xC2'"},
    {"'<0xF0>'", "'<0xF0'"},
    {"'<0xF1>'", "'<0xF1'"},
    {"'<0xFF>'", "'<0xFF'"},
};

static const change EACH_CHANGES[] = {
    {"'type':'Prepend'", "'type':'Lowercase'"},
    {"'prepend':'" MARK "'", "'prepend':'_'"},
    {"'prepend':'" MARK "'", "'other':'_'"},
    {"'content':'" MARK "'}]}", "'content':'_'}]}"},
    {"'content':'" MARK "'}]}", "'content':'" MARK "'},{'type':'NFC'}]}"},
    {",{'type':'Replace','pattern':{'String':' '},'content':'" MARK "'}]}", "]}"},
    {"{'type':'Prepend','prepend':'" MARK "'},", ""},
    {"'normalizers'", "'others'"},
    {"'pre_tokenizer':null,", ""},
    {"'pre_tokenizer':null", "'pre_tokenizer':{'type':'Whitespace'}"},
    {",{'type':'Strip','content':' ','start':1,'stop':0}", ""},
    {"'start':1", "'start':2"},
    {"'stop':0}", "'stop':0},{'type':'Fuse'}"},
    {"{'type':'Fuse'},", ""},
    {"{'type':'ByteFallback'}", "{'type':'Bytes'}"},
};

static const change SCORED_CHANGES[] = {
    {"'first'", "'always'"},
    {"'first'", "'never'"},
    {"'prepend_scheme':'first',", ""},
    {"'split':false", "'split':true"},
    {",'split':false", ""},
    {"'replacement':'" MARK "'", "'replacement':'_'"},
    {"'normalizer':null", "'normalizer':{'type':'NFC'}"},
    {"'normalizer':null,", ""},
    {"'content':' ','start':1", "'content':'_','start':1"},
    {"'start':1", "'start':2"},
    {"'stop':0", "'stop':1"},
    {",{'type':'Strip','content':' ','start':1,'stop':0}", ""},
    {"'stop':0}", "'stop':0},{'type':'Fuse'}"},
    {"{'type':'Replace','pattern':{'String':'" MARK "'}", "{'type':'Replace','pattern':{'String':' '}"},
    {"'prepend_scheme':'first','split':false}", "'prepend_scheme':'always','split':false}"},
    {"'scores':[0", "'scores':7,'x':[0"},
    {",-1,-3,-1.5]", ",-1]"},
    {",-1,-3,-1.5]", ",-1,-3,-1.5,0,0,0]"},
    {"-2,-1,-3,-1.5", "-1,-1,-1,-1"},
    {"-2,-1,-3,-1.5", "-1,-2,-1.5,-3"},
    {"-2,-1,-3,-1.5", "'x',-1,null,-3"},
    {"'ba':263", "'ba':263,'b" MARK "':264"},
    {"'ba':263", "'ba':263,'" MARK MARK "':264"},
    {"'ba':263", "'b':263"},
};

static const char *const TEXTS[] = {"abc",
                                    "ab ab  abab bab",
                                    " a  b",
                                    "a<s>b<s> a<s>",
                                    "<s>",
                                    "e\xcc\x81! \xc3\xa9! \xc3\xa9",
                                    "a" MARK MARK "a " MARK "b",
                                    "<tool>[INST]<s\xef\xb7\x90>\n\n\t",
                                    "it's IT'LL 11111 1a1",
                                    "\xe2\x84\xaa\xef\xbd\x9c"
                                    "a\xef\xbd\x9c!!aaa!aaaa",
                                    "AJ \xe4\xb8\xad\xf0\x9f\x98\x80\x7f",
                                    "\xe1\xa0\x8ex\xc2\xa0y"};

/* A form with its placeholders filled in. */
static void fill_in(bytes *out, const char *form, bool byte_level, int first)
{
    static const char VOCABULARY[] = "@BYTES", ZEROES[] = "@ZEROES";
    for (const char *p = form; *p; p++) {
        int other = 0x100;
        const bool is_vocabulary = strncmp(p, VOCABULARY, sizeof VOCABULARY - 1) == 0;
        const bool is_zeroes = strncmp(p, ZEROES, sizeof ZEROES - 1) == 0;
        for (int byte = 0; is_vocabulary && byte < 256; byte++) {
            const bool same = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
            bytes_printf(out, byte_level ? "%s'\\u%04x':%d" : "%s'<0x%02X>':%d", byte ? "," : "",
                         !byte_level || same ? byte : other,
                         byte_level ? (byte + first) % 256 : byte + first);
            other += !same;
        }
        for (int i = 0; is_zeroes && i < 256; i++) {
            bytes_append_str(out, ",0");
        }
        if (is_vocabulary || is_zeroes) {
            p += (is_zeroes ? sizeof ZEROES : sizeof VOCABULARY) - 2;
        } else {
            bytes_append_char(out, *p);
        }
    }
}

/* The text of a file with a change made. */
static void make(bytes *out, const char *form, bool byte_level, int first, const change *c)
{
    bytes text = bytes_empty(TEXT_MAX);
    fill_in(&text, form, byte_level, first);
    const char *from = bytes_str(&text), *at = c ? strstr(from, c->from) : from;
    CHECK(at && (!c || !strstr(at + 1, c->from))); /* in one place */
    bytes_clear(out);
    bytes_append(out, from, at ? (size_t)(at - from) : 0);
    bytes_append_str(out, c ? c->to : "");
    bytes_append_str(out, at ? at + (c ? strlen(c->from) : 0) : "");
    for (size_t i = 0; i < out->len; i++) {
        out->data[i] = out->data[i] == '\'' ? '"' : out->data[i];
    }
    bytes_deinit(&text);
}

static void say_ids(bytes *out, const tokenizer *tok, const char *text, size_t len, tokenizer_mode mode)
{
    token_ids ids;
    bytes back = bytes_empty(TEXT_MAX), visible = bytes_empty(TEXT_MAX);
    err_detail d = {0};
    token_ids_init(&ids);
    CHECK(token_ids_push(&ids, 7) == ERR_OK); /* what is there stays */
    if (tokenizer_encode(tok, &ids, text, len, mode, &d)) {
        bytes_printf(out, " ! %s", d.text);
        CHECK_INT(ids.len, 1);
    }
    CHECK_INT(ids.ids[0], 7);
    for (size_t i = 1; i < ids.len; i++) {
        bytes_printf(out, " %d", (int)ids.ids[i]);
    }
    tokenizer_decode(tok, &back, ids.ids + 1, ids.len - 1, false);
    tokenizer_decode(tok, &visible, ids.ids + 1, ids.len - 1, true);
    if (back.len != len || memcmp(bytes_str(&back), text, len) != 0) {
        bytes_append_str(out, ", back ");
        bytes_append_json(out, bytes_str(&back), back.len);
    }
    if (strcmp(bytes_str(&visible), bytes_str(&back)) != 0) {
        bytes_append_str(out, ", visible ");
        bytes_append_json(out, bytes_str(&visible), visible.len);
    }
    bytes_append_char(out, '\n');
    token_ids_deinit(&ids);
    bytes_deinit(&back);
    bytes_deinit(&visible);
}

/* What a file comes to, in lines. */
static void say_file(bytes *out, const char *text, size_t len)
{
    tokenizer *tok = NULL;
    err_detail d = {0};
    bytes guarded = bytes_empty(TEXT_MAX);
    if (tokenizer_open_json(&tok, text, len, "file", &d)) {
        CHECK(tok == NULL);
        bytes_printf(out, "! %s\n", d.text);
        return;
    }
    const added_tokens *markers = tokenizer_markers(tok);
    bytes_printf(out, "%d ids; markers", (int)tokenizer_n_tokens(tok));
    for (size_t i = 0; i < markers->len; i++) {
        bytes_printf(out, " %.*s=%d", (int)markers->items[i].len, markers->items[i].text,
                     (int)markers->items[i].id);
    }
    bytes_printf(out, "; <s> is %d, a %d, aaa %d\n", (int)tokenizer_added_id(tok, "<s>"),
                 (int)tokenizer_added_id(tok, "a"), (int)tokenizer_added_id(tok, "aaa"));
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        bytes_append_json(out, TEXTS[i], strlen(TEXTS[i]));
        say_ids(out, tok, TEXTS[i], strlen(TEXTS[i]), TOKENIZER_SPECIALS);
        bytes_printf(out, "%zu plain", i);
        say_ids(out, tok, TEXTS[i], strlen(TEXTS[i]), TOKENIZER_PLAIN);
        bytes_clear(&guarded);
        tokenizer_guard(tok, &guarded, TEXTS[i], strlen(TEXTS[i]));
        if (strcmp(bytes_str(&guarded), TEXTS[i]) != 0) {
            bytes_printf(out, "%zu guarded ", i);
            bytes_append_json(out, bytes_str(&guarded), guarded.len);
            say_ids(out, tok, bytes_str(&guarded), guarded.len, TOKENIZER_SPECIALS);
        }
    }
    bytes_deinit(&guarded);
    tokenizer_close(tok);
}

/* The lines of a text that are not in the plain one, which begins with a blank line. */
static void put_new_lines(bytes *out, const char *text, const char *plain)
{
    for (; *text; text += strcspn(text, "\n") + 1) {
        char line[1024];
        snprintf(line, sizeof line, "\n%.*s\n", (int)strcspn(text, "\n"), text);
        if (!strstr(plain, line)) {
            bytes_printf(out, "  %s", line + 1);
        }
    }
}

static void say_form(bytes *out, const char *name, const char *form, int first, const change *changes,
                     size_t n)
{
    const bool byte_level = form == BYTE_LEVEL || form == WHOLE;
    bytes text = bytes_empty(TEXT_MAX), plain = bytes_empty(TEXT_MAX), now = bytes_empty(TEXT_MAX);
    make(&text, form, byte_level, first, NULL);
    bytes_append_char(&plain, '\n');
    say_file(&plain, bytes_str(&text), text.len);
    bytes_printf(out, "== %s%s", name, bytes_str(&plain));
    for (size_t i = 0; i < n; i++) {
        make(&text, form, byte_level, first, &changes[i]);
        bytes_clear(&now);
        say_file(&now, bytes_str(&text), text.len);
        bytes_printf(out, "%s -> %s\n", changes[i].from, changes[i].to);
        put_new_lines(out, bytes_str(&now), bytes_str(&plain));
    }
    bytes_deinit(&text);
    bytes_deinit(&plain);
    bytes_deinit(&now);
}

/* Long matches need more than the stack of the machine, and those that would take for ever end. */
static void check_long(void)
{
    enum { LONG = 20000, ENDLESS = 60 };
    static const change CHANGES[] = {{BYTE_LEVEL_PRE, STEPS(SPLIT("(.|x)*y") "," NO_REGEX)},
                                     {BYTE_LEVEL_PRE, STEPS(SPLIT("(a+)+$") "," NO_REGEX)}};
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        bytes text = bytes_empty(TEXT_MAX);
        tokenizer *tok = NULL;
        token_ids ids;
        err_detail d = {0};
        token_ids_init(&ids);
        make(&text, BYTE_LEVEL, true, A_IS_0, &CHANGES[i]);
        CHECK_OK(tokenizer_open_json(&tok, bytes_str(&text), text.len, "file", &d), d);
        bytes_clear(&text);
        for (int k = 0; k < (i ? ENDLESS : LONG); k++) {
            bytes_append_char(&text, i ? 'a' : 'x');
        }
        bytes_append_str(&text, i ? "b" : "y11 1");
        const err_code err = tokenizer_encode(tok, &ids, bytes_str(&text), text.len, TOKENIZER_PLAIN, &d);
        CHECK_INT(err, i ? ERR_LIMIT : ERR_OK);
        CHECK_INT(ids.len, i ? 0 : LONG + 4);
        CHECK_STR(d.text,
                  i ? "the text cannot be split into words: its expression exceeds a limit (-47)" : "");
        token_ids_deinit(&ids);
        tokenizer_close(tok);
        bytes_deinit(&text);
    }
}

static void append_letters(bytes *out, int n_left, int n_right)
{
    for (int i = 0; i < n_left + n_right; i++) {
        bytes_append_char(out, i < n_left ? 'a' : 'b');
    }
}

/* A file with one merge, of so many letters with so many. */
static err_code read_merge(int n_left, int n_right)
{
    bytes vocab_text = bytes_empty(TEXT_MAX), merge = bytes_empty(TEXT_MAX), text = bytes_empty(TEXT_MAX);
    tokenizer *tok = NULL;
    err_detail d = {0};
    bytes_append_str(&vocab_text, "'vocab':{'");
    append_letters(&vocab_text, n_left, 0);
    bytes_append_str(&vocab_text, "':401,'");
    append_letters(&vocab_text, 0, n_right);
    bytes_append_str(&vocab_text, "':402,'");
    append_letters(&vocab_text, n_left, n_right);
    bytes_append_str(&vocab_text, "':403,");
    bytes_append_str(&merge, "'merges':[['");
    append_letters(&merge, n_left, 0);
    bytes_append_str(&merge, "','");
    append_letters(&merge, 0, n_right);
    bytes_append_str(&merge, "'],");
    const change changes[] = {{"'vocab':{", bytes_str(&vocab_text)}, {"'merges':[", bytes_str(&merge)}};
    bytes form = bytes_empty(TEXT_MAX);
    const char *at = strstr(BYTE_LEVEL, changes[0].from);
    bytes_printf(&form, "%.*s%s%s", (int)(at - BYTE_LEVEL), BYTE_LEVEL, changes[0].to,
                 at + strlen(changes[0].from));
    make(&text, bytes_str(&form), true, A_IS_0, &changes[1]);
    const err_code err = tokenizer_open_json(&tok, bytes_str(&text), text.len, "file", &d);
    CHECK_STR(d.text, err ? "file: merge 0 is malformed or names a token that does not exist" : "");
    tokenizer_close(tok);
    bytes_deinit(&form);
    bytes_deinit(&vocab_text);
    bytes_deinit(&merge);
    bytes_deinit(&text);
    return err;
}

static void check_merges(void)
{
    enum { MOST = 4096 };
    CHECK_INT(read_merge(2, 3), ERR_OK);
    CHECK_INT(read_merge(MOST, MOST), ERR_OK);
    CHECK_INT(read_merge(MOST + 1, 3), ERR_CORRUPT);
    CHECK_INT(read_merge(2, MOST + 1), ERR_CORRUPT);
}

/* What the reader of files has made sure of before. */
static void check_bounds(void)
{
    const char *patterns[PRETOKENIZER_MAX_PATTERNS + 1];
    pretokenizer *pre = NULL;
    err_detail d = {0};
    vocab v;
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        patterns[i] = "a";
    }
    CHECK_INT(pretokenizer_create(&pre, patterns, ARRAY_LEN(patterns), &d), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "the pre-tokenizer has 9 splits; at most 8 are supported");
    CHECK(pre == NULL);
    CHECK_OK(vocab_init(&v, 2, 1, &d), d);
    for (int32_t id = -1; id <= 2; id++) {
        char want[64];
        snprintf(want, sizeof want, "token id %d is out of range", (int)id);
        CHECK_INT(vocab_add(&v, id, id ? "b" : "a", 1, VOCAB_BYTE, &d),
                  id < 0 || id > 1 ? ERR_INVALID : ERR_OK);
        CHECK(id == 0 || id == 1 || strcmp(d.text, want) == 0);
    }
    vocab_deinit(&v);
}

int main(void)
{
    bytes out = bytes_empty(MEMORY);
    say_form(&out, "of bytes", BYTE_LEVEL, A_IS_0, BYTE_LEVEL_CHANGES, ARRAY_LEN(BYTE_LEVEL_CHANGES));
    say_form(&out, "of bytes, words taken whole", WHOLE, 0, WHOLE_CHANGES, ARRAY_LEN(WHOLE_CHANGES));
    say_form(&out, "of characters, with merges", SPACED, 1, SPACED_CHANGES, ARRAY_LEN(SPACED_CHANGES));
    say_form(&out, "of characters, each piece begun with a space", EACH, 1, EACH_CHANGES,
             ARRAY_LEN(EACH_CHANGES));
    say_form(&out, "of characters, with scores", SCORED, 1, SCORED_CHANGES, ARRAY_LEN(SCORED_CHANGES));
    CHECK(!out.failed);
    recorded_check("text/tokenizer/matrix.txt", bytes_str(&out));
    bytes_deinit(&out);
    check_long();
    check_merges();
    check_bounds();
    CHECK_DONE();
}
