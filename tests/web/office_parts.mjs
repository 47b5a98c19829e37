/** Documents that are made here, part by part, for office.test.mjs. */
import { docx, xlsx } from './make_zip.mjs';

const RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships';
/** @param {Record<string, [string, string, boolean?]>} list by id: type, target, whether it is outside */
const relations = (list) => `<Relationships xmlns="${RELATIONS}">${Object.entries(list).map(([id, [type, target, out]]) => `<Relationship Id="${id}" Type="x/y/${type}" Target="${target}"${out ? ' TargetMode="External"' : ''}/>`).join('')}</Relationships>`;
const NS = 'xmlns:w="w" xmlns:m="m" xmlns:mc="mc" xmlns:c="c" xmlns:a="a" xmlns:p="p" xmlns:r="r"';

// ---- charts and formulas ----

const points = (values, name = 'numCache') => `<c:${name}>${values.map((v, i) => `<c:pt idx="${i}"><c:v>${v}</c:v></c:pt>`).join('')}</c:${name}>`;
const series = (name, names, values) => `<c:ser><c:tx>${name}</c:tx><c:cat>${points(names, 'strCache')}</c:cat><c:val>${points(values)}</c:val></c:ser>`;
export const CHART = `<c:chartSpace ${NS}><c:chart><c:title><c:tx><a:t>Rain </a:t><a:t>and sun</a:t></c:tx></c:title><c:plotArea>${series(points(['mm'], 'strCache'), ['March', 'April'], [12, 80, 7])}${series('<c:v>hours</c:v>', [], [3])}</c:plotArea></c:chart></c:chartSpace>`;
const SCATTER = `<c:chartSpace ${NS}><c:title><c:overlay/></c:title><c:ser><c:xVal>${points([1.5])}</c:xVal><c:yVal>${points([2.5])}</c:yVal></c:ser></c:chartSpace>`;
const t = (text) => `<m:r><m:t>${text}</m:t></m:r>`;
const [e, sub, sup, num, den, deg] = ['e', 'sub', 'sup', 'num', 'den', 'deg'].map((name) => (inner) => `<m:${name}>${inner}</m:${name}>`);
export const FORMULAS = [
    `<m:f>${num(t('a+b'))}${den(t('2.5'))}</m:f>`, `<m:sSup>${e(t('x'))}${sup(t('n'))}</m:sSup>`, `<m:sSub>${e(t('x'))}${sub(t('i,j'))}</m:sSub>`,
    `<m:sSubSup>${e(t('x'))}${sub(t('i'))}${sup(t('-1'))}</m:sSubSup>`, `<m:rad><m:deg/>${e(t('x'))}</m:rad>`, `<m:rad>${deg(t('3'))}${e(t('x'))}</m:rad>`,
    `<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>${sub(t('i=1'))}${sup(t('n'))}${e(t('i'))}</m:nary>`, `<m:nary>${sub('')}${sup('')}${e(t('f'))}</m:nary>`,
    `<m:d>${e(t('a'))}${e(t('b'))}</m:d>`, `<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="|"/></m:dPr>${e(t('a'))}</m:d>`,
    `<m:m><m:mr>${e(t('1'))}${e(t('2'))}</m:mr><m:mr>${e(t('3'))}${e(t('4'))}</m:mr></m:m>`, `<m:box><m:ctrlPr>${t('no')}</m:ctrlPr>${e(t('kept'))}</m:box>`,
];

// ---- Word ----

