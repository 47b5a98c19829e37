"""Small wrong changes of one line of C or JavaScript, for tools/mutate.py.

    for mutant in mutants_of("base/json.c", text): mutant.line, mutant.operator, mutant.replacement

The text is read with strings, comments and preprocessor lines blanked out, so that only code changes. What a change
means is not known here: some of them will not compile, and some change nothing that shows.
"""
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    line: int  # from 1
    operator: str
    replacement: str  # the whole new line


def code_only(text, is_c):
    """The text with everything that is no code as spaces; lines and columns stay where they are."""
    pattern = r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    if not is_c:
        pattern += r"|`(?:\\.|[^`\\])*`|(?<=[=(,:])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n])+/[a-z]*"
    blank = lambda found: re.sub(r"[^\n]", " ", found.group())
    text = re.sub(pattern, blank, text, flags=re.S)
    if is_c:
        text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)
    return text


WORD_NUMBER = r"(?<![\w.])(\d+)(?![\w.])"
COMPARISONS = {"<=": "<", ">=": ">", "<": "<=", ">": ">=", "==": "!=", "!=": "==", "===": "!==", "!==": "==="}
TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}
THE_LESSER = r"([\w.>\[\]*-]+) [<>]=? ([\w.>\[\]*-]+) \? (?:\1 : \2|\2 : \1)(?!\w)"  # where both are equal it is the same one
ANY_ORDER = r"\b(?:Math\.(?:max|min)|calloc|(?:max|min)_size|f(?:max|min|ma)f?|(?:_mm\d*_|v_?)(?:max|min|add|mul|fma|and|or|xor)\w*)\($"
NO_CALLS = r"(?:if|for|while|switch|return|CHECK)\b|pthread_mutex_init\(.*, NULL\);"  # a lock is zeros, and so is what calloc gives
NO_RELEASES = r"prefetch_|pthread_(?:mutex|cond|attr|condattr)_destroy\("  # of Linux these hold nothing
RELEASES = r"\w*(?:free|destroy|close|unlock|lock|release|deinit|unref)\w*"


def each(pattern, code):
    return re.finditer(pattern, code)


def numbers(code):
    """Whole numbers, but for -1: it says "none", and so would any other negative number; but for those in the size of a
    block of memory, as a larger one shows nothing; and but for which of an array's members is measured."""
    for found in each(WORD_NUMBER, code):
        front = code[: found.start()]
        is_none = found.group() == "1" and re.search(r"(?:[=(,{?:]|return) ?-$", front)
        block = re.search(r"\b(?:\w*_)?[mc]?alloc(\((?:.*[^/-] )?)$", front)
        is_room = found.group() != "0" and block and block.group(1).count("(") > block.group(1).count(")")
        is_measured = re.search(r"\bsizeof [\w.>-]+\[$", front)
        if not is_none and not is_room and not is_measured:
            yield found


def replaced(line, found, text, group=0):
    return line[: found.start(group)] + text + line[found.end(group) :]


