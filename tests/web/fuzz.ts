/** Runs the targets of fuzz_targets.ts, each for some seconds:  node fuzz.js SECONDS [SEED]
 * Prints "NAME EXECUTIONS" for each, and exits with 1 after a finding, which names the seed. */
import process from "node:process";
import { fuzzTargets } from "./fuzz_targets.js";
import { exit, programArguments } from "./platform.js";

const seconds = Number(programArguments[0] ?? 10);
const first = Number(programArguments[1] ?? Date.now() % 1e9);
let failed = 0;

for (const { name, run } of fuzzTargets) {
    const end = process.hrtime()[0] + seconds;
    let seed = first;
    try {
        for (; process.hrtime()[0] < end; seed++) {
            await run(seed);
        }
    } catch (reason) {
        failed = 1;
        console.log(`  seed ${seed}: ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`);
    }
    console.log(`${name} ${seed - first}`);
}
exit(failed);