const run = (text, more = '') => `<w:r>${more && `<w:rPr>${more}</w:rPr>`}<w:t>${text}</w:t></w:r>`;
const p = (inner, properties = '') => `<w:p>${properties && `<w:pPr>${properties}</w:pPr>`}${inner.startsWith('<') ? inner : run(inner)}</w:p>`;
const style = (id) => `<w:pStyle w:val="${id}"/>`;
const numbered = (id, level) => `<w:numPr>${level === undefined ? '' : `<w:ilvl w:val="${level}"/>`}<w:numId w:val="${id}"/></w:numPr>`;
const cell = (inner, properties = '') => `<w:tc>${properties && `<w:tcPr>${properties}</w:tcPr>`}${inner.startsWith('<') ? inner : p(inner)}</w:tc>`;
const row = (...cells) => `<w:tr>${cells.join('')}</w:tr>`;
const level = (i, format, shape, start) => `<w:lvl w:ilvl="${i}">${start ? `<w:start w:val="${start}"/>` : ''}<w:numFmt w:val="${format}"/><w:lvlText w:val="${shape}"/></w:lvl>`;
const styleOf = (id, name, properties = '', based = '') => `<w:style w:styleId="${id}"><w:name w:val="${name}"/>${based && `<w:basedOn w:val="${based}"/>`}${properties && `<w:pPr>${properties}</w:pPr>`}</w:style>`;

