/** ZIP files for the tests, with whatever lie about themselves is asked for. */
import { deflateRawSync } from 'node:zlib';

const TABLE = Int32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
});

/** @param {Buffer} bytes */
function crc32(bytes) {
    let crc = -1;
    for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
    return ~crc >>> 0;
}

/**
 * @param {Record<string, string|Buffer>} parts
 * @param {{flags?: number, method?: number, claim?: number, count?: number, crc?: number, wide?: boolean}} [lies] about every part:
 *   its flags, its method, its size, its checksum; and how many parts there are. wide: sizes are fields of 64 bits
 */
export function zip(parts, { flags = 0, method = 8, claim, count, crc, wide = false } = {}) {
    const locals = [];
    const list = [];
    let at = 0;
    for (const [name, content] of Object.entries(parts)) {
        const data = Buffer.from(content);
        const packed = method === 8 ? deflateRawSync(data) : data;
        const head = Buffer.alloc(30 + name.length);
        head.writeUInt32LE(0x04034b50, 0);
        head.writeUInt16LE(method, 8);
        head.writeUInt16LE(name.length, 26);
        head.write(name, 30);
        const extra = wide ? 20 : 0;
        const entry = Buffer.alloc(46 + name.length + extra);
        entry.writeUInt32LE(0x02014b50, 0);
        entry.writeUInt16LE(flags, 8);
        entry.writeUInt16LE(method, 10);
        entry.writeUInt32LE(crc ?? crc32(data), 16);
        entry.writeUInt32LE(wide ? 0xffffffff : packed.length, 20);
        entry.writeUInt32LE(wide ? 0xffffffff : (claim ?? data.length), 24);
        if (wide) {
            entry.writeUInt16LE(extra, 30);
            entry.writeUInt16LE(1, 46 + name.length);
            entry.writeUInt16LE(16, 48 + name.length);
            entry.writeBigUInt64LE(BigInt(claim ?? data.length), 50 + name.length);
            entry.writeBigUInt64LE(BigInt(packed.length), 58 + name.length);
        }
        entry.writeUInt16LE(name.length, 28);
        entry.writeUInt32LE(at, 42);
        entry.write(name, 46);
        locals.push(head, packed);
        list.push(entry);
        at += head.length + packed.length;
    }
    const directory = Buffer.concat(list);
    const end = Buffer.alloc(22);
    end.writeUInt32LE(0x06054b50, 0);
    end.writeUInt16LE(count ?? list.length, 8);
    end.writeUInt16LE(count ?? list.length, 10);
    end.writeUInt32LE(directory.length, 12);
    end.writeUInt32LE(at, 16);
    return Buffer.concat([...locals, directory, end]);
}

const RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

/** The parts of a Word document with this body. @param {string} body @param {Record<string, string|Buffer>} [more] */
export function docx(body, more = {}) {
    return {
        '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        '_rels/.rels': `<Relationships xmlns="${RELATIONS}"><Relationship Id="r1" Type="${OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>`,
        'word/document.xml': `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`,
        ...more,
    };
}

/** The parts of a workbook with one sheet. @param {string} rows */
export function xlsx(rows) {
    return {
        '[Content_Types].xml': '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        '_rels/.rels': `<Relationships xmlns="${RELATIONS}"><Relationship Id="r1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
        'xl/workbook.xml': `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="${OFFICE}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>`,
        'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
        'xl/worksheets/sheet1.xml': `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>${rows}</sheetData></worksheet>`,
    };
}
