/** What models write: how it looks, and that none of it runs, loads or leaves. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { becomes, keepLong, lastAnswer, launch, openChat, send } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { NAUGHTY } from './naughty.mjs';

const here = dirname(fileURLToPath(import.meta.url));
let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock({ delayMs: 0 });
});
after(async () => {
    await browser.close();
    await server.close();
});

/** Renders texts with the page's own renderer, each in a host of its own; returns the hosts' HTML
 * without markers. */
async function rendered(page, texts, finished = true) {
    return page.evaluate(
        async ({ texts, finished }) => {
            const base = document.baseURI;
            const { MarkdownState, renderBlock } = await import(new URL('js/views/markdown.js', base).href);
            const { render } = await import(new URL('vendor/lit.js', base).href);
            const out = [];
            for (const text of texts) {
                const host = document.createElement('div');
                host.className = 'prose attack-host';
                document.body.append(host);
                render(new MarkdownState().update(text, finished).map(renderBlock), host);
                out.push(host);
            }
            await new Promise((resolve) => setTimeout(resolve, 400));
            return out.map((host) => host.innerHTML.replace(/<!--.*?-->/g, '').replace(/\s+/g, ' ').trim());
        },
        { texts, finished },
    );
}

test('a single newline is a line break, but in code, tables, headings and formulas', async () => {
    const { page, done } = await openChat(browser, server.url);
    const cases = [
        ['Über allen Gipfeln\nIst Ruh,\nIn allen Wipfeln', '<p dir="auto">Über allen Gipfeln<br>Ist Ruh,<br>In allen Wipfeln</p>'],
        ['- one\n  two\n- **three\n  four**', '<li dir="auto">one<br>two</li><li dir="auto"><strong>three<br>four</strong></li>'],
        ['1. street\n   town', '<li dir="auto">street<br>town</li>'],
        ['> said\n> again', '<blockquote dir="ltr"><p dir="auto">said<br>again</p></blockquote>'],
        ['hard  \nbreak\\\nand<br>\ntag', '<p dir="auto">hard<br>break<br>and<br>tag</p>'],
        ['one\r\ntwo', '<p dir="auto">one<br>two</p>'],
        ['a *line\nof* [words\nthat link](https://example.org)', '<p dir="auto">a <em>line<br>of</em> <a target="_blank" rel="noopener noreferrer" href="https://example.org/">words<br>that link</a></p>'],
        ['A heading\nof two lines\n===', '<h3 dir="auto">A heading of two lines</h3>'],
        ['its `code\nspan` ends', '<code>code span</code>'],
        ['para\n\ngraphs\n', '<p dir="auto">para</p><p dir="auto">graphs</p>'],
    ];
    const out = (await rendered(page, cases.map(([text]) => text))).map((text) => text.replace(/ ?(<(br|p|h3|li|ul|ol|blockquote)[^>]*>) ?/g, '$1').replace(/ (<\/(p|li)>)/g, '$1').replace(/<\/(p|li)> /g, '</$1>'));
    cases.forEach(([text, expected], i) => assert.ok(out[i].includes(expected), `${JSON.stringify(text)}: ${out[i]}`));
    const whole = await rendered(page, ['```\na\nb\n```', '| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |', '$$\nx\n+ y\n$$', 'inline \\(a\n+ b\\) there', '# title\ntext']);
    for (const [i, text] of whole.entries()) assert.ok(!text.includes('<br'), `${i}: ${text}`);

    // As an answer, while it comes too.
    server.options.scripted = { 'a poem': 'Roses are red,\nviolets are blue.\n\n12:01 start\n12:02 stop\n' };
    await send(page, 'a poem');
    await becomes(() => lastAnswer(page), 'You said: Roses are red,\nviolets are blue.\n\n12:01 start\n12:02 stop');
    await becomes(() => page.locator('.answer > .prose br').count(), 2);
    server.options.scripted = {};
    await done();
});

