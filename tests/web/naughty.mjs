/**
 * 515 and more strings that have broken pages, parsers and stores: our own list, made of short
 * tables so that it can be read. Used as what a model says and as what a user types.
 */
const join = (...lists) => lists.flat();
const each = (list, make) => list.map(make);
const cross = (a, b, make) => a.flatMap((x) => b.map((y) => make(x, y)));
/** From a code point. */
const u = (...codes) => String.fromCodePoint(...codes);

const HIT = 'window.hit=1';

const WORDS = [
    'undefined', 'undef', 'null', 'NULL', '(null)', 'nil', 'NIL', 'true', 'false', 'True', 'None', 'NaN', 'Infinity', '-Infinity',
    'hasOwnProperty', 'then', 'constructor', 'prototype', '__proto__', '__proto__.polluted', 'toString', 'valueOf', 'length', 'arguments',
    '[object Object]', 'function(){}', '() => {}', 'eval(1)', 'new Date', 'CON', 'PRN', 'AUX', 'NUL', 'COM1', 'LPT1', 'default', 'with', 'async', 'await',
];
const NUMBERS = [
    '0', '-0', '+0', '00', '1', '-1', '1.00', '$1.00', '1/2', '1e2', '1E+02', '1e309', '-1e309', '1e-400', '0x0', '0xffffffff', '0b11', '0o17', '1_000',
    '1,000.00', '1 000,00', "1'000", '.5', '5.', '..', '--1', '9007199254740993', '18446744073709551616', '2147483648', '-2147483649',
    '0.1+0.2', '1;2', '१२३', '٤٢', '四十二', 'Ⅳ', '½', '10⁻³',
];
const MARKS = cross(['', 'a', ' '], ['~', '`', '*', '_', '#', '>', '-', '+', '=', '|', '\\', '[', ']', '(', ')', '!', '$', '$$', '<', '&', '%', '@', '^', ';'], (a, b) => a + b);
const SPACES = each(
    [9, 11, 12, 13, 32, 133, 160, 5760, 6158, 8192, 8195, 8202, 8203, 8204, 8205, 8232, 8233, 8239, 8287, 8288, 12288, 65279],
    (code) => `before${u(code)}after`,
);
const CONTROLS = each([1, 2, 7, 8, 27, 28, 31, 127, 128, 0x9b, 0xad, 0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202d, 0x202e, 0x2066, 0x2067, 0x2069], (code) => `x${u(code)}y`);
const BROKEN = ['\ud800', '\udc00', 'a\ud83d', '\ude00b', '\ud800\ud800', '\udfff\ud800', u(0xfffe), u(0xffff), u(0x1ffff), u(0x10ffff), u(0xe000), u(0xfffd), u(0xe0041, 0xe0042)];
const SCRIPTS = [
    'العربية', 'שלום עולם', 'مرحبا 123 hello', 'ﷺ', 'ﷲ', '日本語', '田中さんにあげて下さい', '社會科學院', '안녕하세요', 'ภาษาไทย', 'Ελληνικά', 'Русский', 'हिन्दी', 'தமிழ்', 'ქართული',
    'Հայերեն', 'አማርኛ', 'ᏣᎳᎩ', 'ᚠᛇᚻ', '𝔊𝔬𝔱𝔥', '𒀀𒀁', 'İstanbul', 'ıI', 'ß ẞ', 'ŒœÆæ', 'ǅ', 'ﬁﬂ', 'Åå', 'é é', 'ｆｕｌｌ', '̀alone', `Z${u(0x300, 0x301, 0x302, 0x303, 0x316, 0x317, 0x318).repeat(12)}algo`,
    '😀', '👍🏿', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪🇯🇵', '❤️‍🔥', '#️⃣', '🫠'.repeat(200), '¯\\_(ツ)_/¯', '(╯°□°）╯︵ ┻━┻', 'ᵗᵉˣᵗ', '⒯⒠⒳⒯', 'uʍop ǝpısdn', '٩(-̮̮̃-̃)۶', '¡™£¢∞§¶•ªº–≠', '⁰⁴⁵₀₁₂', '\u0627\u0653', 'कि्ष',
];
const TAGS = [
    'script', 'img', 'svg', 'iframe', 'object', 'embed', 'style', 'link', 'meta', 'base', 'form', 'input', 'video', 'audio', 'details', 'template', 'math', 'body', 'marquee',
    'parley-app', 'code-block', 'x-unknown', 'textarea', 'title', 'noscript', 'xmp', 'plaintext', 'select', 'button', 'a',
];
const HTML = join(
    each(TAGS, (tag) => `<${tag} src=x onerror=${HIT} onload=${HIT} onfocus=${HIT} autofocus>`),
    each(TAGS, (tag) => `<${tag}>${HIT}</${tag}>`),
    each(TAGS, (tag) => `text <${tag.toUpperCase()}/onclick="${HIT}"`),
    each(['"', "'", '`', '>', '-->', ']]>', '*/', '</p>', '</script>', '</style>', '</textarea>'], (end) => `${end}<img src=x onerror=${HIT}>`),
    ['<!--', '<![CDATA[', '<?php', '<!doctype html>', '<<script>', '<scr\0ipt>', '&lt;script&gt;', '&#60;img src=x onerror=1&#62;', '&#x3C;b&#x3E;', '&amp;lt;', '&nbsp;', '&bogus;', '&#0;', '&#xD800;', '&#99999999;'],
);
const SCHEMES = ['javascript:', 'JaVaScRiPt:', ' javascript:', 'java\tscript:', 'java\nscript:', '&#106;avascript:', 'vbscript:', 'data:text/html,', 'data:image/svg+xml,', 'file:///', 'blob:', 'about:blank#', 'view-source:', 'chrome://', 'ftp://x/', 'ws://x/', '//', '\\\\', '/', '?', '#', 'intent:', 'x-y:'];
const LINKS = join(
    each(SCHEMES, (scheme) => `[go](${scheme}${HIT})`),
    each(SCHEMES, (scheme) => `![pic](${scheme}${HIT})`),
    each(SCHEMES, (scheme) => `<${scheme}${HIT}>`),
    each(SCHEMES.slice(0, 8), (scheme) => `[r]\n\n[r]: ${scheme}${HIT}`),
    ['[a](b "c\' onclick=1)', '[a](<b> "\\">")', '[](javascript:1)', '![](https://evil.example/p.png)', '[![x](https://evil.example/p.png)](https://evil.example)', 'https://evil.example/\u202Egnp.exe', 'http://[::1]:0/', 'mailto:a@b?subject=%0d%0aBcc:x', 'www.evil.example', 'a@b.c'],
);
const UNCLOSED = join(
    each(['**', '__', '*', '_', '~~', '`', '``', '```', '```js\n', '~~~', '$', '$$', '\\(', '\\[', '[', '![', '[a](', '[a](b', '[a][', '<', '<a href="', '|a|\n|-', '> ', '- ', '1. ', '# ', '- [ ', '***', '&', '\\', ':::', '---\nx: 1'], (open) => `${open}left open`),
    ['> '.repeat(300) + 'deep', '- '.repeat(200) + 'deep', '['.repeat(500), '('.repeat(500), '*a '.repeat(300), '`'.repeat(999), '|'.repeat(400), '$'.repeat(301), '![['.repeat(150), '<'.repeat(500), '\\'.repeat(501), '#'.repeat(99), '~'.repeat(333), '-\n'.repeat(200), '_a'.repeat(400), '1. '.repeat(150)],
);
const CODE = [
    "' OR 1=1 --", '"; DROP TABLE chats; --', "Robert'); --", '{{7*7}}', '${7*7}', '#{7*7}', '<%= 7*7 %>', '{% raw %}', '@{x}', '$(touch /tmp/x)', '`touch /tmp/x`', '; ls', '| cat', '&& true', '%s%s%s%n', '%d', '%x', '%*.*s', '$HOME', '%TEMP%',
    '../../../etc/passwd', '..\\..\\boot.ini', '/dev/null', 'C:\\', 'file%00.txt', '.', '..', '~root', '*', '?', 'a'.repeat(300) + '.txt', '(?<x>(a+)+)$', '^(a|a)*$', '[[:alpha:]]', '\\x00\\u0000', '{"a":1}', '{"__proto__":{"polluted":1}}', '[1,2', '"', "'", '\\"', '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]>&a;', 'data: [DONE]', 'event: x\ndata: y', '\x1b[31mred\x1b[0m', '\x1b]0;title\x07', '+++ATH0', 'EICAR', 'Content-Length: 0\r\n\r\n', '<|im_start|>system', '<|im_end|>', '<|vision_start|><|image_pad|>', '<think>', '</think>', '<tool_call>{}</tool_call>', '?lit$123$', '<!--?lit$1$-->', '${nothing}', '=1+1', '=HYPERLINK("x")', '@SUM(1)', 'window.hit=1', 'alert(1)//', 'lorem '.repeat(2000).trim(), 'x'.repeat(5000),
];

export const NAUGHTY = [...new Set(join(WORDS, NUMBERS, MARKS, SPACES, CONTROLS, BROKEN, SCRIPTS, HTML, LINKS, UNCLOSED, CODE))];
