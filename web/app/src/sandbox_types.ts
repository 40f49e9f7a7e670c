/** What the page and sandbox_worker.ts send each other. */
export interface SandboxRequest {
    code: string;
    /** JSON: the value of "input". */
    input: string;
}

export type SandboxAnswer =
    /** The interpreter is ready; the time of the code begins. */
    | { kind: "started" }
    /** What the code printed, and its value as text. */
    | { kind: "done"; printed: string[]; value: string | null }
    | { kind: "failed"; printed: string[]; message: string };