test('tables, lists, tasks, code, quotation, formulas in one answer', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'fixture markdown.md');
    await lastAnswer(page);
    const prose = page.locator('.answer > .prose');
    assert.equal(await prose.locator('h4').innerText(), 'A small tour');
    assert.equal(await prose.locator('table tbody tr').count(), 3);
    assert.equal(await prose.locator('td.right').first().innerText(), '2');
    assert.equal(await prose.locator('ol > li').count(), 3);
    assert.equal(await prose.locator('ol ul > li').count(), 2);
    assert.equal(await prose.locator('li.task').count(), 2);
    assert.equal(await prose.getByRole('img', { name: 'not done' }).count(), 1);
    assert.equal(await prose.locator('blockquote').count(), 1);
    assert.equal(await prose.locator('strong').innerText(), 'bold');
    const link = prose.locator('a');
    assert.equal(await link.getAttribute('href'), 'https://example.org/page');
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    await prose.locator('pre .tok-keyword').first().waitFor();
    assert.equal(await prose.locator('.code-language').innerText(), 'python');
    await prose.locator('math').nth(1).waitFor();
    assert.equal(await prose.locator('math').count(), 2);
    assert.match(await prose.locator('p').last().innerText(), /It costs \$5 and not \$6\./);
    await page.evaluate(() => document.addEventListener('copy', () => (window.copied = document.activeElement.value)));
    await page.evaluate(() => Object.defineProperty(window, 'isSecureContext', { value: false }));
    await prose.getByRole('button', { name: 'Copy' }).click();
    await prose.getByRole('button', { name: 'Copied' }).waitFor();
    await becomes(() => page.evaluate(() => window.copied), /^def count[\s\S]+42\)$/);
    const [saved] = await Promise.all([page.waitForEvent('download'), prose.getByRole('button', { name: 'Save this code' }).click()]);
    assert.equal(saved.suggestedFilename(), 'code.py');
    assert.match(await readFile(await saved.path(), 'utf8'), /^def count[\s\S]+42\)$/);
    await prose.getByRole('button', { name: 'Wrap' }).click();
    await becomes(() => prose.locator('pre').evaluate((pre) => getComputedStyle(pre).whiteSpace), 'pre-wrap');
    await done();
});

test('no script runs and nothing leaves the page, as model output and as user text', async () => {
    const attacks = JSON.parse(await readFile(join(here, 'fixtures/attacks.json'), 'utf8'));
    const { page, done } = await openChat(browser, server.url);
    const html = await rendered(page, attacks);
    await rendered(page, attacks, false);
    const allowed = /^(https?|mailto):/;
    const seen = await page.evaluate(() => {
        const hosts = [...document.querySelectorAll('.attack-host')];
        const elements = hosts.flatMap((host) => [...host.querySelectorAll('*')]);
        return {
            tags: [...new Set(elements.map((element) => element.localName))],
            handlers: elements.flatMap((element) => element.getAttributeNames()).filter((name) => /^on|^ping$|^style$|^srcdoc$/.test(name)),
            links: elements.filter((element) => element.hasAttribute('href')).map((element) => element.getAttribute('href')),
            images: elements.filter((element) => element.localName === 'img').map((element) => element.src),
        };
    });
    for (const tag of ['script', 'iframe', 'object', 'embed', 'style', 'link', 'meta', 'base', 'form', 'video', 'audio', 'template', 'parley-app', 'marquee']) {
        assert.ok(!seen.tags.includes(tag), `<${tag}> was made`);
    }
    assert.deepEqual(seen.handlers, []);
    assert.deepEqual(seen.links.filter((href) => !allowed.test(href)), []);
    assert.deepEqual(seen.images, []);
    assert.ok(html.every((text) => typeof text === 'string'));
    for (let i = 0; i < attacks.length; i += 20) {
        await send(page, `say ${attacks.slice(i, i + 20).join('\n\n')}`);
        await lastAnswer(page);
    }
    assert.equal(await page.evaluate(() => window.hit), undefined);
    await done();
});

