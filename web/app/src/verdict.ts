/** What is known of a model before it is loaded, in words. */
import type { Inspection } from "./bezel.js";

export interface Verdict {
    runs: boolean;
    /** Why not; empty when it runs. */
    reason: string;
    /** [name, value] */
    facts: [string, string][];
}

export function verdictOf(inspection: Inspection): Verdict {
    return { runs: inspection.runs, reason: inspection.runs ? "" : inspection.text, facts: [] };
}
