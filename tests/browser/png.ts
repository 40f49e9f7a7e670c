/** Writes a PNG file; data: [height][width][3 or 4]. */
import { crc32, deflateSync } from "node:zlib";

export function pngFile(data: Uint8Array, width: number, height: number): Buffer {
    const channels = data.length / (width * height);
    const chunk = (name: string, bytes: Buffer): Buffer => {
        const body = Buffer.concat([Buffer.from(name, "latin1"), bytes]);
        const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
        length.writeUInt32BE(bytes.length);
        sum.writeUInt32BE(crc32(body));
        return Buffer.concat([length, body, sum]);
    };
    const head = Buffer.alloc(13);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    head.set([8, channels === 4 ? 6 : 2, 0, 0, 0], 8);
    const rows = Buffer.alloc(height * (1 + channels * width));
    for (let y = 0; y < height; y++) {
        rows.set(data.subarray(y * channels * width, (y + 1) * channels * width), y * (1 + channels * width) + 1);
    }
    return Buffer.concat([
        Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]),
        chunk("IHDR", head),
        chunk("IDAT", deflateSync(rows)),
        chunk("IEND", Buffer.alloc(0)),
    ]);
}