test('515 naughty strings: nothing runs, a question is shown, kept, exported and sent as it was typed', async () => {
    assert.ok(NAUGHTY.length >= 515, `${NAUGHTY.length} strings`);
    const { page, done } = await openChat(browser, server.url);
    const wrong = await page.evaluate(async (strings) => {
        const base = document.baseURI;
        const load = (name) => import(new URL(`js/${name}.js`, base).href);
        const [{ addMessage, newConversation }, { History }, { fromJson, toJson }] = await Promise.all(['state/store', 'state/history', 'state/transfer'].map(load));
        const { chat } = document.querySelector('parley-app');
        const conversation = newConversation();
        for (const text of strings) {
            const question = addMessage(conversation, { role: 'user', parent: conversation.head, text });
            addMessage(conversation, { role: 'assistant', parent: question.id, text, reasoning: text });
        }
        const host = document.body.appendChild(document.createElement('div'));
        const wrong = [];
        for (const message of Object.values(conversation.messages)) {
            const element = Object.assign(document.createElement('chat-message'), { chat, message, siblings: [] });
            host.append(element);
            await element.updateComplete;
            if (message.role === 'user' && element.querySelector('.bubble[dir], .bubble [dir]').textContent !== message.text) wrong.push(['shown', message.text]);
            // What a half answer looks like must not break either.
            if (message.role === 'assistant') {
                Object.assign(element, { message: { ...message, status: 'streaming', text: message.text.slice(0, -1) } });
                await element.updateComplete;
            }
        }
        const history = await History.open();
        await history.save(conversation);
        const kept = await history.load(conversation.id);
        for (const id of Object.keys(conversation.messages)) {
            if (kept.messages[id].text !== conversation.messages[id].text) wrong.push(['kept', conversation.messages[id].text]);
        }
        const [again] = fromJson(await toJson([conversation]));
        Object.values(again.messages).forEach((message, i) => {
            if (message.text !== strings[i >> 1]) wrong.push(['exported', strings[i >> 1]]);
        });
        const made = [...host.querySelectorAll('*')];
        for (const element of made) {
            const bad = element.getAttributeNames().filter((name) => /^on|^style$|^srcdoc$/.test(name));
            if (bad.length || /^(script|iframe|object|embed|style|link|meta|base|form|audio|template|parley-app|x-unknown|marquee)$/.test(element.localName)) {
                wrong.push(['made', element.outerHTML.slice(0, 200)]);
            }
        }
        host.remove();
        if ({}.polluted) wrong.push(['polluted']);
        return wrong;
    }, NAUGHTY);
    assert.deepEqual(wrong, []);
    const all = `say ${NAUGHTY.join('\n')}`;
    await page.evaluate((text) => document.querySelector('parley-app').chat.send(text, []), all);
    await page.locator('.speed').waitFor();
    assert.equal(server.requests.at(-1).body.input[0].content[0].text, all);
    assert.equal(await page.locator('.bubble > div').textContent(), all);
    assert.equal(await page.evaluate(() => window.hit), undefined);
    await done();
});

test('raw HTML is shown as the text it is', async () => {
    const { page, done } = await openChat(browser, server.url);
    const [block, inlined, broken] = await rendered(page, ['<div>hello</div>', 'a <em-x>c</em-x> <blink>d</blink>', 'one<br>two']);
    assert.match(block, /&lt;div&gt;hello&lt;\/div&gt;/);
    assert.match(inlined, /a &lt;em-x&gt;c&lt;\/em-x&gt; &lt;blink&gt;d&lt;\/blink&gt;/);
    assert.match(broken, /one<br>two/);
    await done();
});

