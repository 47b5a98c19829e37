/** Markdown as templates, without a browser: what each kind of block and of words becomes, and how half an answer looks. A
 * browser shows the same in markdown.test.mjs. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { flat, withoutBrowser } from './made_up_lit.mjs';

const { MarkdownState, lex, renderBlock, safeHref } = await withoutBrowser('views/markdown.js');
/** An icon is a star. */
const shown = (blocks) => flat(blocks.map(renderBlock)).replace(/<svg.*?<\/svg>/g, '*');

/** What is written, and what it becomes. @type {Record<string, Record<string, string>>} */
const WHOLE = {
    "headings, from the third level on, each in one line": {
        "# One\n\n## Two *em*\n\n### Three\n\n#### Four\n\n###### Six":
            "<h3 dir=\"auto\">One</h3><h4 dir=\"auto\">Two <em>em</em></h4><h5 dir=\"auto\">Three</h5><h6 dir=\"auto\">Four</h6><h6 dir=\"auto\">Six</h6>",
        "Two\n*li\nnes*\n===\n":
            "<h3 dir=\"auto\">Two <em>li nes</em></h3>",
    },
    "words: marks, breaks, small elements that are closed, and tags that are not": {
        "a\nb<br>\nc<br/> d **bold** *em* ~~del~~ `co*de*` \\* &amp;":
            "<p dir=\"auto\">a<br />b<br />c<br /> d <strong>bold</strong><em>em</em><del>del</del><code>co*de*</code> * &amp;</p>",
        "<b>x<b>y</b></b> <sup>2</sup><sub>i</sub> <kbd class=\"x\">K</kbd> <MARK>m</MARK> <ins>i</ins><u>u</u><s>s</s><del>d</del><strong>b</strong><em>e</em><small>s</small><code>c</code>":
            "<p dir=\"auto\"><strong>x<strong>y</strong></strong><sup>2</sup><sub>i</sub><kbd>K</kbd><mark>m</mark><ins>i</ins><u>u</u><s>s</s><del>d</del><strong>b</strong><em>e</em><small>s</small><code>c</code></p>",
        "<i>open <span>raw</span> </b> <i>twice</i>":
            "<p dir=\"auto\"><i>open <span>raw</span></b><em>twice</em></p>",
    },
    "links go to the web and to mail alone; images are not loaded": {
        "[link](https://example.org/x) [bad](javascript:alert(1)) [here](#x) [m](mailto:a@b.c) <https://example.org>":
            "<p dir=\"auto\"><a href=\"https://example.org/x\" target=\"_blank\" rel=\"noopener noreferrer\">link</a> bad here <a href=\"mailto:a@b.c\" target=\"_blank\" rel=\"noopener noreferrer\">m</a><a href=\"https://example.org/\" target=\"_blank\" rel=\"noopener noreferrer\">https://example.org</a></p>",
        "![pic](https://example.org/a.png) ![](x.png) ![d](data:image/png;base64,AAAA) ![s](data:image/svg+xml;base64,AAAA)":
            "<p dir=\"auto\"><a class=\"chip\" href=\"https://example.org/a.png\" target=\"_blank\" rel=\"noopener noreferrer\" title=\"Opens https://example.org/a.png\">Image not loaded: pic (example.org)</a><span class=\"chip\">image</span><img class=\"inline-image\" src=\"data:image/png;base64,AAAA\" alt=\"d\" /><span class=\"chip\">s</span></p>",
        "[ref]: https://example.org\n\n[ref]":
            "<p dir=\"auto\"><a href=\"https://example.org/\" target=\"_blank\" rel=\"noopener noreferrer\">ref</a></p>",
    },
    "lists: marks, numbers, tasks, lists in lists, paragraphs": {
        "- a\n- [x] done\n- [ ] open *x*":
            "<ul dir=\"ltr\"><li dir=\"auto\">a</li><li class=\"task\" dir=\"auto\"><span class=\"box\" role=\"img\" aria-label=\"done\">*</span><div>done</div></li><li class=\"task\" dir=\"auto\"><span class=\"box\" role=\"img\" aria-label=\"not done\"></span><div>open <em>x</em></div></li></ul>",
        "1. one\n2. two\n   - inner\n\n   behind":
            "<ol dir=\"ltr\" start=\"1\"><li dir=\"auto\"><p dir=\"auto\">one</p></li><li dir=\"auto\"><p dir=\"auto\">two</p><ul dir=\"ltr\"><li dir=\"auto\">inner</li></ul><p dir=\"auto\">behind</p></li></ol>",
        "7) seven":
            "<ol dir=\"ltr\" start=\"7\"><li dir=\"auto\">seven</li></ol>",
        "0. zero\n1. one":
            "<ol dir=\"ltr\" start=\"0\"><li dir=\"auto\">zero</li><li dir=\"auto\">one</li></ol>",
        "- loose\n\n  para\n- two":
            "<ul dir=\"ltr\"><li dir=\"auto\"><p dir=\"auto\">loose</p><p dir=\"auto\">para</p></li><li dir=\"auto\"><p dir=\"auto\">two</p></li></ul>",
    },
    "code and its language": {
        "```JS title\nlet a\n```\n\n~~~\nb\n~~~\n\n    indented":
            "<code-block .code=\"let a\" .language=\"js\" .open=false></code-block><code-block .code=\"b\" .language=\"\" .open=false></code-block><code-block .code=\"indented\" .language=\"\" .open=false></code-block>",
    },
    "quotations and notes": {
        "> said\n>\n> - x":
            "<blockquote dir=\"ltr\"><p dir=\"auto\">said</p><ul dir=\"ltr\"><li dir=\"auto\">x</li></ul></blockquote>",
        "> [!WARNING]\n> careful":
            "<div class=\"alert alert-warning\" role=\"note\" dir=\"ltr\"><p class=\"alert-title\">*Warning</p><p dir=\"auto\">careful</p></div>",
        "> [!tip]\n> *try*\n>\n> more":
            "<div class=\"alert alert-tip\" role=\"note\" dir=\"ltr\"><p class=\"alert-title\">*Tip</p><p dir=\"auto\"><em>try</em></p><p dir=\"auto\">more</p></div>",
        "> [!NOTE]":
            "<div class=\"alert alert-note\" role=\"note\" dir=\"ltr\"><p class=\"alert-title\">*Note</p></div>",
        "> [!important]\n> x":
            "<div class=\"alert alert-important\" role=\"note\" dir=\"ltr\"><p class=\"alert-title\">*Important</p><p dir=\"auto\">x</p></div>",
        "> [!CAUTION]\n> עברית":
            "<div class=\"alert alert-caution\" role=\"note\" dir=\"rtl\"><p class=\"alert-title\">*Caution</p><p dir=\"auto\">עברית</p></div>",
        "> [!NOTE] inline":
            "<blockquote dir=\"ltr\"><p dir=\"auto\">[!NOTE] inline</p></blockquote>",
        "> [!other]\n> x":
            "<blockquote dir=\"ltr\"><p dir=\"auto\">[!other]<br />x</p></blockquote>",
    },
    "tables and their sides": {
        "| a | b | c | d |\n|---|:--|:-:|--:|\n| 1 | **2** | 3 | 4 |\n| 5 | | | |\n":
            "<div class=\"scroll-x\" tabindex=\"0\" dir=\"ltr\" role=\"region\" aria-label=\"Table\"><table><thead><tr><th scope=\"col\" dir=\"auto\">a</th><th scope=\"col\" dir=\"auto\" class=\"left\">b</th><th scope=\"col\" dir=\"auto\" class=\"center\">c</th><th scope=\"col\" dir=\"auto\" class=\"right\">d</th></tr></thead><tbody><tr><td dir=\"auto\">1</td><td dir=\"auto\" class=\"left\"><strong>2</strong></td><td dir=\"auto\" class=\"center\">3</td><td dir=\"auto\" class=\"right\">4</td></tr><tr><td dir=\"auto\">5</td><td dir=\"auto\" class=\"left\"></td><td dir=\"auto\" class=\"center\"></td><td dir=\"auto\" class=\"right\"></td></tr></tbody></table></div>",
    },
    "the direction is that of the first letter": {
        "שלום *x*\n\n> عربي\n\n- 1. שלום\n\n1. abc עברית\n\n| עברית |\n|---|\n| x |":
            "<p dir=\"auto\">שלום <em>x</em></p><blockquote dir=\"rtl\"><p dir=\"auto\">عربي</p></blockquote><ul dir=\"rtl\"><li dir=\"auto\"><ol dir=\"rtl\" start=\"1\"><li dir=\"auto\">שלום</li></ol></li></ul><ol dir=\"ltr\" start=\"1\"><li dir=\"auto\">abc עברית</li></ol><div class=\"scroll-x\" tabindex=\"0\" dir=\"rtl\" role=\"region\" aria-label=\"Table\"><table><thead><tr><th scope=\"col\" dir=\"auto\">עברית</th></tr></thead><tbody><tr><td dir=\"auto\">x</td></tr></tbody></table></div>",
    },
    "formulas: in a line, and of their own, each with its own end": {
        "Price $5 and $6. Math $a+b$ and $$c$$ and \\(d\\) and \\[e\\], $ no$, $x$1, $\\$1$":
            "<p dir=\"auto\">Price $5 and $6. Math <math-view .tex=\"a+b\" .display=false></math-view> and <math-view .tex=\"c\" .display=true></math-view> and <math-view .tex=\"d\" .display=false></math-view> and <math-view .tex=\"e\" .display=true></math-view>, $ no$, $x$1, <math-view .tex=\"\\\\$1\" .display=false></math-view></p>",
        "The value $$c$$ is here.\n\n$$\nx\n$$\n":
            "<p dir=\"auto\">The value <math-view .tex=\"c\" .display=true></math-view> is here.</p><math-view .tex=\"x\" .display=true></math-view>",
        "$$c$$ and more\n\n$$x$$":
            "<p dir=\"auto\"><math-view .tex=\"c\" .display=true></math-view> and more</p><math-view .tex=\"x\" .display=true></math-view>",
        "a \\[x\\] b\n\n\\[ y \\]":
            "<p dir=\"auto\">a <math-view .tex=\"x\" .display=true></math-view> b</p><math-view .tex=\"y\" .display=true></math-view>",
        "a\n$$\nx\n$$\nb":
            "<p dir=\"auto\">a</p><math-view .tex=\"x\" .display=true></math-view><p dir=\"auto\">b</p>",
        "- item $$\n  x\n  $$\n":
            "<ul dir=\"ltr\"><li dir=\"auto\">item <math-view .tex=\"x\" .display=true></math-view></li></ul>",
        "   $$i$$\nmore":
            "<math-view .tex=\"i\" .display=true></math-view><p dir=\"auto\">more</p>",
        "I $$x$$\n$$y$$":
            "<p dir=\"auto\">I <math-view .tex=\"x\" .display=true></math-view></p><math-view .tex=\"y\" .display=true></math-view>",
    },
    "what is folded, to its own end": {
        "<details open>\n<summary>Sum *x*</summary>\n\nInner **b**\n\n<details><summary>Second</summary>deep</details>\n\n```\n</details>\n```\n\n~~~~\n</details>\n```\n~~~~\n\n</details>\nbehind":
            "<details class=\"folded\" open><summary>Sum <em>x</em></summary><div><p dir=\"auto\">Inner <strong>b</strong></p><details class=\"folded\"><summary>Second</summary><div><p dir=\"auto\">deep</p></div></details><code-block .code=\"</details>\" .language=\"\" .open=false></code-block><code-block .code=\"</details>\\n```\" .language=\"\" .open=false></code-block></div></details><p dir=\"auto\">behind</p>",
        "<details><summary>s</summary>x</details>     behind, which is no code":
            "<details class=\"folded\"><summary>s</summary><div><p dir=\"auto\">x</p></div></details><p dir=\"auto\">behind, which is no code</p>",
        "<details>\nplain\n</details>":
            "<details class=\"folded\"><summary>Details</summary><div><p dir=\"auto\">plain</p></div></details>",
        "a\n<details>never closed\n":
            "<p dir=\"auto\">a</p><details class=\"folded\"><summary>Details</summary><div><p dir=\"auto\">never closed</p></div></details>",
        "a<details>x</details>":
            "<p dir=\"auto\">a<details>x</details></p>",
    },
    "what stands in items of lists": {
        "- <details>\n  x *y*\n  </details>":
            "<ul dir=\"ltr\"><li dir=\"auto\"><details class=\"folded\"><summary>Details</summary><div><p dir=\"auto\">x <em>y</em></p></div></details></li></ul>",
        "- [ ] a\n\n- [x] b":
            "<ul dir=\"ltr\"><li class=\"task\" dir=\"auto\"><span class=\"box\" role=\"img\" aria-label=\"not done\"></span><div><p dir=\"auto\">a</p></div></li><li class=\"task\" dir=\"auto\"><span class=\"box\" role=\"img\" aria-label=\"done\">*</span><div><p dir=\"auto\">b</p></div></li></ul>",
        "- a\n\n  [^1]: note *x*\n- b":
            "<ul dir=\"ltr\"><li dir=\"auto\"><p dir=\"auto\">a</p><aside class=\"footnote\" data-footnote=\"1\" tabindex=\"-1\" aria-label=\"Footnote 1\"><button type=\"button\" class=\"footnote-back\" data-footnote-back=\"1\" aria-label=\"Back to the text\">1</button><div><p dir=\"auto\">note <em>x</em></p></div></aside></li><li dir=\"auto\"><p dir=\"auto\">b</p></li></ul>",
    },
    "footnotes and their marks": {
        "Text[^1] and[^b](x).\n\n[^1]: Foot *note*\n    second line\n\n    para\n[^2]: other\n\nend":
            "<p dir=\"auto\">Text<sup class=\"footnote-ref\"><button type=\"button\" data-footnote-ref=\"1\" aria-label=\"Footnote 1\">1</button></sup> and^b.</p><aside class=\"footnote\" data-footnote=\"1\" tabindex=\"-1\" aria-label=\"Footnote 1\"><button type=\"button\" class=\"footnote-back\" data-footnote-back=\"1\" aria-label=\"Back to the text\">1</button><div><p dir=\"auto\">Foot <em>note</em><br />second line</p><p dir=\"auto\">para</p></div></aside><aside class=\"footnote\" data-footnote=\"2\" tabindex=\"-1\" aria-label=\"Footnote 2\"><button type=\"button\" class=\"footnote-back\" data-footnote-back=\"2\" aria-label=\"Back to the text\">2</button><div><p dir=\"auto\">other</p></div></aside><p dir=\"auto\">end</p>",
        "b [^1]: no\n[^1]: yes":
            "<p dir=\"auto\">b <sup class=\"footnote-ref\"><button type=\"button\" data-footnote-ref=\"1\" aria-label=\"Footnote 1\">1</button></sup>: no</p><aside class=\"footnote\" data-footnote=\"1\" tabindex=\"-1\" aria-label=\"Footnote 1\"><button type=\"button\" class=\"footnote-back\" data-footnote-back=\"1\" aria-label=\"Back to the text\">1</button><div><p dir=\"auto\">yes</p></div></aside>",
    },
    "what is no Markdown is text": {
        "<div onclick=\"x\">raw</div>\n":
            "<p class=\"raw\" dir=\"auto\"><div onclick=\"x\">raw</div></p>",
        "---":
            "<hr />",
        "a <script>x</script>":
            "<p dir=\"auto\">a <script>x</script></p>",
        "[^ ]: x":
            "",
    },
};
for (const [name, texts] of Object.entries(WHOLE)) {
    test(name, () => {
        for (const [text, html] of Object.entries(texts)) assert.equal(shown(lex(text)), html, JSON.stringify(text));
    });
}

