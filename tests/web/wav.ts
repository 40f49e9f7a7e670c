/** Writes a 16-bit mono WAV file. */
export function wavFile(samples: Float32Array, rate: number): Blob {
    const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
    const text = (at: number, value: string): void => [...value].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    text(0, "RIFF");
    view.setUint32(4, 36 + 2 * samples.length, true);
    text(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true);
    view.setUint16(22, 1, true);
    view.setUint32(24, rate, true);
    view.setUint32(28, 2 * rate, true);
    view.setUint16(32, 2, true);
    view.setUint16(34, 16, true);
    text(36, "data");
    view.setUint32(40, 2 * samples.length, true);
    samples.forEach((x, i) => view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(x * 32768))), true));
    return new Blob([view.buffer], { type: "audio/wav" });
}
