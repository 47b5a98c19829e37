/* which alternatives of a oneOf may hold for one value, and what it takes to find that out: tests/text/grammar/overlaps.txt
 * has it for each list below. Work that ends says that none do, at whatever step.
 */
#include "base/bytes.h"
#include "base/json.h"
#include "base/limits.h"
#include "tests/check.h"
#include "tests/recorded.h"
#include "text/grammar/json_schema_private.h"

/* ' stands for a quote. A reference begins at the list. */
static const char *const LISTS[] = {
    "",
    "{}",
    "{},{}",
    "false,{}",
    "{},false",
    "true,{}",
    "{},true",
    "false,true",
    "true,false",
    "3,false",
    "3,{}",
    "3,{'enum':[]}",
    "{'enum':[]},3",
    /* types */
    "{'type':'null'},{'type':'boolean'}",
    "{'type':'null'},{'type':'null'}",
    "{'type':'null'},{'type':'boolean'},{'type':['string','null']}",
    "{'type':'boolean'},{'type':'null'},{'type':['string','null']}",
    "{'type':'integer'},{'type':'number'}",
    "{'type':'string','nullable':true},{'type':'null'}",
    "{'type':'string'},{'type':'null'}",
    "{'type':'string'},{}",
    "{'minimum':3},{'minLength':3}",
    "{'minimum':3},{'type':'string'}",
    "{'minimum':3},{'maximum':3}",
    "{'minimum':3,'minLength':3},{'items':{}}",
    "{'minimum':3,'minLength':3},{'pattern':'a'}",
    /* values */
    "{'const':1},{'const':2}",
    "{'const':1},{'const':1}",
    "{'const':1},{'const':1.0}",
    "{'const':2},{'const':1}",
    "{'const':'a'},{'const':'b'}",
    "{'const':'a'},{'const':'a'}",
    "{'const':'1'},{'const':1}",
    "{'const':true},{'const':false}",
    "{'const':true},{'const':true}",
    "{'const':null},{'const':null}",
    "{'const':null},{'const':false}",
    "{'const':[1]},{'const':[2]}",
    "{'const':{}},{'const':[]}",
    "{'const':1},{'type':'integer'}",
    "{'const':1},{'type':'string'}",
    "{'type':'integer'},{'const':1}",
    "{'type':'integer'},{'const':1.5}",
    "{'type':'number'},{'const':1.5}",
    "{'type':'string'},{'const':1}",
    "{'const':1},{'enum':[2,3]}",
    "{'const':3},{'enum':[2,3]}",
    "{'enum':[2,3]},{'const':3}",
    "{'enum':[2,3]},{'const':1}",
    "{'enum':[1,2]},{'enum':[3,4]}",
    "{'enum':[1,2]},{'enum':[2,3]}",
    "{'enum':[1,2]},{'enum':[3,1]}",
    "{'enum':[1,2]},{}",
    "{'enum':[]},{}",
    "{},{'enum':[]}",
    "{'enum':'a'},{'type':'integer'}",
    "{'enum':[1,'a']},{'type':'string'}",
    "{'enum':['a',1]},{'type':'string'}",
    "{'enum':[1,2]},{'type':'string'}",
    "{'enum':[1,2],'type':'string'},{'enum':[1,2]}",
    "{'const':1,'enum':[2]},{'enum':[2,1]}",
    "{'const':3,'enum':[2,1]},{'enum':[2,1]}",
    "{'enum':[2,1]},{'const':3,'enum':[2,1]}",
    /* numbers */
    "{'maximum':3},{'minimum':4}",
    "{'minimum':4},{'maximum':3}",
    "{'maximum':3},{'minimum':3}",
    "{'exclusiveMaximum':3},{'minimum':3}",
    "{'minimum':3},{'exclusiveMaximum':3}",
    "{'exclusiveMaximum':3},{'minimum':2.9}",
    "{'maximum':3},{'exclusiveMinimum':3}",
    "{'exclusiveMinimum':3},{'maximum':3}",
    "{'maximum':3},{'exclusiveMinimum':2.9}",
    "{'exclusiveMaximum':3},{'exclusiveMinimum':3}",
    "{'type':'integer','maximum':-1},{'type':'integer','minimum':0}",
    "{'type':['integer','string'],'maximum':-1},{'type':['integer','string'],'minimum':0}",
    "{'type':['integer','string'],'maximum':-1},{'type':'number','minimum':0}",
    "{'type':'integer','maximum':'1'},{'type':'integer','minimum':2}",
    "{'type':'integer','maximum':1},{'type':'integer','minimum':'2'}",
    "{'type':'integer','exclusiveMaximum':true},{'type':'integer','minimum':2}",
    "{'type':'integer','exclusiveMaximum':1},{'type':'integer','minimum':[]}",
    "{'type':'integer','maximum':1},{'type':'integer','exclusiveMinimum':true}",
    "{'type':'integer','maximum':'1'},{'type':'integer','exclusiveMinimum':2}",
    /* objects */
    "{'required':['a'],'properties':{'a':{'const':1}}},{'required':['a'],'properties':{'a':{'const':2}}}",
    "{'required':['a'],'properties':{'a':{'const':1}}},{'required':['a'],'properties':{'a':{'const':1}}}",
    "{'required':['a'],'properties':{'a':{'const':1}}},{'properties':{'a':{'const':2}}}",
    "{'properties':{'a':{'const':1}}},{'required':['a'],'properties':{'a':{'const':2}}}",
    "{'properties':{'a':{'const':1}}},{'properties':{'a':{'const':2}}}",
    "{'required':['b','a'],'properties':{'a':{'const':1}}},{'properties':{'a':{'const':2}}}",
    "{'required':['a']},{'properties':{'a':{'const':2}}}",
    "{'required':['a']},{'properties':{'b':{'const':2}},'additionalProperties':false}",
    "{'properties':{'b':{'const':2}},'additionalProperties':false},{'required':['b','a']}",
    "{'required':['b']},{'properties':{'b':{'const':2}},'additionalProperties':false}",
    "{'required':['a']},{'properties':{'b':{'const':2}},'additionalProperties':true}",
    "{'required':['a']},{'properties':{'b':{'const':2}},'additionalProperties':{}}",
    "{'required':['a']},{'properties':{},'additionalProperties':false,'patternProperties':{}}",
    "{'required':['a']},{'additionalProperties':false,'type':['object','null']}",
    "{'required':['a'],'type':['object','null']},{'additionalProperties':false,'type':['object','null']}",
    "{'required':['a'],'type':['object','null']},{'additionalProperties':false,'type':['object','string']}",
    "{'required':[1]},{'additionalProperties':false,'properties':{'a':{}}}",
    /* parts */
    "{'allOf':[{'type':'null'}]},{'type':'string'}",
    "{'allOf':[{},{'type':'null'}]},{'type':'string'}",
    "{'allOf':[{},{'type':'string'}]},{'type':'string'}",
    "{'type':'string'},{'allOf':[{},{'type':'null'}]}",
    "{'allOf':[{'const':1}]},{'allOf':[{'const':2}]}",
    "{'anyOf':[{'type':'null'},{'type':'boolean'}]},{'type':'string'}",
    "{'anyOf':[{'type':'null'},{'type':'string'}]},{'type':'string'}",
    "{'anyOf':[{'type':'string'},{'type':'null'}]},{'type':'string'}",
    "{'type':'string'},{'oneOf':[{'type':'null'},{'type':'boolean'}]}",
    "{'oneOf':[{'type':'null'},{'type':'boolean'}]},{'type':'string'}",
    "{'oneOf':[{'type':'null'},{'type':'string'}]},{'type':'string'}",
    "{'oneOf':[{'type':'string'},{'type':'null'}]},{'type':'string'}",
    "{'anyOf':[]},{'type':'string'}",
    "{'anyOf':[{'type':'string'}],'oneOf':[{'type':'null'}]},{'type':'string'}",
    "{'anyOf':{}},{}",
    /* references, and how deep is looked */
    "{'$ref':'#/1/x'},{'x':{'type':'null'},'type':'string'}",
    "{'$ref':'#/1/x'},{'x':{'type':'string'},'type':'string'}",
    "{'x':{'type':'null'},'type':'string'},{'$ref':'#/0/x'}",
    "{'$ref':'#/none'},{'type':'string'}",
    "{'$ref':'#/0'},{'type':'string'}",
    "{'$ref':3},{'type':'string'}",
    "{'allOf':[{'allOf':[{'allOf':[{'allOf':[{'allOf':[{'type':'null'}]}]}]}]}]},{'type':'string'}",
    "{'allOf':[{'allOf':[{'allOf':[{'allOf':[{'allOf':[{'allOf':[{'type':'null'}]}]}]}]}]}]},{'type':'string'"
    "}",
    /* lists so long that pairs are looked at only where values do not tell them apart */
    "{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7}",
    "{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':8}",
    "{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':1}",
    "{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'enum':[8,9,8]}",
    "{'const':1},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'enum':[8,9,5]}",
    "{'enum':['a','b']},{'enum':['c','d']},{'const':1},{'const':true},{'const':null},{'const':'e'},{'const':"
    "2},{'const':false}",
    "{'enum':[]},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':8}",
    "{'type':'null'},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':8}",
    "{'const':[1]},{'const':2},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':[2]}",
    "{'$ref':'#/1/"
    "x'},{'const':2,'x':{'const':1}},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'const':8}",
    "{'$ref':'#/1/"
    "x'},{'const':2,'x':{'enum':[1,9,10]}},{'const':3},{'const':4},{'const':5},{'const':6},{'const':7},{'"
    "const':8}",
};