test('addresses that a page may link to', () => {
    for (const [given, href] of Object.entries({ 'https://a.b': 'https://a.b/', 'HTTP://a.b/c': 'http://a.b/c', 'mailto:x@y': 'mailto:x@y', 'javascript:x': null, 'data:text/html,x': null, 'file:///x': null, '/x': null, '': null })) assert.equal(safeHref(given), href, given);
});

test('half an answer looks whole: what is open is closed, and an address that is still coming is not shown', () => {
    const half = (text) => shown(new MarkdownState().update(text, false));
    const p = (inner) => `<p dir="auto">${inner}</p>`;
    const cases = {
        'a **bo': p('a <strong>bo</strong>'), 'a **bo**': p('a <strong>bo</strong>'), 'a **': p('a '), 'a *': p('a '), 'a ~~': p('a '), 'a __': p('a '), 'a `co': p('a <code>co</code>'), 'a `co **x': p('a <code>co **x</code>'),
        'see [the page](https://exa': p('see the page'), 'see ![pic](https://exa': p('see pic'), 'see [the': p('see [the'), '```js\nlet': '<code-block .code="let" .language="js" .open=true></code-block>', '# He': '<h3 dir="auto">He</h3>',
        'a **b\n\nc **d': p('a **b') + p('c <strong>d</strong>'), '```\na\n```\n\nb `c': '<code-block .code="a" .language="" .open=false></code-block>' + p('b <code>c</code>'),
    };
    for (const [text, html] of Object.entries(cases)) assert.equal(half(text), html, JSON.stringify(text));
    assert.match(half(`${'x'.repeat(19_995)} **b`), /<strong>b<\/strong>/);
    assert.match(half(`${'x'.repeat(19_997)} **b`), / \*\*b<\/p>/, 'a very long one is left as it is');
    assert.equal(shown(new MarkdownState().update('a **bo', true)), p('a **bo'), 'at its end it is what it is');
});

