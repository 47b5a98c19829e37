/** A tool call as a person reads it: what was asked for, whether it is done, and what came of it. */
import { html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import './code-block.js';
import { icon } from './icons.js';

const SHORT = 60; // longer values get a line of their own

/** "get_weather" -> "get weather". @param {string} name */
const spoken = (name) => name.replace(/[_-]+/g, ' ').trim() || t`a tool`;

/** The arguments as name and value, or null where they are not (yet) an object.
 * @param {string} text */
function fields(text) {
    try {
        const value = JSON.parse(text || '{}');
        return value && typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : null;
    } catch {
        return null;
    }
}

/** @param {any} value */
const plain = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 1));

/** A result that is JSON is indented, anything else stands as it came. @param {string} text */
function result(text) {
    try {
        const value = JSON.parse(text);
        if (value && typeof value === 'object') return { code: JSON.stringify(value, null, 2), language: 'json' };
    } catch {
        // It is plain text.
    }
    return { code: text, language: '' };
}

/** @param {import('../state/store.js').ToolCall} tool @param {boolean} streaming */
export function toolView(tool, streaming) {
    const given = fields(tool.arguments);
    const waits = tool.output === undefined;
    const state = !waits ? (tool.failed ? t`failed` : t`done`) : streaming ? t`at work` : t`asked for`;
    const out = waits ? null : result(/** @type {string} */ (tool.output));
    return html`<details class="tool ${tool.failed ? 'failed' : ''}" ?open=${waits && !streaming}>
        <summary>
            ${icon(tool.failed ? 'warning' : 'tool')}<span>${spoken(tool.name)}</span>
            <span class="tool-state">${state}</span>${icon('down')}
        </summary>
        ${given?.length
            ? html`<dl>
                  ${given.map(([name, value]) => {
                      const text = plain(value);
                      return html`<div class=${text.length > SHORT ? 'long' : ''}><dt>${spoken(name)}</dt><dd dir="auto">${text}</dd></div>`;
                  })}
              </dl>`
            : given
              ? nothing
              : html`<p class="raw">${tool.arguments}</p>`}
        ${out
            ? html`<p class="note">${t`What came of it`}</p>
                  <code-block .code=${out.code} .language=${out.language}></code-block>`
            : waits && !streaming
              ? html`<p class="note">${t`No tool of this server answers to this name; the program that asked is to run it.`}</p>`
              : nothing}
    </details>`;
}
