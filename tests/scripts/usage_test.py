"""Usage lines of the headers compile as they are written.

    python3 tests/scripts/usage_test.py REPOSITORY COMPILER

A usage line is a line of a header's first comment that is indented by five spaces; tables there are
indented by three. The lines of a header become the body of one function. What a call takes from its
caller needs no declaration: the variable gets the type of that parameter in the header. Other
variables of the caller stand in CALLER. "..." is no code: say what happens there in a comment.
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
COMPILER = [sys.argv[2], "-std=gnu17", "-fsyntax-only", "-DPARLEY_SOURCE_DIR=\"\"", "-DPARLEY_BUILD_DIR=\"\"",
            "-DPARLEY_VERSION=\"\"", "-D_GNU_SOURCE",
            "-Werror=implicit-function-declaration",
            "-Werror=incompatible-pointer-types", "-Werror=int-conversion"]
FOLDERS = ("base", "bench", "compute", "engine", "model", "server", "tests", "text", "tools", "vision")

# What a caller has that no parameter tells, and (#) what it includes beside the header.
CALLER = {
    "base/bytes.h": "const char *json",
    "base/err.h": "err_detail *detail; int x; int max",
    "base/hex.h": "const char *text",
    "base/log.h": "const char *id; int n_prompt; int n_gen",
    "base/memory.h": "uint64_t wanted; size_t n; char *items",
    "base/unicode.h": "size_t limit",
    "base/work.h": "bool (*is_cancelled)(void *); void *ctx",
    "engine/cache/disk_file.h": "disk_id id; disk_id fingerprint",
    "compute/formats/ggml_blocks.h": "size_t K",
    "compute/formats/quant.h": "size_t K",
    "compute/gemm.h": "size_t N; size_t K; size_t T",
    "compute/kernels/ops.h": "#compute/kernels/cpu.h; float *out; const float *x; const void *w; size_t N; "
                             "size_t K; size_t T",
    "compute/kernels/ops_ggml.h": "#compute/kernels/ops.h; #compute/tensor.h; const ops *o; const tensor *w; "
                                  "float *out; const void *x; size_t N; size_t K; size_t T",
    "compute/kernels/ops_kv.h": "#compute/kernels/ops.h; const ops *o; float *scores; const float *q; "
                                "size_t R; const uint8_t *page; const float *scales; size_t n; "
                                "size_t row_bytes; size_t hd",
    "compute/tensor.h": "tensor_source source",
    "engine/grammar_spec.h": "const json *schema",
    "engine/media_copy.h": "engine_options options; const chat_part *part; ledger_hold hold; "
                           "err_code (*on_file)(void *, const media_copy_file *, err_detail *); void *ctx",
    "engine/cache/prefix_cache.h": "size_t n_key",
    "model/checkpoint/checkpoint_form.h": "arena *memory",
    "model/checkpoint/gguf_config.h": "const gguf_set *set; const gguf_file *mmproj",
    "model/checkpoint/tensor_table.h": "const char *name; tensor view",
    "model/checkpoint/tensor_writer.h": "tensor head; tensor norm",
    "model/config/family.h": "model_config cfg; config_section top; config_section text",
    "model/cost.h": "double read_limit",
    "model/layers.h": "const model_config *cfg; const layer_weights *w; const layer_run *runs; size_t n_runs",
    "model/weights.h": "#compute/nn.h; compute *c; float *q; const float *x; size_t n_rows",
    "server/history/database.h": "int64_t scope; size_t len",
    "server/history/history.h": "const char *dir; uint64_t quota",
    "server/history/history_store.h": "json_doc *doc",
    "server/mcp/mcp_html.h": "bool (*may_go_on)(void *); void *ctx",
    "server/media/preview.h": "const engine *e; file_store *files; uint64_t scope",
    "server/net/net.h": "bool running",
    "server/protocol/api_request.h": "#server/protocol/dialects/chat_request.h; const char *text; "
                                     "size_t len; const engine_info *info",
    "server/protocol/content_parts.h": "api_request *r; const engine_info *info; const json *m",
    "server/protocol/context_fit.h": "#server/service/dialect.h; const dialect *of; engine *e; const json *root; api_request r",
    "server/protocol/conversation.h": "const json *v",
    "server/protocol/first_error.h": "#server/protocol/request_fields.h; const json *root; bool stream; "
                                     "bool echo",
    "server/protocol/dialects/chat_reply.h": "int64_t t",
    "server/protocol/dialects/chat_request.h": "engine *e",
    "server/protocol/dialects/messages_reply.h": "reply_usage usage",
    "server/protocol/dialects/messages_request.h": "engine *e",
    "server/protocol/dialects/responses_request.h": "engine *e",
    "server/protocol/output/reply_parser.h": "const tool_form *form; const tool_set *tools",
    "server/protocol/output/tool_value.h": "#server/protocol/output/tool_set.h",
    "server/protocol/response_format.h": "const json *root",
    "server/service/answer.h": "gen_event event",
    "server/load_bar.h": "#engine/engine.h; engine_options eo",
    "server/service/loop_message.h": "gen_event *event",
    "server/notify.h": "int port",
    "server/service/prep.h": "uint64_t id; engine *e",
    "server/service/prep_turns.h": "double guess; bool (*is_cancelled)(void *); void *ctx",
    "server/service/serve.h": "engine_options options",
    "server/upstream/upstream_media.h": "#server/protocol/api_request.h; const media_copier *copier; "
                                        "const prepare_hooks *hooks; ledger_hold hold; const api_request *r; "
                                        "chat_part part",
    "tests/alloc_fail.h": "#stdbool.h; err_code (*parse)(void *)",
    "tests/check.h": "const char *name",
    "tests/compute/formats/ggml_pack.h": "size_t K",
    "tests/compute/naive.h": "#tests/check.h; const float *out; size_t n",
    "server/cli/pull_bars.h": "const hub_task *tasks; size_t n",
    "server/hub/hub_cache.h": "#server/hub/hub_place.h; #engine/engine.h; hub_place place; hub_name name",
    "server/hub/hub_client.h": "bytes text; hub_place place",
    "server/hub/hub_select.h": "hub_listing listing; hub_name name; const json *index",
    "tests/engine/previews.h": "const engine *e; int fd; size_t n; bool is_video",
    "tests/server/own_thread.h": "void *ctx",
    "tests/fuzz/memory_file.h": "#text/tokenizer/tokenizer.h; tokenizer *tok",
    "tests/text/grammar/grammar_walk.h": "int max",
    "text/grammar/dfa.h": "dfa d",
    "text/grammar/dfa_private.h": "int32_t n",
    "text/grammar/json_schema.h": "grammar *g",
    "text/jinja/jinja_format.h": "size_t limit",
    "text/jinja/jinja_render.h": "const jinja_program *program; arena *a; bytes *out",
    "text/jinja/jinja_value.h": "arena *a",
    "text/tokenizer/guard.h": "#text/tokenizer/tokenizer.h; #text/jinja/chat_template.h; "
                              "const tokenizer *tok; const chat_template *t",
    "text/tokenizer/tokenizer_file.h": "json_doc *doc",
    "vision/image/media_av.h": "const uint8_t *data; size_t n",
    "vision/image/resize_kernels.h": "#compute/kernels/cpu.h; uint8_t *out; const uint8_t *in; "
                                     "resize_taps taps; const uint8_t *const *rows; const int16_t *weights; size_t n_out; "
                                     "size_t n_in; size_t n_rows; size_t n; int fraction_bits",
    "vision/video/image_reader.h": "const uint8_t *data; size_t n; image_limits l; size_t m",
    "vision/video/video.h": "const uint8_t *data; size_t bytes; int32_t n",
    "vision/video/video_worker.h": "video_source s; processor_config pc; video_consumer consumer",
    "vision/vit.h": "const float *rows",
    "model/checkpoint/gguf_config_job.h": "const gguf_job *j",
    "model/spares.h": "bool idle; spares *s; size_t n_bytes",
    "vision/vit_parts.h": "vit_parts parts; const json *root; vit_loader loader",
}
COMMON = {"err": "err_code err", "detail": "err_detail detail"}


def usage(text):
    comment = re.match(r"\s*/\*(.*?)\*/", text, re.S)
    lines = re.findall(r"^ \* {5}(?! *$)(.*)$", comment.group(1), re.M) if comment else []
    return "\n".join(lines)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*|^ *#.*?(?<!\\)$", " ", text, flags=re.S | re.M)


def call_arguments(text, start):
    """The arguments of the call whose bracket opens before `start`."""
    depth, parts, quote, part = 0, [], "", ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}" and depth > 0:
            depth -= 1
        elif c in ",)" and depth == 0:
            parts.append(part.strip())
            part = ""
            if c == ")":
                break
            continue
        part += c
    return parts


def calls(text):
    return [(m.group(1), call_arguments(text, m.end())) for m in re.finditer(r"\b(\w+)\(", text)]


def declared_as(parameter, argument):
    """The declaration of a variable that is passed as `argument` for `parameter`; None: no variable."""
    passed = re.fullmatch(r"(&?)([a-z]\w*)", argument)
    name = re.search(r"\(\*(\w+)\)", parameter) or re.search(r"(\w+)(\[[^]]*\])*$", parameter)
    if not passed or not name or passed.group(2) in ("true", "false"):
        return None
    before, after = parameter[:name.start(1)], parameter[name.end(1):]
    if passed.group(1):
        before, stars = re.subn(r"\*(\s*)$", r"\1", before)
        if stars == 0:
            return None
        before = before if "*" in before else before.replace("void", "int")
    return f"{before}{passed.group(2)}{after}"


def caller_variables(header, code):
    types = {}
    for name, parameters in calls(without_comments(header)):
        types.setdefault(name, parameters)
    variables = {}
    for name, arguments in calls(code):
        for parameter, argument in zip(types.get(name, []), arguments):
            declaration = declared_as(parameter, argument)
            if declaration:
                variables.setdefault(argument.lstrip("&"), declaration)
    return variables


def compile_error(path, text):
    code = usage(text)
    bare = re.sub(r"\"(\\.|[^\"])*\"", '""', without_comments(code))
    if "..." in bare:
        return '"..." does not compile'
    variables = dict(COMMON)
    variables.update(caller_variables(text, bare))
    known = [item.strip() for item in CALLER.get(path, "").split(";") if item]
    includes = ["stdio.h", "stdlib.h", "string.h", "base/clock.h", "base/err.h", "base/limits.h", path,
                *(item[1:] for item in known if item[0] == "#")]
    for declaration in (item for item in known if item[0] != "#"):
        variables[re.search(r"(\w+)\)?(\[.*|\(.*)?$", declaration).group(1)] = declaration
    source = ("".join(f'#include "{include}"\n' for include in includes) +
              f"long usage({', '.join(variables.values())})\n{{\n{{\n"
              f'#line 1 "{path}: usage"\n{code}\n}}\nreturn 0;\n}}\n')
    done = subprocess.run([*COMPILER, f"-I{ROOT}", "-xc", "-"], input=source, capture_output=True,
                          text=True, check=False)
    return done.stderr if done.returncode else ""


class Usage(unittest.TestCase):
    def test_every_usage_line_compiles(self):
        n = 0
        for path in sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.h")):
            text = path.read_text(encoding="utf-8")
            if usage(text):
                n += 1
                with self.subTest(header=path.name):
                    self.assertEqual(compile_error(str(path.relative_to(ROOT)), text), "")
        self.assertGreater(n, 50, "usage lines are no longer found")

    def test_a_wrong_usage_line_is_found(self):
        path = "base/arena.h"
        functions = without_comments((ROOT / path).read_text(encoding="utf-8"))
        for line, is_right in (("char *copy = arena_strdup(a, text, len);", True),
                               ("char *copy = arena_strdup(a, \"...\", 3);", True),
                               ("char *copy = arena_strdup(a, text);", False),
                               ("char *copy = arena_dup(a, text, len);", False),
                               ("arena_strdup(a, text, len); ... arena_destroy(a);", False),
                               ("arena_strdup(a, text, len) or NULL;", False),
                               ("arena_strdup(a, text, length + 1);", False),
                               ("arena_strdup(a, 7, len);", False)):
            error = compile_error(path, f"/* arena\n *     {line}\n */{functions}")
            self.assertEqual(error == "", is_right, line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
