/** Error codes, shared by C, JavaScript and HTTP; indexed by C's enum value. */
export const statusNames = [
    "ok",
    "out_of_memory",
    "bad_file",
    "unsupported_model",
    "not_found",
    "bad_request",
    "context_full",
    "aborted",
    "numeric",
    "no_webgpu",
    "no_adapter",
    "device_lost",
    "checksum",
    "network",
    "quota",
    "bad_schema",
] as const;

export type StatusName = (typeof statusNames)[number];
export type ErrorCode = Exclude<StatusName, "ok">;

/** Its message is a sentence that names the thing, the cause and the remedy. */
export class BezelError extends Error {
    readonly code: ErrorCode;

    constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
        super(message, options);
        this.name = code === "aborted" ? "AbortError" : "BezelError"; // as fetch names it
        this.code = code;
    }
}

export function statusNumber(name: StatusName): number {
    return statusNames.indexOf(name);
}

/** An error from C, by its code. */
export function errorOf(code: number, message: string): BezelError {
    const name = statusNames[code];
    return new BezelError(name === undefined || name === "ok" ? "bad_request" : name, message);
}

/** A trap in WebAssembly, after which the engine must not be used. */
export function isCrash(reason: unknown): reason is Error {
    return reason instanceof WebAssembly.RuntimeError;
}

/** The error of a call that its signal aborted. */
export function abortedBy(signal: AbortSignal): BezelError {
    return new BezelError("aborted", "Stopped on request.", { cause: signal.reason });
}

/** Converts anything thrown into a BezelError. */
export function errorFrom(reason: unknown, otherwise: ErrorCode = "bad_request"): BezelError {
    if (reason instanceof BezelError) {
        return reason;
    }
    if (reason instanceof Error && reason.name === "AbortError") {
        return new BezelError("aborted", "Stopped on request.", { cause: reason });
    }
    if (isCrash(reason)) {
        return new BezelError("device_lost", `The engine crashed (${reason.message}). Load the model again.`, { cause: reason });
    }
    if (reason instanceof RangeError) {
        return new BezelError("out_of_memory", `There is not enough memory: ${reason.message}.`, { cause: reason });
    }
    return new BezelError(otherwise, reason instanceof Error ? reason.message : String(reason), { cause: reason });
}