const WORDS = docx([
    p('The title', style('T')), p('A heading', style('H2')), p('By its style before', style('Based')), p('By itself', '<w:outlineLvl w:val="3"/>'), p('Body', '<w:outlineLvl w:val="9"/>'), p('Deep', style('Deep')), p('Outline', style('Outline')), p('Far', style('S18')), p('Too far', style('S20')),
    p('one', numbered(1, 0)), p('two', numbered(1)), p('inner', numbered(1, 1)), p('inner two', numbered(1, 1)), p('three', numbered(1, 0)), p('inner anew', numbered(1, 1)), p('point', numbered(2, 1)), p('no number', numbered(0, 0)), p('none', numbered(3, 0)), p('unknown', numbered(9, 0)),
    p('by style', style('Numbered')), p('Numbered heading', style('NumHead')), p('again', numbered(4, 0)), p('Bullet heading', style('H2') + numbered(2, 0)), p('shapeless', numbered(5, 0)),
    ...['lowerRoman', 'upperRoman', 'lowerLetter', 'upperLetter'].map((_, i) => p('x', numbered(10 + i, 0)) + p('y', numbered(10 + i, 0))),
    `<w:p>${run('plain ')}<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>${run('seen', '<w:vanish w:val="0"/>')}${run(' struck', '<w:strike/>')}${run(' kept', '<w:strike w:val="false"/>')}${run('2', '<w:vertAlign w:val="superscript"/>')}${run('i', '<w:vertAlign w:val="subscript"/>')}${run(' ', '<w:vertAlign w:val="superscript"/>')}</w:p>`,
    '<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t><w:ptab/><w:cr/><w:softHyphen/><w:t>e</w:t></w:r></w:p>',
    '<w:p><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="3"/></w:r><w:r><w:commentReference w:id="4"/></w:r></w:p>',
    `<w:p><w:hyperlink r:id="out">${run('the plan')}</w:hyperlink><w:r><w:t> </w:t></w:r><w:hyperlink r:id="out">${run('https://example.org/plan')}</w:hyperlink><w:hyperlink r:id="in">${run(' inside')}</w:hyperlink><w:hyperlink w:anchor="x">${run(' anchor')}</w:hyperlink></w:p>`,
    `<w:p>${FORMULAS.map((one) => `<m:oMath>${one}</m:oMath>${run('; ')}`).join('')}</w:p>`, `<w:p><m:oMathPara><m:oMath>${FORMULAS[1]}</m:oMath><m:oMath>${FORMULAS[0]}</m:oMath></m:oMathPara></w:p>`,
    `<w:p><mc:AlternateContent><mc:Fallback>${run('old')}</mc:Fallback><mc:Choice>${run('new')}</mc:Choice></mc:AlternateContent><w:ins>${run(' added')}</w:ins><w:del>${run(' deleted')}</w:del><w:moveTo>${run(' moved')}</w:moveTo><w:fldSimple>${run(' field')}</w:fldSimple><w:bookmarkStart/></w:p>`,
    `<w:p><w:r><w:ruby><w:rt>${run('かん')}</w:rt><w:rubyBase>${run('漢')}</w:rubyBase></w:ruby><w:ruby><w:rt>${run('no')}</w:rt></w:ruby><mc:AlternateContent><mc:Fallback><w:t>fallen</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>`,
    `<w:sdt><w:sdtContent>${p('in a control')}</w:sdtContent></w:sdt><w:sectPr>${p('no')}</w:sectPr><mc:AlternateContent><mc:Choice>${p('chosen block')}</mc:Choice></mc:AlternateContent>`,
    `<w:tbl>${row(cell('A'), cell('B', '<w:gridSpan w:val="2"/>'), cell('C'))}${row(cell('1', '<w:vMerge w:val="restart"/>'), cell('2'), cell('3'), cell(p('4') + p('5')))}${row(cell('gone', '<w:vMerge/>'), cell('6'), '<w:sdt><w:sdtContent>' + cell('7') + '</w:sdtContent></w:sdt>', cell('8'))}<w:tr><w:trPr><w:del/></w:trPr>${cell('x')}${cell('y')}</w:tr></w:tbl>`,
    `<w:tbl>${row(cell('wide', '<w:gridSpan w:val="70"/>'), cell('end'))}</w:tbl>`,
    `<w:tbl>${row(cell('framed'))}${row(cell(p('twice') + p('over', numbered(2, 0))))}</w:tbl>`,
    `<w:p>${run('Before the box')}<w:r><w:drawing><a:docPr descr=""/><a:docPr descr="a river"/><a:blip/><a:blip/><w:txbxContent>${p('in the box')}<w:p><w:r><w:pict><w:txbxContent>${p('in the inner')}</w:txbxContent></w:pict></w:r></w:p></w:txbxContent></w:drawing></w:r></w:p>`,
    '<w:p><w:r><w:pict><a:imagedata/></w:pict></w:r></w:p><w:p><w:r><w:drawing><c:chart r:id="chart"/></w:drawing><w:drawing><c:chart r:id="scatter"/></w:drawing><w:object><c:chart r:id="lost"/></w:object></w:r></w:p>',
].join(''), {
    'word/_rels/document.xml.rels': relations({ s: ['styles', 'styles.xml'], n: ['numbering', '/word/numbering.xml'], f: ['footnotes', '../word/./footnotes.xml'], e: ['endnotes', 'endnotes.xml'], c: ['comments', 'comments.xml'], chart: ['chart', 'charts/one.xml'], scatter: ['chart', 'charts/two.xml'], lost: ['chart', 'charts/lost.xml'], out: ['hyperlink', 'https://example.org/plan', true], in: ['hyperlink', 'other.docx'] }),
    'word/charts/one.xml': CHART,
    'word/charts/two.xml': SCATTER,
    'word/styles.xml': `<w:styles ${NS}>${[styleOf('T', 'Title'), styleOf('H2', 'heading 2'), styleOf('Based', 'Mine', '', 'H2'), styleOf('Deep', 'Heading 9'), styleOf('Outline', 'Own', '<w:outlineLvl w:val="0"/>'), styleOf('Numbered', 'Listed', '', 'NumBase'), styleOf('NumBase', 'Base', numbered(4, 0)), styleOf('NumHead', 'heading 1', numbered(4, 0)), ...Array.from({ length: 21 }, (_, i) => styleOf(`S${i}`, i ? 'chained' : 'heading 3', '', i ? `S${i - 1}` : ''))].join('')}</w:styles>`,
    'word/numbering.xml': `<w:numbering ${NS}>${[
        [1, level(0, 'decimal', '%1.') + level(1, 'lowerLetter', '%1.%2)', 3)], [2, level(0, 'bullet', '•') + level(1, 'bullet', '•')], [3, level(0, 'none', '%1.')], [4, level(0, 'upperRoman', 'Part %1:')], [5, level(0, 'decimal', '')],
        [10, level(0, 'lowerRoman', '%1', 44)], [11, level(0, 'upperRoman', '%1', 1999)], [12, level(0, 'lowerLetter', '%1', 26)], [13, level(0, 'upperLetter', '%1', 52)],
    ].map(([id, levels]) => `<w:abstractNum w:abstractNumId="a${id}">${levels}</w:abstractNum><w:num w:numId="${id}"><w:abstractNumId w:val="a${id}"/></w:num>`).join('')}</w:numbering>`,
    'word/footnotes.xml': `<w:footnotes ${NS}><w:footnote w:type="separator" w:id="0">${p('---')}</w:footnote><w:footnote w:type="continuationSeparator" w:id="1">${p('---')}</w:footnote><w:footnote w:id="2">${p('foot')}${p('note')}</w:footnote></w:footnotes>`,
    'word/endnotes.xml': `<w:endnotes ${NS}><w:endnote w:id="3">${p('end')}</w:endnote></w:endnotes>`,
    'word/comments.xml': `<w:comments ${NS}><w:comment w:id="4">${p('well said')}</w:comment></w:comments>`,
});