test('of a growing answer only what is open is read again', () => {
    const state = new MarkdownState();
    const text = '# A\n\none\n\n- x\n\n- y\n\ntwo **b**\n\n';
    const first = state.update(text, false);
    assert.equal(state.update(text, false), first, 'the same text is not read at all');
    assert.ok(state.closedLength > 10 && state.closedLength < text.length);
    const closed = state.closed.slice();
    const second = state.update(`${text}three\n\nfour`, false);
    closed.forEach((one, i) => assert.equal(second[i], one, 'a closed block stays the same object'));
    assert.equal(shown(second), shown(lex(`${text}three\n\nfour`)));
    const list = state.update('- x\n\n', false);
    assert.equal(shown(state.update('- x\n\n- y', false)), shown(lex('- x\n\n- y')), 'a list grows over a blank line');
    assert.equal(list.length > 0, true);
    const whole = state.update(`${text}end`, true);
    assert.equal(shown(whole), shown(lex(`${text}end`)));
    assert.notEqual(state.update(`${text}end`, false), whole);
    assert.equal(shown(state.update(`${text}end goes on`, true)), shown(lex(`${text}end goes on`)), 'one that is continued');
    assert.equal(shown(state.update('other', true)), shown(lex('other')), 'another version');
    const named = new MarkdownState();
    named.update('See [it].\n\n[it]: https://a.b\n\nmore\n\nand', false);
    assert.match(shown(named.update('See [it].\n\n[it]: https://a.b\n\nmore\n\nand more', true)), /^<p dir="auto">See <a href="https:\/\/a\.b\/"/, 'a link whose address came behind it');
    const piece = new MarkdownState();
    for (const all = Object.values(WHOLE).flatMap((texts) => Object.keys(texts)); all.length; ) {
        const one = all.pop();
        for (let n = 1; n <= one.length; n += 3) piece.update(one.slice(0, n), false);
        assert.equal(shown(piece.update(one, true)), shown(lex(one)), JSON.stringify(one));
    }
});

