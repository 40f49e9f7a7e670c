/** Test cases: one line each, "ok NAME" or "FAIL NAME", preceded by the reason. */
import { exit, programArguments } from "./platform.js";

let failed = 0;
let passed = 0;
// Arguments under build/ are programs that a test runs: tests/run.py names them so that they are built.
const filter = programArguments.find((argument) => !argument.startsWith("build/")) ?? "";

/** Runs a case; with an argument on the command line, only cases whose names contain it. */
export async function test(name: string, body: () => Promise<void> | void): Promise<void> {
    if (!name.includes(filter)) {
        return;
    }
    try {
        await body();
        passed++;
        console.log(`ok ${name}`);
    } catch (reason) {
        failed++;
        console.log(`  ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`);
        console.log(`FAIL ${name}`);
    }
}

export function check(condition: boolean, what: string): void {
    if (!condition) {
        throw new Error(what);
    }
}

export function checkEqual<T>(got: T, want: T, what: string): void {
    const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
    check(a === b, `${what}: got ${a}, expected ${b}`);
}

export function finish(): never {
    if (passed + failed === 0) {
        console.log(`FAIL no case matches ${filter}`);
    }
    exit(failed || passed === 0 ? 1 : 0);
}

/** Largest absolute difference; Infinity for NaN or different lengths. */
export function maxDifference(got: Float32Array, want: Float32Array): number {
    let max = got.length === want.length ? 0 : Infinity;
    for (let i = 0; i < want.length; i++) {
        const d = Math.abs((got[i] ?? NaN) - (want[i] ?? NaN));
        if (!(d <= max)) {
            max = Number.isNaN(d) ? Infinity : d;
        }
    }
    return max;
}
