/** Runs the targets of fuzz_targets.ts, each for some seconds:  node fuzz.js SECONDS [RUNS [SEED [NAME]]]
 * RUNS ends a target earlier unless it is 0. Prints "NAME EXECUTIONS SECONDS" for each, of CPU time, and exits with 1 after
 * a finding, which names the seed. */
import process from "node:process";
import { fuzzTargets } from "./fuzz_targets.js";
import { exit, programArguments } from "./platform.js";

const seconds = Number(programArguments[0] ?? 10);
const runs = Number(programArguments[1] ?? 0);
const first = Number(programArguments[2] ?? Date.now() % 1e9);
const only = programArguments[3];
let failed = 0;

for (const { name, run } of fuzzTargets.filter((target) => !only || target.name === only)) {
    const end = process.hrtime()[0] + seconds;
    const before = process.cpuUsage();
    let seed = first;
    try {
        for (; process.hrtime()[0] < end && (!runs || seed < first + runs); seed++) {
            await run(seed);
        }
    } catch (reason) {
        failed = 1;
        console.log(`  seed ${seed}: ${reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)}`);
    }
    const { user, system } = process.cpuUsage(before);
    console.log(`${name} ${seed - first} ${((user + system) / 1e6).toFixed(1)}`);
}
exit(failed);