/* Alternatives of objects: @ is their number. */
static const struct {
    const char *part, *last; /* the last one, NULL: as the others */
    int n;
} OBJECTS[] = {
    {"{'required':['k'],'properties':{'k':{'const':@}}}", NULL, 8},
    {"{'required':['k'],'properties':{'k':{'enum':[@]}}}", NULL, 8},
    {"{'required':['a','k'],'properties':{'a':{'type':'null'},'k':{'const':@}}}", NULL, 9},
    {"{'required':['a','k'],'properties':{'a':{'const':0},'k':{'const':@}}}", NULL, 9},
    {"{'required':['k'],'properties':{'k':{'const':@}}}", "{'required':['k'],'properties':{'k':{'const':3}}}",
     8},
    {"{'required':['k'],'properties':{'k':{'const':@}}}", "{'properties':{'k':{'const':9}}}", 8},
    {"{'required':['k'],'properties':{'k':{'const':@}}}",
     "{'required':['l','k'],'properties':{'k':{'const':9}}}", 8},
    {"{'required':['k'],'properties':{'k':{'const':@}}}",
     "{'required':['k'],'properties':{'k':{'type':'null'}}}", 8},
    {"{'required':['k'],'properties':{'k':{'const':@}}}",
     "{'required':['k'],'properties':{'k':{'$ref':'#/0/x'}}}", 8},
    {"{'required':['k'],'properties':{'l':{},'k':{'const':@}}}", "{'required':['k']}", 8},
    {"{'required':['k'],'properties':{'k':{'type':'null'},'x':{'const':@}}}", NULL, 8},
    /* eight properties are tried */
    {"{'required':['a','b','c','d','e','f','g','k'],'properties':{'a':{'const':0},'b':{'const':0},'c':{'"
     "const':0},'d':{'"
     "const':0},'e':{'const':0},'f':{'const':0},'g':{'const':0},'k':{'const':@}}}",
     NULL, 8},
    {"{'required':['a','b','c','d','e','f','g','h','k'],'properties':{'a':{'const':0},'b':{'const':0},'c':{'"
     "const':0},'d':{'"
     "const':0},'e':{'const':0},'f':{'const':0},'g':{'const':0},'h':{'enum':[0]},'k':{'const':@}}}",
     NULL, 8},
};