test('times up to the length of the video are buttons', () => {
    const time = (seconds, text) => `<button type="button" class="time" data-seconds="${seconds}" title="Show the video at this time">${text}</button>`;
    assert.equal(shown(new MarkdownState(10).update('at 0:05 and 0:11', true)), `<p dir="auto">at ${time(5, '0:05')} and 0:11</p>`);
    assert.equal(shown(new MarkdownState(10).update('one\n\ntwo\n\nat **0:05', false)), `<p dir="auto">one</p><p dir="auto">two</p><p dir="auto">at <strong>${time(5, '0:05')}</strong></p>`);
    assert.equal(shown(new MarkdownState().update('at 0:05', true)), '<p dir="auto">at 0:05</p>');
});

test('a line of 200,000 letters is shown as it is', () => {
    const types = (text) => lex(text).map(({ type }) => type).join();
    assert.deepEqual([types('x'.repeat(200_000)), types('x'.repeat(200_001)), types(`a\n\n${'x'.repeat(200_000)}`), types(`${'x'.repeat(10)}\n\n${'x'.repeat(199_998)}`)], ['paragraph', 'plain', 'plain', 'paragraph,space,paragraph']);
    assert.equal(shown([{ type: 'plain', text: '**x**' }]), '<p class="raw" dir="auto">**x**</p>');
});
