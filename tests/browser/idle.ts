/** Detects a hanging test by progress instead of elapsed time: a slow machine is busy, a hanging test is not. */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

/** The child processes are idle if they used less than MIN_CPU_SECONDS of CPU in IDLE_SECONDS. */
const IDLE_SECONDS = 90;
const MIN_CPU_SECONDS = 0.5;
const TICKS_PER_SECOND = 100;

/** CPU seconds of all living descendants of this process: browsers and servers. */
function cpuSeconds(): number {
    const children = new Map<number, { pid: number; ticks: number }[]>();
    for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
        try {
            const stat = readFileSync(`/proc/${name}/stat`, "utf8");
            const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
            const [parent, user, system] = [fields[1], fields[11], fields[12]].map(Number) as [number, number, number];
            children.set(parent, [...(children.get(parent) ?? []), { pid: Number(name), ticks: user + system }]);
        } catch {
            // the process has ended
        }
    }
    const sum = (pid: number): number => (children.get(pid) ?? []).reduce((ticks, child) => ticks + child.ticks + sum(child.pid), 0);
    return sum(process.pid) / TICKS_PER_SECOND;
}

export interface IdleWatch {
    readonly expired: boolean;
    readonly seconds: number;
    stop(): void;
}

/** Calls `onIdle` once when the child processes have been idle for IDLE_SECONDS. */
export function watchIdle(onIdle: () => void): IdleWatch {
    let [before, since, expired] = [cpuSeconds(), Date.now(), false];
    const timer = setInterval(() => {
        const now = cpuSeconds();
        if (Math.abs(now - before) >= MIN_CPU_SECONDS) {
            [before, since] = [now, Date.now()];
        } else if (!expired && Date.now() - since >= 1000 * IDLE_SECONDS) {
            expired = true;
            onIdle();
        }
    }, 5000);
    return {
        get expired() {
            return expired;
        },
        seconds: IDLE_SECONDS,
        stop: () => clearInterval(timer),
    };
}
