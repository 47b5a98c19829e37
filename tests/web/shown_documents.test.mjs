/** What the field shows and does of a document whose pages can be sent as images, as shown/documents.txt says (shown.mjs). It
 * stands alone as every module that is loaded behind `register` takes longer than the others wait. */
import { register } from 'node:module';
import { Node, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, written } from './shown.mjs';

// A PDF of four pages; what reads real ones is not asked.
const reader = `data:text/javascript,${encodeURIComponent(`export const openPdf = async () => ({
    pages: 4, text: async () => ({ text: 'words', pages: 4, blank: 0 }), close() {},
    page: async (i) => ({ blob: new Blob(['p'], { type: 'image/png' }), width: i, height: 9 }) });`)}`;
register(`data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) => (name.endsWith('/documents/pdf.js') ? { url: ${JSON.stringify(reader)}, shortCircuit: true } : next(name, context));`)}`);
await withoutBrowser('views/composer.js');
const { readFiles } = await withoutBrowser('state/attachments.js');

const model = { name: 'Seedling', vision: true, video: false, thinking: false, maxImages: 4 };
const { attachments: [pages] } = await readFiles([new File(['%PDF-1.7'], 'a.pdf')], { ...model, already: 0, modelName: model.name });
const { attachments: [text] } = await readFiles([new File(['words'], 'b.txt')], { ...model, already: 0, modelName: model.name });
/** @param {string} says @param {string} value what the field for pages holds */
const withPages = (says, value, { attachments = [pages], reading = 0, refused = [], sees = true } = {}) => ({
    says, element: 'chat-composer', presses: /(Pages of|Add pages)/, keys: ['Enter', 'x'], until: (view) => view.reading === reading,
    found: () => ({ textarea: new Node('textarea', { value: '', selectionStart: 0, selectionEnd: 0 }), input: new Node('the pages', { value }) }),
    given: () => {
        const chat = chatOf([], { count: async (words) => words.length });
        return { chat, settings: { get: (name) => ({ imageSize: 1 << 20 })[name], set: chat.settings.set }, busy: false, queue: [], model: { ...model, vision: sees } };
    },
    after: (view) => void Object.assign(view, { attachments, reading, refused }),
});
written('documents', [
    withPages('pages that are not named', ' '),
    withPages('two pages', ' 2, 4 '),
    withPages('a page that is not there', '9', { refused: ['It is no image.'] }),
    withPages('more pages than there is room for', '1-3', { attachments: [text, pages], refused: ['It is no image.'] }),
    withPages('while another file is read', '1', { reading: 1 }),
    withPages('of a model that sees nothing', '1', { sees: false }),
]);