test('a backslash takes the meaning from a mark, and is not shown', async () => {
    const { page, done } = await openChat(browser, server.url);
    const [marks, code] = await rendered(page, ['\\*no\\* \\_no\\_ \\`no\\` \\~\\~no\\~\\~ \\# \\!', '`a\\*b`']);
    assert.match(marks, /\*no\* _no_ `no` ~~no~~ # !/);
    assert.match(code, /<code>a\\\*b<\/code>/); // but in code it is a backslash
    await done();
});

test('the small elements do what they say, without their attributes; what is not closed is text', async () => {
    const { page, done } = await openChat(browser, server.url);
    const cases = [
        ['H<sub>2</sub>O', 'H<sub>2</sub>O'],
        ['x<sup>2<sup>3</sup></sup>', 'x<sup>2<sup>3</sup></sup>'],
        ['<kbd>Ctrl</kbd>+<kbd>C</kbd>', '<kbd>Ctrl</kbd>+<kbd>C</kbd>'],
        ['<SUB onclick="hit()" style="x">a *b*</SUB>', '<sub>a <em>b</em></sub>'],
        ['<mark>m</mark> <b>b</b> <i>i</i> <u>u</u> <s>s</s>', '<mark>m</mark> <strong>b</strong> <em>i</em> <u>u</u> <s>s</s>'],
        ['a <sub>b', 'a &lt;sub&gt;b'],
        ['a</sup> b', 'a&lt;/sup&gt; b'],
        ['<kbd>a <sub>b</kbd> c</sub>', '<kbd>a &lt;sub&gt;b</kbd> c&lt;/sub&gt;'],
        ['`<sub>2</sub>`', '<code>&lt;sub&gt;2&lt;/sub&gt;</code>'],
        ['<constructor>a</constructor>', '&lt;constructor&gt;a&lt;/constructor&gt;'],
    ];
    const out = await rendered(page, cases.map(([text]) => text));
    cases.forEach(([text, expected], i) => assert.ok(out[i].includes(expected), `${text}: ${out[i]}`));
    await done();
});

test('details, footnotes and notes', async () => {
    const { page, done } = await openChat(browser, server.url);
    const texts = [
        '<details>\n<summary>More <b>about</b> it</summary>\n\nHidden *text*:\n\n```html\n</details>\n```\n\n<details><summary>in</summary>deep</details>\nend\n</details>\n\nAfter',
        '<details open>\nNo summary, not closed',
        'A claim[^1], another[^b].\n\n[^1]: First *source*.\n[^b]: Second\n    goes on.\n\nEnd',
        '> [!NOTE]\n> Useful **words**.\n> - one\n\n> [!caution]\n> Hot\n\n> [!OTHER]\n> a quote',
    ];
    const [fold, open, notes, alerts] = await rendered(page, texts);
    const words = (text) => text.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ').trim();
    assert.match(fold, /<details class="folded"> ?<summary>More <strong>about<\/strong> it<\/summary>/);
    assert.match(words(fold), /Hidden text : .*&lt;\/ details &gt; in deep end After$/);
    assert.equal(fold.match(/<details/g).length, 2);
    assert.match(fold, /<\/details> ?<p dir="auto">After<\/p>$/);
    assert.match(open, /<details class="folded" open=""> ?<summary>Details<\/summary>.*not closed/);
    assert.match(notes, /claim<sup class="footnote-ref"><button[^>]*data-footnote-ref="1"[^>]*>1<\/button><\/sup>/);
    assert.match(words(notes), /^A claim 1 , another b \. 1 First source \. b Second goes on\. End$/);
    assert.match(alerts, /class="alert alert-note"/);
    assert.match(words(alerts), /^Note Useful words \. one Caution Hot \[!OTHER\] a quote$/);
    // Every beginning is shown without an error, and the whole is what it is when it came in pieces.
    const pieces = await page.evaluate(async (texts) => {
        const { MarkdownState } = await import(new URL('js/views/markdown.js', document.baseURI).href);
        return texts.map((text) => {
            const state = new MarkdownState();
            for (let i = 1; i < text.length; i += 1) state.update(text.slice(0, i), false);
            const raw = (tokens) => tokens.map((token) => token.raw).join('');
            return raw(state.update(text, true)) === raw(new MarkdownState().update(text, true));
        });
    }, texts);
    assert.deepEqual(pieces, [true, true, true, true]);
    await done();
});

test('a mark leads to its footnote and back', async () => {
    const { page, done } = await openChat(browser, server.url);
    server.options.scripted = { sources: '\n\nA claim[^1].\n\n[^1]: The source.\n' };
    await send(page, 'sources');
    await lastAnswer(page);
    const answer = page.getByRole('log', { name: 'Conversation' });
    await answer.getByRole('button', { name: 'Footnote 1' }).click();
    await becomes(() => page.evaluate(() => document.activeElement?.getAttribute('data-footnote')), '1');
    await answer.getByRole('button', { name: 'Back to the text' }).click();
    await becomes(() => page.evaluate(() => document.activeElement?.getAttribute('data-footnote-ref')), '1');
    server.options.scripted = {};
    await done();
});

test('aligned formulas are aligned; code in a list looks like code elsewhere', async () => {
    const { page, done } = await openChat(browser, server.url);
    server.options.scripted = {
        formulas: '\n\n$$\\begin{aligned} f(x) &= 1 \\\\ longer &= x^2 + 2x \\end{aligned}$$\n\n- one\n\n  ```\n  x = 1\n  ```\n- `two`\n\n```\nx = 1\n```\n',
    };
    await send(page, 'formulas');
    await lastAnswer(page);
    await page.locator('mtd').nth(3).waitFor();
    const cells = await page.evaluate(() => [...document.querySelectorAll('mtd')].map((cell) => {
        const inside = cell.firstElementChild.getBoundingClientRect();
        const all = cell.getBoundingClientRect();
        return { left: inside.left - all.left, right: all.right - inside.right, width: inside.width };
    }));
    assert.ok(cells[0].right < 1 && cells[0].left > 5, 'to the right of the first column');
    assert.ok(cells[1].left < 1 && cells[1].right > 5, 'to the left of the second');
    const [inList, plain] = await page.evaluate(() => [...document.querySelectorAll('code-block code')].map((code) => {
        const { backgroundColor, padding, borderRadius } = getComputedStyle(code);
        return { backgroundColor, padding, borderRadius };
    }));
    assert.deepEqual(inList, plain);
    assert.notEqual(await page.locator('li code', { hasText: 'two' }).evaluate((code) => getComputedStyle(code).padding), plain.padding);
    server.options.scripted = {};
    await done();
});

test('all of a long conversation is printed, without what is there to click', async () => {
    const { page, done } = await openChat(browser, server.url);
    const id = await page.evaluate(keepLong, 120);
    await page.evaluate((id) => (location.hash = `#/c/${id}`), id);
    await page.getByText('Answer 59', { exact: true }).waitFor();
    const pdf = (await page.pdf({ format: 'A4' })).toString('latin1');
    const sheets = pdf.match(/\/Type\s*\/Page\b/g).length;
    assert.ok(sheets >= 8, `${sheets} sheets`);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await becomes(() => page.locator('chat-message').count(), 120);
    const tall = await page.evaluate(() => ['.transcript', '.shell', 'body'].map((name) => {
        const element = document.querySelector(name);
        return [getComputedStyle(element).overflowY, element.scrollHeight - element.clientHeight < 2];
    }));
    assert.deepEqual(tall, Array(3).fill(['visible', true]));
    await becomes(() => page.locator('.composer, .top, .actions').filter({ visible: true }).count(), 0);
    await done();
});

test('remote images become a link that says so', async () => {
    const { page, done } = await openChat(browser, server.url);
    const [chip] = await rendered(page, ['![a cat](https://evil.example/cat.png)']);
    assert.match(chip, /Image not loaded: a cat \(evil\.example\)/);
    assert.match(chip, /rel="noopener noreferrer"/);
    await done();
});

test('half-written Markdown looks whole', async () => {
    const { page, done } = await openChat(browser, server.url);
    const [bold, code, fence, link, list] = await rendered(
        page,
        ['some **bold wor', 'call `foo', '```python\nprint(1', 'see [the page](https://exa', '- one\n- tw'],
        false,
    );
    assert.match(bold, /<strong>bold wor<\/strong>/);
    assert.match(code, /<code>foo<\/code>/);
    assert.match(fence, /<code>print\(1<\/code>/);
    assert.match(link, /see the page/);
    assert.doesNotMatch(link, /exa/);
    assert.match(list, /<li dir="auto">tw<\/li>/);
    await done();
});

test('streaming in pieces ends in the same document as the whole text', async () => {
    const text = await readFile(join(here, 'fixtures/markdown.md'), 'utf8');
    const { page, done } = await openChat(browser, server.url);
    const same = await page.evaluate(async (text) => {
        const base = document.baseURI;
        const { MarkdownState, lex } = await import(new URL('js/views/markdown.js', base).href);
        const plain = (tokens) => JSON.stringify(tokens.filter((token) => token.type !== 'space').map(({ type, raw }) => [type, raw.trim()]));
        const whole = plain(lex(text));
        for (let step = 1; step < 40; step += 7) {
            const state = new MarkdownState();
            for (let end = 0; end < text.length; end += step) state.update(text.slice(0, end), false);
            if (plain(state.update(text, true)) !== whole) return `differs at step ${step}`;
        }
        return 'same';
    }, text);
    assert.equal(same, 'same');
    await done();
});

test('a megabyte in one line, and 30 KB streamed, leave the page usable', async () => {
    const { page, done } = await openChat(browser, server.url);
    const ms = await page.evaluate(async () => {
        const base = document.baseURI;
        const { MarkdownState, renderBlock } = await import(new URL('js/views/markdown.js', base).href);
        const { render } = await import(new URL('vendor/lit.js', base).href);
        const host = document.createElement('div');
        document.body.append(host);
        const started = performance.now();
        render(new MarkdownState().update('*a `b [c '.repeat(120_000), true).map(renderBlock), host);
        const line = performance.now() - started;
        host.remove();
        let text = '';
        for (let i = 0; text.length < 30_000; i += 1) text += `Paragraph ${i} with **bold** and \`code\` and a [link](https://example.org/${i}).\n\n`;
        const state = new MarkdownState();
        const begun = performance.now();
        let steps = 0;
        for (let end = 0; end < text.length; end += 100, steps += 1) state.update(text.slice(0, end), false);
        return { line, perStep: (performance.now() - begun) / steps };
    });
    console.log(`one line of 1 MB: ${Math.round(ms.line)} ms; a step of a 30 KB answer: ${ms.perStep.toFixed(2)} ms`);
    assert.ok(ms.line < 60_000, `one line took ${ms.line} ms: it must not be quadratic`);
    await done();
});

test('long words, wide tables and code scroll inside their box, on a phone too', async () => {
    for (const phone of [false, true]) {
        const { page, done } = await openChat(browser, server.url, { phone });
        const wide = `${'x'.repeat(400)}\n\n| ${'column | '.repeat(20)}\n|${'---|'.repeat(20)}\n| ${'value | '.repeat(20)}\n\n\`\`\`\n${'code '.repeat(200)}\n\`\`\`\n\n$$${'a+'.repeat(100)}b$$`;
        await send(page, `say ${wide}`);
        await lastAnswer(page);
        await page.locator('math').waitFor();
        const overflow = await page.evaluate(() => [
            document.documentElement.scrollWidth - innerWidth,
            document.querySelector('.transcript').scrollWidth - document.querySelector('.transcript').clientWidth,
        ]);
        assert.deepEqual(overflow.map((px) => px <= 0), [true, true], `overflow ${overflow}`);
        await done();
    }
});