def closing(code, at, pair="()"):
    """The place of the parenthesis that closes the one at `at`, in this text, or -1."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == pair[0]) - (code[i] == pair[1])
        if depth == 0:
            return i
    return -1


def off_by_one(line, code):
    for found in numbers(code):
        yield replaced(line, found, str(int(found.group()) + 1))
    for found in each(r" (<=|>=|<|>) ", code):
        if not re.search(THE_LESSER, code):
            yield replaced(line, found, COMPARISONS[found.group(1)], 1)


def constant_changed(line, code):
    for found in numbers(code):
        n = int(found.group())
        yield replaced(line, found, str(n * 10 if n else 7))
    for found in each(r"\b(true|false)\b", code):
        yield replaced(line, found, "false" if found.group() == "true" else "true")


def comparison_turned(line, code):
    for found in each(r" (===|!==|==|!=) ", code):
        yield replaced(line, found, COMPARISONS[found.group(1)], 1)
    for found in each(r" (<=|>=|<|>) ", code):
        yield replaced(line, found, TURNED[found.group(1)], 1)
    for found in each(r" (&&|\|\|) ", code):
        yield replaced(line, found, "||" if found.group(1) == "&&" else "&&", 1)


def condition_negated(line, code):
    for found in each(r"\b(?:if|while) \(", code):
        end = closing(code, found.end() - 1)
        if end > 0:
            inside = line[found.end() : end]
            yield line[: found.end()] + "!(" + inside + ")" + line[end:]


def arithmetic_changed(line, code):
    turned = {"+": "-", "-": "+", "*": "+", "/": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
    for found in each(r"(?<=[\w)\]]) (\+|-|\*|/|<<|>>|&|\|) (?=[\w(&*])", code):
        yield replaced(line, found, turned[found.group(1)], 1)
    for found in each(r" (\+|-|\||&)= ", code):
        yield replaced(line, found, turned[found.group(1)], 1)


def call_removed(line, code):
    found = re.match(r"^\s+((?:await )?[\w.>\[\]#-]+\(.*\);)\s*$", code)
    if found and not re.match(NO_CALLS, found.group(1)):
        if not re.match(RELEASES + r"\(", found.group(1)):
            yield replaced(line, found, ";", 1)


def release_left_out(line, code):
    found = re.match(r"^\s+((?:\(void\))?" + RELEASES + r"\(.*\);)\s*$", code)
    if found and not re.match(NO_RELEASES, found.group(1)):
        yield replaced(line, found, ";", 1)


def argument_swapped(line, code):
    for found in each(r"\b\w+\(([\w.>\[\]&*-]+), ([\w.>\[\]&*-]+)(?=[,)])", code):
        a, b = line[found.start(1) : found.end(1)], line[found.start(2) : found.end(2)]
        is_equality = re.search(r"cmp\($", code[: found.start(1)]) and re.match(r"[^()]*\) [!=]= 0", code[found.end(2) :])
        if a != b and not is_equality and not re.search(ANY_ORDER, code[: found.start(1)]):
            yield line[: found.start(1)] + b + ", " + a + line[found.end(2) :]


SAME = {"0": {"0", "0.0", "0.0f", "false", "NULL", "ERR_OK", "'\\0'"}, "1": {"1", "true"}}


def return_replaced(line, code):
    found = re.match(r"^\s+return (.+);\s*$", code)
    if found and found.group(1).strip():
        was = line[found.start(1) : found.end(1)]
        for new in ("0", "1", f"!({was})"):
            if was not in SAME.get(new, ()):
                yield replaced(line, found, new, 1)


OPERATORS = {
    "off by one": off_by_one,
    "comparison turned": comparison_turned,
    "condition negated": condition_negated,
    "call removed": call_removed,
    "constant changed": constant_changed,
    "arithmetic changed": arithmetic_changed,
    "argument swapped": argument_swapped,
    "return value replaced": return_replaced,
    "lock or free left out": release_left_out,
}


def without_room(code, text):
    """A line of code in which the sizes of arrays whose size nothing asks for are no numbers: larger ones show nothing."""
    def hidden(found):
        asked = re.search(rf"(?:sizeof |ARRAY_LEN\(){found.group(1)}\b(?!\[)", text)
        return found.group() if asked else re.sub(r"\d", "_", found.group())
    return re.sub(r"\b(\w+)\[[^\[\]=]*\](?=[^()]*;\s*$)", hidden, code) if re.match(r"\s+(?:\w+ )+\**\w+\[[^()]*;\s*$", code) else code


def in_functions(code):
    """The lines, from 1, of a header that are code of functions; the others declare or name something."""
    lines = set()
    for found in re.finditer(r"^(?!typedef|struct|enum|union|extern)[A-Za-z_][^;{}=]*\)\s*\{", code, flags=re.M):
        end = closing(code, found.end() - 1, "{}")
        lines.update(range(code.count("\n", 0, found.end()) + 1, code.count("\n", 0, end) + 2))
    return lines


def mutants_of(path, text, only_lines=None):
    """Every mutant of a file; only_lines: a set of line numbers, or None for all."""
    is_c = path.endswith((".c", ".h"))
    lines, codes = text.split("\n"), code_only(text, is_c).split("\n")
    if path.endswith(".h"):
        functions = in_functions("\n".join(codes))
        only_lines = functions if only_lines is None else functions & only_lines
    for i, (line, code) in enumerate(zip(lines, codes)):
        code = without_room(code, text)
        if not code.strip() or (only_lines is not None and i + 1 not in only_lines):
            continue
        if is_c and re.match(r"\s*(?:static const|_Static_assert|static_assert|typedef|enum\b|extern|(?:va_end|assert|\w*prefetch\w*)\()", code):
            continue
        if re.match(r"\s*(?:\w+: \{ (?:state: true|attribute: false) \},|static properties = \{.*\};)$", code):
            continue  # of an element: whether an attribute that nobody writes would be heeded, too
        for name, operator in OPERATORS.items():
            for replacement in operator(line, code):
                if replacement != line:
                    yield Mutant(i + 1, name, replacement)
