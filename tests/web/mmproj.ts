/** The smallest file that counts as a model's mmproj: towers for pictures and sound with one tensor each. */
const F32 = 0;
const STRING = 8;
const ALIGNMENT = 32;

export function tinyMmproj(): Uint8Array<ArrayBuffer> {
    const bytes: number[] = [];
    const encoder = new TextEncoder();
    const number = (value: number, size: number): void => {
        for (let i = 0; i < size; i++, value = Math.floor(value / 256)) {
            bytes.push(value % 256);
        }
    };
    const text = (value: string): void => {
        number(value.length, 8);
        bytes.push(...encoder.encode(value));
    };
    const tensors = ["v.patch_embd.weight", "a.input_projection.weight"];
    bytes.push(...encoder.encode("GGUF"));
    number(3, 4);
    number(tensors.length, 8);
    number(1, 8);
    text("general.architecture");
    number(STRING, 4);
    text("clip");
    tensors.forEach((name, i) => {
        text(name);
        number(1, 4); // dimensions
        number(8, 8); // values
        number(F32, 4);
        number(i * ALIGNMENT, 8); // where, in what follows
    });
    while (bytes.length % ALIGNMENT !== 0) {
        bytes.push(0);
    }
    return Uint8Array.from([...bytes, ...new Array<number>(tensors.length * ALIGNMENT).fill(0)]);
}