static void write_answer(bytes *out, const char *written)
{
    char *text = strdup(written);
    json_doc *doc = NULL;
    err_detail d = {0};
    for (char *p = text; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    const json *const list = json_root(doc);
    size_t i = 77, k = 77;
    work_count work = {0};
    bytes_printf(out, "%s\n  ", written);
    if (schema_find_overlap(&i, &k, list, list, &work)) {
        bytes_printf(out, "%zu and %zu", i, k);
    } else {
        bytes_append_str(out, "apart");
    }
    bytes_printf(out, ", %llu steps\n", (unsigned long long)work.done);
    for (uint64_t limit = 1; limit <= work.done; limit += limit < 400 ? 1 : 37) {
        work_count less = {.limit = limit};
        const bool found = schema_find_overlap(&i, &k, list, list, &less);
        CHECK(limit < work.done ? !found && work_error(&less) == ERR_LIMIT : work_error(&less) == ERR_OK);
    }
    json_free(doc);
    free(text);
}

static void write_objects(bytes *text, const char *part, const char *last, int n)
{
    for (int i = 0; i < n; i++) {
        bytes_append_str(text, i ? "," : "[");
        for (const char *p = i + 1 == n && last ? last : part; *p; p++) {
            if (*p == '@') {
                bytes_printf(text, "%d", i);
            } else {
                bytes_append_char(text, *p);
            }
        }
    }
    bytes_append_str(text, "]");
}

int main(void)
{
    bytes all = bytes_empty(1 << 20), text = bytes_empty(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        bytes_clear(&text);
        bytes_printf(&text, "[%s]", LISTS[i]);
        write_answer(&all, bytes_str(&text));
    }
    for (size_t i = 0; i < ARRAY_LEN(OBJECTS); i++) {
        bytes_clear(&text);
        write_objects(&text, OBJECTS[i].part, OBJECTS[i].last, OBJECTS[i].n);
        write_answer(&all, bytes_str(&text));
    }
    recorded_check("text/grammar/overlaps.txt", bytes_str(&all));
    bytes_deinit(&text);
    bytes_deinit(&all);
    CHECK_DONE();
}