export const WORD = { ...WORDS, 'word/document.xml': WORDS['word/document.xml'].replace('<w:document ', `<w:document ${NS.replace('xmlns:w="w" ', '')} `) };

// ---- Excel ----

const c = (r, inner, more = '') => `<c${r && ` r="${r}"`}${more}>${inner}</c>`;
const v = (value) => `<v>${value}</v>`;
const BOOK = xlsx('');
const FORMATS = [0, 9, 10, 11, 13, 14, 17, 18, 21, 22, 23, 26, 27, 36, 37, 45, 46, 47, 48, 49, 50, 58, 59];
export const EXCEL = {
    ...BOOK,
    'xl/workbook.xml': `<workbook ${NS}><sheets><sheet name="First" r:id="s1"/><sheet name="Second" state="veryHidden" r:id="s2"/><sheet name="Lost" r:id="s3"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations({ s1: ['worksheet', 'worksheets/sheet1.xml'], s2: ['worksheet', 'worksheets/sheet2.xml'], s3: ['worksheet', 'worksheets/lost.xml'], st: ['sharedStrings', 'strings.xml'], f: ['styles', 'styles.xml'] }),
    'xl/strings.xml': '<sst><si><t>plain</t></si><si><r><t>rich </t></r><r><t>text</t></r><rPh><t>spoken</t></rPh></si></sst>',
    'xl/styles.xml': `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="0.0&quot; km&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs>${FORMATS.map((id) => `<xf numFmtId="${id}"/>`).join('')}<xf numFmtId="170"/></cellXfs></styleSheet>`,
    'xl/worksheets/sheet1.xml': `<worksheet><sheetData>
        <row r="2">${c('B2', v(0), ' t="s"')}${c('C2', v(1), ' t="s"')}${c('AA2', v(9), ' t="s"')}</row>
        <row>${c('', v('no'))}${c('B3', v(1), ' t="b"')}${c('', v(0), ' t="b"')}${c('', v('1E2'))}${c('', v('x'), ' t="str"')}${c('', v('#N/A'), ' t="e"')}${c('', v('2025-01-01'), ' t="d"')}${c('', '<is><t>in</t><r><t>line</t></r></is>', ' t="inlineStr"')}${c('', '', ' t="inlineStr"')}</row>
        <row r="4">${c('A4', '<f>A1+1</f>')}${c('B4', '<f>A1+1</f><v>5</v>')}${c('C4', v(7), ` s="${FORMATS.length}"`)}${c('D4', v(7), ' s="99"')}</row>
        <row r="6">${FORMATS.map((_, i) => c('', v(45352.75), ` s="${i}"`)).join('')}</row><row r="7">${c('ALM7', v('too far'))}</row></sheetData></worksheet>`,
    'xl/worksheets/_rels/sheet1.xml.rels': relations({ c: ['comments', '../comments.xml'] }),
    'xl/comments.xml': '<comments><commentList><comment ref="B2"><text><t> ask </t><r><t>him</t></r></text></comment><comment ref="C2"/></commentList></comments>',
    'xl/worksheets/sheet2.xml': '<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>',
};
export const EXCEL_1904 = { ...BOOK, 'xl/workbook.xml': BOOK['xl/workbook.xml'].replace('<sheets>', '<workbookPr date1904="true"/><sheets>'), 'xl/_rels/workbook.xml.rels': BOOK['xl/_rels/workbook.xml.rels'].replace('</', '<Relationship Id="f" Type="x/styles" Target="styles.xml"/></'), 'xl/styles.xml': '<styleSheet><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>', 'xl/worksheets/sheet1.xml': '<worksheet><sheetData><row><c s="0"><v>43890</v></c></row></sheetData></worksheet>' };

// ---- PowerPoint ----

const para = (inner, lvl) => `<a:p>${lvl === undefined ? '' : `<a:pPr lvl="${lvl}"/>`}${inner.startsWith('<') ? inner : `<a:r><a:t>${inner}</a:t></a:r>`}</a:p>`;
const shape = (kind, ...paras) => `<p:sp><p:nvSpPr><p:nvPr>${kind === null ? '' : `<p:ph${kind && ` type="${kind}"`}/>`}</p:nvPr></p:nvSpPr><p:txBody>${paras.map((one) => (one.startsWith('<a:p') ? one : para(one))).join('')}</p:txBody></p:sp>`;
const slide = (shapes, more = '') => `<p:sld ${NS}${more}><p:cSld><p:spTree>${shapes}</p:spTree></p:cSld></p:sld>`;
const frame = (data) => `<p:graphicFrame><a:graphic><a:graphicData>${data}</a:graphicData></a:graphic></p:graphicFrame>`;
const tc = (text, more = '') => `<a:tc${more}><a:txBody>${para(text)}</a:txBody></a:tc>`;
const picture = (alt) => `<p:pic><p:nvPicPr><p:cNvPr descr="${alt}"/></p:nvPicPr></p:pic>`;
export const POINT = {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relations({ r: ['officeDocument', 'ppt/presentation.xml'] }),
    'ppt/presentation.xml': `<p:presentation ${NS}><p:sldIdLst><p:sldId id="1" r:id="two"/><p:sldId id="2" r:id="one"/><p:sldId id="3" r:id="none"/></p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations({ one: ['slide', 'slides/1.xml'], two: ['slide', 'slides/2.xml'] }),
    'ppt/slides/1.xml': slide([
        shape(null, 'free words', 'second line'), shape('', 'alone'), shape('body', 'first', para('deeper', 1), para('deepest', 20), para('')), shape('subTitle', para('indented only', 2)),
        `<p:grpSp>${shape('title', 'The', 'title')}</p:grpSp>`, ...['sldNum', 'dt', 'ftr', 'hdr', 'sldImg'].map((kind) => shape(kind, 'no')),
        shape(null, para(`<a:r><a:rPr baseline="30000"/><a:t>2</a:t></a:r><a:r><a:rPr baseline="-25000"/><a:t>i</a:t></a:r><a:r><a:rPr baseline="0"/><a:t>x</a:t></a:r><a:br/><a:fld><a:t>field</a:t></a:fld><mc:AlternateContent><mc:Choice><a:r><a:t> chosen</a:t></a:r></mc:Choice></mc:AlternateContent><mc:AlternateContent/><a:m><m:oMath>${FORMULAS[0]}</m:oMath></a:m><a:endParaRPr/>`)),
        picture('a river'), picture(''), frame(`<a:tbl><a:tr>${tc('A', ' gridSpan="2"')}${tc('no', ' hMerge="1"')}</a:tr><a:tr>${tc('1')}<a:tc vMerge="0"><a:txBody>${para('2')}${para('b')}</a:txBody></a:tc></a:tr><a:tr>${tc('no', ' vMerge="true"')}${tc('3')}</a:tr></a:tbl>`),
        frame('<c:chart r:id="chart"/>'), frame('<a:relIds r:dm="drawn"/>'), frame('<a:relIds r:dm="lost"/>'), '<mc:AlternateContent><mc:Choice>' + shape(null, 'chosen shape') + '</mc:Choice></mc:AlternateContent><p:cxnSp/>',
    ].join('')),
    'ppt/slides/_rels/1.xml.rels': relations({ chart: ['chart', '../charts/one.xml'], drawn: ['diagramData', '../drawn.xml'], lost: ['diagramData', '../lost.xml'], n: ['notesSlide', '../notes.xml'] }),
    'ppt/charts/one.xml': CHART,
    'ppt/drawn.xml': `<a:data ${NS}><a:t>step one</a:t><a:t>step two</a:t></a:data>`,
    'ppt/notes.xml': slide(shape('sldImg', 'no') + shape('body', 'say it', 'slowly') + shape('sldNum', '1')),
    'ppt/slides/2.xml': slide(shape('ctrTitle', 'Welcome') + shape('subTitle', 'all'), ' show="0"'),
};

// ---- OpenDocument ----

const ODF = 'xmlns:office="o" xmlns:text="t" xmlns:table="tb" xmlns:draw="d" xmlns:style="s" xmlns:fo="f" xmlns:xlink="x" xmlns:presentation="p" xmlns:manifest="m" xmlns:svg="v"';
const open = (body, styles = '') => ({
    'META-INF/manifest.xml': `<manifest:manifest ${ODF}><manifest:file-entry/></manifest:manifest>`,
    'content.xml': `<office:document-content ${ODF}><office:automatic-styles>${styles}</office:automatic-styles><office:body>${body}</office:body></office:document-content>`,
});
const op = (inner, more = '') => `<text:p${more}>${inner}</text:p>`;
const item = (...inner) => `<text:list-item>${inner.join('')}</text:list-item>`;
const oc = (inner, more = '') => `<table:table-cell${more}>${inner && op(inner)}</table:table-cell>`;
const or = (more, ...cells) => `<table:table-row${more}>${cells.join('')}</table:table-row>`;
const box = (inner) => `<draw:frame><draw:text-box>${inner}</draw:text-box></draw:frame>`;
const place = (name, where) => `<style:style style:name="${name}"><style:text-properties style:text-position="${where}"/></style:style>`;
export const OPEN_TEXT = {
    ...open(`<office:text><text:sequence-decls>${op('no')}</text:sequence-decls><text:tracked-changes>${op('deleted')}</text:tracked-changes><office:forms>${op('no')}</office:forms>
        ${op('The title', ' text:style-name="Title"')}<text:h text:outline-level="2">A   heading<text:line-break/>of two lines</text:h><text:h>plain</text:h><text:h text:outline-level="9">deep</text:h>
        ${op('a<text:s/>b<text:s text:c="3"/>c<text:tab/>d<text:s text:c="300"/>e<text:line-break/>e\n   f')}
        ${op('H<text:span text:style-name="low">2</text:span>O E=mc<text:span text:style-name="high">2</text:span> <text:span text:style-name="sunk">s</text:span><text:span text:style-name="even">n</text:span><text:span text:style-name="zero">z</text:span><text:span text:style-name="low"> </text:span><text:span>p</text:span>')}
        ${op('<text:a xlink:href="https://example.org/plan">the plan</text:a> <text:a xlink:href="https://example.org/plan">https://example.org/plan</text:a> <text:a xlink:href="#here">here</text:a> <text:a xlink:href="MAILTO:x">mail</text:a>')}
        ${op('Noted<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>' + op('foot') + op('note') + '</text:note-body></text:note><text:span text:style-name="high"><text:note text:note-class="endnote"><text:note-citation>i</text:note-citation><text:note-body>' + op('end') + '</text:note-body></text:note></text:span><text:note><text:note-citation>3</text:note-citation></text:note><office:annotation><text:creator>Ann</text:creator><text:date>now</text:date>' + op('well said') + '</office:annotation>')}
        <text:list text:style-name="L1"><text:list-header>${op('head')}</text:list-header>${item(op('one'), op('more of one'))}${item('<text:h>heading</text:h>')}${item(op('two'), `<text:list>${item(op('inner'))}${item(`<text:list text:style-name="L2">${item(op('innermost'))}</text:list>`)}</text:list>`)}</text:list>
        <text:list text:style-name="L2">${item(op('point'))}</text:list><text:list/>
        <table:table>${or('', oc('A'), oc('B', ' table:number-columns-repeated="2"'), oc('', ' table:number-columns-repeated="9"'))}${or(' table:number-rows-repeated="2"', oc('1'), '<table:covered-table-cell><text:p>no</text:p></table:covered-table-cell>', `<table:table-cell><table:table>${or('', oc('x'), oc('y'))}</table:table></table:table-cell>`)}</table:table>
        <table:table>${or('', oc('framed'))}${or('', oc('twice'))}</table:table>
        ${op(`Before the box${box(op('in the box') + op('again'))}<draw:frame><draw:image/><svg:desc>a river</svg:desc></draw:frame><draw:frame><draw:object/><draw:image/></draw:frame>`)}
        ${op('<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby><text:ruby/><text:bookmark/><text:soft-page-break/>')}<draw:frame><draw:text-box>${op('a box of its own')}</draw:text-box></draw:frame><draw:frame><draw:object/></draw:frame><text:section>${op('in a section')}</text:section></office:text>`,
    `${place('low', 'sub 58%')}${place('high', '33% 58%')}${place('sunk', '-33% 58%')}${place('even', '0% 100%')}${place('zero', '0')}<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/><text:list-level-style-number text:level="2" style:num-format=""/><text:list-level-style-number text:level="3" style:num-format="1"/></text:list-style>`),
    'styles.xml': `<office:document-styles ${ODF}><text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/><text:list-level-style-number text:level="3" style:num-format="a"/></text:list-style></office:document-styles>`,
};
export const OPEN_SHEET = open(`<office:spreadsheet><table:table table:name="One">${or(' table:number-rows-repeated="3"', oc(''))}${or('', oc('', ' table:number-columns-repeated="70"'), oc('far'))}${or('', oc('x', ' table:number-columns-repeated="3"'))}${or('', oc(''))}<table:table-header-rows>${or('', oc('apart'))}</table:table-header-rows>${or(' table:number-rows-repeated="1048570"', oc(''))}</table:table><table:table table:name="Two"/></office:spreadsheet>`);
const framed = (kind, inner) => `<draw:frame presentation:class="${kind}"><draw:text-box>${inner}</draw:text-box></draw:frame>`;
export const OPEN_SLIDES = open(`<office:presentation><draw:page>${framed('outline', op('one') + op('two'))}${framed('title', op('The') + op('title'))}${['header', 'footer', 'date-time', 'page-number'].map((kind) => framed(kind, op('no'))).join('')}<draw:g><draw:frame><draw:text-box>${op('grouped')}</draw:text-box></draw:frame><draw:custom-shape>${op('drawn')}</draw:custom-shape></draw:g><draw:rect>${op('in a shape')}</draw:rect><draw:frame><draw:image/></draw:frame><draw:frame><table:table>${or('', oc('A'), oc('B'))}${or('', oc('1'), oc('2'))}</table:table></draw:frame><presentation:notes>${framed('notes', op('say it') + op('slowly'))}${framed('page', op('no'))}</presentation:notes></draw:page><draw:page><presentation:notes>${framed('page', op('no'))}</presentation:notes></draw:page></office:presentation>`);

// ---- books ----

export const CHAPTER = `<html><head><title>no</title><style>p { color: red }</style></head><body>loose <b>words</b>
    <h1>A  <i>heading</i></h1><h6></h6><p style="color: red">One<br/>two &amp; three</p><div>between<p>inner</p>after</div><span>spanned <p>block in a span</p></span><hr/><script>alert(1)</script><p hidden="">hidden</p><p>a<span hidden="">b</span>c</p>
    <pre>\n  kept\n    as it is\n\n</pre><blockquote><p>said</p><p>twice</p></blockquote><blockquote></blockquote>
    <ol start="3"><li>three</li><li><p>four</p><ul><li>inner</li><li>more</li></ul></li><p>no item</p><ol><li>nested</li></ol></ol><ul><li></li></ul>
    <table><caption>Rain</caption><tfoot><tr><td>sum</td><td>9</td><td>x</td></tr></tfoot><thead><tr><th>Month</th><th colspan="2">mm</th></tr></thead><tbody><tr><td><p>March</p><p>2025</p></td><td>1</td><td>2</td></tr></tbody></table>
    <table><tr><td>framed</td></tr></table><dl><dt>term</dt><dd>its meaning</dd></dl>
    <p>x<sup>2</sup> y<sub>i</sub> <del>old</del> <s>older</s> <code>let x</code> <a href="https://example.org/plan">the plan</a> <a href="https://example.org">https://example.org</a> <a href="#x">here</a><a epub:type="noteref" href="#n">^1</a><a role="doc-noteref"><sup>2</sup></a><sup><a epub:type="noteref">3</a></sup><sup> </sup></p>
    <p><img alt="a river"/><img/><svg><title>no</title></svg> <math alttext="spoken"><mi>x</mi><annotation>x^2</annotation></math> <math alttext="spoken"><mi>x</mi></math> <math><mi>y</mi></math></p></body></html>`;
const container = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>';
const book = (spine, more = '') => `<package xmlns:dc="d"><metadata>${more}</metadata><manifest><item id="c1" href="text/one%201.xhtml"/><item id="c2" href="../two.html"/><item id="c3" href="cover.svg"/><item id="c4" href="lost.xhtml"/><item id="c5" href="100%.xhtml"/></manifest><spine>${spine.map((id) => `<itemref idref="${id}"/>`).join('')}</spine></package>`;
const sealing = (algorithm, uri) => `<encryption><EncryptedData><EncryptionMethod Algorithm="${algorithm}"/><CipherReference URI="${uri}"/></EncryptedData></encryption>`;
export const BOOK_PARTS = {
    'META-INF/container.xml': container, 'OEBPS/book.opf': book(['c1', 'c3', 'c4', 'c2', 'c5'], '<dc:title> The book </dc:title><dc:creator>A. Writer</dc:creator>'),
    'OEBPS/text/one 1.xhtml': CHAPTER, 'two.html': '<body><p>second</p></body>', 'OEBPS/cover.svg': '<svg/>', 'OEBPS/100%.xhtml': '<body/>',
    'META-INF/encryption.xml': sealing('http://www.idpf.org/2008/embedding', 'two.html'),
};
export const UNTITLED_BOOK = { 'META-INF/container.xml': container, 'OEBPS/book.opf': book(['c2']), 'two.html': '<html><body>only words</body></html>' };
export const EMPTY_BOOK = { 'META-INF/container.xml': container, 'OEBPS/book.opf': book([]) };
export const SEALED_BOOK = { ...UNTITLED_BOOK, 'META-INF/encryption.xml': sealing('http://www.w3.org/2001/04/xmlenc#aes128-cbc', 'two%2Ehtml') };
